// Vector sinks that become the sink `http`, sinks whose inputs provide no events here, and global settings that become component options.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const convert = (config: object) => converted(convertVector, [{ file: 'v.yaml', text: stringify(config) }])
const logs = { d: { type: 'demo_logs', format: 'json' } }

test('ClickHouse receives JSON rows over HTTP', async () => {
  const sink = {
    type: 'clickhouse',
    inputs: ['d'],
    endpoint: 'http://ch:8123/',
    database: 'a',
    table: 't%',
    auth: { strategy: 'basic', user: 'u', password: 'p' },
    skip_unknown_fields: true,
    date_time_best_effort: true,
    batch: { max_events: 5 },
  }
  const { resource, gaps, document } = convert({ sources: logs, sinks: { c: sink } })
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toEqual([
    {
      name: 'c',
      type: 'http',
      inputs: ['d'],
      config: {
        uri: 'http://ch:8123/?input_format_import_nested_json=1&input_format_skip_unknown_fields=1&date_time_input_format=best_effort&query=INSERT%%20INTO%%20%%22a%%22.%%22t%%25%%22%%20FORMAT%%20JSONEachRow',
        compression: 'gzip',
        auth: { strategy: 'basic', user: 'u', password: 'p' },
        batch: { max_events: 5 },
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
      },
    },
  ])
  expect(await lint(document.toString())).toEqual([])
})

test("Splunk's event collector receives envelopes", async () => {
  const sink = {
    type: 'splunk_hec_logs',
    inputs: ['r'],
    endpoint: 'https://s:8088',
    default_token: 'abc',
    index: 'k8s-{{ kind }}',
    sourcetype: 'json',
    indexed_fields: ['kind'],
    encoding: { codec: 'json', except_fields: ['secret'] },
  }
  const { resource, gaps, document } = convert({
    sources: logs,
    transforms: { r: { type: 'remap', inputs: ['d'], source: '.a = 1' } },
    sinks: { s: sink },
  })
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    uri: 'https://s:8088/services/collector/event',
    request: { headers: { Authorization: 'Splunk abc' } },
  })
  const event = { message: 'x', kind: 'app', host: 'h', secret: 's', timestamp: '2026-01-01T00:00:01.5Z' }
  withTest(document, resource, event, {
    index: 'k8s-app',
    sourcetype: 'json',
    host: 'h',
    fields: { kind: 'app' },
    event: { a: 1, host: 'h', kind: 'app', message: 'x' },
  })
  expect(await lint(document.toString())).toEqual([])
})

test("times in Splunk's events have the format of the encoding", async () => {
  const encoding = { codec: 'json', timestamp_format: 'unix' }
  const sink = { type: 'splunk_hec_logs', inputs: ['d'], endpoint: 'https://s:8088', default_token: 'abc', encoding }
  const { resource, gaps, document } = convert({ sources: logs, sinks: { s: sink } })
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.encoding).toEqual(encoding)
  expect(await lint(document.toString())).toEqual([])
})

test("a text of Splunk's envelope is left out if a field is missing", async () => {
  const { document, resource } = convert({
    sources: logs,
    transforms: { r: { type: 'remap', inputs: ['d'], source: '.a = 1' } },
    sinks: {
      s: {
        type: 'splunk_hec_logs',
        inputs: ['r'],
        endpoint: 'https://s:8088',
        default_token: 'abc',
        index: 'k8s-{{ team }}',
        source: '{{ labels }}',
        encoding: { codec: 'json', only_fields: ['message'] },
      },
    },
  })
  const at = resource.spec.sinks[0].inputs[0]
  const assert = String.raw`!exists(.index) && .source == "{\"b\":\"c\"}" && .event == { "message": "x" }`
  const input = { log: { message: 'x', labels: { b: 'c' } } }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: 'r', input, expect: [{ at, assert }] }])
  expect(await lint(document.toString())).toEqual([])
})

test('the address, headers and texts of an HTTP sink keep their meaning', async () => {
  const { resource, gaps, document } = convert({
    sources: logs,
    sinks: {
      h: {
        type: 'http',
        inputs: ['d'],
        uri: 'https://x/in?query=INSERT%20INTO%20%C3%A9',
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        payload_prefix: '{"data":',
        payload_suffix: '}',
        request: { headers: { 'X-Tenant': '{{ team }}' } },
      },
    },
  })
  expect(resource.spec.sinks[0].config).toEqual({
    uri: 'https://x/in?query=INSERT%%20INTO%%20%%C3%%A9',
    encoding: { codec: 'json' },
    framing: { method: 'newline_delimited' },
    request: { headers: { 'X-Tenant': '{{ team }}' } },
  })
  expect(gaps).toMatchObject([
    { subject: 'h: payload_prefix', isReplaced: true },
    { subject: 'h: payload_suffix', isReplaced: true },
  ])
  expect(await lint(document.toString())).toEqual([])
})

