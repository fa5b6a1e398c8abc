// The configuration that the Helm chart `splunk-otel-collector` generates from its values for the collectors on nodes.

import { isTable, listOf, tableOf } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Path } from './mapping.ts'
import { byUid } from './presets.ts'

/** Whether a table has the values of the chart. */
export const isOfSplunkChart = (values: Table) =>
  isTable(values['splunkPlatform']) || isTable(values['splunkObservability'])

/** The setting that a part of the configuration comes from. */
export function settingOf([kind, id]: Path): Path {
  if (kind === 'receivers') return ['logsCollection']
  return kind === 'exporters' || id === 'resource/logs' ? ['splunkPlatform'] : ['extraAttributes']
}

const isOn = (table: Table, name: string, byDefault: boolean) => (table[name] ?? byDefault) === true
const attribute = (key: string, more: Table): Table => ({ key, ...more })
const renamed = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([key, from]) => attribute(key, { from_attribute: from, action: 'upsert' }))
const deleted = (keys: readonly string[]) => keys.map((key) => attribute(key, { action: 'delete' }))

/** Names of fields in the older agent for Kubernetes, and the attributes with their values. */
const olderNames = {
  container_name: 'k8s.container.name',
  container_id: 'container.id',
  pod: 'k8s.pod.name',
  pod_uid: 'k8s.pod.uid',
  namespace: 'k8s.namespace.name',
  label_app: 'k8s.pod.labels.app',
} as const

const imageOf =
  'set(resource.attributes["container_image"], Concat([resource.attributes["container.image.name"], resource.attributes["container.image.tag"]], ":"))'

/** Lines that follow one another in these containers form one event. */
function joining(configs: readonly Table[]): readonly Table[] {
  if (configs.length === 0) return []
  const test = (name: string, given: unknown): readonly string[] => {
    const { value, useRegexp: isRegex } = tableOf(given)
    if (value === undefined) return []
    const at = `resource["k8s.${name}"]`
    return [`(${at}) ${isRegex === true ? 'matches' : '=='} ${JSON.stringify(String(value))}`]
  }
  const routes = configs.map(({ namespaceName, podName, containerName }, index) => ({
    output: `lines-${index + 1}`,
    expr: [
      ...test('namespace.name', namespaceName),
      ...test('pod.name', podName),
      ...test('container.name', containerName),
    ].join(' && '),
  }))
  const recombine = configs.map(({ firstEntryRegex: first, combineWith: between }, index) => ({
    type: 'recombine',
    id: `lines-${index + 1}`,
    output: 'line-to-body',
    source_identifier: 'resource["com.splunk.source"]',
    combine_field: 'attributes.log',
    is_first_entry: `(attributes.log) matches ${JSON.stringify(String(first))}`,
    ...(between === undefined ? {} : { combine_with: between }),
  }))
  return [{ type: 'router', routes, default: 'line-to-body' }, ...recombine]
}

/** The operators for lines of containers. Those of users expect the line in an attribute. */
const operatorsOf = (containers: Table): readonly Table[] => [
  { type: 'container' },
  {
    type: 'add',
    field: 'resource["com.splunk.sourcetype"]',
    value: 'EXPR("kube:container:"+resource["k8s.container.name"])',
  },
  { type: 'move', from: 'attributes["log.file.path"]', to: 'resource["com.splunk.source"]' },
  { type: 'move', from: 'body', to: 'attributes.log' },
  ...listOf(containers['extraOperators']).filter(isTable),
  ...joining(listOf(containers['multilineConfigs']).filter(isTable)),
  { type: 'move', id: 'line-to-body', from: 'attributes.log', to: 'body' },
]

function receiversOf(values: Table): { readonly pods: Record<string, Table>; readonly host: Record<string, Table> } {
  const collection = tableOf(values['logsCollection'])
  const [containers, journald] = [tableOf(collection['containers']), tableOf(collection['journald'])]
  const filelog = {
    include: ['/var/log/pods/*/*/*.log'],
    exclude: listOf(containers['excludePaths']),
    start_at: 'beginning',
    include_file_path: true,
    include_file_name: false,
    operators: operatorsOf(containers),
  }
  const units = isOn(journald, 'enabled', false) ? listOf(journald['units']).filter(isTable) : []
  return {
    pods: isOn(containers, 'enabled', true) ? { filelog } : {},
    host: {
      ...(tableOf(collection['extraFileLogs']) as Record<string, Table>),
      ...Object.fromEntries(units.map(({ name, priority }) => [`journald/${name}`, { units: [name], priority }])),
    },
  }
}

