// Function `decode_mime_q`.

import { findDecoder } from '../../formats/charset.ts'
import { defineFunction, failure, isFailure, type RemapError, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

export const decodeMimeQ = defineFunction({
  name: 'decode_mime_q',
  category: 'Codec',
  summary: 'Decodes the encoded words of a header (RFC 2047).',
  description:
    'A text without encoded words stays unchanged. A text that begins with `?encoding?` is treated as a single word.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The header.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['An encoded word is invalid, or its character set is unknown.'],
  pure: true,
  examples: [
    { source: 'decode_mime_q!("=?utf-8?b?SGVsbG8=?=")', result: '"Hello"' },
    { source: 'decode_mime_q!("Subject: =?iso-8859-1?Q?caf=E9_ok?=")', result: '"Subject: café ok"' },
    { source: 'decode_mime_q!("?b?SGVsbG8=")', result: '"Hello"' },
    { source: 'decode_mime_q!("Is =? equal to ?= or not?")', result: '"Is =? equal to ?= or not?"' },
    { source: 'decode_mime_q("=?utf-8?x?a?=") ?? "no encoding"', result: '"no encoding"' },
  ],
  compile:
    () =>
    (value: string): Result => {
      let result = ''
      let at = 0
      for (;;) {
        const start = value.indexOf('=?', at)
        const word = start < 0 ? undefined : wordAt(value, start + 2)
        if (word?.end === undefined) break
        const text = decoded(word)
        if (isFailure(text)) return text
        result += value.slice(at, start) + text
        at = word.end + 2
      }
      if (at > 0) return result + value.slice(at)
      const word = wordAt(value, 0)
      const text = word === undefined ? value : decoded(word)
      if (word === undefined || isFailure(text)) return value
      return word.end === undefined ? text : text + value.slice(word.end)
    },
})

interface Word {
  readonly charset: string
  readonly encoding: string
  readonly text: string
  /** Index of the closing `?=`; undefined if there is none, so that the word extends to the end. */
  readonly end: number | undefined
}

/** `charset?encoding?text?=`; the character set is optional. */
function wordAt(value: string, start: number): Word | undefined {
  const first = value.indexOf('?', start)
  const second = first < 0 ? -1 : value.indexOf('?', first + 1)
  if (second < 0) return undefined
  const end = value.indexOf('?=', second + 1)
  return {
    charset: value.slice(start, first) || 'utf-8',
    encoding: value.slice(first + 1, second).toLowerCase(),
    text: value.slice(second + 1, end < 0 ? undefined : end),
    end: end < 0 ? undefined : end,
  }
}

function decoded({ charset, encoding, text }: Word): string | RemapError {
  if (encoding !== 'b' && encoding !== 'q') return failure('the encoding of a word is neither b nor q')
  if (encoding === 'b' && !base64.test(text)) return failure('unable to decode base64 value')
  const decoder = findDecoder(charset, true)
  if (decoder === undefined) return failure('the charset of a word is not known')
  return decoder.decode(encoding === 'b' ? Buffer.from(text, 'base64') : fromQuoted(text))
}

/** Decodes `=` with two digits; removes a `=` at the end, which is a soft line break; keeps all other text. */
function fromQuoted(text: string): Buffer {
  const plain = text.replaceAll('_', ' ')
  const pieces: Buffer[] = []
  let at = 0
  for (const match of plain.matchAll(/=(?:..|$)/gs)) {
    const digits = match[0].slice(1)
    if (digits !== '' && !/^[0-9A-Fa-f]{2}$/.test(digits)) continue
    pieces.push(Buffer.from(plain.slice(at, match.index)), Buffer.from(digits, 'hex'))
    at = match.index + match[0].length
  }
  pieces.push(Buffer.from(plain.slice(at)))
  return Buffer.concat(pieces)
}
