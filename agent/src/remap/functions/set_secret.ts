// Function `set_secret`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const setSecret = defineFunction({
  name: 'set_secret',
  category: 'Event',
  summary: 'Sets a secret of the event.',
  parameters: [
    { name: 'key', kind: kinds.string, description: 'The name of the secret.' },
    { name: 'secret', kind: kinds.string, description: 'Its value.' },
  ],
  returns: kinds.null,
  fallible: 'never',
  pure: false,
  writesMetadata: true,
  examples: [
    { source: 'set_secret("key", "value")', result: 'null' },
    { source: 'set_secret("key", "value")\nget_secret("key")', result: '"value"' },
    { source: 'set_secret("key", "one")\nset_secret("key", "two")\nget_secret("key")', result: '"two"' },
  ],
  compile: (call) => (key: string, secret: string) => {
    call.runtime.setSecret(key, secret)
    return null
  },
})
