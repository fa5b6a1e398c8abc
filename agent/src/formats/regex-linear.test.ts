import { expect, test } from 'vitest'
import { BoundedRegExp, compileBounded } from './regex-linear.ts'

const space = '\\p{White_Space}'
const words = '[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]'

// Patterns that parse logs run on the built-in engine for lines of any length.
test.each([
  'foo',
  '^$',
  '\\d+',
  '[^,]+',
  `,${space}*`,
  '\\p{Nd}{4}-\\p{Nd}{2}-\\p{Nd}{2}',
  '^(?<a>\\P{White_Space}+) (?<b>\\P{White_Space}+) \\[(?<t>[^\\]]+)\\] "(?<r>[^"]*)" (?<s>\\p{Nd}+) (?<n>\\p{Nd}+|-)$',
  '^\\p{Nd}{1,3}(?:\\.\\p{Nd}{1,3}){3}$',
  '(?:(?:25[0-5]|2[0-4]\\p{Nd}|1?\\p{Nd}?\\p{Nd})\\.){3}(?:25[0-5]|2[0-4]\\p{Nd}|1?\\p{Nd}?\\p{Nd})',
  '^(?<t>\\p{Nd}{4}-\\p{Nd}{2}T[^ ]+) (?<l>DEBUG|INFO|WARN|ERROR) (?<m>[^\\n]*)$',
  'error|warn|fail(?:ed|ure)?',
  '[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}',
])('%s cannot make the built-in engine backtrack', (pattern) => {
  expect(compileBounded(pattern, 'v')).not.toBeInstanceOf(BoundedRegExp)
})

const many = (text: string, length = 50_000): string => text.repeat(length / text.length)
// Shorter for patterns with many states, each of which is reached at every position.
const hostile: readonly (readonly [string, string])[] = [
  ['(a+)+$', `${many('a')}b`],
  ['(a|a)*b', many('a')],
  ['(?:a|aa)+$', `${many('a')}b`],
  ['(?:.*)*,', many('x')],
  ['(.*),(.*),(.*),(.*),(.*)x', many(',')],
  ['^(.*?),(.*?),(.*?),(.*?)!$', many(',')],
  ['(?:x+x+)+y', many('x')],
  ['(a?){30}a{30}b', many('a', 10_000)],
  ['(?:a|a){40}b', many('a')],
  ['(|){40}(?:||){40}x', many('a')],
  [`${'a?'.repeat(40)}${'a'.repeat(40)}b`, many('a', 10_000)],
  [`(${words}+${space}?)*$`, `${many('ab ')}!`],
  ['(?:\\p{Nd}+,?)*$', `${many('123,')}!`],
  ['((((a*)*)*)*)*b', many('a')],
  ['([a-z]+)*\\p{Nd}', many('a')],
  [`${space}+$`, `${many(' ')}x`],
  [`(${words}+)=(${words}+)`, many('a')],
  ['.*.*.*=.*', many('x')],
  ['.*x', many('a')],
  ['(?:a.*)*(?:b.*)*c$', many('ab')],
  ['[A-Za-z0-9._%+\\-]+@[A-Za-z0-9.\\-]+\\.[A-Za-z]{2,}', many('a@a')],
  ['"(?:[^"\\\\]|\\\\.)*"', many('"\\')],
  ['^(?:([a-z])|([a-y])|é)+$', `${many('a')}é!`],
  ['(?:a{0,15}b?){0,20}c', many('a', 10_000)],
]

test.each(hostile)('%s ends on a hostile text', (pattern, text) => {
  const regex = compileBounded(pattern, 'vg')
  expect(regex.test(text)).toBe(regex.test(text))
  regex.lastIndex = 0
  expect(text.replace(regex, '').length).toBeLessThanOrEqual(text.length)
  expect(text.split(compileBounded(pattern, 'v')).length).toBeGreaterThan(0)
})

test('all states at once end on hostile texts', () => {
  for (const [pattern, text] of hostile) {
    const regex = new BoundedRegExp(pattern, 'v', { longest: -1, memoryBits: -1 })
    expect(regex.test(text.slice(-5000)), pattern).toBe(compileBounded(pattern, 'v').test(text.slice(-5000)))
  }
})

test('matching continues behind a match without a second look at failed text', () => {
  // Every match searches for an `x` up to the end.
  const text = 'ab'.repeat(25_000)
  expect(text.replace(compileBounded('a(?:.*x)?', 'vg'), '')).toBe('b'.repeat(25_000))
})

test.each([
  ['(a{1,1000}){1,1000}b', 'size limit'],
  [`${'('.repeat(1000)}a+${')+'.repeat(1000)}`, 'nested'],
  ['(', 'group'],
])('%s is refused', (pattern, reason) => {
  expect(() => compileBounded(pattern, 'v')).toThrow(reason)
})

// All search methods find the same matches as the built-in engine, with both strategies.
function all(regex: RegExp, text: string): unknown[] {
  const found: unknown[] = []
  regex.lastIndex = 0
  for (let match = regex.exec(text); match !== null && found.length < 50; match = regex.exec(text)) {
    found.push([[...match], match.index, regex.lastIndex, match.groups && { ...match.groups }, match.indices?.slice()])
    if (match[0] === '') regex.lastIndex += (text.codePointAt(regex.lastIndex) ?? 0) > 0xffff ? 2 : 1
  }
  return found
}

