// Values of the chart k8s-monitoring: generates the Alloy configuration for pod logs, as far as all versions of the chart agree on it.

import { missingPart } from '../absence.ts'
import type { Gap } from '../draft.ts'
import { Report } from '../loki/context.ts'
import { below, flagOf, isMap, itemsOf, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'

/** Whether values are those of this chart. */
export function isMonitoring(tree: Tree): boolean {
  if (below(tree, 'cluster', 'name') === undefined) return false
  return below(tree, 'externalServices') !== undefined || below(tree, 'destinations') !== undefined
}

/** Features without a counterpart in a Pipeline. */
const features: Readonly<Record<string, string>> = {
  clusterEvents: 'Convert `loki.source.kubernetes_events` with `loki.write` into a separate Pipeline.',
  nodeLogs: 'Keep Alloy for the journal.',
  clusterMetrics: 'Keep Alloy or a Prometheus server for metrics.',
  hostMetrics: 'Keep Alloy or a Prometheus server for metrics.',
  costMetrics: 'Keep Alloy or a Prometheus server for metrics.',
  annotationAutodiscovery: 'Keep Alloy or a Prometheus server for metrics.',
  prometheusOperatorObjects: 'Keep Alloy or a Prometheus server for metrics.',
  applicationObservability: 'Keep Alloy for traces.',
  autoInstrumentation: 'Keep Alloy for traces.',
  profiling: 'Keep Alloy for profiles.',
  integrations: 'Keep Alloy for them.',
  metrics: 'Keep Alloy or a Prometheus server for metrics.',
  traces: 'Keep Alloy for traces.',
}

const quote = (text: string) => JSON.stringify(text)
const rule = (from: string, to: string, regex = '(.*)') =>
  `  rule {\n    source_labels = [${quote(`__meta_kubernetes_${from}`)}]\n    regex = ${quote(regex)}\n    target_label = ${quote(to)}\n  }`

const account = 'the source reads the files of pods on its node'
/** Options of pod logs. */
const podLogsOptions = {
  options: Object.fromEntries(
    [
      ...['enabled', 'destinations', 'namespaces', 'excludeNamespaces', 'labels', 'annotations', 'staticLabels'],
      ...['labelsToKeep', 'structuredMetadata', 'labelSelectors', 'extraDiscoveryRules', 'extraRelabelingRules'],
      ...['extraLogProcessingStages', 'extraStageBlocks', 'volumeGatherSettings', 'onlyGatherNewLogLines'],
    ].map((name) => [name, '']),
  ),
  itself: { gatherMethod: account, collector: account, enableClustering: account },
}

const destinationOptions = {
  options: Object.fromEntries(
    [
      ...['name', 'type', 'url', 'host', 'writeEndpoint', 'tenantId', 'auth', 'basicAuth', 'authMode', 'protocol'],
      ...['extraLabels', 'extraHeaders', 'tls', 'logs', 'secret'],
    ].map((name) => [name, '']),
  ),
  itself: { metrics: 'the Pipeline has only logs', traces: 'the Pipeline has only logs', clusterLabels: account },
}

const tlsOptions = { options: { insecure: '', insecureSkipVerify: '' } }

const members = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([name, value]) => `${quote(name)} = ${quote(value)}`).join(', ')
const stage = (name: string, pairs: readonly (readonly [string, string])[]) =>
  pairs.length === 0 ? [] : [`  stage.${name} {\n    values = { ${members(pairs)} }\n  }`]
const textPairs = (tree: Tree | undefined) => pairsOf(tree).map(([name, value]) => [name, value] as const)
const metaName = (key: string) => key.replace(/[^a-zA-Z0-9_]/g, '_')

/** Labels of pods that the values select, as a selector. */
function selectorOf(tree: Tree | undefined): readonly string[] {
  const terms = (isMap(tree) ? [...tree.value] : []).map(([key, value]) => `${key} in (${textsOf(value).join(',')})`)
  return terms.length === 0 ? [] : [`  selectors {\n    role = "pod"\n    label = ${quote(terms.join(','))}\n  }`]
}

