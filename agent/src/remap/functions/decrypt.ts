// Function `decrypt`.

import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { decryptBytes, encryptionProblem } from '../cipher.ts'
import { type CallSite, defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const decrypt = defineFunction({
  name: 'decrypt',
  category: 'Cryptography',
  summary: 'Decrypts bytes that were encrypted with a symmetric cipher.',
  parameters: [
    { name: 'ciphertext', kind: kinds.string, bytes: true, description: 'The bytes.' },
    { name: 'algorithm', kind: kinds.string, description: 'The cipher, such as `AES-256-CTR-BE`, in any letter case.' },
    { name: 'key', kind: kinds.string, bytes: true, description: 'The key.' },
    { name: 'iv', kind: kinds.string, bytes: true, description: 'The initialization vector.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: [
    'The cipher is unknown.',
    'The key or the initialization vector has the wrong length.',
    'The bytes were changed, or encrypted with another key.',
  ],
  pure: true,
  examples: [
    {
      source:
        'decrypt!(decode_base64!("ad5PhCNAx0I5MXm6aKUk"), "AES-256-CFB", key: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", iv: "iiiiiiiiiiiiiiii")',
      result: '"some plain text"',
    },
    {
      source:
        'decrypt!(encrypt!("gate", "AES-128-SIV", key: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", iv: "iiiiiiiiiiiiiiii"), "AES-128-SIV", key: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", iv: "iiiiiiiiiiiiiiii")',
      result: '"gate"',
    },
    { source: 'decrypt("gate", "AES-128-CFB", key: "short", iv: "iiiiiiiiiiiiiiii") ?? "no key"', result: '"no key"' },
  ],
  compile(call: CallSite) {
    const algorithm = call.constant('algorithm')
    const problem = typeof algorithm === 'string' ? encryptionProblem(algorithm) : undefined
    if (problem !== undefined) call.reject(problem)
    return (text: string | Bytes, name: string, key: string | Bytes, iv: string | Bytes) => {
      const result = decryptBytes(name, bytesOf(text), bytesOf(key), bytesOf(iv))
      return typeof result === 'string' ? failure(result) : textOf(result)
    }
  },
})
