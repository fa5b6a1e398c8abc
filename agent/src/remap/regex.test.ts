import { expect, test } from 'vitest'
import { Regex } from '../event/value.ts'
import { compileRegex, groupNames } from './regex.ts'

function match(pattern: string, text: string): string | null {
  const regex = compileRegex(pattern)
  if (!(regex instanceof Regex)) throw new Error(regex.reason)
  return regex.compiled.exec(text)?.[0] ?? null
}

test.each([
  ['(?P<a>x)(?<b>y)', 'xy', 'xy'],
  ['(?i)ERR', 'an error', 'err'],
  ['a(?i)b|C', 'c', 'c'],
  ['(?i:a)b', 'AB', null],
  ['(?i:a)[b]', 'AB', null],
  ['(?i:a)[^b]', 'AB', 'AB'],
  ['(?i:a)x[b]', 'AxB', null],
  ['(?i:error) \\p{Lu}', 'ERROR e', null],
  ['(?i:a)|[b]', 'B', null],
  ['^(?i)a(?-i:b)[c]$', 'AbC', 'AbC'],
  ['((?i)a)[b]', 'AB', null],
  ['b(?:|a){1,2}', 'ba', 'b'],
  ['b(?:|a)?', 'ba', 'b'],
  ['b(?:|a)??a', 'ba', 'ba'],
  ['\\b{2}a', 'a', 'a'],
  ['(?i)straße', 'STRAßE', 'STRAßE'],
  ['(?s)a.b', 'a\nb', 'a\nb'],
  ['a.b', 'a\nb', null],
  ['a.b', 'a\rb', 'a\rb'],
  ['(?m)^x$', 'y\nx\nz', 'x'],
  ['^x$', 'y\nx', null],
  ['x\\z', 'x\n', null],
  ['(?x) a \\ b # comment', 'a b', 'a b'],
  ['(?U)a+', 'aaa', 'a'],
  ['\\d+', '٣٤', '٣٤'],
  ['(?-u)\\d+', '٣', null],
  ['\\w+', 'größe', 'größe'],
  ['\\bß\\b', 'aß ß', 'ß'],
  ['[[:alpha:]_]+', '1ab_', 'ab_'],
  ['[[:^digit:]]+', '1ab', 'ab'],
  ['[a-z&&[^aeiou]]+', 'aeibc', 'bc'],
  ['[a-z--[aeiou]]+', 'aeibc', 'bc'],
  ['[a-c~~b-d]+', 'bcad', 'ad'],
  ['[]a]+', ']a', ']a'],
  ['[a-]+', 'a-', 'a-'],
  ['[^\\]]+', 'ab]', 'ab'],
  ['\\p{Greek}+', 'abγδ', 'γδ'],
  ['\\pL+', '1é', 'é'],
  ['\\P{Lu}+', 'Aa', 'a'],
  ['\\x41\\x{42}\\u0043', 'ABC', 'ABC'],
  ['a{2,3}?', 'aaa', 'aa'],
  ['a|ab', 'ab', 'a'],
  ['(?:a*)*b', 'aab', 'aab'],
  ['\\/\\-"\'`', '/-"\'`', '/-"\'`'],
])('%s on %j matches %j', (pattern, text, expected) => {
  expect(match(pattern, text)).toBe(expected)
})

test.each([
  '(',
  ')',
  '[a',
  'a{2,1}',
  '*a',
  '(?=a)',
  '(?<!a)',
  '\\1',
  '(?P<a>x)(?P<a>y)',
  '\\p{Nope}',
  '[b-a]',
  'a{',
  '\\y',
])('%s is refused', (pattern) => {
  expect(compileRegex(pattern)).not.toBeInstanceOf(Regex)
})

test('groups can have names that JavaScript does not support', () => {
  const regex = compileRegex('(?P<a.b>x)(y)(?P<c>z)') as Regex
  expect(groupNames(regex)).toEqual([undefined, 'a.b', undefined, 'c'])
})

test('the engine still matches a class with the flags of a group before it', () => {
  // If this fails, the groups around classes in regex.ts and ruby-regex.ts are no longer needed.
  expect(/(?i:a)[b]/v.test('AB')).toBe(true)
})

test.each([
  ['^(?:|a)+', 'aaa', ''],
  ['^(?:|a)*', 'aaa', ''],
  ['^(?:|a)+b', 'aab', 'aab'],
  ['^(?:|a){2,}b', 'aab', 'aab'],
  ['^(\\s??){1,}', '  x', ''],
  ['^(?:a*?)+', 'aaa', ''],
  ['^(?:a|)+', 'aaa', 'aaa'],
  ['^(?:a?)+', 'aaa', 'aaa'],
  ['^(?:a*)*', 'aaa', 'aaa'],
])('an iteration of %s that matches nothing ends the repetition', (pattern, text, matched) => {
  const { compiled } = compileRegex(pattern) as Regex
  expect(compiled.exec(text)?.[0]).toBe(matched)
})
