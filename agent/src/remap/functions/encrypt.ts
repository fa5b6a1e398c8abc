// Function `encrypt`.

import type { Bytes } from '../../event/value.ts'
import { bytesOf, textOf } from '../byte-text.ts'
import { encryptBytes, encryptionProblem } from '../cipher.ts'
import { type CallSite, defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const encrypt = defineFunction({
  name: 'encrypt',
  category: 'Cryptography',
  summary: 'Encrypts a string with a symmetric cipher; the result is bytes.',
  description: 'Authenticated ciphers append their tag to the ciphertext.',
  parameters: [
    { name: 'plaintext', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'algorithm', kind: kinds.string, description: 'The cipher, such as `AES-256-CTR-BE`, in any letter case.' },
    { name: 'key', kind: kinds.string, bytes: true, description: 'The key, with the length required by the cipher.' },
    {
      name: 'iv',
      kind: kinds.string,
      bytes: true,
      description: 'The initialization vector, which must not be reused.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The cipher is unknown.', 'The key or the initialization vector has the wrong length.'],
  pure: true,
  examples: [
    {
      source:
        'encode_base64(encrypt!("some plain text", "aes-256-cfb", key: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", iv: "iiiiiiiiiiiiiiii"))',
      result: '"ad5PhCNAx0I5MXm6aKUk"',
    },
    {
      source:
        'encode_base64(encrypt!("some plain text", "CHACHA20-POLY1305", key: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", iv: "iiiiiiiiiiii"))',
      result: '"gOhkdw/RERE0cozVteNHp0+NUIYunWmBotlVWL+RNA=="',
    },
    { source: 'encrypt("gate", "AES-128-CFB", key: "short", iv: "iiiiiiiiiiiiiiii") ?? "no key"', result: '"no key"' },
  ],
  compile(call: CallSite) {
    const algorithm = call.constant('algorithm')
    const problem = typeof algorithm === 'string' ? encryptionProblem(algorithm) : undefined
    if (problem !== undefined) call.reject(problem)
    return (text: string | Bytes, name: string, key: string | Bytes, iv: string | Bytes) => {
      const result = encryptBytes(name, bytesOf(text), bytesOf(key), bytesOf(iv))
      return typeof result === 'string' ? failure(result) : textOf(result)
    }
  },
})
