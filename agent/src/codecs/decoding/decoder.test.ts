import { expect, test } from 'vitest'
import { Body } from '../../event/body.ts'
import { Finalizer } from '../../event/finalizer.ts'
import { LogEvent } from '../../event/log.ts'
import { MetricEvent } from '../../event/metric.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float } from '../../event/value.ts'
import { decoding, framing } from '../../schema/groups.ts'
import { parseOptions } from '../../schema/validate.ts'
import { at } from '../../testing/events.ts'
import { testGlobals } from '../../testing/harness.ts'
import { writeNative } from '../encoding/native.ts'
import { compileDecoder, type Decoder, eventBatches } from './decoder.ts'

function decoder(options: { decoding?: object; framing?: object }, stream = true): Decoder {
  const checked = parseOptions({ decoding: decoding(), framing: framing() }, options)
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  return compileDecoder(checked.value.decoding, checked.value.framing, testGlobals('/nowhere'), { stream })
}

const fields = (events: readonly (LogEvent | MetricEvent)[]) => events.map((event) => (event as LogEvent).fields)

/** Pushes the bytes in pieces of every size, from one byte to all bytes. The results must be the same. */
function everyWay(options: { decoding?: object; framing?: object }, bytes: Buffer) {
  const results = new Set<string>()
  let result = { messages: [] as unknown[], failures: [] as string[] }
  for (let size = 1; size <= bytes.length; size++) {
    const stream = decoder(options)
    const messages: unknown[] = []
    const failures: string[] = []
    for (let from = 0; from <= bytes.length; from += size) {
      const last = from + size > bytes.length
      for (const decoded of [stream.push(bytes.subarray(from, from + size)), ...(last ? [stream.end()] : [])]) {
        for (const event of fields(decoded.events)) messages.push(event['message'])
        failures.push(...decoded.failures)
      }
    }
    result = { messages, failures }
    results.add(JSON.stringify(result))
  }
  expect([...results]).toHaveLength(1)
  return result
}

test.each<[string, object | undefined, string, unknown[], string[]]>([
  ['newlines', undefined, 'one\r\ntwo\n\nthree', ['one\r', 'two', '', 'three'], []],
  [
    'newlines with a limit',
    { method: 'newline_delimited', newline_delimited: { max_length: 4 } },
    'one\nmuch too long\nfour\nagain too long',
    ['one', 'four'],
    Array(2).fill('The frame is longer than the limit of 4 bytes.'),
  ],
  [
    'a character',
    { method: 'character_delimited', character_delimited: { delimiter: ';' } },
    'one;two;three',
    ['one', 'two', 'three'],
    [],
  ],
  ['counted octets', { method: 'octet_counting' }, '3 one11 two\nand two5 three', ['one', 'two\nand two', 'three'], []],
  [
    'counted octets and lines',
    { method: 'octet_counting' },
    '3 one<13>line\n3 two<14>end',
    ['one', '<13>line', 'two', '<14>end'],
    [],
  ],
  [
    'counted octets with a limit',
    { method: 'octet_counting', octet_counting: { max_length: 3 } },
    '3 one5 three3 two-long\n3 end',
    ['one', 'two', 'end'],
    Array(2).fill('The frame is longer than the limit of 3 bytes.'),
  ],
  [
    'counted octets, a bad count',
    { method: 'octet_counting' },
    '12x bad\n3 one',
    ['one'],
    ['The length of a frame is not a number.'],
  ],
  ['whole stream', { method: 'bytes' }, 'one\ntwo', ['one\ntwo'], []],
])('frames by %s, split into any pieces', (_name, frames, text, messages, failures) => {
  expect(everyWay(frames === undefined ? {} : { framing: frames }, Buffer.from(text))).toEqual({ messages, failures })
})

