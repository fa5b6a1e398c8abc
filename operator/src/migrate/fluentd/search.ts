// Converts Fluentd outputs for search engines.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { secret } from '../fluent-bit/connection.ts'
import { ownName } from '../fluent-bit/own-time.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { isOn, listOf, objectIn, type Plugged } from './element.ts'
import { expressed, recordPath } from './ruby.ts'
import { type Tag, tagProgram } from './tags.ts'
import {
  batchOf,
  bytesOf,
  type ChunkText,
  chunkTemplate,
  expressionOf,
  login,
  type OutputPlugin,
  type Parts,
  security,
  stepsOf,
  tagLines,
  translated,
} from './translation.ts'

const searchOptions: Readonly<Record<string, string>> = {
  host: 'the address',
  hosts: '`endpoints`',
  port: 'the address',
  scheme: 'the address',
  path: 'the address',
  ssl_verify: '`tls`',
  index_name: '`bulk.index`',
  logstash_format: '`bulk.index` with the date',
  logstash_prefix: '`bulk.index`',
  logstash_dateformat: '`bulk.index`',
  logstash_prefix_separator: '`bulk.index`',
  target_index_key: '`bulk.index`',
  include_tag_key: 'a field for the tag',
  tag_key: 'a field for the tag',
  include_timestamp: 'the field `@timestamp`',
  time_key: 'the field with the time of the event',
  time_key_format: 'the format of that time',
  time_key_exclude_timestamp: 'whether to leave out `@timestamp`',
  type_name: '`doc_type`',
  write_operation: '`bulk.action`',
  pipeline: '`pipeline`',
  remove_keys: '`encoding.except_fields`',
  compression_level: '`compression`',
  bulk_message_request_threshold: '`batch.max_bytes`',
  request_timeout: '`request.timeout_secs`',
  cloud_id: 'the address',
  cloud_auth: '`auth`',
  api_key: 'a header',
  custom_headers: '`request.headers`',
  'endpoint.url': 'the address',
  'endpoint.region': '`auth` with `strategy: aws`',
  'endpoint.assume_role_arn': '`auth.assume_role`',
  'endpoint.aws_service_name': '`opensearch_service_type`',
}

const { include_timestamp: _, ...otherOptions } = searchOptions
const streamOptions = { ...otherOptions, data_stream_name: 'the data stream' }

const template = {
  how: 'the destination manages its templates',
  unless: /./,
  reason: 'the sink does not create index templates, policies or aliases',
  nearest: 'Create them once with the API of the destination.',
} as const

/** The same for options that are on or off. */
const templateSwitch = { ...template, unless: /^(?!(?:false|no)$)/ } as const

const delimiter = {
  how: 'tags are split at periods',
  unless: /^(?!\.$)/,
  reason: 'tags are split at periods',
  nearest: 'Set `bulk.index` to a template with fields.',
} as const

/** Options that are a gap for some values. */
const exceptions: OutputPlugin['itself'] = {
  flatten_hashes: {
    how: 'objects stay nested',
    unless: /true|yes|^$/i,
    reason: 'the sink sends nested objects',
    nearest: 'Add a remap transform before the sink: `. = flatten(., "_")`.',
  },
  flatten_hashes_separator: 'see `flatten_hashes`',
  utc_index: {
    how: 'dates of indexes are in UTC',
    unless: /^(?:false|no)$/i,
    reason: 'the sink writes the dates of indexes in UTC',
    nearest: 'Nothing to do if the zone of the machine is UTC, as in containers.',
  },
  target_type_key: {
    how: 'documents have no types',
    unless: /./,
    reason: 'the sink does not read types from events',
    nearest: 'Set `doc_type` of the sink for servers up to version 6, and remove the field in a remap transform.',
  },
  ...Object.fromEntries(
    [
      ...'template_name template_file template_pattern customize_template templates'.split(' '),
      ...'index_date_pattern deflector_alias application_name index_prefix ilm_policy'.split(' '),
      ...'ilm_policy_id ilm_policies data_stream_template_name data_stream_ilm_name data_stream_ilm_policy'.split(' '),
      'max_retry_putting_template',
    ].map((name) => [name, template] as const),
  ),
  ...Object.fromEntries(
    [
      ...'enable_ilm ilm_policy_overwrite template_overwrite rollover_index use_legacy_template'.split(' '),
      ...'data_stream_template_use_index_patterns_wildcard data_stream_ilm_policy_overwrite'.split(' '),
    ].map((name) => [name, templateSwitch] as const),
  ),
}

