// Function `is_float`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isFloat = typeTest('is_float', 'a float', kinds.float, '1.0')
