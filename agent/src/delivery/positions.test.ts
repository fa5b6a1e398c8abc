import { expect, test } from 'vitest'
import { givePositions, takePositions } from './positions.ts'

test('the memory of an ended request is used for one with as many events or fewer', () => {
  const first = takePositions(2000)
  givePositions(first)
  expect(takePositions(1500)).toBe(first)
  givePositions(first)
  expect(takePositions(3000).ends).toHaveLength(3000)
})

test.each([100, 20_000])('the memory for %d events is not kept', (events) => {
  const positions = takePositions(events)
  givePositions(positions)
  expect(takePositions(events)).not.toBe(positions)
})
