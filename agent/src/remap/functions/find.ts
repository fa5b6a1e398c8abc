// Function `find`.

import type { Regex } from '../../event/value.ts'
import { isAscii } from '../byte-text.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { globalOf } from '../matching.ts'

export const find = defineFunction({
  name: 'find',
  category: 'String',
  summary: 'The position of the first match in a text, in bytes; null if there is none.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'pattern', kind: kinds.string.or(kinds.regex), description: 'What to look for.' },
    { name: 'from', kind: kinds.integer, required: false, default: 0, description: 'The byte to begin at.' },
  ],
  returns: kinds.integer.or(kinds.null),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'find("larklark", "lark", from: 1)', result: '4' },
    { source: 'find("oxbowlark", r\'l.r\')', result: '5' },
    { source: 'find("abc", "z")', result: 'null' },
  ],
  compile: () => (value: string, pattern: string | Regex, fromByte: number | bigint) => {
    const ascii = isAscii(value)
    let from = Number(fromByte)
    if (from < 0 || from > (ascii ? value.length : Buffer.byteLength(value))) return null
    if (!ascii) from = Buffer.from(value).subarray(0, from).toString().length
    let at: number
    if (typeof pattern === 'string') {
      at = value.indexOf(pattern, from)
    } else {
      const global = globalOf(pattern)
      global.lastIndex = from
      at = global.exec(value)?.index ?? -1
    }
    return at < 0 ? null : ascii ? at : Buffer.byteLength(value.slice(0, at))
  },
})
