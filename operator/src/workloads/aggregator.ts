// Aggregators: a Deployment, or a StatefulSet where there is storage. Who scales them is seen by who owns `replicas`: with
// autoscaling the field is never written.

import type { Agent } from '../api/agent.ts'
import type { Describe } from './manifest.ts'
import {
  agentPort,
  claimName,
  drainJobName,
  labels,
  objectLabels,
  ownedBy,
  paths,
  podLabels,
  workloadName,
} from './names.ts'
import {
  agentContainer,
  agentUser,
  bundleVolumes,
  drainArguments,
  drainLeftCode,
  podSecurity,
  pullSecrets,
  serviceAccountVolume,
  templateMetadata,
  type WorkloadInput,
} from './pod.ts'
import { patched } from './pod-template.ts'

export function describeAggregator(agent: Agent, input: WorkloadInput, add: Describe): void {
  const { namespace } = agent.metadata
  const aggregator = agent.spec.aggregator ?? {}
  const { autoscaling, storage } = aggregator
  const name = workloadName(agent)
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: { ...objectLabels(agent), [labels.component]: 'aggregator' },
    ownerReferences: ownedBy(agent),
  }
  const selector = { matchLabels: podLabels(agent) }
  const replicas = autoscaling === undefined ? { replicas: aggregator.replicas ?? 1 } : {}
  const template = aggregatorTemplate(agent, input)

  // Nobody's at first: who holds it is written by the agents.
  if (input.lease !== undefined)
    add({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...metadata, name: input.lease } })
  add({
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: {
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      selector: podLabels(agent),
      ports: [{ name: 'observe', port: agentPort, targetPort: 'observe', protocol: 'TCP' }],
    },
  })
  if (storage === undefined) {
    add({ apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { ...replicas, selector, template } })
  } else {
    const { whenScaled = 'Retain', whenDeleted = 'Retain' } = storage.retention ?? {}
    add({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata,
      spec: {
        ...replicas,
        serviceName: name,
        podManagementPolicy: 'Parallel',
        selector,
        template,
        // A volume that is to be emptied first is removed by the operator, not by the controller of the set.
        persistentVolumeClaimRetentionPolicy: {
          whenScaled: whenScaled === 'Drain' ? 'Retain' : whenScaled,
          whenDeleted,
        },
        volumeClaimTemplates: [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: 'data', labels: podLabels(agent) },
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: String(storage.size) } },
              ...(storage.storageClassName ? { storageClassName: storage.storageClassName } : {}),
            },
          },
        ],
      },
    })
  }
  if (autoscaling !== undefined) {
    const { minReplicas = 1, maxReplicas, targetCPU, targetBufferUtilization } = autoscaling
    add({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata,
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: storage === undefined ? 'Deployment' : 'StatefulSet', name },
        minReplicas,
        maxReplicas,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: targetCPU ?? 75 } },
          },
          ...(targetBufferUtilization === undefined
            ? []
            : [
                {
                  type: 'Pods',
                  pods: {
                    metric: { name: 'buffer_utilization' },
                    target: { type: 'AverageValue', averageValue: `${targetBufferUtilization * 10}m` },
                  },
                },
              ]),
        ],
      },
    })
  }
  const least = autoscaling === undefined ? (aggregator.replicas ?? 1) : (autoscaling.minReplicas ?? 1)
  const { maxUnavailable, minAvailable } = aggregator.podDisruptionBudget ?? {}
  if (least > 1 || aggregator.podDisruptionBudget !== undefined) {
    add({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata,
      spec: { ...(minAvailable === undefined ? { maxUnavailable: maxUnavailable ?? 1 } : { minAvailable }), selector },
    })
  }
}

function aggregatorTemplate(agent: Agent, input: WorkloadInput) {
  const aggregator = agent.spec.aggregator ?? {}
  // With one replica as well: while it is replaced there are two, and more replicas shall not mean other pods.
  const election = input.lease === undefined ? [] : ['--lease', input.lease]
  // Who may read its metrics it asks the operator then, which may ask the API server.
  const scoped = input.tenant === true || input.namespaces !== undefined
  const scope = scoped ? ['--namespaces', agent.metadata.namespace ?? ''] : []
  const container = agentContainer(agent, input, [...election, ...scope], {
    requests: { cpu: '250m', memory: '256Mi' },
    limits: { memory: '1Gi' },
  })
  const spread = aggregator.topologySpreadConstraints?.map((constraint) => ({
    labelSelector: { matchLabels: podLabels(agent) },
    ...constraint,
  }))
  const template = {
    metadata: templateMetadata(agent),
    spec: {
      serviceAccountName: workloadName(agent),
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 60,
      nodeSelector: { ...aggregator.nodeSelector, 'kubernetes.io/os': 'linux' },
      ...(aggregator.tolerations === undefined ? {} : { tolerations: aggregator.tolerations }),
      ...(aggregator.affinity === undefined ? {} : { affinity: aggregator.affinity }),
      ...(spread === undefined ? {} : { topologySpreadConstraints: spread }),
      securityContext: { ...podSecurity(agentUser), fsGroup: agentUser, fsGroupChangePolicy: 'OnRootMismatch' },
      ...pullSecrets(agent, input),
      containers: [
        { ...container, volumeMounts: [...container.volumeMounts, { name: 'data', mountPath: paths.data }] },
      ],
      volumes: [
        ...bundleVolumes(agent),
        serviceAccountVolume,
        ...(aggregator.storage === undefined ? [{ name: 'data', emptyDir: {} }] : []),
      ],
    },
  }
  return patched(template, agent)
}

/** Empties the volume of a pod that is no more: the agent with that volume and without sources. */
export function describeDrain(agent: Agent, input: WorkloadInput, ordinal: number, add: Describe): void {
  const { namespace, name } = agent.metadata
  const { metadata: _, spec } = aggregatorTemplate(agent, input)
  // The selectors of the Agent's pods must not find this one.
  const own = { [labels.name]: 'penstock-drain', [labels.instance]: name }
  add({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: drainJobName(agent, ordinal),
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...objectLabels(agent), ...own, [labels.component]: 'drain' },
      ownerReferences: ownedBy(agent),
    },
    spec: {
      backoffLimit: 1000,
      podFailurePolicy: {
        rules: [
          { action: 'FailJob', onExitCodes: { containerName: 'agent', operator: 'In', values: [drainLeftCode] } },
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        ],
      },
      template: {
        metadata: { labels: { ...own, [labels.component]: 'drain' } },
        spec: {
          ...spec,
          restartPolicy: 'Never',
          containers: spec.containers.map((container) => {
            if (container.name !== 'agent') return container
            const { readinessProbe: _ready, ...rest } = container
            return { ...rest, args: drainArguments }
          }),
          volumes: [
            ...spec.volumes.filter((volume) => volume.name !== 'data'),
            { name: 'data', persistentVolumeClaim: { claimName: claimName(agent, ordinal) } },
          ],
        },
      },
    },
  })
}
