// Converts Vector sinks for products with their own request format to the sink `http` with the address and format of the product. Common
// options, such as `tls` and `batch`, stay unchanged.

import { textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Step } from '../draft.ts'
import { literalTemplate } from '../escape.ts'
import { field, setLine, withScheme } from './tables.ts'

/** The name of an option whose value has no counterpart. */
interface Refused {
  readonly refused: string
}

const refused = (name: string): Refused => ({ refused: name })

export interface Service {
  readonly type: string
  readonly becomes: string
  /** Whether `http` has a counterpart; false for options of another protocol. */
  readonly isHere?: (options: Table) => boolean
  /** The options of `http` and the steps before it, or the option that has no counterpart there. */
  readonly rewrite: (options: Table) => { readonly config: Table; readonly steps: readonly Step[] } | Refused
}

const lines = { framing: { method: 'newline_delimited' } } as const

/** The address of requests as a template: a sign in URL form, such as `%20`, is not a part of a date. */
const plainAddress = (uri: string) =>
  uri
    .split(/(\{\{.*?\}\})/)
    .map((part) => (part.startsWith('{{') ? part : part.replace(/(?<!%)%(?=[0-9A-Fa-f]{2})/g, '%%')))
    .join('')

/** The fields of a template, as paths of a program. */
const fieldsOf = (template: string): readonly string[] =>
  [...template.matchAll(/\{\{\s*(.*?)\s*\}\}/g)].map(([, path = '']) => (/^[%.]/.test(path) ? path : `.${path}`))

/** A template with fields as an expression, which is null if a field is missing; undefined if it contains a date. */
function optionalExpression(template: string): string | undefined {
  const text = templateExpression(template)
  const fields = fieldsOf(template)
  if (text === undefined || fields.length === 0) return text
  return `if ${fields.map((path) => `exists(${path})`).join(' && ')} { ${text} } else { null }`
}

/** A template with fields as an expression; undefined if it contains a date. */
export function templateExpression(template: string): string | undefined {
  if (/%[a-zA-Z]/.test(template.replace(/\{\{.*?\}\}/g, ''))) return undefined
  const parts = template.split(/(\{\{.*?\}\})/).filter((part) => part !== '')
  return (
    parts
      .map((part) => {
        const path = /^\{\{\s*(.*?)\s*\}\}$/.exec(part)?.[1]
        if (path === undefined) return textLiteral(part)
        const name = path.startsWith('%') || path.startsWith('.') ? path : `.${path}`
        return `(to_string(${name}) ?? encode_json(${name}))`
      })
      .join(' + ') || '""'
  )
}

const asyncNames: Readonly<Record<string, string>> = {
  enabled: 'async_insert',
  wait_for_processing: 'wait_for_async_insert',
  wait_for_processing_timeout: 'wait_for_async_insert_timeout',
  deduplicate: 'async_insert_deduplicate',
  max_data_size: 'async_insert_max_data_size',
  max_query_number: 'async_insert_max_query_number',
}

/** Settings of the query for asynchronous inserts; undefined for other settings. */
function asyncSettings(given: unknown): readonly string[] | undefined {
  const { async_insert_settings: inner, ...others } = isTable(given) ? given : {}
  const entries = Object.entries(isTable(inner) ? inner : {})
  const isKnown = ([name, value]: (typeof entries)[number]) =>
    Object.hasOwn(asyncNames, name) && (typeof value === 'boolean' || typeof value === 'number')
  if (Object.keys(others).length > 0 || !entries.every(isKnown)) return undefined
  return entries.map(([name, value]) => `${asyncNames[name]}=${Number(value)}`)
}

/** A text as a part of a query, without its variables: their values are a part of the address. */
const inQuery = (text: string) =>
  text
    .split(/(\$\{[^}]*\}|\$[A-Za-z_]\w*)/)
    .map((part, index) => (index % 2 === 1 ? part : literalTemplate(encodeURIComponent(part))))
    .join('')