/** The Alloy configuration for pod logs. */
export function monitoringText(tree: Tree, gaps: Gap[]): string {
  for (const [name, nearest] of Object.entries(features)) {
    const feature = below(tree, name)
    if (!isMap(feature) || flagOf(below(feature, 'enabled')) === false) continue
    // Old versions enable features by default, new versions do not.
    if (flagOf(below(feature, 'enabled')) !== true) continue
    const refusal = {
      reason: 'the feature has no counterpart',
      nearest,
      isHere: name === 'clusterEvents',
    }
    gaps.push(missingPart(feature, name, refusal, 'feature'))
  }
  const pods = below(tree, 'podLogs') ?? below(tree, 'podLogsViaLoki') ?? below(tree, 'logs', 'pod_logs')
  if (flagOf(below(pods, 'enabled')) === false || (pods === undefined && below(tree, 'destinations') !== undefined)) {
    gaps.push({
      file: tree.file,
      line: tree.line,
      subject: 'podLogs',
      reason: 'the values do not enable pod logs',
      nearest: 'Enable them, and convert again.',
    })
  }
  gaps.push({
    file: tree.file,
    line: (pods ?? tree).line,
    subject: 'podLogs',
    reason:
      'other versions of the chart set other labels for pods; these are `namespace`, `pod`, `container`, `job`, `app_kubernetes_io_name`, `cluster` and `k8s_cluster_name`',
    nearest: 'Convert the configuration that the chart generated: the ConfigMap of `alloy-logs`.',
  })
  const report = new Report(gaps)
  if (pods !== undefined) report.options({ ...pods, name: 'podLogs', tree: pods }, podLogsOptions)
  const named = textsOf(below(pods, 'destinations'))
  const destinations = destinationsOf(tree, report).filter(({ name }) => named.length === 0 || named.includes(name))
  const isNew =
    flagOf(below(pods, 'volumeGatherSettings', 'onlyGatherNewLogLines')) ?? flagOf(below(pods, 'onlyGatherNewLogLines'))
  const namespaces = textsOf(below(pods, 'namespaces'))
  const excluded = textsOf(below(pods, 'excludeNamespaces'))
  const kept = textsOf(below(pods, 'labelsToKeep'))
  return [
    'discovery.kubernetes "pods" {',
    '  role = "pod"',
    ...(namespaces.length > 0 ? [`  namespaces {\n    names = [${namespaces.map(quote).join(', ')}]\n  }`] : []),
    ...selectorOf(below(pods, 'labelSelectors')),
    '}',
    'discovery.relabel "pods" {',
    '  targets = discovery.kubernetes.pods.targets',
    ...(excluded.length > 0
      ? [
          `  rule {\n    source_labels = ["__meta_kubernetes_namespace"]\n    regex = ${quote(excluded.join('|'))}\n    action = "drop"\n  }`,
        ]
      : []),
    rule('namespace', 'namespace'),
    rule('pod_name', 'pod'),
    rule('pod_container_name', 'container'),
    rule('pod_label_app_kubernetes_io_name', 'app_kubernetes_io_name'),
    '  rule {\n    source_labels = ["__meta_kubernetes_namespace", "__meta_kubernetes_pod_container_name"]\n    separator = "/"\n    target_label = "job"\n  }',
    ...textPairs(below(pods, 'labels')).map(([to, from]) => rule(`pod_label_${metaName(from)}`, to)),
    ...textPairs(below(pods, 'annotations')).map(([to, from]) => rule(`pod_annotation_${metaName(from)}`, to, '(.+)')),
    '  rule {\n    source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]\n    separator = "/"\n    replacement = "/var/log/pods/*$1/*.log"\n    target_label = "__path__"\n  }',
    textOf(below(pods, 'extraDiscoveryRules')) ?? textOf(below(pods, 'extraRelabelingRules')) ?? '',
    '}',
    `loki.source.file "pods" {\n  targets = discovery.relabel.pods.output\n  tail_from_end = ${isNew === true}\n  forward_to = [loki.process.pods.receiver]\n}`,
    'loki.process "pods" {',
    '  stage.cri {}',
    ...stage('static_labels', textPairs(below(pods, 'staticLabels'))),
    textOf(below(pods, 'extraLogProcessingStages')) ?? textOf(below(pods, 'extraStageBlocks')) ?? '',
    ...stage('structured_metadata', textPairs(below(pods, 'structuredMetadata'))),
    ...(kept.length > 0
      ? [`  stage.label_keep {\n    values = [${kept.map(quote).join(', ')}]\n  }`]
      : ['  stage.label_drop {\n    values = ["filename", "stream"]\n  }']),
    `  forward_to = [${destinations.map(({ receiver }) => receiver).join(', ')}]`,
    '}',
    ...destinations.map(({ text }) => text),
  ].join('\n')
}

