// Function `append`.

import type { Value } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { Kind, kinds } from '../kind.ts'

export const append = defineFunction({
  name: 'append',
  category: 'Array',
  summary: 'Appends the items of an array to another array.',
  parameters: [
    { name: 'value', kind: kinds.array, description: 'The array.' },
    { name: 'items', kind: kinds.array, description: 'The items to add.' },
  ],
  returns: (call) => appended(call.kind('value').and(kinds.array), call.kind('items').and(kinds.array)),
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'append([1, 2], [3, 4])', result: '[1, 2, 3, 4]' },
    { source: 'upcase(append([1], ["b"])[1])', result: '"B"' },
    { source: 'append([], [null])', result: '[null]' },
    { source: 'append(["a"], [["b"]])', result: '["a", ["b"]]' },
  ],
  compile: () => (left: Value[], right: Value[]) => left.concat(right),
})

/** Items with a known index stay known. */
function appended(value: Kind, items: Kind): Kind {
  const [left, right] = [value.array, items.array]
  if (left === undefined || right === undefined) return kinds.array
  if (left.unknown !== undefined || [...left.known.values()].some((kind) => kind.overlaps(kinds.undefined))) {
    const unknown = (left.unknown ?? kinds.undefined).or(items.elements).orUndefined()
    return new Kind(value.bits, { known: left.known, unknown })
  }
  const known = new Map(left.known)
  for (const [index, kind] of right.known) known.set(index + left.known.size, kind)
  return new Kind(value.bits, { known, unknown: right.unknown })
}
