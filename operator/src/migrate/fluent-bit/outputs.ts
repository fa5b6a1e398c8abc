// Converts Fluent Bit outputs to sinks. If the form that the output sends differs from the record, such as in the time field, a transform
// before the sink produces it.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import { unixSeconds } from '../unix-time.ts'
import {
  addressOf,
  always,
  compressed,
  connection,
  itself,
  local,
  login,
  remap,
  rooted,
  secret,
  serviceAddress,
  unbuffered,
  value,
} from './connection.ts'
import { azure, kafkaRest } from './envelopes.ts'
import { grafanaLoki } from './grafana-loki.ts'
import { chronicle, logDna } from './ingestion.ts'
import { fileLines, lokiLines } from './lines.ts'
import { lokiLabels, metadataOf } from './loki-labels.ts'
import { newRelic, newRelicPlugin } from './new-relic.ts'
import type { Context, Plugin, SinkPart } from './plugin.ts'
import { expressed, hasTag } from './record-accessor.ts'
import { prefixAccessor, search } from './search.ts'
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
    remove_keys:
      '`encoding.except_fields`, together with the fields of `labels`, `label_keys` and metadata, as in Fluent Bit',
    line_format:
      '`encoding.codec`; a remap transform for `key_value`, which writes objects below the second level as JSON',
    drop_single_key: 'a remap transform',
    structured_metadata: '`structured_metadata`',
    structured_metadata_map_keys: '`structured_metadata` with a name for all members',
    header: '`request.headers`',
    tenant_id: '`tenant_id`',
    tenant_id_key: '`tenant_id` from a field; `Tenant_ID` for events without it',
    bearer_token: '`auth`',
    compress: '`compression`',
  },
  itself: {
    ...itself,
    label_map_path: {
      how: '`labels` of the sink',
      unless: /./,
      reason: 'the file with the names of labels cannot be read, or is not an object whose texts are names',
      nearest: 'Put the file next to the configuration, and convert again; or add the labels to `labels` of the sink.',
    },
  },
  build: (section, context, tag = []) => {
    const format = lastValue(section, 'line_format') ?? 'json'
    const single = lastValue(section, 'drop_single_key')
    const dropped = isOn(single, false) || single === 'raw' ? single : undefined
    const isText = format !== 'json' || dropped !== undefined
    const tenantKey = accessor(lastValue(section, 'tenant_id_key') ?? '')
    const tenant = value(section, 'tenant_id')
    const { values: metadata, lines: ofMetadata, fields: inMetadata } = metadataOf(section, context)
    const { values: labels, lines: ofLabels, fields: inLabels } = lokiLabels(section, context)
    const named = [...ofLabels, ...ofMetadata]
    const removed = removedKeys(section, [...inLabels, ...inMetadata])
    const lines = [
      ...tag,
      ...named,
      ...(tenantKey === undefined
        ? []
        : [
            // Only texts are names of tenants.
            `%tenant = string(${fieldLiteral(tenantKey)}) ?? ${textLiteral(lastValue(section, 'tenant_id') ?? '')}`,
          ]),
      ...(isText ? lokiLines(format, dropped, removed) : []),
    ]
    const token = value(section, 'bearer_token')
    const { request, ...others } = connection(section)
    const config = {
      endpoint: addressOf(section, '3100', ''),
      ...(lastValue(section, 'uri') === undefined ? {} : { path: rooted(value(section, 'uri') ?? '') }),
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
      ...compressed(section, context),
      ...others,
      ...withHeaders(request, headersOf(section)),
      ...(token === undefined ? {} : { auth: { strategy: 'bearer', token } }),
    }
    return { component: { type: 'log_aggregator', config }, steps: lines.length === 0 ? [] : remap(...lines) }
  },
}

/**
 * Fields that the line does not contain. With `Remove_Keys`, Fluent Bit also removes the fields that it sends as labels or metadata;
 * without the option, it removes none.
 */
function removedKeys(section: Section, sent: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const keys = entriesOf(section, 'remove_keys').flatMap((entry) => entry.value.split(','))
  const named = keys.flatMap((key) => {
    const path = accessor(key.trim())
    return path === undefined ? [] : [path]
  })
  if (named.length === 0) return []
  const isWithin = (path: readonly string[], outer: readonly string[]) =>
    outer.every((part, index) => path[index] === part)
  const all = [...named, ...sent]
  return all.filter(
    (path, index) => !all.some((other, at) => isWithin(path, other) && (other.length < path.length || at < index)),
  )
}

/** The headers that `Header` sets. */
const headersOf = (section: Section): Record<string, string> =>
  Object.fromEntries(
    entriesOf(section, 'header').map((entry) => {
      const found = /^(\S+)\s+(.*)$/s.exec(secret(entry.value))
      return [found?.[1] ?? entry.value, found?.[2] ?? '']
    }),
  )

