// Function `chunks`.

import { type Bytes, isInteger } from '../../event/value.ts'
import { bytesOf, isAscii, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const chunks = defineFunction({
  name: 'chunks',
  category: 'Array',
  summary: 'Splits a string into chunks of a fixed number of bytes; the last one may be shorter.',
  description: 'The size is in bytes, so a chunk may end inside a character.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
    { name: 'chunk_size', kind: kinds.integer, description: 'Bytes per chunk.' },
  ],
  returns: kinds.arrayEach(kinds.string),
  fallible: (call) => !isInteger(call.constant('chunk_size')),
  errors: ['The size is less than 1.'],
  pure: true,
  examples: [
    { source: 'chunks("abcdefgh", 3)', result: '["abc", "def", "gh"]' },
    { source: 'chunks("abc", 1)', result: '["a", "b", "c"]' },
    { source: 'chunks("", 4)', result: '[]' },
  ],
  compile(call) {
    const given = call.constant('chunk_size')
    if (isInteger(given) && given < 1) call.reject('"chunk_size" must be at least 1 byte')
    return (value: string | Bytes, chunkSize: number | bigint): Result => {
      const size = Number(chunkSize)
      if (size < 1) return failure('"chunk_size" must be at least 1 byte')
      const pieces: (string | Bytes)[] = []
      if (typeof value === 'string' && isAscii(value)) {
        for (let at = 0; at < value.length; at += size) pieces.push(value.slice(at, at + size))
        return pieces
      }
      const bytes = bytesOf(value)
      for (let at = 0; at < bytes.length; at += size) pieces.push(textOf(bytes.subarray(at, at + size)))
      return pieces
    }
  },
})
