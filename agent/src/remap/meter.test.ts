// Programs of namespaced resources end before they block the agent or fill its memory, and the next event is processed.

import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { noMetadata } from '../event/log.ts'
import { Bytes, type ValueObject } from '../event/value.ts'
import { compressBlock } from '../formats/lz4.ts'
import { snappyCompress } from '../formats/snappy.ts'
import { isFailure } from './function.ts'
import { compileProgram, type Program } from './program.ts'
import { defaultBudget, restrictedRules } from './rules.ts'

function restricted(source: string): Program {
  const compiled = compileProgram(source, { keepResult: true, rules: restrictedRules })
  if (!compiled.ok) throw new TypeError(compiled.rendered)
  return compiled.program
}

const digits = '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]'
/** A body that runs 10 ** depth times. */
const loop = (depth: number, body: string): string => {
  const open = Array.from({ length: depth }, (_, at) => `for_each(d) -> |_i${at}, _v${at}| {\n`).join('')
  return `d = ${digits}\n${open}${body}\n${'}'.repeat(depth)}`
}
const repeated = (line: string, times: number): string => `${line}\n`.repeat(times)

const hostile: readonly (readonly [string, string])[] = [
  ['loops in loops', loop(9, 'true')],
  [
    'loops that filter',
    `d = ${digits}\n${'x = filter(d) -> |_i, _v| {'.repeat(9)} true ${'}\nlength(x) > 0'.repeat(9)}`,
  ],
  [
    'loops that map',
    `map_values(${digits}) -> |_v| { ${'map_values([1, 2, 3, 4, 5, 6, 7, 8, 9]) -> |_v| { '.repeat(8)}1${' }'.repeat(8)} }`,
  ],
  [
    'keys',
    `d = {"a": 1, "b": 2, "c": 3, "d": 4}\n${'x = map_keys(d) -> |k| {\n'.repeat(13)}k${'\n}\nx != {}\n"a"'.repeat(12)}\n}\nx`,
  ],
  ['an array appended to itself', loop(3, 'acc = append(acc, acc)').replace('d =', 'acc = [1]\nd =')],
  ['an array appended to itself, without a loop', `a = [1, 2, 3, 4]\n${repeated('a = append(a, a)', 40)}. = a`],
  ['a text added to itself', loop(3, 'acc = acc + acc').replace('d =', 'acc = "abc"\nd =')],
  ['a text added to itself, without a loop', `a = string!(.message)\n${repeated('a = a + a', 40)}.a = a`],
  ['a field added to itself', repeated('.message = string!(.message) + string!(.message)', 40)],
  ['a text repeated', '.a = "abcdefgh" * 100000000'],
  ['a text repeated by the event', '.a = string!(.message) * int!(.many)'],
  [
    'texts made of a large one, without a loop',
    `a = join!(split(string!(.long), ""), "0123456789")\n${repeated('x = upcase(a)', 70)}`,
  ],
  [
    'lists made of a large one, without a loop',
    `a = map_values(split(string!(.long), "")) -> |v| { v + "12345678" }\n${repeated('x = append(a, [1])', 100)}`,
  ],
  [
    'bytes with a short text in a loop',
    `acc = decode_base16!("ff") + string!(.long)\n${loop(6, 'acc = acc + "x"')}\nlength(acc)`,
  ],
  ['a text with another of the event in a loop', loop(6, 'acc = acc + string!(.long)').replace('d =', 'acc = ""\nd =')],
  [
    'literals in a loop',
    loop(5, `acc = {${Array.from({ length: 100 }, (_, at) => `"f${at}": _v0`).join(', ')}, "more": acc}`).replace(
      'd =',
      'acc = {}\nd =',
    ),
  ],
  [
    'an object merged with itself',
    `${loop(3, 'acc = {"a": acc, "b": acc}').replace('d =', 'acc = {}\nd =')}\n.acc = acc`,
  ],
  ['an array in itself, without a loop', `a = [1]\n${repeated('a = [a, a]', 40)}. = {"a": a}`],
  ['an event in itself', repeated('. = {"a": ., "b": .}', 40)],
  ['an event in its fields', `${Array.from({ length: 40 }, (_, at) => `.f${at} = .`).join('\n')}`],
  ['an array in itself as JSON', `a = [1]\n${repeated('a = [a, a]', 40)}.a = encode_json(a)`],
  ['arrays that are compared', `a = [1]\nb = [1]\n${repeated('a = [a, a]\nb = [b, b]', 30)}.a = includes([a], b)`],
  [
    'a set of fields',
    `o = {}\n${loop(5, 'o = set!(o, [encode_base16(to_string(_v0) + to_string(_v1) + to_string(_v2) + to_string(_v3) + to_string(_v4))], 1)')}`,
  ],
  ['replacements', `.a = replace(string!(.long), "a", string!(.long))`],
  ['replacements by a pattern', `.a = replace(string!(.long), r'a', string!(.long))`],
  ['replacements by a closure', `t = string!(.long)\n.a = replace_with(t, r'a') -> |_m| { t }`],
  [
    'a sieve',
    `.a = sieve(string!(.long), r'b', replace_single: string!(.long), replace_repeated: string!(.long))\n.b = replace(string!(.long), r'', string!(.long))`,
  ],
  ['a separator', `.a = join!(split(string!(.long), ""), string!(.long))`],
  ['names of nested fields', `. = flatten({"${'k'.repeat(100)}": {"x": .}}, separator: "${'s'.repeat(1000)}" * 1000)`],
  ['names of nested fields of the event', '.out = flatten(object!(.deep), separator: string!(.long))'],
  ['events of items', '.list = split(string!(.long), "a")\n.more = .list\n. = unnest(.list)'],
  ['JSON in JSON', `.a = "\\"\\\\"\n${repeated('.a = encode_json(.a)', 60)}`],
  ['hex of hex', `.a = string!(.message)\n${repeated('.a = encode_base16(string!(.a))', 40)}`],
  ['a long text in a loop', loop(6, '.n = length(sha2(string!(.long)))')],
  ['a long array in a loop', `l = split(string!(.long), "a")\n${loop(6, '.n = length(unique(l))')}`],
  ['a write into a long array in a loop', `l = split(string!(.long), "a")\n${loop(6, 'l[0] = _v0')}`],
  ['a write into the event in a loop', `.l = split(string!(.long), "a")\n${loop(6, '.l[0] = _v0')}`],
]

