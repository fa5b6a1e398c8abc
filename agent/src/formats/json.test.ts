import { expect, test } from 'vitest'
import { Body } from '../event/body.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { Random } from '../testing/random.ts'
import { isFailedJson, parseInvalidUtf8, parseJson, parseJsonDepth, writeJson, writeJsonTo } from './json.ts'
import { writeJsonStringOf } from './json-bytes.ts'

test.each([
  ['{"a":1.0}', '{"a":1.0}'],
  ['{"a":1,"b":1.50,"c":0.0625}', '{"a":1,"b":1.5,"c":0.0625}'],
  ['{"a":1e3,"b":2E-1}', '{"a":1000.0,"b":0.2}'],
  ['{"a":-0,"b":-0.0,"c":-0.5}', '{"a":-0.0,"b":-0.0,"c":-0.5}'],
  ['{"a":9007199254740993,"b":-9223372036854775808}', '{"a":9007199254740993,"b":-9223372036854775808}'],
  ['{"a":9223372036854775808}', '{"a":9.223372036854775808e+18}'.replace('775808e', '776e')],
  ['[1.0,1,[2e0]]', '[1.0,1,[2.0]]'],
  ['{"a" : 1.0 }', '{"a":1.0}'],
  ['{"a":\n1.0}', '{"a":1.0}'],
  [
    '{"time":"10:25:45.000Z","ip":"10.0.0.1","id":"12e4","n":7}',
    '{"id":"12e4","ip":"10.0.0.1","n":7,"time":"10:25:45.000Z"}',
  ],
  ['{"text":"a \\":1.0","n":1}', '{"n":1,"text":"a \\":1.0"}'],
  ['{"b":{"10":1,"9":2},"a":0.000001}', '{"a":1e-6,"b":{"10":1,"9":2}}'],
  ['{"__proto__":{"x":1},"constructor":2}', '{"__proto__":{"x":1},"constructor":2}'],
  ['{"\u{1f600}":1,"\uffff":2}', '{"\uffff":2,"\u{1f600}":1}'],
])('%s is written as %s', (text, expected) => {
  const value = parseJson(text)
  expect(isFailedJson(value) ? value.reason : writeJson(value)).toBe(expected)
})

test('the fast and the exact reader agree on numbers in every form and place', () => {
  const numbers = [
    '0',
    '-0',
    '-0.0',
    '0.0',
    '1.0',
    '1.05',
    '0.050',
    '-7',
    '1e3',
    '1E-2',
    '1.0e1',
    '123456789012345',
    '1234567890123456',
    '9223372036854775807',
    '9223372036854775808',
    '999999999999999.99',
    '1.99999999999999999999',
    '-0.999999999999999999999',
    '0.84376281234567891234',
    '1e400',
    '12345678901234567890123',
  ]
  const places = [
    '{"a":#}',
    '{"a": #}',
    '{"a":\t#}',
    '{"a" :#}',
    '[#]',
    '{"a":[1.5,#]}',
    '{"a":{"b":#},"c":"x:1.0"}',
    '{"a":1,"a":#}',
    '{"t":"10:00:01.000","a":#}',
  ]
  for (const place of places) {
    for (const number of numbers) {
      const text = place.replace('#', number)
      expect([text, parseJson(text)]).toEqual([text, parseJsonDepth(text, 100)])
    }
  }
})

test('the fast and the exact reader agree on texts of any kind', () => {
  const random = new Random(20261123)
  const pick = <T>(items: readonly T[]): T => items[random.below(items.length)] as T
  // Nanoseconds since 1970 so close to each other that they round to one double, and numbers at the limits of a double.
  const wide = () => `${pick(['', '-'])}17638482900000${String(random.below(100_000)).padStart(5, '0')}`
  const numbers = ['0', '-0', '7', '1.0', '2.50', '1e3', '9007199254740991', '9007199254740992', '9007199254740993',
    '9223372036854775807', '-9223372036854775808', '9223372036854775808', '1763848290123456', '12345678901234567.5'] // biome-ignore format: a table
  const pieces = ['a', ' ', 'é', '\\"', '\\\\', '\\n', '\\u003c', '\\u00e9', '\\\\u003e', '\\ud83d\\ude00', '\\uD83D\\uDE00', '\\ud83d', '\\ude00',
    '\\\\ud83d', '\\\\u\\ude00', '\\u12', ':1763848290000000123', '":1e5,"', '{', ']', '\\/'] // biome-ignore format: a table
  const string = () =>
    `"${Array.from({ length: random.below(4) }, () => pick(pieces.slice(0, random.below(3) === 0 ? pieces.length : 9))).join('')}"`
  const value = (depth: number): string => {
    const kind = random.below(depth > 3 ? 4 : 7)
    if (kind === 0) return string()
    if (kind === 1) return wide()
    if (kind === 2) return random.below(4) === 0 ? pick(numbers) : String(random.below(100_000))
    if (kind === 3) return pick(['true', 'null', '[]', '{}', '0.5'])
    if (kind === 4) return `[${Array.from({ length: random.below(4) }, () => value(depth + 1)).join(', ')}]`
    return object(depth + 1)
  }
  const object = (depth: number): string => {
    const members = Array.from(
      { length: random.below(5) },
      () => `${pick(['"a"', '"b"', '"10"', '"9"', '"__proto__"', string()])}:${pick(['', ' '])}${value(depth)}`,
    )
    return `{${members.join(',')}}`
  }
  for (let round = 0; round < 30_000; round++) {
    const long = random.below(8) === 0 ? `"padding":"${'x'.repeat(600)}",` : ''
    const text = random.below(2) === 0 ? `{${long}"v":${value(1)},"w":${value(1)}}` : object(0)
    expect([text, parseJson(text)]).toEqual([text, parseJsonDepth(text, 100)])
  }
})

