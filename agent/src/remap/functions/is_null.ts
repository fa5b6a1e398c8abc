// Function `is_null`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isNull = typeTest('is_null', 'null', kinds.null, 'null')
