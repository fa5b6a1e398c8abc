import { expect, test } from 'vitest'
import { isWhiteSpace, trimmed, trimmedEnd, trimmedStart } from './white-space.ts'

test('white space is what Unicode says', () => {
  const wrong: string[] = []
  for (let unit = 0; unit <= 0xffff; unit++) {
    if (/\p{White_Space}/u.test(String.fromCharCode(unit)) !== isWhiteSpace(unit)) wrong.push(unit.toString(16))
  }
  expect(wrong).toEqual([])
})

test('a byte order mark is not white space', () => {
  expect([trimmedStart(' \ufeffa '), trimmedEnd('a\ufeff \u0085'), trimmed('\u00a0 a b\t\n'), trimmed(' \n')]).toEqual([
    '\ufeffa ',
    'a\ufeff',
    'a b',
    '',
  ])
})
