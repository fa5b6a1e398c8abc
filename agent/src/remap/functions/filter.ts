// Function `filter`.

import { setField, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { elementKinds } from '../elements.ts'
import { type Closure, defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const filter = defineFunction({
  name: 'filter',
  category: 'Enumerate',
  summary: 'Returns the elements of an array or object for which a closure returns true.',
  parameters: [{ name: 'value', kind: kinds.array.or(kinds.object), description: 'The array or object.' }],
  closure: { parameters: (call) => elementKinds(call.kind('value')), result: kinds.boolean },
  returns: (call) => {
    const kind = call.kind('value')
    return kind.overlaps(kinds.array)
      ? kind.overlaps(kinds.object)
        ? kinds.array.or(kinds.object)
        : kinds.array
      : kinds.object
  },
  fallible: (call) => call.closureFallible,
  pure: true,
  examples: [
    { source: 'filter([1, null, 2]) -> |_index, value| { !is_null(value) }', result: '[1, 2]' },
    { source: 'filter({"a": 1, "b": 2}) -> |key, _value| { key == "a" }', result: '{ "a": 1 }' },
    { source: 'filter([1, 2, 3]) -> |index, _value| { index > 0 }', result: '[2, 3]' },
  ],
  compile: () => run,
})

function run(value: Value[] | ValueObject, closure: Closure): Result {
  if (Array.isArray(value)) {
    const items: Value[] = []
    for (let index = 0; index < value.length; index++) {
      const item = value[index] as Value
      const given = closure(index, item)
      if (isFailure(given)) return given
      if (given === true) items.push(item)
    }
    return items
  }
  const fields: ValueObject = {}
  for (const name of sortedFieldNames(value)) {
    const field = value[name] as Value
    const given = closure(name, field)
    if (isFailure(given) && given.outcome !== 'return') return given
    if ((isFailure(given) ? given.value : given) === true) setField(fields, name, field)
  }
  return fields
}
