// Records in the forms of exporters: the event that the sink gets is what the exporter would have sent.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { lint, withClock } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'

type Options = Readonly<Record<string, unknown>>

function converted(exporter: string, options: Options) {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'], include_file_name: false } },
    exporters: { [exporter]: options },
    // Configurations for tenants contain the hint.
    processors: { attributes: { actions: [{ key: 'loki.tenant', action: 'update', value: 'org' }] } },
    service: { pipelines: { logs: { receivers: ['filelog'], exporters: [exporter] } } },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  const document = draft.document({ name: 'converted' })
  return { document, gaps: draft.gaps, spec: document.toJSON().spec }
}

/** Problems of the Pipeline, and of the event that the sink gets for a record. Without an assertion, it gets none. */
async function sent(exporter: string, options: Options, record: object, assert?: string): Promise<string[]> {
  const { document, gaps, spec } = converted(exporter, options)
  expect(gaps).toEqual([])
  const [at] = spec.sinks[0].inputs
  const form = spec.transforms.find(({ name }: { name: string }) =>
    name.startsWith(`${exporter.replace('_', '-')}-form`),
  )
  const expected = assert === undefined ? { at, count: 0 } : { at, assert }
  const tests = [{ name: 'form', insertAt: withClock(document, form.name), input: { log: record }, expect: [expected] }]
  document.setIn(['spec', 'tests'], tests)
  return lint(String(document))
}

interface Case {
  readonly about: string
  readonly exporter: string
  readonly options: Options
  readonly record: object
  readonly assert?: string
}

const time = '2026-01-01T00:00:00Z'
const loki = {
  endpoint: 'http://loki:3100/loki/api/v1/push',
  default_labels_enabled: { exporter: false, instance: false },
}
const search = (mode: string) => ({ endpoint: 'http://es:9200', logs_index: 'x', mapping: { mode } })
const hec = { endpoint: 'http://hec', token: 't' }

