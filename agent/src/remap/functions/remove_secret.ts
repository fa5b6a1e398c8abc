// Function `remove_secret`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const removeSecret = defineFunction({
  name: 'remove_secret',
  category: 'Event',
  summary: 'Removes a secret of the event.',
  parameters: [{ name: 'key', kind: kinds.string, description: 'The name of the secret.' }],
  returns: kinds.null,
  fallible: 'never',
  pure: false,
  writesMetadata: true,
  examples: [
    { source: 'remove_secret("key")', result: 'null' },
    { source: 'set_secret("key", "value")\nremove_secret("key")\nget_secret("key")', result: 'null' },
    { source: 'set_secret("other", "value")\nremove_secret("key")\nget_secret("other")', result: '"value"' },
  ],
  compile: (call) => (key: string) => {
    call.runtime.setSecret(key, undefined)
    return null
  },
})
