// Function `ip_pton`.

import { parseIp } from '../../formats/ip.ts'
import { textOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipPton = defineFunction({
  name: 'ip_pton',
  category: 'IP',
  summary: 'Converts an IP address to its 4 or 16 bytes.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The address.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The text is not an address.'],
  pure: true,
  examples: [
    { source: 'encode_base16(ip_pton!("192.168.0.1"))', result: '"c0a80001"' },
    { source: 'encode_base16(ip_pton!("::1"))', result: '"00000000000000000000000000000001"' },
    { source: 'ip_pton("no address") ?? ""', result: '""' },
  ],
  compile: () => (value: string) => {
    const bytes = parseIp(value)
    return bytes === undefined
      ? failure('unable to parse IP address: invalid IP address syntax')
      : textOf(Buffer.from(bytes))
  },
})
