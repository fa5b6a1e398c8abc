// Assignments: whether the target accepts the value, and the resulting kinds.

import { maxIndex, type PathSegment } from '../../event/path.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Float, Regex, type Value } from '../../event/value.ts'
import type { Assignment, Expression, Span, Target, WrittenSegment } from '../ast.ts'
import { type Kind, kindOf, kinds } from '../kind.ts'
import { withKindAt } from '../kind-changes.ts'
import type { Place, Typed } from '../typed.ts'
import { type CheckContext, fallibleNotes, uncompilable } from './context.ts'
import { typedOperation } from './operators.ts'
import { pathOf } from './path-text.ts'
import type { Local, State } from './state.ts'

export function checkAssignment(check: CheckContext, node: Assignment, state: State): Typed {
  const { to, error } = node
  const before = check.pending.length
  let value: Typed
  let valueSpan = node.value.span
  if (node.merge) {
    const left = check.expression(asExpression(to), state)
    value = check.expression(node.value, state)
    valueSpan = [to.span[0], node.value.span[1]]
    const merge = { operator: '|' as const, span: valueSpan, left: { span: to.span }, right: node.value }
    const pending = check.pending.splice(before)
    value = typedOperation(check, merge, left, value)
    if (value.fallible) check.pending.push(...pending)
  } else {
    try {
      value = check.expression(node.value, state)
    } catch (problem) {
      if (problem === uncompilable)
        for (const target of error === undefined ? [to] : [to, error]) skipTarget(check, target)
      throw problem
    }
  }
  if (error !== undefined) {
    check.pending.length = before
    return checkInfallibleAssignment(check, node, to, error, value, valueSpan, state)
  }
  const assignmentSpan: Span = [to.span[0], node.value.span[0] - 1]
  const [cause] = check.pending.splice(before)
  if (value.fallible || cause !== undefined) {
    const target = check.source.slice(...to.span)
    const expression = check.source.slice(...node.value.span)
    const partial =
      cause?.code === 110
        ? [
            {
              primary: true,
              span: valueSpan,
              message: "an argument's kind cannot be verified, so the call may fail",
            },
            { primary: true, span: valueSpan, message: 'add a `!` to end the program on failure' },
          ]
        : []
    check.report(
      103,
      'unhandled fallible assignment',
      [
        { primary: true, span: valueSpan, message: 'this expression is fallible' },
        ...partial,
        { primary: false, span: assignmentSpan, message: 'or change this to an infallible assignment:' },
        { primary: false, span: assignmentSpan, message: `${target}, err = ${expression}` },
      ],
      fallibleNotes,
    )
  }
  if (to.target === 'none') reportUselessAssignment(check, valueSpan, to.span, assignmentSpan)
  const place = checkTarget(check, to, assignmentSpan, state)
  const rootKind = rootKindOf(to, state)
  const kind = value.kind.undefinedAsNull
  writeTarget(check, to, place, kind, value.constant, state)
  recordAssignment(check, to)
  return {
    op: 'assign',
    to: resolvedPlace(to, place, state),
    value,
    rootKind,
    kind,
    fallible: false,
    constant: value.constant,
    span: node.span,
  }
}

function checkInfallibleAssignment(
  check: CheckContext,
  node: Assignment,
  to: Target,
  error: Target,
  value: Typed,
  valueSpan: Span,
  state: State,
): Typed {
  const assignmentSpan: Span = [to.span[0], error.span[1]]
  if (!value.fallible) {
    check.report(104, 'unnecessary error assignment', [
      { primary: true, span: error.span, message: 'this error assignment is unnecessary' },
      { primary: false, span: valueSpan, message: "because this expression can't fail" },
      { primary: false, span: to.span, message: 'use a single target' },
    ])
  }
  if (to.target === 'none' && error.target === 'none')
    reportUselessAssignment(check, valueSpan, to.span, assignmentSpan)
  const place = checkTarget(check, to, assignmentSpan, state)
  const errorPlace = checkTarget(check, error, assignmentSpan, state)
  const rootKind = rootKindOf(to, state)
  const declared = value.op === 'call' ? value.declaration.valueOfFailure : undefined
  const fallback = declared?.(value.kind) ?? defaultOf(value.kind) ?? null
  writeTarget(check, to, place, value.kind.undefinedAsNull.or(kindOf(fallback)), undefined, state)
  const resolved = resolvedPlace(to, place, state)
  writeTarget(check, error, errorPlace, kinds.string.or(kinds.null), undefined, state)
  recordAssignment(check, to)
  recordAssignment(check, error)
  return {
    op: 'assign-or-error',
    to: resolved,
    error: resolvedPlace(error, errorPlace, state),
    value,
    default: fallback,
    rootKind,
    kind: value.kind.undefinedAsNull.or(kinds.string),
    fallible: false,
    constant: undefined,
    span: node.span,
  }
}

function reportUselessAssignment(check: CheckContext, valueSpan: Span, targetSpan: Span, assignmentSpan: Span): never {
  return check.report(640, 'unnecessary no-op assignment', [
    { primary: true, span: valueSpan, message: 'this no-op assignment has no effect' },
    { primary: false, span: targetSpan, message: 'either assign to a path or variable here' },
    { primary: false, span: assignmentSpan, message: 'or remove the assignment' },
  ])
}

