import { expect, test } from 'vitest'
import type { Condition } from '../api/conditions.ts'
import type { Verdict } from '../compile/job.ts'
import { type GraceFacts, PolicyGrace, withEnd } from './policy-grace.ts'

const start = Date.parse('2026-01-01T12:00:00Z')
const forbidden: Verdict = { status: 'False', reason: 'ForbiddenOption', message: 'Type `http` is not allowed.' }
const facts: GraceFacts = {
  accepted: forbidden,
  before: undefined,
  ranUnder: 'old',
  rules: 'new',
  graceMs: 600_000,
  now: start,
}
const condition = (reason: string, lastTransitionTime: string): Condition => ({
  ...{ type: 'Accepted', status: 'False', message: '', reason, lastTransitionTime },
})

test('ends newly forbidden Pipelines after the grace time, counted from the first refusal', () => {
  const grace = new PolicyGrace()
  expect(grace.endOf('p', facts)).toBe(start + 600_000)
  expect(grace.endOf('p', { ...facts, now: start + 400_000 })).toBe(start + 600_000)
  // A shorter time holds at once.
  expect(grace.endOf('p', { ...facts, graceMs: 0, now: start + 400_000 })).toBe(start)
})

test.each([
  ['an accepted one', { accepted: { status: 'True', reason: 'Valid', message: '' } }],
  ['one under the same rules, whatever its newest version is refused for', { ranUnder: 'new' }],
  ['a Pipeline that does not run, or was kept by an earlier release', { ranUnder: undefined }],
  ['one whose references are missing', { accepted: { status: 'Unknown', reason: 'Pending', message: '' } }],
] satisfies [string, Partial<GraceFacts>][])('%s continues', (_, change) => {
  const grace = new PolicyGrace()
  grace.endOf('p', facts)
  expect(grace.endOf('p', { ...facts, ...change, now: start + 5 })).toBeUndefined()
  // A Pipeline that was allowed again in between gets the full time.
  expect(grace.endOf('p', { ...facts, now: start + 10 })).toBe(start + 10 + 600_000)
})

test('an edit of the Pipeline does not extend the time for newly forbidden parts', () => {
  const broken: Verdict = { status: 'False', reason: 'CompileFailed', message: 'E203' }
  expect(new PolicyGrace().endOf('p', { ...facts, accepted: broken })).toBe(start + 600_000)
})

test('the time continues after a restart, and does not include earlier refusals of the Pipeline', () => {
  const since = condition('ForbiddenOption', '2026-01-01T11:55:00Z')
  expect(new PolicyGrace().endOf('p', { ...facts, before: since })).toBe(start + 300_000)
  const other = condition('CompileFailed', '2025-12-01T00:00:00Z')
  expect(new PolicyGrace().endOf('p', { ...facts, before: other })).toBe(start + 600_000)
})

test('the condition announces the end, and reports it', () => {
  expect(withEnd(forbidden, start + 600_000, start).message).toBe(
    'Type `http` is not allowed. The running version was accepted under earlier rules of the TenantPolicy and stops at 2026-01-01T12:10:00Z.',
  )
  expect(withEnd(forbidden, start, start + 1).message).toContain('it was stopped at 2026-01-01T12:00:00Z.')
})
