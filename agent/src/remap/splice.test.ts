// Running the program and splicing give the same JSON bytes and sizes for an event.

import { expect, test } from 'vitest'
import { Body } from '../event/body.ts'
import { DeferredEvent } from '../event/deferred.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Bytes, Float, type ValueObject } from '../event/value.ts'
import { writeJson, writeJsonTo } from '../formats/json.ts'
import { jsonText, names, scalars } from '../testing/json-texts.ts'
import { Random } from '../testing/random.ts'
import { isFailure } from './function.ts'
import { compileProgram, type Program } from './program.ts'
import { restrictedRules } from './rules.ts'
import { type Splice, spliceOf } from './splice.ts'

function compile(source: string, rules?: typeof restrictedRules): Program {
  const compiled = compileProgram(source, { rules })
  if (!compiled.ok) throw new Error(compiled.rendered)
  return compiled.program
}

/** A program that only changes an event when its fields are read. */
function deferring(program: Program): Splice {
  const splice = spliceOf(program)
  if (splice?.defers !== true) throw new Error('The program is not spliced.')
  return splice
}

const merged = '. = merge(., object!(parse_json!(.message)))\ndel(.message)'
const replaced = '. = parse_json!(.message)\n.env = "prod"\n.n = 5\n.f = 2.0\ndel(.a)\n.b = "x\\ny"\ndel(.env)'
const programs = [
  merged,
  replaced,
  '. = object!(parse_json!(.message))',
  '. = merge(., object(parse_json(.message) ?? {}) ?? {})',
  '. = merge(., object!(parse_json!(.message)))\n.file = {"z": [1, {}], "a": null}\n.message = true',
]

function before(message: string): ValueObject {
  const orchestrator = { pod_labels: { app: 'ü"', b: 'c' }, pod_name: 'p' }
  const timestamp = new Timestamp(1_700_000_000_123, 456_000)
  return { file: '/var/log/a "b"', message, orchestrator, gone: undefined, stream: 'stdout', timestamp, n: 1.5 }
}

/** Whether the text was spliced; fails if splicing and running differ. */
function compare(program: Program, splice: Splice, text: string): boolean {
  const fields = before(text)
  const deferred = splice.defer(new LogEvent(fields))
  const isFailed = isFailure(program.run(before(text), new LogEvent({}).metadata, true))
  if (deferred === undefined) return false
  expect(isFailed, text).toBe(false)
  const expected = program.frame.root as ValueObject
  const body = new Body(1)
  expect(deferred.writeJson(body)).toBe(true)
  expect(body.view().toString(), text).toBe(writeJson(expected))
  expect(deferred.size, text).toBe(new LogEvent(expected).size)
  expect(fields).toEqual(before(text))
  expect(writeJson(deferred.fields), text).toBe(writeJson(expected))
  return true
}

test.each(programs)('splices the same bytes that a run produces: %s', (source) => {
  const program = compile(source)
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  let splice = deferring(program)
  let spliced = 0
  for (let round = 0; round < 6000; round++) {
    // Starts again without learned keys and statistics.
    if (round % 800 === 0) splice = deferring(program)
    const text = jsonText(random)
    try {
      if (compare(program, splice, text)) spliced++
    } catch (error) {
      throw new Error(`Seed ${seed}, text ${JSON.stringify(text)}`, { cause: error })
    }
  }
  expect(spliced).toBeGreaterThan(1500)
})

test.each(programs)('each kind of value, complete and truncated anywhere: %s', (source) => {
  const program = compile(source)
  const splice = deferring(program)
  for (const value of scalars) {
    const text = `{"v":${value},"w":${value}}`
    for (const part of [text, text.slice(0, -1), text.slice(0, 5 + value.length)]) compare(program, splice, part)
  }
  for (const name of names) compare(program, splice, `{"${name}":1,"${name}":2}`)
  for (const name of names) compare(program, splice, `{"${name}":1}`)
  expect(compare(program, splice, '{"v":1.5,"w":[2]}')).toBe(true)
})

test('does not leak bytes of the last text into the next', () => {
  const program = compile(merged)
  const splice = deferring(program)
  const secret = `{"secret":"${'s'.repeat(4000)}"}`
  for (const text of ['{"a":"', '{"a":1', '{"a":tr', '{', '{"a', '{"a":[', '{"a":"\\', '']) {
    expect(compare(program, splice, secret)).toBe(true)
    expect(compare(program, splice, text)).toBe(false)
  }
})

test('the program handles long texts, many members and many keys', () => {
  const program = compile(merged)
  const splice = deferring(program)
  const withMembers = (count: number, first = 0) =>
    `{${Array.from({ length: count }, (_, index) => `"m${first + index}":${index}`).join(',')}}`
  expect(compare(program, splice, `{"a":"${'x'.repeat(16_000)}"}`)).toBe(true)
  expect(compare(program, splice, `{"a":"${'x'.repeat(17_000)}"}`)).toBe(false)
  expect(compare(program, splice, withMembers(64))).toBe(true)
  expect(compare(program, splice, withMembers(65))).toBe(false)
  for (let first = 0; first < 2000; first += 50) compare(program, splice, withMembers(50, first))
  expect(compare(program, splice, withMembers(2, 5000))).toBe(false)
  expect(compare(program, splice, withMembers(64))).toBe(true)
})

