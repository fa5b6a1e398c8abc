// Values of the chart k8s-monitoring: generates the Alloy configuration for pod logs, as far as all versions of the chart agree on it.

import { missingPart } from '../absence.ts'
import type { Gap } from '../draft.ts'
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
const rule = (from: string, to: string) =>
  `  rule {\n    source_labels = [${quote(`__meta_kubernetes_${from}`)}]\n    target_label = ${quote(to)}\n  }`

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
  const destinations = destinationsOf(tree)
  const namespaces = textsOf(below(pods, 'namespaces'))
  const excluded = textsOf(below(pods, 'excludeNamespaces'))
  const kept = textsOf(below(pods, 'labelsToKeep'))
  return [
    'discovery.kubernetes "pods" {',
    '  role = "pod"',
    ...(namespaces.length > 0 ? [`  namespaces {\n    names = [${namespaces.map(quote).join(', ')}]\n  }`] : []),
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
    '  rule {\n    source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]\n    separator = "/"\n    replacement = "/var/log/pods/*$1/*.log"\n    target_label = "__path__"\n  }',
    textOf(below(pods, 'extraDiscoveryRules')) ?? textOf(below(pods, 'extraRelabelingRules')) ?? '',
    '}',
    'loki.source.file "pods" {\n  targets = discovery.relabel.pods.output\n  forward_to = [loki.process.pods.receiver]\n}',
    'loki.process "pods" {',
    '  stage.cri {}',
    textOf(below(pods, 'extraLogProcessingStages')) ?? textOf(below(pods, 'extraStageBlocks')) ?? '',
    ...(kept.length > 0
      ? [`  stage.label_keep {\n    values = [${kept.map(quote).join(', ')}]\n  }`]
      : ['  stage.label_drop {\n    values = ["filename", "stream"]\n  }']),
    `  forward_to = [${destinations.map(({ id }) => `loki.write.${id}.receiver`).join(', ')}]`,
    '}',
    ...destinations.map(({ text }) => text),
  ].join('\n')
}

interface Destination {
  readonly id: string
  readonly text: string
}

/** Destinations of the type `loki`. Old versions have one, with separate host and path. */
function destinationsOf(tree: Tree): readonly Destination[] {
  const cluster = textOf(below(tree, 'cluster', 'name')) ?? ''
  const all = below(tree, 'destinations')
  const named = isMap(all)
    ? [...all.value].map(([name, each]) => [name, each] as const)
    : itemsOf(all).map((each) => [textOf(below(each, 'name')) ?? 'loki', each] as const)
  const found = named
    .filter(([, each]) => textOf(below(each, 'type')) === 'loki')
    .map(([name, each]) => destination(name, each, cluster))
  const old = below(tree, 'externalServices', 'loki')
  return old === undefined ? found : [...found, destination('loki', old, cluster)]
}

function destination(name: string, tree: Tree, cluster: string): Destination {
  const id = name.replace(/\W+/g, '_')
  const host = textOf(below(tree, 'host')) ?? textOf(below(tree, 'host', 'value'))
  const url =
    textOf(below(tree, 'url')) ??
    `${host ?? 'http://loki:3100'}${textOf(below(tree, 'writeEndpoint')) ?? '/loki/api/v1/push'}`
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
    '  }',
    `  external_labels = { ${labels.map(([label = '', value = '']) => `${quote(label)} = ${quote(value)}`).join(', ')} }`,
    '}',
  ]
  return { id, text: text.join('\n') }
}
