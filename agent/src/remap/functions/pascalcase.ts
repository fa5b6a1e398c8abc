// Function `pascalcase`.

import { capitalized, caseFunction } from '../words.ts'

export const pascalcase = caseFunction('pascalcase', '`PascalCase`', 'InputStringValue', (words) =>
  words.map(capitalized).join(''),
)