test('frames by length; a frame beyond the limit is skipped', () => {
  const frame = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)])
  const options = { framing: { method: 'length_delimited', length_delimited: { max_frame_length: 5 } } }
  const good = Buffer.concat([frame('one'), frame(''), frame('three')])
  expect(everyWay(options, good)).toEqual({ messages: ['one', '', 'three'], failures: [] })
  expect(everyWay(options, Buffer.concat([good, frame('too long'), frame('next')]))).toEqual({
    messages: ['one', '', 'three', 'next'],
    failures: ['The frame is longer than the limit of 5 bytes.'],
  })
  expect(everyWay(options, frame('too long').subarray(0, 10)).failures).toEqual([
    'The frame is longer than the limit of 5 bytes.',
    'The stream ended within a frame.',
  ])
  expect(everyWay(options, good.subarray(0, 10)).failures).toEqual(['The stream ended within a frame.'])
})

test('bytes that are not UTF-8 are kept', () => {
  const { events } = decoder({}, false).message(Buffer.from([0x61, 0xff]))
  expect(fields(events)).toEqual([{ message: new Bytes(Buffer.from([0x61, 0xff])) }])
})

test('json: objects, arrays of objects, blank frames; events without a time get the current time', () => {
  const json = decoder({ decoding: { codec: 'json' } })
  const decoded = json.push(
    Buffer.from('{"timestamp":"t","n":9007199254740993,"f":1.0}\n \n[{"timestamp":1},{"timestamp":2}]\n{"a":1}\n'),
  )
  expect(fields(decoded.events.slice(0, 3))).toEqual([
    { timestamp: 't', n: 9007199254740993n, f: new Float(1) },
    { timestamp: 1 },
    { timestamp: 2 },
  ])
  expect(fields(decoded.events)[3]?.['timestamp']).toBeInstanceOf(Timestamp)
  expect(decoded.failures).toEqual([])
})

test.each(['[{"a":1},2]', '1', '{"a":', 'nonsense'])(
  'json: %s is a failure without an event, and the stream continues',
  (bad) => {
    const json = decoder({ decoding: { codec: 'json' } })
    const decoded = json.push(Buffer.from(`${bad}\n{"ok":true}\n`))
    expect(decoded.failures).toHaveLength(1)
    expect(decoded.events).toHaveLength(1)
  },
)

test('`lossy` replaces invalid UTF-8; without it, the frame fails', () => {
  const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')])
  expect(fields(decoder({ decoding: { codec: 'json' } }, false).message(bytes).events)[0]).toMatchObject({
    a: '\ufffd',
  })
  const strict = decoder({ decoding: { codec: 'json', json: { lossy: false } } }, false).message(bytes)
  expect(strict).toMatchObject({ events: [], failures: ['The frame is not valid UTF-8.'] })
})

test('gelf: fields of the format become fields of events', () => {
  const text =
    '{"version":"1.1","host":"h","short_message":"hi","timestamp":1767323045.6,"level":3,"line":7,"_id":"x","_app":"a"}\0'
  expect(fields(decoder({ decoding: { codec: 'gelf' } }).push(Buffer.from(text)).events)).toEqual([
    {
      version: '1.1',
      host: 'h',
      message: 'hi',
      timestamp: at('2026-01-02T03:04:05.6Z'),
      level: 3,
      line: new Float(7),
      _app: 'a',
    },
  ])
})

test.each([
  ['{"version":"1.0","host":"h","short_message":"hi"}', 'version does not match GELF spec version (1.1)'],
  [
    '{"version":"1.1","host":"h","short_message":"hi","app":1}',
    "'app' field is invalid. Additional field names must be prefixed with an underscore.",
  ],
  ['{"version":"1.1","host":"h","short_message":"hi","_a":[]}', "'_a' field must be a string or a number"],
  ['{"version":"1.1","short_message":"hi"}', "'host' field is required and must be a string"],
])('gelf: %s is rejected', (text, problem) => {
  expect(decoder({ decoding: { codec: 'gelf' } }, false).message(Buffer.from(text)).failures).toEqual([problem])
})

