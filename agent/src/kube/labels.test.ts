import { expect, test } from 'vitest'
import { compileSelector } from './labels.ts'

test.each([
  ['a=b', true],
  ['a==b', true],
  ['a!=b', false],
  ['c!=x', true],
  ['a', true],
  ['!a', false],
  ['!c', true],
  ['a in (x, b)', true],
  ['a notin (x,b)', false],
  ['c notin (x)', true],
  ['a=b,d=e', true],
  ['', true],
])('labels a=b, d=e match "%s": %s', (selector, matches) => {
  expect(compileSelector(selector)({ a: 'b', d: 'e' })).toBe(matches)
})

test.each(['a=b c', 'a in b', '!', 'a=(b)', ',a'])('"%s" is not a selector', (text) => {
  expect(() => compileSelector(text)).toThrow(`"${text}" is not a valid label selector`)
})
