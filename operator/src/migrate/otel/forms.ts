// The forms in which exporters write a record. Each form is a program that creates the event that the sink encodes.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { eventTime as time, unixSeconds } from '../unix-time.ts'
import { indent } from './text.ts'

export const form = (text: string, ...comments: string[]): readonly Step[] => [
  { type: 'remap', text, ...(comments.length > 0 ? { comments } : {}) },
]

/** The record's time. Texts, numbers and missing times are replaced by the current time. */
const nanoseconds = (field: string) => `to_string(to_unix_timestamp(timestamp(${field}) ?? now(), unit: "nanoseconds"))`

/** Statements that put a value into `made` in OTLP's JSON form. Below the depth limit, objects and lists become text. */
function anyValue(value: string, depth: number): string {
  const made = `made${depth}`
  const branches = [
    `${made} = if is_string(${value}) { { "stringValue": ${value} } } `,
    `else if is_integer(${value}) { { "intValue": ${value} } } `,
    `else if is_float(${value}) { { "doubleValue": ${value} } } `,
    `else if is_boolean(${value}) { { "boolValue": ${value} } } `,
  ]
  const item = `item${depth}`
  if (depth > 0) {
    branches.push(
      `else if is_object(${value}) {\n  { "kvlistValue": { "values": map_values(to_entries(object!(${value}))) -> |${item}| {\n`,
      `${indent(indent(anyValue(`${item}.value`, depth - 1)))}\n    { "key": ${item}.key, "value": made${depth - 1} }\n  } } }\n} `,
      `else if is_array(${value}) {\n  { "arrayValue": { "values": map_values(array!(${value})) -> |${item}| {\n`,
      `${indent(indent(anyValue(item, depth - 1)))}\n    made${depth - 1}\n  } } }\n} `,
    )
  }
  branches.push(`else { { "stringValue": to_string(${value}) ?? encode_json(${value}) } }`)
  return branches.join('')
}

const depth = 3

/** One OTLP `ResourceLogs` message in JSON. */
export const otlpJson: readonly Step[] = form(
  [
    'lists = map_values({ "record": .attributes, "resource": .resource.attributes, "scope": .scope.attributes, "body": { "text": .message } }) -> |part| {',
    '  map_values(to_entries(object(part) ?? {})) -> |item| {',
    indent(indent(anyValue('item.value', depth))),
    `    { "key": item.key, "value": made${depth} }`,
    '  }',
    '}',
    'body = if .message == null { null } else { lists.body[0].value }',
    '# A receiver rejects the whole request if an id is not valid.',
    'trace = if match(to_string(.trace_id) ?? "", r\'^[0-9a-fA-F]{32}$\') { .trace_id } else { null }',
    'span = if match(to_string(.span_id) ?? "", r\'^[0-9a-fA-F]{16}$\') { .span_id } else { null }',
    'record = filter({',
    `  "timeUnixNano": ${nanoseconds('.timestamp')},`,
    `  "observedTimeUnixNano": ${nanoseconds('.observed_timestamp')},`,
    '  "severityNumber": .severity_number,',
    '  "severityText": .severity_text,',
    '  "body": body,',
    '  "attributes": lists.record,',
    '  "traceId": trace,',
    '  "spanId": span,',
    '  "flags": .flags,',
    '  "eventName": .event_name,',
    '}) -> |_key, value| { value != null && value != "" }',
    'scope = filter({ "name": .scope.name, "version": .scope.version, "attributes": lists.scope }) -> |_key, value| { value != null && value != [] }',
    '. = { "resource": { "attributes": lists.resource }, "scopeLogs": [{ "scope": scope, "logRecords": [record] }] }',
  ].join('\n'),
  'One OTLP message in JSON. Objects and lists below the third level become JSON text.',
)

/** The unchanged fields of the record, without empty ones. */
export const plain: readonly Step[] = form(
  '. = filter(.) -> |_key, value| { value != null && value != "" && value != {} }',
  'The non-empty parts of the record.',
)

/**
 * Puts the line of the Loki exporter into `.message`, and the labels that its hints name into `.labels`.
 * @param tenant the tenant for records without the hint `loki.tenant`; if undefined, no record has one
 */
