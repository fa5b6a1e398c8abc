// Converts a Promtail client or a `loki.write` endpoint to a sink. Both have the same options with different names.

import { minDiskBuffer, textLiteral } from '@penstock/agent/config'
import type { Component } from '../draft.ts'
import type { Exception } from '../page.ts'
import { option, type Part, type Report, textIn } from './context.ts'
import { label, secretText, textExpression, unknownVariables } from './fields.ts'
import { below, bytesOf, flagOf, isList, itemsOf, millisecondsOf, pairsOf, type Tree, textOf } from './tree.ts'

export interface Push {
  readonly component: Component
  /** Lines before the sink, which set labels and the tenant. */
  readonly lines: readonly string[]
}

/** Names of options that differ between the two. */
export interface PushNames {
  readonly wait: string
  readonly size: string
  readonly timeout: string
  readonly backoff: readonly string[]
  readonly minWait: string
  readonly maxWait: string
  readonly retries: string
}

export const pushOptions = (names: PushNames): Readonly<Record<string, string>> => ({
  url: '`endpoint`, `path`; user name and password become `auth`',
  tenant_id: '`tenant_id`; a tenant from a stage or label takes precedence',
  [names.wait]: '`batch.timeout_secs`',
  [names.size]: '`batch.max_bytes`',
  [names.timeout]: '`request.timeout_secs`',
  basic_auth: '`auth`; a file with the password becomes a key of the Secret',
  bearer_token: '`auth`',
  bearer_token_file: '`auth`; the file becomes a key of the Secret',
  authorization: '`auth`, for the type `Bearer`',
  tls_config: '`tls`',
  proxy_url: '`proxy`',
  no_proxy: '`proxy.no_proxy`',
  headers: '`request.headers`',
  http_headers: '`request.headers`',
  external_labels: 'labels that an event lacks',
})

export const pushItself: Readonly<Record<string, string | Exception>> = {
  name: 'the name of the sink',
  stream_lag_labels: 'the metric has no stream labels',
  enable_http2: 'the sink uses HTTP/1.1',
  follow_redirects: 'the sink does not follow redirects',
  proxy_from_environment: 'the agent reads the usual variables for proxies',
  oauth2: {
    how: 'no option',
    unless: /^/,
    reason: 'the sink does not request tokens by OAuth 2',
    nearest: 'Send through a proxy that adds the token, or set `auth` with a token.',
    isAbsent: true,
  },
  retry_on_http_429: {
    how: 'the sink retries requests with status 429',
    unless: /^false$/i,
    reason: 'the sink always retries requests with status 429',
    nearest: 'Remove the option.',
    isAbsent: true,
  },
  drop_rate_limited_batches: {
    how: 'the sink retries requests with status 429',
    unless: /^true$/i,
    reason: 'the sink always retries requests with status 429',
    nearest: 'Set `buffer.when_full: drop_newest` of the sink, so that a slow destination does not block the source.',
    isAbsent: true,
  },
}