test('a shared object is written once, and again after a change', () => {
  const pod = { name: 'web', labels: { app: 'shop', version: 2 } }
  for (let index = 0; index < 3; index++) {
    expect(writeJson({ z: index, pod, a: null, gone: undefined })).toBe(
      `{"a":null,"pod":{"labels":{"app":"shop","version":2},"name":"web"},"z":${index}}`,
    )
  }
  expect(writeJson({ z: 3, pod: { ...pod, name: 'api' }, a: null, gone: undefined })).toBe(
    '{"a":null,"pod":{"labels":{"app":"shop","version":2},"name":"api"},"z":3}',
  )
})

test('objects are written like the platform does, for any strings and any free space in the body', () => {
  const random = new Random(20261121)
  const pieces = [
    'a',
    'word ',
    '"',
    '\\',
    '\n',
    '\u0001',
    '\u007f',
    'é',
    'Ł',
    '€',
    '\u{1f600}',
    '\ud800',
    '0123456789'.repeat(5),
  ]
  const text = (): string => {
    let made = ''
    // Mostly plain strings, short and long, some of them slices of a longer string.
    const kinds = random.below(4) === 0 ? pieces.length : 2
    for (let parts = random.below(20); parts > 0; parts--)
      made += random.below(9) === 0 ? pieces[12] : pieces[random.below(kinds)]
    return random.below(2) === 0 ? made : made.slice(random.below(3))
  }
  const value = (depth: number): Value => {
    const kind = random.below(depth > 2 ? 5 : 8)
    if (kind < 2) return text()
    if (kind === 2) return [0, 7, 10, 99, 100, 2_147_483_647, -1, 2_147_483_648, 2 ** 53 - 1][random.below(9)] as number
    if (kind === 3) return [true, false, null, 0.5, 1234.0625][random.below(5)] as Value
    if (kind < 6) return Array.from({ length: random.below(3) }, () => value(depth + 1))
    return object(depth + 1)
  }
  const object = (depth: number): ValueObject => {
    const made: ValueObject = {}
    for (const name of ['a', 'b"', 'c', 'd', 'nested']) if (random.below(3) > 0) made[name] = value(depth)
    return made
  }
  let shared = object(1)
  for (let round = 0; round < 4000; round++) {
    if (random.below(10) === 0) shared = object(1)
    const fields = { ...object(0), é: shared }
    const body = new Body(random.below(400) + 1)
    body.writeText('#'.repeat(random.below(300)))
    const before = body.length
    writeJsonTo(body, fields)
    expect(body.view().toString('utf8', before)).toBe(JSON.stringify(fields))
    expect(writeJson(fields)).toBe(JSON.stringify(fields))
  }
})

test('bytes become the same JSON string as their text, for any free space in the body', () => {
  const texts = [
    '',
    'plain',
    '{"a":"b \\"c\\" \\\\ d"}',
    'line\nnext\ttab\u0001\u007f',
    'größe €\u{1f600}',
    '"\\'.repeat(100),
  ]
  const given = [
    ...texts.map((text) => Buffer.from(text)),
    Buffer.from([0x61, 0xff, 0x22, 0xc3]),
    Buffer.from([0xed, 0xa0, 0x80]),
  ]
  for (const bytes of given) {
    const text = new Body(1)
    text.writeBytes(bytes)
    const body = new Body(3)
    body.writeText('x')
    writeJsonStringOf(text, body)
    expect(body.view().toString()).toBe(`x${JSON.stringify(bytes.toString())}`)
  }
})

