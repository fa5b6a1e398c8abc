import { expect, test } from 'vitest'
import { Body } from '../../event/body.ts'
import { DeferredEvent } from '../../event/deferred.ts'
import { LogEvent, noMetadata } from '../../event/log.ts'
import { MetricEvent, type MetricParts } from '../../event/metric.ts'
import { Bytes, Float, Regex, type Value, type ValueObject } from '../../event/value.ts'
import { JsonSplicer } from '../../formats/json-splice.ts'
import { type EncodingOptions, encoding, outgoingFraming, screenCodecs } from '../../schema/groups.ts'
import { parseOptions } from '../../schema/validate.ts'
import { at } from '../../testing/events.ts'
import { readNative } from '../decoding/native.ts'
import { framingProblems } from '../framing/encode.ts'
import { compileEncoder, compileStreamEncoder, encodingProblems } from './encoder.ts'

function options(given: object): EncodingOptions {
  const checked = parseOptions({ encoding: encoding(screenCodecs) }, { encoding: given })
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  return checked.value.encoding
}

function encoded(given: object, event: LogEvent | MetricEvent): string {
  const body = new Body(4)
  const problem = compileEncoder(options(given)).encode(event, body)
  expect(body.length).toBe(problem === undefined ? body.length : 0)
  return problem ?? body.view().toString()
}

function framed(given: object, frames: object | undefined, events: (LogEvent | MetricEvent)[]): Buffer {
  const checked = parseOptions({ framing: outgoingFraming() }, { framing: frames })
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  const encoder = compileStreamEncoder(options(given), checked.value.framing)
  const body = new Body(4)
  for (const event of events) expect(encoder.encode(event, body)).toBeUndefined()
  return body.view()
}

const log = (fields: Record<string, Value>) => new LogEvent(fields)
const rich = log({
  message: 'hi "there"',
  z: 1,
  a: { y: new Float(1), x: [true, null, 1.5] },
  big: 9007199254740993n,
  bytes: new Bytes(Buffer.from([0x61, 0xff])),
  when: at('2026-01-02T03:04:05.600Z'),
  re: new Regex('^a$', /^a$/),
})
const metric = (parts: Partial<MetricParts>) =>
  new MetricEvent({ name: 'm', kind: 'absolute', value: { type: 'gauge', value: 1 }, ...parts })

test.each([
  { codec: 'json' },
  { codec: 'json', json: { pretty: true } },
  { codec: 'json', only_fields: ['b'] },
  { codec: 'json', except_fields: ['b'] },
  { codec: 'native_json' },
  { codec: 'logfmt' },
])('an event whose fields are created later is encoded like any other (%j)', (given) => {
  const splicer = new JsonSplicer({ merges: false, members: new Map() })
  const text = '{"b":"x y","a":1.5}'
  const deferral = {
    make: () => JSON.parse(text) as ValueObject,
    writeJson: (before: ValueObject, body: Body) => splicer.write(text, before, body),
    hides: false,
  }
  const deferred = () => new DeferredEvent({}, noMetadata, deferral, splicer.sizeOf(text, {}))
  expect(encoded(given, deferred())).toBe(encoded(given, log({ b: 'x y', a: 1.5 })))
})

