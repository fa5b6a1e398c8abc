import { expect, test } from 'vitest'
import { writeJson, writeJsonTo } from '../formats/json.ts'
import { Random } from '../testing/random.ts'
import { Body } from './body.ts'
import { LogEvent } from './log.ts'
import { hotLooks, shapeOf, shapeUsage } from './shape.ts'
import { markShared, sharedObject } from './shared-object.ts'
import { logSize } from './size.ts'
import { Float, type Value, type ValueObject } from './value.ts'

/** Writes an object in the same way as an encoder. */
function written(fields: ValueObject): string {
  const event = new LogEvent(fields)
  const body = new Body(64)
  expect(event.size).toBeGreaterThan(1)
  writeJsonTo(body, event.fields, event.shape)
  return body.view().toString()
}

/** The expected output of encoders: keys sorted by code point, without absent members. */
function owed(fields: ValueObject): string {
  const names = Object.keys(fields).filter((name) => fields[name] !== undefined)
  // All keys in these tests are in the Basic Multilingual Plane.
  names.sort((left, right) => (left < right ? -1 : 1))
  return `{${names.map((name) => `${JSON.stringify(name)}:${jsonOf(fields[name] as Value)}`).join(',')}}`
}

function jsonOf(value: Value): string {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Float) return `${value.value}.0`
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  return owed(value as ValueObject)
}

const limits = { treeBytes: 6.5 * 1024 * 1024, shapes: 96, sourceBytes: 512 * 1024 }

function expectBounded(): void {
  const usage = shapeUsage()
  expect(usage.treeBytes).toBeLessThan(limits.treeBytes)
  expect(usage.shapes).toBeLessThanOrEqual(limits.shapes)
  expect(usage.sourceBytes).toBeLessThanOrEqual(limits.sourceBytes)
}

const memberNames = ['b', 'a', 'level', 'message', 'ä', 'a"quoted"', 'zz', 'deep', 'constructor', '__proto__', '10']

function randomFields(random: Random, names: readonly string[], depth = 0): ValueObject {
  const fields: ValueObject = {}
  for (const name of names) {
    if (random.below(3) === 0) continue
    const values: readonly (Value | undefined)[] = [
      undefined,
      'text',
      'a "quoted" line\n'.repeat(random.below(5)),
      random.below(1000),
      -1.5,
      2n ** 60n,
      new Float(2),
      null,
      true,
      ['x', 1],
      depth < 3 ? randomFields(random, names, depth + 1) : {},
    ]
    const value = values[random.below(values.length)]
    Object.defineProperty(fields, name, { value, writable: true, enumerable: true, configurable: true })
  }
  return fields
}

test('the output for an object is the same whether its sequence of keys is new, known or hot', () => {
  const random = new Random(20261122)
  const rare = memberNames.filter((_, index) => index % 2 === 0)
  const keys = ['level', 'b', 'a"quoted"', 'ä', 'deep']
  for (let round = 0; round < 2 * hotLooks; round++) {
    const fields = randomFields(random, rare)
    expect(written(fields)).toBe(owed(fields))
    const often: ValueObject = {}
    for (const name of keys) often[name] = fields[name]
    expect(written(often)).toBe(owed(often))
    expect(new LogEvent(often).size).toBe(logSize({ ...often }))
  }
  expect(shapeUsage().shapes).toBeGreaterThan(0)
  expectBounded()
})

test('only sequences in constant use get generated code, and they lose it when they cool down', () => {
  const hot = (index: number): ValueObject => ({ [`only_${index}`]: index, message: 'm' })
  for (let look = 0; look < hotLooks - 1; look++) expect(shapeOf(hot(1))).toBeNull()
  expect(shapeOf(hot(1))?.names).toEqual(['message', 'only_1'])
  const { shapes } = shapeUsage()
  // The hot epoch ends, and so does the next one without such objects.
  for (let look = 0; look < 2 * 140_000; look++) shapeOf(hot(2))
  expect(shapeOf(hot(1))).toBeNull()
  expect(shapeOf(hot(2))).not.toBeNull()
  expect(shapeUsage().shapes).toBeLessThanOrEqual(shapes)
})