const cases: readonly Case[] = [
  {
    about: 'a line has the application, the level and the attributes that are texts',
    exporter: 'mezmo',
    options: { ingest_key: 'k' },
    record: {
      message: 'hello',
      timestamp: time,
      severity_text: 'WARN',
      trace_id: '0a',
      attributes: { appname: 'shop', n: 1 },
      resource: { attributes: { 'host.name': 'n1' } },
    },
    assert:
      '. == { "timestamp": 1767225600000, "line": "hello", "app": "shop", "level": "WARN", "meta": { "hostname": "n1", "trace.id": "0a", "appname": "shop", "n": "" } }',
  },
  {
    about: 'a line without an application and a level',
    exporter: 'mezmo',
    options: { ingest_key: 'k' },
    record: { message: 'hello', timestamp: time },
    assert: '. == { "timestamp": 1767225600000, "line": "hello", "app": "", "level": "info", "meta": {} }',
  },
  {
    about: 'the label of the level comes from the number, and attributes with a label leave the line',
    exporter: 'loki',
    options: loki,
    record: {
      message: 'x',
      severity_text: 'warning',
      severity_number: 14,
      attributes: {
        'loki.attribute.labels': 'http.method,a.b, 1st',
        'http.method': 'GET',
        a: { b: 2 },
        '1st': true,
        c: '-',
      },
    },
    assert:
      '.labels == {"http_method": "GET", "a_b": "2", "key_1st": "true", "level": "WARN2"} && parse_json!(.message) == {"body": "x", "severity": "warning", "attributes": {"a": {"b": 2}, "c": "-"}}',
  },
  {
    about: 'an attribute with the level comes before the number, and a record without a number has no such label',
    exporter: 'loki',
    options: loki,
    record: { message: 'x', severity_number: 9, attributes: { level: 'notice' } },
    assert: '.labels == {"level": "notice"} && .message == "{\\"body\\":\\"x\\"}"',
  },
  {
    about: 'a record without a severity has no level, and keeps a body of one sign',
    exporter: 'loki',
    options: loki,
    record: { message: '-', severity_text: 'x', attributes: { level: 'notice' } },
    assert:
      '.labels == {} && parse_json!(.message) == {"body": "-", "severity": "x", "attributes": {"level": "notice"}}',
  },
  {
    about: 'hints for attributes are only valid in attributes, and those of the record win',
    exporter: 'loki',
    options: loki,
    record: {
      message: 'x',
      attributes: { 'loki.resource.labels': 'ns', 'loki.attribute.labels': 'app', app: 'a' },
      resource: { attributes: { 'loki.resource.labels': ['app'], app: 'r', ns: 'n', 'loki.attribute.labels': 'no' } },
    },
    assert: '.labels == {"app": "a", "ns": "n"} && .message == "{\\"body\\":\\"x\\"}"',
  },
  {
    about: 'a line in logfmt has the names of the exporter',
    exporter: 'loki',
    options: loki,
    record: {
      message: 'msg=hi user="a b"',
      severity_text: 'INFO',
      attributes: { 'loki.format': 'logfmt', http: { code: 5 } },
      resource: { attributes: { ns: 'n' } },
    },
    assert:
      'parse_logfmt!(.message) == {"msg": "hi", "user": "a b", "severity": "INFO", "attribute_http_code": "5", "resource_ns": "n"}',
  },
  {
    about: 'the format raw sends the body',
    exporter: 'loki',
    options: loki,
    record: { message: { a: 1 }, resource: { attributes: { 'loki.format': 'raw' } } },
    assert: '.message == "{\\"a\\":1}"',
  },
  {
    about: 'the attribute with the tenant becomes a label, and that of the resource wins',
    exporter: 'loki',
    options: loki,
    record: {
      message: 'x',
      attributes: { 'loki.tenant': 'org', org: 'a' },
      resource: { attributes: { 'loki.tenant': 'org', org: 'r' } },
    },
    assert: '.tenant == "r" && .labels == {"org": "r"} && .message == "{\\"body\\":\\"x\\"}"',
  },
  {
    about: 'the mapping ecs gives attributes the names of the schema',
    exporter: 'elasticsearch',
    options: search('ecs'),
    record: {
      message: 'hello',
      timestamp: time,
      severity_text: 'WARN',
      severity_number: 13,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      attributes: { 'exception.message': 'boom', 'event.name': 'login', own: 1 },
      resource: {
        attributes: {
          'k8s.pod.name': 'web-1',
          'host.name': 'n1',
          'os.type': 'darwin',
          'telemetry.sdk.name': 'otel',
          x: 'y',
        },
      },
    },
    assert:
      '.message == "hello" && ."kubernetes.pod.name" == "web-1" && ."host.hostname" == "n1" && ."host.name" == "n1" && ."host.os.platform" == "darwin" && ."host.os.type" == "macos" && ."agent.name" == "otel" && .x == "y" && .own == 1 && ."error.message" == "boom" && ."event.action" == "login" && ."log.level" == "WARN" && ."event.severity" == 13 && ."trace.id" == "0af7651916cd43dd8448eb211c80319c" && ."@timestamp" == t\'2026-01-01T00:00:00Z\' && !exists(."telemetry.sdk.name") && !exists(."k8s.pod.name")',
  },
  {
    about: 'the mapping ecs leaves out a body that is not a text',
    exporter: 'elasticsearch',
    options: search('ecs'),
    record: { message: { a: 1 }, attributes: {} },
    assert: '!exists(.message) && ."agent.name" == "otlp"',
  },
  {
    about: 'the mapping none keeps a body of one sign, and numbers that are zero',
    exporter: 'elasticsearch',
    options: search('none'),
    record: { message: '-', attributes: { empty: '' } },
    assert:
      '.Body == "-" && ."Attributes.empty" == "" && .SeverityNumber == 0 && .TraceFlags == 0 && ."Scope.name" == ""',
  },
  {
    about: 'the mapping bodymap discards records whose body is not an object',
    exporter: 'elasticsearch',
    options: search('bodymap'),
    record: { message: 'text' },
  },
  {
    about: 'a document has the data stream that attributes name, in place of the attributes',
    exporter: 'elasticsearch',
    options: { endpoint: 'http://es:9200', mapping: { mode: 'otel' } },
    record: { message: 'x', attributes: { 'data_stream.dataset': 'web', a: 1 }, resource: { attributes: {} } },
    assert:
      '.data_stream == {"type": "logs", "dataset": "web.otel", "namespace": "default"} && .attributes == {"a": 1} && %index == "logs-web.otel-default"',
  },
  {
    about: 'events of the collector have flat fields, and the ids of the trace',
    exporter: 'splunk_hec',
    options: { ...hec, source: 's' },
    record: {
      message: ' ',
      timestamp: time,
      trace_id: '0af7651916cd43dd8448eb211c80319c',
      attributes: {
        http: { code: 5 },
        list: [1, 2],
        deep: [{ a: 1 }],
        'com.splunk.index': 'i',
        'com.splunk.other': 'o',
      },
      resource: { attributes: { 'host.name': 'n1' } },
    },
    assert:
      '.event == " " && .source == "s" && .index == "i" && .host == "n1" && .fields == {"http.code": 5, "list": [1, 2], "deep": "[{\\"a\\":1}]", "com.splunk.other": "o", "trace_id": "0af7651916cd43dd8448eb211c80319c"}',
  },
  {
    about: 'attributes with other names become parts of the event',
    exporter: 'splunk_hec',
    options: { ...hec, hec_metadata_to_otel_attrs: { sourcetype: 'st', host: 'k8s.node.name' } },
    record: {
      message: 'x',
      attributes: { st: 'kube' },
      resource: { attributes: { 'k8s.node.name': 'n2', 'host.name': 'n1' } },
    },
    assert: '.sourcetype == "kube" && .host == "n2" && .fields == {"host.name": "n1"}',
  },
  {
    about: 'an event without a text is not sent',
    exporter: 'splunk_hec',
    options: hec,
    record: { message: '', attributes: { a: 1 } },
  },
  {
    about: 'tags come from the resource, and the status from the number',
    exporter: 'datadog',
    options: { api: { key: 'k' } },
    record: {
      message: 'body',
      severity_number: 18,
      attributes: { a: '-' },
      resource: {
        attributes: { 'k8s.namespace.name': 'shop', 'service.name': 'web', 'deployment.environment': 'prod' },
      },
    },
    assert:
      '.message == "body" && .status == "error" && .a == "-" && .service == "web" && includes(split!(.ddtags, ","), "kube_namespace:shop") && includes(split!(.ddtags, ","), "env:prod") && includes(split!(.ddtags, ","), "otel_source:datadog_exporter")',
  },
  {
    about: 'attributes with the text and the level come before body and severity',
    exporter: 'datadog',
    options: { api: { key: 'k' } },
    record: { message: 'body', severity_text: 'INFO', attributes: { msg: 'own', level: 'warn' } },
    assert: '.message == "own" && .status == "warn" && ."otel.severity_text" == "INFO"',
  },
]

test.each(cases)('$exporter: $about', async ({ exporter, options, record, assert }) => {
  expect(await sent(exporter, options, record, assert)).toEqual([])
})

test('a Cloud ID contains the address', () => {
  const id = `deployment:${Buffer.from('eu.example.com:9243$abc123$def').toString('base64')}`
  const { spec, gaps } = converted('elasticsearch', { cloudid: id, mapping: { mode: 'none' } })
  expect(gaps).toEqual([])
  expect(spec.sinks[0].config.endpoints).toEqual(['https://abc123.eu.example.com:9243'])
})

test.each([
  { about: 'no address', options: { mapping: { mode: 'none' } }, subject: 'elasticsearch: endpoint' },
  { about: 'no mapping', options: { endpoint: 'http://es' }, subject: 'elasticsearch: mapping.mode' },
])('an exporter with $about uses what the collector uses, and reports it', async ({ options, subject }) => {
  const { document, gaps } = converted('elasticsearch', options)
  expect(gaps.map((gap) => [gap.subject, gap.isReplaced])).toEqual([[subject, true]])
  expect(await lint(String(document))).toEqual([])
})
