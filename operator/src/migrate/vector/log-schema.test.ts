// The setting `log_schema`: programs see the fields under the old names, and sinks deliver the same as before.

import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'
import { vectorTrial } from './trial.ts'

const schema =
  'log_schema: { message_key: msg, timestamp_key: "@timestamp", host_key: meta.host, source_type_key: .kind }\n'
const convert = (text: string) => converted(convertVector, [{ file: 'v.yaml', text }])
const sinkOf = (options: string) =>
  convert(`${schema}sources: { s: { type: kubernetes_logs } }\nsinks: { out: { inputs: [s], ${options} } }\n`)

test('programs see the fields of a source under the names of the setting', async () => {
  const { document, resource, gaps } = convert(`${schema}
sources: { s: { type: kubernetes_logs } }
transforms: { p: { type: remap, inputs: [s], source: '.length = length(string!(.msg)) + length(string!(.meta.host))' } }
sinks: { out: { type: console, inputs: [p], encoding: { codec: json } } }
`)
  expect(gaps).toMatchObject([{ subject: 'log_schema', isReplaced: true }])
  const event = { message: 'hello', host: 'n1', source_type: 'file', timestamp: '2026-01-01T00:00:00Z' }
  withTest(document, resource, event, { length: 7, msg: 'hello', 'meta.host': 'n1', kind: 'file' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each(['{}', '{ message_key: message, host_key: .host, timestamp_key: timestamp, source_type_key: source_type }'])(
  'the default names need no transform: %s',
  (given) => {
    const { resource, gaps } = convert(
      `log_schema: ${given}\nsources: { s: { type: stdin } }\nsinks: { out: { type: console, inputs: [s], encoding: { codec: json } } }\n`,
    )
    expect(resource.spec.transforms).toBeUndefined()
    expect(gaps).toEqual([])
  },
)

const delivered = { 'meta.host': 'n1', kind: 'file' }
test.each([
  ['a text', 'type: console, encoding: { codec: text }', { message: 'hello', msg: 'hello' }, undefined],
  [
    'an index with a date',
    "type: elasticsearch, endpoints: ['http://es:9200'], bulk: { index: 'x-%Y' }",
    { msg: 'hello' },
    ['timestamp'],
  ],
  [
    'a path with a date',
    "type: file, path: '/x/%F', encoding: { codec: json, except_fields: [a] }",
    { msg: 'hello' },
    ['a', 'timestamp'],
  ],
  [
    'entries that keep their time',
    "type: loki, endpoint: 'http://l:3100', labels: { a: b }, encoding: { codec: json }, remove_timestamp: false",
    { msg: 'hello' },
    ['timestamp'],
  ],
])('a sink of %s reads copies, which it does not deliver', async (_, options, fields, hidden) => {
  const { document, resource } = sinkOf(options)
  expect(resource.spec.sinks[0].config.encoding?.except_fields).toEqual(hidden)
  const event = { message: 'hello', host: 'n1', source_type: 'file', timestamp: '2026-01-01T00:00:00Z' }
  const time = hidden === undefined ? {} : { timestamp: '2026-01-01T00:00:00Z' }
  withTest(document, resource, event, { ...delivered, ...fields, ...time })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['Loki', "type: loki, endpoint: 'http://l:3100', labels: { a: b }, encoding: { codec: json }", ['timestamp']],
  ['data streams', "type: elasticsearch, endpoints: ['http://es:9200'], mode: data_stream", ['timestamp']],
  ['Datadog', 'type: datadog_logs, default_api_key: k', ['message', 'timestamp', 'host']],
])('a sink for %s that takes fields out of the event gets them under the default names', async (_, options, names) => {
  const { document, resource } = sinkOf(options)
  expect(resource.spec.transforms.at(-1).config.source.split('\n')).toEqual(
    names.map((name) => {
      const old = { message: '.msg', timestamp: '."@timestamp"', host: '.meta.host' }[name]
      return `if exists(${old}) { .${name} = del(${old}) }`
    }),
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('sinks with options for the fields get the names', () => {
  expect(sinkOf('type: humio_logs, token: t, encoding: { codec: json }').resource.spec.sinks[0].config).toMatchObject({
    timestamp_key: '"@timestamp"',
    host_key: 'meta.host',
  })
  const { resource } = sinkOf(
    "type: splunk_hec_logs, endpoint: 'https://h', default_token: t, encoding: { codec: json }",
  )
  expect(resource.spec.transforms.at(-1).config.source).toContain('time = del(."@timestamp")')
  expect(resource.spec.transforms.at(-1).config.source).toContain('"host": .meta.host')
})

test('fields of decoded messages keep their names, and the report says so', () => {
  const { resource, gaps } = convert(
    `${schema}sources: { q: { type: amqp, connection_string: "amqp://r", decoding: { codec: json } } }\nsinks: { out: { type: console, inputs: [q], encoding: { codec: json } } }\n`,
  )
  expect(resource.spec.transforms[0].config.source).toBe('if exists(.source_type) { .kind = del(.source_type) }')
  expect(gaps).toMatchObject([{ subject: 'log_schema' }, { subject: 'q: decoding', line: 2 }])
  expect(gaps[1]?.isReplaced).toBeUndefined()
})

test('a line of a unit test is the message', async () => {
  const tests = [
    {
      name: 'line',
      inputs: [{ insert_at: 'p', value: 'hello' }],
      outputs: [{ extract_from: 'p', conditions: ['.length == 5'] }],
    },
  ]
  const { document, resource } = convert(`${schema}
sources: { s: { type: stdin } }
transforms: { p: { type: remap, inputs: [s], source: '.length = length(string!(.msg))' } }
sinks: { out: { type: console, inputs: [p], encoding: { codec: json } } }
tests: ${JSON.stringify(tests)}
`)
  expect(resource.spec.tests[0].input).toEqual({ log: { msg: 'hello' } })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['{ log_namespace: true }', undefined],
  ['{ log_namespace: false }', true],
  ['{ enabled: true }', true],
])('the setting `schema: %s` is a gap if it moves fields', (schema, isReplaced) => {
  const { gaps } = convert(
    `schema: ${schema}\nsources: { s: { type: stdin } }\nsinks: { out: { type: console, inputs: [s], encoding: { codec: json } } }\n`,
  )
  expect(gaps.map((gap) => gap.isReplaced)).toEqual([isReplaced])
})

test('a comparison with the old agent gives its programs the same fields', async () => {
  const text = `${schema}sources: { s: { type: kubernetes_logs } }\nsinks: { out: { type: console, inputs: [s], encoding: { codec: json } } }\n`
  const { files } = await vectorTrial({
    files: [{ file: 'v.yaml', text }],
    included: () => [],
    sample: { lines: '/sample', podLog: async () => '/pods', podEvents: async () => '/events' },
    sink: 'out',
    folder: '/tmp',
  })
  const { transforms } = JSON.parse(files[0]?.text ?? '') as { transforms: { s: { source: string } } }
  const lines = transforms.s.source.split('\n')
  expect(lines[0]).toBe('. = object!(parse_json!(string!(.msg)))')
  expect(lines).toContain('if exists(.message) { .msg = del(.message) }')
  expect(lines).toContain('.source_type = "kubernetes_logs"')
  expect(compileProgram(transforms.s.source).ok).toBe(true)
})
