// Function `tag_types_externally`.

import { Timestamp } from '../../event/timestamp.ts'
import { Bytes, Float, fieldNames, Regex, setField, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const tagTypesExternally = defineFunction({
  name: 'tag_types_externally',
  category: 'Type',
  summary: 'Wraps every scalar in an object whose only key is its type.',
  parameters: [{ name: 'value', kind: kinds.any, bytes: true, description: 'The value.' }],
  returns: (call) => {
    const kind = call.kind('value').undefinedAsNull
    return kind.is(kinds.array) ? kinds.array : kind.is(kinds.null) ? kinds.null : kinds.object
  },
  nominal: (call) => {
    const kind = call.kind('value').undefinedAsNull
    return !kind.is(kinds.array) && !kind.is(kinds.null) && kind.overlaps(kinds.array.or(kinds.null))
  },
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'tag_types_externally({"a": 1, "b": null})', result: '{ "a": { "integer": 1 }, "b": null }' },
    {
      source: 'tag_types_externally([1, 2.5, true])',
      result: '[{ "integer": 1 }, { "float": 2.5 }, { "boolean": true }]',
    },
    { source: "tag_types_externally(t'2024-01-01T00:00:00Z')", result: '{ "timestamp": t\'2024-01-01T00:00:00Z\' }' },
  ],
  compile: () => tagged,
})

function tagged(value: Value): Value {
  if (value === null) return null
  if (Array.isArray(value)) return value.map(tagged)
  switch (typeof value) {
    case 'string':
      return { string: value }
    case 'bigint':
      return { integer: value }
    case 'number':
      return Number.isInteger(value) ? { integer: value } : { float: value }
    case 'boolean':
      return { boolean: value }
  }
  if (value instanceof Float) return { float: value }
  if (value instanceof Bytes) return { string: value }
  if (value instanceof Timestamp) return { timestamp: value }
  if (value instanceof Regex) return { regex: value }
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) setField(fields, name, tagged(value[name] as Value))
  return fields
}
