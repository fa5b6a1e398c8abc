// Function `timestamp`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const timestampGuard = typeGuard(
  'timestamp',
  'a timestamp',
  kinds.timestamp,
  "t'2024-01-01T00:00:00Z'",
  "t'2024-01-01T00:00:00Z'",
)
