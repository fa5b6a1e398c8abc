// Function `now`. No two results are equal: within a millisecond they differ by a nanosecond.

import { Timestamp } from '../../event/timestamp.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

let last = 0
let nanoseconds = 0

function read(): Timestamp {
  const ms = Date.now()
  nanoseconds = ms === last && nanoseconds < 999_999 ? nanoseconds + 1 : 0
  last = ms
  return new Timestamp(ms, nanoseconds)
}

export const now = defineFunction({
  name: 'now',
  category: 'Timestamp',
  summary: 'Returns the current time.',
  parameters: [],
  returns: kinds.timestamp,
  fallible: 'never',
  pure: false,
  examples: [
    { source: 'is_timestamp(now())', result: 'true' },
    { source: 'now() <= now()', result: 'true' },
    { source: 'to_unix_timestamp(now()) > 1700000000', result: 'true' },
  ],
  compile: () => read,
})