const deep = (): ValueObject => {
  let object: ValueObject = { end: 1 }
  for (let level = 0; level < 100; level++) object = { k: object, l: 1 }
  return object
}

test.each(hostile)('%s', (_name, source) => {
  const program = restricted(source)
  const fields = { message: 'abc', long: 'a'.repeat(100_000), many: 1_000_000_000, deep: deep() }
  for (let round = 0; round < 2; round++) {
    const event = { ...fields }
    const result = program.run(event, noMetadata, true)
    if (!isFailure(result)) throw new TypeError('it came to an end')
    expect(result).toMatchObject({ outcome: 'fatal', sort: 'budget' })
    expect(result.message).toMatch(/E720.*"[^"]+" \(\d+:\d+\)/)
    expect(result.message).toContain('`spec.programBudget` of a TenantPolicy changes the budget')
    expect(event).toEqual(fields)
  }
})

test.each([
  ['??', (body: string) => `.x = (${body}) ?? 1`],
  ['an error variable', (body: string) => `.x, err = ${body}`],
])('nothing in a program catches it: %s', (_name, caught) => {
  const items = 'split(string!(.long), ",")'
  const source = caught(`map_values(${items}) -> |v| { for_each(${items}) -> |_i, _v| { true }\nto_int(v) }`)
  const result = restricted(source).run({ long: Array(2000).fill('1').join(',') }, noMetadata, true)
  expect(result).toMatchObject({ outcome: 'fatal', sort: 'budget' })
})

test.each([
  [
    'a list built item by item',
    `out = []\nfor_each(split(string!(.text), " ")) -> |_i, word| { out = push(out, upcase(word)) }\nlength(out)`,
    2000,
  ],
  [
    'a text built piece by piece',
    `out = ""\nfor_each(split(string!(.text), " ")) -> |_i, word| { out = out + word + "," }\nlength(out)`,
    12_000,
  ],
  [
    'fields renamed',
    `length(map_keys(object!(.wide), recursive: true) -> |key| { replace(upcase(key), "_", ".") })`,
    1000,
  ],
  ['a deep event flattened', `length(flatten(object!(.wide)))`, 1000],
  ['all at once', `. = merge(., {"a": map_values(object!(.wide)) -> |v| { to_string(v) ?? "" }})\nlength(.)`, 3],
])('honest work is well below the budget: %s', (_name, source, expected) => {
  const wide = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`key_${at}`, at]))
  expect(restricted(source).run({ text: Array(2000).fill('words').join(' '), wide }, noMetadata, true)).toBe(expected)
})

