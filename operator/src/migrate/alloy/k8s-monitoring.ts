// Values of the chart k8s-monitoring: generates the Alloy configuration for the logs of pods and for events, as the newest release of the
// first, of the second and third, or of the fourth version of the chart does.

import { missingPart } from '../absence.ts'
import { rendered } from '../chart-templates.ts'
import type { Gap } from '../draft.ts'
import { Report } from '../loki/context.ts'
import { below, flagOf, isMap, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { type Destination, destinationsOf, members, quote, textPairs } from './k8s-destinations.ts'

/** Whether values are those of this chart. */
export function isMonitoring(tree: Tree): boolean {
  if (below(tree, 'cluster', 'name') === undefined) return false
  return below(tree, 'externalServices') !== undefined || below(tree, 'destinations') !== undefined
}

const metrics = 'Keep Alloy or a Prometheus server for metrics.'
/** Features without a counterpart in a Pipeline. */
const features: Readonly<Record<string, string>> = {
  nodeLogs: 'Keep Alloy for the journal.',
  clusterMetrics: metrics,
  hostMetrics: metrics,
  costMetrics: metrics,
  annotationAutodiscovery: metrics,
  prometheusOperatorObjects: metrics,
  applicationObservability: 'Keep Alloy for traces.',
  autoInstrumentation: 'Keep Alloy for traces.',
  profiling: 'Keep Alloy for profiles.',
  profilesReceiver: 'Keep Alloy for profiles.',
  kubernetesManifests: 'Keep Alloy for them.',
  databaseObservability: 'Keep Alloy for them.',
  integrations: 'Keep Alloy for them.',
  metrics,
  traces: 'Keep Alloy for traces.',
}

/** Features that a Pipeline can have, but that the conversion of these values does not generate. */
const unread: Readonly<Record<string, string>> = {
  podLogsViaOpenTelemetry: 'Convert the ConfigMap of the collector with this feature.',
  podLogsObjects: 'Convert the ConfigMap of the collector with this feature, together with the PodLogs.',
}

const account = 'the source reads the files of pods on its node'
const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, '']))
/** Options of pod logs. */
const podLogsOptions = {
  options: named([
    ...['enabled', 'destinations', 'namespaces', 'excludeNamespaces', 'labels', 'annotations', 'staticLabels'],
    ...['labelsToKeep', 'structuredMetadata', 'labelSelectors', 'extraDiscoveryRules', 'extraRelabelingRules'],
    ...['extraLogProcessingStages', 'extraStageBlocks', 'volumeGatherSettings', 'onlyGatherNewLogLines'],
    ...['annotation', 'discovery', 'discoveryMethod', 'annotationSelector', 'nodeLabels'],
    'staticLabelsFrom',
  ]),
  itself: {
    collector: account,
    enableClustering: account,
    cri: 'the source joins partial lines',
    defaultLogFormat: 'the source knows the format of each file',
    gatherMethod: {
      how: '`volumes` and `kubernetesApi`',
      unless: /^(?!(?:volumes|kubernetesApi|api)$)/,
      reason: 'the labels and stages are those of the method `volumes`, because other methods are not read',
      nearest: 'Convert the ConfigMap of `alloy-logs` instead.',
    },
    secretFilter: {
      how: 'nothing',
      unless: /^true$/i,
      reason: 'no function has a catalogue of secret formats',
      nearest: 'Mask them by pattern in a remap transform, as examples/mask-secrets does.',
      isAbsent: true as const,
    },
  },
}
const eventOptions = {
  options: named([
    ...['enabled', 'destinations', 'namespaces', 'excludeNamespaces', 'logFormat', 'labelsToKeep', 'labels'],
    ...['structuredMetadata', 'extraLogProcessingStages', 'extraStageBlocks', 'jobLabel'],
    ...['includeReasons', 'excludeReasons', 'includeLevels', 'excludeLevels'],
  ]),
  itself: { collector: account, clustering: account },
}

