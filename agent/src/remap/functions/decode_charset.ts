// Function `decode_charset`.

import type { Bytes } from '../../event/value.ts'
import { charsetText } from '../../formats/charset.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeCharset = defineFunction({
  name: 'decode_charset',
  category: 'Codec',
  summary: 'Decodes bytes in a character set to text.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The bytes.' },
    { name: 'from_charset', kind: kinds.string, description: 'The character set, such as `iso-8859-1`.' },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The character set is unknown.'],
  pure: true,
  examples: [
    { source: 'decode_charset!(decode_base16!("e9"), "iso-8859-1")', result: '"é"' },
    { source: 'decode_charset!(decode_base16!("8365"), "shift_jis")', result: '"テ"' },
    { source: 'decode_charset!(decode_base16!("fffe6100"), "iso-8859-1")', result: '"a"' },
    { source: 'decode_charset!("gate", "utf-8")', result: '"gate"' },
  ],
  compile: () => (value: string | Bytes, charset: string) =>
    charsetText(bytesOf(value), charset) ?? failure(`Unknown charset: ${charset}`),
})
