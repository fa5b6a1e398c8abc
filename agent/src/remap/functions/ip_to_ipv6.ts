// Function `ip_to_ipv6`.

import { ipText, parseIp } from '../../formats/ip.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipToIpv6 = defineFunction({
  name: 'ip_to_ipv6',
  category: 'IP',
  summary: 'Converts an IP address to IPv6.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The address.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The text is not an address.'],
  pure: true,
  examples: [
    { source: 'ip_to_ipv6!("198.51.100.37")', result: '"::ffff:198.51.100.37"' },
    { source: 'ip_to_ipv6!("2001:db8::1")', result: '"2001:db8::1"' },
    { source: 'ip_to_ipv6("no address") ?? "none"', result: '"none"' },
  ],
  compile: () => (value: string) => {
    const bytes = parseIp(value)
    if (bytes === undefined) return failure('unable to parse IP address: invalid IP address syntax')
    return bytes.length === 4 ? `::ffff:${ipText(bytes)}` : ipText(bytes)
  },
})
