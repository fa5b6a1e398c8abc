// Function `type_def`.

import { setField, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'

const names = ['integer', 'float', 'boolean', 'timestamp', 'regex', 'null', 'undefined'] as const

export const typeDef = defineFunction({
  name: 'type_def',
  category: 'Type',
  summary: "Returns the compiler's knowledge about the type of a value. For debugging; the format may change.",
  parameters: [{ name: 'value', kind: kinds.any, description: 'The value.' }],
  returns: kinds.any.without(kinds.undefined),
  fallible: 'never',
  pure: true,
  typeOfArguments: true,
  examples: [
    { source: 'type_def({"a": 1})', result: '{ "object": { "a": { "integer": true } } }' },
    { source: 'type_def(.a)', result: '{ "any": true }' },
    { source: 'type_def(["b"])', result: '{ "array": { "0": { "bytes": true } } }' },
  ],
  compile(call) {
    const form = described(call.kind('value'), 0)
    return () => form
  },
})

function described(kind: Kind, depth: number): Value {
  if (depth > 16 || kind.isAny || kind.contains(kinds.any.without(kinds.undefined))) return { any: true }
  if (kind.isNever) return { never: true }
  const fields: ValueObject = {}
  // The user-visible name: strings are called bytes.
  if (kind.overlaps(kinds.string)) fields['bytes'] = true
  for (const name of names) if (kind.overlaps(kinds[name])) fields[name] = true
  for (const name of ['array', 'object'] as const) {
    if (!kind.overlaps(kinds[name])) continue
    const collection = kind[name]
    const elements: ValueObject = {}
    for (const [key, element] of collection?.known ?? []) setField(elements, String(key), described(element, depth + 1))
    fields[name] = elements
    const others = collection?.unknown
    if (others === undefined || others.without(kinds.undefined).isNever) continue
    fields[`${name}_unknown_${others.isAny ? 'infinite' : 'exact'}`] = described(others, depth + 1)
  }
  return fields
}
