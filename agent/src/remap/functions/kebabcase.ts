// Function `kebabcase`.

import { caseFunction } from '../words.ts'

export const kebabcase = caseFunction('kebabcase', '`kebab-case`', 'input-string-value', (words) =>
  words.map((word) => word.toLowerCase()).join('-'),
)