test.each<[string, object, LogEvent, string]>([
  [
    'json',
    { codec: 'json' },
    rich,
    '{"a":{"x":[true,null,1.5],"y":1.0},"big":9007199254740993,"bytes":"a\ufffd","message":"hi \\"there\\"","re":"^a$","when":"2026-01-02T03:04:05.600Z","z":1}',
  ],
  [
    'json, pretty',
    { codec: 'json', json: { pretty: true } },
    log({ b: [1], a: {} }),
    '{\n  "a": {},\n  "b": [\n    1\n  ]\n}',
  ],
  ['json, only_fields', { codec: 'json', only_fields: ['a.x[1]', 'z', 'none'] }, rich, '{"a":{"x":[null,null]},"z":1}'],
  [
    'json, except_fields',
    { codec: 'json', except_fields: ['a.x', 'big', 'bytes', 'message', 're', 'when'] },
    rich,
    '{"a":{"y":1.0},"z":1}',
  ],
  ['native_json', { codec: 'native_json' }, log({ a: 1 }), '{"log":{"a":1}}'],
  ['text', { codec: 'text' }, rich, 'hi "there"'],
  ['text, not a string', { codec: 'text' }, log({ message: new Float(3) }), '3'],
  ['text, missing', { codec: 'text' }, log({}), ''],
  ['raw_message', { codec: 'raw_message' }, rich, 'hi "there"'],
  [
    'logfmt',
    { codec: 'logfmt' },
    log({ a: { b: 1, 'c d': [1e-9, 'x\ty'] }, msg: 'hi there', ok: true, no: false, nil: null, e: '', q: 'a"b\\c\nd' }),
    'a.b=1 "a.c d.0"=0.000000001 "a.c d.1"="x\ty" e= msg="hi there" nil=null ok q="a\\"b\\\\c\\\\nd"',
  ],
  ['csv', { codec: 'csv', csv: { fields: ['a', 'b', 'c'] } }, log({ a: 'hi, "x"', b: 7, c: null }), '"hi, ""x""",7,'],
  [
    'csv, always',
    { codec: 'csv', csv: { fields: ['a', 'none'], quote_style: 'always', delimiter: ';' } },
    log({ a: 'x' }),
    '"x";""',
  ],
  [
    'csv, escapes',
    { codec: 'csv', csv: { fields: ['a'], double_quote: false, escape: '\\' } },
    log({ a: 'x"\\' }),
    '"x\\"\\\\"',
  ],
  [
    'csv, non_numeric',
    { codec: 'csv', csv: { fields: ['a', 'b'], quote_style: 'non_numeric' } },
    log({ a: 'x', b: 1.5 }),
    '"x",1.5',
  ],
  ['csv, never', { codec: 'csv', csv: { fields: ['a'], quote_style: 'never' } }, log({ a: 'x,y' }), 'x,y'],
  [
    'gelf',
    { codec: 'gelf' },
    log({ message: 'm', host: 'h', timestamp: at('2026-01-02T03:04:05.600Z'), level: 3, line: 7, app: 'a', _x: 1 }),
    '{"_app":"a","_x":1,"host":"h","level":3,"line":7,"short_message":"m","timestamp":1767323045.6,"version":"1.1"}',
  ],
])('%s', (_name, given, event, expected) => {
  expect(encoded(given, event)).toBe(expected)
})

test.each([
  ['rfc3339', '"2026-01-02T03:04:05.123456789Z"'],
  ['unix', '1767323045'],
  ['unix_ms', '1767323045123'],
  ['unix_us', '1767323045123456'],
  ['unix_ns', '1767323045123456789'],
  ['unix_float', '1767323045.123456'],
])('timestamp_format %s converts timestamps at any depth and does not change the event', (timestamp_format, text) => {
  const when = at('2026-01-02T03:04:05.123456789Z')
  const event = log({ when, deep: { list: [when, 1] } })
  const before = structuredClone(JSON.stringify(event.fields))
  expect(encoded({ codec: 'json', timestamp_format }, event)).toBe(`{"deep":{"list":[${text},1]},"when":${text}}`)
  expect(JSON.stringify(event.fields)).toBe(before)
})

test.each([
  [log({ message: 'm' }), 'LogEvent does not contain required field: "host"'],
  [log({ host: 'h' }), 'LogEvent does not contain required field: "short_message"'],
  [
    log({ host: 'h', message: 'm', level: 'high' }),
    'LogEvent contains a value with an invalid type. field = "level" type = "string" expected type = "integer"',
  ],
  [log({ host: 'h', message: 'm', 'a b': 1 }), 'LogEvent contains an invalid field name: "a b"'],
])('gelf rejects events that the format cannot represent (%#)', (event, problem) => {
  expect(encoded({ codec: 'gelf' }, event)).toBe(problem)
})

test('codecs for logs reject metrics and leave the body unchanged', () => {
  expect(encoded({ codec: 'logfmt' }, metric({}))).toBe('The codec `logfmt` cannot encode a metric event.')
})

const tags = new Map<string, string | null | (string | null)[]>([
  ['b', ['x', null, 'y']],
  ['a', 'one'],
  ['n', null],
])

