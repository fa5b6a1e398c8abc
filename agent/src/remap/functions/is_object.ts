// Function `is_object`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isObject = typeTest('is_object', 'an object', kinds.object, '{"a": 1}')