interface Destination {
  readonly name: string
  /** The component that receives lines. */
  readonly receiver: string
  readonly text: string
}

/** Destinations of the types `loki` and `otlp`. Old versions have one, with separate host and path. */
function destinationsOf(tree: Tree, report: Report): readonly Destination[] {
  const cluster = textOf(below(tree, 'cluster', 'name')) ?? ''
  const all = below(tree, 'destinations')
  const named = isMap(all)
    ? [...all.value].map(([name, each]) => [name, each] as const)
    : itemsOf(all).map((each) => [textOf(below(each, 'name')) ?? 'loki', each] as const)
  const found = named.flatMap(([name, each]) => {
    const type = textOf(below(each, 'type'))
    const isOtlp = type === 'otlp' && flagOf(below(each, 'logs', 'enabled')) !== false
    if (type !== 'loki' && !isOtlp) return []
    report.options({ ...each, name: `destination ${name}`, tree: each }, destinationOptions)
    const tls = below(each, 'tls')
    if (tls !== undefined) report.options({ ...tls, name: `destination ${name}: tls`, tree: tls }, tlsOptions)
    return [isOtlp ? otlpDestination(name, each, cluster) : destination(name, each, cluster)]
  })
  const old = below(tree, 'externalServices', 'loki')
  return old === undefined ? found : [...found, destination('loki', old, cluster)]
}

/** The kind of authentication, and expressions for its values. */
function loginOf(id: string, tree: Tree) {
  const auth = below(tree, 'auth') ?? below(tree, 'basicAuth')
  const type =
    textOf(below(auth, 'type')) ??
    textOf(below(tree, 'authMode')) ??
    (below(tree, 'basicAuth') === undefined ? 'none' : 'basic')
  const secret = (option: string) => {
    const from = textOf(below(auth, `${option}From`))
    const given = textOf(below(auth, option)) ?? textOf(below(auth, option, 'value'))
    return (
      from ?? (given === undefined || given === '' ? `sys.env("${`${id}_${option}`.toUpperCase()}")` : quote(given))
    )
  }
  return { type, secret }
}

const headersOf = (tree: Tree): readonly string[] => {
  const headers = textPairs(below(tree, 'extraHeaders'))
  return headers.length === 0 ? [] : [`    headers = { ${members(headers)} }`]
}

