// The checker: names, kinds, fallibility and arguments. It walks the syntax tree in the order of execution with the kinds of
// variables, event and metadata, reports what cannot work, and gives the tree that code is generated from.

import { maxIndex, type PathSegment } from '../../event/path.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { compareKeys, Float, Regex, type Value } from '../../event/value.ts'
import type {
  Assignment,
  Binary,
  Block,
  CallExpression,
  Expression,
  If,
  Query,
  Root as RootExpression,
  Segment,
  Span,
  Target,
} from '../ast.ts'
import { parameterIndexes } from '../calls.ts'
import { notesOf } from '../codes.ts'
import { ByteOffsets, type Diagnostic, type Label } from '../diagnostics.ts'
import type { Call, CallKinds, CallSite, FunctionDeclaration, Parameter, PathArgument, Runtime } from '../function.ts'
import { failure, isFailure } from '../function.ts'
import { findFunction, functions } from '../functions.ts'
import { fieldText, type Kind, kindOf, kinds, mergedObjects } from '../kind.ts'
import { add, divide, equals, multiply, subtract } from '../operations.ts'
import { compileRegex } from '../regex.ts'
import { parseTimestampLiteral } from '../timestamp-literal.ts'
import type { Place, Slot, Typed } from '../typed.ts'
import { unusedWarnings } from '../unused.ts'

export interface CheckOptions {
  /** The kind of the event at the start. */
  readonly eventKind: Kind
  /** Event and metadata may not be changed, as in conditions. */
  readonly readOnly: boolean
  readonly runtime: Runtime
}

/** What is known of a program as a whole. */
export interface ProgramFacts {
  /** Uses calls with `!`. */
  readonly fallible: boolean
  /** Has an `abort` somewhere. */
  readonly abortable: boolean
  /** Event and metadata paths that are read, in order of occurrence. */
  readonly queries: readonly string[]
  readonly assignments: readonly string[]
}

export interface Checked {
  readonly body: readonly Typed[]
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
  readonly facts: ProgramFacts
  /** The kind of the last expression, and of the event after the program. */
  readonly kind: Kind
  readonly eventKind: Kind
  /** Static kind of the metadata after the program. */
  readonly metadataKind: Kind
}

interface Local {
  readonly slot: Slot
  readonly kind: Kind
  readonly constant: Value | undefined
}

/** The kinds at one point of the program. */
interface State {
  locals: Map<string, Local>
  event: Kind
  metadata: Kind
}

function copyOf(state: State): State {
  return { locals: new Map(state.locals), event: state.event, metadata: state.metadata }
}

/** What is known where two ways meet. */
function mergeInto(state: State, other: State): void {
  for (const [name, local] of state.locals) {
    const there = other.locals.get(name)
    if (there === undefined || there === local || there.slot !== local.slot) continue
    const same = local.constant !== undefined && there.constant !== undefined && equals(local.constant, there.constant)
    state.locals.set(name, {
      slot: local.slot,
      kind: local.kind.or(there.kind),
      constant: same ? local.constant : undefined,
    })
  }
  state.event = state.event.or(other.event)
  state.metadata = state.metadata.or(other.metadata)
}

/** An expression that does not compile; the diagnostic has been reported. */
class Uncompilable {}
const uncompilable = new Uncompilable()

/** What a function says when it refuses its arguments. */
class Refusal {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

const fallibleNotes = [
  'see documentation about error handling: `!` ends the program, `??` falls back, `ok, err =` gives the error',
]

const comparisons = new Set(['==', '!=', '<', '<=', '>', '>='])

export function checkProgram(source: string, roots: readonly RootExpression[], options: CheckOptions): Checked {
  return new Checker(source, options).program(roots)
}

class Checker {
  readonly #options: CheckOptions
  readonly #bytes: ByteOffsets
  readonly #errors: Diagnostic[] = []
  readonly #warnings: Diagnostic[] = []
  readonly #source: string
  readonly #state: State
  readonly #queries: string[] = []
  readonly #assignments: string[] = []
  /** Targets whose right side did not compile: their use is not reported again. */
  readonly #skipped = new Set<string>()
  /** The first unhandled failing expression of the chain at hand. */
  #cause: Diagnostic | undefined
  /** What the `return`s of the program, or of the closure at hand, give. */
  #returned: Kind = kinds.never
  #slots = 0
  #fallible = false
  #abortable = false

  constructor(source: string, options: CheckOptions) {
    this.#source = source
    this.#options = options
    this.#bytes = new ByteOffsets(source)
    this.#state = { locals: new Map(), event: options.eventKind, metadata: kinds.object }
  }

