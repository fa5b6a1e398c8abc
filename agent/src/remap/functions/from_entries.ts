// Function `from_entries`.

import { Bytes, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { textOfKind } from '../text.ts'

export const fromEntries = defineFunction({
  name: 'from_entries',
  category: 'Object',
  summary: 'Converts an array of objects with a name and a value to an object.',
  description:
    'The name is the first of `key`, `Key`, `name`, `Name` that is neither null nor false; the value is `value` or `Value`.',
  parameters: [{ name: 'value', kind: kinds.array, description: 'The objects.' }],
  returns: kinds.object,
  fallible: 'never',
  failsUnannounced: true,
  errors: ['An item is not an object.', 'A name is missing or not a string.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'from_entries([{"key": "a", "value": 1}])', result: '{ "a": 1 }' },
    { source: 'from_entries([{"Name": "a", "Value": true}])', result: '{ "a": true }' },
    { source: 'from_entries([{"key": "a", "value": null, "Value": 1}])', result: '{ "a": null }' },
    { source: 'from_entries([{"key": "a"}])', result: '{ "a": null }' },
  ],
  compile:
    () =>
    (items: Value[]): Result => {
      const fields: ValueObject = {}
      for (const item of items) {
        if (!isObject(item)) return failure(`expected object, got ${textOfKind(item)}`)
        let name: Value | undefined
        for (const field of ['key', 'Key', 'name', 'Name']) {
          const found = item[field]
          if (found === undefined || found === null || found === false) continue
          name = found
          break
        }
        if (typeof name !== 'string' && !(name instanceof Bytes)) return failure('object keys must be strings')
        setField(fields, String(name), item['value'] === undefined ? (item['Value'] ?? null) : item['value'])
      }
      return fields
    },
})