test('syslog: both forms, and text in neither form', () => {
  const syslog = decoder({ decoding: { codec: 'syslog' } })
  const decoded = syslog.push(
    Buffer.from(
      '<13>1 2026-01-02T03:04:05Z web app 7 id [sd@1 a="b"] hello\n<13>Feb 13 20:07:26 web app[8]: old\nnonsense\n',
    ),
  )
  expect(fields(decoded.events)).toMatchObject([
    { message: 'hello', hostname: 'web', appname: 'app', procid: 7, msgid: 'id', 'sd@1': { a: 'b' }, version: 1 },
    { message: 'old', hostname: 'web', appname: 'app', procid: 8, severity: 'notice', facility: 'user' },
  ])
  expect(decoded.failures).toEqual(['unable to parse input as valid syslog message'])
})

test('native_json: logs and metrics, alone or in an array', () => {
  const metric = {
    name: 'm',
    namespace: 'ns',
    kind: 'absolute',
    tags: { a: 'b', c: ['d', null] },
    timestamp: '2026-01-01T00:00:00Z',
    summary: { quantiles: [{ upper_limit: 0.5, value: 2 }], count: 1, sum: 2 },
  }
  const { events } = decoder({ decoding: { codec: 'native_json' } }, false).message(
    Buffer.from(JSON.stringify([{ log: { message: 'hi' } }, { metric }])),
  )
  expect(fields(events.slice(0, 1))).toEqual([{ message: 'hi' }])
  expect(events[1]).toEqual(
    new MetricEvent({
      name: 'm',
      namespace: 'ns',
      kind: 'absolute',
      tags: new Map<string, string | (string | null)[]>([
        ['a', 'b'],
        ['c', ['d', null]],
      ]),
      timestamp: at('2026-01-01T00:00:00Z'),
      value: { type: 'summary', quantiles: [{ quantile: 0.5, value: 2 }], count: 1, sum: 2 },
    }),
  )
})

test.each([
  '{"metric":{"name":"m","kind":"absolute"}}',
  '{"metric":{"name":"m","kind":"absolute","gauge":{"value":"x"}}}',
  '{"trace":{}}',
])('native_json: %s is a failure', (text) => {
  const decoded = decoder({ decoding: { codec: 'native_json' } }, false).message(Buffer.from(text))
  expect(decoded.events).toEqual([])
  expect(decoded.failures).toHaveLength(1)
})

test('native: damaged messages are failures, never exceptions', () => {
  const body = new Body(64)
  writeNative(new LogEvent({ message: 'hi', list: [1, { a: null }] }), undefined, body)
  const good = Buffer.from(body.view())
  const native = decoder({ decoding: { codec: 'native' } }, false)
  expect(fields(native.message(good).events)).toEqual([{ message: 'hi', list: [1, { a: null }] }])
  for (let cut = 1; cut < good.length; cut++) {
    const { events, failures } = native.message(good.subarray(0, cut))
    expect(events.length + failures.length).toBeLessThanOrEqual(1)
  }
  expect(native.message(Buffer.from('not protobuf at all')).failures).toHaveLength(1)
})

test('events of both types become batches in order, with one finalizer', () => {
  const ends: string[] = []
  const finalizer = new Finalizer((status) => ends.push(status))
  const log = () => new LogEvent({})
  const metric = () => new MetricEvent({ name: 'm', kind: 'absolute', value: { type: 'gauge', value: 1 } })
  const batches = eventBatches([log(), log(), metric(), log()], finalizer)
  expect(batches.map((batch) => [batch.type, batch.count])).toEqual([
    ['log', 2],
    ['metric', 1],
    ['log', 1],
  ])
  batches[0]?.finalizer.release(1, 'delivered')
  batches[1]?.finalizer.release(1, 'delivered')
  expect(ends).toEqual([])
  batches[2]?.finalizer.release(1, 'errored')
  expect(ends).toEqual(['errored'])
})