const searchItself: OutputPlugin['itself'] = Object.fromEntries(
  [
    ...[
      'reconnect_on_error',
      'reload_on_failure',
      'reload_connections',
      'reload_after',
      'resurrect_after',
      'sniffer_class_name',
      'with_transporter_log',
    ],
    ...[
      'log_es_400_reason',
      'log_os_400_reason',
      'suppress_type_name',
      'verify_es_version_at_startup',
      'verify_os_version_at_startup',
      'default_elasticsearch_version',
    ],
    ...[
      'default_opensearch_version',
      'max_retry_get_es_version',
      'max_retry_get_os_version',
      'http_backend',
      'http_backend_excon_nonblock',
      'prefer_oj_serializer',
    ],
    ...[
      'suppress_doc_wrap',
      'ssl_version',
      'ssl_min_version',
      'ssl_max_version',
      'fail_on_detecting_es_version_retry_exceed',
      'fail_on_detecting_os_version_retry_exceed',
    ],
    ...[
      'fail_on_putting_template_retry_exceed',
      'exception_backup',
      'include_index_in_url',
      'validate_client_version',
      'unrecoverable_error_types',
      'reconnect',
    ],
    ...['ignore_exceptions', 'content_type', 'time_precision', 'time_parse_error_tag'],
    ...['emit_error_for_missing_id', 'emit_error_label_event', 'selector_class_name', 'retry_tag'],
    ...['truncate_caches_interval', 'catch_transport_exception_on_retry', 'unrecoverable_record_types'],
  ].map((name) => [name, 'the sink detects the version, reuses connections, and logs rejected documents'] as const),
)

export const search = (name: string): OutputPlugin =>
  translated({
    name,
    as: 'es',
    becomes: '`search_engine`',
    names: {
      ...login,
      ...security,
      id_key: 'id_key',
      pipeline: 'pipeline',
      type_name: 'type',
      cloud_id: 'cloud_id',
      cloud_auth: 'cloud_auth',
    },
    options: name.includes('data_stream') ? streamOptions : searchOptions,
    itself: {
      ...searchItself,
      ...exceptions,
      ...(name === 'elasticsearch_dynamic' ? { delimiter } : {}),
      ...(name.includes('data_stream') ? { include_timestamp: 'documents of data streams always have a time' } : {}),
    },
    also: (section, context, tag) => searchParts(name, section, context, tag),
  })

/** The address of a server, and the login that it contains. */
interface Address {
  readonly isSecure: boolean
  readonly host: string
  readonly port: string
  readonly path: string | undefined
  readonly login: { readonly user: string; readonly password: string } | undefined
}

const url = /^(https?|\$\{\w+\}):\/\/(?:(.*)@)?(\[[^\]]*\]|\$\{\w+\}|[^:/]+)(?::(\d+|\$\{\w+\}))?(\/.*)?$/i

const isListed = (section: Plugged) =>
  ['hosts', 'endpoint.url'].some((key) => listOf(lastValue(section, key)).length > 0)

/** The addresses of servers. The options `scheme` and `port` are for names of hosts; a URL contains both, or the port of its scheme applies. */
function addressesOf(section: Plugged): {
  readonly addresses: readonly Address[]
  readonly service: string | undefined
} {
  const read = (key: string) => lastValue(section, key)
  // The plugin for services of a cloud names one address in an element.
  const service = read('endpoint.url')
  const hosts =
    service === undefined ? listOf(read('hosts')) : [service.includes('://') ? service : `http://${service}`]
  const isSecureScheme = (text: string) => text.toLowerCase() === 'https' || text.includes('${')
  const addresses = (hosts.length === 0 ? [read('host') ?? 'localhost'] : hosts).map((text): Address => {
    const [, scheme, info, host, port, path] = url.exec(text) ?? []
    if (scheme !== undefined && host !== undefined) {
      const isSecure = isSecureScheme(scheme)
      const [user, password] = (info ?? '').split(/:(.*)/s).map(plainText)
      const login = user === undefined || user === '' ? undefined : { user, password: password ?? '' }
      const own = path === undefined || /^\/+$/.test(path) ? undefined : path.replace(/\/+$/, '')
      return {
        isSecure,
        host,
        port: (hosts.length === 0 ? read('port') : undefined) ?? port ?? (isSecure ? '443' : '80'),
        path: own,
        login,
      }
    }
    const [, name = text, number] = /^(\$\{\w+\}|\[[^\]]*\]|[^:]+):(\d+|\$\{\w+\})$/.exec(text) ?? []
    const isSecure = isSecureScheme(read('scheme') ?? 'http')
    const inBrackets = /^[\da-f]*:[\da-f:]+$/i.test(name) ? `[${name}]` : name
    return { isSecure, host: inBrackets, port: number ?? read('port') ?? '9200', path: undefined, login: undefined }
  })
  return { addresses, service }
}

