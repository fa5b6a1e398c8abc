// Function `is_ipv6`.

import { parseIpv6 } from '../../formats/ip.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const isIpv6 = defineFunction({
  name: 'is_ipv6',
  category: 'IP',
  summary: 'Returns whether a text is an IPv6 address.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.boolean,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'is_ipv6("2001:DB8::1")', result: 'true' },
    { source: 'is_ipv6("10.0.102.37")', result: 'false' },
    { source: 'is_ipv6("::")', result: 'true' },
  ],
  compile: () => (value: string) => parseIpv6(value) !== undefined,
})
