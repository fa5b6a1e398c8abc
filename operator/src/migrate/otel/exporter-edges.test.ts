// The forms of numbers in the documents of exporters, and exporters that only count records.

import { expect, test } from 'vitest'
import { converted, type Given, problems, record } from '../../testing/collector.ts'

const json: Given = { operators: [{ type: 'json_parser' }] }
test.each([
  { exporter: 'loki', options: { endpoint: 'http://loki' }, assert: 'contains(string!(.message), "\\"n\\":200}")' },
  { exporter: 'splunk_hec', options: { endpoint: 'http://hec', token: 't' }, assert: 'is_integer(.fields.n)' },
  { exporter: 'datadog', options: { api: { key: 'k' } }, assert: 'is_integer(.n)' },
  { exporter: 'opensearch', options: { http: { endpoint: 'http://os' } }, assert: 'is_integer(.attributes.n)' },
  { exporter: 'elasticsearch', options: { endpoint: 'http://es' }, assert: 'is_float(.attributes.n)' },
  {
    exporter: 'otlphttp',
    options: { endpoint: 'http://o' },
    assert: '.scopeLogs[0].logRecords[0].attributes[0] == {"key": "n", "value": {"doubleValue": 200.0}}',
  },
  { exporter: 'clickhouse', options: { endpoint: 'http://ch' }, assert: '.LogAttributes.n == "200"' },
])('a number in JSON has the form of the exporter $exporter', async ({ exporter, options, assert }) => {
  const given = { ...json, receiver: { include_file_name: false }, exporter: [exporter, options] as const }
  const event = record({ message: '{"n": 200}' })
  expect(await problems(given, 1, event, assert)).toEqual([])
})

test('the status and the message of the exporter datadog are texts', async () => {
  const given = { exporter: ['datadog', { api: { key: 'k' } }] as const }
  const assert = '.status == "50" && .message == "7"'
  expect(await problems(given, 1, record({ attributes: { level: 50, msg: 7 } }), assert)).toEqual([])
})

test.each([
  { exporter: 'debug', options: {}, type: 'blackhole' },
  { exporter: 'debug', options: { verbosity: 'normal' }, type: 'console' },
  { exporter: 'debug', options: { verbosity: 'detailed' }, type: 'console' },
  { exporter: 'logging', options: { loglevel: 'info' }, type: 'blackhole' },
  { exporter: 'logging', options: { loglevel: 'debug' }, type: 'console' },
])('$exporter with $options becomes the sink $type', ({ exporter, options, type }) => {
  const { spec, gaps } = converted({ exporter: [exporter, options] })
  expect(spec.sinks[0].type).toBe(type)
  expect(gaps.map(({ isReplaced }) => isReplaced)).toEqual(type === 'console' ? [] : [true])
})

test.each([
  { endpoint: 'tcp://ch:9000?database=otel&dial_timeout=10s', uri: 'http://ch:8123', table: 'otel' },
  { endpoint: 'tcp://ch:9440/otel?secure=true', uri: 'https://ch:8443', table: 'otel' },
  { endpoint: 'clickhouse://u:p@ch:9000/otel', uri: 'http://ch:8123', table: 'otel', user: 'u' },
  { endpoint: 'tcp://ch:9000/otel', database: 'logs', uri: 'http://ch:8123', table: 'logs' },
  { endpoint: 'https://ch:8443/otel', database: 'default', uri: 'https://ch:8443', table: 'otel' },
  { endpoint: 'tcp://ch:9000?username=u&password=p', uri: 'http://ch:8123', table: 'default', user: 'u' },
])('rows for ClickHouse at $endpoint go to the table in $table', ({ endpoint, database, uri, table, user }) => {
  const { config } = converted({ exporter: ['clickhouse', { endpoint, database }] }).spec.sinks[0]
  expect(config.uri).toMatch(`${uri}/?query=INSERT+INTO+${table}.otel_logs+`)
  expect(config.auth).toEqual(user === undefined ? undefined : { strategy: 'basic', user, password: 'p' })
})
