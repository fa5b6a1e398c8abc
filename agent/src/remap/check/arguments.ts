// Arguments of a call: matches them to parameters, checks their kinds, and provides the data about them that functions
// may read.

import type { Value } from '../../event/value.ts'
import type { CallExpression, Span } from '../ast.ts'
import { parameterIndexes } from '../calls.ts'
import { notesOf } from '../codes.ts'
import type { Diagnostic } from '../diagnostics.ts'
import type { CallKinds, FunctionDeclaration, Parameter, PathArgument } from '../function.ts'
import { type Kind, kindOf, kinds } from '../kind.ts'
import type { Typed } from '../typed.ts'
import { type CheckContext, fallibleNotes } from './context.ts'

/** An argument whose kind fits only partly: the call can fail. */
export interface PartialArgument {
  readonly parameter: Parameter
  readonly kind: Kind
  readonly span: Span
}

export interface MatchedArguments {
  /** In the order of the parameters. */
  readonly args: readonly (Typed | undefined)[]
  /** Indices in `args`, in source order of the arguments. */
  readonly order: readonly number[]
  readonly partial: PartialArgument | undefined
}

/** Matches arguments to parameters and checks their kinds. */
export function matchArguments(
  check: CheckContext,
  node: CallExpression,
  declaration: FunctionDeclaration,
  values: readonly Typed[],
): MatchedArguments {
  const { parameters } = declaration
  if (node.arguments.length > parameters.length) {
    const span: Span = [node.arguments[0]?.span[0] ?? 0, node.arguments.at(-1)?.span[1] ?? 0]
    check.report(106, 'too many function arguments', [
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
      check.report(108, 'unknown function argument keyword', [
        { primary: true, span: argument.keywordSpan, message: 'unknown keyword' },
        { primary: false, span: node.nameSpan, message: `this function accepts the following keywords: ${known}` },
      ])
    }
    const parameter = parameters[at]
    if (parameter === undefined) {
      return check.report(106, 'too many function arguments', [
        { primary: true, span: argument.span, message: 'too many function arguments' },
        { primary: false, span: argument.span, message: `this function takes a maximum of ${parameters.length}` },
      ])
    }
    const fits = value.kind.isNever || value.kind.within(parameter.kind)
    if (!fits) {
      const mismatch = { parameter, kind: value.kind, span: argument.span }
      if (!value.kind.overlaps(parameter.kind)) {
        check.fail(invalidArgument(mismatch))
      }
      partial ??= mismatch
    }
    if (value.fallible) {
      check.report(
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
    check.report(107, 'missing function argument', [{ primary: true, span: node.span, message }])
  }
  return { args, order, partial }
}

export function invalidArgument(argument: PartialArgument): Diagnostic {
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

/** The data about a call that functions may read. */
export class CallInfo implements CallKinds {
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
