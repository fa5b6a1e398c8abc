// Function `ip_ntoa`.

import { ipText } from '../../formats/ip.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipNtoa = defineFunction({
  name: 'ip_ntoa',
  category: 'IP',
  summary: 'Converts an integer to an IPv4 address.',
  parameters: [{ name: 'value', kind: kinds.integer, description: 'The integer.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The integer does not fit in 32 bits.'],
  pure: true,
  examples: [
    { source: 'ip_ntoa!(16909060)', result: '"1.2.3.4"' },
    { source: 'ip_ntoa!(0)', result: '"0.0.0.0"' },
    { source: 'ip_ntoa(-1) ?? "no address"', result: '"no address"' },
  ],
  compile: () => (value: number | bigint) => {
    if (value < 0 || value > 0xffffffff) return failure('cannot convert to bytes: integer does not fit in u32')
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(Number(value))
    return ipText(bytes)
  },
})
