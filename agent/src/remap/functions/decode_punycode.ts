// Function `decode_punycode`.

import { decodeLabel } from '../../formats/punycode.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodePunycode = defineFunction({
  name: 'decode_punycode',
  category: 'Codec',
  summary: 'The domain name of its ASCII form.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The ASCII form.' },
    {
      name: 'validate',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Refuse names that are not valid.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The name is not valid.'],
  pure: true,
  examples: [
    { source: 'decode_punycode!("xn--gstehaus-0za.test")', result: '"gästehaus.test"' },
    { source: 'decode_punycode!("plain.com")', result: '"plain.com"' },
    { source: 'decode_punycode("xn--0.xn--zzzzzzz99999") ?? "no name"', result: '"no name"' },
  ],
  compile:
    () =>
    (name: string, validate: boolean): Result => {
      const labels: string[] = []
      for (const label of name.split('.')) {
        const decoded = /^xn--/i.test(label) ? decodeLabel(label.slice(4)) : label
        if (decoded === undefined) return failure('unable to decode punycode')
        labels.push(validate ? decoded.toLowerCase() : decoded)
      }
      return labels.join('.')
    },
})
