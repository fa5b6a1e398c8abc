// Function `set_semantic_meaning`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const setSemanticMeaning = defineFunction({
  name: 'set_semantic_meaning',
  category: 'Event',
  summary: 'Declares the meaning of an event path. It has no effect at run time.',
  parameters: [
    { name: 'target', kind: kinds.any, query: true, description: 'The path.' },
    {
      name: 'meaning',
      kind: kinds.string,
      static: true,
      description: 'The meaning, such as `message` or `timestamp`.',
    },
  ],
  returns: kinds.null,
  fallible: 'never',
  pure: false,
  examples: [
    { source: 'set_semantic_meaning(.text, "message")', result: 'null' },
    { source: 'set_semantic_meaning(.at, "timestamp")', result: 'null' },
    { source: '. = {"a": 1}\nset_semantic_meaning(.a, "service")\n.', result: '{ "a": 1 }' },
  ],
  compile: () => () => null,
})