test.each([
  { keys: 'short', length: 8, lines: 30_000, members: 12 },
  { keys: 'long', length: 200, lines: 10_000, members: 12 },
  { keys: 'huge', length: 20_000, lines: 200, members: 12 },
  { keys: 'many', length: 8, lines: 100, members: 3000 },
])('$keys keys that are new in each line use a bounded amount of memory', ({ length, lines, members }) => {
  const random = new Random(7)
  for (let line = 0; line < lines; line++) {
    const fields: ValueObject = {}
    for (let member = 0; member < members; member++) {
      fields[`${random.below(2 ** 30).toString(36)}_${member}`.padEnd(length, 'k')] = member
    }
    if (line % 1000 === 0) expect(written(fields)).toBe(owed(fields))
    else {
      shapeOf(fields)
      writeJson(fields)
    }
  }
  expectBounded()
})

test('twenty thousand sequences in rotation use a bounded amount of memory, and no generated code', () => {
  const names = Array.from({ length: 15 }, (_, index) => `member_${index}`)
  const before = shapeUsage().shapes
  for (let line = 0; line < 60_000; line++) {
    const fields: ValueObject = {}
    for (let bit = 0; bit < names.length; bit++) if (((line % 20_000) >> bit) & 1) fields[names[bit] as string] = bit
    const text = writeJson(fields)
    if (line % 5000 === 0) expect(text).toBe(owed(fields))
  }
  expect(shapeUsage().shapes).toBeLessThanOrEqual(before)
  expectBounded()
})

test('objects with one more key each time use a bounded amount of memory', () => {
  const chain = (index: number, length: number, fields: ValueObject = {}): ValueObject => {
    for (let member = 0; member < length; member++) fields[`c${index}_${member}`] = member
    return fields
  }
  for (let look = 0; look < 1 << 18; look++) shapeOf({}) // forget the sequences of earlier tests
  for (let index = 0; index < 100; index++) writeJson(chain(index, 128))
  for (let index = 0; index < 100; index++) {
    for (let length = 1; length <= 128; length++) {
      const fields = chain(index, length)
      for (let time = 0; time < 4; time++) {
        const text = writeJson(fields)
        if (time === 3 && length === 100) expect(text).toBe(owed(fields))
      }
    }
    expectBounded()
  }
})

test('hot sequences beyond the limit get no generated code', () => {
  for (let index = 0; index < 150; index++) {
    const names = Array.from({ length: 40 }, (_, member) => `s${index}_member_${member}`)
    for (let look = 0; look < hotLooks; look++) {
      const fields: ValueObject = {}
      for (const name of names) fields[name] = look
      shapeOf(fields)
      if (look === hotLooks - 1) expect(written(fields)).toBe(owed(fields))
    }
  }
  expectBounded()
})

test('the size and the bytes of a shared object and its nested objects are kept', () => {
  const pod: ValueObject = { name: 'web', labels: { app: 'shop' }, ips: ['10.0.0.1'] }
  markShared(pod)
  const fields = (index: number): ValueObject => ({ index, pod })
  expect(written(fields(1))).toBe('{"index":1,"pod":{"ips":["10.0.0.1"],"labels":{"app":"shop"},"name":"web"}}')
  const json = sharedObject(pod)?.json
  expect(Buffer.from(json as Uint8Array).toString()).toBe('{"ips":["10.0.0.1"],"labels":{"app":"shop"},"name":"web"}')
  expect(sharedObject(pod)?.size).toBe(logSize({ ...pod }))
  expect(written(fields(2))).toBe(written({ index: 2, pod: { ...pod } }))
  expect(sharedObject(pod)?.json).toBe(json)
  // Labels that a program has moved to another field are still shared.
  expect(sharedObject(pod['labels'] as ValueObject)?.size).toBe(logSize({ app: 'shop' }))
  // Nothing is kept for values of other kinds, or for objects that are not marked.
  expect(sharedObject({ ...pod })).toBeUndefined()
})

test('the bytes of a huge shared object are not kept', () => {
  const huge: ValueObject = { text: 'x'.repeat(70_000) }
  markShared(huge)
  expect(written({ huge })).toBe(owed({ huge }))
  expect(sharedObject(huge)?.json).toBeUndefined()
})
