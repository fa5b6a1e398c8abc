import { expect, test } from 'vitest'
import { faults, firstThird, lastThird, mean, median, percentile, round } from './figures.ts'

const upTo = (count: number) => Array.from({ length: count }, (_, index) => count - index)

test.each([
  { values: upTo(100), part: 0.99, expected: 99 },
  { values: upTo(100), part: 1, expected: 100 },
  { values: upTo(100), part: 0.5, expected: 50 },
  { values: upTo(1000), part: 0.99, expected: 990 },
  { values: [7], part: 0.99, expected: 7 },
  { values: [7], part: 0, expected: 7 },
  { values: [5, 1000, 5], part: 0.99, expected: 1000 },
])('the quantile $part of $values.length values is $expected', ({ values, part, expected }) => {
  expect(percentile(values, part)).toBe(expected)
})

test('computing a percentile does not reorder the values', () => {
  const values = [3, 1, 2]
  percentile(values, 0.5)
  expect(values).toEqual([3, 1, 2])
})

test.each([
  { values: [3, 1, 2], expected: 2 },
  { values: [4, 1, 2, 3], expected: 2.5 },
  { values: [9], expected: 9 },
])('the median of $values is $expected', ({ values, expected }) => {
  expect(median(values)).toBe(expected)
})

test('thirds of a series have at least one value', () => {
  expect([firstThird([1, 2, 3, 4, 5, 6, 7]), lastThird([1, 2, 3, 4, 5, 6, 7])]).toEqual([
    [1, 2],
    [6, 7],
  ])
  expect([firstThird([1]), lastThird([1])]).toEqual([[1], [1]])
  expect(mean([1, 2, 6])).toBe(3)
  expect([round(1.23456), round(1.25, 1)]).toEqual([1.235, 1.3])
})

test.each([
  { figures: { lost: 0, doubled: 0 }, expected: undefined },
  { figures: {}, expected: undefined },
  { figures: { lost: 2, doubled: 0 }, expected: 'Lost lines: 2. Lines delivered again: 0.' },
  { figures: { lost: 0, doubled: 1 }, expected: 'Lost lines: 0. Lines delivered again: 1.' },
  { figures: { lost: 3, problem: 'The agent ended.' }, expected: 'The agent ended.' },
])('$figures is reported as $expected', ({ figures, expected }) => {
  expect(faults(figures)).toBe(expected)
})
