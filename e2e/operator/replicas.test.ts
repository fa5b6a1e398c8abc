// Two replicas of the operator. Agents can report to either, but only the leader keeps reports. When it ends, the other continues from the state
// of the cluster.

import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { Crowd } from './crowd.ts'
import { Api } from './fleet.ts'
import { eventually, heartbeatUrl, OperatorProcess } from './process.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
const missing = missingForCluster(0)

describe.skipIf(missing !== undefined)(`replicas${missing === undefined ? '' : ` (${missing})`}`, () => {
  let cluster: Cluster
  let api: Api

  beforeAll(async () => {
    cluster = await startCluster()
    api = await Api.start(cluster)
    await cluster.kubectl(['apply', '--server-side', '-k', 'crds'])
    await cluster.kubectl(['create', 'namespace', 'penstock-system'])
    await cluster.apply({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'node', namespace: 'penstock-system' },
      spec: { mode: 'Node', pipelines: { clusterPipelines: { selector: {} } } },
    })
  })
  afterAll(async () => {
    await api?.[Symbol.asyncDispose]()
    await cluster?.[Symbol.asyncDispose]()
  })

  test('a report to a non-leader is forwarded, and a new leader receives reports of all agents', async () => {
    const start = (heartbeats: number) => OperatorProcess.start({ kubeconfig: cluster.kubeconfig, heartbeats })
    await using leader = start(await freePort())
    await leader.leading()
    const port = await freePort()
    await using second = start(port)
    await second.logged('Agents may report')
    expect(second.log).not.toContain('All controllers run')
    await eventually(() => api.get('/api/v1/namespaces/penstock-system/serviceaccounts/penstock-node'))
    await using crowd = await Crowd.start(api, {
      agent: 'node',
      nodes: 5,
      operatorUrl: heartbeatUrl(port),
      everyMs: 5000,
    })
    const nodes = async () =>
      (await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')).status?.['nodes']
    await eventually(async () => expect(await nodes()).toMatchObject({ desired: 5, current: 5, stale: 0 }))
    expect(crowd.answers.get(200)).toBeGreaterThan(0)
    const refused = await fetch(`${heartbeatUrl(port)}/v1/heartbeat`, {
      method: 'POST',
      headers: { authorization: 'Bearer nobody' },
      body: '{}',
    })
    expect(refused.status).toBe(401)

    await leader.kill()
    await second.leading()
    await cluster.apply({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'ClusterPipeline',
      metadata: { name: 'after' },
      spec: {
        mode: 'Node',
        sources: [{ name: 'in', type: 'demo_logs', config: { format: 'json', interval: 1 } }],
        sinks: [{ name: 'out', type: 'blackhole' }],
      },
    })
    await eventually(async () => {
      const { status } = await api.get('/apis/penstock.dev/v1alpha1/clusterpipelines/after')
      const agents = status?.['agents'] as readonly { desired: number; current: number }[] | undefined
      expect(agents?.[0]?.desired).toBe(5)
      expect(agents?.[0]?.current).toBeGreaterThan(0)
    }, 90_000)
  })
})
