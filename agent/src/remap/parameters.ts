// Parameters that several functions declare alike, with their texts.

import type { Value } from '../event/value.ts'
import type { CallKinds, Parameter } from './function.ts'
import { type Kind, kinds } from './kind.ts'

/** An object or array and a path in it that is only known at run time. */
export const containerAndPath: readonly Parameter[] = [
  {
    name: 'value',
    kind: kinds.object.or(kinds.array),
    ownCheck: true,
    description: 'The object or array.',
  },
  { name: 'path', kind: kinds.array, description: 'Names of fields and indexes of items.' },
]

/** The kind of `value` of a function that returns a changed copy of it. */
export function containerKind(call: CallKinds): Kind {
  const kind = call.kind('value')
  return kind.is(kinds.array) ? kinds.array : kind.is(kinds.object) ? kinds.object : kinds.object.or(kinds.array)
}

/** A failed call gives a string where the kind of the container is not known. */
export function containerOfFailure(kind: Kind): Value | undefined {
  return kind.is(kinds.array) || kind.is(kinds.object) ? undefined : ''
}

export const fieldsOrdering: Parameter = {
  name: 'fields_ordering',
  kind: kinds.array,
  required: false,
  default: [],
  description: 'Fields that come first, in this order.',
}

/** Of key-value text. */
export const delimiters: readonly Parameter[] = [
  {
    name: 'key_value_delimiter',
    kind: kinds.string,
    required: false,
    default: '=',
    description: 'Between key and value.',
  },
  { name: 'field_delimiter', kind: kinds.string, required: false, default: ' ', description: 'Between fields.' },
]

/** A boolean with a default. */
export const flag = (name: string, set: boolean, description: string): Parameter => ({
  name,
  kind: kinds.boolean,
  required: false,
  default: set,
  description,
})

export const originalCase: Parameter = {
  name: 'original_case',
  kind: kinds.string,
  required: false,
  enum: ['kebab-case', 'camelCase', 'PascalCase', 'SCREAMING_SNAKE', 'snake_case'],
  description: 'The style that the text is in; it is guessed if absent.',
}

/** Of Base64. */
export const charset: Parameter = {
  name: 'charset',
  kind: kinds.string,
  required: false,
  default: 'standard',
  description: 'The alphabet: `standard` or `url_safe`.',
}
