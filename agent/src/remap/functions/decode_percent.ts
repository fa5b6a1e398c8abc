// Function `decode_percent`.

import type { Bytes } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodePercent = defineFunction({
  name: 'decode_percent',
  category: 'Codec',
  summary: 'Decodes `%` followed by two hexadecimal digits to a byte. Other text stays unchanged.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_percent("gate%207%3F")', result: '"gate 7?"' },
    { source: 'decode_percent("a+b")', result: '"a+b"' },
    { source: 'decode_percent("100%")', result: '"100%"' },
    { source: 'decode_percent(decode_base16!("c3254139"))', result: '"é"' },
  ],
  compile: () => (value: string | Bytes) =>
    typeof value === 'string'
      ? value.replace(/(?:%[0-9A-Fa-f]{2})+/g, (sequence) =>
          Buffer.from(sequence.replaceAll('%', ''), 'hex').toString('utf8'),
        )
      : Buffer.from(
          value.bytes
            .toString('latin1')
            .replace(/%([0-9A-Fa-f]{2})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16))),
          'latin1',
        ).toString('utf8'),
})
