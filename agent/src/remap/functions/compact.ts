// Function `compact`.

import { fieldNames, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { fieldCount } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { flag } from '../parameters.ts'

export const compact = defineFunction({
  name: 'compact',
  category: 'Enumerate',
  summary: 'Removes empty values from an array or object, starting with the innermost.',
  parameters: [
    { name: 'value', kind: kinds.array.or(kinds.object), description: 'The array or object.' },
    flag('recursive', true, 'Whether to include nested arrays and objects.'),
    flag('null', true, 'Whether null counts as empty.'),
    flag('string', true, 'Whether the empty string counts as empty.'),
    flag('object', true, 'Whether an object without fields counts as empty.'),
    flag('array', true, 'Whether an array without items counts as empty.'),
    flag('nullish', false, 'Whether a value for which `is_nullish` is true counts as empty.'),
  ],
  returns: (call) => (call.kind('value').is(kinds.array) ? kinds.array : kinds.object),
  nominal: (call) => !call.kind('value').is(kinds.array) && !call.kind('value').is(kinds.object),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'compact({"a": null, "b": {"c": ""}, "d": 0})', result: '{ "d": 0 }' },
    { source: 'compact(["a", "", null, []], string: false)', result: '["a", ""]' },
    { source: '.a = {"b": ""}\nkeys(compact!(.a))', result: '[]' },
    { source: 'compact({"a": "-", "b": 1}, nullish: true)', result: '{ "b": 1 }' },
  ],
  compile:
    () =>
    (
      value: Value,
      recursive: boolean,
      nulls: boolean,
      strings: boolean,
      objects: boolean,
      arrays: boolean,
      nullish: boolean,
    ) => {
      const isEmpty = (item: Value): boolean => {
        if (item === null) return nulls || nullish
        if (typeof item === 'string') {
          return (strings && item === '') || (nullish && (item === '-' || /^\p{White_Space}*$/u.test(item)))
        }
        if (Array.isArray(item)) return arrays && item.length === 0
        return objects && isObject(item) && fieldCount(item) === 0
      }
      const visit = (item: Value, inside: boolean): Value => {
        if (Array.isArray(item)) {
          const items = inside ? item.map((child) => visit(child, recursive)) : item
          return inside ? items.filter((child) => !isEmpty(child)) : items
        }
        if (!isObject(item) || !inside) return item
        const fields: ValueObject = {}
        for (const name of fieldNames(item)) {
          const child = visit(item[name] as Value, recursive)
          if (!isEmpty(child)) setField(fields, name, child)
        }
        return fields
      }
      return visit(value, true)
    },
})