/** Returns the sink for a part, and the lines before it. All events get the labels in `external`. */
export function pushOf(
  part: Part,
  names: PushNames,
  report: Report,
  external: readonly (readonly [string, string, Tree])[],
): Push {
  const secret = (tree: Tree | undefined): string | undefined => {
    const text = textOf(tree)
    if (text === undefined || tree === undefined) return undefined
    const found = secretText(text)
    for (const byDefault of found.defaults) {
      report.replaced(
        tree,
        part.name,
        `the default of the variable is lost: ${byDefault}`,
        'Put the value into the Secret.',
      )
    }
    return found.text
  }
  const address = addressOf(secret(option(part, 'url')) ?? '')
  const comments = addressComments(part, address, report)
  const { batch, request } = limitsOf(part, names, secret)
  const auth = authOf(part, report, secret) ?? address?.auth
  const tls = tlsOf(part, report, secret)
  const proxy = proxyOf(part, report, secret)
  const labels = externalLabels(external, report)
  const tenant = secret(option(part, 'tenant_id')) ?? ''
  const config = {
    endpoint: address?.endpoint ?? placeholder,
    ...(address === undefined || address.path === pushPath ? {} : { path: address.path }),
    labels: { '*': '{{ labels }}', ...labels.ofSink },
    structured_metadata: { '*': '{{ metadata }}' },
    tenant_id: '{{ tenant }}',
    out_of_order_action: 'accept',
    encoding: { codec: 'text' },
    ...(address?.isVariable === true ? { healthcheck: { enabled: false } } : {}),
    ...(auth === undefined ? {} : { auth }),
    ...(Object.keys(tls).length > 0 ? { tls } : {}),
    ...(Object.keys(proxy).length > 0 ? { proxy } : {}),
    ...(Object.keys(batch).length > 0 ? { batch } : {}),
    ...(Object.keys(request).length > 0 ? { request } : {}),
  }
  const hasSecretTenant = tenant.includes('SECRET[')
  if (hasSecretTenant) {
    report.replaced(
      part,
      `${part.name}: tenant_id`,
      'a tenant from a Secret replaces that of a stage or label',
      'If stages choose the tenant, set `tenant_id` of the sink without a Secret.',
    )
    config.tenant_id = tenant.replaceAll('{{', '\\{{').replaceAll('%', '%%')
  }
  const lines = [
    ...labels.lines,
    `tenant = string!(${label('__tenant_id__')} || ${hasSecretTenant ? '""' : textLiteral(tenant)})`,
    'labels = filter(object!(.labels)) -> |name, value| { !starts_with(name, "__") && value != "" }',
    '. = { "message": .message, "timestamp": .timestamp, "labels": labels, "metadata": .metadata, "tenant": tenant }',
  ]
  return { component: { type: 'log_aggregator', config, ...(comments.length > 0 && { comments }) }, lines }
}

/** Reports an address that is not valid, or comes from a variable. Returns the comments of its sink. */
function addressComments(part: Part, address: Address | undefined, report: Report): readonly string[] {
  if (address?.isVariable === true) {
    report.replaced(
      part,
      `${part.name}: url`,
      'the sink sends to the whole address in the Secret, and has no health check, whose address is unknown',
      'Put the value of the variable into the Secret unchanged, with its path, such as `http://loki:3100/loki/api/v1/push`.',
    )
  }
  const given = textOf(option(part, 'url'))
  const missing =
    address !== undefined
      ? undefined
      : given === undefined || given === ''
        ? 'there is no address'
        : `\`${withoutLogin(given)}\` is not a valid address`
  if (missing !== undefined) {
    const nearest = `Set \`endpoint\` of the sink, which is \`${placeholder}\` for now.`
    report.gap(part, `${part.name}: url`, missing, nearest)
  }
  return missing === undefined
    ? []
    : [`GAP: ${missing} (${part.file}:${part.line}, \`url\`). Replace the endpoint \`${placeholder}\`.`]
}

const withoutLogin = (address: string) => address.replace(/\/\/[^@/]*@/, '//***@')

