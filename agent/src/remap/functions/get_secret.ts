// Function `get_secret`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const getSecret = defineFunction({
  name: 'get_secret',
  category: 'Event',
  summary: 'Returns a secret of the event; null if there is none with this name.',
  parameters: [{ name: 'key', kind: kinds.string, description: 'The name of the secret.' }],
  returns: kinds.string.or(kinds.null),
  fallible: 'never',
  pure: false,
  examples: [
    { source: 'get_secret("no_such_secret")', result: 'null' },
    { source: 'set_secret("key", "value")\nget_secret("key")', result: '"value"' },
    { source: 'set_secret("key", "value")\nremove_secret("key")\nget_secret("key")', result: 'null' },
  ],
  compile: (call) => (key: string) => call.runtime.secret(key) ?? null,
})
