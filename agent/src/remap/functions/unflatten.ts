// Function `unflatten`.

import { isObject, setField, sortedFieldNames, type Value, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const unflatten = defineFunction({
  name: 'unflatten',
  category: 'Enumerate',
  summary: 'Converts field names with a separator to nested objects.',
  description: 'If a name has a value and is also the prefix of other names, its value is dropped.',
  parameters: [
    { name: 'value', kind: kinds.object, description: 'The object.' },
    {
      name: 'separator',
      kind: kinds.string,
      required: false,
      default: '.',
      description: 'The separator at which names are split.',
    },
    {
      name: 'recursive',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether to split names in nested objects too.',
    },
  ],
  returns: kinds.object,
  fallible: 'never',
  pure: true,
  fresh: true,
  examples: [
    { source: 'unflatten({"a.b": 1, "a.c.d": 2, "e": 3})', result: '{ "a": { "b": 1, "c": { "d": 2 } }, "e": 3 }' },
    { source: 'unflatten({"a_b": 1}, separator: "_")', result: '{ "a": { "b": 1 } }' },
    { source: 'unflatten({"a": {"b.c": 1}}, recursive: false)', result: '{ "a": { "b.c": 1 } }' },
  ],
  compile: () => (value: ValueObject, separator: string, recursive: boolean) => {
    const nest = (entries: readonly (readonly [string, Value])[]): ValueObject => {
      const groups = new Map<string, [string | undefined, Value][]>()
      for (const [name, field] of entries) {
        const at = separator === '' ? -1 : name.indexOf(separator)
        const head = at < 0 ? name : name.slice(0, at)
        const rest = at < 0 ? undefined : name.slice(at + separator.length)
        const group = groups.get(head)
        if (group === undefined) groups.set(head, [[rest, field]])
        else group.push([rest, field])
      }
      const fields: ValueObject = {}
      for (const [head, group] of groups) {
        const [rest, field] = group[0] as [string | undefined, Value]
        if (group.length === 1 && rest === undefined) {
          setField(fields, head, recursive && isObject(field) ? nest(entriesOf(field)) : field)
        } else {
          setField(
            fields,
            head,
            nest(group.flatMap(([name, inner]) => (name === undefined ? [] : [[name, inner] as const]))),
          )
        }
      }
      return fields
    }
    return nest(entriesOf(value))
  },
})

function entriesOf(object: ValueObject): [string, Value][] {
  return sortedFieldNames(object).map((name) => [name, object[name] as Value])
}