/** The option `request` with headers; empty if there is neither. */
const withHeaders = (request: unknown, headers: Readonly<Record<string, string>>) =>
  request === undefined && Object.keys(headers).length === 0
    ? {}
    : { request: { ...(request as object | undefined), ...(Object.keys(headers).length > 0 ? { headers } : {}) } }

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
    header_tag: 'a header with the tag; a gap if records have different tags',
  },
  itself: {
    ...itself,
    allow_duplicated_headers: 'a header has one value',
    body_key: {
      how: 'a request contains the records',
      unless: /./,
      reason:
        'Fluent Bit sends a field of each record as a request with headers from another field; headers of the sink are the same for all events',
      nearest:
        'With headers that are the same for all events, put the field into `.message`, and set `encoding: {codec: text}`, `batch: {max_events: 1}` and `request.headers` of the sink.',
    },
    headers_key: {
      how: 'headers are those of `Header`',
      unless: /./,
      reason: 'headers of the sink are the same for all events',
      nearest: 'Set `request.headers` of the sink.',
    },
  },
  build: (section, context, tag = []) => {
    const format = lastValue(section, 'format') ?? 'msgpack'
    const isLines = format === 'json_lines' || format === 'json_stream'
    if (format !== 'json' && !isLines) {
      context.gap(
        entriesOf(section, 'format').at(-1) ?? section,
        `http: Format ${format}`,
        `the sink does not support the format \`${format}\``,
        'The sink writes a JSON array; configure the receiver to read it.',
      )
    }
    const headers = headersOf(section)
    const named = entriesOf(section, 'header_tag').at(-1)
    if (named !== undefined) {
      const only = /^tag = ("(?:[^"\\]|\\.)*")$/.exec(tag.join('\n'))?.[1]
      if (only === undefined)
        context.gap(
          named,
          `http: header_tag ${named.value}`,
          'a header has the same text for all events, but their tags differ',
          'Add the tag to the event in a remap transform.',
        )
      else headers[named.value] = String(JSON.parse(only))
    }
    const { request, ...others } = connection(section)
    const config = {
      uri: literalTemplate(addressOf(section, '80', value(section, 'uri') ?? '/')),
      ...(lastValue(section, 'http_method') === undefined
        ? {}
        : { method: lastValue(section, 'http_method')?.toLowerCase() }),
      encoding: body(lastValue(section, 'json_date_key')),
      ...(isLines ? { framing: { method: 'newline_delimited' } } : {}),
      ...compressed(section, context, ['gzip', 'snappy', 'zstd']),
      ...others,
      ...withHeaders(request, headers),
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
    ...login,
    splunk_token: 'a header, unless `HTTP_User` is set',
    splunk_send_raw: 'whether to put the record into `event`',
    compress: '`compression`',
    event_host: 'a field',
    event_source: 'a field',
    event_sourcetype: 'a field',
    event_index: 'a field',
    event_sourcetype_key: 'a field; `Event_Sourcetype` for records without it',
    event_index_key: 'a field; `Event_Index` for records without it',
    event_key: 'the text in `event`; the whole record for records without it',
    event_field: 'a member of `fields`',
    channel: 'a header',
  },
  itself: {
    ...itself,
    http_buffer_size: 'the sink reads responses without a size option',
    http_debug_bad_request: 'the agent logs errors with their responses',
  },
  build: (section, context, tag = []) => {
    const time = `"time": ${unixSeconds()}`
    const origin = splunkOrigin(section, context)
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
    const raw = isOn(lastValue(section, 'splunk_send_raw'), false)
    const channel = value(section, 'channel')
    const { request, ...others } = connection(section)
    const token =
      others['auth'] === undefined ? { Authorization: `Splunk ${value(section, 'splunk_token') ?? ''}` } : {}
    const config = {
      uri: literalTemplate(addressOf(section, '8088', '/services/collector/event')),
      encoding: { codec: 'json', ...(raw ? { except_fields: ['timestamp'] } : {}) },
      framing: { method: 'newline_delimited' },
      ...compressed(section, context),
      ...others,
      ...withHeaders(request, { ...token, ...(channel === undefined ? {} : { 'X-Splunk-Request-Channel': channel }) }),
    }
    const event = splunkEvent(section)
    const more =
      members.length === 0 ? [] : [`"fields": filter({ ${members.join(', ')} }) -> |_key, value| { value != null }`]
    const sent = `{ ${[time, '"event": event', ...more].join(', ')} }`
    // Fluent Bit leaves out members without a text.
    const whole = origin.length === 0 ? sent : `merge(${sent}, filter(origin) -> |_key, value| { value != "" })`
    const lines = [...tag, 'event = .', 'del(event.timestamp)', ...event, ...origin, `. = ${whole}`]
    return { component: { type: 'http', config }, steps: raw ? [] : remap(...lines) }
  },
}

