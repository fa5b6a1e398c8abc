// Function `is_array`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isArray = typeTest('is_array', 'an array', kinds.array, '[1]')
