// Evaluates several expressions in order.

import { some, type Typed } from '../typed.ts'
import type { Fail, Generation } from './generation.ts'
import { hasStatements } from './search.ts'

/** Operands in order; operands before one with effects are stored in variables. */
export function operands(g: Generation, nodes: readonly Typed[], fail: Fail): string[] {
  const lastEffect = nodes.findLastIndex((node) => some(node, hasStatements))
  return nodes.map((node, index) => {
    const value = g.expression(node, fail, true)
    return index < lastEffect ? g.out.temp(value) : value
  })
}

export function sequence(g: Generation, body: readonly Typed[], fail: Fail, wanted: boolean): string {
  let result = 'null'
  body.forEach((typed, index) => {
    result = g.expression(typed, fail, wanted && index === body.length - 1)
  })
  return result
}
