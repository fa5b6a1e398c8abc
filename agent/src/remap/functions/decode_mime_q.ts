// Function `decode_mime_q`.

import { findDecoder } from '../../formats/charset.ts'
import { trimmedEnd } from '../../formats/white-space.ts'
import { defineFunction, failure, isFailure, type RemapError, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
// Characters that quoted text cannot have.
const notQuotable = /[^\t\n\r -~]/g

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
    encoding: value.slice(first + 1, second),
    text: value.slice(second + 1, end < 0 ? undefined : end),
    end: end < 0 ? undefined : end,
  }
}

function decoded({ charset, encoding, text }: Word): string | RemapError {
  if (!/^[bq]$/i.test(encoding)) return failure(`Invalid encoding: ${valueText(encoding)}`)
  const bytes = /b/i.test(encoding) ? fromBase64(text) : fromQuoted(text)
  if (bytes === undefined) return failure('Unable to decode base64 value')
  return findDecoder(charset, true)?.decode(bytes) ?? failure(`Unable to decode ${valueText(charset)} value`)
}

/** The bytes; undefined if the text is not padded Base64 whose unused bits are zero. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = base64.test(text) ? Buffer.from(text, 'base64') : undefined
  return bytes?.toString('base64') === text ? bytes : undefined
}

/** Only printable ASCII counts. A line break becomes CR LF, or nothing after `=`; blanks before it are dropped. */
function fromQuoted(text: string): Buffer {
  const spaced = text.replaceAll('_', ' ')
  const inner = trimmedEnd(spaced)
  let plain = ''
  let broken = false
  for (const line of inner.replace(notQuotable, '').split(/\r?\n/)) {
    if (broken) plain += '\r\n'
    broken = true
    plain += line.trimEnd().replace(/=(?:([0-9A-Fa-f]{2})|.{0,2})/gs, (sequence, digits: string | undefined) => {
      if (digits !== undefined) return String.fromCharCode(Number.parseInt(digits, 16))
      if (sequence !== '=') return sequence
      broken = false
      return ''
    })
  }
  return Buffer.concat([Buffer.from(plain, 'latin1'), Buffer.from(spaced.slice(inner.length))])
}
