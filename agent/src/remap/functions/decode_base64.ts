// Function `decode_base64`.

import { textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { charset } from '../parameters.ts'

export const decodeBase64 = defineFunction({
  name: 'decode_base64',
  category: 'Codec',
  summary: 'The string of Base64 text, with or without padding.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }, charset],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The text is not valid Base64 in this alphabet.', 'The alphabet is unknown.'],
  pure: true,
  examples: [
    { source: 'decode_base64!("Z2F0ZQ==")', result: '"gate"' },
    { source: 'decode_base64!("Z2F0ZQ")', result: '"gate"' },
    { source: 'decode_base64!("Pz8-Pg", charset: "url_safe")', result: '"??>>"' },
  ],
  compile:
    () =>
    (value: string, charset: string): Result => {
      if (charset !== 'standard' && charset !== 'url_safe') return failure('unknown charset')
      const urlSafe = charset === 'url_safe'
      let end = value.length
      while (value[end - 1] === '=') end--
      const digits = value.slice(0, end === 0 ? value.length : end)
      const valid = (urlSafe ? /^[0-9A-Za-z_-]*$/ : /^[0-9A-Za-z+/]*$/).test(digits)
      const bytes = valid && digits.length % 4 !== 1 ? Buffer.from(digits, urlSafe ? 'base64url' : 'base64') : undefined
      // Unused bits must be zero.
      if (bytes === undefined || bytes.toString('base64url') !== digits.replaceAll('+', '-').replaceAll('/', '_')) {
        return failure('unable to decode value from base64')
      }
      return textOf(bytes)
    },
})