  program(roots: readonly RootExpression[]): Checked {
    const body: Typed[] = []
    let state = this.#state
    for (const root of roots) {
      if (root.node === 'problem') {
        const { code, message, labels } = root.problem
        this.#errors.push({ severity: 'error', code, message, labels, notes: [] })
        continue
      }
      this.#cause = undefined
      const before = copyOf(state)
      try {
        body.push(this.#expression(root, state))
        if (this.#cause !== undefined) this.#errors.push(this.#cause)
      } catch (error) {
        if (error !== uncompilable) throw error
        state = before // kinds of a root expression that does not compile are unknown
        Object.assign(this.#state, before)
        state = this.#state
      }
    }
    const expressions = roots.filter((root): root is Expression => root.node !== 'problem')
    if (this.#errors.length === 0) this.#warnings.push(...unusedWarnings(expressions))
    let kind = body.length === 0 ? kinds.null : (body.at(-1) as Typed).kind
    if (body.some((typed) => typed.kind.isNever)) kind = kinds.any
    return {
      body,
      errors: this.#errors,
      warnings: this.#warnings,
      facts: {
        fallible: this.#fallible,
        abortable: this.#abortable,
        queries: this.#queries,
        assignments: this.#assignments,
      },
      kind,
      eventKind: state.event,
      metadataKind: state.metadata,
    }
  }

  #report(code: number, message: string, labels: readonly Label[], notes: readonly string[] = []): never {
    this.#errors.push({ severity: 'error', code, message, labels, notes: [...notes, ...notesOf(code)] })
    throw uncompilable
  }

  #expression(node: Expression, state: State): Typed {
    const typed = bounded(this.#typed(node, state))
    if (typed.fallible && this.#cause === undefined) {
      const span = node.span
      this.#cause = {
        severity: 'error',
        code: 100,
        message: 'unhandled error',
        labels: [
          { primary: true, span, message: 'expression can result in runtime error' },
          { primary: false, span, message: 'handle the error case to ensure runtime success' },
        ],
        notes: [...fallibleNotes, ...notesOf(100)],
      }
    }
    return typed
  }

  #typed(node: Expression, state: State): Typed {
    const span = node.span
    switch (node.node) {
      case 'literal':
        return constant(node.value, span)
      case 'regex': {
        const regex = compileRegex(node.pattern)
        if (regex instanceof Regex) return constant(regex, span)
        return this.#report(101, 'invalid regular expression', [{ primary: true, span, message: regex.reason }])
      }
      case 'timestamp': {
        const timestamp = parseTimestampLiteral(node.text)
        if (timestamp !== undefined) return constant(timestamp, span)
        const message = 'not an RFC 3339 date and time with a zone'
        return this.#report(601, 'invalid timestamp', [{ primary: true, span, message }])
      }
      case 'variable':
        return this.#variable(node.name, span, state)
      case 'query':
        return this.#query(node, state)
      case 'group':
        return { ...this.#expression(node.inner, state), span }
      case 'block':
        return this.#block(node, state)
      case 'array':
        return this.#array(node, state)
      case 'object':
        return this.#object(node, state)
      case 'if':
        return this.#if(node, state)
      case 'binary':
        return this.#binary(node, state)
      case 'not':
        return this.#not(node, state)
      case 'assignment':
        return this.#assignment(node, state)
      case 'call':
        return this.#call(node, state)
      case 'abort':
        return this.#abort(node, state)
      case 'return': {
        const value = this.#expression(node.value, state)
        if (value.fallible) this.#fallibleOperand(node.value.span, 'return')
        this.#returned = this.#returned.or(value.kind)
        return { op: 'return', value, kind: kinds.never, fallible: false, constant: undefined, span }
      }
    }
  }

  #fallibleOperand(span: Span, what: string): never {
    return this.#report(
      631,
      `unhandled error in ${what}`,
      [
        { primary: true, span, message: 'this expression can fail' },
        { primary: false, span, message: 'handle the error first' },
      ],
      fallibleNotes,
    )
  }

