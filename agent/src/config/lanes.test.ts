// A built component uses the lane that its declaration promises.

import { expect, test } from 'vitest'
import type { SinkDeclaration, TransformDeclaration } from '../component.ts'
import { findComponent } from '../registry.ts'
import { buildTransform, parsed, startSink, testGlobals } from '../testing/harness.ts'

const json = { encoding: { codec: 'json' } }
const http = { uri: 'http://127.0.0.1:1', healthcheck: false, ...json }
const aggregator = { endpoint: 'http://127.0.0.1:1', labels: { a: '{{ a }}' }, healthcheck: false, ...json }
const broker = { endpoint: 'pulsar://127.0.0.1:1', topic: '{{ a }}', healthcheck: false, ...json }
const search = { endpoints: ['http://127.0.0.1:1'], api_version: 'v8', healthcheck: false }

test.each([
  { type: 'http', options: http, reason: undefined },
  { type: 'http', options: { ...http, framing: { method: 'newline_delimited' } }, reason: undefined },
  { type: 'http', options: { ...http, framing: { method: 'bytes' } }, reason: undefined },
  {
    type: 'http',
    options: { ...http, framing: { method: 'length_delimited' } },
    reason: 'framing is `length_delimited`',
  },
  {
    type: 'http',
    options: { ...http, framing: { method: 'character_delimited', character_delimited: { delimiter: '\0' } } },
    reason: 'framing is `character_delimited`',
  },
  { type: 'http', options: { ...http, uri: 'http://127.0.0.1:1/{{ a }}' }, reason: 'address depends on the event' },
  { type: 'http', options: { ...http, encoding: { codec: 'text' } }, reason: 'codec is `text`' },
  {
    type: 'http',
    options: { ...http, encoding: { codec: 'json', json: { pretty: true } } },
    reason: 'on several lines',
  },
  {
    type: 'http',
    options: { ...http, encoding: { codec: 'json', except_fields: ['a', '."b c"'] } },
    reason: undefined,
  },
  {
    type: 'http',
    options: { ...http, encoding: { codec: 'json', except_fields: ['a.b'] } },
    reason: 'selects nested fields',
  },
  {
    type: 'http',
    options: { ...http, encoding: { codec: 'json', only_fields: ['.'] } },
    reason: 'selects nested fields',
  },
  {
    type: 'http',
    options: { ...http, encoding: { codec: 'json', timestamp_format: 'unix' } },
    reason: undefined,
  },
  { type: 'log_aggregator', options: aggregator, reason: undefined },
  { type: 'log_aggregator', options: { ...aggregator, encoding: { codec: 'logfmt' } }, reason: 'codec is `logfmt`' },
  { type: 'search_engine', options: search, reason: undefined },
  { type: 'search_engine', options: { ...search, id_key: 'id' }, reason: '`id_key` removes' },
  { type: 'search_engine', options: { ...search, mode: 'data_stream' }, reason: 'data streams add' },
  { type: 'search_engine', options: { ...search, encoding: { only_fields: ['a'] } }, reason: undefined },
  {
    type: 'log_aggregator',
    options: { ...aggregator, encoding: { codec: 'json', only_fields: ['a'], timestamp_format: 'unix_ms' } },
    reason: undefined,
  },
  {
    type: 'log_aggregator',
    options: { ...aggregator, encoding: { codec: 'json', only_fields: ['a.b'] } },
    reason: 'selects nested fields',
  },
  { type: 'blackhole', options: {}, reason: undefined },
  { type: 'console', options: json, reason: undefined },
  { type: 'console', options: { encoding: { codec: 'pretty' } }, reason: 'codec is `pretty`' },
  { type: 'file', options: { ...json, path: '/tmp/{{ a }}' }, reason: undefined },
  {
    type: 'file',
    options: { ...json, path: '/tmp/a', framing: { method: 'octet_counting' } },
    reason: 'framing is `octet_counting`',
  },
  { type: 'message_broker', options: broker, reason: undefined },
  {
    type: 'message_broker',
    options: { ...broker, encoding: { codec: 'json', except_fields: ['a'], timestamp_format: 'unix' } },
    reason: undefined,
  },
  {
    type: 'message_broker',
    options: { ...broker, encoding: { codec: 'csv', csv: { fields: ['a'] } } },
    reason: 'codec',
  },
  { type: 'monitor_a_logs', options: { default_api_key: 'x', healthcheck: false }, reason: '' },
])('sink $type, $reason', async ({ type, options, reason }) => {
  const declaration = findComponent('sink', type) as SinkDeclaration
  const given = parsed(declaration, options) as never
  const because = declaration.objectsBecause
  const found = because === undefined ? '' : because(given, testGlobals('/tmp'))
  if (reason === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(reason)
  await using built = await startSink(type, options)
  expect(built.sink.takesBytes === true).toBe(reason === undefined)
})

test.each([
  { source: '. = parse_json!(.message)\n.a = 1\ndel(.b)', reason: undefined },
  { source: '. = merge(., object!(parse_json!(.message)))\ndel(.message)', reason: undefined },
  { source: '. = merge(., object(parse_json(.message) ?? {}) ?? {})', reason: undefined },
  { source: '. |= object!(parse_json!(.message))\ndel(.message)', reason: undefined },
  { source: '., err = parse_json(.message)\nif err != null { abort }\n.a = 1', reason: undefined },
  {
    source:
      'p, err = parse_json(.message)\nif err == null && is_object(p) { . = merge(., object!(p)) } else { .raw = true }',
    reason: undefined,
  },
  { source: 's = parse_json(.message) ?? {}\n. = merge(., object(s) ?? {})\n.a = 1', reason: undefined },
  {
    source: 'p = parse_json!(.message)\n. = p\nif p.a == 1 { abort }',
    reason: 'line 3 of its program uses a variable that holds the parsed message',
  },
  {
    source: 'p = parse_json!(.message)\n. = p\np = {}\nif !is_object(p.a) { . = p }',
    reason: 'line 3 of its program uses a variable that holds the parsed message',
  },
  { source: '. = merge(., object!(parse_json!(.message)), deep: true)', reason: 'line 1 of its program replaces' },
  { source: '.a = 1\n. = merge(., object!(parse_json!(.message)))', reason: 'line 2 of its program replaces' },
  { source: '.message = parse_json!(.message)\n.', reason: undefined },
  { source: '.a = 1', reason: undefined },
  { source: '. = parse_json!(.text)', reason: 'line 1 of its program parses `.text`' },
  { source: '.a = 1\n.b = .a\n.c = del(.d)', reason: undefined },
  { source: '.a = 1\n\n.b.c = 2', reason: undefined },
  { source: 'del(.a.b)\ndel(.c, compact: true)', reason: undefined },
  { source: '. = parse_json!(.message)\nif .a == 1 { abort "no" }\n.a = 2', reason: undefined },
  { source: 'if exists(.a) { abort }', reason: undefined },
  { source: '.a = 1\nif .a == 1 { abort }', reason: undefined },
  { source: 'if .a == 1 { abort } else { .b = 2 }', reason: undefined },
  { source: 'if (x = .a; x == 1) { abort }', reason: undefined },
  { source: '.a = upcase(string!(.a)) + "!"\n.n, .err = to_int(.n)', reason: undefined },
  { source: '.a = 1\nif .b == 1 {\n  .c = length(.)\n}', reason: 'line 3 of its program reads the event as a whole' },
  { source: "if now() > t'2026-01-01T00:00:00Z' { abort }", reason: 'line 1 of its program calls `now`, which' },
  { source: '%a = 1', reason: 'line 1 of its program changes metadata' },
  { source: '. = {}', reason: 'line 1 of its program replaces the event' },
  { source: '."ü" = 1', reason: 'line 1 of its program sets a field with non-ASCII characters in its name' },
  { source: '. = unnest!(.a)', reason: 'line 1 of its program replaces the event' },
  { source: 'if .a == 1 { return . }', reason: 'line 1 of its program ends the program with `return`' },
  { source: 'log("x")', reason: 'line 1 of its program calls `log`, which' },
  {
    source: Array.from({ length: 13 }, (_, index) => `.b${index} = upcase!(.a${index})`).join('\n'),
    reason: 'line 13 of its program exceeds the limit of 12 computed fields',
  },
  {
    source: Array.from({ length: 33 }, (_, index) => `.b${index} = 1`).join('\n'),
    reason: 'line 33 of its program exceeds the limit of 32 changed fields',
  },
])('program $source', async ({ source, reason }) => {
  const declaration = findComponent('transform', 'remap') as TransformDeclaration
  const given = parsed(declaration, { source }) as never
  const found = declaration.objectsBecause?.(given, testGlobals('/tmp'))
  if (reason === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(reason)
  const transform = await buildTransform('remap', { source })
  // Only when lines arrive is it known that they have no field other than the message.
  if (reason?.includes('parses') !== true) expect(transform.takesBytes === true).toBe(reason === undefined)
})

test.each([
  { condition: '.level != "debug"', reason: undefined },
  { condition: '.a.b == 1 && (contains(string!(.c), "x") || exists(%m))', reason: undefined },
  { condition: { type: 'is_log' }, reason: undefined },
  { condition: 'length(.) > 3', reason: 'line 1 of its condition reads the event as a whole' },
  { condition: ".a == 1 &&\n  now() > t'2026-01-01T00:00:00Z'", reason: 'line 2 of its condition calls `now`' },
  {
    condition: { type: 'datadog_search', source: 'a:b' },
    reason: 'line 1 of its condition reads the event as a whole',
  },
])('condition $condition', async ({ condition, reason }) => {
  const declaration = findComponent('transform', 'filter') as TransformDeclaration
  const given = parsed(declaration, { condition }) as never
  const found = declaration.objectsBecause?.(given, testGlobals('/tmp'))
  if (reason === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(reason)
  const transform = await buildTransform('filter', { condition })
  expect(transform.takesBytes === true).toBe(reason === undefined)
})
