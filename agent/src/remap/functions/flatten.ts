// Function `flatten`.

import { isObject, setField, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { tooMuch } from '../meter.ts'

export const flatten = defineFunction({
  name: 'flatten',
  category: 'Enumerate',
  summary: 'Flattens nested objects or nested arrays to one level.',
  parameters: [
    { name: 'value', kind: kinds.array.or(kinds.object), description: 'The array or object.' },
    {
      name: 'separator',
      kind: kinds.string,
      required: false,
      default: '.',
      description: 'Separator between field names.',
    },
    {
      name: 'except',
      kind: kinds.array,
      required: false,
      default: [],
      static: true,
      description: 'Names of fields that are not flattened, at any depth.',
    },
  ],
  returns: (call) => (call.kind('value').is(kinds.array) ? kinds.array : kinds.object),
  nominal: (call) => !call.kind('value').is(kinds.array) && !call.kind('value').is(kinds.object),
  fallible: 'never',
  growth: 'product',
  pure: true,
  examples: [
    { source: 'flatten({"a": {"b": 1, "c": {"d": 2}}, "e": 3})', result: '{ "a.b": 1, "a.c.d": 2, "e": 3 }' },
    { source: 'flatten([1, [2, [3]]])', result: '[1, 2, 3]' },
    {
      source: 'flatten({"keep": {"a": 1}, "b": {"keep": {"c": 2}}}, except: ["keep"])',
      result: '{ "b.keep": { "c": 2 }, "keep": { "a": 1 } }',
    },
    { source: 'flatten({"a": {"b": 1}}, separator: "_")', result: '{ "a_b": 1 }' },
  ],
  compile(call) {
    const except = new Set(call.constant('except') as Value[])
    for (const name of except) if (typeof name !== 'string') call.reject('"except" must be an array of strings')
    const { maxBytes } = call.runtime
    return (value: Value[] | ValueObject, separator: string): Result => {
      if (Array.isArray(value)) return flatItems(value)
      const fields: ValueObject = {}
      let left = maxBytes
      const visit = (object: ValueObject, prefix: string): void => {
        for (const name of sortedFieldNames(object)) {
          const field = object[name] as Value
          if (isObject(field) && !except.has(name)) visit(field, prefix + name + separator)
          else if (left >= 0) {
            const flat = prefix + name
            left -= flat.length
            setField(fields, flat, field)
          }
        }
      }
      visit(value, '')
      return left < 0 ? tooMuch : fields
    }
  },
})

function flatItems(items: Value[]): Value[] {
  return items.flatMap((item) => (Array.isArray(item) ? flatItems(item) : [item]))
}