type Pairs = readonly (readonly [string, string])[]
type Version = 'first' | 'second' | 'fourth'

const metaName = (key: string) => key.replace(/[^a-zA-Z0-9_]/g, '_')
const meta = (name: string) => `__meta_kubernetes_${name}`
/** A rule that copies labels. */
const rule = (from: readonly string[], to: string, more: Readonly<Record<string, string>> = {}) =>
  [
    '  rule {',
    `    source_labels = [${from.map(quote).join(', ')}]`,
    `    target_label = ${quote(to)}`,
    ...Object.entries(more).map(([name, text]) => `    ${name} = ${quote(text)}`),
    '  }',
  ].join('\n')
const labelmap = (regex: string) => `  rule {\n    action = "labelmap"\n    regex = ${quote(regex)}\n  }`
const filter = (action: string, from: string, regex: string) =>
  `  rule {\n    source_labels = [${quote(from)}]\n    regex = ${quote(regex)}\n    action = ${quote(action)}\n  }`

const stage = (name: string, pairs: Pairs) =>
  pairs.length === 0 ? [] : [`  stage.${name} {\n    values = { ${members(pairs)} }\n  }`]
const listed = (name: string, values: readonly string[]) =>
  values.length === 0 ? [] : [`  stage.${name} {\n    values = [${values.map(quote).join(', ')}]\n  }`]

/** A map of the values merged with the chart's defaults, as Helm does: null removes a default. */
function merged(defaults: Pairs, tree: Tree | undefined): Pairs {
  const all = new Map(defaults)
  for (const [name, item] of isMap(tree) ? tree.value : []) {
    if (item.value === null && all.has(name)) all.delete(name)
    else all.set(name, textOf(item) ?? '')
  }
  return [...all]
}

/** A name without a value means the value of the same name. */
const metadataPairs = (pairs: Pairs): Pairs =>
  pairs.map(([name, value]) => [metaName(name), metaName(value === '' ? name : value)])

/** Labels of pods that the values select, as a selector. */
function selectorOf(tree: Tree | undefined): readonly string[] {
  const terms = (isMap(tree) ? [...tree.value] : []).map(([key, value]) => `${key} in (${textsOf(value).join(',')})`)
  return terms.length === 0 ? [] : [`  selectors {\n    role = "pod"\n    label = ${quote(terms.join(','))}\n  }`]
}

/** The Alloy configuration for pod logs and events. */
export function monitoringText(tree: Tree, gaps: Gap[]): string {
  const report = new Report(gaps)
  reportFeatures(tree, gaps)
  const destinations = destinationsOf(tree, report)
  const logs = below(tree, 'logs')
  const isFirst = below(tree, 'externalServices') !== undefined
  const pods = below(tree, 'podLogs') ?? below(tree, 'podLogsViaLoki') ?? below(logs, 'pod_logs')
  const byApi = below(tree, 'podLogsViaKubernetesApi')
  // Only the fourth version names destinations by keys.
  const isFourth =
    (below(tree, 'podLogsViaLoki') ?? byApi) !== undefined ||
    (below(tree, 'podLogs') === undefined && isMap(below(tree, 'destinations')))
  const version: Version = isFirst ? 'first' : isFourth ? 'fourth' : 'second'
  // The first version enables logs and events by default, newer ones do not.
  const isOn = (feature: Tree | undefined) =>
    isFirst
      ? flagOf(below(logs, 'enabled')) !== false && flagOf(below(feature, 'enabled')) !== false
      : feature !== undefined && flagOf(below(feature, 'enabled')) !== false
  const events = below(tree, 'clusterEvents') ?? below(logs, 'cluster_events')
  const parts: string[] = []
  const ways = [
    { id: 'pods', name: 'podLogs', feature: pods, isIn: isOn(pods) },
    {
      id: 'pods_by_api',
      name: 'podLogsViaKubernetesApi',
      feature: byApi,
      isIn: flagOf(below(byApi, 'enabled')) === true,
    },
  ]
  for (const { id, name, feature } of ways.filter(({ isIn }) => isIn)) {
    if (feature !== undefined) report.options({ ...feature, name, tree: feature }, podLogsOptions)
    const number = { first: '1', second: '3', fourth: '4' }[version]
    report.replaced(
      feature ?? tree,
      name,
      `the labels are those of version ${number} of the chart; some earlier releases set others`,
      'Compare them with the ConfigMap of `alloy-logs`, or convert that instead.',
    )
    parts.push(...podsText(id, feature, version, chosen(destinations, feature)))
  }
  if (isOn(events)) {
    if (events !== undefined) report.options({ ...events, name: 'clusterEvents', tree: events }, eventOptions)
    parts.push(...eventsText(events, version, chosen(destinations, events)))
  }
  if (parts.length === 0) {
    report.gap(tree, 'podLogs', 'the values enable neither pod logs nor events', 'Enable them, and convert again.')
  }
  return [...parts, ...destinations.map(({ text }) => text)].join('\n')
}

