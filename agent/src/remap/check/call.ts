// Calls: looks up the function, compiles its arguments, and checks which resources it may access.

import type { Value } from '../../event/value.ts'
import { closest } from '../../schema/problems.ts'
import type { CallExpression } from '../ast.ts'
import {
  type CallSite,
  type FunctionCall,
  type FunctionDeclaration,
  failure,
  isFailure,
  reachText,
} from '../function.ts'
import { findFunction, functions } from '../functions.ts'
import { type Kind, kinds } from '../kind.ts'
import { withKindAt, withoutKindAt } from '../kind-changes.ts'
import type { Typed } from '../typed.ts'
import { CallInfo, invalidArgument, matchArguments } from './arguments.ts'
import { checkClosure } from './closure.ts'
import { type CheckContext, uncompilable } from './context.ts'
import { copyOf, mergeInto, type State } from './state.ts'

/** A function's rejection of its arguments. */
class Refusal {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

export function checkCall(check: CheckContext, node: CallExpression, state: State): Typed {
  const declaration = findFunction(node.name)
  // Arguments of which only the type matters do not run.
  const inner = declaration?.typeOfArguments === true ? copyOf(state) : state
  // A fallible argument is reported itself, and handled by nothing outside of the call.
  const matched = check.consuming(() => {
    const values = node.arguments.map((argument) => check.expression(argument.value, inner))
    if (inner !== state) mergeInto(state, inner)
    return declaration === undefined
      ? reportUndefinedFunction(check, node)
      : matchArguments(check, node, declaration, values)
  })
  if (declaration === undefined) throw uncompilable
  const closure = checkClosure(check, node, declaration, matched, state)
  const info = new CallInfo(declaration, matched.args, closure)
  const call = compileCall(check, node, declaration, info)
  let fallible = declaration.fallible === 'always' || (declaration.fallible !== 'never' && declaration.fallible(info))
  if (closure?.body.fallible === true) fallible = true
  const partial = matched.partial
  if (node.bang !== undefined) {
    check.fallible = true
    if (!fallible && partial === undefined) {
      check.warnings.push({
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
  } else if (partial !== undefined) check.pending.push(invalidArgument(partial))
  if (declaration.deprecated !== undefined) {
    check.warnings.push({
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
  if (node.name === 'get') check.queries.push('.')
  const common = {
    fallible: node.bang === undefined && (fallible || partial !== undefined),
    constant: declaration.isConstant === true ? constantOf(call, matched.args) : undefined,
    span: node.span,
  }
  if (declaration.form !== undefined) return typedForm(declaration.form, matched.args, common, state)
  const kind = typeof declaration.returns === 'function' ? declaration.returns(info) : declaration.returns
  return {
    op: 'call',
    declaration,
    run: call,
    args: matched.args,
    order: matched.order,
    canFail: fallible || partial !== undefined,
    isNominal: typeof declaration.nominal === 'function' ? declaration.nominal(info) : declaration.nominal === true,
    closure,
    kind,
    ...common,
  }
}

function constantOf(call: FunctionCall, args: readonly (Typed | undefined)[]): Value | undefined {
  const values = args.map((argument) => argument?.constant)
  if (values.includes(undefined)) return undefined
  const result = call(...(values as Value[]))
  return isFailure(result) ? undefined : result
}

function typedForm(
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
    const both = withoutKindAt(state[root], segments, false)
    state[root] =
      known === true
        ? withoutKindAt(state[root], segments, true)
        : known === false
          ? both
          : both.or(withoutKindAt(state[root], segments, true))
  } else if (at.op === 'read' && at.place.root === 'variable') {
    const local = state.locals.get(at.place.slot.name)
    if (local !== undefined) state.locals.set(at.place.slot.name, { ...local, constant: undefined })
  }
  return { op: 'del', at, compact, kind: at.kind, ...common }
}

function reportUndefinedFunction(check: CheckContext, node: CallExpression): never {
  const hint = closest(
    node.name,
    functions.map((declaration) => declaration.name),
  )
  return check.report(105, 'call to undefined function', [
    { primary: true, span: node.nameSpan, message: 'undefined function' },
    {
      primary: false,
      span: node.nameSpan,
      message: hint === undefined ? 'no function has this name' : `did you mean "${hint}"?`,
    },
  ])
}

/** Passes the arguments to the function's `compile`, and returns its compiled form. */
function compileCall(check: CheckContext, node: CallExpression, declaration: FunctionDeclaration, info: CallInfo) {
  const refuse = (reason: string, contexts: number): never =>
    check.report(610, 'function compilation error', [
      { primary: true, span: node.span, message: reason },
      ...Array.from({ length: contexts }, (_, index) => ({
        primary: false,
        span: node.span,
        message: index === 0 ? `in the call of "${node.name}"` : `\`penstock explain ${node.name}\` describes it`,
      })),
    ])
  for (const [index, parameter] of declaration.parameters.entries()) {
    const argument = info.args[index]
    if (argument === undefined) continue
    if (parameter.query === true) requirePath(check, declaration, argument, refuse)
    if ((parameter.static === true || parameter.enum !== undefined) && argument.constant === undefined) {
      refuse(`error[E400]: the argument "${parameter.name}" must be a literal`, 2)
    }
    if (parameter.static === true && !isWritten(argument, parameter.kind)) {
      refuse(`error[E400]: the argument "${parameter.name}" must be written in the call`, 2)
    }
    const value = argument.constant
    if (parameter.enum !== undefined && !parameter.enum.includes(value as string)) {
      const known = parameter.enum.map((text) => `"${text}"`).join(', ')
      refuse(`error[E401]: the argument "${parameter.name}" must be one of ${known}`, 2)
    }
  }
  const opensFile = checkReach(check, node, declaration, info)
  if (opensFile && check.options.runtime.reach !== 'everything') return notOpened
  const site: CallSite = Object.assign(info, {
    runtime: check.options.runtime,
    span: check.bytes.span(node.span),
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

/** Whether an argument that must be an array or an object is written as one, and not a variable with a known value. */
function isWritten({ op }: Typed, kind: Kind): boolean {
  return (op === 'array' || !kind.is(kinds.array)) && (op === 'object' || !kind.is(kinds.object))
}

/** Rejects calls that access more than the program may; returns whether the call names a file. */
function checkReach(
  check: CheckContext,
  node: CallExpression,
  declaration: FunctionDeclaration,
  info: CallInfo,
): boolean {
  const file = declaration.parameters.findIndex(
    (parameter, index) => parameter.meaning === 'file' && info.args[index] !== undefined,
  )
  if (check.options.runtime.reach === 'nothing' && (file >= 0 || declaration.reaches !== undefined)) {
    const span = info.args[file]?.span ?? node.span
    const message =
      file < 0
        ? `"${node.name}" reaches ${reachText[declaration.reaches as keyof typeof reachText]}`
        : `the parameter "${declaration.parameters[file]?.name}" of "${node.name}" names a file`
    check.report(710, 'call beyond the event', [{ primary: true, span, message }])
  }
  return file >= 0
}

function requirePath(
  check: CheckContext,
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
  } else if (declaration.form === 'del' && check.isReadOnly(place.root, place.segments)) {
    refuse('error[E315]: mutation of read-only value', 1)
  }
}

const notOpened: FunctionCall = () => failure('a program that is only checked opens no files')

function isThere(kind: Kind | undefined): boolean {
  return kind !== undefined && !kind.overlaps(kinds.undefined)
}

/** Kind of `unnest`: one copy of the surrounding value for each item. */
function unnested(at: Typed): Kind {
  if (at.op !== 'read') {
    return kinds.array
  }
  const { segments } = at.place
  const root = at.rootKind
  const items = at.kind.array
  if (items === undefined) return kinds.array
  const around = (item: Kind): Kind => withKindAt(root, segments, item.without(kinds.undefined))
  const known = new Map([...items.known].map(([index, kind]) => [index, around(kind)]))
  const exact = kinds.arrayOf([...known].sort(([left], [right]) => left - right).map(([, kind]) => kind))
  if (items.unknown === undefined) return exact
  // An optional item may also give no copy.
  const others = new Map(
    [...known].map(([index, kind]) => [index, isThere(items.known.get(index)) ? kind : kind.orUndefined()]),
  )
  return kinds.arrayWith(others, around(items.unknown))
}