test.each([',', 44])('events of JSON with the delimiter %j between them are an array', (delimiter) => {
  const framing = { method: 'character_delimited', character_delimited: { delimiter } }
  const sink = {
    type: 'http',
    inputs: ['d'],
    uri: 'http://x',
    encoding: { codec: 'json' },
    framing,
    payload_prefix: 'a',
  }
  const { resource, gaps } = convert({ sources: logs, sinks: { h: sink } })
  expect(resource.spec.sinks[0].config).toEqual({ uri: 'http://x', encoding: { codec: 'json' }, payload_prefix: 'a' })
  expect(gaps).toEqual([])
})

test('OTLP over HTTP is the sink in `protocol`', async () => {
  const protocol = { type: 'http', uri: 'http://o:4318/v1/logs', encoding: { codec: 'json' }, headers: { a: 'b' } }
  const { resource, gaps, document } = convert({
    sources: logs,
    sinks: { o: { type: 'opentelemetry', inputs: ['d'], protocol } },
  })
  expect(gaps.map(({ isReplaced }) => isReplaced)).toEqual([true])
  expect(resource.spec.sinks[0]).toMatchObject({
    type: 'http',
    config: { uri: 'http://o:4318/v1/logs', request: { headers: { a: 'b' } } },
  })
  expect(await lint(document.toString())).toEqual([])
})

test('a metrics sink reads only sources of metrics, and becomes a discarding sink if there are none', async () => {
  const write = { type: 'prometheus_remote_write', endpoint: 'http://m/write', default_namespace: 'v' }
  const { resource, gaps, document } = convert({
    sources: { i: { type: 'internal_metrics' }, s: { type: 'statsd', mode: 'udp', address: '0.0.0.0:8125' } },
    transforms: { p: { type: 'remap', inputs: ['i', 's'], source: '.tags.a = "b"' } },
    sinks: {
      one: { ...write, inputs: ['p'] },
      two: { ...write, inputs: ['i', 's'] },
      three: { ...write, inputs: ['s'] },
    },
  })
  expect(resource.spec.sinks.map(({ type, inputs }: { type: string; inputs: string[] }) => [type, inputs])).toEqual([
    ['remote_write_metrics', ['p']],
    ['remote_write_metrics', ['i']],
    ['blackhole', ['s']],
  ])
  expect(gaps.filter(({ subject }) => subject.endsWith(': inputs'))).toHaveLength(2)
  expect(await lint(document.toString())).toEqual([])
})

test('global settings become options, and secrets become keys of a Secret', async () => {
  const { resource, gaps, document } = convert({
    timezone: 'Europe/Berlin',
    secret: { vault: { type: 'exec', command: ['/x'] } },
    sources: { f: { type: 'file', include: ['/a'] } },
    transforms: {
      r: { type: 'remap', inputs: ['f'], source: '.a = 1' },
      o: { type: 'remap', inputs: ['f'], source: '.a = 1', timezone: 'UTC' },
    },
    sinks: {
      h: {
        type: 'http',
        inputs: ['r', 'o'],
        uri: 'http://x',
        encoding: { codec: 'json' },
        auth: { strategy: 'bearer', token: 'SECRET[vault.a/b]' },
        buffer: [{ type: 'disk', max_size: 1000 }],
      },
      l: {
        type: 'loki',
        inputs: ['r'],
        endpoint: `\${URL}`,
        labels: { a: 'b' },
        encoding: { codec: 'json' },
      },
    },
  })
  expect(resource.spec.transforms.map(({ config }: { config: object }) => config)).toEqual([
    { source: '.a = 1', timezone: 'Europe/Berlin' },
    { source: '.a = 1', timezone: 'UTC' },
  ])
  expect(resource.spec.sinks[0].config).toMatchObject({
    auth: { token: 'SECRET[env.vault_a_b]' },
    buffer: { type: 'disk', max_size: 268_435_488 },
  })
  expect(resource.spec.sinks[1].config).toMatchObject({
    endpoint: 'SECRET[env.URL]',
  })
  expect(gaps.every(({ isReplaced }) => isReplaced)).toBe(true)
  expect(gaps.map(({ subject }) => subject)).toEqual(['vault_a_b', 'h: buffer.max_size', '$URL'])
  expect(await lint(document.toString())).toEqual([])
})

