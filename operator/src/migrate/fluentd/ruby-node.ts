// A part of a Ruby expression as a remap expression, with the kind of its value.

export interface Node {
  readonly text: string
  readonly kind: 'text' | 'integer' | 'float' | 'boolean' | 'list' | 'any'
  /** The value, for a text between quotes. */
  readonly literal?: string
  /** The path, for a field of the record. */
  readonly path?: readonly string[]
  /** The source, for a regular expression between slashes. */
  readonly regex?: string
  /** The name of a class. */
  readonly className?: string
  /** Whether its value in Ruby is the place of a match, which is known as a condition alone. */
  readonly isPlace?: true
  /** For a call of `match`: the text and the regular expression. An index selects a group. */
  readonly match?: { readonly of: Node; readonly regex: string }
}

/** Thrown for Ruby without a counterpart. */
export class UnknownRuby extends Error {}

export const asText = ({ text, kind }: Node) => {
  if (kind === 'text') return text
  // Remap rejects error handling for an operation that cannot fail.
  return kind === 'any' || kind === 'list' ? `(to_string(${text}) ?? "")` : `to_string(${text})`
}
export const isNumber = ({ kind }: Node) => kind === 'integer' || kind === 'float'

/** The value of a text between quotes. */
export function literalOf({ literal }: Node): string {
  if (literal === undefined) throw new UnknownRuby()
  return literal
}

/** The number of an integer literal. */
export function wholeNumber({ text, kind }: Node): number {
  if (kind !== 'integer' || !/^-?\d+$/.test(text)) throw new UnknownRuby()
  return Number(text)
}
