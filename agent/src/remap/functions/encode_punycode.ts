// Function `encode_punycode`.

import { domainToAscii, encodeLabel } from '../../formats/punycode.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodePunycode = defineFunction({
  name: 'encode_punycode',
  category: 'Codec',
  summary: 'Converts a domain name to its ASCII form.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The name.' },
    {
      name: 'validate',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to reject invalid names.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The name is invalid.'],
  pure: true,
  examples: [
    { source: 'encode_punycode!("größe.test")', result: '"xn--gre-6ka8i.test"' },
    { source: 'encode_punycode!("plain.com")', result: '"plain.com"' },
    { source: 'encode_punycode!("www.CAFé.com")', result: '"www.xn--caf-dma.com"' },
    { source: 'encode_punycode("2nd.خرید.com") ?? "no name"', result: '"no name"' },
    { source: 'encode_punycode!("größe.test", validate: false)', result: '"xn--gre-6ka8i.test"' },
  ],
  compile:
    () =>
    (name: string, validate: boolean): Result => {
      if (validate) return domainToAscii(name) ?? failure('unable to encode to punycode')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the whole range of ASCII is meant
      const ascii = /^[\x00-\x7f]*$/
      return name
        .split('.')
        .map((part) => {
          const label = part.toLowerCase()
          return part.startsWith('xn--') || ascii.test(part) ? label : `xn--${encodeLabel(label) ?? label}`
        })
        .join('.')
    },
})
