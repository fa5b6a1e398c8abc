// Converts Vector sinks for products with their own request format to the sink `http` with the address and format of the product. Common
// options, such as `tls` and `batch`, stay unchanged.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Step } from '../draft.ts'
import { literalTemplate } from '../escape.ts'

export interface Service {
  readonly type: string
  readonly becomes: string
  /** The options of `http` and the steps before it; undefined if the options are not valid. */
  readonly rewrite: (options: Table) => { readonly config: Table; readonly steps: readonly Step[] } | undefined
}

const lines = { framing: { method: 'newline_delimited' } } as const

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
        return `(to_string(${name}) ?? "")`
      })
      .join(' + ') || '""'
  )
}

/** ClickHouse: rows in requests to the HTTP interface. */
const clickhouse: Service = {
  type: 'clickhouse',
  becomes: '`http` to the HTTP interface, with one JSON row per event',
  rewrite(options) {
    const { endpoint, database = 'default', table, format = 'json_each_row', ...shared } = options
    const {
      skip_unknown_fields: skips,
      date_time_best_effort: isLoose,
      insert_random_shard: isRandom,
      ...rest
    } = shared
    if (typeof endpoint !== 'string' || typeof table !== 'string' || typeof database !== 'string') return undefined
    const forms: Readonly<Record<string, string>> = {
      json_each_row: 'JSONEachRow',
      json_as_object: 'JSONAsObject',
      json_as_string: 'JSONAsString',
    }
    const form = Object.hasOwn(forms, String(format)) ? forms[String(format)] : undefined
    if (form === undefined) return undefined
    const settings = [
      'input_format_import_nested_json=1',
      ...(typeof skips === 'boolean' ? [`input_format_skip_unknown_fields=${skips ? 1 : 0}`] : []),
      ...(isLoose === true ? ['date_time_input_format=best_effort'] : []),
      ...(isRandom === true ? ['insert_distributed_one_random_shard=1'] : []),
    ]
    // Names may be templates, whose braces and fields stay unchanged.
    const name = (text: string) => `%%22${text.includes('{{') ? text : literalTemplate(encodeURIComponent(text))}%%22`
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
    const { endpoint, default_token: token, token: oldToken, host_key: host = 'host', ...named } = options
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
    if (typeof endpoint !== 'string' || target !== 'event' || typeof host !== 'string') return undefined
    const codec = isTable(encoding) ? encoding['codec'] : encoding
    if (codec !== 'json' && codec !== 'text') return undefined
    const field = (name: string) => fieldLiteral(name.replace(/^\./, '').split('.'))
    const entries: string[] = []
    for (const [name, template] of Object.entries({ index, source, sourcetype })) {
      if (template === undefined) continue
      const text = typeof template === 'string' ? templateExpression(template) : undefined
      if (text === undefined) return undefined
      entries.push(`"${name}": ${text}`)
    }
    if (!Array.isArray(indexed) || indexed.some((name) => typeof name !== 'string')) return undefined
    const fields = indexed.map((name) => `${textLiteral(String(name))}: ${field(String(name))}`)
    const text = [
      ...(time === '' ? [] : [`time = del(${field(String(time))})`]),
      `event = ${codec === 'text' ? 'string(.message) ?? ""' : '.'}`,
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
    const further = isTable(encoding) ? Object.entries(encoding).filter(([name]) => name !== 'codec') : []
    const config = {
      ...rest,
      uri: `${literalTemplate(endpoint.replace(/\/+$/, ''))}${typeof path === 'string' ? path : '/services/collector/event'}`,
      encoding: { codec: 'json' },
      ...lines,
      request: { ...given, headers: { ...headers, Authorization: `Splunk ${String(token ?? oldToken ?? '')}` } },
    }
    const before = exceptSteps(Object.fromEntries(further))
    return before === undefined ? undefined : { config, steps: [...before, { type: 'remap', text }] }
  },
})

/** Steps that remove fields, because the encoding applies to the whole envelope; undefined for other options of an encoding. */
function exceptSteps(encoding: Table): readonly Step[] | undefined {
  const { except_fields: except = [], only_fields: only, ...others } = encoding
  if (only !== undefined || Object.keys(others).length > 0 || !Array.isArray(except)) return undefined
  const paths = except.map((path) => `del(.${String(path).replace(/^\./, '')})`)
  return paths.length === 0 ? [] : [{ type: 'remap', text: paths.join('\n') }]
}

/** Vector's sink contains the sink `http` in the option `protocol`. */
const opentelemetry: Service = {
  type: 'opentelemetry',
  becomes: '`http` with the options of `protocol`',
  rewrite({ protocol, ...shared }) {
    if (!isTable(protocol) || protocol['type'] !== 'http' || typeof protocol['uri'] !== 'string') return undefined
    const { type: _, ...config } = protocol
    return { config: { ...shared, ...config }, steps: [] }
  },
}

export const services: readonly Service[] = [clickhouse, splunk('splunk_hec_logs'), splunk('splunk_hec'), opentelemetry]
