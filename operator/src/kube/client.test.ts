import { expect, test } from 'vitest'
import { statusError } from './client.ts'

const status = (retryAfterSeconds?: number) =>
  JSON.stringify({ kind: 'Status', reason: 'TooManyRequests', message: 'later', details: { retryAfterSeconds } })

test.each([
  ['a header', status(), '2', 2_000],
  ['a member of the status', status(3), undefined, 3_000],
  ['a year, which is more than a timer can wait', status(), '31536000', 60_000],
  ['a date', status(), 'Fri, 31 Dec 1999 23:59:59 GMT', undefined],
  ['a negative number', status(), '-1', undefined],
  ['nothing', status(), undefined, undefined],
  ['a page', '<html>', undefined, undefined],
])('the wait that the API server demands, with %s', (_, text, header, waitMs) => {
  expect(statusError(429, text, 'GET /api', header).retryAfterMs).toBe(waitMs)
})