export function lokiForm(
  byDefault: Readonly<Record<'exporter' | 'job' | 'instance' | 'level', boolean>>,
  tenant?: string,
): readonly Step[] {
  const hinted = (hint: string, from: string) => [
    `for_each(split(to_string(get(hints, [${textLiteral(hint)}]) ?? null) ?? "", ",")) -> |_index, name| {`,
    '  key = strip_whitespace(name)',
    `  value = get(${from}, [key]) ?? null`,
    '  if key != "" && value != null {',
    `    labels = set!(labels, [replace(key, r'[^A-Za-z0-9_]', "_")], value)`,
    '    used = push(used, key)',
    '  }',
    '}',
  ]
  const rest = (name: string) =>
    `${name} = filter(${name}) -> |key, _value| { !starts_with(key, "loki.") && !includes(used, key) }`
  return form(
    [
      'resources = object(.resource.attributes) ?? {}',
      'attributes = object(.attributes) ?? {}',
      'hints = merge(resources, attributes)',
      'labels = {}',
      'used = []',
      ...(byDefault.exporter ? ['labels.exporter = "OTLP"'] : []),
      ...(byDefault.job
        ? [
            'job = to_string(get(resources, ["service.name"]) ?? null) ?? ""',
            'area = to_string(get(resources, ["service.namespace"]) ?? null) ?? ""',
            'if job != "" { labels.job = if area == "" { job } else { area + "/" + job } }',
          ]
        : []),
      ...(byDefault.instance
        ? ['if exists(resources."service.instance.id") { labels.instance = resources."service.instance.id" }']
        : []),
      ...(byDefault.level ? ['if !is_nullish(.severity_text) { labels.level = .severity_text }'] : []),
      ...hinted('loki.attribute.labels', 'attributes'),
      ...hinted('loki.resource.labels', 'resources'),
      'format = to_string(get(hints, ["loki.format"]) ?? null) ?? ""',
      rest('resources'),
      rest('attributes'),
      'scope = filter({ "name": .scope.name, "version": .scope.version }) -> |_key, value| { value != null }',
      'line = filter({ "body": .message, "traceid": .trace_id, "spanid": .span_id, "severity": .severity_text, "flags": .flags, "attributes": attributes, "resources": resources, "instrumentation_scope": scope }) -> |_key, value| { !is_nullish(value) && value != {} }',
      'text = if format == "raw" { to_string(.message) ?? encode_json(.message) } else if format == "logfmt" { encode_logfmt(line) } else { encode_json(line) }',
      ...(tenant === undefined
        ? ['. = { "message": text, "labels": labels, "timestamp": .timestamp }']
        : [
            'name = to_string(get(hints, ["loki.tenant"]) ?? null) ?? ""',
            `tenant = to_string(get(hints, [name]) ?? null) ?? ""`,
            `if tenant == "" { tenant = ${textLiteral(tenant)} }`,
            '. = { "message": text, "labels": labels, "timestamp": .timestamp, "tenant": tenant }',
          ]),
    ].join('\n'),
    'The line and the labels of the exporter `loki`.',
  )
}

/** Documents for a search engine, by mapping mode of the exporter. */
export const documentForms: Readonly<Record<string, readonly string[]>> = {
  otel: [
    'body = if is_object(.message) { { "structured": .message } } else { { "text": .message } }',
    '. = { "@timestamp": .timestamp, "observed_timestamp": .observed_timestamp, "severity_number": .severity_number, "severity_text": .severity_text, "trace_id": .trace_id, "span_id": .span_id, "body": body, "attributes": .attributes, "resource": .resource, "scope": .scope }',
  ],
  none: [
    'attributes = map_keys(object(.attributes) ?? {}) -> |key| { "Attributes." + key }',
    'resource = map_keys(object(.resource.attributes) ?? {}) -> |key| { "Resource." + key }',
    'own = { "@timestamp": .timestamp, "Body": .message, "SeverityNumber": .severity_number, "SeverityText": .severity_text, "TraceId": .trace_id, "SpanId": .span_id, "Scope.name": .scope.name, "Scope.version": .scope.version }',
    '. = merge(merge(own, attributes), resource)',
  ],
  raw: [
    'attributes = object(.attributes) ?? {}',
    'resource = map_keys(object(.resource.attributes) ?? {}) -> |key| { "Resource." + key }',
    'own = { "@timestamp": .timestamp, "Body": .message, "SeverityNumber": .severity_number, "SeverityText": .severity_text, "TraceId": .trace_id, "SpanId": .span_id, "Scope.name": .scope.name, "Scope.version": .scope.version }',
    '. = merge(merge(own, attributes), resource)',
  ],
  bodymap: ['if is_object(.message) { . = object!(.message) }'],
  ss4o: [
    '. = { "@timestamp": .timestamp, "observedTimestamp": .observed_timestamp, "severity": { "number": .severity_number, "text": .severity_text }, "traceId": .trace_id, "spanId": .span_id, "body": .message, "attributes": .attributes, "resource": .resource.attributes, "instrumentationScope": .scope }',
  ],
}

