// Queries on a typed tree: whether evaluating a node has effects, and what its result depends on.

import type { PathSegment } from '../../event/path.ts'
import { type Slot, some, type Typed } from '../typed.ts'

/**
 * Effects on kinds that the checker does not follow: in closures, in code that a failure may skip, and where a change
 * moves the items of an array.
 */
export function isUnseen(typed: Typed, maySkip: boolean): boolean {
  switch (typed.op) {
    case 'call':
    case 'binary':
      return typed.isNominal
    case 'del': {
      if (maySkip || typed.at.op !== 'read') return maySkip
      const { root, segments } = typed.at.place
      return root === 'variable' || segments.some((segment) => typeof segment === 'number')
    }
    case 'assign':
      return maySkip || typed.to.segments.some(isFromEnd)
    case 'assign-or-error':
      return maySkip || typed.to.segments.some(isFromEnd) || typed.error.segments.some(isFromEnd)
    default:
      return false
  }
}

function isFromEnd(segment: PathSegment): boolean {
  return typeof segment === 'number' && segment < 0
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
