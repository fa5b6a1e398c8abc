// Queries on a typed tree: whether evaluating a node has effects, and what its result depends on.

import { type Slot, some, type Typed } from '../typed.ts'

/** Effects on kinds that the checker does not follow: in closures, and in code that a failure may skip. */
export function isUnseen(typed: Typed, maySkip: boolean): boolean {
  if (typed.op === 'call' || typed.op === 'binary') return typed.isNominal
  if (typed.op === 'del') return maySkip || (typed.at.op === 'read' && typed.at.place.root === 'variable')
  return maySkip && (typed.op === 'assign' || typed.op === 'assign-or-error')
}

/** Whether a closure's result depends only on its parameters, and its run has no other effect. */
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

/** Whether evaluating it changes values that other code may read. */
export function hasStatements(typed: Typed): boolean {
  return typed.op === 'assign' || typed.op === 'assign-or-error' || typed.op === 'del'
}

export function writesEvent(typed: Typed): boolean {
  if (typed.op === 'del') return typed.at.op === 'read' && typed.at.place.root === 'event'
  if (typed.op === 'assign') return typed.to.root === 'event'
  return typed.op === 'assign-or-error' && (typed.to.root === 'event' || typed.error.root === 'event')
}
