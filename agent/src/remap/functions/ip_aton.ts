// Function `ip_aton`.

import { parseIpv4 } from '../../formats/ip.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipAton = defineFunction({
  name: 'ip_aton',
  category: 'IP',
  summary: 'Converts an IPv4 address to an integer.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The address.' }],
  returns: kinds.integer,
  fallible: 'always',
  errors: ['The text is not an IPv4 address.'],
  pure: true,
  examples: [
    { source: 'ip_aton!("1.2.3.4")', result: '16909060' },
    { source: 'ip_aton!("255.255.255.255")', result: '4294967295' },
    { source: 'ip_aton("::1") ?? 0', result: '0' },
  ],
  compile: () => (value: string) => {
    const bytes = parseIpv4(value)
    return bytes === undefined
      ? failure('unable to parse IPv4 address: invalid IPv4 address syntax')
      : Buffer.from(bytes).readUInt32BE()
  },
})
