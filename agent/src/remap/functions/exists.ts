// Function `exists`. The compiler generates its calls, because they work on a path.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const exists = defineFunction({
  name: 'exists',
  category: 'Path',
  summary: 'Returns whether a path exists, even if its value is null.',
  parameters: [{ name: 'field', kind: kinds.any, query: true, description: 'The path.' }],
  returns: kinds.boolean,
  fallible: 'never',
  pure: false,
  examples: [
    { source: '. = {"a": null}\nexists(.a)', result: 'true' },
    { source: '. = {"a": {"b": 1}}\nexists(.a.c)', result: 'false' },
    { source: '. = {"list": [1]}\nexists(.list[0])', result: 'true' },
  ],
  form: 'exists',
  compile: () => () => null,
})