const same = (pattern: string, flags: string, texts: readonly string[]): void => {
  const native = new RegExp(pattern, flags)
  const going = new BoundedRegExp(pattern, flags, { longest: -1 })
  const together = new BoundedRegExp(pattern, flags, { longest: -1, memoryBits: -1 })
  for (const text of texts) {
    const expected = all(native, text)
    expect(all(going, text), `/${pattern}/${flags} on ${JSON.stringify(text)}`).toEqual(expected)
    expect(all(together, text), `/${pattern}/${flags} on ${JSON.stringify(text)}`).toEqual(expected)
  }
}

const texts = [
  '',
  'a',
  'aab',
  'a,b,,c',
  'k=v a="b c" x=',
  'ABab Straße 😀😀 ſK',
  'one\ntwo\r\n\nthree',
  '2026-11-21 10.0.0.255',
  'xaaaxa \\"a\\"',
  '😀a\ud83db\ude00',
]

test.each(['vg', 'vgd', 'vgi', 'gs', 'vgy', 'gi'])(
  'with flags %s matches are those of the built-in engine',
  (flags) => {
    const patterns = [
      // Excludes patterns that block the built-in engine even on short texts.
      ...hostile.map(([pattern]) => pattern).filter((pattern) => !/[05]\}|a\?a\?/.test(pattern)),
      '(?<a>a*)(?<b>b)?',
      '(?:(a)|(b)|c)*',
      '(a*)*',
      '(a*)+',
      '(a*?)*?b',
      '(?:|a)*',
      '(|a)+',
      '(a|b*){2,3}',
      '(?:a?){0,3}?',
      '(a*)?',
      '^|$',
      '\\b',
      '(?<=a)|(?!b)',
      '(?:(?<=[a-z])(?![a-z])|(?<![a-z])(?=[a-z]))',
      '(?<![^\\n])(.*)(?![^\\n])',
      '[^]',
      '.',
      '(?i:a)b|(?-i:A)',
      '😀+',
      '[😀-😂]{1,2}?',
      '(?<k>[a-z]+)=(?:"(?<q>[^"]*)"|(?<v>[^ ]*))',
      '\\s+|\\w+|\\W',
      '\\u0061|\\x62',
    ]
    for (const pattern of patterns) {
      try {
        new RegExp(pattern, flags)
      } catch {
        continue
      }
      same(pattern, flags, texts)
    }
  },
)

test('random patterns match like in the built-in engine', () => {
  let seed = 7
  const below = (count: number): number => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return (seed >>> 8) % count
  }
  const pick = (from: readonly string[]): string => from[below(from.length)] as string
  const atoms = ['a', 'b', '.', '[ab]', '[^a]', '\\p{Nd}', '^', '$', '(?:(?<=a)(?!a)|(?<!a)(?=a))', 'é', '😀', '']
  const signs = ['*', '+', '?', '{2}', '{0,2}', '{1,3}', '{2,}', '*?', '+?', '??', '{1,2}?']
  const make = (depth: number): string => {
    const kind = below(10)
    if (depth === 0 || kind < 3) return pick(atoms)
    if (kind < 5) return make(depth - 1) + make(depth - 1)
    if (kind < 7) return `(${kind === 5 ? '?:' : ''}${make(depth - 1)}|${make(depth - 1)})`
    if (kind < 8) return `(${make(depth - 1)})`
    return `(?:${make(depth - 1)})${pick(signs)}`
  }
  for (let count = 0; count < 1500; count++) {
    const pattern = make(4)
    if (pattern.length > 60) continue
    same(
      pattern,
      'vg',
      Array.from({ length: 4 }, () =>
        Array.from({ length: below(9) }, () => pick(['a', 'b', 'A', '1', '\n', 'é', '😀'])).join(''),
      ),
    )
  }
})

test.each([
  ['(?=(?<all>.*))(?<word>\\w+) (?<rest>.*)', 'one two', { all: 'one two', word: 'one', rest: 'two' }],
  ['^(?!.*debug).*$', 'an error', {}],
  ['^(?!.*debug).*$', 'a debug line', undefined],
  ['(?:(?=(?<next>.*))a)+b', 'aab', { next: 'ab' }],
])('long lookarounds match equally in both engines: %s in %s', (pattern, text, groups) => {
  for (const limits of [{}, { longest: -1 }, { longest: -1, memoryBits: 0 }]) {
    const found = new BoundedRegExp(pattern, 'v', limits).exec(text)
    expect(found === null ? undefined : { ...found.groups }).toEqual(groups)
  }
})

test('texts too long for a long lookaround are not searched', () => {
  const pattern = compileBounded('(?:a|a)*(?!.{0,100}z)b', 'v')
  expect(pattern.test(`${'a'.repeat(5000)}b`)).toBe(true)
  expect(pattern.test(`${'a'.repeat(5_000_000)}b`)).toBe(false)
})

test('back-references are refused', () => {
  expect(() => compileBounded('(a|a)*\\1b', 'v')).toThrow('has back-references')
})
