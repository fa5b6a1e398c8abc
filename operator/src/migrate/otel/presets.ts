// Parts that the Helm chart adds to the configuration in its values: the default logs pipeline, and the components of presets.

import { isTable, listOf, tableOf } from '@penstock/agent/schema'

type Table = Readonly<Record<string, unknown>>

interface Added {
  readonly receivers?: Readonly<Record<string, Table>>
  readonly processors?: Readonly<Record<string, Table>>
  readonly pipeline: 'logs' | 'metrics'
}

/** The charts associate records with pods by the uid, among others. */
export const byUid = [{ sources: [{ from: 'resource_attribute', name: 'k8s.pod.uid' }] }]

const kubernetesAttributes = (preset: Table): Table => {
  const all = [{ tag_name: '$$1', key_regex: '(.*)', from: 'pod' }]
  const metadata = [
    'k8s.namespace.name',
    'k8s.pod.name',
    'k8s.pod.uid',
    'k8s.node.name',
    'k8s.deployment.name',
    'k8s.replicaset.name',
    'k8s.daemonset.name',
    'k8s.job.name',
    'k8s.container.name',
    'k8s.cronjob.name',
    'k8s.statefulset.name',
    'container.image.tag',
    'container.image.name',
  ]
  return {
    pod_association: byUid,
    extract: {
      otel_annotations: true,
      metadata,
      ...(preset['extractAllPodLabels'] === true ? { labels: all } : {}),
      ...(preset['extractAllPodAnnotations'] === true ? { annotations: all } : {}),
    },
  }
}

const presets: Readonly<Record<string, (preset: Table) => Added>> = {
  logsCollection: () => ({
    pipeline: 'logs',
    receivers: {
      filelog: {
        include: ['/var/log/pods/*/*/*.log'],
        start_at: 'end',
        include_file_path: true,
        include_file_name: false,
        operators: [{ type: 'container', id: 'container-parser' }],
      },
    },
  }),
  kubernetesAttributes: (preset) => ({
    pipeline: 'logs',
    processors: { k8sattributes: kubernetesAttributes(preset) },
  }),
  kubernetesEvents: () => ({
    pipeline: 'logs',
    receivers: { k8sobjects: { objects: [{ name: 'events', mode: 'watch', group: 'events.k8s.io' }] } },
  }),
  hostMetrics: () => ({ pipeline: 'metrics', receivers: { hostmetrics: {} } }),
  kubeletMetrics: () => ({ pipeline: 'metrics', receivers: { kubeletstats: {} } }),
  clusterMetrics: () => ({ pipeline: 'metrics', receivers: { k8s_cluster: {} } }),
}

/** The default pipeline of the chart. */
const byDefault = { receivers: ['otlp'], processors: ['memory_limiter', 'batch'], exporters: ['debug'] }

/** Whether a table has the values of the chart. */
const isOfChart = (values: Table) =>
  isTable(values['presets']) || ['daemonset', 'deployment', 'statefulset'].includes(String(values['mode']))

/** The configuration that the chart generates from its values; undefined for other tables. */
export function withPresets(values: Table, own: Table): Table | undefined {
  if (!isOfChart(values)) return undefined
  const chosen = tableOf(values['presets'])
  const added = Object.entries(presets).flatMap(([name, make]) => {
    const preset = tableOf(chosen[name])
    return preset['enabled'] === true ? [make(preset)] : []
  })
  const receivers: Record<string, unknown> = { ...tableOf(own['receivers']) }
  const processors: Record<string, unknown> = { ...tableOf(own['processors']) }
  const exporters: Record<string, unknown> = { ...tableOf(own['exporters']) }
  const service = tableOf(own['service'])
  const pipelines: Record<string, Table | null> = { ...(tableOf(service['pipelines']) as Record<string, Table | null>) }
  // Values merge with the defaults, in which null removes a pipeline.
  if (pipelines['logs'] !== null) pipelines['logs'] = { ...byDefault, ...pipelines['logs'] }
  for (const { pipeline, ...parts } of added) {
    const given = tableOf(pipelines[pipeline])
    const start = {
      receivers: listOf(given['receivers'] ?? byDefault.receivers),
      processors: listOf(given['processors'] ?? byDefault.processors),
      exporters: listOf(given['exporters'] ?? byDefault.exporters),
    }
    // The chart appends receivers, and puts `k8sattributes` first.
    const more = Object.keys(parts.receivers ?? {}).filter((id) => !start.receivers.includes(id))
    const first = Object.keys(parts.processors ?? {}).filter((id) => !start.processors.includes(id))
    pipelines[pipeline] = {
      ...start,
      receivers: [...start.receivers, ...more],
      processors: [...first, ...start.processors],
    }
    for (const [id, config] of Object.entries(parts.receivers ?? {})) {
      receivers[id] = { ...config, ...tableOf(receivers[id]) }
    }
    for (const [id, config] of Object.entries(parts.processors ?? {})) {
      processors[id] = { ...config, ...tableOf(processors[id]) }
    }
  }
  // Parts that the chart defines and the values only name.
  for (const id of ['memory_limiter', 'batch']) processors[id] ??= {}
  for (const id of ['otlp', 'jaeger', 'zipkin', 'prometheus']) receivers[id] ??= {}
  exporters['debug'] ??= {}
  return {
    ...own,
    extensions: { health_check: {}, ...tableOf(own['extensions']) },
    receivers,
    processors,
    exporters,
    service: { ...service, pipelines },
  }
}
