// Function `parse_proto`.

import type { Bytes } from '../../event/value.ts'
import { bytesOf } from '../byte-text.ts'
import { descriptorParameters, messageOf } from '../descriptors.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { jsonKind } from '../json-kind.ts'
import { kinds } from '../kind.ts'

export const parseProto = defineFunction({
  name: 'parse_proto',
  category: 'Parse',
  summary: 'Parses a protobuf message.',
  description:
    'Fields have the names in the .proto file, enum values are their names, and unset fields are absent. `google.protobuf.Timestamp` becomes a timestamp.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The message.' },
    ...descriptorParameters,
  ],
  returns: jsonKind,
  fallible: 'always',
  errors: ['The data is not such a message.'],
  pure: true,
  examples: [
    {
      source: 'parse_proto!(decode_base16!("0a03626f78100c1802"), "order.desc", "shop.v1.Order")',
      result: '{ "amount": 12, "name": "box", "state": "SENT" }',
    },
    {
      source: 'parse_proto!(decode_base16!("2203020301"), "order.desc", "shop.v1.Order")',
      result: '{ "codes": [1, -2, -1] }',
    },
    {
      source: 'parse_proto("no message", "order.desc", "shop.v1.Order") ?? "no order"',
      result: '"no order"',
    },
  ],
  compile(call) {
    const format = messageOf(call)
    return (value: string | Bytes): Result => {
      const read = format.read(bytesOf(value))
      return 'problem' in read ? failure(`unable to parse protobuf message: ${read.problem}`) : read.fields
    }
  },
  fresh: true,
})
