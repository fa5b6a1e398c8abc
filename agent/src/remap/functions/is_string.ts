// Function `is_string`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isString = typeTest('is_string', 'a string', kinds.string, '"x"')
