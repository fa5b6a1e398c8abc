// Aggregators: a Deployment, or a StatefulSet with storage. With autoscaling the field `replicas` is never written, because the
// autoscaler owns it.

import { Construct } from 'constructs'
import { type Agent, agentDefaults } from '../api/agent.ts'
import type { ObjectMeta } from '../api/object.ts'
import { ObjectConstruct } from './manifest.ts'
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

const { aggregator: defaults } = agentDefaults

export class Aggregator extends Construct {
  readonly #agent: Agent
  readonly #metadata: ObjectMeta

  constructor(scope: Construct, agent: Agent, input: WorkloadInput) {
    super(scope, 'aggregator')
    const { namespace } = agent.metadata
    this.#agent = agent
    this.#metadata = {
      name: workloadName(agent),
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...objectLabels(agent), [labels.component]: 'aggregator' },
      ownerReferences: ownedBy(agent),
    }
    // Created without a holder, because the agents write it.
    if (input.lease !== undefined)
      new ObjectConstruct(this, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { ...this.#metadata, name: input.lease },
      })
    this.#service()
    this.#pods(input)
    this.#autoscaler()
    this.#disruptionBudget()
  }

  #service(): void {
    new ObjectConstruct(this, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: this.#metadata,
      spec: {
        clusterIP: 'None',
        publishNotReadyAddresses: true,
        selector: podLabels(this.#agent),
        ports: [{ name: 'observe', port: agentPort, targetPort: 'observe', protocol: 'TCP' }],
      },
    })
  }

  #pods(input: WorkloadInput): void {
    const agent = this.#agent
    const { autoscaling, replicas = defaults.replicas, storage } = agent.spec.aggregator ?? {}
    const common = {
      ...(autoscaling === undefined ? { replicas } : {}),
      selector: { matchLabels: podLabels(agent) },
      template: aggregatorTemplate(agent, input),
    }
    if (storage === undefined) {
      new ObjectConstruct(this, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: this.#metadata, spec: common })
      return
    }
    const { whenScaled = defaults.retention, whenDeleted = defaults.retention } = storage.retention ?? {}
    new ObjectConstruct(this, {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: this.#metadata,
      spec: {
        ...common,
        serviceName: workloadName(agent),
        podManagementPolicy: 'Parallel',
        // The operator, not the set's controller, removes a volume that must be drained first.
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

  #autoscaler(): void {
    const { autoscaling, storage } = this.#agent.spec.aggregator ?? {}
    if (autoscaling === undefined) return
    const { minReplicas = defaults.minReplicas, maxReplicas, targetCPU, targetBufferUtilization } = autoscaling
    const kind = storage === undefined ? 'Deployment' : 'StatefulSet'
    new ObjectConstruct(this, {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: this.#metadata,
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind, name: workloadName(this.#agent) },
        minReplicas,
        maxReplicas,
        metrics: [
          {
            type: 'Resource',
            resource: {
              name: 'cpu',
              target: { type: 'Utilization', averageUtilization: targetCPU ?? defaults.targetCPU },
            },
          },
          ...(targetBufferUtilization === undefined
            ? []
            : [
                {
                  type: 'Pods',
                  pods: {
                    metric: { name: `${this.#agent.spec.monitoring?.metricPrefix ?? ''}buffer_utilization` },
                    target: { type: 'AverageValue', averageValue: `${targetBufferUtilization * 10}m` },
                  },
                },
              ]),
        ],
      },
    })
  }

  #disruptionBudget(): void {
    const { autoscaling, podDisruptionBudget, replicas = defaults.replicas } = this.#agent.spec.aggregator ?? {}
    const minReplicas = autoscaling === undefined ? replicas : (autoscaling.minReplicas ?? defaults.minReplicas)
    if (minReplicas <= 1 && podDisruptionBudget === undefined) return
    const { maxUnavailable = defaults.maxUnavailable, minAvailable } = podDisruptionBudget ?? {}
    new ObjectConstruct(this, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: this.#metadata,
      spec: {
        ...(minAvailable === undefined ? { maxUnavailable } : { minAvailable }),
        selector: { matchLabels: podLabels(this.#agent) },
      },
    })
  }
}

function aggregatorTemplate(agent: Agent, input: WorkloadInput) {
  const aggregator = agent.spec.aggregator ?? {}
  // Needed even with one replica: an update runs two pods for a moment, and a higher number of replicas must not replace
  // the pods.
  const election = input.lease === undefined ? [] : ['--lease', input.lease]
  // The agent then asks the operator who may read its metrics, because only the operator may query the API server.
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

/** Drains the volume of a removed pod: an agent with that volume and without sources. */
export class DrainJob extends Construct {
  constructor(scope: Construct, agent: Agent, input: WorkloadInput, ordinal: number) {
    super(scope, `drain-${ordinal}`)
    const { namespace, name } = agent.metadata
    const { metadata: _, spec } = aggregatorTemplate(agent, input)
    // The selectors of the Agent's pods must not match this one.
    const own = { [labels.name]: 'penstock-drain', [labels.instance]: name }
    new ObjectConstruct(this, {
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
}
