// Function `map_keys`.

import { type Shape, shapeOf } from '../../event/shape.ts'
import { isObject, setField, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { type Closure, defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const mapKeys = defineFunction({
  name: 'map_keys',
  category: 'Enumerate',
  summary: 'Renames the fields of an object with a closure.',
  parameters: [
    { name: 'value', kind: kinds.object, description: 'The object.' },
    {
      name: 'recursive',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to rename fields of nested objects too.',
    },
  ],
  closure: { parameters: () => [kinds.string], result: kinds.string },
  // The language takes the result for an object with the old keys.
  returns: (call) => call.kind('value').undefinedAsNull,
  nominal: (call) => (call.kind('value').object?.known.size ?? 0) > 0,
  fallible: (call) => call.closureFallible,
  pure: true,
  fresh: true,
  examples: [
    { source: 'map_keys({"a b": 1}) -> |key| { replace(key, " ", "_") }', result: '{ "a_b": 1 }' },
    { source: 'map_keys({"a": {"b": 1}}, recursive: true) -> |key| { upcase(key) }', result: '{ "A": { "B": 1 } }' },
    { source: 'map_keys({"a": {"b": 1}}) -> |key| { upcase(key) }', result: '{ "A": { "b": 1 } }' },
  ],
  compile: () => {
    const known: Renames = { shape: undefined, rename: undefined, others: new Map() }
    return (value: ValueObject, recursive: boolean, closure: Closure): Result => {
      // A pure closure always returns the same names for the keys of a shape.
      if (closure.pure === true && !recursive) {
        const shape = shapeOf(value)
        const rename = shape === null ? undefined : renameFor(known, shape, closure)
        if (rename !== undefined) return rename(value)
      }
      return renamed(value, recursive, closure)
    }
  },
})

type Rename = (object: ValueObject) => ValueObject

/** Generated code for known shapes: the last one, and others. */
interface Renames {
  shape: Shape | undefined
  rename: Rename | undefined
  readonly others: Map<Shape, Rename | undefined>
}

function renameFor(known: Renames, shape: Shape, closure: Closure): Rename | undefined {
  if (shape === known.shape) return known.rename
  if (known.others.size > 64) known.others.clear()
  if (!known.others.has(shape)) known.others.set(shape, compileRename(shape, closure))
  known.shape = shape
  known.rename = known.others.get(shape)
  return known.rename
}

/** Undefined unless the new keys are distinct ordinary strings. */
function compileRename(shape: Shape, closure: Closure): Rename | undefined {
  const keys = new Set<string>()
  const members: string[] = []
  for (const name of shape.names) {
    const key = closure(name)
    if (typeof key !== 'string' || key === '__proto__' || /^\d+$/.test(key) || keys.has(key)) return undefined
    keys.add(key)
    members.push(`${JSON.stringify(key)}: object[${JSON.stringify(name)}]`)
  }
  return new Function('object', `return { ${members.join(', ')} }`) as Rename
}

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
