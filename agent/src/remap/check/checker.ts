// The checker: resolves names, and checks kinds, fallibility and arguments. It walks the syntax tree in execution order with
// the kinds of variables, event and metadata, reports errors, and returns the tree for code generation.

import type { PathSegment } from '../../event/path.ts'
import { compareKeys, Regex, type Value } from '../../event/value.ts'
import { closest } from '../../schema/problems.ts'
import type { Expression, Query, Root as RootExpression, Span } from '../ast.ts'
import type { Diagnostic } from '../diagnostics.ts'
import { type Kind, kindOf, kinds } from '../kind.ts'
import { compileRegex } from '../regex.ts'
import { parseTimestampLiteral } from '../timestamp-literal.ts'
import type { Slot, Typed } from '../typed.ts'
import { unusedWarnings } from '../unused.ts'
import { checkAssignment } from './assignment.ts'
import { checkBlock, checkIf } from './block.ts'
import { checkCall } from './call.ts'
import { CheckContext, type ProgramCheckOptions, uncompilable } from './context.ts'
import { checkBinary, checkNot } from './operators.ts'
import { pathOf } from './path-text.ts'
import { copyOf, type State } from './state.ts'

/** Facts about a program as a whole. */
export interface ProgramFacts {
  /** Whether it uses calls with `!`. */
  readonly fallible: boolean
  /** Whether it contains an `abort`. */
  readonly abortable: boolean
  /** Event and metadata paths that it reads, in source order. */
  readonly queries: readonly string[]
  readonly assignments: readonly string[]
}

