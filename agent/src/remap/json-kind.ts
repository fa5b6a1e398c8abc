// The static kind of what parsers of JSON and similar formats return.

import { kinds } from './kind.ts'

const below = kinds.string.or(kinds.number).or(kinds.boolean).or(kinds.null).or(kinds.array).or(kinds.object)

/** Any value of JSON. The language declares the kinds of two levels. */
export const jsonKind = below
  .without(kinds.array.or(kinds.object))
  .or(kinds.arrayEach(below))
  .or(kinds.objectEach(below))
