// Blocks and branches: checks the expressions of a block in order, and merges the kinds of two branches.

import type { Block, If, Span } from '../ast.ts'
import type { Diagnostic } from '../diagnostics.ts'
import { type Kind, kinds } from '../kind.ts'
import type { Typed } from '../typed.ts'
import { type CheckContext, fallibleNotes } from './context.ts'
import { copyOf, leaveBlock, mergeInto, type State } from './state.ts'

export function checkBlock(check: CheckContext, node: Block, state: State): Typed {
  const outer = new Map(state.locals)
  const body = node.body.map((expression) => check.expression(expression, state))
  leaveBlock(state, outer)
  return blockOf(body, node.span)
}

/** Variables of the first predicate remain visible after the branches. Those of an `else if` end with it. */
export function checkIf(check: CheckContext, node: If, state: State): Typed {
  let cause: Diagnostic | undefined
  const body = check.consuming(() => {
    const before = check.pending.length
    const typed = node.predicate.body.map((expression) => check.expression(expression, state))
    cause = check.pending[before]
    return typed
  })
  const predicate = body.length === 1 ? (body[0] as Typed) : blockOf(body, node.predicate.span)
  const span = node.predicate.span
  if (predicate.fallible || cause !== undefined) {
    check.report(
      cause?.code ?? 100,
      'fallible predicate',
      cause?.labels ?? [
        { primary: true, span, message: 'this predicate can result in runtime error' },
        { primary: false, span, message: 'handle the error case to ensure runtime success' },
      ],
      fallibleNotes,
    )
  }
  if (!predicate.kind.isNever && !predicate.kind.is(kinds.boolean)) {
    check.report(102, 'non-boolean predicate', [
      { primary: true, span, message: 'this predicate must resolve to a boolean' },
      { primary: false, span, message: `instead it resolves to ${predicate.kind}` },
    ])
  }
  const otherwise = copyOf(state)
  const consequent = checkBlock(check, node.consequent, state)
  let alternative: Typed | undefined
  if (node.alternative !== undefined) {
    const outer = new Map(otherwise.locals)
    alternative =
      node.alternative.node === 'if'
        ? check.expression(node.alternative, otherwise)
        : checkBlock(check, node.alternative, otherwise)
    leaveBlock(otherwise, outer)
  }
  mergeInto(state, otherwise)
  return {
    op: 'if',
    predicate,
    consequent,
    alternative,
    kind: consequent.kind.or(alternative?.kind ?? kinds.null),
    fallible: consequent.fallible || alternative?.fallible === true,
    constant: undefined,
    span: node.span,
  }
}

function blockOf(body: readonly Typed[], span: Span): Typed {
  // Expressions after one that never gives a value do not run, but the last of them still decides the kind.
  const end = body.findIndex((expression) => expression.kind.isNever)
  const fallible = body.slice(0, end < 0 ? body.length : end + 1).some((expression) => expression.fallible)
  const kind: Kind = body.at(-1)?.kind ?? kinds.null
  return {
    op: 'block',
    body,
    kind,
    fallible,
    constant: body.length === 1 ? body[0]?.constant : undefined,
    span,
  }
}
