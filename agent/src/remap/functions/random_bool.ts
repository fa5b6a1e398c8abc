// Function `random_bool`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const randomBool = defineFunction({
  name: 'random_bool',
  category: 'Random',
  summary: 'Returns true or false at random.',
  parameters: [],
  returns: kinds.boolean,
  fallible: 'never',
  pure: false,
  examples: [
    { source: 'is_boolean(random_bool())', result: 'true' },
    { source: '[true, false] != [random_bool()]', result: 'true' },
    { source: 'is_string(to_string(random_bool()))', result: 'true' },
  ],
  compile: () => () => Math.random() < 0.5,
})
