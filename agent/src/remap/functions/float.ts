// Function `float`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const floatGuard = typeGuard('float', 'a float', kinds.float, '1.5', '1.5')
