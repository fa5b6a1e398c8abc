import { expect, test } from 'vitest'
import { compileBounded } from './regex-linear.ts'
import { translateRuby } from './ruby-regex.ts'

const first = (pattern: string, text: string, dotAll = false) =>
  compileBounded(translateRuby(pattern, dotAll), 'v').exec(text)?.[0]

// The first match in Oniguruma.
test.each([
  ['a.b', 'a\nb', undefined],
  ['(?m)a.b', 'a\nb', 'a\nb'],
  ['(?m:a.)b.c', 'a\nb\nc', undefined],
  ['.+', 'foo\rbar\nbaz', 'foo\rbar'],
  ['^b\\w+', 'foo\nbar', 'bar'],
  ['\\Ab', 'foo\nbar', undefined],
  ['o$', 'foo\nbar', 'o'],
  ['o\\z', 'foo\n', undefined],
  ['o\\Z', 'foo\n', 'o'],
  ['a(?i)B|C', 'c', undefined],
  ['a(?i)B|C', 'ac', 'ac'],
  ['(?i:a)[b]', 'AB', undefined],
  ['(?x)f o # both\n o', 'foo', 'foo'],
  ['(?#a comment)o', 'foo', 'o'],
  ['[[:alpha:]]+', '12ä٣b3', 'ä'],
  ['[^[:digit:]]+', '٣ab1', 'ab'],
  ['[[[:alnum:]]_%]+', '-a_%1-', 'a_%1'],
  ['[a-z&&[^b]]+', 'bacb', 'ac'],
  ['[]a]+', 'x]a', ']a'],
  ['[a\\-z]+', 'b-a', '-a'],
  ['[a-]+', 'b-a', '-a'],
  ['\\h+', 'xyBeef!', 'Beef'],
  ['[\\H]+', 'BexyB', 'xy'],
  ['\\w+', '-äñ_1-', 'äñ_1'],
  ['\\d+', 'a٣4', '٣4'],
  ['\\bb', 'äb b', 'b'],
  ['\\R', 'a\r\nb', '\r\n'],
  ['a{,2}', 'aaa', 'aa'],
  ['a{2}?', 'aaa', 'aa'],
  ['a{1,3}?', 'aaa', 'a'],
  ['a{x', 'a{x', 'a{x'],
  ['a++b', 'aab', 'aab'],
  ['(?>a|b)c', 'bc', 'bc'],
  ['(?<!a)b', 'abb', 'b'],
  ['\\x41\\u0042[\\103]', 'ABC', 'ABC'],
  ['\\p{Alpha}\\p{^Alpha}', 'a1', 'a1'],
  ['\\/\\:\\_', '/:_', '/:_'],
])('%s in %j matches %j', (pattern, text, expected) => {
  expect(first(pattern, text)).toBe(expected)
})

test.each([
  ['(a', 'a "(" without its ")"'],
  ['a)', 'a ")" without its "("'],
  ['[a', 'a "[" without its "]"'],
  ['*a', '"*" has nothing to repeat'],
  ['a\\', 'a "\\" at the end'],
  ['(a)\\1', 'back-references are not supported'],
  ['(?<a>b)\\k<a>', '"\\k" is not supported'],
  ['(?~a)', 'this kind of group is not supported'],
  ['(?s).', 'there is no option "s"'],
  ['[[:nope:]]', 'there is no class [:nope:]'],
  ['\\p{Nope}', 'there is no property "Nope"'],
  ['a{3,1}', '{3,1} counts down'],
  [`${'('.repeat(300)}`, 'more than 250 groups within each other'],
])('%s is refused: %s', (pattern, problem) => {
  expect(() => translateRuby(pattern, false)).toThrow(problem)
})

test('a character after a backslash without a special meaning stands for itself', () => {
  for (const char of '!"#%&\',-/:;<=>@_`~{}[]()*+?.^$|') expect(first(`\\${char}`, `a${char}`), char).toBe(char)
})
