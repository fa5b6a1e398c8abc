// Function `encode_proto`.

import type { Value } from '../../event/value.ts'
import { textOf } from '../byte-text.ts'
import { descriptorParameters, messageOf } from '../descriptors.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeProto = defineFunction({
  name: 'encode_proto',
  category: 'Codec',
  summary: 'Encodes an object as a protobuf message.',
  description:
    'Fields unknown to the message, and nulls, are omitted. Numbers and booleans may be given as text, and a timestamp for an `int64` field becomes microseconds since 1970.',
  parameters: [
    { name: 'value', kind: kinds.any, description: 'The object.' },
    ...descriptorParameters,
    {
      name: 'allow_lossy_string_coercion',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to convert numbers, booleans and timestamps to text for a text field.',
    },
  ],
  returns: kinds.string,
  fallible: 'always',
  errors: ['The value does not fit the message.'],
  pure: true,
  examples: [
    {
      source:
        'encode_base16(encode_proto!({"name": "box", "amount": 12, "state": "SENT"}, "order.desc", "shop.v1.Order"))',
      result: '"0a03626f78100c1802"',
    },
    {
      source: 'encode_base16(encode_proto!({"name": 7, "other": true}, "order.desc", "shop.v1.Order"))',
      result: '"0a0137"',
    },
    {
      source: 'encode_base16(encode_proto!({"name": r\'b.x\', "amount": "12"}, "order.desc", "shop.v1.Order"))',
      result: '"0a03622e78100c"',
    },
    {
      source: 'encode_proto({"amount": "many"}, "order.desc", "shop.v1.Order") ?? "no order"',
      result: '"no order"',
    },
  ],
  compile(call) {
    const format = messageOf(call)
    return (value: Value, _file: string, _type: string, textOfOthers: boolean): Result => {
      const written = format.write(value, textOfOthers)
      return 'problem' in written
        ? failure(`unable to encode protobuf message: ${written.problem}`)
        : textOf(written.data)
    }
  },
})