/** Lines as records of the collector, and the exporter with the protocol. */
function otlpDestination(name: string, tree: Tree, cluster: string): Destination {
  const id = name.replace(/\W+/g, '_')
  const kind = textOf(below(tree, 'protocol')) === 'http' ? 'otlphttp' : 'otlp'
  const { type, secret } = loginOf(id, tree)
  const isSkipped = flagOf(below(tree, 'tls', 'insecureSkipVerify')) === true
  const isPlain = flagOf(below(tree, 'tls', 'insecure')) === true
  const headers = textPairs(below(tree, 'extraHeaders'))
  const tenant = textOf(below(tree, 'tenantId')) ?? ''
  const all = [...headers, ...(tenant === '' ? [] : [['X-Scope-OrgID', tenant] as const])]
  const login =
    type === 'basic'
      ? `otelcol.auth.basic ${quote(id)} {\n  username = ${secret('username')}\n  password = ${secret('password')}\n}`
      : type === 'bearerToken'
        ? `otelcol.auth.bearer ${quote(id)} {\n  token = ${secret('bearerToken')}\n}`
        : undefined
  const set = (key: string, value: string) => `      ${quote(`set(attributes["${key}"], ${quote(value)})`)},`
  const attributes = [['cluster', cluster], ['k8s.cluster.name', cluster], ...textPairs(below(tree, 'extraLabels'))]
  const text = [
    `otelcol.receiver.loki ${quote(id)} {\n  output {\n    logs = [otelcol.processor.transform.${id}.input]\n  }\n}`,
    `otelcol.processor.transform ${quote(id)} {`,
    '  error_mode = "ignore"',
    '  log_statements {\n    context = "resource"\n    statements = [',
    ...attributes.map(([key = '', value = '']) => set(key, value)),
    '    ]\n  }',
    `  output {\n    logs = [otelcol.exporter.${kind}.${id}.input]\n  }\n}`,
    ...(login === undefined ? [] : [login]),
    `otelcol.exporter.${kind} ${quote(id)} {`,
    '  client {',
    `    endpoint = ${quote(textOf(below(tree, 'url')) ?? '')}`,
    ...(login === undefined ? [] : [`    auth = otelcol.auth.${type === 'basic' ? 'basic' : 'bearer'}.${id}.handler`]),
    ...(all.length === 0 ? [] : [`    headers = { ${members(all)} }`]),
    ...(isSkipped || isPlain
      ? [`    tls {\n      insecure_skip_verify = ${isSkipped}\n      insecure = ${isPlain}\n    }`]
      : []),
    '  }',
    '}',
  ]
  return { name, receiver: `otelcol.receiver.loki.${id}.receiver`, text: text.join('\n') }
}

function destination(name: string, tree: Tree, cluster: string): Destination {
  const id = name.replace(/\W+/g, '_')
  const host = textOf(below(tree, 'host')) ?? textOf(below(tree, 'host', 'value'))
  const url =
    textOf(below(tree, 'url')) ??
    `${host ?? 'http://loki:3100'}${textOf(below(tree, 'writeEndpoint')) ?? '/loki/api/v1/push'}`
  const { type, secret } = loginOf(id, tree)
  const tenant = textOf(below(tree, 'tenantId')) ?? textOf(below(tree, 'tenantId', 'value'))
  const labels = [
    ['cluster', cluster],
    ['k8s_cluster_name', cluster],
    ...pairsOf(below(tree, 'extraLabels')).map(([label, value]) => [label, value]),
  ]
  const login =
    type === 'basic'
      ? [`    basic_auth {\n      username = ${secret('username')}\n      password = ${secret('password')}\n    }`]
      : type === 'bearerToken'
        ? [`    bearer_token = ${secret('bearerToken')}`]
        : []
  const text = [
    `loki.write ${quote(id)} {`,
    '  endpoint {',
    `    url = ${quote(url)}`,
    ...(tenant === undefined || tenant === '' ? [] : [`    tenant_id = ${quote(tenant)}`]),
    ...login,
    ...headersOf(tree),
    ...(flagOf(below(tree, 'tls', 'insecureSkipVerify')) === true
      ? ['    tls_config {\n      insecure_skip_verify = true\n    }']
      : []),
    '  }',
    `  external_labels = { ${labels.map(([label = '', value = '']) => `${quote(label)} = ${quote(value)}`).join(', ')} }`,
    '}',
  ]
  return { name, receiver: `loki.write.${id}.receiver`, text: text.join('\n') }
}