/** Whether a text is an address of the web. Nothing is known about one that contains a Secret. */
function isAddress(text: string): boolean {
  return text.includes('SECRET[') || (/^https?:\/\//.test(text) && URL.canParse(text))
}

/** The option `buffer` of sinks for a write-ahead log. */
export function diskBuffer(log: Tree | undefined, subject: string, report: Report): Readonly<Record<string, unknown>> {
  const enabled = below(log, 'enabled')
  if (flagOf(enabled) !== true || enabled === undefined) return {}
  const nearest = 'The buffer holds 256 MiB of events; set `max_size` to change it.'
  report.replaced(enabled, subject, 'a buffer of the sink keeps events on disk until they are delivered', nearest)
  return { buffer: { type: 'disk', max_size: minDiskBuffer } }
}

/** Batching and retries of requests. */
function limitsOf(part: Part, names: PushNames, secret: Secret) {
  const seconds = (ms: number) => Math.max(1, Math.round(ms / 1000))
  const wait = millisecondsOf(textIn(part, names.wait))
  const size = bytesOf(textIn(part, names.size))
  const timeout = millisecondsOf(textIn(part, names.timeout))
  const backoff = names.backoff.length === 0 ? part.tree : below(part.tree, ...names.backoff)
  const min = millisecondsOf(textOf(below(backoff, names.minWait)))
  const max = millisecondsOf(textOf(below(backoff, names.maxWait)))
  const retries = Number(textOf(below(backoff, names.retries)) ?? Number.NaN)
  const headers = Object.fromEntries([
    ...pairsOf(option(part, 'headers')).map(([name, , tree]) => [name, secret(tree) ?? ''] as const),
    ...pairsOf(option(part, 'http_headers')).map(([name, , tree]) => [name, headerValue(tree, secret)] as const),
  ])
  const request = {
    ...(timeout === undefined ? {} : { timeout_secs: seconds(timeout) }),
    ...(min === undefined ? {} : { retry_initial_backoff_secs: seconds(min) }),
    ...(max === undefined ? {} : { retry_max_duration_secs: seconds(max) }),
    // The number includes the first attempt; zero means no limit.
    ...(retries > 0 ? { retry_attempts: retries - 1 } : {}),
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
  }
  const batch = {
    ...(size === undefined ? {} : { max_bytes: Math.max(1, size) }),
    ...(wait === undefined ? {} : { timeout_secs: Math.max(0.001, wait / 1000) }),
  }
  return { batch, request }
}

/** The values of a header, which are a list, or the member `values` of a group. Several values are one with commas. */
const headerValue = (tree: Tree, secret: Secret): string =>
  itemsOf(isList(tree) ? tree : below(tree, 'values'))
    .map((item) => secret(item) ?? '')
    .join(', ')

function proxyOf(part: Part, report: Report, secret: Secret): Readonly<Record<string, unknown>> {
  const given = secret(option(part, 'proxy_url')) ?? ''
  const url = isAddress(given) ? given : undefined
  if (url === undefined && given !== '') {
    const reason = `\`${withoutLogin(given)}\` is not an address with the scheme http or https`
    report.gap(part, `${part.name}: proxy_url`, reason, 'Set `proxy` of the sink.')
  }
  const direct = (textIn(part, 'no_proxy') ?? '').split(',').flatMap((item) => item.trim() || [])
  return {
    ...(url === undefined ? {} : { http: url, https: url }),
    ...(direct.length > 0 ? { no_proxy: direct } : {}),
  }
}

interface Address {
  readonly endpoint: string
  readonly path: string
  readonly auth?: Readonly<Record<string, unknown>>
  /** Whether it begins with a Secret, which also contains its path. */
  readonly isVariable?: true
}

/** The endpoint of a sink whose address is missing. */
const placeholder = 'http://loki:3100'
const pushPath = '/loki/api/v1/push'
/** A name, or an address in brackets, and a port. Each may come from a Secret. */
const hostPattern = /^(?:\[[0-9a-f:.%]+\]|(?:[\p{L}\p{N}._-]|SECRET\[env\.\w+\])+)(?::(?:\d+|SECRET\[env\.\w+\]))?$/iu

function addressOf(url: string): Address | undefined {
  const found = /^(https?:\/\/)(?:([^@/]*)@)?([^/?]+)(\/[^?]*)?(\?.*)?$/.exec(url.trim())
  if (found === null) {
    if (!/^SECRET\[env\.\w+\]/.test(url)) return undefined
    if (url.endsWith(pushPath)) return { endpoint: url.slice(0, -pushPath.length), path: pushPath }
    return { endpoint: url, path: '', isVariable: true }
  }
  if (!hostPattern.test(found[3] ?? '') || !isAddress(`${found[1]}${found[3]}`)) return undefined
  const [, scheme = '', login, host = '', path = '/', query = ''] = found
  const [user = '', password = ''] = (login ?? '').split(/:(.*)/s)
  const isKnown = path.endsWith(pushPath) && query === ''
  const before = isKnown ? path.slice(0, -pushPath.length) : ''
  return {
    endpoint: `${scheme}${host}${before}`,
    path: isKnown ? pushPath : path + query,
    ...(login === undefined ? {} : { auth: { strategy: 'basic', user: decoded(user), password: decoded(password) } }),
  }
}

function decoded(text: string): string {
  return text.includes('SECRET[') ? text : decodeURIComponent(text)
}

type Secret = (tree: Tree | undefined) => string | undefined

/** The content of a file as a key of the Secret; undefined if no file is named. */
function fileSecret(report: Report, part: Part, tree: Tree | undefined, what: string): string | undefined {
  const path = textOf(tree) ?? ''
  if (tree === undefined || path === '') return undefined
  const base = path.split('/').at(-1) ?? ''
  const key = base.toUpperCase().replace(/[^A-Z0-9]+/g, '_') || what.toUpperCase()
  report.replaced(
    tree,
    `${part.name}: ${what}_file`,
    'a sink does not read secrets from files',
    `Put the content of \`${path}\` into the key \`${key}\` of the Secret.`,
  )
  return `SECRET[env.${key}]`
}

function authOf(part: Part, report: Report, secret: Secret): Readonly<Record<string, unknown>> | undefined {
  const basic = option(part, 'basic_auth')
  if (basic !== undefined) {
    const read = (name: string) =>
      secret(below(basic, name)) ?? fileSecret(report, part, below(basic, `${name}_file`), name) ?? ''
    return { strategy: 'basic', user: read('username'), password: read('password') }
  }
  const authorization = option(part, 'authorization')
  const type = textOf(below(authorization, 'type')) ?? 'Bearer'
  if (authorization !== undefined && type.toLowerCase() !== 'bearer') {
    report.gap(
      authorization,
      `${part.name}: authorization`,
      `the sink does not send the type \`${type}\``,
      'Set the header in `request.headers` of the sink.',
    )
    return undefined
  }
  const token = secret(option(part, 'bearer_token')) ?? secret(below(authorization, 'credentials'))
  if (token !== undefined) return { strategy: 'bearer', token }
  const file = option(part, 'bearer_token_file') ?? below(authorization, 'credentials_file')
  const content = fileSecret(report, part, file, 'bearer_token')
  return content === undefined ? undefined : { strategy: 'bearer', token: content }
}

function tlsOf(part: Part, report: Report, secret: Secret): Readonly<Record<string, unknown>> {
  const tree = option(part, 'tls_config')
  const names: Readonly<Record<string, string>> = {
    ca_file: 'ca_file',
    ca_pem: 'ca_file',
    cert_file: 'crt_file',
    cert_pem: 'crt_file',
    key_file: 'key_file',
    key_pem: 'key_file',
    server_name: 'server_name',
  }
  const tls: Record<string, unknown> = {}
  for (const [name, , item] of pairsOf(tree)) {
    const to = Object.hasOwn(names, name) ? names[name] : undefined
    const text = secret(item)
    if (to !== undefined && text !== undefined) {
      const isUsable = !name.endsWith('_file') || /^\/|SECRET\[/.test(text)
      if (isUsable) tls[to] = text
      else if (text !== '') {
        const nearest = 'Set the path in the pod of the agent, or the text of the file.'
        report.gap(item, `${part.name}: tls_config.${name}`, `the path \`${text}\` is not absolute`, nearest)
      }
    } else if (name === 'insecure_skip_verify') {
      if (flagOf(item) === true) Object.assign(tls, { verify_certificate: false, verify_hostname: false })
    } else if (name !== 'min_version') {
      report.gap(item, `${part.name}: tls_config.${name}`, 'the option has no counterpart', 'See `tls` of the sink.')
    }
  }
  return tls
}

/** Labels for all events, set by the program, or by the sink if only a Secret contains the value. */
function externalLabels(external: readonly (readonly [string, string, Tree])[], report: Report) {
  const ofSink: Record<string, string> = {}
  const lines: string[] = []
  for (const [name, text, place] of external) {
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) {
      report.gap(place, `external label ${name}`, 'it is not a valid label name', 'Use letters, digits and `_`.')
      continue
    }
    if (unknownVariables(text).length > 0) {
      const { text: value, defaults } = secretText(text)
      ofSink[name] = value.replaceAll('{{', '\\{{').replaceAll('%', '%%')
      report.replaced(
        place,
        `external label ${name}`,
        'a label from a Secret replaces a label with this name of the event',
        `Put the value into the Secret.${defaults.length > 0 ? ` Its default: ${defaults.join(', ')}.` : ''}`,
      )
    } else {
      lines.push(`if !exists(${label(name)}) { ${label(name)} = ${textExpression(text, report.readsEnvironment)} }`)
    }
  }
  return { ofSink, lines }
}
