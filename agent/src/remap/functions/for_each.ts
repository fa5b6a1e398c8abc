// Function `for_each`.

import { shapeOf } from '../../event/shape.ts'
import { sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { elementKinds } from '../elements.ts'
import { type Closure, defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const forEach = defineFunction({
  name: 'for_each',
  category: 'Enumerate',
  summary: 'Runs a closure for every element of an array or object; returns null.',
  parameters: [{ name: 'value', kind: kinds.array.or(kinds.object), description: 'The array or object.' }],
  closure: { parameters: (call) => elementKinds(call.kind('value')), result: kinds.any },
  returns: kinds.null,
  fallible: (call) => call.closureFallible,
  pure: true,
  examples: [
    { source: 'sum = 0\nfor_each([1, 2, 3]) -> |_index, value| { sum = sum + value }\nsum', result: '6' },
    {
      source: 'names = []\nfor_each({"a": 1, "b": 2}) -> |key, _value| { names = push(names, key) }\nnames',
      result: '["a", "b"]',
    },
    { source: 'for_each([]) -> |_index, _value| { null }', result: 'null' },
  ],
  compile: () => run,
})

function run(value: Value[] | ValueObject, closure: Closure): Result {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const given = closure(index, value[index] as Value)
      if (isFailure(given)) return given
    }
    return null
  }
  const shape = shapeOf(value)
  const names = shape?.names ?? sortedFieldNames(value)
  const members = shape?.members(value)
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as string
    const member = members === undefined ? value[name] : members[index]
    if (member === undefined) continue
    const given = closure(name, member)
    // `return` ends only the current iteration.
    if (isFailure(given) && given.outcome !== 'return') return given
  }
  return null
}