function skipTarget(check: CheckContext, target: Target): void {
  if (target.target === 'variable') {
    const segments = target.segments.map((segment) => segment.value)
    check.skipped.add(segments.length === 0 ? `$${target.name}` : `$${target.name}${pathOf('event', segments)}`)
  } else if (target.target === 'event' || target.target === 'metadata') {
    check.skipped.add(
      pathOf(
        target.target,
        target.segments.map((segment) => segment.value),
      ),
    )
  }
}

function recordAssignment(check: CheckContext, target: Target): void {
  if (target.target !== 'event' && target.target !== 'metadata') return
  check.assignments.push(
    pathOf(
      target.target,
      target.segments.map((segment) => segment.value),
    ),
  )
}

/** Checks that the target can be written to. */
function checkTarget(check: CheckContext, target: Target, assignmentSpan: Span, state: State): readonly PathSegment[] {
  if (target.target === 'none') return []
  if (target.target === 'invalid') {
    return check.report(641, 'invalid assignment target', [
      { primary: true, span: target.span, message: 'invalid assignment target' },
      { primary: false, span: target.span, message: 'use a variable or a path' },
    ])
  }
  const segments = target.segments.map((segment) => segment.value)
  if (target.target !== 'variable' && check.isReadOnly(target.target, segments)) {
    check.report(315, 'mutation of read-only value', [
      { primary: true, span: assignmentSpan, message: 'mutation of read-only value' },
    ])
  }
  for (const { value, span } of target.segments) {
    if (typeof value === 'string' || Math.abs(value) <= maxIndex) continue
    check.report(642, 'index out of range', [
      { primary: true, span, message: `items are written at indexes from -${maxIndex} to ${maxIndex}` },
    ])
  }
  // The content of metadata is unknown: a write replaces any value in its way.
  if (target.target === 'metadata') return segments
  const root = rootKindOf(target, state)
  for (let depth = segments.length; depth > 0; depth--) {
    const parent = root.at(segments, 0, depth - 1)
    const isField = typeof segments[depth - 1] === 'string'
    if (parent.overlaps(isField ? kinds.object : kinds.array) || parent.isNever) continue
    const { span } = target.segments[depth - 1] as WrittenSegment
    // The dot before a name belongs to neither side.
    const dotted = check.source[span[0] - 1] === '.' && !(depth === 1 && target.target !== 'variable')
    const parentEnd = dotted ? span[0] - 1 : span[0]
    check.report(642, 'parent path segment rejects this mutation', [
      {
        primary: true,
        span,
        message: `querying a ${isField ? 'field of a non-object' : 'item of a non-array'} type`,
      },
      {
        primary: false,
        span: [target.span[0], parentEnd],
        message: `this path resolves to a value of type ${parent}`,
      },
    ])
  }
  return segments
}

function rootKindOf(target: Target, state: State): Kind {
  if (target.target === 'event' || target.target === 'metadata') return state[target.target]
  if (target.target === 'variable') return state.locals.get(target.name)?.kind ?? kinds.any
  return kinds.never
}

function writeTarget(
  check: CheckContext,
  target: Target,
  segments: readonly PathSegment[],
  kind: Kind,
  value: Value | undefined,
  state: State,
): void {
  if (target.target === 'event' || target.target === 'metadata') {
    state[target.target] = withKindAt(state[target.target], segments, kind).bounded
  } else if (target.target === 'variable') {
    const local = state.locals.get(target.name)
    const slot = local?.slot ?? check.newSlot(target.name)
    state.locals.set(target.name, {
      slot,
      kind: withKindAt(local?.kind ?? kinds.never, segments, kind).bounded,
      constant: segments.length === 0 ? value : undefined,
    })
  }
}

function resolvedPlace(target: Target, segments: readonly PathSegment[], state: State): Place {
  if (target.target === 'variable') {
    return { root: 'variable', slot: (state.locals.get(target.name) as Local).slot, segments }
  }
  if (target.target === 'event' || target.target === 'metadata') return { root: target.target, segments }
  return { root: 'none', segments: [] }
}

function asExpression(target: Target): Expression {
  if (target.target === 'variable') {
    const variable: Expression = { node: 'variable', span: target.span, name: target.name }
    return target.segments.length === 0
      ? variable
      : { node: 'query', span: target.span, root: variable, segments: target.segments }
  }
  if (target.target === 'event' || target.target === 'metadata') {
    return { node: 'query', span: target.span, root: target.target, segments: target.segments }
  }
  return { node: 'literal', span: target.span, value: null }
}

const epoch = new Timestamp(0, 0)
const emptyRegex = new Regex('', /(?:)/v)

/** The value of `ok` after a failed `ok, err =`. */
function defaultOf(kind: Kind): Value {
  if (kind.is(kinds.string)) return ''
  if (kind.is(kinds.integer)) return 0
  if (kind.is(kinds.float)) return new Float(0)
  if (kind.is(kinds.boolean)) return false
  if (kind.is(kinds.timestamp)) return epoch
  if (kind.is(kinds.regex)) return emptyRegex
  if (kind.is(kinds.array)) return []
  if (kind.is(kinds.object)) return {}
  return null
}
