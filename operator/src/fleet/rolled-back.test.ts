import { expect, test } from 'vitest'
import { digestOf, maxRolledBack, maxRolledBackBytes, maxWithheld, shortRetry, withRolledBack } from './rolled-back.ts'
import type { RolloutRecord } from './state.ts'

const none: RolloutRecord = { rolledBack: {}, history: [] }
const version = (number: number, why = 'ends the agents') => ({ id: `shop/p${number}`, hash: `sha256:${number}`, why })
const versions = (count: number, why?: string) => Array.from({ length: count }, (_, index) => version(index, why))

test.each([
  ['one at a time', 1],
  ['all at once', 5000],
])('the record of 5,000 versions that were rolled back %s is small, and the newest keep their reason', (_, each) => {
  const all = versions(5000, '\u0007√'.repeat(1000))
  let record = none
  for (let from = 0; from < all.length; from += each) record = withRolledBack(record, all.slice(from, from + each))
  const entries = Object.entries(record.rolledBack)
  expect(entries.length).toBeGreaterThan(10)
  expect(entries.length).toBeLessThanOrEqual(maxRolledBack)
  expect(entries.at(-1)).toMatchObject(['shop/p4999', { hash: 'sha256:4999', why: expect.stringContaining('√') }])
  expect(Buffer.byteLength(JSON.stringify(record.rolledBack))).toBeLessThanOrEqual(maxRolledBackBytes)
  expect(record.withheld).toHaveLength(maxWithheld)
  // The annotations of an object may have 256 KiB, and the record has other parts.
  expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(100_000)
})

test('older versions lose their reason, not the knowledge that they were rolled back', () => {
  const all = versions(maxRolledBack + 3)
  const { rolledBack, withheld } = withRolledBack(none, all)
  expect(Object.keys(rolledBack)).toEqual(all.slice(3).map(({ id }) => id))
  expect(withheld).toEqual(all.slice(0, 3).map(digestOf))
})

test('a Pipeline that is rolled back again becomes one of the newest', () => {
  const again = { ...version(0), hash: 'sha256:new', retry: 'today' }
  const { rolledBack } = withRolledBack(withRolledBack(none, versions(2)), [again])
  expect(Object.entries(rolledBack).at(-1)).toEqual([
    'shop/p0',
    { hash: 'sha256:new', retry: 'today', why: 'ends the agents' },
  ])
})

test('a value of the retry annotation is recorded in at most 64 characters, and each value differs', () => {
  expect([shortRetry(undefined), shortRetry('today')]).toEqual([undefined, 'today'])
  const [one, other] = ['1', '2'].map((end) => shortRetry('x'.repeat(100_000) + end))
  expect(one).toHaveLength(64)
  expect(one).not.toBe(other)
})