  #abort(node: Extract<Expression, { node: 'abort' }>, state: State): Typed {
    this.#abortable = true
    let message: Typed | undefined
    if (node.message !== undefined) {
      message = this.#expression(node.message, state)
      const span = node.message.span
      if (message.fallible) this.#fallibleOperand(span, 'abort')
      if (!message.kind.isNever && !message.kind.is(kinds.string)) {
        this.#report(113, 'abort message is not a string', [
          { primary: true, span, message: `this has the kind ${message.kind}` },
          { primary: false, span, message: 'abort takes only a string' },
        ])
      }
    }
    return { op: 'abort', message, kind: kinds.never, fallible: false, constant: undefined, span: node.span }
  }

  #variable(name: string, span: Span, state: State): Typed {
    if (this.#skipped.has(`$${name}`)) throw uncompilable
    const local = state.locals.get(name)
    if (local === undefined) return this.#undefinedVariable(name, span, state)
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

  #undefinedVariable(name: string, span: Span, state: State): never {
    const hint = closest(name, [...state.locals.keys()])
    return this.#report(701, 'call to undefined variable', [
      { primary: true, span, message: 'undefined variable' },
      { primary: false, span, message: hint === undefined ? 'nothing has this name' : `did you mean "${hint}"?` },
    ])
  }

  #query(node: Query, state: State): Typed {
    const segments = node.segments.map((segment) => segment.value)
    const span = node.span
    if (typeof node.root === 'string') {
      if (this.#skipped.has(pathOf(node.root, segments))) throw uncompilable
      this.#queries.push(pathOf(node.root, segments))
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
      if (this.#skipped.has(`$${node.root.name}${pathOf('event', segments)}`)) throw uncompilable
      const base = this.#variable(node.root.name, node.root.span, state)
      if (base.op !== 'read') throw new Error('a variable is read')
      return {
        ...base,
        place: { ...base.place, segments },
        kind: base.kind.at(segments),
        constant: base.constant === undefined ? undefined : constantAt(base.constant, segments),
        span,
      }
    }
    const base = this.#expression(node.root, state)
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

  #block(node: Block, state: State): Typed {
    const outer = new Map(state.locals)
    const body = node.body.map((expression) => this.#expression(expression, state))
    this.#leave(state, outer)
    return blockOf(body, node.span)
  }

  /** Leaves a block: changes of outer variables stay, its own variables go. */
  #leave(state: State, outer: ReadonlyMap<string, Local>): void {
    const inner = state.locals
    state.locals = new Map()
    for (const [name, local] of outer) {
      const changed = inner.get(name)
      state.locals.set(name, changed !== undefined && changed.slot === local.slot ? changed : local)
    }
  }

  #array(node: Extract<Expression, { node: 'array' }>, state: State): Typed {
    const items = node.items.map((item) => this.#expression(item, state))
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

  #object(node: Extract<Expression, { node: 'object' }>, state: State): Typed {
    // Fields are evaluated in the order of their names, so they are checked in it.
    const sorted = [...new Map(node.fields)]
      .sort(([left], [right]) => compareKeys(left, right))
      .map(([name, value]) => [name, this.#expression(value, state)] as const)
    const known: Record<string, Kind> = { __proto__: null as never }
    for (const [name, typed] of sorted) known[name] = typed.kind.undefinedAsNull
    const allConstant = sorted.every(([, typed]) => typed.constant !== undefined)
    return {
      op: 'object',
      fields: sorted,
      kind: sorted.some(([, typed]) => typed.kind.isNever) ? kinds.never : kinds.objectOf(known),
      fallible: sorted.some(([, typed]) => typed.fallible),
      constant: allConstant
        ? Object.fromEntries(sorted.map(([name, typed]) => [name, typed.constant as Value]))
        : undefined,
      span: node.span,
    }
  }

  #if(node: If, state: State): Typed {
    const outer = new Map(state.locals)
    const body = node.predicate.body.map((expression) => this.#expression(expression, state))
    const predicate = body.length === 1 ? (body[0] as Typed) : blockOf(body, node.predicate.span)
    const span = node.predicate.span
    if (predicate.fallible) {
      const cause = this.#cause
      this.#report(
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
      this.#report(102, 'non-boolean predicate', [
        { primary: true, span, message: 'this predicate must resolve to a boolean' },
        { primary: false, span, message: `instead it resolves to ${predicate.kind}` },
      ])
    }
    const otherwise = copyOf(state)
    const consequent = this.#block(node.consequent, state)
    let alternative: Typed | undefined
    if (node.alternative !== undefined) {
      alternative =
        node.alternative.node === 'if'
          ? this.#expression(node.alternative, otherwise)
          : this.#block(node.alternative, otherwise)
    }
    mergeInto(state, otherwise)
    this.#leave(state, outer)
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

  #not(node: Extract<Expression, { node: 'not' }>, state: State): Typed {
    const operand = this.#expression(node.operand, state)
    if (!operand.kind.isNever && !operand.kind.is(kinds.boolean)) {
      this.#report(660, 'non-boolean negation', [
        { primary: true, span: node.operator, message: 'negation only works on boolean values' },
        { primary: false, span: node.operand.span, message: `this expression resolves to ${operand.kind}` },
      ])
    }
    return { op: 'not', operand, kind: kinds.boolean, fallible: operand.fallible, constant: undefined, span: node.span }
  }

  #binary(node: Binary, state: State): Typed {
    const left = this.#expression(node.left, state)
    if (node.operator === '??') this.#cause = undefined
    const cause = this.#cause
    this.#cause = undefined
    // The right side may not run at all.
    const lazy = node.operator === '??' || node.operator === '||' || node.operator === '&&'
    const rightState = lazy ? copyOf(state) : state
    const right = this.#expression(node.right, rightState)
    if (lazy) mergeInto(state, rightState)
    if (cause !== undefined) this.#cause = cause
    if (comparisons.has(node.operator) && node.left.node === 'binary' && comparisons.has(node.left.operator)) {
      this.#report(650, 'comparison operators cannot be chained', [
        { primary: true, span: node.operatorSpan, message: '' },
      ])
    }
    if (node.operator === '??' && !left.fallible) {
      this.#report(651, 'unnecessary error coalescing operation', [
        { primary: true, span: node.left.span, message: 'this expression cannot fail' },
        { primary: false, span: node.right.span, message: 'this expression never resolves' },
        { primary: false, span: node.operatorSpan, message: 'remove this error coalescing operation' },
      ])
    }
    return this.#operation(node, left, right)
  }

  #operation(
    node: Pick<Binary, 'operator' | 'span'> & { left: { span: Span }; right: { span: Span } },
    left: Typed,
    right: Typed,
  ): Typed {
    const result = (kind: Kind, fallible: boolean, value?: Value): Typed => ({
      op: 'binary',
      operator: node.operator,
      left,
      right,
      kind,
      fallible,
      constant: value,
      span: node.span,
    })
    const l = left.kind
    const r = right.kind
    const operands = left.fallible || right.fallible
    const number = kinds.number
    const outside = (kind: Kind): boolean => !within(l, kind) || !within(r, kind)
    switch (node.operator) {
      case '??':
        return result(l.or(r), right.fallible)
      case '||': {
        const falsy = l.is(kinds.null) || left.constant === false
        if (falsy) return result(r, operands)
        if (left.constant === true || !l.overlaps(kinds.null.or(kinds.boolean).or(kinds.undefined))) {
          return result(l, left.fallible)
        }
        return result(l.without(kinds.null).or(r), operands)
      }
      case '&&': {
        if (l.is(kinds.null) || left.constant === false) return result(kinds.boolean, left.fallible)
        if (left.constant === true) return result(kinds.boolean, right.fallible)
        return result(kinds.boolean, operands || outside(kinds.null.or(kinds.boolean)))
      }
      case '==':
      case '!=':
        return result(kinds.boolean, operands)
      case '<':
      case '<=':
      case '>':
      case '>=': {
        const same = (l.is(kinds.string) && r.is(kinds.string)) || (l.is(kinds.timestamp) && r.is(kinds.timestamp))
        return result(kinds.boolean, operands || (!same && outside(number)))
      }
      case '|': {
        for (const [side, kind] of [
          [node.left, l],
          [node.right, r],
        ] as const) {
          if (!kind.isNever && !kind.is(kinds.object)) {
            this.#report(652, 'only objects can be merged', [
              { primary: true, span: side.span, message: `this expression resolves to the kind ${kind}` },
            ])
          }
        }
        return result(mergedObjects(l, r), operands)
      }
      case '/': {
        const value = fold(divide, left, right)
        const divisor = right.constant
        const sound =
          (l.is(kinds.integer) || l.is(kinds.float)) &&
          divisor !== undefined &&
          ((typeof divisor === 'number' && divisor !== 0 && Number.isFinite(divisor)) ||
            typeof divisor === 'bigint' ||
            (divisor instanceof Float && divisor.value !== 0 && Number.isFinite(divisor.value)))
        return result(kinds.float, operands || !sound, value)
      }
    }
    const { operator } = node
    const value = fold(operator === '+' ? add : operator === '-' ? subtract : multiply, left, right)
    if (operator === '+' && (l.is(kinds.string) || r.is(kinds.string))) {
      return result(kinds.string, operands || outside(kinds.string.or(kinds.null)))
    }
    if (l.is(kinds.float) || r.is(kinds.float)) {
      const bothConstant = left.constant !== undefined && right.constant !== undefined
      return result(kinds.float, operands || outside(number) || (bothConstant && value === undefined), value)
    }
    if (l.is(kinds.integer) && r.is(kinds.integer)) return result(kinds.integer, operands, value)
    const mixed = (l.is(kinds.string) && r.is(kinds.integer)) || (l.is(kinds.integer) && r.is(kinds.string))
    if (operator === '*' && mixed) return result(kinds.string, operands)
    return result(operator === '-' ? number : kinds.string.or(number), true)
  }

  #assignment(node: Assignment, state: State): Typed {
    const { to, error } = node
    let value: Typed
    let valueSpan = node.value.span
    if (node.merge) {
      const left = this.#expression(asExpression(to), state)
      value = this.#expression(node.value, state)
      valueSpan = [to.span[0], node.value.span[1]]
      const merge = { operator: '|' as const, span: valueSpan, left: { span: to.span }, right: node.value }
      value = this.#operation(merge, left, value)
    } else {
      try {
        value = this.#expression(node.value, state)
      } catch (problem) {
        if (problem === uncompilable) for (const target of error === undefined ? [to] : [to, error]) this.#skip(target)
        throw problem
      }
    }
    if (error !== undefined) return this.#infallibleAssignment(node, to, error, value, valueSpan, state)
    const assignmentSpan: Span = [to.span[0], node.value.span[0] - 1]
    if (value.fallible) {
      const target = this.#source.slice(...to.span)
      const expression = this.#source.slice(...node.value.span)
      const partial =
        this.#cause?.code === 110
          ? [
              {
                primary: true,
                span: valueSpan,
                message: "an argument's kind cannot be verified, so the call may fail",
              },
              { primary: true, span: valueSpan, message: 'add a `!` to end the program on failure' },
            ]
          : []
      this.#report(
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
    if (to.target === 'none') this.#uselessAssignment(valueSpan, to.span, assignmentSpan)
    const place = this.#place(to, assignmentSpan, state)
    const rootKind = this.#rootKind(to, state)
    const kind = value.kind.undefinedAsNull
    this.#write(to, place, kind, value.constant, state)
    this.#recordAssignment(to)
    return {
      op: 'assign',
      to: this.#resolved(to, place, state),
      value,
      rootKind,
      kind,
      fallible: false,
      constant: value.constant,
      span: node.span,
    }
  }

  #infallibleAssignment(
    node: Assignment,
    to: Target,
    error: Target,
    value: Typed,
    valueSpan: Span,
    state: State,
  ): Typed {
    const assignmentSpan: Span = [to.span[0], error.span[1]]
    if (!value.fallible) {
      this.#report(104, 'unnecessary error assignment', [
        { primary: true, span: error.span, message: 'this error assignment is unnecessary' },
        { primary: false, span: valueSpan, message: "because this expression can't fail" },
        { primary: false, span: to.span, message: 'use a single target' },
      ])
    }
    this.#cause = undefined
    if (to.target === 'none' && error.target === 'none') this.#uselessAssignment(valueSpan, to.span, assignmentSpan)
    const place = this.#place(to, assignmentSpan, state)
    const errorPlace = this.#place(error, assignmentSpan, state)
    const rootKind = this.#rootKind(to, state)
    const fallback = defaultOf(value.kind)
    this.#write(to, place, value.kind.undefinedAsNull.or(kindOf(fallback)), undefined, state)
    const resolved = this.#resolved(to, place, state)
    this.#write(error, errorPlace, kinds.string.or(kinds.null), undefined, state)
    this.#recordAssignment(to)
    this.#recordAssignment(error)
    return {
      op: 'assign-or-error',
      to: resolved,
      error: this.#resolved(error, errorPlace, state),
      value,
      default: fallback,
      rootKind,
      kind: value.kind.undefinedAsNull.or(kinds.string),
      fallible: false,
      constant: undefined,
      span: node.span,
    }
  }

  #uselessAssignment(valueSpan: Span, targetSpan: Span, assignmentSpan: Span): never {
    return this.#report(640, 'unnecessary no-op assignment', [
      { primary: true, span: valueSpan, message: 'this no-op assignment has no effect' },
      { primary: false, span: targetSpan, message: 'either assign to a path or variable here' },
      { primary: false, span: assignmentSpan, message: 'or remove the assignment' },
    ])
  }

  #skip(target: Target): void {
    if (target.target === 'variable') {
      const segments = target.segments.map((segment) => segment.value)
      this.#skipped.add(segments.length === 0 ? `$${target.name}` : `$${target.name}${pathOf('event', segments)}`)
    } else if (target.target === 'event' || target.target === 'metadata') {
      this.#skipped.add(
        pathOf(
          target.target,
          target.segments.map((segment) => segment.value),
        ),
      )
    }
  }

  #recordAssignment(target: Target): void {
    if (target.target !== 'event' && target.target !== 'metadata') return
    this.#assignments.push(
      pathOf(
        target.target,
        target.segments.map((segment) => segment.value),
      ),
    )
  }

  /** Checks that the target can be written to. */
  #place(target: Target, assignmentSpan: Span, state: State): readonly PathSegment[] {
    if (target.target === 'none') return []
    if (target.target === 'invalid') {
      return this.#report(641, 'invalid assignment target', [
        { primary: true, span: target.span, message: 'invalid assignment target' },
        { primary: false, span: target.span, message: 'use a variable or a path' },
      ])
    }
    const segments = target.segments.map((segment) => segment.value)
    if (target.target !== 'variable' && this.#isReadOnly(target.target, segments)) {
      this.#report(315, 'mutation of read-only value', [
        { primary: true, span: assignmentSpan, message: 'mutation of read-only value' },
      ])
    }
    for (const { value, span } of target.segments) {
      if (typeof value === 'string' || Math.abs(value) <= maxIndex) continue
      this.#report(642, 'index out of range', [
        { primary: true, span, message: `items are written at indexes from -${maxIndex} to ${maxIndex}` },
      ])
    }
    const root = this.#rootKind(target, state)
    for (let depth = segments.length; depth > 0; depth--) {
      const parent = root.at(segments, 0, depth - 1)
      const isField = typeof segments[depth - 1] === 'string'
      if (parent.overlaps(isField ? kinds.object : kinds.array) || parent.isNever) continue
      const { span } = target.segments[depth - 1] as Segment
      // The dot before a name belongs to neither side.
      const dotted = this.#source[span[0] - 1] === '.' && !(depth === 1 && target.target !== 'variable')
      const parentEnd = dotted ? span[0] - 1 : span[0]
      this.#report(642, 'parent path segment rejects this mutation', [
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

  #isReadOnly(root: 'event' | 'metadata', segments: readonly PathSegment[]): boolean {
    if (this.#options.readOnly) return true
    return root === 'metadata' && (segments.length === 0 || segments[0] === 'vector')
  }

  #rootKind(target: Target, state: State): Kind {
    if (target.target === 'event' || target.target === 'metadata') return state[target.target]
    if (target.target === 'variable') return state.locals.get(target.name)?.kind ?? kinds.any
    return kinds.never
  }

  #write(target: Target, segments: readonly PathSegment[], kind: Kind, value: Value | undefined, state: State): void {
    if (target.target === 'event' || target.target === 'metadata') {
      state[target.target] = state[target.target].with(segments, kind).bounded
    } else if (target.target === 'variable') {
      const local = state.locals.get(target.name)
      const slot = local?.slot ?? { id: this.#slots++, name: target.name }
      state.locals.set(target.name, {
        slot,
        kind: (local?.kind ?? kinds.never).with(segments, kind).bounded,
        constant: segments.length === 0 ? value : undefined,
      })
    }
  }

  #resolved(target: Target, segments: readonly PathSegment[], state: State): Place {
    if (target.target === 'variable') {
      return { root: 'variable', slot: (state.locals.get(target.name) as Local).slot, segments }
    }
    if (target.target === 'event' || target.target === 'metadata') return { root: target.target, segments }
    return { root: 'none', segments: [] }
  }

  #call(node: CallExpression, state: State): Typed {
    const values = node.arguments.map((argument) => this.#expression(argument.value, state))
    const declaration = findFunction(node.name)
    if (declaration === undefined) return this.#undefinedFunction(node)
    const matched = this.#match(node, declaration, values)
    const closure = this.#closure(node, declaration, matched, state)
    const info = new CallInfo(declaration, matched.args, closure)
    const call = this.#compiled(node, declaration, info)
    let fallible = declaration.fallible === 'always' || (declaration.fallible !== 'never' && declaration.fallible(info))
    if (closure?.body.fallible === true) fallible = true
    const partial = matched.partial
    if (node.bang !== undefined) {
      this.#fallible = true
      if (!fallible && partial === undefined) {
        this.#warnings.push({
          severity: 'warning',
          code: 620,
          message: "can't abort infallible function",
          labels: [
            { primary: true, span: node.nameSpan, message: "this function can't fail" },
            { primary: false, span: node.bang, message: 'remove this abort-instruction' },
          ],
          notes: [],
        })
      }
    } else if (partial !== undefined) this.#cause = this.#invalidArgument(partial)
    if (declaration.deprecated !== undefined) {
      this.#warnings.push({
        severity: 'warning',
        code: 801,
        message: 'deprecated item used',
        labels: [
          { primary: true, span: node.span, message: 'this item is deprecated' },
          { primary: false, span: node.span, message: declaration.deprecated },
        ],
        notes: [],
      })
    }
    if (node.name === 'get') this.#queries.push('.')
    const common = {
      fallible: node.bang === undefined && (fallible || partial !== undefined),
      constant: undefined,
      span: node.span,
    }
    if (declaration.form !== undefined) return this.#form(declaration.form, matched.args, common, state)
    const kind = typeof declaration.returns === 'function' ? declaration.returns(info) : declaration.returns
    return {
      op: 'call',
      declaration,
      run: call,
      args: matched.args,
      order: matched.order,
      canFail: fallible || partial !== undefined,
      closure,
      kind,
      ...common,
    }
  }

  #form(
    form: 'del' | 'exists' | 'unnest',
    args: readonly (Typed | undefined)[],
    common: Pick<Typed, 'fallible' | 'constant' | 'span'>,
    state: State,
  ): Typed {
    const at = args[0] as Typed
    if (form === 'exists') return { op: 'exists', at, kind: kinds.boolean, ...common }
    if (form === 'unnest') return { op: 'unnest', at, kind: unnested(at), ...common }
    const compact = args[1]
    if (at.op === 'read' && at.place.root !== 'variable') {
      const { root, segments } = at.place
      const known = compact?.constant
      const both = state[root].removed(segments, false)
      state[root] =
        known === true
          ? state[root].removed(segments, true)
          : known === false
            ? both
            : both.or(state[root].removed(segments, true))
    } else if (at.op === 'read' && at.place.root === 'variable') {
      const local = state.locals.get(at.place.slot.name)
      if (local !== undefined) state.locals.set(at.place.slot.name, { ...local, constant: undefined })
    }
    return { op: 'del', at, compact, kind: at.kind, ...common }
  }

  #undefinedFunction(node: CallExpression): never {
    const hint = closest(
      node.name,
      functions.map((declaration) => declaration.name),
    )
    return this.#report(105, 'call to undefined function', [
      { primary: true, span: node.nameSpan, message: 'undefined function' },
      {
        primary: false,
        span: node.nameSpan,
        message: hint === undefined ? 'no function has this name' : `did you mean "${hint}"?`,
      },
    ])
  }

  /** Finds the parameter of each argument and checks the kinds. */
  #match(
    node: CallExpression,
    declaration: FunctionDeclaration,
    values: readonly Typed[],
  ): { args: (Typed | undefined)[]; order: number[]; partial: PartialArgument | undefined } {
    const { parameters } = declaration
    if (node.arguments.length > parameters.length) {
      const span: Span = [node.arguments[0]?.span[0] ?? 0, node.arguments.at(-1)?.span[1] ?? 0]
      this.#report(106, 'too many function arguments', [
        { primary: true, span, message: 'too many function arguments' },
        { primary: false, span, message: `this function takes a maximum of ${parameters.length}` },
      ])
    }
    const args: (Typed | undefined)[] = parameters.map(() => undefined)
    const order: number[] = []
    let partial: PartialArgument | undefined
    const indexes = parameterIndexes(parameters, node.arguments)
    for (const [index, argument] of node.arguments.entries()) {
      const value = values[index] as Typed
      const at = indexes[index] as number
      if (at < 0) {
        const known = parameters.map((parameter) => `"${parameter.name}"`).join(', ')
        this.#report(108, 'unknown function argument keyword', [
          { primary: true, span: argument.keywordSpan, message: 'unknown keyword' },
          { primary: false, span: node.nameSpan, message: `this function accepts the following keywords: ${known}` },
        ])
      }
      const parameter = parameters[at]
      if (parameter === undefined) {
        return this.#report(106, 'too many function arguments', [
          { primary: true, span: argument.span, message: 'too many function arguments' },
          { primary: false, span: argument.span, message: `this function takes a maximum of ${parameters.length}` },
        ])
      }
      const fits = value.kind.isNever || value.kind.within(parameter.kind)
      if (!fits) {
        const mismatch = { parameter, kind: value.kind, span: argument.span }
        if (!value.kind.overlaps(parameter.kind)) {
          this.#errors.push(this.#invalidArgument(mismatch))
          throw uncompilable
        }
        partial ??= mismatch
      }
      if (value.fallible) {
        this.#report(
          630,
          'fallible argument',
          [
            { primary: true, span: argument.span, message: 'this expression can fail' },
            { primary: false, span: argument.span, message: 'handle the error before passing it in as an argument' },
          ],
          fallibleNotes,
        )
      }
      if (args[at] !== undefined) order.splice(order.indexOf(at), 1)
      args[at] = value
      order.push(at)
    }
    for (const [index, parameter] of parameters.entries()) {
      if (parameter.required === false || args[index] !== undefined) continue
      const message = `required argument missing: "${parameter.name}" (position ${index + 1})`
      this.#report(107, 'missing function argument', [{ primary: true, span: node.span, message }])
    }
    return { args, order, partial }
  }

  #invalidArgument(argument: PartialArgument): Diagnostic {
    const { parameter, kind, span } = argument
    return {
      severity: 'error',
      code: 110,
      message: 'invalid argument type',
      labels: [
        { primary: true, span, message: `this expression resolves to the type ${kind}` },
        {
          primary: false,
          span,
          message: `but the parameter "${parameter.name}" expects the type ${parameter.kind}`,
        },
      ],
      notes: [...fallibleNotes, ...notesOf(110)],
    }
  }

  #closure(
    node: CallExpression,
    declaration: FunctionDeclaration,
    matched: { args: readonly (Typed | undefined)[]; partial: PartialArgument | undefined },
    state: State,
  ): { parameters: (Slot | undefined)[]; body: Typed } | undefined {
    const expected = declaration.closure
    const given = node.closure
    if (expected === undefined) {
      if (given === undefined) return undefined
      return this.#report(109, 'unexpected closure', [
        { primary: true, span: given.span, message: 'unexpected closure' },
        { primary: false, span: node.span, message: 'this function does not accept a closure' },
      ])
    }
    if (given === undefined) {
      return this.#report(111, 'missing function closure', [
        { primary: true, span: node.span, message: 'this function requires a closure' },
      ])
    }
    const input = matched.args[0]
    const parameter = declaration.parameters[0]
    if (input !== undefined && parameter !== undefined && !input.kind.isNever && !input.kind.within(parameter.kind)) {
      this.#report(121, 'type mismatch for a closure parameter', [
        { primary: true, span: node.span, message: `the value resolves to ${input.kind}` },
        { primary: false, span: node.span, message: `the closure requires ${parameter.kind}` },
      ])
    }
    const parameterKinds = expected.parameters(new CallInfo(declaration, matched.args, undefined))
    if (parameterKinds.length !== given.parameters.length) {
      this.#report(120, 'invalid number of closure parameters', [
        { primary: true, span: node.nameSpan, message: `this closure takes ${parameterKinds.length} parameters` },
        { primary: false, span: given.parametersSpan, message: `but ${given.parameters.length} are given` },
      ])
    }
    // What the block does to kinds ends with the call.
    const inner = copyOf(state)
    const parameters = given.parameters.map(({ name }, index) => {
      if (name === '_') return undefined
      const slot: Slot = { id: this.#slots++, name }
      inner.locals.set(name, {
        slot,
        kind: (parameterKinds[index] as Kind).undefinedAsNull,
        constant: undefined,
      })
      return slot
    })
    const outside = this.#returned
    this.#returned = kinds.never
    const body = this.#block(given.body, inner)
    // What the block gives, at its end or by `return`.
    const received = body.kind.or(this.#returned)
    this.#returned = outside
    if (!received.isNever && !received.within(expected.result)) {
      const span = given.body.span
      this.#report(122, 'type mismatch in closure return type', [
        { primary: true, span, message: 'block returns an invalid value type' },
        { primary: false, span, message: `expected: ${expected.result}` },
        { primary: false, span, message: `received: ${received}` },
      ])
    }
    for (const local of changedVariables(body)) {
      for (const [name, known] of state.locals) {
        if (known.slot === local && known.constant !== undefined) {
          state.locals.set(name, { ...known, constant: undefined })
        }
      }
    }
    return { parameters, body }
  }

  /** Lets the function look at its arguments, and gives its compiled form. */
  #compiled(node: CallExpression, declaration: FunctionDeclaration, info: CallInfo) {
    const refuse = (reason: string, contexts: number): never =>
      this.#report(610, 'function compilation error', [
        { primary: true, span: node.span, message: reason },
        ...Array.from({ length: contexts }, (_, index) => ({
          primary: false,
          span: node.span,
          message: index === 0 ? `in the call of "${node.name}"` : 'see the reference of the function',
        })),
      ])
    for (const [index, parameter] of declaration.parameters.entries()) {
      const argument = info.args[index]
      if (argument === undefined) continue
      if (parameter.query === true) this.#checkQuery(declaration, argument, refuse)
      if ((parameter.static === true || parameter.enum !== undefined) && argument.constant === undefined) {
        refuse(`error[E400]: the argument "${parameter.name}" must be a literal`, 2)
      }
      const value = argument.constant
      if (parameter.enum !== undefined && !parameter.enum.includes(value as string)) {
        const known = parameter.enum.map((text) => `"${text}"`).join(', ')
        refuse(`error[E401]: the argument "${parameter.name}" must be one of ${known}`, 2)
      }
    }
    const opensFile = this.#reach(node, declaration, info)
    if (opensFile && this.#options.runtime.reach !== 'everything') return notOpened
    const site: CallSite = Object.assign(info, {
      runtime: this.#options.runtime,
      span: this.#bytes.span(node.span),
      reject: (reason: string): never => {
        throw new Refusal(reason)
      },
    })
    try {
      return declaration.compile(site)
    } catch (error) {
      if (error instanceof Refusal) return refuse(`error[E403]: ${error.reason}`, 2)
      throw error
    }
  }

  /** Refuses calls that reach further than the program may; says whether the call names a file. */
  #reach(node: CallExpression, declaration: FunctionDeclaration, info: CallInfo): boolean {
    const file = declaration.parameters.findIndex(
      (parameter, index) => parameter.meaning === 'file' && info.args[index] !== undefined,
    )
    if (this.#options.runtime.reach === 'nothing' && (file >= 0 || declaration.reaches !== undefined)) {
      const span = info.args[file]?.span ?? node.span
      const message =
        file < 0
          ? `"${node.name}" reaches ${reachText[declaration.reaches as keyof typeof reachText]}`
          : `the parameter "${declaration.parameters[file]?.name}" of "${node.name}" names a file`
      this.#report(710, 'call beyond the event', [{ primary: true, span, message }])
    }
    return file >= 0
  }

  #checkQuery(
    declaration: FunctionDeclaration,
    argument: Typed,
    refuse: (reason: string, contexts: number) => never,
  ): void {
    if (argument.op !== 'read' && argument.op !== 'below') {
      refuse('error[E400]: the argument must be a path', 2)
    }
    if (argument.op !== 'read') return
    const { place } = argument
    if (place.root === 'variable') {
      if (place.segments.length === 0 && declaration.form !== 'unnest') {
        refuse('error[E400]: the argument must be a path, not a variable', 2)
      }
    } else if (declaration.form === 'del' && this.#isReadOnly(place.root, place.segments)) {
      refuse('error[E315]: mutation of read-only value', 1)
    }
  }
}