export const withoutEmpty = '. = filter(.) -> |_key, value| { !is_nullish(value) && value != {} }'

/** Events of the HTTP event collector. */
export function hecForm(
  fixed: Readonly<Record<'source' | 'sourcetype' | 'index', string | undefined>>,
  severity: Readonly<Record<'text' | 'number', string>>,
): readonly Step[] {
  const named = Object.entries(fixed).map(([name, value]) => {
    const from = `get(facts, [${textLiteral(`com.splunk.${name}`)}]) ?? null`
    const byDefault = value === undefined ? 'null' : textLiteral(value)
    return `${name} = if exists(facts."com.splunk.${name}") { ${from} } else { ${byDefault} }`
  })
  return form(
    [
      'facts = merge(object(.resource.attributes) ?? {}, object(.attributes) ?? {})',
      ...named,
      'fields = filter(facts) -> |key, _value| { !starts_with(key, "com.splunk.") && key != "host.name" }',
      `if !is_nullish(.severity_text) { fields.${textLiteral(severity.text)} = .severity_text }`,
      `if is_integer(.severity_number) { fields.${textLiteral(severity.number)} = .severity_number }`,
      `time = ${unixSeconds(time)}`,
      'host = if exists(facts."host.name") { facts."host.name" } else { "unknown" }',
      '. = { "time": time, "host": host, "source": source, "sourcetype": sourcetype, "index": index, "event": .message, "fields": fields }',
      withoutEmpty,
    ].join('\n'),
    'The event in the form of the exporter `splunk_hec`.',
  )
}

/** Events for Datadog: the line, attributes, and tags from the resource. */
export const datadogForm: readonly Step[] = form(
  [
    'resource = object(.resource.attributes) ?? {}',
    'tags = []',
    'environment = get(resource, ["deployment.environment.name"]) ?? null',
    'if environment == null { environment = get(resource, ["deployment.environment"]) ?? null }',
    'if environment != null { tags = push(tags, "env:" + (to_string(environment) ?? "")) }',
    'version = get(resource, ["service.version"]) ?? null',
    'if version != null { tags = push(tags, "version:" + (to_string(version) ?? "")) }',
    'made = merge(resource, object(.attributes) ?? {})',
    'made.message = .message',
    'made.timestamp = .timestamp',
    'made.status = .severity_text',
    'made.service = get(resource, ["service.name"]) ?? null',
    'made.hostname = get(resource, ["host.name"]) ?? null',
    'if tags != [] { made.ddtags = join!(tags, ",") }',
    `. = filter(made) -> |_key, value| { !is_nullish(value) }`,
  ].join('\n'),
  'The event in the form of the exporter `datadog`.',
)

/** JSON lines for VictoriaLogs, with the attribute names of its OTLP endpoint. */
export const victoriaForm: readonly Step[] = form(
  [
    'made = merge(object(.resource.attributes) ?? {}, object(.attributes) ?? {})',
    'made._msg = to_string(.message) ?? encode_json(.message)',
    'made._time = .timestamp',
    'made.severity = .severity_text',
    'made.trace_id = .trace_id',
    'made.span_id = .span_id',
    '. = filter(made) -> |_key, value| { !is_nullish(value) }',
  ].join('\n'),
  'The record in the form that VictoriaLogs stores.',
)

/** A row of the table that the ClickHouse exporter creates, with maps of texts. */
export const clickhouseForm: readonly Step[] = form(
  [
    'texts = map_values({ "record": .attributes, "resource": .resource.attributes, "scope": .scope.attributes }) -> |part| {',
    '  map_values(object(part) ?? {}) -> |value| { to_string(value) ?? encode_json(value) }',
    '}',
    `row = { "Timestamp": ${time}, "TraceId": .trace_id, "SpanId": .span_id, "TraceFlags": .flags, "SeverityText": .severity_text, "SeverityNumber": .severity_number, "ServiceName": get(texts, ["resource", "service.name"]) ?? null, "ScopeName": .scope.name, "ScopeVersion": .scope.version }`,
    'row.Body = to_string(.message) ?? encode_json(.message)',
    'row.ResourceAttributes = texts.resource',
    'row.ScopeAttributes = texts.scope',
    'row.LogAttributes = texts.record',
    '. = filter(row) -> |_key, value| { !is_nullish(value) }',
  ].join('\n'),
  'The row in the form of the exporter `clickhouse`.',
)
