import { expect, test } from 'vitest'
import { isStackOverflow } from './stack.ts'

function thrownBy(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return error
  }
}

function endless(depth: number): number {
  return 1 + endless(depth + 1)
}

test('a stack overflow is recognised by the text of this version of Node', () => {
  const error = thrownBy(() => endless(0))
  expect(error).toBeInstanceOf(RangeError)
  expect(isStackOverflow(error)).toBe(true)
})

test.each([
  ['the length of an array', () => new Array(-1)],
  ['the length of a string', () => 'x'.repeat(2 ** 30)],
  ['the radix of a number', () => (1).toString(1)],
])('a RangeError about %s is not a stack overflow', (_, run) => {
  const error = thrownBy(run)
  expect(error).toBeInstanceOf(RangeError)
  expect(isStackOverflow(error)).toBe(false)
})