/** Lines that replace the record by one of its fields, and remove fields. */
function splunkEvent(section: Section): readonly string[] {
  const [key, whole] = ['event_key', 'event_value'].map((name) => accessor(lastValue(section, name) ?? ''))
  const removed = entriesOf(section, 'event_remove').flatMap((entry) => {
    const path = accessor(entry.value)
    return path === undefined ? [] : [`del(event${fieldLiteral(path)})`]
  })
  // Fluentd, whose conversion sets `event_value`, keeps the type of the value.
  if (whole !== undefined) {
    const field = fieldLiteral(whole)
    return [`if exists(${field}) { event = ${field} }`, ...removed]
  }
  if (key === undefined) return removed
  const field = fieldLiteral(key)
  return [`text = to_string(${field}) ?? encode_json(${field})`, 'if text != "" { event = text }', ...removed]
}

/** Lines that set `origin`. Members of a key precede fixed ones; a host and a source may have placeholders. */
function splunkOrigin(section: Section, context: Context): readonly string[] {
  const textAt = (name: string, isAccessed: boolean): string | undefined => {
    const entry = entriesOf(section, name).at(-1)
    if (entry === undefined) return undefined
    // Outputs of Fluentd, which share this mapping, keep texts with placeholders in a field of this name.
    if (entry.value === `%${name}`) return entry.value
    context.variables(entry, `splunk: ${name}`, entry.value)
    if (!isAccessed) return textOf(entry.value, context.readsEnvironment)
    const found = expressed(entry.value, context.readsEnvironment)
    const reason = 'a program cannot refer to the field'
    if (found === undefined)
      context.gap(entry, `splunk: ${name} ${entry.value}`, reason, 'Set the member in the transform.')
    return found
  }
  const lines = ['host', 'source', 'sourcetype', 'index'].flatMap((name) => {
    const key = textAt(`event_${name}_key`, true)
    const fixed = textAt(`event_${name}`, name === 'host' || name === 'source')
    if (key === undefined && fixed === undefined) return []
    if (key === undefined) return [`origin.${name} = ${fixed}`]
    return [`origin.${name} = ${key}`, `if origin.${name} == "" { origin.${name} = ${fixed ?? '""'} }`]
  })
  return lines.length === 0 ? [] : ['origin = {}', ...lines]
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
    header: '`request.headers`',
  },
  itself: {
    ...itself,
    provider: {
      how: 'fields keep their names',
      unless: /^ecs$/i,
      reason: 'the sink sends the fields of a task under their names, and not as tags',
      nearest: 'Set `.ddtags` in a remap transform, such as `container_name:` with the field of that name.',
    },
  },
  build: (section, context, tag = []) => {
    const key = lastValue(section, 'dd_message_key') ?? 'log'
    const set = (name: string, from: string) => {
      const entry = entriesOf(section, from).at(-1)
      if (entry === undefined) return []
      context.variables(entry, `datadog: ${from}`, entry.value)
      return [`.${name} = ${textOf(entry.value, context.readsEnvironment)}`]
    }
    const { request, ...others } = connection(section)
    const config = {
      default_api_key: value(section, 'apikey') ?? '',
      endpoint: serviceAddress(section, 'http-intake.logs.datadoghq.com'),
      compression: compressed(section, context).compression ?? 'none',
      ...others,
      ...withHeaders(request, headersOf(section)),
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
    const path = read('path')
    const folder = path === undefined ? '' : `${literalTemplate(path.replace(/\/$/, ''))}/`
    if (path === undefined && name?.startsWith('/') !== true) {
      const reason =
        'without `Path`, Fluent Bit writes below its working directory, and the sink below that of the agent'
      context.replaced(section, 'file: no Path', reason, 'Set `Path`, and convert again.')
    }
    const named = name === undefined ? [...tag, '%tag = tag'] : []
    const all = [...named, ...(lines ?? [])]
    const isText = lines !== undefined && lines.length > 0
    return {
      component: {
        type: 'file',
        config: {
          path: `${folder}${name === undefined ? '{{ %tag }}' : literalTemplate(name)}`,
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
  logDna,
  chronicle,
  stdout,
  file,
  nothing,
]

/** Options whose texts may refer to the tag. */
const accessed: readonly string[] = [
  ...['labels', 'structured_metadata', 'index', 'target_index'],
  ...['event_host', 'event_source', 'event_sourcetype_key', 'event_index_key'],
]

/** Whether an output writes the tags of records. */
export function readsTag(section: Section): boolean {
  if ((lastValue(section, 'name') ?? '').toLowerCase() === 'file') {
    const format = (lastValue(section, 'format') ?? 'out_file').toLowerCase()
    return lastValue(section, 'file') === undefined || format === 'out_file'
  }
  return (
    isOn(lastValue(section, 'include_tag_key'), false) ||
    lastValue(section, 'header_tag') !== undefined ||
    hasTag(prefixAccessor(lastValue(section, 'logstash_prefix_key') ?? '')) ||
    section.entries.some(({ key, value }) => accessed.includes(key) && hasTag(value))
  )
}
