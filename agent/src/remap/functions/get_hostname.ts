// Function `get_hostname`.

import { hostname } from 'node:os'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const getHostname = defineFunction({
  name: 'get_hostname',
  category: 'System',
  summary: "Returns the name of the agent's host.",
  parameters: [],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The name cannot be read.'],
  pure: false,
  reaches: 'host',
  examples: [
    { source: 'is_string(get_hostname!())', result: 'true' },
    { source: 'length(get_hostname!()) > 0', result: 'true' },
    { source: 'get_hostname!() == get_hostname!()', result: 'true' },
  ],
  compile() {
    let name: string | undefined
    return () => {
      name ??= hostname()
      return name === '' ? failure('failed to get hostname: it is empty') : name
    }
  },
})
