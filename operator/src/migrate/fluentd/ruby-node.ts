// A part of a Ruby expression as a remap expression, with the kind of its value.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Instant } from './ruby-time.ts'

export interface Node {
  readonly text: string
  readonly kind: 'text' | 'integer' | 'float' | 'boolean' | 'list' | 'any'
  /** The value, for a text between quotes. */
  readonly literal?: string
  /** The path, for a field of the record or of a variable. */
  readonly path?: readonly string[]
  /** The variable of the path; the record without it. */
  readonly root?: string
  /** The source, for a regular expression between slashes. */
  readonly regex?: string
  /** The name of a class or a module. */
  readonly className?: string
  /** The items, for a list in brackets. */
  readonly items?: readonly Node[]
  /** Keys and values, for an object in braces. */
  readonly pairs?: readonly (readonly [Node, Node])[]
  /** Whether its value in Ruby is the place of a match, which is known as a condition alone. */
  readonly isPlace?: true
  /** For a time. */
  readonly instant?: Instant
  /** Whether it is a symbol. The names of fields are texts. */
  readonly isSymbol?: true
  /** The first number and the number behind the last one, for a range of integers. */
  readonly range?: readonly [number, number]
  /** For a call of `match`: the text and the regular expression. An index selects a group. */
  readonly match?: Match
}

export interface Match {
  readonly of: Node
  readonly regex: string
}

/** Thrown for Ruby without a counterpart. */
export class UnknownRuby extends Error {}

/** A text. Lists and objects become JSON, because the notation of Ruby differs between versions. */
export const asText = ({ text, kind }: Node) => {
  if (kind === 'text') return text
  if (text === 'null') return '""'
  if (kind === 'list') return `encode_json(${text})`
  // Remap rejects error handling for an operation that cannot fail.
  return kind === 'any' ? `(to_string(${text}) ?? encode_json(${text}))` : `to_string(${text})`
}
export const isNumber = ({ kind }: Node) => kind === 'integer' || kind === 'float'
export const isRecord = ({ root, path }: Node) => root === undefined && path?.length === 0
export const isTrue = ({ text, kind }: Node) =>
  kind === 'boolean' ? text : kind === 'any' ? `(${text} != null && ${text} != false)` : 'true'

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

export const textNode = (text: string): Node => ({ text, kind: 'text' })
export const testNode = (text: string): Node => ({ text, kind: 'boolean' })
export const literalNode = (literal: string): Node => ({ text: textLiteral(literal), kind: 'text', literal })
export const nothing: Node = { text: 'null', kind: 'any' }

/** The field of the record, or of a variable. */
export function fieldNode(root: string | undefined, path: readonly string[]): Node {
  const field = path.length === 0 ? (root === undefined ? '.' : '') : fieldLiteral(path)
  return { text: `${root ?? ''}${field}`, kind: 'any', path, ...(root === undefined ? {} : { root }) }
}

/** A value that is neither a text nor another value with methods of its own, because it may be nil. */
export const mayBeNull = (node: Node) => node.kind === 'any' && !isRecord(node) && node.pairs === undefined
