// Function `unnest`. The compiler generates its calls, because they need the value around a path.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const unnest = defineFunction({
  name: 'unnest',
  category: 'Object',
  summary: 'Returns one copy of the event for each item of an array field, with the item replacing the array.',
  parameters: [{ name: 'path', kind: kinds.array, query: true, description: 'The path of the array.' }],
  returns: kinds.array,
  fallible: (call) => !call.kind('path').within(kinds.array),
  errors: ['The value at the path is not an array.'],
  pure: false,
  examples: [
    {
      source: '. = {"host": "a", "list": [1, 2]}\nunnest(.list)',
      result: '[{ "host": "a", "list": 1 }, { "host": "a", "list": 2 }]',
    },
    { source: '. = {"host": "a", "list": []}\nunnest(.list)', result: '[]' },
    { source: '. = {"a": {"list": ["x"]}, "n": 1}\nunnest(.a.list)', result: '[{ "a": { "list": "x" }, "n": 1 }]' },
  ],
  form: 'unnest',
  compile: () => () => null,
})
