// The syntax tree of a program. Positions are offsets into the source text in UTF-16 units; diagnostics turn them into bytes.

import type { PathSegment } from '../event/path.ts'
import type { Value } from '../event/value.ts'

export type Span = readonly [start: number, end: number]

export type BinaryOperator = '*' | '/' | '+' | '-' | '|' | '<' | '<=' | '>' | '>=' | '==' | '!=' | '&&' | '||' | '??'

export interface WrittenSegment {
  readonly value: PathSegment
  readonly span: Span
}

export type Expression =
  | { readonly node: 'literal'; readonly span: Span; readonly value: Value }
  | { readonly node: 'regex'; readonly span: Span; readonly pattern: string }
  | { readonly node: 'timestamp'; readonly span: Span; readonly text: string }
  | { readonly node: 'variable'; readonly span: Span; readonly name: string }
  | Query
  | { readonly node: 'group'; readonly span: Span; readonly inner: Expression }
  | Block
  | { readonly node: 'array'; readonly span: Span; readonly items: readonly Expression[] }
  | { readonly node: 'object'; readonly span: Span; readonly fields: readonly (readonly [string, Expression])[] }
  | If
  | Binary
  | { readonly node: 'not'; readonly span: Span; readonly operator: Span; readonly operand: Expression }
  | Assignment
  | CallExpression
  | { readonly node: 'abort'; readonly span: Span; readonly message: Expression | undefined }
  | { readonly node: 'return'; readonly span: Span; readonly value: Expression }

export interface Query {
  readonly node: 'query'
  readonly span: Span
  readonly root: 'event' | 'metadata' | Expression
  readonly segments: readonly WrittenSegment[]
}

export interface Block {
  readonly node: 'block'
  readonly span: Span
  readonly body: readonly Expression[]
}

export interface If {
  readonly node: 'if'
  readonly span: Span
  readonly predicate: { readonly span: Span; readonly body: readonly Expression[] }
  readonly consequent: Block
  /** A block, or an `if` that follows `else`. */
  readonly alternative: Block | If | undefined
}

export interface Binary {
  readonly node: 'binary'
  readonly span: Span
  readonly left: Expression
  readonly operator: BinaryOperator
  readonly operatorSpan: Span
  readonly right: Expression
}

export type Target =
  | { readonly target: 'none'; readonly span: Span }
  | {
      readonly target: 'variable'
      readonly span: Span
      readonly name: string
      readonly segments: readonly WrittenSegment[]
    }
  | { readonly target: 'event' | 'metadata'; readonly span: Span; readonly segments: readonly WrittenSegment[] }
  | { readonly target: 'invalid'; readonly span: Span }

export interface Assignment {
  readonly node: 'assignment'
  readonly span: Span
  readonly to: Target
  /** The second target of `ok, err = …`. */
  readonly error: Target | undefined
  readonly merge: boolean
  readonly operatorSpan: Span
  readonly value: Expression
}

export interface Argument {
  readonly span: Span
  readonly keyword: string | undefined
  readonly keywordSpan: Span
  readonly value: Expression
}

export interface ClosureExpression {
  readonly span: Span
  readonly parameters: readonly { readonly name: string; readonly span: Span }[]
  readonly parametersSpan: Span
  readonly body: Block
}

export interface CallExpression {
  readonly node: 'call'
  readonly span: Span
  readonly name: string
  readonly nameSpan: Span
  /** The `!` of the call, if any. */
  readonly bang: Span | undefined
  readonly arguments: readonly Argument[]
  readonly closure: ClosureExpression | undefined
}

/** A parsed root expression, or the syntax problem in its place. */
export type Root = Expression | { readonly node: 'problem'; readonly problem: SyntaxProblem }

export interface SyntaxProblem {
  readonly code: number
  readonly message: string
  readonly span: Span
  readonly labels: readonly { readonly primary: boolean; readonly span: Span; readonly message: string }[]
}
