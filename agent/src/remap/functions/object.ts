// Function `object`.

import { kinds } from '../kind.ts'
import { typeGuard } from '../type-functions.ts'

export const objectGuard = typeGuard('object', 'an object', kinds.object, '{"a": 1}', '{ "a": 1 }')
