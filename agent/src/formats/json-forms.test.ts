import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { isDictionary, type ValueObject } from '../event/value.ts'
import { Random } from '../testing/random.ts'
import { isFailedJson, parseJson, writeJson } from './json.ts'
import { describe as describeForm, JsonFormReader } from './json-forms.ts'

/** Reads the text often enough for its form to be learned, then once more. */
function readOften(text: string) {
  const reader = new JsonFormReader()
  for (let round = 0; round < 4; round++) reader.read(text)
  return reader
}

test.each([
  '{"ts":"2026-01-01T10:00:00Z","level":"info","status":200,"duration":0.0625,"http":{"method":"GET","path":"/x"}}',
  '{"a": 1, "b": "two", "c": [] }',
  '{"a":-17,"b":0,"c":-0.5,"d":1.05,"e":100.10}',
  '{"time":1767225600123456789,"min":-8999999999999999999,"sixteen":1234567890123456,"id":123456789012345678}',
  '{"ok":true,"no":false,"nothing":null,"empty":{},"none":[]}',
  '{"tags":["a","b c"],"more":["x"]}',
  '{"größe":"überschritten","路径":"値","emoji":"🙂"}',
  '{"toString":"x","constructor":{"prototype":1},"a.b":"c","$(":"regular (expression)*"}',
  '{"message":"of thirteen or more characters","n":-12.5,"tags":["a","b"],"in":{"path":"/long/enough/too"},"short":"x"}',
  '{"message":"longer than a dozen, größer","path":"/long/enough/too"}',
  '{}',
])('the text %s has a form, and is read as the general reader reads it', (text) => {
  expect(describeForm(text)).toBeDefined()
  const value = readOften(text).read(text)
  expect(isDeepStrictEqual(value, parseJson(text))).toBe(true)
  expect(Object.keys(value as object)).toEqual(Object.keys(parseJson(text) as object))
})

test.each([
  ['an escape', '{"a":"x\\ny"}'],
  ['two equal keys', '{"a":1,"a":2}'],
  ['a key that means something else', '{"__proto__":{"polluted":1}}'],
  ['a key like an index', '{"b":1,"0":2}'],
  ['an exponent', '{"a":1e3}'],
  ['a negative zero', '{"a":-0}'],
  ['an integer beyond 64 bits', '{"a":18446744073709551615}'],
  ['numbers in an array', '{"a":[1,2]}'],
  ['no object', '[1]'],
  ['something after it', '{"a":1} x'],
  ['a leading zero', '{"a":01}'],
  ['no end', '{"a":1'],
])('a text with %s has no form', (_, text) => {
  expect(describeForm(text)).toBeUndefined()
  const known = readOften(text).read(text)
  const expected = parseJson(text)
  if (isFailedJson(expected)) expect(known).toEqual(expected)
  else expect(isDeepStrictEqual(known, expected)).toBe(true)
})

test('reads input that nearly has a known form as the general reader does', () => {
  const texts = [
    '{"name":"web","count":17,"ratio":0.25,"wide":1767225600123456789,"ok":true,"tags":["a","b"],"in":{"x":"y","n":3}}',
    '{"name": "web", "count": 17, "ratio": 10.5}',
    '{"n":1,"message":"order accepted and queued","wide":1767225600123456789,"tags":["a, b"],"in":{"path":"/api/items/1234"}}',
  ]
  const pieces = ['"', '\\', '\\u0041', ':', ',', '{', '}', '[', ']', '0', '-', '1.0', 'e5', '.', ' ', '\t', '\u0001', 'ü', '9999999999', '99999999999999999999', 'true', 'null', '1.00000000000000001', '0.99999999999999999'] // biome-ignore format: a table
  const chance = new Random(20260101)
  const random = (below: number) => chance.below(below)
  for (const base of texts) {
    const reader = readOften(base)
    for (let round = 0; round < 4_000; round++) {
      let text = base
      for (let edits = 1 + random(2); edits > 0; edits--) {
        const at = random(text.length)
        const piece = random(3) === 0 ? '' : (pieces[random(pieces.length)] as string)
        text = text.slice(0, at) + piece + text.slice(at + random(3))
      }
      const value = reader.read(text)
      const expected = parseJson(text)
      if (!isDeepStrictEqual(value, expected)) expect.fail(`${text}: ${JSON.stringify(value)}`)
      reader.read(base) // so that few hits do not pause the search
    }
  }
})

test('a text of many values has no form, and forms that do not recur are released', () => {
  const members = Array.from({ length: 65 }, (_, index) => `"k${index}":${index}`)
  expect(describeForm(`{${members.join(',')}}`)).toBeUndefined()
  const reader = new JsonFormReader()
  for (let index = 0; index < 5000; index++) {
    const text = `{"key_${index}":${index}}`
    expect(reader.read(text)).toEqual({ [`key_${index}`]: index })
  }
})

test.each([
  { what: 'keys that never come again', keysOf: (line: number) => [`a_${line}`, `b_${line * 7}`], dictionaries: true },
  {
    what: 'keys of nested objects that never come again',
    keysOf: (line: number) => ['a', `in.key_${line}`],
    dictionaries: true,
  },
  {
    what: 'twenty thousand sequences of keys',
    keysOf: (line: number) => Array.from({ length: 15 }, (_, bit) => bit).flatMap((bit) => (((line * 7919) % 20_011) >> bit) & 1 ? [`k${bit}`] : []), // biome-ignore format: one thought
    dictionaries: true,
  },
  {
    what: 'four thousand sequences of keys',
    keysOf: (line: number) => Array.from({ length: 12 }, (_, bit) => bit).flatMap((bit) => (((line * 7919) % 4093) >> bit) & 1 ? [`k${bit}`] : []), // biome-ignore format: one thought
    dictionaries: true,
  },
  {
    what: 'five hundred sequences of keys',
    keysOf: (line: number) => Array.from({ length: 9 }, (_, bit) => bit).flatMap((bit) => (((line * 7919) % 509) >> bit) & 1 ? [`k${bit}`] : []), // biome-ignore format: one thought
    dictionaries: false,
  },
  { what: 'one sequence of keys', keysOf: () => ['a', 'b'], dictionaries: false },
])('$what: objects are dictionaries: $dictionaries', ({ keysOf, dictionaries }) => {
  const reader = new JsonFormReader()
  const lineOf = (line: number) => {
    const members = keysOf(line).map((key) =>
      key.startsWith('in.') ? `"in":{"${key}":[${line}]}` : `"${key}":"\\n${line}"`,
    )
    return `{${members.join(',')}}`
  }
  for (let line = 0; line < 100_000; line++) {
    const text = lineOf(line)
    const value = reader.read(text) as ValueObject
    if (line < 90_000 || line % 1000 > 0) continue
    expect(value).toEqual(parseJson(text))
    expect(isDictionary(value)).toBe(dictionaries)
    expect(writeJson(value)).toBe(writeJson(parseJson(text) as ValueObject))
  }
  // A location with recurring keys is soon treated as such.
  for (let line = 0; line < 20_000; line++) reader.read('{"x":"\\n","y":1}')
  expect(isDictionary(reader.read('{"x":"\\n","y":1}') as ValueObject)).toBe(false)
})
