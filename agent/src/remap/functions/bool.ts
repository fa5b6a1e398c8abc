// Function `bool`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const boolGuard = typeGuard('bool', 'a boolean', kinds.boolean, 'true', 'true')