/** A user or a password of a URL: escaped, or in the form `%{text}`. */
function plainText(text: string): string {
  const braced = /^%\{(.*)\}$/s.exec(text)?.[1]
  if (braced !== undefined) return braced
  try {
    return decodeURIComponent(text)
  } catch {
    // A percent sign that begins no escape stands for itself.
    return text
  }
}

/** A path with a slash before it. */
const slashed = (path: string | undefined) =>
  path?.includes('${') === true ? `/${path.replace(/^\//, '')}` : path?.replace(/\/$/, '')

function endpointOf({ isSecure, host, port, path }: Address, byDefault: string | undefined): string {
  const own = path ?? slashed(byDefault) ?? ''
  const behind = own === '' || own.startsWith('/') ? own : `/${own}`
  return secret(`${isSecure ? 'https' : 'http'}://${host}:${port}${behind}`)
}

/** The login in the addresses, as options of Fluent Bit. The sink has one login for all addresses. */
function loginOf(
  name: string,
  addresses: readonly Address[],
  section: Plugged,
  context: Context,
): Readonly<Record<string, string>> | undefined {
  const user = lastValue(section, 'user')
  const byOptions = user === undefined ? undefined : { user, password: lastValue(section, 'password') ?? '' }
  const logins = addresses.map(({ login }) => login ?? byOptions)
  const [first] = logins
  if (new Set(logins.map((login) => JSON.stringify(login))).size > 1) {
    const reason =
      'the addresses have different logins, and the sink has one login for all addresses; it has that of the first'
    context.gap(section, `${name}: hosts`, reason, 'Add a sink for each login, or use one login for all servers.')
  }
  return addresses[0]?.login === undefined || first === undefined
    ? undefined
    : { http_user: first.user, http_passwd: first.password }
}

function searchParts(name: string, section: Plugged, context: Context, tag: Tag | undefined): Parts {
  const read = (key: string) => lastValue(section, key)
  const isDated = isOn(read('logstash_format'), false)
  const { index, steps: indexSteps } = indexOf(name, section, context, tag)
  const { addresses, service } = addressesOf(section)
  const [first] = addresses
  const isSecure = addresses.some(({ isSecure: each }) => each)
  const path = read('path')
  const endpoints = addresses.map((address) => endpointOf(address, path))
  const login = loginOf(name, addresses, section, context)
  const isStream = name.includes('data_stream')
  const hasTime = isDated || isStream || isOn(read('include_timestamp'), false)
  const tagSteps: Step[] = isOn(read('include_tag_key'), false)
    ? [{ type: 'remap', text: tagLines(read('tag_key') ?? 'tag', section, context, tag).join('\n') || '.' }]
    : []
  if (path?.includes('${') === true) {
    context.replaced(
      section,
      `${name}: path`,
      'the path of the address comes from a variable, and the address has a slash before it',
      'Put the value into the Secret without a leading slash.',
    )
  }
  if (/^\$\{\w+\}$/.test(read('hosts') ?? '')) {
    const reason = 'the sink has one address with the variable, which may contain several addresses in Fluentd'
    const nearest =
      'Put the name of one host into the Secret, without a scheme and a port, or list the addresses in `endpoints`.'
    context.replaced(section, `${name}: hosts`, reason, nearest)
  }
  const removed = listOf(read('remove_keys')).flatMap((key) => recordPath(key) ?? [])
  const request = requestOf(name, section, context)
  const bytes = bytesOf(read('bulk_message_request_threshold'))
  const action = (read('write_operation') ?? (isStream ? 'create' : 'index')).toLowerCase()
  return {
    options: {
      host: first?.host ?? 'localhost',
      port: first?.port,
      tls: isSecure ? 'on' : 'off',
      'tls.verify': isOn(read('ssl_verify'), true) ? 'on' : 'off',
      path: first?.path ?? slashed(path),
      ...(login ?? {}),
      write_operation: action,
      ...(service === undefined
        ? {}
        : {
            aws_auth: 'on',
            aws_region: read('endpoint.region'),
            aws_role_arn: read('endpoint.assume_role_arn'),
            aws_service_name: read('endpoint.aws_service_name'),
          }),
      // The steps below set the field for the time.
      time_key: '',
    },
    steps: [...(hasTime ? timeSteps(section, isStream) : []), ...indexSteps, ...tagSteps],
    config: {
      bulk: { action: action === 'create' ? 'create' : 'index', index: index ?? 'fluentd' },
      ...(isListed(section) ? { endpoints } : {}),
      ...inCloud(name, section, context),
      ...(removed.length === 0 ? {} : { encoding: { except_fields: ['timestamp', ...removed] } }),
      ...(Object.keys(request).length === 0 ? {} : { request }),
      ...(bytes === undefined
        ? {}
        : { batch: { ...batchOf(section, 'es').batch, max_bytes: Math.min(bytes, 10_000_000) } }),
      ...(/^(best|default)/.test(read('compression_level') ?? '') ? { compression: 'gzip' } : {}),
    },
  }
}

