// Function `decode_percent`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const decodePercent = defineFunction({
  name: 'decode_percent',
  category: 'Codec',
  summary: 'Reads `%` and two digits as a byte. What is no such sequence stays.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'decode_percent("gate%207%3F")', result: '"gate 7?"' },
    { source: 'decode_percent("a+b")', result: '"a+b"' },
    { source: 'decode_percent("100%")', result: '"100%"' },
  ],
  compile: () => (value: string) =>
    value.replace(/(?:%[0-9A-Fa-f]{2})+/g, (sequence) =>
      Buffer.from(sequence.replaceAll('%', ''), 'hex').toString('utf8'),
    ),
})
