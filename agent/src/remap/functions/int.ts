// Function `int`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const intGuard = typeGuard('int', 'an integer', kinds.integer, '1', '1')
