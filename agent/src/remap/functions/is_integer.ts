// Function `is_integer`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isInteger = typeTest('is_integer', 'an integer', kinds.integer, '1')
