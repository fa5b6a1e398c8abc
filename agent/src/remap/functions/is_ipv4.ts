// Function `is_ipv4`.

import { parseIpv4 } from '../../formats/ip.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const isIpv4 = defineFunction({
  name: 'is_ipv4',
  category: 'IP',
  summary: 'Returns whether a text is an IPv4 address.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_ipv4("10.0.102.37")', result: 'true' },
    { source: 'is_ipv4("10.0.102.370")', result: 'false' },
    { source: 'is_ipv4("::1")', result: 'false' },
  ],
  compile: () => (value: string) => parseIpv4(value) !== undefined,
})
