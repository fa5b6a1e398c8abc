// Function `is_regex`.

import { kinds } from '../kind.ts'
import { typeTest } from '../type-functions.ts'

export const isRegex = typeTest('is_regex', 'a regular expression', kinds.regex, "r'a'")