test.each<[string, object, Partial<MetricParts>, string]>([
  [
    'json',
    { codec: 'json' },
    {
      namespace: 'ns',
      tags,
      kind: 'incremental',
      value: { type: 'counter', value: 3 },
      timestamp: at('2026-01-01T00:00:00Z'),
      intervalMs: 10,
    },
    '{"name":"m","namespace":"ns","tags":{"a":"one","b":"y"},"timestamp":"2026-01-01T00:00:00Z","interval_ms":10,"kind":"incremental","counter":{"value":3.0}}',
  ],
  [
    'json, full',
    { codec: 'json', metric_tag_values: 'full' },
    { tags },
    '{"name":"m","tags":{"a":["one"],"b":["x",null,"y"],"n":[null]},"kind":"absolute","gauge":{"value":1.0}}',
  ],
  [
    'native_json',
    { codec: 'native_json' },
    {
      tags,
      value: {
        type: 'histogram',
        count: 2,
        sum: 1.5,
        buckets: [
          { upperLimit: 1, count: 2 },
          { upperLimit: Number.POSITIVE_INFINITY, count: 0 },
        ],
      },
    },
    '{"metric":{"name":"m","tags":{"a":"one","b":["x",null,"y"],"n":null},"kind":"absolute","aggregated_histogram":{"buckets":[{"upper_limit":1.0,"count":2},{"upper_limit":"inf","count":0}],"count":2,"sum":1.5}}}',
  ],
  [
    'json summary',
    { codec: 'json' },
    { value: { type: 'summary', count: 2, sum: 1.5, quantiles: [{ quantile: 0.5, value: 1 }] } },
    '{"name":"m","kind":"absolute","aggregated_summary":{"quantiles":[{"quantile":0.5,"value":1.0}],"count":2,"sum":1.5}}',
  ],
  [
    'json set',
    { codec: 'json' },
    { value: { type: 'set', values: ['b', 'a'] } },
    '{"name":"m","kind":"absolute","set":{"values":["a","b"]}}',
  ],
  [
    'json distribution',
    { codec: 'json' },
    { value: { type: 'distribution', statistic: 'histogram', samples: [{ value: 1, rate: 2 }] } },
    '{"name":"m","kind":"absolute","distribution":{"samples":[{"value":1.0,"rate":2}],"statistic":"histogram"}}',
  ],
  [
    'text',
    { codec: 'text' },
    {
      name: 'requests',
      namespace: 'app',
      kind: 'incremental',
      value: { type: 'counter', value: 3 },
      tags: new Map([['code', '200']]),
      timestamp: at('2024-01-02T03:04:05Z'),
    },
    '2024-01-02T03:04:05Z app_requests{code="200"} + 3',
  ],
  [
    'text set',
    { codec: 'text' },
    { value: { type: 'set', values: ['bob', 'alice'] }, kind: 'incremental' },
    'm{} + alice bob',
  ],
  [
    'text distribution',
    { codec: 'text' },
    {
      value: {
        type: 'distribution',
        statistic: 'histogram',
        samples: [
          { value: 1, rate: 3 },
          { value: 2, rate: 2 },
        ],
      },
      kind: 'incremental',
    },
    'm{} + histogram 3@1 2@2',
  ],
  [
    'text histogram',
    { codec: 'text' },
    {
      value: {
        type: 'histogram',
        count: 5,
        sum: 7.5,
        buckets: [
          { upperLimit: 1, count: 3 },
          { upperLimit: 2, count: 2 },
        ],
      },
    },
    'm{} = count=5 sum=7.5 3@1 2@2',
  ],
  [
    'text summary, quoting, full tags',
    { codec: 'text', metric_tag_values: 'full' },
    { name: 'b.d', tags, value: { type: 'summary', count: 5, sum: 7.5, quantiles: [{ quantile: 0.5, value: 1 }] } },
    '"b.d"{a="one",b="x",b,b="y",n} = count=5 sum=7.5 0.5@1',
  ],
])('metric as %s', (_name, given, parts, expected) => {
  expect(encoded(given, metric(parts))).toBe(expected)
})

test.each([
  [undefined, { codec: 'text' }, 'one\ntwo\n'],
  [
    undefined,
    { codec: 'gelf' },
    '{"host":"h","short_message":"one","version":"1.1"}\0{"host":"h","short_message":"two","version":"1.1"}\0',
  ],
  [{ method: 'bytes' }, { codec: 'text' }, 'onetwo'],
  [{ method: 'character_delimited', character_delimited: { delimiter: ',' } }, { codec: 'text' }, 'one,two,'],
  [{ method: 'octet_counting' }, { codec: 'text' }, '3 one3 two'],
  [{ method: 'length_delimited' }, { codec: 'text' }, '\0\0\0\u0003one\0\0\0\u0003two'],
])('framing %j of %j', (frames, given, expected) => {
  const events = [log({ message: 'one', host: 'h' }), log({ message: 'two', host: 'h' })]
  expect(framed(given, frames, events).toString('latin1')).toBe(expected)
})

test('native: a log event survives encoding and decoding, including long texts', () => {
  const long = 'é'.repeat(40_000)
  const event = log({ ...rich.fields, re: 'x', long, empty: {}, neg: -7, list: [] })
  const bytes = framed({ codec: 'native' }, { method: 'bytes' }, [event])
  expect((readNative(bytes, 'message')[0] as LogEvent).fields).toEqual(event.fields)
})