/** What the targets of `reaches` are, in words. */
export const reachText: Readonly<Record<NonNullable<FunctionDeclaration['reaches']>, string>> = {
  environment: 'the environment of the agent',
  host: 'the host of the agent',
  network: 'the network',
  agent: "the agent's own metrics, which count what other pipelines do",
}

const notOpened: Call = () => failure('files are not opened where a program is only checked')

interface PartialArgument {
  readonly parameter: Parameter
  readonly kind: Kind
  readonly span: Span
}

/** What functions may ask about a call. */
class CallInfo implements CallKinds {
  readonly declaration: FunctionDeclaration
  readonly args: readonly (Typed | undefined)[]
  readonly closureKind: Kind
  readonly closureFallible: boolean

  constructor(
    declaration: FunctionDeclaration,
    args: readonly (Typed | undefined)[],
    closure: { body: Typed } | undefined,
  ) {
    this.declaration = declaration
    this.args = args
    this.closureKind = closure?.body.kind ?? kinds.never
    this.closureFallible = closure?.body.fallible === true
  }

  #index(name: string): number {
    const index = this.declaration.parameters.findIndex((parameter) => parameter.name === name)
    if (index < 0) throw new Error(`The function ${this.declaration.name} has no parameter ${name}.`)
    return index
  }

  kind(name: string): Kind {
    const index = this.#index(name)
    const argument = this.args[index]
    return argument === undefined ? kindOf(this.declaration.parameters[index]?.default) : argument.kind
  }

  given(name: string): boolean {
    return this.args[this.#index(name)] !== undefined
  }

  constant(name: string): Value | undefined {
    const index = this.#index(name)
    const argument = this.args[index]
    return argument === undefined ? this.declaration.parameters[index]?.default : argument.constant
  }

  path(name: string): PathArgument {
    const argument = this.args[this.#index(name)]
    if (argument?.op === 'read') return { root: argument.place.root, segments: argument.place.segments }
    return { root: 'value', segments: argument?.op === 'below' ? argument.segments : [] }
  }
}

/** A constant is as large as its kind. */
function bounded(typed: Typed): Typed {
  const kind = typed.kind.bounded
  return kind === typed.kind ? typed : { ...typed, kind, constant: undefined }
}

function within(kind: Kind, other: Kind): boolean {
  return kind.isNever || kind.within(other)
}

function constant(value: Value, span: Span): Typed {
  return { op: 'constant', value, kind: kindOf(value), fallible: false, constant: value, span }
}

function blockOf(body: readonly Typed[], span: Span): Typed {
  let kind: Kind = kinds.null
  let fallible = false
  for (const expression of body) {
    kind = expression.kind
    fallible ||= expression.fallible
    if (kind.isNever) break
  }
  return {
    op: 'block',
    body,
    kind,
    fallible,
    constant: body.length === 1 ? body[0]?.constant : undefined,
    span,
  }
}

function fold(
  operation: (left: Value, right: Value) => ReturnType<typeof add>,
  left: Typed,
  right: Typed,
): Value | undefined {
  const isNumber = (value: Value | undefined): value is Value =>
    typeof value === 'number' || typeof value === 'bigint' || value instanceof Float
  if (!isNumber(left.constant) || !isNumber(right.constant)) return undefined
  const result = operation(left.constant, right.constant)
  return isFailure(result) ? undefined : result
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

function pathOf(root: 'event' | 'metadata', segments: readonly PathSegment[]): string {
  let text = root === 'event' ? '.' : '%'
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`
    else text += `${text.length > 1 ? '.' : ''}${fieldText(segment)}`
  }
  return text
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

/** The value of `ok` when `ok, err =` failed. */
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

/** Kind of `unnest`: one copy of what is around for each item. */
function unnested(at: Typed): Kind {
  if (at.op !== 'read') {
    return kinds.array
  }
  const { segments } = at.place
  const root = at.rootKind
  const items = at.kind.array
  if (items === undefined) return kinds.array
  const around = (item: Kind): Kind => root.with(segments, item.without(kinds.undefined))
  const known = new Map([...items.known].map(([index, kind]) => [index, around(kind)]))
  const exact = kinds.arrayOf([...known].sort(([left], [right]) => left - right).map(([, kind]) => kind))
  return items.unknown === undefined ? exact : kinds.arrayEach(around(at.kind.and(kinds.array).elements))
}

/** Variables that an expression assigns. */
function changedVariables(typed: Typed): Set<Slot> {
  const slots = new Set<Slot>()
  const visit = (node: Typed | undefined): void => {
    if (node === undefined) return
    switch (node.op) {
      case 'assign':
        if (node.to.root === 'variable') slots.add(node.to.slot)
        visit(node.value)
        break
      case 'assign-or-error':
        if (node.to.root === 'variable') slots.add(node.to.slot)
        if (node.error.root === 'variable') slots.add(node.error.slot)
        visit(node.value)
        break
      case 'block':
        for (const item of node.body) visit(item)
        break
      case 'array':
        for (const item of node.items) visit(item)
        break
      case 'object':
        for (const [, item] of node.fields) visit(item)
        break
      case 'if':
        visit(node.predicate)
        visit(node.consequent)
        visit(node.alternative)
        break
      case 'binary':
        visit(node.left)
        visit(node.right)
        break
      case 'not':
        visit(node.operand)
        break
      case 'below':
        visit(node.base)
        break
      case 'call':
        for (const item of node.args) visit(item)
        visit(node.closure?.body)
        break
      case 'return':
        visit(node.value)
        break
      case 'del':
        if (node.at.op === 'read' && node.at.place.root === 'variable') slots.add(node.at.place.slot)
        break
    }
  }
  visit(typed)
  return slots
}

/** The name most like another, if there is one that is like it at all. */
function closest(name: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index)
  for (let at = 1; at <= left.length; at++) {
    const next = [at]
    for (let to = 1; to <= right.length; to++) {
      const cost = left[at - 1] === right[to - 1] ? 0 : 1
      next.push(Math.min((row[to] as number) + 1, (next[to - 1] as number) + 1, (row[to - 1] as number) + cost))
    }
    row = next
  }
  return row[right.length] as number
}