function reportFeatures(tree: Tree, gaps: Gap[]): void {
  const all = [
    ...Object.entries(features).map(([name, nearest]) => [name, nearest, below(tree, name)] as const),
    ['logs.journal', 'Keep Alloy for the journal.', below(tree, 'logs', 'journal')] as const,
  ]
  for (const [name, nearest, feature] of all) {
    // Old versions enable features by default, new versions do not.
    if (feature === undefined || flagOf(below(feature, 'enabled')) !== true) continue
    gaps.push(missingPart(feature, name, { reason: 'the feature has no counterpart', nearest }, 'feature'))
  }
  for (const [name, nearest] of Object.entries(unread)) {
    const feature = below(tree, name)
    if (feature === undefined || flagOf(below(feature, 'enabled')) !== true) continue
    gaps.push(missingPart(feature, name, { reason: 'the feature is not read', nearest, isHere: true }, 'feature'))
  }
}

/** The receivers of a feature: the destinations that it names, or all. */
function chosen(destinations: readonly Destination[], feature: Tree | undefined): string {
  const names = textsOf(below(feature, 'destinations'))
  return destinations
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map(({ receiver }) => receiver)
    .join(', ')
}

const first = '^(?:;*)?([^;]+).*$'
const ofResource = meta('pod_annotation_resource_opentelemetry_io_')

/** Rules of the second and the fourth version only. */
function resourceRules(version: Version): readonly string[] {
  if (version === 'first') return []
  const name = rule(
    [`${ofResource}service_name`, meta('pod_label_app_kubernetes_io_name'), meta('pod_container_name')],
    'service_name',
    {
      regex: first,
    },
  )
  if (version === 'second') {
    return [
      labelmap('__meta_kubernetes_pod_label_(.+)'),
      labelmap('__meta_kubernetes_pod_annotation_(.+)'),
      name,
      labelmap(`${ofResource}(.+)`),
    ]
  }
  return [
    name,
    rule([`${ofResource}service_namespace`, 'namespace'], 'service_namespace', { regex: first }),
    rule([`${ofResource}service_instance_id`], 'service_instance_id'),
    rule(['service_instance_id', 'namespace', 'pod', 'container'], 'service_instance_id', {
      separator: '.',
      regex: '^\\.([^.]+\\.[^.]+\\.[^.]+)$',
    }),
    labelmap(`${ofResource}(.+)`),
  ]
}

/** The annotation with which pods choose in the first and the fourth version: options with its name and its effect, and its default. */
const choosing = {
  first: ['annotation', 'discovery', 'k8s.grafana.com/logs.autogather'],
  fourth: ['annotationSelector', 'discoveryMethod', 'logs.grafana.com/pods.enabled'],
} as const