test('fields of the event may differ from one event to the next', () => {
  const program = compile(merged)
  const splice = deferring(program)
  const shared = { nested: 'x'.repeat(70_000) }
  const all: ValueObject[] = [
    { a: 1, message: '{"b":1}', c: 'one' },
    { c: 'two', message: '{"b":1}', a: shared },
    { message: '{"a":null}', a: shared, d: 'three' },
    { message: '{"c":1}' },
    { message: '{}', c: 'two', x: [1], d: null, a: 'y'.repeat(70_000) },
    { message: '{}', c: 'two', x: [2], d: null, a: 'z'.repeat(70_000) },
  ]
  for (const fields of [...all, ...all]) {
    const deferred = splice.defer(new LogEvent(fields))
    program.run(fields, new LogEvent({}).metadata, false)
    const body = new Body(64)
    expect(deferred?.writeJson(body)).toBe(true)
    expect(body.view().toString()).toBe(writeJson(program.frame.root))
    expect(deferred?.size).toBe(new LogEvent(program.frame.root as ValueObject).size)
  }
})

test('the program handles values that are not text, and invalid text', () => {
  const splice = deferring(compile(merged))
  for (const message of [new Bytes(Buffer.from([0x7b, 0xff])), 5, null, undefined, new Float(1), {}]) {
    expect(splice.defer(new LogEvent({ message }))).toBeUndefined()
  }
})

test.each([
  '. = merge(., object!(parse_json!(.message)), deep: true)',
  '. = merge({}, object!(parse_json!(.message)))',
  '. = parse_json!(.message, max_depth: 2)',
  '. = parse_json!(.a.b)',
  '.x = parse_json!(.message)',
  '. = parse_json!(.message)\n.a.b = 1',
  '. = parse_json!(.message)\n.a = .b',
  '. = parse_json!(.message)\ndel(.a.b)',
  '. = parse_json!(.message)\n%a = 1',
  '. = parse_json!(.message)\n.a = now()',
  '. = parse_json!(.message)\n."ü" = 1',
  '. = parse_json!(.message)\nif true { del(.a) }',
])('a program with other statements runs: %s', (source) => {
  expect(spliceOf(compile(source))?.defers ?? false).toBe(false)
})

test('a budget makes no difference, because no such program is large enough to count what it uses', () => {
  for (const source of programs) {
    const program = compile(source, restrictedRules)
    expect(program.isMetered).toBe(false)
    expect(compare(program, deferring(program), '{"v":1.5,"w":[2]}')).toBe(true)
  }
  expect(compile('. = map_values(., recursive: true) -> |value| { value }', restrictedRules).isMetered).toBe(true)
})

test('events whose fields are read are no longer deferred', () => {
  const splice = deferring(compile(merged))
  let deferred = 0
  for (let round = 0; round < 20_000; round++) {
    const event = splice.defer(new LogEvent({ message: '{"a":1}' }))
    if (event === undefined) continue
    deferred++
    expect(event.fields['a']).toBe(1)
  }
  expect(deferred).toBeLessThan(5000)
})

test('generated code creates events if many have the same keys; otherwise they are deferred', () => {
  const deferredOf = (sequences: number) => {
    const splice = deferring(compile(merged))
    let deferred = 0
    for (let round = 0; round < 20_000; round++) {
      const number = round % sequences
      const members = Array.from({ length: 12 }, (_, bit) => ((number >> bit) & 1 ? `,"m${bit}":1` : ''))
      if (splice.defer(new LogEvent({ message: `{"a":1${members.join('')}}` })) !== undefined) deferred++
    }
    return deferred
  }
  expect(deferredOf(1)).toBeLessThan(2000)
  expect(deferredOf(10)).toBeLessThan(2000)
  expect(deferredOf(4000)).toBe(20_000)
})

test('a deferred event is a normal event once its fields exist', () => {
  const event = deferring(compile(merged)).defer(new LogEvent({ message: '{"a":1}', b: 2 }))
  if (!(event instanceof DeferredEvent)) throw new Error('It is not deferred.')
  const copy = event.measuredCopy()
  expect(copy.fields).toEqual({ a: 1, b: 2, message: undefined })
  event.fields['c'] = 'd'
  event.changed()
  expect(event.size).toBe(new LogEvent({ a: 1, b: 2, c: 'd' }).size)
  const body = new Body(64)
  expect(event.writeJson(body)).toBe(false)
  writeJsonTo(body, event.fields, event.shape)
  expect(body.view().toString()).toBe('{"a":1,"b":2,"c":"d"}')
  expect(copy.fields['c']).toBeUndefined()
})
