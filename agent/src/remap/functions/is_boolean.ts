// Function `is_boolean`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isBoolean = typeTest('is_boolean', 'a boolean', kinds.boolean, 'true')
