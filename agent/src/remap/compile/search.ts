// Questions about a typed tree: what a node contains, and whether its evaluation has effects.

import type { Slot, Typed } from '../typed.ts'

/** Whether a test holds for a node or anything in it. */
export function some(typed: Typed, test: (typed: Typed, inClosure: boolean) => boolean, inClosure = false): boolean {
  if (test(typed, inClosure)) return true
  const below = (node: Typed | undefined, closure = inClosure): boolean =>
    node !== undefined && some(node, test, closure)
  switch (typed.op) {
    case 'block':
      return typed.body.some((node) => below(node))
    case 'array':
      return typed.items.some((node) => below(node))
    case 'object':
      return typed.fields.some(([, node]) => below(node))
    case 'if':
      return below(typed.predicate) || below(typed.consequent) || below(typed.alternative)
    case 'binary':
      return below(typed.left, inClosure || typed.operator === '??') || below(typed.right)
    case 'not':
      return below(typed.operand)
    case 'below':
      return below(typed.base)
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
    default:
      return false
  }
}

/** Effects on kinds that the checker does not follow: in closures, and in code that a failure may skip. */
export function isUnseen(typed: Typed, inClosure: boolean): boolean {
  if (typed.op === 'del') return inClosure || (typed.at.op === 'read' && typed.at.place.root === 'variable')
  return inClosure && (typed.op === 'assign' || typed.op === 'assign-or-error')
}

/** Whether a closure's result depends only on its parameters, and running it has no other effect. */
export function dependsOnParameters(body: Typed, parameters: readonly (Slot | undefined)[]): boolean {
  return !some(body, (typed) => {
    switch (typed.op) {
      case 'constant':
      case 'below':
      case 'block':
      case 'array':
      case 'object':
      case 'if':
      case 'binary':
      case 'not':
        return false
      case 'read':
        return typed.place.root !== 'variable' || !parameters.includes(typed.place.slot)
      case 'call':
        return !typed.declaration.pure || typed.closure !== undefined
      default:
        return true
    }
  })
}

/** Whether its evaluation changes what others may read. */
export function hasStatements(typed: Typed): boolean {
  return typed.op === 'assign' || typed.op === 'assign-or-error' || typed.op === 'del'
}

export function writesEvent(typed: Typed): boolean {
  if (typed.op === 'del') return typed.at.op === 'read' && typed.at.place.root === 'event'
  if (typed.op === 'assign') return typed.to.root === 'event'
  return typed.op === 'assign-or-error' && (typed.to.root === 'event' || typed.error.root === 'event')
}
