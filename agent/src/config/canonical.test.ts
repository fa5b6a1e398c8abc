import { expect, test } from 'vitest'
import { canonicalJson, sameJson } from './canonical.ts'

/** Pairwise different values, with what makes a comparison of objects go wrong. */
const values: readonly unknown[] = [
  null,
  0,
  1,
  '1',
  '',
  true,
  false,
  [],
  [null],
  [1, 2],
  [2, 1],
  [[1], 2],
  {},
  { a: 1 },
  { a: null },
  { a: { b: [] } },
  { a: { b: {} } },
  { a: 1, b: 2 },
  { b: 2 },
  { 0: 1, 1: 2 },
  { length: 0 },
  { constructor: 1 },
  JSON.parse('{"__proto__": 1}'),
  { toString: null },
]

/** A copy with its keys in reverse order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)]),
  )
}

test('two values are the same exactly if their canonical texts are equal', () => {
  for (const left of values)
    for (const right of values.map(reversed))
      expect([left, right, sameJson(left, right)]).toEqual([left, right, canonicalJson(left) === canonicalJson(right)])
})

test('members that are undefined do not exist, also among many', () => {
  const same = [
    [{ a: 1, b: undefined }, { a: 1 }],
    [{ a: { b: undefined } }, { a: {} }],
    [[{ a: undefined }], [{}]],
  ]
  for (const [left, right] of same) {
    expect(sameJson(left, right)).toBe(true)
    expect(sameJson(right, left)).toBe(true)
  }
  expect(sameJson({ a: undefined, b: 1 }, { a: 1, b: undefined })).toBe(false)
  expect(sameJson({ a: undefined, b: 1 }, { b: 1, c: 2 })).toBe(false)
})
