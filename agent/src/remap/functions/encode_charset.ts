// Function `encode_charset`.

import { encodeCharset, findDecoder, isWithheld } from '../../formats/charset.ts'
import { textOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeCharsetFunction = defineFunction({
  name: 'encode_charset',
  category: 'Codec',
  summary: 'Encodes a text in a character set.',
  description: 'Characters outside the set become numeric references. UTF-16 is encoded as UTF-8.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'to_charset', kind: kinds.string, description: 'The character set, such as `iso-8859-1`.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The character set is unknown.'],
  pure: true,
  examples: [
    { source: 'encode_base16(encode_charset!("é", "ISO-8859-1"))', result: '"e9"' },
    { source: 'encode_base16(encode_charset!("a€", "windows-1252"))', result: '"6180"' },
    { source: 'encode_charset!("€", "ISO-8859-2")', result: '"&#8364;"' },
  ],
  compile: () => (value: string, charset: string) => {
    if (isWithheld(charset)) return value
    const decoder = findDecoder(charset)
    return decoder === undefined ? failure(`Unknown charset: ${charset}`) : textOf(encodeCharset(value, decoder))
  },
})