function annotationRules(pods: Tree | undefined, version: Version): readonly string[] {
  if (version === 'second') return []
  const [option, method, byDefault] = choosing[version]
  const name = meta(`pod_annotation_${metaName(textOf(below(pods, option)) ?? byDefault)}`)
  return [
    filter('drop', name, '(false|no|skip)'),
    ...(textOf(below(pods, method)) === 'annotation' ? [filter('keep', name, '.+')] : []),
  ]
}

/** Labels of nodes by the options of the fourth version, and their names in the clusters of different providers. */
const ofNodes: Readonly<Record<string, readonly [string, readonly string[]]>> = {
  nodePool: [
    'nodepool',
    [
      ...['karpenter.sh/nodepool', 'cloud.google.com/gke-nodepool', 'eks.amazonaws.com/nodegroup'],
      ...['kubernetes.azure.com/agentpool', 'agentpool'],
    ],
  ],
  region: ['region', ['topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/region']],
  availabilityZone: [
    'availability_zone',
    ['topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone', 'topology.gke.io/zone'],
  ],
  nodeRole: ['node_role', ['kubernetes.io/role', 'node.kubernetes.io/role', 'node-role', 'role']],
  nodeOS: ['os', ['kubernetes.io/os', 'os.kubernetes.io', 'os']],
  nodeArchitecture: ['architecture', ['kubernetes.io/arch', 'beta.kubernetes.io/arch']],
  instanceType: ['instance_type', ['node.kubernetes.io/instance-type', 'beta.kubernetes.io/instance-type']],
}

const nodeRules = (pods: Tree | undefined): readonly string[] =>
  Object.entries(ofNodes).flatMap(([option, [label, keys]]) =>
    flagOf(below(pods, 'nodeLabels', option)) === true
      ? [
          rule(
            keys.map((key) => meta(`node_label_${metaName(key)}`)),
            label,
            { regex: first },
          ),
        ]
      : [],
  )

const runtimeStages = (cri: string) => `  stage.match {
    selector = "{tmp_container_runtime=~\\"${cri}\\"}"
    stage.cri {}
    stage.labels {
      values = { flags = "", stream = "" }
    }
  }
  stage.match {
    selector = "{tmp_container_runtime=\\"docker\\"}"
    stage.docker {}
    stage.labels {
      values = { stream = "" }
    }
  }`

/** @param id the label of its components */
function podsText(id: string, pods: Tree | undefined, version: Version, receivers: string): readonly string[] {
  const namespaces = textsOf(below(pods, 'namespaces'))
  const excluded = textsOf(below(pods, 'excludeNamespaces'))
  const isApi = id !== 'pods' || ['api', 'kubernetesApi'].includes(textOf(below(pods, 'gatherMethod')) ?? '')
  const labels = merged([['app_kubernetes_io_name', 'app.kubernetes.io/name']], below(pods, 'labels'))
  const annotations = merged([['job', 'k8s.grafana.com/logs.job']], below(pods, 'annotations'))
  const copied = (kind: string, pairs: Pairs) =>
    pairs.map(([to, from]) => rule([meta(`pod_${kind}_${metaName(from)}`)], to, { regex: '(.+)' }))
  const path = rule([meta('pod_uid'), meta('pod_container_name')], '__path__', {
    separator: '/',
    replacement: '/var/log/pods/*$1/*.log',
  })
  const targets = `targets = discovery.relabel.${id}.output\n  forward_to = [loki.process.${id}.receiver]`
  const isNew =
    flagOf(below(pods, 'volumeGatherSettings', 'onlyGatherNewLogLines')) ??
    flagOf(below(pods, 'onlyGatherNewLogLines')) ??
    version === 'fourth'
  const source = isApi
    ? `loki.source.kubernetes "${id}" {\n  ${targets}\n}`
    : `loki.source.file "${id}" {\n  tail_from_end = ${isNew}\n  ${targets}\n}`
  return [
    `discovery.kubernetes "${id}" {`,
    '  role = "pod"',
    ...(namespaces.length > 0 ? [`  namespaces {\n    names = [${namespaces.map(quote).join(', ')}]\n  }`] : []),
    ...selectorOf(below(pods, 'labelSelectors')),
    ...(nodeRules(pods).length > 0 ? ['  attach_metadata {\n    node = true\n  }'] : []),
    '}',
    `discovery.relabel "${id}" {`,
    `  targets = discovery.kubernetes.${id}.targets`,
    ...(excluded.length > 0 ? [filter('drop', meta('namespace'), excluded.join('|'))] : []),
    rule([meta('namespace')], 'namespace'),
    rule([meta('pod_name')], 'pod'),
    rule([meta('pod_container_name')], 'container'),
    rule([meta('namespace'), meta('pod_container_name')], 'job', { separator: '/' }),
    rule([meta('pod_container_id')], 'tmp_container_runtime', { regex: '^(\\S+):\\/\\/.+$' }),
    ...resourceRules(version),
    ...(version === 'first'
      ? [...copied('label', labels), ...copied('annotation', annotations)]
      : [...copied('annotation', annotations), ...copied('label', labels)]),
    ...(isApi ? [] : [path]),
    ...nodeRules(pods),
    textOf(below(pods, 'extraDiscoveryRules')) ?? textOf(below(pods, 'extraRelabelingRules')) ?? '',
    ...annotationRules(pods, version),
    '}',
    source,
    `loki.process "${id}" {`,
    runtimeStages(version === 'fourth' ? 'containerd|cri-o|' : 'containerd|cri-o'),
    ...podStages(pods, version),
    `  forward_to = [${receivers}]`,
    '}',
  ]
}

