import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { LogEvent } from '../../../event/log.ts'
import type { MetricEvent } from '../../../event/metric.ts'
import { hotLooks, shapeOf } from '../../../event/shape.ts'
import { Timestamp } from '../../../event/timestamp.ts'
import { Bytes, Float, Regex, type Value, type ValueObject } from '../../../event/value.ts'
import { log, metric } from '../../../testing/events.ts'
import { Random } from '../../../testing/random.ts'
import { Packer } from './packer.ts'
import { recycle } from './record-memory.ts'
import { Unpacker } from './unpacker.ts'

const packer = new Packer()
const unpacker = new Unpacker()

function packed(pack: () => void): { bytes: Buffer; textAt: number; count: number } {
  packer.begin()
  pack()
  const record = packer.finish()
  const { values, texts } = record
  const bytes = Buffer.concat([values, texts])
  recycle(record)
  return { bytes, textAt: values.length, count: packer.events }
}

function thereAndBack(events: readonly LogEvent[]): LogEvent[] {
  const { bytes, textAt, count } = packed(() => {
    for (const event of events) packer.log(event)
  })
  expect(count).toBe(events.length)
  return unpacker.logs(bytes, textAt, count).flat() as LogEvent[]
}

const values: Record<string, Value> = {
  null: null,
  false: false,
  true: true,
  zero: 0,
  small: 127,
  byte: 128,
  'largest varint': 2 ** 31 - 1,
  'beyond the varint': 2 ** 31,
  negative: -1,
  'safe integer': Number.MAX_SAFE_INTEGER,
  'least safe integer': Number.MIN_SAFE_INTEGER,
  'largest of 64 bits': 2n ** 63n - 1n,
  'least of 64 bits': -(2n ** 63n),
  'more than 64 bits': 2n ** 70n,
  fraction: 0.1,
  'least float': 5e-324,
  'not a number': Number.NaN,
  infinite: Number.NEGATIVE_INFINITY,
  'integral float': new Float(1),
  'negative zero': new Float(-0),
  empty: '',
  'one unit': 'a',
  'longest short text': 'x'.repeat(191),
  'shortest long text': 'x'.repeat(192),
  'long text': 'größer '.repeat(5000),
  'beyond the first plane': '𝒳👩‍👩‍👧',
  'half of a pair': 'a\ud800b',
  'replacement character': 'a\ufffdb',
  'replacement character beside half of a pair': `\ufffd${'x'.repeat(300)}\udc00`,
  'no UTF-8': new Bytes(Buffer.from([0xff, 0, 0xfe])),
  'no bytes': new Bytes(Buffer.alloc(0)),
  instant: new Timestamp(1_767_225_600_123, 456_789),
  'before the epoch': new Timestamp(-1, 999_999),
  regex: new Regex('a+', /a+/u),
  list: [1, 'two', [null, [3.5]], {}],
  object: { nested: { deeper: { '': '' } } },
}

test.each(Object.entries(values))('a value is read back unchanged: %s', (_, value) => {
  const [event] = thereAndBack([log({ value, list: [value], object: { value } })])
  expect(event?.fields).toEqual({ value, list: [value], object: { value } })
  expect(Object.is((event?.fields['value'] as Float)?.value, (value as Float)?.value)).toBe(true)
})

test('names of built-in members are normal fields', () => {
  const fields = JSON.parse('{"__proto__":{"a":1},"constructor":2,"10":3,"toString":null,"\\u2028":4}') as ValueObject
  // Enough rounds to trigger generated code.
  for (let round = 0; round < 20; round++) {
    const events = Array.from({ length: 10 }, (_, index) => new LogEvent({ ...fields, index }))
    Object.defineProperty(events[3]?.fields, '__proto__', {
      value: 7,
      enumerable: true,
      configurable: true,
      writable: true,
    })
    expect(thereAndBack(events).map((event) => event.fields)).toEqual(events.map((event) => event.fields))
  }
  expect(Object.getPrototypeOf({})).toBe(Object.prototype)
})

test('absent members stay absent, and equal values of different kinds stay different', () => {
  const rows: ValueObject[] = []
  for (const a of [1, new Float(1), 1n, '1', true, undefined, null, 1])
    for (const b of ['x', 'x', undefined]) rows.push({ a, b })
  for (let round = 0; round < 20; round++) {
    expect(thereAndBack(rows.map((fields) => new LogEvent(fields))).map((event) => event.fields)).toEqual(rows)
  }
})

test('objects of one shape inside each other', () => {
  const deep = (levels: number, name: string): ValueObject =>
    levels === 0 ? { name, child: null } : { name, child: deep(levels - 1, name) }
  for (let round = 0; round < 20; round++) {
    const rows = ['a', 'a', 'b', 'a'].map((name, index) => deep(index, name))
    expect(thereAndBack(rows.map((fields) => new LogEvent(fields))).map((event) => event.fields)).toEqual(rows)
  }
})

