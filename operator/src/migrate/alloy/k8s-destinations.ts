// Destinations in values of the chart k8s-monitoring, as components of Alloy.

import type { Report } from '../loki/context.ts'
import { below, flagOf, isMap, itemsOf, pairsOf, type Tree, textOf } from '../loki/tree.ts'

const destinationOptions = {
  options: Object.fromEntries(
    [
      ...['name', 'type', 'url', 'host', 'writeEndpoint', 'tenantId', 'auth', 'basicAuth', 'authMode', 'protocol'],
      ...['extraLabels', 'externalLabels', 'extraHeaders', 'tls', 'logs', 'secret'],
    ].map((name) => [name, '']),
  ),
  itself: {
    metrics: 'the Pipeline has only logs',
    traces: 'the Pipeline has only logs',
    clusterLabels: 'the labels have the name of the cluster',
  },
}

/** Options of destinations of the type `loki` only. */
const lokiOptions = {
  ...destinationOptions,
  options: {
    ...destinationOptions.options,
    ...Object.fromEntries(
      [
        ...['urlFrom', 'proxyURL', 'tenantIdFrom', 'extraHeadersFrom', 'extraLabelsFrom', 'externalLabelsFrom'],
        ...['logProcessingStages', 'minBackoffPeriod', 'maxBackoffPeriod', 'maxBackoffRetries'],
      ].map((name) => [name, '']),
    ),
  },
}

const tlsOptions = { options: { insecure: '', insecureSkipVerify: '' } }
const lokiTlsOptions = { options: { ...tlsOptions.options, caFile: '', certFile: '', keyFile: '' } }

export const quote = (text: string) => JSON.stringify(text)
export const members = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([name, value]) => `${quote(name)} = ${quote(value)}`).join(', ')
export const textPairs = (tree: Tree | undefined) => pairsOf(tree).map(([name, value]) => [name, value] as const)

export interface Destination {
  readonly name: string
  /** The component that receives lines. */
  readonly receiver: string
  readonly text: string
}

/** Destinations of the types `loki` and `otlp`. Old versions have one, with separate host and path. */
export function destinationsOf(tree: Tree, report: Report): readonly Destination[] {
  const cluster = textOf(below(tree, 'cluster', 'name')) ?? ''
  const all = below(tree, 'destinations')
  const named = isMap(all)
    ? [...all.value].map(([name, each]) => [name, each] as const)
    : itemsOf(all).map((each) => [textOf(below(each, 'name')) ?? 'loki', each] as const)
  const found = named.flatMap(([name, each]) => {
    const type = textOf(below(each, 'type'))
    const isOtlp = type === 'otlp' && flagOf(below(each, 'logs', 'enabled')) !== false
    if (type !== 'loki' && !isOtlp) return []
    const [options, ofTls] = isOtlp ? [destinationOptions, tlsOptions] : [lokiOptions, lokiTlsOptions]
    report.options({ ...each, name: `destination ${name}`, tree: each }, options)
    const tls = below(each, 'tls')
    if (tls !== undefined) report.options({ ...tls, name: `destination ${name}: tls`, tree: tls }, ofTls)
    return [isOtlp ? otlpDestination(name, each, cluster) : destination(name, each, cluster)]
  })
  const old = below(tree, 'externalServices', 'loki')
  if (old === undefined) return found
  report.options({ ...old, name: 'externalServices.loki', tree: old }, destinationOptions)
  return [...found, ofFirstVersion(old, cluster)]
}

/** The kind of authentication, and expressions for its values. */
function loginOf(id: string, tree: Tree) {
  const auth = below(tree, 'auth') ?? below(tree, 'basicAuth')
  const type =
    textOf(below(auth, 'type')) ??
    textOf(below(tree, 'authMode')) ??
    (below(tree, 'basicAuth') === undefined ? 'none' : 'basic')
  const name = textOf(below(tree, 'secret', 'name')) ?? ''
  const namespace = textOf(below(tree, 'secret', 'namespace')) ?? ''
  const secret = (option: string) => {
    const from = textOf(below(auth, `${option}From`))
    const given = textOf(below(auth, option)) ?? textOf(below(auth, option, 'value')) ?? ''
    if (from !== undefined) return from
    if (given !== '') return quote(given)
    const key = textOf(below(auth, `${option}Key`)) ?? option
    return name === ''
      ? `sys.env("${`${id}_${option}`.toUpperCase()}")`
      : `remote.kubernetes.secret.${id}.data[${quote(key)}]`
  }
  const place = namespace === '' ? [] : [`  namespace = ${quote(namespace)}`]
  const component =
    name === '' ? [] : [`remote.kubernetes.secret ${quote(id)} {`, `  name = ${quote(name)}`, ...place, '}']
  return { type, secret, component }
}

/** Members whose values are expressions. */
const rawMembers = (pairs: readonly (readonly [string, string])[]) =>
  pairs.map(([name, value]) => `${quote(name)} = ${value}`)

