// Shared by `encrypt_ip` and `decrypt_ip`, which map addresses with a key in both directions.

import type { Bytes } from '../event/value.ts'
import { bytesOf } from './byte-text.ts'
import { encryptAddress } from './cipher.ts'
import { type FunctionDeclaration, failure, type Result } from './function.ts'
import { kinds } from './kind.ts'

export function ipCipher(forward: boolean) {
  return {
    category: 'IP',
    parameters: [
      { name: 'ip', kind: kinds.string, description: 'The address.' },
      { name: 'key', kind: kinds.string, bytes: true, description: 'The key.' },
      { name: 'mode', kind: kinds.string, description: 'The mode: `aes128` or `pfx`.' },
    ],
    returns: kinds.string,
    fallible: 'always',
    errors: [
      'The address is invalid.',
      'The mode is unknown.',
      'The key does not have the length required by the mode.',
    ],
    pure: true,
    compile:
      () =>
      (ip: string, key: string | Bytes, mode: string): Result => {
        const address = encryptAddress(ip, bytesOf(key), mode, forward)
        return address.ok ? address.text : failure(address.problem)
      },
  } as const satisfies Partial<FunctionDeclaration>
}
