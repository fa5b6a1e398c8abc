// Parts that the Helm chart adds to the configuration in its values: the default logs pipeline, and the components of presets.

import { isTable, listOf, tableOf } from '@penstock/agent/schema'

type Table = Readonly<Record<string, unknown>>

interface Added {
  readonly receivers?: Readonly<Record<string, Table>>
  readonly processors?: Readonly<Record<string, Table>>
  readonly pipeline: 'logs' | 'metrics' | 'profiles'
}

/** A report about a preset. */
interface Report {
  readonly preset: string
  readonly reason: string
  readonly nearest: string
  readonly isReplaced?: true
  readonly isAbsent?: true
}

interface Made {
  readonly config: Table
  readonly reports: readonly Report[]
}

/** The charts associate records with pods by the uid, among others. */
export const byUid = [{ sources: [{ from: 'resource_attribute', name: 'k8s.pod.uid' }] }]

const kubernetesAttributes = (preset: Table): Table => {
  const all = [{ tag_name: '$$1', key_regex: '(.*)', from: 'pod' }]
  const metadata = [
    'k8s.namespace.name',
    'k8s.pod.name',
    'k8s.pod.uid',
    'k8s.pod.start_time',
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
    'service.namespace',
    'service.name',
    'service.version',
    'service.instance.id',
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

/** The detectors of the preset `resourceDetection`. */
const detectorNames = ['env', 'k8snode', 'aks', 'eks', 'gcp']

/** In the order in which the chart adds their processors: later ones come first. */
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
  resourceDetection: (preset) => ({
    pipeline: 'logs',
    processors: {
      'resourcedetection/env': {
        detectors: detectorNames.filter((name) => tableOf(preset[name])['enabled'] === true),
      },
    },
  }),
  hostMetrics: () => ({ pipeline: 'metrics', receivers: { hostmetrics: {} } }),
  kubeletMetrics: () => ({ pipeline: 'metrics', receivers: { kubeletstats: {} } }),
  clusterMetrics: () => ({ pipeline: 'metrics', receivers: { k8s_cluster: {} } }),
  profiling: () => ({ pipeline: 'profiles', receivers: { profiling: {} } }),
}

/** Presets that add parts without a counterpart to the logs pipeline, by the path of the value that enables them. */
const refused: readonly (readonly [readonly string[], string, string])[] = [
  [
    ['annotationDiscovery', 'logs'],
    'annotations of pods do not configure the source',
    'Enable the preset `logsCollection` and convert again, to read the logs of all pods; exclude pods by `extra_label_selector` of the source.',
  ],
  [
    ['kubernetesObjects'],
    'there is no source that reads objects other than Events',
    'Use `kubectl get --watch` where you need them. The preset `kubernetesEvents` reads Events.',
  ],
]

/** Options of presets that the conversion takes, or that do not concern what is collected. */
const presetOptions: Readonly<Record<string, readonly string[]>> = {
  logsCollection: ['includeCollectorLogs', 'storeCheckpoints', 'maxRecombineLogSize'],
  kubernetesAttributes: ['extractAllPodLabels', 'extractAllPodAnnotations'],
  kubernetesEvents: [],
  resourceDetection: detectorNames,
}

/** Reports of presets and of their options that the chart of OpenTelemetry does not have. */
function unknownIn(chosen: Table): readonly Report[] {
  return Object.entries(chosen).flatMap(([name, given]): readonly Report[] => {
    const preset = tableOf(given)
    if (preset['enabled'] !== true || refused.some(([[first]]) => first === name)) return []
    if (!Object.hasOwn(presets, name)) {
      const nearest =
        'Convert the ConfigMap that the chart renders: `helm template`, or `kubectl get configmap -o yaml`.'
      return [{ preset: name, reason: 'the preset is unknown', nearest }]
    }
    const known = Object.hasOwn(presetOptions, name) ? presetOptions[name] : undefined
    const others =
      known === undefined ? [] : Object.keys(preset).filter((key) => key !== 'enabled' && !known.includes(key))
    return others.map((key) => ({
      preset: `${name}.${key}`,
      reason: `the option \`${key}\` has no counterpart`,
      nearest: 'Convert the ConfigMap that the chart renders, or leave the option out.',
    }))
  })
}

/** The reports about presets that the values enable. */
function reportsOf(chosen: Table): readonly Report[] {
  const at = (path: readonly string[]) => path.reduce<Table>((table, name) => tableOf(table[name]), chosen)
  const gaps = refused
    .filter(([path]) => at(path)['enabled'] === true)
    .map(([path, reason, nearest]) => ({ preset: path.join('.'), reason, nearest, isAbsent: true as const }))
  const all = [...gaps, ...unknownIn(chosen)]
  if (at(['kubernetesAttributes'])['enabled'] !== true) return all
  const reason =
    'the attributes are those of chart 0.138 and later, without the uids of owners and of the cluster; older charts add fewer, and none of `service.*`'
  const nearest =
    'If your chart is older, or you use uids, compare `processors.k8sattributes` of the rendered ConfigMap.'
  return [...all, { preset: 'kubernetesAttributes', reason, nearest, isReplaced: true }]
}

/** The default pipeline of the chart. */
const byDefault = { receivers: ['otlp'], processors: ['memory_limiter', 'batch'], exporters: ['debug'] }

/** Whether a table has the values of the chart. */
const isOfChart = (values: Table) =>
  isTable(values['presets']) || ['daemonset', 'deployment', 'statefulset'].includes(String(values['mode']))

/**
 * The configuration that the chart generates from its values; undefined for other tables.
 * @param isWhole whether the chart does not merge the configuration with its default one
 */
export function withPresets(values: Table, own: Table, isWhole: boolean): Made | undefined {
  if (!isOfChart(values)) return undefined
  const chosen = tableOf(values['presets'])
  const added = Object.entries(presets).flatMap(([name, make]) => {
    const preset = tableOf(chosen[name])
    return preset['enabled'] === true ? [make(preset)] : []
  })
  const base = isWhole ? { receivers: [], processors: [], exporters: [] } : byDefault
  const receivers: Record<string, unknown> = { ...tableOf(own['receivers']) }
  const processors: Record<string, unknown> = { ...tableOf(own['processors']) }
  const exporters: Record<string, unknown> = { ...tableOf(own['exporters']) }
  const service = tableOf(own['service'])
  const pipelines: Record<string, Table | null> = { ...(tableOf(service['pipelines']) as Record<string, Table | null>) }
  // Values merge with the defaults, in which null removes a pipeline.
  if (!isWhole && pipelines['logs'] !== null) pipelines['logs'] = { ...byDefault, ...pipelines['logs'] }
  for (const { pipeline, ...parts } of added) {
    const given = tableOf(pipelines[pipeline])
    const start = {
      receivers: listOf(given['receivers'] ?? base.receivers),
      processors: listOf(given['processors'] ?? base.processors),
      exporters: listOf(given['exporters'] ?? base.exporters),
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
  const config = {
    ...own,
    extensions: { health_check: {}, ...tableOf(own['extensions']) },
    receivers,
    processors,
    exporters,
    service: { ...service, pipelines },
  }
  return { config, reports: reportsOf(chosen) }
}
