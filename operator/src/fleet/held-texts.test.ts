import { expect, test } from 'vitest'
import type { Condition, Finding } from '../api/conditions.ts'
import { HeldTexts } from './held-texts.ts'

const found = (message: string, members: Partial<Finding> = {}): Finding => ({
  ...{ type: 'Reachable', status: 'False', reason: 'Unauthorized' },
  ...{ message, ...members },
})
const known = (finding: Finding): Condition[] => [{ ...finding, lastTransitionTime: '' }]

test('a new text with the same reason is delayed, a new reason is not', () => {
  const texts = new HeldTexts()
  const written = known(found('1 of 1'))
  const says = (finding: Finding, now: number) => texts.finding('s', written, finding, now).message
  expect(texts.finding('s', undefined, found('1 of 1'), 0).message).toBe('1 of 1')
  expect(says(found('2 of 2'), 1000)).toBe('1 of 1')
  expect(says(found('3 of 3'), 30_000)).toBe('1 of 1')
  expect(says(found('3 of 3', { reason: 'Rejecting' }), 30_500)).toBe('3 of 3')
  expect(says(found('3 of 3'), 31_000)).toBe('1 of 1')
  expect(says(found('4 of 4'), 61_000)).toBe('4 of 4')
})

test('reports good states at once', () => {
  const texts = new HeldTexts()
  const well = found('It answers.', { status: 'True', reason: 'Reachable' })
  expect(texts.finding('s', known(found('1 of 1')), well, 0)).toEqual(well)
  expect(texts.finding('s', known(well), { ...well, message: 'All answer.' }, 1).message).toBe('All answer.')
})

test('deleted objects are forgotten', () => {
  const texts = new HeldTexts()
  texts.finding('s', known(found('1 of 1')), found('2 of 2'), 0)
  texts.keep(() => false)
  expect(texts.finding('s', known(found('1 of 1')), found('2 of 2'), 40_000).message).toBe('1 of 1')
})