test.each([
  '.a = parse_json!(string!(.message))\ndel(.message)\n.level = downcase(string(.a.level) ?? "info")',
  Array.from({ length: 100 }, (_, at) => `.f${at} = .g${at}`).join('\n'),
])('a program that cannot grow is not metered', (source) => {
  expect(compileProgram(source, { rules: restrictedRules })).toMatchObject({ ok: true })
  expect(restricted(source).code).not.toContain('M.')
})

test('constants of constants do not grow while a program is compiled', () => {
  let expression = `"${'a'.repeat(1000)}"`
  for (let level = 0; level < 20; level++) expression = `replace(${expression}, "a", "${'a'.repeat(100)}")`
  const result = restricted(expression).run({}, noMetadata, true)
  expect(result).toMatchObject({ sort: 'budget' })
})

test('a program with a budget has its own limit', () => {
  const source = '.a = 1\n'.repeat(40_000)
  expect(compileProgram(source, { rules: restrictedRules })).toMatchObject({ ok: false, diagnostics: [{ code: 203 }] })
})

const long = Buffer.alloc(defaultBudget.bytes + 1)
const lz4 = (data: Buffer): Buffer => {
  const size = Buffer.alloc(4)
  size.writeUInt32LE(data.length)
  return Buffer.concat([size, compressBlock(data)])
}

test.each<[string, (data: Buffer) => Buffer]>([
  ['decode_gzip(.data)', gzipSync],
  ['decode_zlib(.data)', deflateSync],
  ['decode_zstd(.data)', zstdCompressSync],
  ['decode_snappy(.data)', snappyCompress],
  ['decode_lz4(.data, prepended_size: true)', lz4],
])('ends a program whose value expands beyond the limit: %s', (call, compress) => {
  const run = (source: string, data: Buffer) =>
    restricted(source).run({ data: new Bytes(compress(data)) }, noMetadata, true)
  expect(run(`.x = ${call} ?? ${call} ?? 1`, long)).toMatchObject({ outcome: 'fatal', sort: 'budget' })
  const length = `length(${call.replace('(', '!(')})`
  expect(run(length, Buffer.from('a short text'))).toBe(12)
  const free = compileProgram(length, { keepResult: true })
  if (!free.ok) throw new TypeError(free.rendered)
  expect(free.program.run({ data: new Bytes(compress(long)) }, noMetadata, true)).toBe(long.length)
})

const damaged = (data: Buffer): Buffer => Buffer.concat([data.subarray(0, -6), Buffer.alloc(6, 0xff)])

test.each<[string, (data: Buffer) => Buffer]>([
  ['decode_gzip(.data)', (data) => damaged(gzipSync(data))],
  ['decode_zlib(.data)', (data) => Buffer.concat([deflateSync(data).subarray(0, -4), Buffer.alloc(4, 0xff)])],
  ['decode_zstd(.data)', (data) => damaged(zstdCompressSync(data))],
  ['decode_snappy(.data)', (data) => snappyCompress(data).subarray(0, -1)],
  ['decode_lz4(.data, prepended_size: true)', (data) => lz4(data).subarray(0, -1)],
])('data that fail after they gave much cost what they may have given: %s', (call, compress) => {
  const run = (source: string, data: Buffer) => restricted(source).run({ data: new Bytes(data) }, noMetadata, true)
  const data = compress(Buffer.alloc(4 << 20, 'abcdefgh'))
  expect(run(`${call} ?? "damaged"`, data)).toBe('damaged')
  expect(run(loop(4, `.x = ${call} ?? "damaged"`), data)).toMatchObject({ outcome: 'fatal', sort: 'budget' })
  const other = `${loop(3, `.x = ${call} ?? "no data"`)}\n.x`
  expect(run(other, Buffer.from('\x05\0\0\0 no data'))).toBe('no data')
})
