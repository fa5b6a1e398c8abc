// Function `is_timestamp`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isTimestamp = typeTest('is_timestamp', 'a timestamp', kinds.timestamp, "t'2024-01-01T00:00:00Z'")
