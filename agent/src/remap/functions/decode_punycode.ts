// Function `decode_punycode`.

import { decodeLabel, domainToUnicode } from '../../formats/punycode.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const prefix = 'xn--'

export const decodePunycode = defineFunction({
  name: 'decode_punycode',
  category: 'Codec',
  summary: 'Decodes a domain name from its ASCII form.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The name in ASCII form.' },
    {
      name: 'validate',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to reject invalid names; otherwise undecodable parts stay unchanged.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The name is invalid.'],
  pure: true,
  examples: [
    { source: 'decode_punycode!("xn--gstehaus-0za.test")', result: '"gästehaus.test"' },
    { source: 'decode_punycode!("plain.com")', result: '"plain.com"' },
    {
      source: 'decode_punycode!("xn--8hbb.xn--fiba.xn--8hbf.xn--eib.", validate: false)',
      result: '"١٠.٦٦.٣٠.٥."',
    },
    { source: 'decode_punycode("xn--8hbb.xn--fiba.xn--8hbf.xn--eib.") ?? "no name"', result: '"no name"' },
    { source: 'decode_punycode("xn--0.xn--zzzzzzz99999") ?? "no name"', result: '"no name"' },
  ],
  compile:
    () =>
    (name: string, validate: boolean): Result => {
      if (!name.includes(prefix)) return name
      if (validate) return domainToUnicode(name) ?? failure('unable to decode punycode')
      return name
        .split('.')
        .map((label) => (label.startsWith(prefix) ? (decodeLabel(label.slice(prefix.length)) ?? label) : label))
        .join('.')
    },
})
