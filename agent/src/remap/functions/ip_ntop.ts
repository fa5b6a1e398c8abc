// Function `ip_ntop`.

import type { Bytes } from '../../event/value.ts'
import { ipText } from '../../formats/ip.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const ipNtop = defineFunction({
  name: 'ip_ntop',
  category: 'IP',
  summary: 'Converts 4 or 16 bytes to an IP address.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The bytes.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The value does not have 4 or 16 bytes.'],
  pure: true,
  examples: [
    { source: 'ip_ntop!(decode_base16!("c0a80001"))', result: '"192.168.0.1"' },
    { source: 'ip_ntop!(decode_base16!("00000000000000000000000000000001"))', result: '"::1"' },
    { source: 'ip_ntop("a") ?? "no address"', result: '"no address"' },
  ],
  compile: () => (value: string | Bytes) => {
    const bytes = bytesOf(value)
    return bytes.length === 4 || bytes.length === 16
      ? ipText(Uint8Array.from(bytes))
      : failure('"value" must be of length 4 or 16 bytes')
  },
})