const keptLabels = [
  ...['app_kubernetes_io_name', 'container', 'job', 'level', 'namespace', 'service_name', 'service_namespace'],
  ...['deployment_environment', 'deployment_environment_name'],
  ...['namespace', 'deployment', 'statefulset', 'daemonset', 'cronjob', 'job', 'node'].map(
    (name) => `k8s_${name}_name`,
  ),
]

/** The stages of the user, which the chart renders as a template. */
const stagesIn = (feature: Tree | undefined): string =>
  rendered(textOf(below(feature, 'extraLogProcessingStages')) ?? textOf(below(feature, 'extraStageBlocks')) ?? '')

/** The stages after those of the runtime. */
function podStages(pods: Tree | undefined, version: Version): readonly string[] {
  const given = below(pods, 'structuredMetadata')
  const dropped = ['filename', 'tmp_container_runtime']
  const more = stagesIn(pods)
  const raw = textPairs(below(pods, 'staticLabelsFrom')).map(([name, value]) => `${quote(name)} = ${value}`)
  const fixed = [
    ...stage('static_labels', textPairs(below(pods, 'staticLabels'))),
    ...(raw.length === 0 ? [] : [`  stage.static_labels {\n    values = { ${raw.join(', ')} }\n  }`]),
  ]
  if (version === 'first') {
    const pairs = metadataPairs(merged([], given))
    return [
      ...stage('structured_metadata', pairs),
      ...listed('label_drop', [...dropped, ...pairs.map(([, name]) => name)]),
      ...fixed,
      more,
    ]
  }
  const defaults: Pairs = [
    ['k8s.pod.name', 'k8s.pod.name'],
    ['pod', 'pod'],
    ...(version === 'fourth' ? [['service.instance.id', 'service.instance.id'] as const] : []),
  ]
  const pairs = metadataPairs(merged(defaults, given))
  const isInstance = pairs.some(([name]) => name === 'service_instance_id')
  const kept = below(pods, 'labelsToKeep')
  return [
    ...listed('label_drop', dropped),
    ...stage('structured_metadata', pairs),
    ...(version === 'fourth' && isInstance ? listed('label_drop', ['service_instance_id']) : []),
    ...fixed,
    more,
    ...(version === 'second'
      ? listed('label_keep', kept === undefined ? keptLabels : textsOf(kept).map(metaName))
      : []),
  ]
}