export interface CheckedProgram {
  readonly body: readonly Typed[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  readonly facts: ProgramFacts
  /** The kind of the last expression, and of the event after the program. */
  readonly kind: Kind
  readonly eventKind: Kind
  /** Static kind of the metadata after the program. */
  readonly metadataKind: Kind
  /** Variables after the program. */
  readonly variables: ReadonlyMap<string, Slot>
}

export function checkProgram(
  source: string,
  roots: readonly RootExpression[],
  options: ProgramCheckOptions,
): CheckedProgram {
  const check = new CheckContext(source, options, typedExpression)
  const state: State = { locals: new Map(), event: options.eventKind, metadata: kinds.object }
  for (const [name, kind] of options.variables ?? [])
    state.locals.set(name, { slot: check.newSlot(name), kind, constant: undefined })
  const body: Typed[] = []
  for (const root of roots) {
    if (root.node === 'problem') {
      const { code, message, labels } = root.problem
      check.errors.push({ severity: 'error', code, message, labels, notes: [] })
      continue
    }
    const before = copyOf(state)
    try {
      body.push(check.expression(root, state))
    } catch (error) {
      if (error !== uncompilable) throw error
      Object.assign(state, before) // after an uncompilable root expression, restore the earlier kinds
    }
    check.errors.push(...check.pending.splice(0))
  }
  const expressions = roots.filter((root): root is Expression => root.node !== 'problem')
  if (check.errors.length === 0) check.warnings.push(...unusedWarnings(expressions))
  const last = body.at(-1)?.kind ?? kinds.null
  return {
    body,
    errors: check.errors,
    warnings: check.warnings,
    facts: {
      fallible: check.fallible,
      abortable: check.abortable,
      queries: check.queries,
      assignments: check.assignments,
    },
    kind: last.isNever ? kinds.any : last,
    eventKind: state.event,
    metadataKind: state.metadata,
    variables: new Map([...state.locals].map(([name, { slot }]) => [name, slot])),
  }
}

function typedExpression(check: CheckContext, node: Expression, state: State): Typed {
  const span = node.span
  switch (node.node) {
    case 'literal':
      return constant(node.value, span)
    case 'regex': {
      const regex = compileRegex(node.pattern)
      if (regex instanceof Regex) return constant(regex, span)
      return check.report(101, 'invalid regular expression', [{ primary: true, span, message: regex.reason }])
    }
    case 'timestamp': {
      const timestamp = parseTimestampLiteral(node.text)
      if (timestamp !== undefined) return constant(timestamp, span)
      const message = 'not an RFC 3339 date and time with a zone'
      return check.report(601, 'invalid timestamp', [{ primary: true, span, message }])
    }
    case 'variable':
      return checkVariable(check, node.name, span, state)
    case 'query':
      return checkQuery(check, node, state)
    case 'group':
      return { ...check.expression(node.inner, state), span }
    case 'block':
      return checkBlock(check, node, state)
    case 'array':
      return checkArray(check, node, state)
    case 'object':
      return checkObject(check, node, state)
    case 'if':
      return checkIf(check, node, state)
    case 'binary':
      return checkBinary(check, node, state)
    case 'not':
      return checkNot(check, node, state)
    case 'assignment':
      return checkAssignment(check, node, state)
    case 'call':
      return checkCall(check, node, state)
    case 'abort':
      return checkAbort(check, node, state)
    case 'return': {
      const value = check.consuming(() => check.expression(node.value, state))
      if (value.fallible) check.fallibleOperand(node.value.span, 'return')
      check.returned = check.returned.or(value.kind)
      return { op: 'return', value, kind: kinds.never, fallible: false, constant: undefined, span }
    }
  }
}

function checkAbort(check: CheckContext, node: Extract<Expression, { node: 'abort' }>, state: State): Typed {
  check.abortable = true
  let message: Typed | undefined
  if (node.message !== undefined) {
    const given = node.message
    message = check.consuming(() => check.expression(given, state))
    const span = node.message.span
    if (message.fallible) check.fallibleOperand(span, 'abort')
    if (!message.kind.isNever && !message.kind.is(kinds.string)) {
      check.report(113, 'abort message is not a string', [
        { primary: true, span, message: `this has the kind ${message.kind}` },
        { primary: false, span, message: 'abort takes only a string' },
      ])
    }
  }
  return { op: 'abort', message, kind: kinds.never, fallible: false, constant: undefined, span: node.span }
}

function checkVariable(check: CheckContext, name: string, span: Span, state: State): Typed {
  if (check.skipped.has(`$${name}`)) throw uncompilable
  const local = state.locals.get(name)
  if (local === undefined) return reportUndefinedVariable(check, name, span, state)
  return {
    op: 'read',
    place: { root: 'variable', slot: local.slot, segments: [] },
    rootKind: local.kind,
    kind: local.kind,
    fallible: false,
    constant: local.constant,
    span,
  }
}

function reportUndefinedVariable(check: CheckContext, name: string, span: Span, state: State): never {
  const hint = closest(name, [...state.locals.keys()])
  return check.report(701, 'call to undefined variable', [
    { primary: true, span, message: 'undefined variable' },
    { primary: false, span, message: hint === undefined ? 'nothing has this name' : `did you mean "${hint}"?` },
  ])
}

function checkQuery(check: CheckContext, node: Query, state: State): Typed {
  const segments = node.segments.map((segment) => segment.value)
  const span = node.span
  if (typeof node.root === 'string') {
    if (check.skipped.has(pathOf(node.root, segments))) throw uncompilable
    check.queries.push(pathOf(node.root, segments))
    const rootKind = state[node.root]
    return {
      op: 'read',
      place: { root: node.root, segments },
      rootKind,
      kind: rootKind.at(segments),
      fallible: false,
      constant: undefined,
      span,
    }
  }
  if (node.root.node === 'variable') {
    if (check.skipped.has(`$${node.root.name}${pathOf('event', segments)}`)) throw uncompilable
    const base = checkVariable(check, node.root.name, node.root.span, state)
    if (base.op !== 'read') throw new Error('Reads a variable.')
    return {
      ...base,
      place: { ...base.place, segments },
      kind: base.kind.at(segments),
      constant: base.constant === undefined ? undefined : constantAt(base.constant, segments),
      span,
    }
  }
  const base = check.expression(node.root, state)
  return {
    op: 'below',
    base,
    segments,
    kind: base.kind.isNever ? base.kind : base.kind.at(segments),
    fallible: base.fallible,
    constant: undefined,
    span,
  }
}

function checkArray(check: CheckContext, node: Extract<Expression, { node: 'array' }>, state: State): Typed {
  const items = node.items.map((item) => check.expression(item, state))
  const values = items.map((item) => item.constant)
  return {
    op: 'array',
    items,
    kind: items.some((item) => item.kind.isNever)
      ? kinds.never
      : kinds.arrayOf(items.map((item) => item.kind.undefinedAsNull)),
    fallible: items.some((item) => item.fallible),
    constant: values.every((value) => value !== undefined) ? (values as Value[]) : undefined,
    span: node.span,
  }
}

function checkObject(check: CheckContext, node: Extract<Expression, { node: 'object' }>, state: State): Typed {
  // Fields are evaluated, and so checked, in the order of their names. A repeated name has its last value; the others
  // are checked but never run.
  const last = new Map(node.fields)
  let failed = false
  const field = (value: Expression, state: State): Typed => {
    try {
      return check.expression(value, state)
    } catch (error) {
      if (error !== uncompilable) throw error
      failed = true
      return constant(null, value.span)
    }
  }
  const replaced = node.fields
    .filter(([name, value]) => last.get(name) !== value)
    .map(([, value]) => field(value, copyOf(state)))
  const sorted = [...last]
    .sort(([left], [right]) => compareKeys(left, right))
    .map(([name, value]) => [name, field(value, state)] as const)
  // All fields are checked, so that all their errors are reported.
  if (failed) throw uncompilable
  const known: Record<string, Kind> = { __proto__: null as never }
  for (const [name, typed] of sorted) known[name] = typed.kind.undefinedAsNull
  const allConstant = sorted.every(([, typed]) => typed.constant !== undefined)
  return {
    op: 'object',
    fields: sorted,
    kind: sorted.some(([, typed]) => typed.kind.isNever) ? kinds.never : kinds.objectOf(known),
    fallible: sorted.some(([, typed]) => typed.fallible) || replaced.some((typed) => typed.fallible),
    constant: allConstant
      ? Object.fromEntries(sorted.map(([name, typed]) => [name, typed.constant as Value]))
      : undefined,
    span: node.span,
  }
}

function constant(value: Value, span: Span): Typed {
  return { op: 'constant', value, kind: kindOf(value), fallible: false, constant: value, span }
}

function constantAt(value: Value, segments: readonly PathSegment[]): Value | undefined {
  let at: Value | undefined = value
  for (const segment of segments) {
    if (typeof at !== 'object' || at === null) return undefined
    if (typeof segment === 'number') {
      at = Array.isArray(at) ? at.at(segment) : undefined
    } else {
      at = Object.hasOwn(at, segment) ? (at as Record<string, Value>)[segment] : undefined
    }
  }
  return at
}