/** The address and the login of a deployment in a cloud whose id or login comes from a variable. */
function inCloud(name: string, section: Plugged, context: Context): Readonly<Record<string, unknown>> {
  const variableOf = (key: string) => /^\$\{(\w+)\}$/.exec(lastValue(section, key) ?? '')?.[1]
  const id = variableOf('cloud_id')
  const text = lastValue(section, 'cloud_id')
  const decoded = Buffer.from(text?.split(':')[1] ?? '', 'base64').toString('utf8')
  if (text !== undefined && id === undefined && !decoded.includes('$')) {
    const reason = 'the id of the deployment does not contain an address'
    context.gap(section, `${name}: cloud_id`, reason, 'Set `endpoints` of the sink.')
  }
  const login = variableOf('cloud_auth')
  if (id !== undefined) {
    const nearest = `Put the address of the deployment, such as \`https://ID.REGION.CLOUD.es.io:443\`, into \`${id}\` of the Secret.`
    context.replaced(section, `${name}: cloud_id`, 'the sink needs an address, not the id of a deployment', nearest)
  }
  if (login !== undefined) {
    const nearest = `Put the parts into \`${login}_USER\` and \`${login}_PASSWORD\` of the Secret.`
    context.replaced(section, `${name}: cloud_auth`, 'the sink has two options for the user and the password', nearest)
  }
  return {
    ...(id === undefined ? {} : { endpoints: [`SECRET[env.${id}]`] }),
    ...(login === undefined
      ? {}
      : {
          auth: { strategy: 'basic', user: `SECRET[env.${login}_USER]`, password: `SECRET[env.${login}_PASSWORD]` },
        }),
  }
}

const timeField = fieldLiteral(['@timestamp'])

/** Forms of times that the plugin reads without a format. */
const timeForms = [
  '%+',
  '%Y-%m-%dT%H:%M:%S%.f%z',
  '%Y-%m-%d %H:%M:%S%.f %z',
  '%Y-%m-%dT%H:%M:%S%.f',
  '%Y-%m-%d %H:%M:%S%.f',
]

/** The time of the event is that of `@timestamp` or of another field, if the record has it; otherwise the record gets `@timestamp`. */
function timeSteps(section: Plugged, isStream: boolean): Step[] {
  const key = lastValue(section, 'time_key') ?? '@timestamp'
  const own = fieldLiteral([ownName(key)])
  const format = lastValue(section, 'time_key_format')?.replaceAll(/\.%[369]?N|\.%L/g, '%.f')
  const calls = (format === undefined ? timeForms : [format]).map(
    (form) => `parse_timestamp(found, ${textLiteral(form)})`,
  )
  const isLeftOut = isOn(lastValue(section, 'time_key_exclude_timestamp'), false)
  const set = isStream ? `${timeField} = .timestamp` : `if !exists(${timeField}) { ${timeField} = .timestamp }`
  const text = [
    `found = ${timeField}`,
    ...(key === '@timestamp' ? [] : [`if found == null { found = ${own} }`]),
    'if is_string(found) {',
    '  found = string!(found)',
    `  .timestamp = ${calls.join(' ?? ')} ?? .timestamp`,
    '} else if is_integer(found) || is_float(found) {',
    '  micros = to_int((to_float(found) ?? 0.0) * 1000000.0)',
    '  .timestamp = from_unix_timestamp(micros, unit: "microseconds") ?? .timestamp',
    '}',
    isLeftOut && key !== '@timestamp' ? `if !exists(${own}) { ${set} }` : set,
  ]
  return [{ type: 'remap', text: text.join('\n') }]
}

