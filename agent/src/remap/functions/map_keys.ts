// Function `map_keys`.

import { isObject, setField, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { loosened } from '../elements.ts'
import { type Closure, defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const mapKeys = defineFunction({
  name: 'map_keys',
  category: 'Enumerate',
  summary: 'Renames the fields of an object to what a closure gives.',
  parameters: [
    { name: 'value', kind: kinds.object, description: 'The object.' },
    {
      name: 'recursive',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Also rename fields of nested objects.',
    },
  ],
  closure: { parameters: () => [kinds.string], result: kinds.string },
  returns: (call) => (call.constant('recursive') === false ? loosened(call.kind('value')) : kinds.object),
  fallible: (call) => call.closureFallible,
  pure: true,
  fresh: true,
  examples: [
    { source: 'map_keys({"a b": 1}) -> |key| { replace(key, " ", "_") }', result: '{ "a_b": 1 }' },
    { source: 'map_keys({"a": {"b": 1}}, recursive: true) -> |key| { upcase(key) }', result: '{ "A": { "B": 1 } }' },
    { source: 'map_keys({"a": {"b": 1}}) -> |key| { upcase(key) }', result: '{ "A": { "b": 1 } }' },
  ],
  compile: () => renamed,
})

function renamed(value: Value, recursive: boolean, closure: Closure): Result {
  if (Array.isArray(value)) {
    const items: Value[] = []
    for (const item of value) {
      const inner = renamed(item, true, closure)
      if (isFailure(inner)) return inner
      items.push(inner)
    }
    return items
  }
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of sortedFieldNames(value)) {
    const key = closure(name)
    if (isFailure(key)) return key
    const field = value[name] as Value
    const inner = recursive ? renamed(field, true, closure) : field
    if (isFailure(inner)) return inner
    setField(fields, String(key), inner)
  }
  return fields
}
