// Function `screamingsnakecase`.

import { caseFunction } from '../words.ts'

export const screamingsnakecase = caseFunction(
  'screamingsnakecase',
  '`SCREAMING_SNAKE`',
  'INPUT_STRING_VALUE',
  (words) => words.map((word) => word.toUpperCase()).join('_'),
)