function eventsText(events: Tree | undefined, version: Version, receivers: string): readonly string[] {
  const format = textOf(below(events, 'logFormat')) ?? 'logfmt'
  const namespaces = textsOf(below(events, 'namespaces'))
  const job = textOf(below(events, 'jobLabel')) ?? 'integrations/kubernetes/eventhandler'
  return [
    'loki.source.kubernetes_events "cluster_events" {',
    `  job_name = ${quote(job)}`,
    `  log_format = ${quote(format)}`,
    ...(namespaces.length > 0 ? [`  namespaces = [${namespaces.map(quote).join(', ')}]`] : []),
    '  forward_to = [loki.process.cluster_events.receiver]',
    '}',
    'loki.process "cluster_events" {',
    ...(version === 'first' ? [stagesIn(events)] : eventStages(events, version, format)),
    `  forward_to = [${receivers}]`,
    '}',
  ]
}

/** Stages that drop events by their reason or level. */
function eventFilters(events: Tree | undefined): readonly string[] {
  return ['reason', 'level'].flatMap((name) => {
    const option = `${name[0]?.toUpperCase()}${name.slice(1)}s`
    const [included, excluded] = [`include${option}`, `exclude${option}`].map((key) => textsOf(below(events, key)))
    const label = `tmp_${name}`
    const selector = `{${label}!~${quote(included?.join('|') ?? '')}}`
    return [
      ...(included === undefined || included.length === 0
        ? []
        : [
            `  stage.labels {\n    values = { ${label} = ${quote(name)} }\n  }`,
            `  stage.match {\n    selector = ${quote(selector)}\n    action = "drop"\n  }`,
            `  stage.label_drop {\n    values = [${quote(label)}]\n  }`,
          ]),
      ...(excluded === undefined || excluded.length === 0
        ? []
        : [`  stage.drop {\n    source = ${quote(name)}\n    expression = ${quote(excluded.join('|'))}\n  }`]),
    ]
  })
}

function eventStages(events: Tree | undefined, version: Version, format: string): readonly string[] {
  const isSecond = version === 'second'
  const excluded = textsOf(below(events, 'excludeNamespaces'))
  const values = 'component = "sourcecomponent", kind = "", level = "type", name = "", node = "sourcehost", reason = ""'
  const parsed =
    format === 'json' ? `stage.json {\n    expressions = { ${values} }` : `stage.logfmt {\n    mapping = { ${values} }`
  const names = ['component', 'kind', 'level', 'name', 'node']
  const labels: Pairs = isSecond
    ? names.map((name) => [name, ''])
    : [['kind', ''], ['level', ''], ...merged([['reason', 'reason']], below(events, 'labels'))]
  const metadata = merged(
    isSecond
      ? []
      : [
          ['name', 'name'],
          ['node', 'node'],
        ],
    below(events, 'structuredMetadata'),
  )
  const kept = below(events, 'labelsToKeep')
  const byDefault = ['job', 'level', 'namespace', 'node', 'source']
  return [
    ...(excluded.length > 0
      ? [`  stage.drop {\n    source = "namespace"\n    expression = ${quote(excluded.join('|'))}\n  }`]
      : []),
    '  stage.static_labels {\n    values = { source = "kubernetes-events" }\n  }',
    `  ${parsed}\n  }`,
    ...stage('labels', labels),
    '  stage.match {\n    selector = "{kind=\\"Node\\"}"\n    stage.labels {\n      values = { node = "name" }\n    }\n  }',
    ...eventFilters(events),
    '  stage.match {\n    selector = "{level=\\"Normal\\"}"\n    stage.static_labels {\n      values = { level = "Info" }\n    }\n  }',
    stagesIn(events),
    ...stage('structured_metadata', metadata),
    ...(isSecond
      ? listed('label_keep', kept === undefined ? byDefault : textsOf(kept))
      : [...listed('label_drop', ['kind']), ...stage('labels', [['service_name', 'job']])]),
  ]
}