test('very old parsers become programs', async () => {
  const { resource, gaps, document } = convert({
    sources: logs,
    transforms: {
      p: {
        type: 'regex_parser',
        inputs: ['d'],
        patterns: ['^no (?P<x>.)$', "^(?P<status>\\d+) it's (?P<rest>.*)$"],
        types: { status: 'int' },
      },
      c: { type: 'coercer', inputs: ['p'], types: { n: 'float', at: 'timestamp|%F' } },
    },
    sinks: { o: { type: 'console', inputs: ['c'], encoding: { codec: 'json' } } },
  })
  expect(gaps).toEqual([])
  withTest(
    document,
    resource,
    { message: "200 it's ok", n: '1.5', at: 'never' },
    { status: 200, rest: 'ok', n: 1.5, at: null },
  )
  expect(await lint(document.toString())).toEqual([])
})

test("Splunk's fields that are missing are left out, and so are options that are off", async () => {
  const sink = {
    type: 'splunk_hec_logs',
    inputs: ['d'],
    endpoint: 'https://s:8088',
    default_token: 'abc',
    indexed_fields: ['kind', 'none'],
    timestamp_key: '',
    auto_extract_timestamp: false,
    acknowledgements: { indexer_acknowledgements_enabled: false },
    encoding: { codec: 'text' },
  }
  const { resource, gaps, document } = convert({ sources: logs, sinks: { s: sink } })
  expect(gaps).toEqual([])
  withTest(document, resource, { message: 'hi', kind: 'k' }, { event: 'hi', fields: { kind: 'k' } })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test("a wait for Splunk's indexer is a gap", () => {
  const acknowledgements = { enabled: true, indexer_acknowledgements_enabled: true }
  const sink = {
    type: 'splunk_hec_logs',
    inputs: ['d'],
    endpoint: 'https://s',
    default_token: 'a',
    encoding: { codec: 'json' },
  }
  const { gaps } = convert({ sources: logs, sinks: { s: { ...sink, acknowledgements } } })
  expect(gaps.map(({ subject }) => subject)).toEqual(['s: acknowledgements.indexer_acknowledgements_enabled'])
})

test.each([
  ['only some fields', { only_fields: ['message', 'a.b', 'none'] }, { event: { message: 'm', a: { b: 1 } } }],
  ['all fields except some', { except_fields: ['kind', 'a.c'] }, { event: { message: 'm', a: { b: 1 }, t: 2 } }],
])("the encoding of Splunk's event delivers %s, and its envelope has the others", async (_, encoding, expected) => {
  const sink = {
    type: 'splunk_hec_logs',
    inputs: ['d'],
    endpoint: 'https://s',
    default_token: 'a',
    index: '{{ kind }}',
  }
  const { resource, gaps, document } = convert({
    sources: logs,
    sinks: { s: { ...sink, encoding: { codec: 'json', ...encoding } } },
  })
  expect(gaps).toEqual([])
  withTest(document, resource, { message: 'm', kind: 'k', a: { b: 1, c: 2 }, t: 2 }, { ...expected, index: 'k' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an option of a product that `http` cannot express is a gap of a part that exists', () => {
  const sink = {
    type: 'splunk_hec_logs',
    inputs: ['d'],
    endpoint: 'https://s',
    default_token: 'a',
    endpoint_target: 'raw',
  }
  const { gaps } = convert({ sources: logs, sinks: { s: { ...sink, encoding: { codec: 'json' } } } })
  expect(gaps).toMatchObject([{ subject: 's: endpoint_target', reason: expect.stringContaining('has no counterpart') }])
  expect(gaps[0]?.isAbsent).toBeUndefined()
})

test('ClickHouse gets the settings of asynchronous inserts', () => {
  const query_settings = { async_insert_settings: { enabled: true, wait_for_processing: false, max_data_size: 10 } }
  const sink = { type: 'clickhouse', inputs: ['d'], endpoint: 'http://ch', table: 't', query_settings }
  const { resource, gaps } = convert({ sources: logs, sinks: { c: sink } })
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.uri).toContain(
    '&async_insert=1&wait_for_async_insert=0&async_insert_max_data_size=10&query=',
  )
})

test('settings without an effect here, and those that sinks get', async () => {
  const config = {
    healthchecks: { enabled: false },
    wildcard_matching: 'relaxed',
    telemetry: { tags: { emit_source: true } },
    enrichment_tables: {},
    sources: logs,
    sinks: {
      a: { type: 'http', inputs: ['d', 'none*'], uri: 'http://a', encoding: { codec: 'json' } },
      b: { type: 'console', inputs: ['d'], encoding: { codec: 'json' } },
    },
  }
  const { resource, gaps, document } = convert(config)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config.healthcheck).toEqual({ enabled: false })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
