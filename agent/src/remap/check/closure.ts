// Closures of calls: their parameters, the kind of their result, and the outer variables that they change.

import type { CallExpression } from '../ast.ts'
import type { FunctionDeclaration } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import { type Slot, type Typed, visit } from '../typed.ts'
import { CallInfo, type MatchedArguments } from './arguments.ts'
import { checkBlock } from './block.ts'
import type { CheckContext } from './context.ts'
import { copyOf, type State } from './state.ts'

export function checkClosure(
  check: CheckContext,
  node: CallExpression,
  declaration: FunctionDeclaration,
  matched: MatchedArguments,
  state: State,
): { parameters: (Slot | undefined)[]; body: Typed } | undefined {
  const expected = declaration.closure
  const given = node.closure
  if (expected === undefined) {
    if (given === undefined) return undefined
    return check.report(109, 'unexpected closure', [
      { primary: true, span: given.span, message: 'unexpected closure' },
      { primary: false, span: node.span, message: 'this function does not accept a closure' },
    ])
  }
  if (given === undefined) {
    return check.report(111, 'missing function closure', [
      { primary: true, span: node.span, message: 'this function requires a closure' },
    ])
  }
  const input = matched.args[0]
  const parameter = declaration.parameters[0]
  if (input !== undefined && parameter !== undefined && !input.kind.isNever && !input.kind.within(parameter.kind)) {
    check.report(121, 'type mismatch for a closure parameter', [
      { primary: true, span: node.span, message: `the value resolves to ${input.kind}` },
      { primary: false, span: node.span, message: `the closure requires ${parameter.kind}` },
    ])
  }
  const parameterKinds = expected.parameters(new CallInfo(declaration, matched.args, undefined))
  if (parameterKinds.length !== given.parameters.length) {
    check.report(120, 'invalid number of closure parameters', [
      { primary: true, span: node.nameSpan, message: `this closure takes ${parameterKinds.length} parameters` },
      { primary: false, span: given.parametersSpan, message: `but ${given.parameters.length} are given` },
    ])
  }
  // Kind changes in the block end with the call.
  const inner = copyOf(state)
  const parameters = given.parameters.map(({ name }, index) => {
    if (name === '_') return undefined
    const slot: Slot = check.newSlot(name)
    inner.locals.set(name, {
      slot,
      kind: (parameterKinds[index] as Kind).undefinedAsNull,
      constant: undefined,
    })
    return slot
  })
  const outside = check.returned
  check.returned = kinds.never
  const body = checkBlock(check, given.body, inner)
  // The block's result, at its end or from `return`.
  const received = body.kind.or(check.returned)
  check.returned = outside
  if (!received.isNever && !received.within(expected.result)) {
    const span = given.body.span
    check.report(122, 'type mismatch in closure return type', [
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

/** Variables that an expression assigns. */
function changedVariables(typed: Typed): Set<Slot> {
  const slots = new Set<Slot>()
  visit(typed, (node) => {
    if (node.op === 'assign' || node.op === 'assign-or-error') {
      if (node.to.root === 'variable') slots.add(node.to.slot)
      if (node.op === 'assign-or-error' && node.error.root === 'variable') slots.add(node.error.slot)
    } else if (node.op === 'del' && node.at.op === 'read' && node.at.place.root === 'variable') {
      slots.add(node.at.place.slot)
    }
  })
  return slots
}
