// Function `decode_base16`.

import { textOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodeBase16 = defineFunction({
  name: 'decode_base16',
  category: 'Codec',
  summary: 'Decodes hexadecimal digits.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The digits.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The number of digits is odd.', 'A character is not a hexadecimal digit.'],
  pure: true,
  examples: [
    { source: 'decode_base16!("736F6D65")', result: '"some"' },
    { source: 'decode_base16!("")', result: '""' },
    { source: 'decode_base16("xyz") ?? "no hexadecimal"', result: '"no hexadecimal"' },
  ],
  compile: () => (value: string) =>
    value.length % 2 === 0 && /^[0-9A-Fa-f]*$/.test(value)
      ? textOf(Buffer.from(value, 'hex'))
      : failure('unable to decode value to base16'),
})
