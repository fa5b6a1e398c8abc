// Quantities by the grammar of Kubernetes and by the schema of the custom resources.

import { expect, test } from 'vitest'
import { limitOf, quantityOf, quantityPattern } from './quantity.ts'
import { quantity } from './schema.ts'

const valid: readonly (readonly [string | number, number])[] = [
  [500, 500],
  ['0', 0],
  ['500', 500],
  ['+5', 5],
  ['.5Gi', 2 ** 29],
  ['5.', 5],
  ['1.5k', 1500],
  ['1000n', 1e-6],
  ['1000u', 1e-3],
  ['1500m', 1.5],
  ['1M', 1e6],
  ['1G', 1e9],
  ['1T', 1e12],
  ['1P', 1e15],
  ['1E', 1e18],
  ['1Ki', 2 ** 10],
  ['1Mi', 2 ** 20],
  ['1Gi', 2 ** 30],
  ['1Ti', 2 ** 40],
  ['1Pi', 2 ** 50],
  ['1Ei', 2 ** 60],
  ['1e3', 1000],
  ['1E3', 1000],
  ['15e-1', 1.5],
  ['1e+3', 1000],
]

const invalid = [
  '',
  ' ',
  '1 Mi',
  '20mi',
  '1K',
  '1ki',
  '-1',
  '1e',
  '1e3Mi',
  '.',
  'Mi',
  '1Zi',
  '1,5',
  '0x10',
  'Infinity',
  'NaN',
]

test.each(valid)('%s means %d', (text, number) => {
  expect(quantityOf(text)).toBeCloseTo(number, 9)
  if (typeof text === 'string') expect(new RegExp(quantityPattern).test(text)).toBe(true)
})

test.each([...invalid, -1, Number.NaN, '1e400'])('%j is not a quantity, and never means no limit', (text) => {
  expect(quantityOf(text)).toBeUndefined()
  expect(limitOf(text)).toBe(0)
})

test.each(invalid)('the schema refuses %j', (text) => {
  expect(new RegExp(quantityPattern).test(text)).toBe(false)
})

test('the schema refuses numbers below zero', () => {
  expect(quantity('Bytes.')).toMatchObject({ minimum: 0, pattern: quantityPattern })
})

test('an omitted quantity has no number', () => {
  expect([quantityOf(undefined), limitOf(undefined)]).toEqual([undefined, undefined])
})
