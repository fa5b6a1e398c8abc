// Function `del`. The compiler generates its calls, because they change the event.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const del = defineFunction({
  name: 'del',
  category: 'Path',
  summary: 'Removes the field or item at a path and returns its value.',
  parameters: [
    { name: 'target', kind: kinds.any, query: true, description: 'The path.' },
    {
      name: 'compact',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to remove parents that become empty.',
    },
  ],
  returns: kinds.any,
  fallible: 'never',
  pure: false,
  examples: [
    { source: '. = {"a": 1, "b": 2}\ndel(.a)', result: '1' },
    { source: '. = {"a": {"b": 1}}\ndel(.a.b, compact: true)\n.', result: '{  }' },
    { source: '. = {"a": 1}\ndel(.b)', result: 'null' },
  ],
  form: 'del',
  compile: () => () => null,
})