const headersOf = (tree: Tree): readonly string[] => {
  const headers = textPairs(below(tree, 'extraHeaders'))
  const all = [
    ...(headers.length === 0 ? [] : [members(headers)]),
    ...rawMembers(textPairs(below(tree, 'extraHeadersFrom'))),
  ]
  return all.length === 0 ? [] : [`    headers = { ${all.join(', ')} }`]
}

const tokenOf = (tree: Tree): string | undefined => {
  const file = textOf(below(tree, 'auth', 'bearerTokenFile')) ?? ''
  return file === '' ? undefined : `    bearer_token_file = ${quote(file)}`
}

/** Options of an endpoint that only need another name. */
const endpointOptions = [
  ['proxyURL', 'proxy_url'],
  ['minBackoffPeriod', 'min_backoff_period'],
  ['maxBackoffPeriod', 'max_backoff_period'],
  ['maxBackoffRetries', 'max_backoff_retries'],
] as const
const tlsFiles = [
  ['caFile', 'ca_file'],
  ['certFile', 'cert_file'],
  ['keyFile', 'key_file'],
] as const

function connectionOf(tree: Tree): readonly string[] {
  const named = (at: Tree | undefined, options: readonly (readonly [string, string])[]) =>
    options.flatMap(([from, to]) => {
      const text = textOf(below(at, from)) ?? ''
      return text === '' ? [] : [`    ${to} = ${quote(text)}`]
    })
  const tls = below(tree, 'tls')
  const isSkipped = flagOf(below(tls, 'insecureSkipVerify')) === true
  const files = [...named(tls, tlsFiles), ...(isSkipped ? ['    insecure_skip_verify = true'] : [])]
  return [...named(tree, endpointOptions), ...(files.length === 0 ? [] : ['    tls_config {', ...files, '    }'])]
}

/** Lines as records of the collector, and the exporter with the protocol. */
function otlpDestination(name: string, tree: Tree, cluster: string): Destination {
  const id = name.replace(/\W+/g, '_')
  const kind = textOf(below(tree, 'protocol')) === 'http' ? 'otlphttp' : 'otlp'
  const { type, secret, component } = loginOf(id, tree)
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
    ...component,
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

/** The first version of the chart sets the name of the cluster in a process of its own. */
function ofFirstVersion(tree: Tree, cluster: string): Destination {
  const { receiver, text } = destination('loki', tree)
  const process = [
    'loki.process "logs_service" {',
    `  stage.static_labels {\n    values = { cluster = ${quote(cluster)} }\n  }`,
    `  forward_to = [${receiver}]`,
    '}',
  ]
  return { name: 'loki', receiver: 'loki.process.logs_service.receiver', text: [...process, text].join('\n') }
}

/** @param cluster the name of the cluster, if it becomes labels of the destination */
function destination(name: string, tree: Tree, cluster?: string): Destination {
  const id = name.replace(/\W+/g, '_')
  const host = textOf(below(tree, 'host')) ?? textOf(below(tree, 'host', 'value'))
  const address =
    textOf(below(tree, 'url')) ??
    `${host ?? 'http://loki:3100'}${textOf(below(tree, 'writeEndpoint')) ?? '/loki/api/v1/push'}`
  const url = textOf(below(tree, 'urlFrom')) ?? quote(address)
  const { type, secret, component } = loginOf(id, tree)
  const tenant = textOf(below(tree, 'tenantId')) ?? textOf(below(tree, 'tenantId', 'value')) ?? ''
  const tenantFrom = textOf(below(tree, 'tenantIdFrom')) ?? (tenant === '' ? '' : quote(tenant))
  const labels = [
    ...(cluster === undefined ? [] : [['cluster', cluster] as const, ['k8s_cluster_name', cluster] as const]),
    ...textPairs(below(tree, 'extraLabels')),
    ...textPairs(below(tree, 'externalLabels')),
  ]
  const labelsFrom = [...textPairs(below(tree, 'extraLabelsFrom')), ...textPairs(below(tree, 'externalLabelsFrom'))]
  const login =
    type === 'basic'
      ? [`    basic_auth {\n      username = ${secret('username')}\n      password = ${secret('password')}\n    }`]
      : type === 'bearerToken'
        ? [tokenOf(tree) ?? `    bearer_token = ${secret('bearerToken')}`]
        : []
  const stages = textOf(below(tree, 'logProcessingStages')) ?? ''
  const text = [
    ...component,
    ...(stages === ''
      ? []
      : [`loki.process ${quote(id)} {`, stages, `  forward_to = [loki.write.${id}.receiver]`, '}']),
    `loki.write ${quote(id)} {`,
    '  endpoint {',
    `    url = ${url}`,
    ...(tenantFrom === '' ? [] : [`    tenant_id = ${tenantFrom}`]),
    ...login,
    ...headersOf(tree),
    ...connectionOf(tree),
    '  }',
    `  external_labels = { ${[...(labels.length === 0 ? [] : [members(labels)]), ...rawMembers(labelsFrom)].join(', ')} }`,
    '}',
  ]
  return { name, receiver: `loki.${stages === '' ? 'write' : 'process'}.${id}.receiver`, text: text.join('\n') }
}
