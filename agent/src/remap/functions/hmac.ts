// Function `hmac`.

import { createHmac } from 'node:crypto'
import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const algorithms: Readonly<Record<string, string>> = {
  SHA1: 'sha1',
  'SHA-224': 'sha224',
  'SHA-256': 'sha256',
  'SHA-384': 'sha384',
  'SHA-512': 'sha512',
}

export const hmac = defineFunction({
  name: 'hmac',
  category: 'Cryptography',
  summary: 'Returns the keyed hash of a string, as bytes.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'key', kind: kinds.string, bytes: true, description: 'The key.' },
    {
      name: 'algorithm',
      kind: kinds.string,
      required: false,
      default: 'SHA-256',
      description: `The algorithm, in any letter case: ${Object.keys(algorithms).join(', ')}.`,
    },
  ],
  returns: kinds.string,
  fallible: (call) => !Object.hasOwn(algorithms, String(call.constant('algorithm')).toUpperCase()),
  errors: ['The algorithm is unknown.'],
  pure: true,
  examples: [
    {
      source: 'encode_base16(hmac("gate seven", "sluice"))',
      result: '"5de12b56781aacf9e6a837712c25b253218a11e3463787d45f777a8e27d3f38d"',
    },
    {
      source: 'encode_base16(hmac("gate seven", "sluice", algorithm: "SHA1"))',
      result: '"f8d93c1bbcfb959d49b075917de86874bee7b350"',
    },
    { source: 'length(hmac("gate seven", "sluice", algorithm: "sha-512"))', result: '64' },
  ],
  compile:
    () =>
    (value: string | Bytes, key: string | Bytes, name: string): Result => {
      const algorithm = name.toUpperCase()
      return Object.hasOwn(algorithms, algorithm)
        ? textOf(
            createHmac(algorithms[algorithm] as string, bytesOf(key))
              .update(bytesOf(value))
              .digest(),
          )
        : failure(`Invalid algorithm: ${algorithm}`)
    },
})
