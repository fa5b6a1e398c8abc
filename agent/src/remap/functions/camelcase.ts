// Function `camelcase`.

import { capitalized, caseFunction } from '../words.ts'

export const camelcase = caseFunction('camelcase', '`camelCase`', 'inputStringValue', (words) =>
  words.map((word, index) => (index === 0 ? word.toLowerCase() : capitalized(word))).join(''),
)
