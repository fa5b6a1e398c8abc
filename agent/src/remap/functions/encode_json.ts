// Function `encode_json`.

import type { Value } from '../../event/value.ts'
import { writeJson, writePrettyJson } from '../../formats/json.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const encodeJson = defineFunction({
  name: 'encode_json',
  category: 'Codec',
  summary: 'Encodes a value as JSON text with sorted keys.',
  parameters: [
    { name: 'value', kind: kinds.any, bytes: true, description: 'The value.' },
    {
      name: 'pretty',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to use several lines with an indentation of two spaces.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'encode_json({"b": 1.0, "a": [true, null]})', result: '"{\\"a\\":[true,null],\\"b\\":1.0}"' },
    { source: 'encode_json([1, 2.5, "x", true, null])', result: '"[1,2.5,\\"x\\",true,null]"' },
    { source: 'encode_json({"a": 1}, pretty: true)', result: '"{\\n  \\"a\\": 1\\n}"' },
  ],
  compile: () => (value: Value, pretty: boolean) => (pretty ? writePrettyJson(value) : writeJson(value)),
})
