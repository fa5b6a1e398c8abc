// Compiles the closure of a call to a JavaScript function. It runs many times, so each turn must be cheap. A closure that depends only
// on its parameters is created once for all runs of the program.

import { type Slot, some, type Typed } from '../typed.ts'
import { type Generation, variable } from './generation.ts'
import { dependsOnParameters, writesEvent } from './search.ts'

export function closureOf(
  g: Generation,
  closure: { parameters: readonly (Slot | undefined)[]; body: Typed },
  span: readonly [number, number],
  functionName: string,
): string {
  // The block runs many times, so a later run may have to undo the writes of an earlier one.
  if (some(closure.body, writesEvent)) g.effects.written()
  const wasInClosure = g.effects.inClosure
  g.effects.inClosure = true
  const parameters = closure.parameters.map((slot) => {
    if (slot === undefined) return g.out.name()
    g.slots.add(slot)
    g.parameters.add(slot)
    return variable(slot)
  })
  const overOutside = g.budget.mayBeOver
  g.budget.mayBeOver = false
  const body = g.out.apart(() => g.expression(closure.body, g.effects.leave, true))
  const turn = g.out.apart(() => {
    const test = g.budget.mayBeOver ? '--M.turns < 0 || M.bytes < 0' : '--M.turns < 0'
    if (g.budget.counts) g.budget.limit(test, span, functionName)
    return ''
  })
  g.budget.mayBeOver ||= overOutside
  g.effects.inClosure = wasInClosure
  const name = g.out.name()
  const code = [`(${parameters.join(', ')}) => {`, ...turn.lines, ...body.lines, `return ${body.value}; }`]
  if (dependsOnParameters(closure.body, closure.parameters)) {
    g.out.onceLines.push(`const ${name} = pureClosure(${code.join('\n')});`)
  } else g.out.emit(`const ${name} = ${code.join('\n')};`)
  return name
}