test.each<Partial<MetricParts>>([
  {
    namespace: 'ns',
    tags: new Map([
      ['a', 'b'],
      ['n', null],
    ] as [string, string | null][]),
    timestamp: at('2026-01-01T00:00:00.000000001Z'),
    intervalMs: 7,
  },
  { value: { type: 'counter', value: -1.5 }, kind: 'incremental' },
  { value: { type: 'set', values: ['a', 'b'] } },
  { value: { type: 'distribution', statistic: 'summary', samples: [{ value: 0, rate: 300 }] } },
  { value: { type: 'histogram', count: 2, sum: 1.5, buckets: [{ upperLimit: Number.POSITIVE_INFINITY, count: 2 }] } },
  { value: { type: 'summary', count: 2, sum: 1.5, quantiles: [{ quantile: 0.5, value: 1 }] } },
])('native: a metric survives encoding and decoding (%#)', (parts) => {
  const event = metric(parts)
  expect(readNative(Buffer.from(framed({ codec: 'native' }, { method: 'bytes' }, [event])), 'message')).toEqual([event])
})

test('avro writes the bare datum, with defaults, unions and 64-bit integers', () => {
  const schema = {
    type: 'record',
    name: 'log',
    fields: [
      { name: 'message', type: 'string' },
      { name: 'n', type: ['null', 'long'] },
      { name: 'extra', type: { type: 'map', values: 'double' }, default: {} },
      { name: 'level', type: 'string', default: 'info' },
    ],
  }
  const body = new Body(2)
  const encoder = compileEncoder(options({ codec: 'avro', avro: { schema: JSON.stringify(schema) } }))
  expect(encoder.encode(log({ message: 'hi', n: 9007199254740993n, extra: { a: 1 } }), body)).toBeUndefined()
  expect(body.view().toString('hex')).toBe('046869028280808080808020020261000000000000f03f0008696e666f')
  expect(encoder.encode(log({ n: 1 }), body)).toMatch(/does not match the Avro schema: \.message is not a valid string/)
})

test.each([
  [{ codec: 'csv' }, ['At least one CSV field must be specified']],
  [{ codec: 'avro', avro: { schema: '{' } }, [expect.stringMatching(/^Failed building Avro serializer: /)]],
  [{ codec: 'avro' }, ['`avro.schema` is required with codec `avro`']],
  [
    { codec: 'json', only_fields: ['.a.b'], except_fields: ['a."b"'] },
    ['`except_fields` and `only_fields` should be mutually exclusive.'],
  ],
  [{ codec: 'json', only_fields: ['a'], except_fields: ['a.b'] }, []],
  [{ codec: 'csv', csv: { fields: ['a'], delimiter: '::' } }, ['`delimiter` must be a single byte, not "::"']],
])('problems of %j', (given, messages) => {
  expect(encodingProblems(options(given)).map((problem) => problem.message)).toEqual(messages)
})

test.each([
  [{ method: 'character_delimited' }, ['`delimiter` is required with method `character_delimited`']],
  [
    { method: 'character_delimited', character_delimited: { delimiter: 'é' } },
    ['`delimiter` must be a single byte, not "é"'],
  ],
  [{ method: 'character_delimited', character_delimited: { delimiter: 0 } }, []],
  [{ method: 'bytes' }, []],
])('problems of framing %j', (given, messages) => {
  const checked = parseOptions({ framing: outgoingFraming() }, { framing: given })
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  expect(framingProblems(checked.value.framing).map((problem) => problem.message)).toEqual(messages)
})

test.each([
  { given: { codec: 'json' }, expected: '{"b":2,"c":3}' },
  { given: { codec: 'json', except_fields: ['b'] }, expected: '{"c":3}' },
  { given: { codec: 'json', timestamp_format: 'unix' }, expected: '{"b":2,"c":3}' },
  { given: { codec: 'logfmt' }, expected: 'b=2 c=3' },
])('hidden fields of an event whose fields are created later are not written with $given', ({ given, expected }) => {
  const fields = { a: 1, b: 2, c: 3 }
  const deferral = {
    hides: true,
    make: () => fields,
    writeJson: (_key: number, body: Body, hidden: readonly string[]) => {
      body.writeText(
        JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([name]) => !hidden.includes(name)))),
      )
    },
    // The form that is used if the kernel does not accept the line.
    writeChosen: () => false,
  }
  const event = new DeferredEvent(1, noMetadata, deferral, 10)
  event.hidden = ['a']
  expect(encoded(given, event)).toBe(expected)
  event.hidden = []
  expect(event.fields).toEqual(fields)
})
