import { expect, test } from 'vitest'
import type { Agent, AgentSpec } from '../../api/agent.ts'
import { availabilityOf, type WorkloadObject } from './available.ts'
import type { AgentPod } from './pods.ts'

function agent(spec: Partial<AgentSpec>): Agent {
  const metadata = { name: 'node', namespace: 'system' }
  return { apiVersion: 'penstock.dev/v1alpha1', kind: 'Agent', metadata, spec: { mode: 'Node', ...spec } }
}

function workload(kind: string, status: WorkloadObject['status'], generation = 1): WorkloadObject {
  const counts = status === undefined ? {} : { status }
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'penstock-node', namespace: 'system', generation },
    ...counts,
  }
}

function pod(status: AgentPod['status']): AgentPod {
  const metadata = { name: 'p', namespace: 'system' }
  return { apiVersion: 'v1', kind: 'Pod', metadata, ...(status === undefined ? {} : { status }) }
}

const ready = { observedGeneration: 1, desiredNumberScheduled: 2, numberReady: 2 }
const half = { ...ready, numberReady: 1 }
const unschedulable = pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] })
const crashing = pod({
  containerStatuses: [{ name: 'agent', restartCount: 2, ready: false, lastState: { terminated: { exitCode: 1 } } }],
})

test.each([
  {
    sentence: 'an Agent whose pods are all ready is available',
    spec: {},
    live: workload('DaemonSet', ready),
    pods: [pod({})],
    says: ['True', 'Available', '2 of 2 pods are ready.'],
  },
  {
    sentence: 'an Agent without a workload of its own is available',
    spec: { mode: 'Sidecar' },
    live: undefined,
    pods: [],
    says: ['True', 'Available', ''],
  },
  {
    sentence: 'an Agent whose workload is not there yet is not available',
    spec: {},
    live: undefined,
    pods: [],
    says: ['False', 'PodsNotReady', '0 of 0 pods are ready.'],
  },
  {
    sentence: 'a count of an earlier generation of the workload does not count',
    spec: {},
    live: workload('DaemonSet', ready, 2),
    pods: [pod({})],
    says: ['False', 'PodsNotReady', '2 of 2 pods are ready.'],
  },
  {
    sentence: 'a pod that no node takes is the reason before any other',
    spec: {},
    live: workload('DaemonSet', half),
    pods: [crashing, unschedulable],
    says: ['False', 'Unschedulable', '1 of 2 pods is ready; pod p cannot be scheduled.'],
  },
  {
    sentence: 'a container that ends again and again is named with the command that shows its log',
    spec: {},
    live: workload('DaemonSet', half),
    pods: [crashing],
    says: [
      'False',
      'PodsNotReady',
      '1 of 2 pods is ready; container agent of p keeps exiting (exit code 1): kubectl logs p -n system -c agent --previous.',
    ],
  },
  {
    sentence: 'a workload without any pod is named with the command that describes it',
    spec: { mode: 'Aggregator' },
    live: workload('Deployment', { observedGeneration: 1, replicas: 1 }),
    pods: [],
    says: [
      'False',
      'PodsNotReady',
      '0 of 1 pod is ready; there are no pods: kubectl describe deployment penstock-node -n system.',
    ],
  },
] as const)('$sentence', ({ spec, live, pods, says }) => {
  const { finding } = availabilityOf(agent(spec), live, pods, 0)
  expect([finding.status, finding.reason, finding.message]).toEqual(says)
})

test('an Agent of mode Node counts the nodes without an agent, and an Aggregator the replicas that its scaler requests', () => {
  expect(availabilityOf(agent({}), workload('DaemonSet', ready), [], 3).fields).toEqual({ unsupportedNodes: 3 })
  const set = workload('StatefulSet', { observedGeneration: 1, replicas: 4, readyReplicas: 4 })
  expect(availabilityOf(agent({ mode: 'Aggregator' }), set, [], 3).fields).toEqual({
    replicas: 4,
    selector: 'app.kubernetes.io/name=penstock-agent,app.kubernetes.io/instance=node',
  })
})
