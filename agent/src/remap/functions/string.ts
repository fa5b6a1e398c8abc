// Function `string`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const stringGuard = typeGuard('string', 'a string', kinds.string, '"x"', '"x"')
