// Converts Fluent Bit outputs to sinks. If the form that the output sends differs from the record, such as in the time field, a transform
// before the sink produces it.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import { eventTime, unixSeconds } from '../unix-time.ts'
import {
  addressOf,
  always,
  connection,
  itself,
  local,
  login,
  remap,
  secret,
  serviceAddress,
  unbuffered,
  value,
} from './connection.ts'
import { azure, kafkaRest } from './envelopes.ts'
import { grafanaLoki } from './grafana-loki.ts'
import { fileLines, lokiLines } from './lines.ts'
import { lokiLabels, metadataOf } from './loki-labels.ts'
import { newRelic, newRelicPlugin } from './new-relic.ts'
import type { Context, Plugin, SinkPart } from './plugin.ts'
import { entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { accessor, textOf, words } from './text.ts'

const loki: Plugin<SinkPart> = {
  name: 'loki',
  becomes: '`log_aggregator`',
  options: {
    ...always,
    ...login,
    uri: '`path`',
    labels: '`labels`',
    label_keys: '`labels`',
    auto_kubernetes_labels: 'all labels of the pod in `labels`',
    remove_keys: '`encoding.except_fields`',
    line_format: '`encoding.codec`; a remap transform for `key_value`',
    drop_single_key: 'a remap transform',
    structured_metadata: '`structured_metadata`',
    tenant_id: '`tenant_id`',
    tenant_id_key: '`tenant_id` from a field; `Tenant_ID` for events without it',
    bearer_token: '`auth`',
    compress: '`compression`',
  },
  itself,
  build: (section, context) => {
    const format = lastValue(section, 'line_format') ?? 'json'
    const single = lastValue(section, 'drop_single_key')
    const dropped = isOn(single, false) || single === 'raw' ? single : undefined
    const isText = format !== 'json' || dropped !== undefined
    const removed = entriesOf(section, 'remove_keys')
      .flatMap((entry) => entry.value.split(','))
      .flatMap((key) => {
        const path = accessor(key.trim())
        return path === undefined ? [] : [path]
      })
    const tenantKey = accessor(lastValue(section, 'tenant_id_key') ?? '')
    const tenant = value(section, 'tenant_id')
    const metadata = metadataOf(section, context)
    const labels = lokiLabels(section, context)
    const lines = [
      ...(Object.values(labels).includes('{{ %hostname }}') ? ['%hostname = get_hostname() ?? ""'] : []),
      ...(tenantKey === undefined
        ? []
        : [`%tenant = to_string(${fieldLiteral(tenantKey)}) ?? ${textLiteral(lastValue(section, 'tenant_id') ?? '')}`]),
      ...(isText ? lokiLines(format, dropped, removed) : []),
    ]
    const token = value(section, 'bearer_token')
    const config = {
      endpoint: addressOf(section, '3100', ''),
      ...(lastValue(section, 'uri') === undefined ? {} : { path: value(section, 'uri') }),
      labels,
      ...(Object.keys(metadata).length === 0 ? {} : { structured_metadata: metadata }),
      out_of_order_action: 'accept',
      encoding: isText
        ? { codec: 'text' }
        : {
            codec: 'json',
            ...(removed.length > 0 ? { except_fields: removed.map((path) => fieldLiteral(path).slice(1)) } : {}),
          },
      ...(tenantKey !== undefined
        ? { tenant_id: '{{ %tenant }}' }
        : tenant === undefined
          ? {}
          : { tenant_id: literalTemplate(tenant) }),
      ...(lastValue(section, 'compress')?.toLowerCase() === 'gzip' ? { compression: 'gzip' } : {}),
      ...connection(section),
      ...(token === undefined ? {} : { auth: { strategy: 'bearer', token } }),
    }
    return { component: { type: 'log_aggregator', config }, steps: lines.length === 0 ? [] : remap(...lines) }
  },
}

/** The counterparts of the options of outputs for search engines. */
const searchOptions = {
  ...always,
  ...login,
  index: '`bulk.index`',
  type: '`doc_type`',
  path: 'the address',
  logstash_format: '`bulk.index` with the date',
  logstash_prefix: '`bulk.index`',
  logstash_prefix_key: '`bulk.index` from a field; the prefix for events without it',
  logstash_prefix_separator: '`bulk.index`',
  generate_id: '`id_key` with a hash of the record',
  logstash_dateformat: '`bulk.index`',
  time_key: 'the field for the time',
  time_key_format: 'the format of the time',
  http_api_key: 'the header `Authorization`',
  replace_dots: '`map_keys` in a remap transform',
  id_key: '`id_key`',
  write_operation: '`bulk.action`',
  pipeline: '`pipeline`',
  compress: '`compression`',
  cloud_id: 'the address',
  cloud_auth: '`auth`',
  aws_auth: '`auth` with `strategy: aws`',
  aws_region: '`aws.region`',
  aws_service_name: '`opensearch_service_type`',
  aws_role_arn: '`auth.assume_role`',
  aws_external_id: '`auth.external_id`',
  include_tag_key: 'a field for the tag',
  tag_key: 'the name of the field for the tag',
  current_time_index: '`bulk.index` with the arrival time of the event',
}

const search = (name: string): Plugin<SinkPart> => ({
  name,
  becomes: '`search_engine`',
  options: searchOptions,
  itself: {
    ...itself,
    suppress_type_name: 'the sink requests the version of the server, and sends types up to version 6',
    time_key_nanos: 'times keep their full precision',
  },
  build: (section, context, tag = []) => {
    const { index, lines: named } = indexOf(section)
    const operation = (lastValue(section, 'write_operation') ?? 'create').toLowerCase()
    const isKnown = ['create', 'index'].includes(operation)
    if (!isKnown) {
      context.gap(
        section,
        `${name}: Write_Operation`,
        `the sink does not send the operation \`${operation}\``,
        'The sink sends `index`; with `id_key`, it replaces an existing document with the same id.',
      )
    }
    const timeKey = lastValue(section, 'time_key') ?? '@timestamp'
    const idLines = idOf(section)
    const config = {
      endpoints: [cloudAddress(section) ?? addressOf(section, '9200', value(section, 'path') ?? '')],
      bulk: { action: isKnown ? operation : 'index', index },
      ...(timeKey === 'timestamp' ? {} : { encoding: { except_fields: ['timestamp'] } }),
      ...(lastValue(section, 'type') === undefined ? {} : { doc_type: lastValue(section, 'type') }),
      ...(idLines.length === 0 ? {} : { id_key: '_id' }),
      ...(lastValue(section, 'pipeline') === undefined ? {} : { pipeline: lastValue(section, 'pipeline') }),
      ...(lastValue(section, 'compress')?.toLowerCase() === 'gzip' ? { compression: 'gzip' } : {}),
      ...connection(section),
      ...cloudLogin(section),
      ...signing(section, context),
    }
    const apiKey = value(section, 'http_api_key')
    const keyed = apiKey === undefined ? {} : { request: { headers: { Authorization: `ApiKey ${apiKey}` } } }
    const tagged = isOn(lastValue(section, 'include_tag_key'), false)
      ? [...tag, `${fieldLiteral([lastValue(section, 'tag_key') ?? '_flb-key'])} = tag`]
      : []
    // Outputs of Fluentd, which share this mapping, set the field themselves.
    const timed = timeKey === '' ? [] : [`${fieldLiteral([timeKey])} = ${timeText(section)}`]
    const lines = [...named, ...tagged, ...dotLines(section), ...idLines, ...timed]
    return {
      component: { type: 'search_engine', config: withRequest(config, keyed) },
      steps: lines.length === 0 ? [] : remap(...lines),
    }
  },
})

const dotLines = (section: Section) =>
  isOn(lastValue(section, 'replace_dots'), false)
    ? ['. = map_keys(., recursive: true) -> |key| { replace(key, ".", "_") }']
    : []

/** Options with those of another `request`. */
const withRequest = (config: Readonly<Record<string, unknown>>, { request }: { readonly request?: object }) =>
  request === undefined ? config : { ...config, request: { ...(config['request'] as object | undefined), ...request } }

/** The time for `time_key`. Fluent Bit writes fractions of a second after its format. */
function timeText(section: Section): string {
  const format = lastValue(section, 'time_key_format')
  if (format === undefined || format === '%Y-%m-%dT%H:%M:%S') return '.timestamp'
  const digits = isOn(lastValue(section, 'time_key_nanos'), false) ? 9 : 3
  return `format_timestamp(${eventTime}, ${textLiteral(`${format}.%${digits}fZ`)}) ?? null`
}

/** The address for an Elastic Cloud id: a name, and the base64 text of the host and the parts of the cluster. */
function cloudAddress(section: Section): string | undefined {
  const [, code] = /^[^:]*:(\S+)$/.exec(lastValue(section, 'cloud_id') ?? '') ?? []
  const [host = '', cluster] = Buffer.from(code ?? '', 'base64')
    .toString('utf8')
    .split('$')
  const [domain, port = '443'] = host.split(':')
  return cluster === undefined ? undefined : `https://${cluster}.${domain}:${port}`
}

function cloudLogin(section: Section): Record<string, unknown> {
  const found = /^([^:]*):(.*)$/s.exec(lastValue(section, 'cloud_auth') ?? '')
  return found === null
    ? {}
    : { auth: { strategy: 'basic', user: secret(found[1] ?? ''), password: secret(found[2] ?? '') } }
}

/** The name of the index, which may contain a date, and the lines that set the fields it refers to. */
function indexOf(section: Section): { readonly index: string; readonly lines: readonly string[] } {
  if (!isOn(lastValue(section, 'logstash_format'), false))
    return { index: (lastValue(section, 'index') ?? 'fluent-bit').replaceAll('{{', '\\{{'), lines: [] }
  const isCurrent = isOn(lastValue(section, 'current_time_index'), false)
  const form = lastValue(section, 'logstash_dateformat') ?? '%Y.%m.%d'
  const date = isCurrent ? '{{ %index_date }}' : form
  const dated = isCurrent ? [`%index_date = format_timestamp(now(), ${textLiteral(form)}) ?? ""`] : []
  const prefix = lastValue(section, 'logstash_prefix') ?? 'logstash'
  const end = `${lastValue(section, 'logstash_prefix_separator') ?? '-'}${date}`
  const path = accessor(lastValue(section, 'logstash_prefix_key') ?? '')
  if (path === undefined) return { index: `${literalTemplate(prefix)}${end}`, lines: dated }
  const lines = [
    ...dated,
    `prefix = ${fieldLiteral(path)}`,
    `%logstash_prefix = if is_string(prefix) { prefix } else { ${textLiteral(prefix)} }`,
  ]
  return { index: `{{ %logstash_prefix }}${end}`, lines }
}

/** Lines that set `_id`, which the sink removes from the event. The original field stays, because Fluent Bit sends it. */
function idOf(section: Section): readonly string[] {
  const key = lastValue(section, 'id_key')
  if (key === undefined) return isOn(lastValue(section, 'generate_id'), false) ? ['._id = sha1(encode_json(.))'] : []
  const field = fieldLiteral(accessor(key) ?? [key.replace(/^\$/, '')])
  return [`if exists(${field}) { ._id = ${field} }`]
}

/** The time field in JSON bodies. */
function dateLines(section: Section, context: Context): string[] {
  const key = lastValue(section, 'json_date_key') ?? 'date'
  if (/^(false|off)$/i.test(key)) return []
  const format = lastValue(section, 'json_date_format') ?? 'double'
  const time = 'timestamp(.timestamp) ?? now()'
  const forms: Readonly<Record<string, string>> = {
    epoch: `to_unix_timestamp(${time})`,
    epoch_ms: `to_unix_timestamp(${time}, unit: "milliseconds")`,
    iso8601: `format_timestamp(${time}, "%Y-%m-%dT%H:%M:%S%.6fZ") ?? null`,
    double: unixSeconds(time),
    java_sql_timestamp: `format_timestamp(${time}, "%Y-%m-%d %H:%M:%S%.6f") ?? null`,
  }
  if (!Object.hasOwn(forms, format)) {
    const known = Object.keys(forms).join(', ')
    context.gap(section, `json_date_format ${format}`, `the format must be one of ${known}`, 'The sink sends a number.')
  }
  return [`${fieldLiteral([key])} = ${Object.hasOwn(forms, format) ? forms[format] : forms['double']}`]
}

/** JSON without the time of the event, unless the field for the time has the same name. */
const body = (timeKey: string | undefined) =>
  timeKey === 'timestamp' ? { codec: 'json' } : { codec: 'json', except_fields: ['timestamp'] }

const dated = { json_date_key: 'a field for the time', json_date_format: 'the format of the time' } as const

const http: Plugin<SinkPart> = {
  name: 'http',
  becomes: '`http`',
  options: {
    ...always,
    ...login,
    ...dated,
    format: '`encoding`, `framing`',
    uri: 'the address',
    header: '`request.headers`',
    compress: '`compression`',
    http_method: '`method`',
  },
  itself,
  build: (section, context) => {
    const format = lastValue(section, 'format') ?? 'msgpack'
    const isLines = format === 'json_lines' || format === 'json_stream'
    if (format !== 'json' && !isLines) {
      context.gap(
        section,
        `http: Format ${format}`,
        `the sink does not support the format \`${format}\``,
        'The sink writes a JSON array; configure the receiver to read it.',
      )
    }
    const headers = Object.fromEntries(
      entriesOf(section, 'header').map((entry) => {
        const found = /^(\S+)\s+(.*)$/s.exec(secret(entry.value))
        return [found?.[1] ?? entry.value, found?.[2] ?? '']
      }),
    )
    const { request, ...others } = connection(section)
    const config = {
      uri: literalTemplate(addressOf(section, '80', value(section, 'uri') ?? '/')),
      ...(lastValue(section, 'http_method') === undefined
        ? {}
        : { method: lastValue(section, 'http_method')?.toLowerCase() }),
      encoding: body(lastValue(section, 'json_date_key')),
      ...(isLines ? { framing: { method: 'newline_delimited' } } : {}),
      ...(lastValue(section, 'compress')?.toLowerCase() === 'gzip' ? { compression: 'gzip' } : {}),
      ...others,
      ...(request === undefined && Object.keys(headers).length === 0
        ? {}
        : { request: { ...(request as object | undefined), ...(Object.keys(headers).length > 0 ? { headers } : {}) } }),
    }
    const lines = dateLines(section, context)
    return { component: { type: 'http', config }, steps: lines.length === 0 ? [] : remap(...lines) }
  },
}

const splunk: Plugin<SinkPart> = {
  name: 'splunk',
  becomes: '`http` to the event collector',
  options: {
    ...always,
    splunk_token: 'a header',
    splunk_send_raw: 'whether to put the record into `event`',
    compress: '`compression`',
    event_host: 'a field',
    event_source: 'a field',
    event_sourcetype: 'a field',
    event_index: 'a field',
    event_key: 'the value of `event`',
    event_field: 'a member of `fields`',
    channel: 'a header',
  },
  itself: { ...itself, http_buffer_size: 'the sink reads responses without a size option' },
  build: (section, context) => {
    const time = `"time": ${unixSeconds()}`
    const fields = ['host', 'source', 'sourcetype', 'index'].flatMap((name) => {
      const text = lastValue(section, `event_${name}`)
      if (text === undefined) return []
      const path = text.startsWith('$') ? accessor(text) : undefined
      if (path !== undefined) return [`"${name}": ${fieldLiteral(path)}`]
      context.variables(entriesOf(section, `event_${name}`).at(-1) ?? section, `splunk: event_${name}`, text)
      return [`"${name}": ${textOf(text, context.readsEnvironment)}`]
    })
    const members = entriesOf(section, 'event_field').flatMap((entry) => {
      const [name = '', text = ''] = words(entry.value)
      const path = accessor(text)
      if (path !== undefined) return [`${textLiteral(name)}: ${fieldLiteral(path)}`]
      context.gap(
        entry,
        `splunk: event_field ${entry.value}`,
        'a program cannot refer to the field',
        'Add it to `fields`.',
      )
      return []
    })
    const eventPath = accessor(lastValue(section, 'event_key') ?? '')
    const raw = isOn(lastValue(section, 'splunk_send_raw'), false)
    const channel = value(section, 'channel')
    const { request, auth: _, ...others } = connection(section)
    const config = {
      uri: literalTemplate(addressOf(section, '8088', '/services/collector/event')),
      encoding: { codec: 'json', ...(raw ? { except_fields: ['timestamp'] } : {}) },
      framing: { method: 'newline_delimited' },
      ...(lastValue(section, 'compress')?.toLowerCase() === 'gzip' ? { compression: 'gzip' } : {}),
      ...others,
      request: {
        ...(request as object | undefined),
        headers: {
          Authorization: `Splunk ${value(section, 'splunk_token') ?? ''}`,
          ...(channel === undefined ? {} : { 'X-Splunk-Request-Channel': channel }),
        },
      },
    }
    const event =
      eventPath === undefined ? '' : `\nif exists(${fieldLiteral(eventPath)}) { event = ${fieldLiteral(eventPath)} }`
    const more =
      members.length === 0 ? [] : [`"fields": filter({ ${members.join(', ')} }) -> |_key, value| { value != null }`]
    const removed = entriesOf(section, 'event_remove').flatMap((entry) => {
      const path = accessor(entry.value)
      return path === undefined ? [] : [`\ndel(event${fieldLiteral(path)})`]
    })
    const whole = `event = .\ndel(event.timestamp)${event}${removed.join('')}\n. = { ${[time, '"event": event', ...fields, ...more].join(', ')} }`
    return { component: { type: 'http', config }, steps: raw ? [] : remap(whole) }
  },
}

const datadog: Plugin<SinkPart> = {
  name: 'datadog',
  becomes: '`monitor_a_logs`',
  options: {
    ...always,
    apikey: '`default_api_key`',
    dd_service: 'a field',
    dd_source: 'a field',
    dd_tags: 'a field',
    dd_message_key: 'the field with the line',
    compress: '`compression`',
    include_tag_key: 'a field for the tag',
    tag_key: 'the name of the field for the tag',
    dd_hostname: 'a field',
    json_date_key: 'a field for the time',
  },
  itself: { ...itself, provider: 'Penstock does not look up tags of the task' },
  build: (section, _context, tag = []) => {
    const key = lastValue(section, 'dd_message_key') ?? 'log'
    const set = (name: string, from: string) => {
      const text = lastValue(section, from)
      return text === undefined ? [] : [`.${name} = ${textLiteral(text)}`]
    }
    const config = {
      default_api_key: value(section, 'apikey') ?? '',
      endpoint: serviceAddress(section, 'http-intake.logs.datadoghq.com'),
      compression: lastValue(section, 'compress')?.toLowerCase() === 'gzip' ? 'gzip' : 'none',
      ...connection(section),
    }
    const timeKey = lastValue(section, 'json_date_key')
    const lines = [
      ...(isOn(lastValue(section, 'include_tag_key'), false)
        ? [...tag, `${fieldLiteral([lastValue(section, 'tag_key') ?? 'tagkey'])} = tag`]
        : []),
      ...(timeKey === undefined || /^(?:false|off)$/i.test(timeKey)
        ? []
        : [`${fieldLiteral([timeKey])} = to_unix_timestamp(timestamp(.timestamp) ?? now(), unit: "milliseconds")`]),
      ...set('hostname', 'dd_hostname'),
      `if exists(${fieldLiteral([key])}) { .message = del(${fieldLiteral([key])}) }`,
      ...set('service', 'dd_service'),
      ...set('ddsource', 'dd_source'),
      ...set('ddtags', 'dd_tags'),
    ]
    return { component: { type: 'monitor_a_logs', config }, steps: remap(...lines) }
  },
}

/** Options of a sink that signs its requests for AWS. */
function signing(section: Section, context: Context): Record<string, unknown> {
  if (!isOn(lastValue(section, 'aws_auth'), false)) return {}
  const entry = entriesOf(section, 'aws_service_name').at(-1)
  if (entry !== undefined && !['es', 'aoss'].includes(entry.value)) {
    const reason = `requests are signed for \`es\` or \`aoss\`, but not for \`${entry.value}\``
    context.gap(entry, `aws_service_name ${entry.value}`, reason, 'Choose one of them.')
  }
  const [role, id] = [value(section, 'aws_role_arn'), value(section, 'aws_external_id')]
  return {
    auth: {
      strategy: 'aws',
      ...(role === undefined ? {} : { assume_role: role }),
      ...(id === undefined ? {} : { external_id: id }),
    },
    aws: { region: value(section, 'aws_region') ?? 'us-east-1' },
    // This service does not answer questions about its version.
    ...(entry?.value === 'aoss' ? { opensearch_service_type: 'serverless', api_version: 'v8' } : {}),
  }
}

const stdout: Plugin<SinkPart> = {
  name: 'stdout',
  becomes: '`console`',
  options: { ...local, ...dated, format: '`encoding`' },
  itself: unbuffered,
  build: (section, context) => {
    const format = lastValue(section, 'format') ?? 'msgpack'
    if (format !== 'json_lines')
      context.replaced(
        section,
        `stdout: Format ${format}`,
        'the sink writes lines of JSON, and has no format for people',
        'Nothing to do, unless a program reads the output of the agent.',
      )
    const lines = dateLines(section, context)
    return {
      component: { type: 'console', config: { encoding: body(lastValue(section, 'json_date_key')) } },
      steps: lines.length === 0 ? [] : remap(...lines),
    }
  },
}

const file: Plugin<SinkPart> = {
  name: 'file',
  becomes: '`file`',
  options: {
    ...local,
    path: '`path`',
    file: '`path`; by default the tag',
    format: '`encoding`; a remap transform for all but `plain`',
    template: 'the line',
    delimiter: 'between columns',
    label_delimiter: 'between name and value',
  },
  itself: { ...unbuffered, mkdir: 'the sink creates directories' },
  build: (section, context, tag = []) => {
    const format = (lastValue(section, 'format') ?? 'out_file').toLowerCase()
    const read = (key: string) => lastValue(section, key)
    const columns = { delimiter: read('delimiter'), label: read('label_delimiter'), template: read('template') }
    const lines = format === 'plain' ? [] : fileLines(format, columns, tag)
    if (lines === undefined)
      context.gap(
        section,
        `file: Format ${format}`,
        'the sink has no text format of this kind',
        'The sink writes lines of JSON, as `Format plain` does.',
      )
    const name = read('file')
    const folder = literalTemplate((read('path') ?? '/tmp').replace(/\/$/, ''))
    const named = name === undefined ? [...tag, '%tag = tag'] : []
    const all = [...named, ...(lines ?? [])]
    const isText = lines !== undefined && lines.length > 0
    return {
      component: {
        type: 'file',
        config: {
          path: `${folder}/${name === undefined ? '{{ %tag }}' : literalTemplate(name)}`,
          encoding: isText ? { codec: 'text' } : { codec: 'json', except_fields: ['timestamp'] },
        },
      },
      steps: all.length === 0 ? [] : remap(...all),
    }
  },
}

const nothing: Plugin<SinkPart> = {
  name: 'null',
  becomes: '`blackhole`',
  options: { ...local },
  itself: unbuffered,
  build: () => ({ component: { type: 'blackhole' }, steps: [] }),
}

export const outputs: readonly Plugin<SinkPart>[] = [
  loki,
  grafanaLoki,
  search('es'),
  search('opensearch'),
  http,
  splunk,
  datadog,
  newRelic,
  newRelicPlugin,
  kafkaRest,
  azure,
  stdout,
  file,
  nothing,
]

/** Whether an output writes the tags of records. */
export function readsTag(section: Section): boolean {
  if ((lastValue(section, 'name') ?? '').toLowerCase() === 'file') {
    const format = (lastValue(section, 'format') ?? 'out_file').toLowerCase()
    return lastValue(section, 'file') === undefined || format === 'out_file'
  }
  return isOn(lastValue(section, 'include_tag_key'), false)
}
