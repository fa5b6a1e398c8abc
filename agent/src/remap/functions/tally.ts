// Function `tally`.

import { Bytes, getField, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind, valueText } from '../text.ts'

export const tally = defineFunction({
  name: 'tally',
  category: 'Enumerate',
  summary: 'Counts equal strings in an array.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The strings.' }],
  returns: kinds.objectEach(kinds.integer),
  fallible: 'always',
  errors: ['An item is not a string.'],
  pure: true,
  examples: [
    { source: 'tally!(["a", "b", "a"])', result: '{ "a": 2, "b": 1 }' },
    { source: 'tally!([])', result: '{  }' },
    { source: 'tally(["a", 1]) ?? "no text"', result: '"no text"' },
  ],
  compile:
    () =>
    (items: Value[]): Result => {
      const counts: ValueObject = {}
      for (const item of items) {
        if (typeof item !== 'string' && !(item instanceof Bytes)) {
          return failure(`all values must be strings, found: ${described(item)}`)
        }
        setField(counts, String(item), ((getField(counts, String(item)) as number | undefined) ?? 0) + 1)
      }
      return counts
    },
})

/** A value with the names of its type and of those of its items. */
function described(value: Value): string {
  if (value === null) return 'Null'
  if (typeof value === 'string' || value instanceof Bytes) return `Bytes(b${valueText(value)})`
  if (Array.isArray(value)) return `Array([${value.map(described).join(', ')}])`
  if (isObject(value)) return `Object(${valueText(value)})`
  const kind = textOfKind(value)
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}(${valueText(value)})`
}