test.each([
  ['', 'EOF while parsing a value at line 1 column 0'],
  ['nul', 'EOF while parsing a value at line 1 column 3'],
  ['nulla', 'trailing characters at line 1 column 5'],
  ['truz', 'expected ident at line 1 column 4'],
  ['faz', 'expected ident at line 1 column 3'],
  ['+', 'expected value at line 1 column 1'],
  ['-', 'EOF while parsing a value at line 1 column 1'],
  ['-a', 'invalid number at line 1 column 2'],
  ['00', 'invalid number at line 1 column 2'],
  ['0x80', 'trailing characters at line 1 column 2'],
  ['1.', 'EOF while parsing a value at line 1 column 2'],
  ['1.e1', 'invalid number at line 1 column 3'],
  ['1.5.2', 'trailing characters at line 1 column 4'],
  ['1e+', 'EOF while parsing a value at line 1 column 3'],
  ['1e999', 'number out of range at line 1 column 5'],
  ['"lol', 'EOF while parsing a string at line 1 column 4'],
  ['"lol"a', 'trailing characters at line 1 column 6'],
  ['"\\x"', 'invalid escape at line 1 column 3'],
  ['"\\uzzzz"', 'invalid escape at line 1 column 7'],
  ['"\\uD8', 'EOF while parsing a string at line 1 column 5'],
  ['"\\uD83C"', 'unexpected end of hex escape at line 1 column 8'],
  ['"\\uD83C\\n"', 'unexpected end of hex escape at line 1 column 9'],
  ['"\\uD83C\\uFFFF"', 'lone leading surrogate in hex escape at line 1 column 13'],
  ['"\n"', 'control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0'],
  ['[ ', 'EOF while parsing a list at line 1 column 2'],
  ['[1,', 'EOF while parsing a value at line 1 column 3'],
  ['[1,]', 'trailing comma at line 1 column 4'],
  ['[1 2]', 'expected `,` or `]` at line 1 column 4'],
  ['{1', 'key must be a string at line 1 column 2'],
  ['{ "a"', 'EOF while parsing an object at line 1 column 5'],
  ['{"a" 1', 'expected `:` at line 1 column 6'],
  ['{"a":1 1', 'expected `,` or `}` at line 1 column 8'],
  ['{"a":1,', 'EOF while parsing a value at line 1 column 7'],
  ['{"a":1,}', 'trailing comma at line 1 column 8'],
  ['"ü" x', 'trailing characters at line 1 column 6'],
  ['\ufeffx', 'expected value at line 1 column 1'],
  ['\n\n x', 'expected value at line 3 column 2'],
])('the error of %j gives the byte at which the text is wrong', (text, reason) => {
  expect(parseJson(text)).toEqual({ reason })
})

test.each([
  ['[1, "a\xff"]', 'invalid unicode code point at line 1 column 8'],
  ['{"k\xff": 1}', 'invalid unicode code point at line 1 column 5'],
  ['["ok",\n "\xc3\xa9", "\xe9"]', 'invalid unicode code point at line 2 column 10'],
  // An error before the bytes comes first. Such bytes outside of strings are an error too.
  ['[1 "\xff"]', 'expected `,` or `]` at line 1 column 4'],
  ['["\xff', 'EOF while parsing a string at line 1 column 3'],
  ['\xff', 'expected value at line 1 column 1'],
])('text that is not UTF-8 fails at the end of the first such string: %j', (text, reason) => {
  expect(parseInvalidUtf8(Buffer.from(text, 'latin1')).reason).toBe(reason)
})

test('values nested deeper than 127 are refused', () => {
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  expect(isFailedJson(parseJson(deep(127)))).toBe(false)
  expect(isFailedJson(parseJson(deep(128)))).toBe(true)
})

test('the depth of a long text is measured before the platform reads it, without brackets in strings', () => {
  const padding = ' '.repeat(40_000)
  expect(parseJson(`${'[{"a":'.repeat(500_000)}`)).toMatchObject({ reason: expect.stringContaining('recursion limit') })
  expect(parseJson(`["${'[{'.repeat(1000)}","\\\\","\\"${'['.repeat(200)}"]${padding}`)).toEqual([
    '[{'.repeat(1000),
    '\\',
    `"${'['.repeat(200)}`,
  ])
  expect(isFailedJson(parseJson(`["\\\\",${'['.repeat(200)}${']'.repeat(201)}${padding}`))).toBe(true)
})
