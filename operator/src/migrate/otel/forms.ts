// The forms in which exporters write a record. Each form is a program that creates the event that the sink encodes.

import { textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { eventTime as time, unixSeconds } from '../unix-time.ts'
import type { Context } from './mapping.ts'
import { severities } from './record.ts'
import { indent, integersIn } from './text.ts'

export const form = (text: string, ...comments: string[]): readonly Step[] => [
  { type: 'remap', text, ...(comments.length > 0 ? { comments } : {}) },
]

/** The form of an exporter that writes floats without a fraction as integers. */
export const withIntegers = (context: Context, steps: readonly Step[]): readonly Step[] =>
  context.hasFloats
    ? [
        ...form(`. = ${integersIn('.')}`, 'Numbers without a fraction become integers, as the exporter writes them.'),
        ...steps,
      ]
    : steps

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

/** Names of severities by number. */
const levels = Object.keys(severities).flatMap((name) => ['', 2, 3, 4].map((step) => `${name.toUpperCase()}${step}`))

/** Statements that make labels of the attributes that a hint names. A name with dots may be that of a nested attribute. */
const labelLines = (from: string) => [
  'for_each(names) -> |_index, name| {',
  '  key = strip_whitespace(string(name) ?? "")',
  `  value = get(${from}, [key]) ?? null`,
  `  if value == null { value = get(${from}, split(key, ".")) ?? null }`,
  '  if key != "" && value != null {',
  `    label = replace(replace(key, r'[^A-Za-z0-9_]', "_"), r'^([0-9])', "key_$1")`,
  `    labels = set!(labels, [replace(label, r'^_([^_]|$)', "key_$1")], to_string(value) ?? encode_json(value))`,
  '    used = push(used, key)',
  '  }',
  '}',
]

const namesOfHint = 'names = if is_array(hint) { array!(hint) } else { split(to_string(hint) ?? "", ",") }'

/** Statements that read a hint: names in a list, or in a text with commas. */
const hintLines = (hint: string, from: string) => [`hint = get(${from}, [${textLiteral(hint)}]) ?? null`, namesOfHint]

const lokiLine = [
  'line = {}',
  'if .message != null { line.body = .message }',
  'trace = string(.trace_id) ?? ""',
  'span = string(.span_id) ?? ""',
  'severity = string(.severity_text) ?? ""',
  'scope = string(.scope.name) ?? ""',
  'flags = int(.flags) ?? 0',
  'text = ""',
  'if format == "raw" {',
  '  text = if .message == null { "" } else { to_string(.message) ?? encode_json(.message) }',
  '} else if format == "logfmt" {',
  '  line = {}',
  '  if is_string(.message) {',
  '    line = parse_logfmt(.message) ?? { "msg": .message }',
  '    line = map_values(line) -> |value| { if value == true { "" } else { value } }',
  '  } else if is_object(.message) {',
  '    line = flatten(object!(.message), "_")',
  '  } else if .message != null { line.msg = .message }',
  '  if trace != "" { line.traceID = trace }',
  '  if span != "" { line.spanID = span }',
  '  if severity != "" { line.severity = severity }',
  '  if flags != 0 { line.flags = flags }',
  '  line = merge(line, flatten({ "attribute": attributes, "resource": resources }, "_"))',
  '  line = filter(line) -> |_key, value| { value != null && value != {} }',
  '  if scope != "" {',
  '    line.instrumentation_scope_name = scope',
  '    if .scope.version != null { line.instrumentation_scope_version = .scope.version }',
  '  }',
  '  text = encode_logfmt(line)',
  '} else {',
  '  if trace != "" { line.traceid = trace }',
  '  if span != "" { line.spanid = span }',
  '  if severity != "" { line.severity = severity }',
  '  if flags != 0 { line.flags = flags }',
  '  if attributes != {} { line.attributes = attributes }',
  '  if resources != {} { line.resources = resources }',
  '  if scope != "" { line.instrumentation_scope = filter({ "name": scope, "version": .scope.version }) -> |_key, value| { value != null } }',
  '  text = encode_json(line)',
  '}',
]

/**
 * Puts the line of the Loki exporter into `.message`, and the labels that its hints name into `.labels`.
 * @param tenant the tenant for records without the hint `loki.tenant`; if undefined, no record has one
 */
export function lokiForm(
  byDefault: Readonly<Record<'exporter' | 'job' | 'instance' | 'level', boolean>>,
  tenant?: string,
): readonly Step[] {
  return form(
    [
      'resources = object(.resource.attributes) ?? {}',
      'attributes = object(.attributes) ?? {}',
      'labels = {}',
      'used = ["loki.attribute.labels", "loki.resource.labels", "loki.tenant", "loki.format"]',
      ...(byDefault.exporter ? ['labels.exporter = "OTLP"', 'used = push(used, "exporter")'] : []),
      ...(byDefault.job
        ? [
            'job = to_string(get(resources, ["service.name"]) ?? null) ?? ""',
            'area = to_string(get(resources, ["service.namespace"]) ?? null) ?? ""',
            'if job != "" {',
            '  labels.job = if area == "" { job } else { area + "/" + job }',
            '  used = push(used, "job")',
            '}',
          ]
        : []),
      ...(byDefault.instance
        ? [
            'if exists(resources."service.instance.id") {',
            '  labels.instance = resources."service.instance.id"',
            '  used = push(used, "instance")',
            '}',
          ]
        : []),
      ...hintLines('loki.resource.labels', 'resources'),
      ...labelLines('resources'),
      ...hintLines('loki.resource.labels', 'attributes'),
      ...labelLines('resources'),
      ...hintLines('loki.attribute.labels', 'attributes'),
      ...(byDefault.level
        ? [
            'number = int(.severity_number) ?? 0',
            'if number > 0 {',
            '  names = push(names, "level")',
            `  if !exists(attributes.level) { attributes.level = get([${levels.map(textLiteral).join(', ')}], [number - 1]) ?? null }`,
            '}',
          ]
        : []),
      ...labelLines('attributes'),
      'format = get(resources, ["loki.format"]) ?? null',
      'if format == null { format = get(attributes, ["loki.format"]) ?? null }',
      ...(tenant === undefined
        ? []
        : [
            'hint = get(resources, ["loki.tenant"]) ?? null',
            'root = if hint == null { attributes } else { resources }',
            'if hint == null { hint = get(attributes, ["loki.tenant"]) ?? null }',
            'tenant = if hint == null { null } else { get(resources, [hint]) ?? null }',
            'if tenant == null && hint != null { tenant = get(attributes, [hint]) ?? null }',
            `tenant = if is_string(tenant) && tenant != "" { tenant } else { ${textLiteral(tenant)} }`,
            namesOfHint,
            ...labelLines('root'),
          ]),
      'resources = filter(resources) -> |key, _value| { !includes(used, key) }',
      'attributes = filter(attributes) -> |key, _value| { !includes(used, key) }',
      ...lokiLine,
      `. = { "message": text, "labels": labels, "timestamp": .timestamp${tenant === undefined ? '' : ', "tenant": tenant'} }`,
    ].join('\n'),
    'The line and the labels of the exporter `loki`.',
  )
}

const nonEmpty = '-> |_key, value| { value != null && value != "" && value != {} }'

const legacyDocument = [
  'own = filter({ "@timestamp": .timestamp, "Body": .message, "SeverityText": .severity_text, "TraceId": .trace_id, "SpanId": .span_id }) '.concat(
    nonEmpty,
  ),
  'own = merge(own, { "TraceFlags": int(.flags) ?? 0, "SeverityNumber": int(.severity_number) ?? 0, "Scope.name": string(.scope.name) ?? "", "Scope.version": string(.scope.version) ?? "" })',
  'resource = map_keys(object(.resource.attributes) ?? {}) -> |key| { "Resource." + key }',
]

/** The fields of a data stream, if attributes of the record name it. */
const dataStream = 'if exists(%data_stream) { .data_stream = %data_stream }'

/** Names of attributes of the resource in the Elastic Common Schema. An empty name removes the attribute. */
const ecsNames = {
  'service.instance.id': 'service.node.name',
  'deployment.environment': 'service.environment',
  'telemetry.sdk.name': '',
  'telemetry.sdk.language': '',
  'telemetry.sdk.version': '',
  'telemetry.distro.name': '',
  'telemetry.distro.version': '',
  'cloud.platform': 'cloud.service.name',
  'container.image.tags': 'container.image.tag',
  'host.name': 'host.hostname',
  'host.arch': 'host.architecture',
  'process.executable.path': 'process.executable',
  'process.runtime.name': 'service.runtime.name',
  'process.runtime.version': 'service.runtime.version',
  'os.name': 'host.os.name',
  'os.type': 'host.os.platform',
  'os.description': 'host.os.full',
  'os.version': 'host.os.version',
  'k8s.deployment.name': 'kubernetes.deployment.name',
  'k8s.namespace.name': 'kubernetes.namespace',
  'k8s.node.name': 'kubernetes.node.name',
  'k8s.pod.name': 'kubernetes.pod.name',
  'k8s.pod.uid': 'kubernetes.pod.uid',
  'k8s.job.name': 'kubernetes.job.name',
  'k8s.cronjob.name': 'kubernetes.cronjob.name',
  'k8s.statefulset.name': 'kubernetes.statefulset.name',
  'k8s.replicaset.name': 'kubernetes.replicaset.name',
  'k8s.daemonset.name': 'kubernetes.daemonset.name',
  'k8s.container.name': 'kubernetes.container.name',
  'k8s.cluster.name': 'orchestrator.cluster.name',
}

/** The same for attributes of the record. */
const ecsRecordNames = {
  'event.name': 'event.action',
  'exception.message': 'error.message',
  'exception.stacktrace': 'error.stacktrace',
  'exception.type': 'error.type',
  'exception.escaped': 'event.error.exception.handled',
}

const tableLiteral = (table: Readonly<Record<string, string>>) =>
  `{ ${Object.entries(table)
    .map(([name, value]) => `${textLiteral(name)}: ${textLiteral(value)}`)
    .join(', ')} }`

/** Statements that add attributes to `made`, with other names. */
const renamed = (from: string, names: Readonly<Record<string, string>>) => [
  `names = ${tableLiteral(names)}`,
  `for_each(object(${from}) ?? {}) -> |key, value| {`,
  '  name = get(names, [key]) ?? null',
  '  name = if name == null { key } else { string!(name) }',
  '  if name != "" && value != null { made = set!(made, [name], value) }',
  '}',
]

const ecsDocument = [
  'made = {}',
  ...renamed('.resource.attributes', ecsNames),
  'resource = object(.resource.attributes) ?? {}',
  'if exists(resource."host.name") { made."host.name" = resource."host.name" }',
  'made = merge(made, object(.scope.attributes) ?? {})',
  ...renamed('.attributes', ecsRecordNames),
  'agent = string(get(resource, ["telemetry.sdk.name"]) ?? null) ?? "otlp"',
  'language = string(get(resource, ["telemetry.sdk.language"]) ?? null) ?? ""',
  'distribution = string(get(resource, ["telemetry.distro.name"]) ?? null) ?? ""',
  'if distribution != "" && language == "" { language = "unknown" }',
  'made."agent.name" = join!(filter([agent, language, distribution]) -> |_index, part| { part != "" }, "/")',
  'version = get(resource, ["telemetry.distro.version"]) ?? null',
  'if version == null { version = get(resource, ["telemetry.sdk.version"]) ?? null }',
  'system = get({ "windows": "windows", "linux": "linux", "darwin": "macos", "aix": "unix", "hpux": "unix", "solaris": "unix" }, [resource."os.type"]) ?? null',
  'if resource."os.name" == "Android" { system = "android" }',
  'if resource."os.name" == "iOS" { system = "ios" }',
  'number = int(.severity_number) ?? 0',
  'own = { "@timestamp": .timestamp, "agent.version": version, "host.os.type": system, "trace.id": .trace_id, "span.id": .span_id, "log.level": .severity_text }',
  'if number != 0 { own."event.severity" = number }',
  'if is_string(.message) { own.message = .message }',
  `. = merge(made, filter(own) ${nonEmpty})`,
  dataStream,
]

/** Documents for a search engine, by mapping mode of the exporter. */
export const documentForms: Readonly<Record<string, readonly string[]>> = {
  otel: [
    'body = if is_object(.message) { { "structured": .message } } else { { "text": .message } }',
    'own = { "@timestamp": .timestamp, "observed_timestamp": .observed_timestamp, "severity_number": .severity_number, "severity_text": .severity_text, "trace_id": .trace_id, "span_id": .span_id, "body": body, "attributes": .attributes, "resource": .resource, "scope": .scope }',
    `. = filter(own) ${nonEmpty}`,
    'for_each(["data_stream.type", "data_stream.dataset", "data_stream.namespace"]) -> |_index, name| {',
    '  if exists(.attributes) { .attributes = remove!(.attributes, [name]) }',
    '  if exists(.resource.attributes) { .resource.attributes = remove!(.resource.attributes, [name]) }',
    '}',
    dataStream,
  ],
  none: [
    ...legacyDocument,
    'attributes = map_keys(object(.attributes) ?? {}) -> |key| { "Attributes." + key }',
    '. = merge(merge(own, attributes), resource)',
  ],
  raw: [
    ...legacyDocument,
    'attributes = object(.attributes) ?? {}',
    '. = merge(merge(own, resource), attributes)',
    dataStream,
  ],
  ecs: ecsDocument,
  bodymap: ['. = object(.message) ?? {}'],
  ss4o: [
    'own = { "@timestamp": .timestamp, "observedTimestamp": .observed_timestamp, "severity": { "number": .severity_number, "text": .severity_text }, "traceId": .trace_id, "spanId": .span_id, "body": .message, "attributes": .attributes, "resource": .resource.attributes, "instrumentationScope": .scope }',
    `. = filter(own) ${nonEmpty}`,
  ],
}

/** Attributes that become parts of an event of the HTTP event collector. */
export interface EventNames {
  readonly source: string
  readonly sourcetype: string
  readonly index: string
  readonly host: string
}

/** Events of the HTTP event collector, which rejects events without a text, and fields that are not flat. */
export function hecForm(
  fixed: Readonly<Record<'source' | 'sourcetype' | 'index', string | undefined>>,
  severity: Readonly<Record<'text' | 'number', string>>,
  from: EventNames,
): readonly Step[] {
  const named = Object.entries(fixed).map(([name, value]) => {
    const attribute = textLiteral(from[name as keyof EventNames])
    const byDefault = value === undefined ? 'null' : textLiteral(value)
    return `${name} = if exists(facts.${attribute}) { facts.${attribute} } else { ${byDefault} }`
  })
  const taken = [...Object.values(from), 'com.splunk.hec.access_token'].map((name) => textLiteral(name))
  const host = textLiteral(from.host)
  return [
    { type: 'filter', text: '.message != null && .message != ""' },
    ...form(
      [
        'facts = merge(object(.resource.attributes) ?? {}, object(.attributes) ?? {})',
        ...named,
        `fields = flatten(filter(facts) -> |key, _value| { !includes([${taken.join(', ')}], key) })`,
        'fields = map_values(fields) -> |value| {',
        "  isNested = is_array(value) && match(encode_json(value), r'^\\[.*[\\[{]')",
        '  if isNested { encode_json(value) } else { value }',
        '}',
        'if !is_nullish(.trace_id) { fields.trace_id = .trace_id }',
        'if !is_nullish(.span_id) { fields.span_id = .span_id }',
        `if exists(.severity_text) && .severity_text != "" { fields.${textLiteral(severity.text)} = .severity_text }`,
        `if is_integer(.severity_number) && .severity_number != 0 { fields.${textLiteral(severity.number)} = .severity_number }`,
        `fields = filter(fields) ${nonEmpty}`,
        `time = ${unixSeconds(time)}`,
        `host = if exists(facts.${host}) { facts.${host} } else { "unknown" }`,
        'made = { "time": time, "host": host, "source": source, "sourcetype": sourcetype, "index": index, "event": .message, "fields": fields }',
        `. = filter(made) ${nonEmpty}`,
      ].join('\n'),
      'The event in the form of the exporter `splunk_hec`.',
    ),
  ]
}

/** Tags of Datadog by attributes of the resource. */
const datadogTags = {
  'deployment.environment': 'env',
  'deployment.environment.name': 'env',
  'service.name': 'service',
  'service.version': 'version',
  'container.id': 'container_id',
  'container.name': 'container_name',
  'container.image.name': 'image_name',
  'container.image.tag': 'image_tag',
  'cloud.provider': 'cloud_provider',
  'cloud.region': 'region',
  'cloud.availability_zone': 'zone',
  'k8s.container.name': 'kube_container_name',
  'k8s.cluster.name': 'kube_cluster_name',
  'k8s.deployment.name': 'kube_deployment',
  'k8s.replicaset.name': 'kube_replica_set',
  'k8s.statefulset.name': 'kube_stateful_set',
  'k8s.daemonset.name': 'kube_daemon_set',
  'k8s.job.name': 'kube_job',
  'k8s.cronjob.name': 'kube_cronjob',
  'k8s.namespace.name': 'kube_namespace',
  'k8s.pod.name': 'pod_name',
  'app.kubernetes.io/name': 'kube_app_name',
  'app.kubernetes.io/instance': 'kube_app_instance',
  'app.kubernetes.io/version': 'kube_app_version',
  'app.kubernetes.io/component': 'kube_app_component',
  'app.kubernetes.io/part-of': 'kube_app_part_of',
  'app.kubernetes.io/managed-by': 'kube_app_managed_by',
}

/** Events for Datadog: the line, attributes, and tags from the resource. */
export const datadogForm: readonly Step[] = form(
  [
    'resource = object(.resource.attributes) ?? {}',
    'attributes = object(.attributes) ?? {}',
    `names = ${tableLiteral(datadogTags)}`,
    'tags = []',
    'for_each(resource) -> |key, value| {',
    '  name = get(names, [key]) ?? null',
    '  text = to_string(value) ?? ""',
    '  if name != null && text != "" { tags = push(tags, string!(name) + ":" + text) }',
    '}',
    'tags = push(unique(tags), "otel_source:datadog_exporter")',
    'message = null',
    'status = null',
    'for_each(attributes) -> |key, value| {',
    '  name = downcase(key)',
    '  if includes(["msg", "message", "log"], name) { message = to_string(value) ?? encode_json(value) }',
    '  if includes(["status", "severity", "level", "syslog.severity"], name) { status = to_string(value) ?? encode_json(value) }',
    '  if name == "ddtags" { tags = push(tags, to_string(value) ?? "") }',
    '}',
    'number = int(.severity_number) ?? 0',
    'if is_nullish(status) { status = .severity_text }',
    'if is_nullish(status) && number > 0 {',
    '  status = get(["trace", "debug", "info", "warn", "error", "fatal"], [to_int((number - 1) / 4)]) ?? null',
    '}',
    'made = merge(resource, attributes)',
    'made.message = if is_nullish(message) { .message } else { message }',
    'made.timestamp = .timestamp',
    'made.status = status',
    'made.service = get(resource, ["service.name"]) ?? null',
    'made.hostname = get(resource, ["host.name"]) ?? null',
    'made.ddtags = join!(tags, ",")',
    'made."otel.severity_text" = .severity_text',
    'if number > 0 { made."otel.severity_number" = to_string(number) }',
    'made."otel.trace_id" = .trace_id',
    'made."otel.span_id" = .span_id',
    `. = filter(made) ${nonEmpty}`,
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
    `. = filter(made) ${nonEmpty}`,
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
    `. = filter(row) ${nonEmpty}`,
  ].join('\n'),
  'The row in the form of the exporter `clickhouse`.',
)
