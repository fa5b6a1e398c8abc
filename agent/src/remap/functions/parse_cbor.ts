// Function `parse_cbor`.

import type { Bytes } from '../../event/value.ts'
import { parseCbor } from '../../formats/cbor.ts'
import { bytesOf } from '../byte-text.ts'
import { defineFunction, failure } from '../function.ts'
import { jsonKind } from '../json-kind.ts'
import { kinds } from '../kind.ts'

export const parseCborFunction = defineFunction({
  name: 'parse_cbor',
  category: 'Parse',
  summary: 'Parses CBOR data.',
  parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
  returns: jsonKind,
  fallible: 'always',
  errors: ['The data is not CBOR, or contains values that JSON cannot express.'],
  pure: true,
  examples: [
    { source: 'parse_cbor!(decode_base16!("83f4f6fb3ff8000000000000"))', result: '[false, null, 1.5]' },
    { source: 'parse_cbor!(decode_base16!("a1616118ff"))', result: '{ "a": 255 }' },
    { source: 'parse_cbor(decode_base16!("ff")) ?? "no CBOR"', result: '"no CBOR"' },
  ],
  compile: () => (value: string | Bytes) => {
    const result = parseCbor(bytesOf(value))
    return 'value' in result ? result.value : failure(`unable to parse cbor: ${result.problem}`)
  },
})