/** ClickHouse: rows in requests to the HTTP interface. */
const clickhouse: Service = {
  type: 'clickhouse',
  becomes: '`http` to the HTTP interface, with one JSON row per event',
  rewrite(options) {
    const { host, endpoint: given = host, database = 'default', table, format = 'json_each_row', ...shared } = options
    const {
      skip_unknown_fields: skips,
      date_time_best_effort: isLoose,
      insert_random_shard: isRandom,
      query_settings: ofQuery,
      extra_query_params: more,
      ...rest
    } = shared
    const asynchronous = asyncSettings(ofQuery)
    if (asynchronous === undefined) return refused('query_settings')
    if (typeof given !== 'string') return refused('endpoint')
    if (typeof table !== 'string') return refused('table')
    if (typeof database !== 'string') return refused('database')
    const endpoint = withScheme(given)
    const forms: Readonly<Record<string, string>> = {
      json_each_row: 'JSONEachRow',
      json_as_object: 'JSONAsObject',
      json_as_string: 'JSONAsString',
    }
    const form = Object.hasOwn(forms, String(format)) ? forms[String(format)] : undefined
    if (form === undefined) return refused('format')
    const settings = [
      'input_format_import_nested_json=1',
      ...(typeof skips === 'boolean' ? [`input_format_skip_unknown_fields=${skips ? 1 : 0}`] : []),
      ...(isLoose === true ? ['date_time_input_format=best_effort'] : []),
      ...(isRandom === true ? ['insert_distributed_one_random_shard=1'] : []),
      ...asynchronous,
      ...Object.entries(isTable(more) ? more : {}).map(([key, value]) => `${inQuery(key)}=${inQuery(String(value))}`),
    ]
    // Names may be templates, whose braces and fields stay unchanged.
    const name = (text: string) => `%%22${text.includes('{{') ? text : inQuery(text.replace(/["\\]/g, '\\$&'))}%%22`
    const query = `INSERT%%20INTO%%20${name(database)}.${name(table)}%%20FORMAT%%20${form}`
    const config = {
      uri: `${literalTemplate(endpoint.replace(/\/+$/, ''))}/?${settings.join('&')}&query=${query}`,
      compression: 'gzip',
      ...rest,
      encoding: { codec: 'json', ...(isTable(rest['encoding']) ? rest['encoding'] : {}) },
      ...lines,
    }
    return { config, steps: [] }
  },
}

/** The options without those of acknowledgements by the indexer, if these are off: `http` waits for the answer to a request. */
function withoutIndexer(options: Table): Table {
  const { acknowledgements: given, ...others } = options
  if (!isTable(given) || given['indexer_acknowledgements_enabled'] !== false) return options
  return given['enabled'] === undefined ? others : { ...others, acknowledgements: { enabled: given['enabled'] } }
}

const splunk = (type: string): Service => ({
  type,
  becomes: '`http` to the event collector',
  rewrite(options) {
    const { host: address, endpoint = address, default_token: token, token: oldToken, ...more } = options
    const { host_key: host = 'host', ...named } = more
    const {
      index,
      source,
      sourcetype,
      indexed_fields: indexed = [],
      timestamp_key: time = 'timestamp',
      ...shared
    } = named
    const { endpoint_target: target = 'event', path, encoding, auto_extract_timestamp: extracts, ...others } = shared
    const rest = withoutIndexer({ ...others, ...(extracts === true && { auto_extract_timestamp: true }) })
    if (typeof endpoint !== 'string') return refused('endpoint')
    if (target !== 'event') return refused('endpoint_target')
    if (typeof host !== 'string') return refused('host_key')
    const codec = isTable(encoding) ? encoding['codec'] : encoding
    if (codec !== 'json' && codec !== 'text') return refused('encoding')
    const entries: string[] = []
    const rendered: string[] = []
    for (const [name, template] of Object.entries({ index, source, sourcetype })) {
      if (template === undefined) continue
      const text = typeof template === 'string' ? optionalExpression(template) : undefined
      if (text === undefined) return refused(name)
      rendered.push(`${name} = ${text}`)
      entries.push(`"${name}": ${name}`)
    }
    if (!Array.isArray(indexed) || indexed.some((name) => typeof name !== 'string')) return refused('indexed_fields')
    const fields = indexed.map((name) => `${textLiteral(String(name).replace(/^\./, ''))}: ${field(String(name))}`)
    const { codec: _, timestamp_format: form, ...ofFields } = isTable(encoding) ? encoding : {}
    const own = eventLines(ofFields)
    if (own === undefined) return refused('encoding')
    const text = [
      ...rendered,
      ...(time === '' ? [] : [`time = del(${field(String(time))})`]),
      ...(codec === 'text' ? ['event = string(.message) ?? ""'] : own),
      `. = filter({ ${[
        '"event": event',
        ...(host === '' ? [] : [`"host": ${field(host)}`]),
        ...entries,
        ...(fields.length === 0
          ? []
          : [
              `"fields": compact({ ${fields.join(', ')} }, recursive: false, string: false, object: false, array: false)`,
            ]),
      ].join(', ')} }) -> |_key, value| { value != null && value != "" }`,
      ...(time === ''
        ? []
        : ['if is_timestamp(time) { .time = to_unix_timestamp(timestamp!(time), unit: "milliseconds") / 1000.0 }']),
    ].join('\n')
    const given = isTable(rest['request']) ? rest['request'] : {}
    const headers = isTable(given['headers']) ? given['headers'] : {}
    const config = {
      ...rest,
      uri: `${literalTemplate(endpoint.replace(/\/+$/, ''))}${typeof path === 'string' ? path : '/services/collector/event'}`,
      encoding: { codec: 'json', ...(form !== undefined && codec === 'json' && { timestamp_format: form }) },
      ...lines,
      request: { ...given, headers: { ...headers, Authorization: `Splunk ${String(token ?? oldToken ?? '')}` } },
    }
    return { config, steps: [{ type: 'remap', text }] }
  },
})

