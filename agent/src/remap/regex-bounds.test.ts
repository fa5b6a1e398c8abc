// Programs end even with patterns and texts designed to stall a backtracking engine.

import { expect, test } from 'vitest'
import { Regex } from '../event/value.ts'
import { eachMatch, globalOf } from './matching.ts'
import { compileRegex } from './regex.ts'

const compiled = (pattern: string): Regex => {
  const regex = compileRegex(pattern)
  if (!(regex instanceof Regex)) throw new Error(regex.reason)
  return regex
}

const long = (text: string): string => text.repeat(50_000 / text.length)

test.each([
  ['(a+)+$', `${long('a')}b`],
  ['(a|a)*b', long('a')],
  ['(.*)*,', long('x')],
  ['(.*),(.*),(.*),(.*)x', long(',')],
  ['(?i)(\\w+\\s?)*$', `${long('ab ')}!`],
  ['(?P<k>\\w+)=(?P<v>\\w+)', long('a')],
  ['(?m)^(\\s*\\w*)*#$', long('a ')],
  ['\\b(\\w+)*\\b!', long('a')],
  ['(?s).*.*.*x', long('\n')],
])('%s finds nothing in a hostile text, and ends', (pattern, text) => {
  const regex = compiled(pattern)
  let matches = 0
  eachMatch(regex, text, (match) => {
    if (match[0] !== '') matches++
    return true
  })
  expect(matches).toBe(0)
  expect(regex.compiled.test(text)).toBe(globalOf(regex).exec(text) !== null)
})

test('keeps usual patterns for logs on the built-in engine', () => {
  const pattern = '^(?P<a>\\S+) (?P<b>\\S+) \\[(?P<t>[^\\]]+)\\] "(?P<r>[^"]*)" (?P<s>\\d+) (?P<n>\\d+|-)$'
  expect(compiled(pattern).compiled.constructor).toBe(RegExp)
})

test.each(['(a{1,1000}){1,1000}b', '(?:\\w{0,200}){0,200}x', '\\p{RGI_Emoji}'])('%s is refused', (pattern) => {
  expect(compileRegex(pattern)).not.toBeInstanceOf(Regex)
})

test.each([
  ['properties in one class', `(?i)[${'\\p{L}\\w'.repeat(1000)}]`],
  ['properties in classes of one class', `(?i)[${'[\\p{L}][\\w]'.repeat(500)}]`],
  ['properties that are negated', `[${'\\P{L}\\W'.repeat(1000)}]`],
  ['ASCII classes in one class', `[${'[:alpha:]'.repeat(20_000)}]`],
  [
    'characters in one class',
    `(?i)[${Array.from({ length: 20_000 }, (_, at) => String.fromCodePoint(0x4e00 + 2 * (at % 9000))).join('')}]`,
  ],
  ['differences of differences', `[${'a~~'.repeat(200)}a]`],
  ['words', '\\w'.repeat(100_000)],
  ['letters', 'a'.repeat(1_000_000)],
])('a pattern of very many %s is refused before the engine compiles it', (_what, pattern) => {
  expect(compileRegex(pattern)).toMatchObject({ reason: expect.stringContaining('exceeds size limit') })
})

test.each([
  '[\\w\\s\\d.:/-]+',
  '[[:alpha:][:digit:]_.-]+@[[:alnum:].-]+',
  '(?i)[\\p{Greek}\\p{Cyrillic}\\p{Latin}\\d]+',
  '[a-z~~d-f]+',
])('usual character classes compile: %s', (pattern) => {
  expect(compileRegex(pattern)).toBeInstanceOf(Regex)
})
