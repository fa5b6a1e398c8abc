// The checker's output, which the code generator reads: a tree with resolved names, known kinds and compiled calls.

import type { PathSegment } from '../event/path.ts'
import type { Value } from '../event/value.ts'
import type { BinaryOperator, Span } from './ast.ts'
import type { FunctionCall, FunctionDeclaration } from './function.ts'
import type { Kind } from './kind.ts'

/** A variable: one for each block that introduces the name. */
export interface Slot {
  readonly id: number
  readonly name: string
}

interface Common {
  readonly kind: Kind
  readonly fallible: boolean
  /** The value, if it is a compile-time constant. */
  readonly constant: Value | undefined
  readonly span: Span
}

export type PlaceRoot =
  | { readonly root: 'event' }
  | { readonly root: 'metadata' }
  | { readonly root: 'variable'; readonly slot: Slot }

export type Place =
  | (PlaceRoot & { readonly segments: readonly PathSegment[] })
  | { readonly root: 'none'; readonly segments: readonly PathSegment[] }

export type Typed = Common &
  (
    | { readonly op: 'constant'; readonly value: Value }
    | {
        readonly op: 'read'
        readonly place: PlaceRoot & { readonly segments: readonly PathSegment[] }
        readonly rootKind: Kind
      }
    | { readonly op: 'below'; readonly base: Typed; readonly segments: readonly PathSegment[] }
    | { readonly op: 'block'; readonly body: readonly Typed[] }
    | { readonly op: 'array'; readonly items: readonly Typed[] }
    | { readonly op: 'object'; readonly fields: readonly (readonly [string, Typed])[] }
    | {
        readonly op: 'if'
        readonly predicate: Typed
        readonly consequent: Typed
        readonly alternative: Typed | undefined
      }
    | {
        readonly op: 'binary'
        readonly operator: BinaryOperator
        readonly left: Typed
        readonly right: Typed
        /** Whether the value may be of another kind. */
        readonly isNominal: boolean
      }
    | { readonly op: 'not'; readonly operand: Typed }
    | { readonly op: 'assign'; readonly to: Place; readonly value: Typed; readonly rootKind: Kind }
    | {
        readonly op: 'assign-or-error'
        readonly to: Place
        readonly error: Place
        readonly value: Typed
        readonly default: Value
        readonly rootKind: Kind
      }
    | {
        readonly op: 'call'
        readonly declaration: FunctionDeclaration
        readonly run: FunctionCall
        /** In parameter order; undefined for missing arguments. */
        readonly args: readonly (Typed | undefined)[]
        /** In source order, which is the evaluation order. */
        readonly order: readonly number[]
        /** Whether it may fail, with or without `!`. */
        readonly canFail: boolean
        /** Whether the value may be of another kind. */
        readonly isNominal: boolean
        readonly closure: { readonly parameters: readonly (Slot | undefined)[]; readonly body: Typed } | undefined
      }
    | { readonly op: 'del'; readonly at: Typed; readonly compact: Typed | undefined }
    | { readonly op: 'exists'; readonly at: Typed }
    | { readonly op: 'unnest'; readonly at: Typed }
    | { readonly op: 'abort'; readonly message: Typed | undefined }
    | { readonly op: 'return'; readonly value: Typed }
  )

/** Calls `see` for an expression and all nested ones, outer ones first. */
export function visit(typed: Typed, see: (typed: Typed) => void): void {
  some(typed, (node) => {
    see(node)
    return false
  })
}

/**
 * Whether a test is true for an expression or a nested one, outer ones first. @param test `maySkip` is true in closures
 * and in code that a failure may skip
 */
export function some(typed: Typed, test: (typed: Typed, maySkip: boolean) => boolean, maySkip = false): boolean {
  if (test(typed, maySkip)) return true
  const below = (node: Typed | undefined, skips = maySkip): boolean => node !== undefined && some(node, test, skips)
  switch (typed.op) {
    case 'constant':
    case 'read':
      return false
    case 'below':
      return below(typed.base)
    case 'block':
      return typed.body.some((node) => below(node))
    case 'array':
      return typed.items.some((node) => below(node))
    case 'object':
      return typed.fields.some(([, node]) => below(node))
    case 'if':
      return below(typed.predicate) || below(typed.consequent) || below(typed.alternative)
    case 'binary':
      return below(typed.left, maySkip || typed.operator === '??') || below(typed.right)
    case 'not':
      return below(typed.operand)
    case 'assign-or-error':
      return below(typed.value, true)
    case 'assign':
    case 'return':
      return below(typed.value)
    case 'call':
      return typed.args.some((node) => below(node)) || below(typed.closure?.body, true)
    case 'del':
      return below(typed.at) || below(typed.compact)
    case 'exists':
    case 'unnest':
      return below(typed.at)
    case 'abort':
      return below(typed.message)
  }
}