/** Statements that set the variable `event` to the fields that an encoding delivers; undefined for other options of an encoding. */
function eventLines(encoding: Table): readonly string[] | undefined {
  const { except_fields: except = [], only_fields: only, ...others } = encoding
  if (Object.keys(others).length > 0 || !Array.isArray(except) || (only !== undefined && !Array.isArray(only))) {
    return undefined
  }
  const kept = (path: unknown) =>
    `if exists(${field(String(path))}) { ${setLine(String(path), field(String(path)), 'event')} }`
  return [
    ...(only === undefined ? ['event = .'] : ['event = {}', ...only.map(kept)]),
    ...except.map((path) => `del(event${field(String(path))})`),
  ]
}

/** Vector's sink contains the sink `http` in the option `protocol`. */
const opentelemetry: Service = {
  type: 'opentelemetry',
  becomes: '`http` with the options of `protocol`',
  isHere: ({ protocol }) => isTable(protocol) && protocol['type'] === 'http',
  rewrite({ protocol, ...shared }) {
    if (!isTable(protocol) || typeof protocol['uri'] !== 'string') return refused('protocol')
    const { type: _, ...config } = protocol
    return { config: { ...shared, ...config, uri: plainAddress(protocol['uri']) }, steps: [] }
  },
}

/** Axiom: lines of JSON. An address with a path is complete. */
const axiom: Service = {
  type: 'axiom',
  becomes: '`http` to the address of the dataset, with one JSON line per event',
  rewrite(options) {
    const { dataset, token, org_id: organization, url, region, ...shared } = options
    if (typeof dataset !== 'string') return refused('dataset')
    if (typeof token !== 'string') return refused('token')
    const address = typeof url === 'string' ? url.replace(/\/+$/, '') : undefined
    const isComplete = address !== undefined && /^\w+:\/\/[^/]+\/./.test(address)
    const ofRegion = typeof region === 'string' ? `https://${region}/v1/ingest/${dataset}` : undefined
    const uri = isComplete ? address : `${address ?? 'https://api.axiom.co'}/v1/datasets/${dataset}/ingest`
    const given = isTable(shared['request']) ? shared['request'] : {}
    const headers = isTable(given['headers']) ? given['headers'] : {}
    const own = typeof organization === 'string' ? { 'X-Axiom-Org-Id': organization } : {}
    const config = {
      compression: 'zstd',
      ...shared,
      uri: literalTemplate(address === undefined ? (ofRegion ?? uri) : uri),
      auth: { strategy: 'bearer', token },
      encoding: { codec: 'json' },
      ...lines,
      ...(Object.keys({ ...headers, ...own }).length > 0 && { request: { ...given, headers: { ...headers, ...own } } }),
    }
    return { config, steps: [] }
  },
}

/** The sink `http` itself. */
const http: Service = {
  type: 'http',
  becomes: 'the same',
  isHere: ({ uri }) => typeof uri === 'string',
  rewrite: ({ uri, ...others }) => ({ config: { uri: plainAddress(withScheme(String(uri))), ...others }, steps: [] }),
}

export const services: readonly Service[] = [
  axiom,
  clickhouse,
  splunk('splunk_hec_logs'),
  splunk('splunk_hec'),
  opentelemetry,
  http,
]
