// Function `parse_json`.

import type { Bytes } from '../../event/value.ts'
import { isFailedJson, parseInvalidUtf8, parseJsonDepth } from '../../formats/json.ts'
import { JsonFormReader } from '../../formats/json-forms.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { jsonKind } from '../json-kind.ts'
import { kinds } from '../kind.ts'

export const parseJsonFunction = defineFunction({
  name: 'parse_json',
  category: 'Parse',
  summary: 'Parses JSON text.',
  parameters: [
    { name: 'value', kind: kinds.string, bytes: true, description: 'The text.' },
    {
      name: 'max_depth',
      kind: kinds.integer,
      required: false,
      description: 'Maximum depth from 1 to 128; deeper values are kept as JSON text.',
    },
    {
      name: 'lossy',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to replace bytes that are not UTF-8; otherwise such text is an error.',
    },
  ],
  returns: jsonKind,
  fallible: 'always',
  errors: ['The text is not JSON.', 'The depth is not between 1 and 128.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'parse_json!("{\\"a\\": 1.5}")', result: '{ "a": 1.5 }' },
    { source: 'parse_json!("{\\"a\\": {\\"b\\": [1, 2]}}", max_depth: 1)', result: '{ "a": "{\\"b\\": [1, 2]}" }' },
    { source: 'parse_json("{") ?? "no JSON"', result: '"no JSON"' },
  ],
  compile: () => {
    const reader = new JsonFormReader()
    const read = (given: string | Bytes, depth: number | bigint | undefined, lossy: boolean) => {
      if (typeof given !== 'string' && !lossy) return parseInvalidUtf8(given.bytes)
      const text = typeof given === 'string' ? given : given.toString()
      return depth === undefined ? reader.read(text) : parseJsonDepth(text, Number(depth))
    }
    return (given: string | Bytes, depth: number | bigint | undefined, lossy: boolean): Result => {
      if (depth !== undefined && (depth < 1 || depth > 128)) {
        return failure(
          depth < 0 || depth > 255
            ? 'out of range integral type conversion attempted'
            : `max_depth value should be greater than 0 and less than 128, got ${depth}`,
        )
      }
      const value = read(given, depth, lossy)
      if (!isFailedJson(value)) return value
      return failure(`unable to ${depth === undefined ? 'parse' : 'read'} json: ${value.reason}`)
    }
  },
})
