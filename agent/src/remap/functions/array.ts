// Function `array`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const arrayGuard = typeGuard('array', 'an array', kinds.array, '[1]', '[1]')