/** The template of the index, and a step for an index from a field. If the name contains parts of tags, this is reported. */
function indexOf(
  name: string,
  section: Plugged,
  context: Context,
  tag: Tag | undefined,
): { readonly index: string | undefined; readonly steps: readonly Step[] } {
  const read = (key: string) => lastValue(section, key)
  const isDated = isOn(read('logstash_format'), false)
  const separator = read('logstash_prefix_separator') ?? '-'
  const given = isDated
    ? `${read('logstash_prefix') ?? 'logstash'}${separator}${read('logstash_dateformat') ?? '%Y.%m.%d'}`
    : ((name.includes('data_stream') ? read('data_stream_name') : undefined) ?? read('index_name') ?? 'fluentd')
  const computed =
    name === 'elasticsearch_dynamic' && given.includes('${') ? computedIndex(given, section, context, tag) : undefined
  if (computed !== undefined) return computed
  const found = chunkTemplate(given, tag)
  if (found === undefined) {
    context.gap(
      section,
      `${name}: ${given}`,
      'the name of the index contains parts of tags',
      'Set `bulk.index` to a template with fields, such as `{{ kubernetes.namespace_name }}`.',
    )
  }
  const { template, lines } = inLowerCase(found ?? { template: 'fluentd', lines: [] })
  const index = secret(lowerCase(template))
  const steps = stepsOf(lines)
  const target = recordPath(read('target_index_key') ?? '')
  if (target === undefined) return { index, steps }
  const field = fieldLiteral(target)
  const text = [
    `index = ${field}`,
    `%index = if is_string(index) { downcase(string!(index)) } else { ${expressionOf(index)} }`,
    `if is_string(index) { del(${field}) }`,
  ]
  return { index: '{{ %index }}', steps: stepsOf([...lines, ...text]) }
}

/** An index whose name contains code, as options of `elasticsearch_dynamic` may: a transform works it out for each event. */
function computedIndex(
  given: string,
  section: Plugged,
  context: Context,
  tag: Tag | undefined,
): { readonly index: string; readonly steps: readonly Step[] } | undefined {
  const end = given.lastIndexOf('}') + 1
  const { readsEnvironment } = context
  const isFixed = tag?.text.includes('*') === false
  const facts = {
    tag: tag && (isFixed ? { text: tag.text } : { variable: 'tag' }),
    readsEnvironment,
    isRuby: true,
  }
  const found = expressed(given.slice(0, end), facts, 'index', false)
  if (!found.ok) {
    const reason = `\`${found.problem}\` is Ruby code, or names a value that events do not have`
    context.gap(section, `elasticsearch_dynamic: ${given}`, reason, 'Set `bulk.index` to a template with fields.')
    return { index: 'fluentd', steps: [] }
  }
  const lines = [
    ...(tag !== undefined && !isFixed ? [tagProgram(tag)] : []),
    ...found.before,
    `%index = downcase(${found.text})`,
  ]
  return { index: `{{ %index }}${lowerCase(given.slice(end))}`, steps: [{ type: 'remap', text: lines.join('\n') }] }
}

/** Parts of the name of an index from an event, in lower case. */
function inLowerCase({ template, lines }: ChunkText): ChunkText {
  const lower = lines.map((line) => line.replace(/^(%\w+) = (.*)$/s, '$1 = downcase($2)'))
  if (!template.includes('{{ %tag }}')) return { template, lines: lower }
  const own = '%index_tag = downcase(string(%tag) ?? "")'
  return { template: template.replaceAll('{{ %tag }}', '{{ %index_tag }}'), lines: [...lower, own] }
}

/** Names of indexes are in lower case. Fields, parts of dates and variables keep their names. */
const lowerCase = (template: string) =>
  template.replace(/\{\{.*?\}\}|\$\{\w+\}|%[-_0^#]?[A-Za-z]|[A-Z]+/g, (part) =>
    /^[A-Z]+$/.test(part) ? part.toLowerCase() : part,
  )

/** Options of the sink's `request`. */
function requestOf(name: string, section: Plugged, context: Context): Readonly<Record<string, unknown>> {
  const read = (key: string) => lastValue(section, key)
  const timeout = /^(\d+)s?$/.exec(read('request_timeout') ?? '')?.[1]
  const headers = objectIn(read('custom_headers'))
  const key = read('api_key')
  const all = { ...headers, ...(key === undefined ? {} : { Authorization: `ApiKey ${secret(key)}` }) }
  if (headers === undefined) {
    const nearest = 'Set `request.headers` of the sink.'
    context.gap(section, `${name}: custom_headers`, 'the value is not an object', nearest)
  }
  return {
    ...(timeout === undefined ? {} : { timeout_secs: Number(timeout) }),
    ...(Object.keys(all).length === 0 ? {} : { headers: all }),
  }
}