function processorsOf(values: Table): Record<string, Table> {
  const platform = tableOf(values['splunkPlatform'])
  const { renameFieldsSck: isRenamed, keepOtelConvention: keepsNames = true } = tableOf(platform['fieldNameConvention'])
  const containers = tableOf(tableOf(values['logsCollection'])['containers'])
  const isInclusive = isOn(containers, 'useSplunkIncludeAnnotation', false)
  const mark = isInclusive ? 'splunk.com/include' : 'splunk.com/exclude'
  const more = tableOf(values['extraAttributes'])
  const fromBoth = (key: string, tag: string) => ['namespace', 'pod'].map((from) => ({ key, tag_name: tag, from }))
  const sourcetype = platform['sourcetype']
  const { clusterName, environment } = values
  return {
    memory_limiter: {},
    batch: {},
    k8sattributes: {
      pod_association: byUid,
      extract: {
        metadata: [
          ...['k8s.namespace.name', 'k8s.node.name', 'k8s.pod.name', 'k8s.pod.uid'],
          ...['container.id', 'container.image.name', 'container.image.tag'],
        ],
        annotations: [
          { key: 'splunk.com/sourcetype', from: 'pod' },
          ...fromBoth(mark, mark),
          ...fromBoth('splunk.com/index', 'com.splunk.index'),
          ...listOf(more['fromAnnotations']),
        ],
        labels: listOf(more['fromLabels']),
      },
    },
    'filter/logs': {
      logs: {
        [isInclusive ? 'include' : 'exclude']: {
          match_type: 'strict',
          resource_attributes: [{ key: mark, value: 'true' }],
        },
      },
    },
    resourcedetection: { detectors: ['env', 'system'] },
    resource: {
      attributes: [
        ...(clusterName ? [attribute('k8s.cluster.name', { value: clusterName, action: 'upsert' })] : []),
        ...listOf(more['custom'])
          .filter(isTable)
          .map(({ name, value }) => attribute(String(name), { value, action: 'insert' })),
        ...(isRenamed === true ? renamed({ cluster_name: 'k8s.cluster.name' }) : []),
        ...(isRenamed === true && keepsNames === false ? deleted(['k8s.cluster.name']) : []),
      ],
    },
    'resource/logs': {
      attributes: [
        ...(sourcetype ? [attribute('com.splunk.sourcetype', { value: sourcetype, action: 'upsert' })] : []),
        ...renamed({ 'com.splunk.sourcetype': 'k8s.pod.annotations.splunk.com/sourcetype' }),
        ...deleted(['k8s.pod.annotations.splunk.com/sourcetype', mark]),
        ...(isRenamed === true ? renamed(olderNames) : []),
        ...(isRenamed === true && keepsNames === false ? deleted(Object.values(olderNames)) : []),
      ],
    },
    ...(isRenamed === true
      ? { 'transform/logs': { log_statements: [{ context: 'log', statements: [imageOf] }] } }
      : {}),
    ...(environment
      ? {
          'resource/add_environment': {
            attributes: [attribute('deployment.environment', { value: environment, action: 'insert' })],
          },
        }
      : {}),
  }
}

function exporterOf(platform: Table): Table {
  const { endpoint, index = 'main', source = 'kubernetes', timeout = '10s' } = platform
  const queue = tableOf(platform['sendingQueue'])
  const isOnDisk = isOn(tableOf(queue['persistentQueue']), 'enabled', false)
  return {
    endpoint,
    // The chart puts the token of the values into a Secret, and its key into this variable.
    token: '$'.concat('{env:SPLUNK_PLATFORM_HEC_TOKEN}'),
    index,
    source,
    timeout,
    disable_compression: isOn(platform, 'disableCompression', true),
    ...(isOn(platform, 'insecureSkipVerify', false) ? { tls: { insecure_skip_verify: true } } : {}),
    ...(isOnDisk ? { sending_queue: { storage: 'file_storage/persistent_queue' } } : {}),
  }
}

/** The configuration without the changes in `agent.config`. */
export function splunkChartConfig(values: Table): Table {
  const [platform, other] = [tableOf(values['splunkPlatform']), tableOf(values['splunkObservability'])]
  const hasLogs = Boolean(platform['endpoint']) && isOn(platform, 'logsEnabled', true)
  const hasService = Boolean(other['realm'])
  const { pods, host } = receiversOf(values)
  const processors = processorsOf(values)
  const ifMade = (id: string) => (Object.hasOwn(processors, id) ? [id] : [])
  const environment = ifMade('resource/add_environment')
  const exporters = ['splunk_hec/platform_logs']
  const pipelines: Record<string, Table> = {}
  if (hasLogs) {
    pipelines['logs'] = {
      receivers: [...Object.keys(pods), 'otlp'],
      processors: [
        ...['memory_limiter', 'k8sattributes', 'filter/logs', 'batch', 'resourcedetection', 'resource'],
        ...ifMade('transform/logs'),
        ...['resource/logs', ...environment],
      ],
      exporters,
    }
    if (Object.keys(host).length > 0) {
      const shared = ['memory_limiter', 'batch', 'resource', ...environment]
      pipelines['logs/host'] = { receivers: Object.keys(host), processors: shared, exporters }
    }
  }
  const hasMetrics = isOn(platform, 'metricsEnabled', false) || (hasService && isOn(other, 'metricsEnabled', true))
  if (hasMetrics) pipelines['metrics'] = { receivers: ['hostmetrics', 'kubeletstats'] }
  const hasTraces = isOn(platform, 'tracesEnabled', false) || (hasService && isOn(other, 'tracesEnabled', true))
  if (hasTraces) pipelines['traces'] = { receivers: ['otlp', 'jaeger', 'zipkin'] }
  return {
    receivers: { otlp: {}, ...pods, ...host },
    processors,
    exporters: hasLogs ? { 'splunk_hec/platform_logs': exporterOf(platform) } : {},
    service: { pipelines },
  }
}
