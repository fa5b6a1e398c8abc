// Function `map_values`.

import { elementKinds, mapEach, mappedKind } from '../elements.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const mapValues = defineFunction({
  name: 'map_values',
  category: 'Enumerate',
  summary: "Replaces every value of an array or object with a closure's result.",
  parameters: [
    { name: 'value', kind: kinds.array.or(kinds.object), description: 'The array or object.' },
    {
      name: 'recursive',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to visit the content of nested arrays and objects, after the collections themselves.',
    },
  ],
  closure: {
    parameters: (call) => [
      call.constant('recursive') === false || !call.kind('value').elements.overlaps(kinds.array.or(kinds.object))
        ? elementKinds(call.kind('value'))[1]
        : kinds.any.without(kinds.undefined),
    ],
    result: kinds.any,
  },
  returns: (call) =>
    mappedKind(call.kind('value'), call.closureKind.undefinedAsNull, call.constant('recursive') !== false),
  fallible: (call) => call.closureFallible,
  failsUnannounced: true,
  errors: ['With `recursive`, the closure returns new collections forever.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'map_values({"a": "x"}) -> |value| { upcase(value) }', result: '{ "a": "X" }' },
    { source: 'map_values([1, 2]) -> |value| { value + 1 }', result: '[2, 3]' },
    { source: 'map_values({"a": [1]}, recursive: true) -> |value| { is_array(value) }', result: '{ "a": true }' },
  ],
  compile: () => mapEach,
})