test('members that are different at first and equal later', () => {
  const round = (texts: (index: number) => string) => {
    const rows = Array.from({ length: 30 }, (_, index) => ({
      text: texts(index),
      host: 'node-1',
      child: { text: 'x' },
    }))
    expect(thereAndBack(rows.map((fields) => new LogEvent(fields))).map((event) => event.fields)).toEqual(rows)
    return packed(() => {
      for (const fields of rows) packer.log(new LogEvent(fields))
    }).bytes.length
  }
  for (let times = 0; times < 20; times++) round((index) => `${times} ${index}`.padEnd(100))
  const sizes = Array.from({ length: 20 }, () => round(() => 'again and again'.padEnd(100)))
  expect(sizes[0]).toBeGreaterThan(3000)
  expect(sizes.at(-1)).toBeLessThan(400)
})

test('objects of the same members in different orders', () => {
  for (let round = 0; round < 40; round++) {
    const rows = Array.from({ length: 9 }, (_, index) => {
      const [a, b] = [`a${index % 3}`, `b${index % 2}`]
      return index % 2 === 0 ? { a, b } : { b: 'other', a: 'one' }
    })
    expect(thereAndBack(rows.map((fields) => new LogEvent(fields))).map((event) => event.fields)).toEqual(rows)
  }
})

test('objects of the same members in thousands of orders', () => {
  const rows = Array.from({ length: 4000 }, (_, order) => {
    const left = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const fields: ValueObject = {}
    for (let rest = order; left.length > 0; ) {
      const [name = ''] = left.splice(rest % left.length, 1)
      fields[name] = `${name} of ${order % 7}`
      rest = Math.floor(rest / (left.length + 1))
    }
    return fields
  })
  let back: LogEvent[] = []
  for (let round = 0; round < 30; round++) back = thereAndBack(rows.map((fields) => new LogEvent(fields)))
  expect(
    isDeepStrictEqual(
      back.map(({ fields }) => fields),
      rows,
    ),
  ).toBe(true)
})

test('random events of random shapes', () => {
  const chance = new Random(20_260_101)
  const random = (below: number) => chance.below(below)
  const kinds = Object.values(values)
  const value = (depth: number): Value => {
    const pick = random(10)
    if (depth < 3 && pick === 0) return fields(depth + 1)
    if (depth < 3 && pick === 1) return Array.from({ length: random(4) }, () => value(depth + 1))
    return kinds[random(kinds.length)] as Value
  }
  const fields = (depth: number): ValueObject => {
    const object: ValueObject = {}
    for (let left = random(6); left > 0; left--) object[`k${random(8)}`] = value(depth)
    return object
  }
  for (let round = 0; round < 40; round++) {
    const rows = Array.from({ length: 1 + random(200) }, () => fields(0))
    const back = thereAndBack(rows.map((row) => new LogEvent(row)))
    expect(
      back.map((event) => event.fields),
      'seed 20260101',
    ).toEqual(rows)
  }
})

test('metadata and secrets travel with the event', () => {
  const event = new LogEvent({ a: 1 }, { value: { trace: [1, { b: new Float(2) }] }, secrets: { key: 'hidden' } })
  const [back, plain] = thereAndBack([event, log({ a: 2 })])
  expect(back?.metadata).toEqual(event.metadata)
  expect(plain?.metadata.secrets).toEqual({})
})

test('metrics of every kind', () => {
  const events: MetricEvent[] = [
    metric('a', { type: 'counter', value: 1.5 }, { kind: 'absolute', namespace: 'ns', intervalMs: 10_000 }),
    metric('b', { type: 'gauge', value: -0 }, { timestamp: undefined, tags: {} }),
    metric('c', { type: 'set', values: ['x', ''] }, { tags: { bare: null, many: ['a', null], one: 'b' } }),
    metric('d', { type: 'distribution', samples: [{ value: 1, rate: 2 }], statistic: 'summary' }),
    metric('e', {
      type: 'histogram',
      buckets: [{ upperLimit: Number.POSITIVE_INFINITY, count: 3 }],
      count: 3,
      sum: 0.1,
    }),
    metric('f', { type: 'summary', quantiles: [{ quantile: 0.5, value: Number.NaN }], count: 1, sum: 2 }),
  ]
  const { bytes, textAt, count } = packed(() => {
    for (const event of events) packer.metric(event)
  })
  expect(unpacker.metrics(bytes, textAt, count)).toEqual(events)
})

test('records that are packed at the same time, or abandoned, do not share values', () => {
  const fields = (turn: number) => ({ shared_name: 'the same in each', other_name: turn >> 1 })
  for (let look = 0; look < hotLooks; look++) shapeOf(fields(0))
  const packers = [new Packer(), new Packer()]
  for (const each of packers) {
    each.begin()
    each.log(log(fields(0)))
    each.begin() // the first record was given up
  }
  for (let turn = 0; turn < 40; turn++) for (const each of packers) each.log(log(fields(turn)))
  for (const each of packers) {
    const { values, texts } = each.finish()
    const events = unpacker.logs(Buffer.concat([values, texts]), values.length, 40).flat() as LogEvent[]
    expect(events.map((event) => event.fields)).toEqual(Array.from({ length: 40 }, (_, turn) => fields(turn)))
  }
})
