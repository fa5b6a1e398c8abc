import { expect, test } from 'vitest'
import { holds } from './holds.ts'

test.each([
  { sentence: 'further fields belong to others', live: { a: 1, b: 2 }, wanted: { a: 1 }, is: true },
  { sentence: 'another value differs', live: { a: 2 }, wanted: { a: 1 }, is: false },
  { sentence: 'a missing field differs', live: {}, wanted: { a: 1 }, is: false },
  { sentence: 'a field that is not set is not wanted', live: {}, wanted: { a: undefined }, is: true },
  { sentence: 'the API server leaves out empty values', live: {}, wanted: { a: '', b: false, c: 0, d: {} }, is: true },
  { sentence: 'a quantity may be written in another way', live: { cpu: '1' }, wanted: { cpu: '1000m' }, is: true },
  { sentence: 'another quantity differs', live: { cpu: '2' }, wanted: { cpu: '1000m' }, is: false },
  { sentence: 'a list keeps its order', live: ['b', 'a'], wanted: ['a', 'b'], is: false },
  { sentence: 'a shorter list differs', live: ['a'], wanted: ['a', 'b'], is: false },
  {
    sentence: 'named items are found by their names',
    live: [{ name: 'injected' }, { name: 'agent', image: 'i', port: 1 }],
    ...{ wanted: [{ name: 'agent', image: 'i' }], is: true },
  },
  {
    sentence: 'a named item with another value differs',
    live: [{ name: 'agent', image: 'j' }],
    ...{ wanted: [{ name: 'agent', image: 'i' }], is: false },
  },
])('$sentence', ({ live, wanted, is }) => {
  expect(holds(live, wanted)).toBe(is)
})
