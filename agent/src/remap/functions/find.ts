// Function `find`.

import { type Bytes, Regex } from '../../event/value.ts'
import { bytesOf, isAscii } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { globalOf } from '../matching.ts'

export const find = defineFunction({
  name: 'find',
  category: 'String',
  summary: 'Returns the byte position of the first match in a text; null if there is none.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The text.' },
    {
      name: 'pattern',
      kind: kinds.string.or(kinds.regex),
      bytes: true,
      description: 'The text or pattern to search for.',
    },
    {
      name: 'from',
      kind: kinds.integer,
      required: false,
      default: 0,
      description: 'Byte position where the search starts.',
    },
  ],
  returns: kinds.integer.or(kinds.null),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'find("larklark", "lark", from: 1)', result: '4' },
    { source: 'find("oxbowlark", r\'l.r\')', result: '5' },
    { source: 'find("abc", "z")', result: 'null' },
    { source: 'find(decode_base16!("ff6162"), "b")', result: '2' },
  ],
  compile: () => (value: string | Bytes, pattern: string | Bytes | Regex, fromByte: number | bigint) => {
    let from = Number(fromByte)
    if (!(pattern instanceof Regex)) {
      if (typeof value === 'string' && typeof pattern === 'string' && isAscii(value)) {
        return from < 0 || from > value.length ? null : found(value.indexOf(pattern, from))
      }
      const bytes = bytesOf(value)
      return from < 0 || from > bytes.length ? null : found(bytes.indexOf(bytesOf(pattern), from))
    }
    const text = String(value)
    const ascii = isAscii(text)
    if (from < 0 || from > (ascii ? text.length : Buffer.byteLength(text))) return null
    if (!ascii) from = Buffer.from(text).subarray(0, from).toString().length
    const global = globalOf(pattern)
    global.lastIndex = from
    const at = global.exec(text)?.index ?? -1
    return found(at < 0 || ascii ? at : Buffer.byteLength(text.slice(0, at)))
  },
})

function found(at: number): number | null {
  return at < 0 ? null : at
}
