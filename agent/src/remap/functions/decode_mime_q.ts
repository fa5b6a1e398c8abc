// Function `decode_mime_q`.

import { findDecoder } from '../../formats/charset.ts'
import { bounded } from '../../formats/regex-linear.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

// `=?charset?encoding?text?=` (RFC 2047); lines that were cut keep `?encoding?text`, which is read too.
const word = bounded(/(?:=\?([\w.:+-]+)(?:\*[\w-]+)?)?\?([bBqQ])\?([^?\s]*)(?:\?=)?/g)
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

export const decodeMimeQ = defineFunction({
  name: 'decode_mime_q',
  category: 'Codec',
  summary: 'Replaces the encoded words of a header (RFC 2047) by their text.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The header.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['There is no encoded word.', 'An encoded word is not valid, or its character set is not known.'],
  pure: true,
  examples: [
    { source: 'decode_mime_q!("=?utf-8?b?SGVsbG8=?=")', result: '"Hello"' },
    { source: 'decode_mime_q!("Subject: =?iso-8859-1?Q?caf=E9_ok?=")', result: '"Subject: café ok"' },
    { source: 'decode_mime_q!("?b?SGVsbG8=")', result: '"Hello"' },
  ],
  compile:
    () =>
    (value: string): Result => {
      let result = ''
      let at = 0
      let found = false
      for (const match of value.matchAll(word)) {
        const [whole, charset = 'utf-8', encoding = '', text = ''] = match
        const bytes = encoding.toLowerCase() === 'b' ? fromBase64(text) : fromQuoted(text)
        const decoder = findDecoder(charset)
        if (bytes === undefined) return failure('unable to decode value with MIME Q decoder: the word is not valid')
        if (decoder === undefined)
          return failure(`unable to decode value with MIME Q decoder: unknown charset ${charset}`)
        const between = value.slice(at, match.index)
        // Blanks between two words are there for the length of lines only.
        result += found && /^\s*$/.test(between) ? '' : between
        result += decoder.decode(bytes)
        at = match.index + whole.length
        found = true
      }
      return found ? result + value.slice(at) : failure('unable to decode value with MIME Q decoder: no encoded word')
    },
})

function fromBase64(text: string): Buffer | undefined {
  return base64.test(text) ? Buffer.from(text, 'base64') : undefined
}

function fromQuoted(text: string): Buffer | undefined {
  const bytes: number[] = []
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x5f) bytes.push(0x20)
    else if (code !== 0x3d) bytes.push(...Buffer.from(text[at] as string))
    else {
      const digits = text.slice(at + 1, at + 3)
      if (!/^[0-9A-Fa-f]{2}$/.test(digits)) return undefined
      bytes.push(Number.parseInt(digits, 16))
      at += 2
    }
  }
  return Buffer.from(bytes)
}
