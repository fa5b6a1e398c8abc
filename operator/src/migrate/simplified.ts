// Generated programs without needless error handling. The compiler rejects `a ?? b` if `a` cannot fail, and the kinds of values in a generated
// program depend on the statements before it. The result is the same without `?? b`.

import { compileCondition, compileProgram } from '@penstock/agent/config'

type Compiled = ReturnType<typeof compileProgram> | ReturnType<typeof compileCondition>

/** Compiles the text of a transform: a condition for a filter, a program for a remap. */
export const compiledText = (type: 'remap' | 'filter', text: string): Compiled =>
  type === 'filter' ? compileCondition(text) : compileProgram(text)

/** The code of the compiler for error handling of an expression that cannot fail. */
const needless = 651
/** Maximum number of passes, because a removal can make further error handling needless. */
const maxPasses = 20

/** The program without needless error handling, and what the compiler says about it. */
export function simplified(
  type: 'remap' | 'filter',
  given: string,
): { readonly text: string; readonly compiled: Compiled } {
  let text = given
  let compiled = compiledText(type, text)
  for (let pass = 0; pass < maxPasses && !compiled.ok; pass++) {
    const next = without(text, compiled)
    if (next === text) break
    text = next
    compiled = compiledText(type, text)
  }
  return { text, compiled }
}

/** Cuts the second operand of each needless `??`, from the end to the beginning. */
function without(text: string, compiled: Compiled): string {
  if (compiled.ok || !('diagnostics' in compiled)) return text
  const cuts = compiled.diagnostics.flatMap(({ code, labels }): (readonly [number, number])[] => {
    const [first, second, sign] = labels.map(({ span }) => span)
    if (code !== needless || first === undefined || second === undefined || sign === undefined) return []
    return text.slice(sign[0], sign[1]) === '??' ? [[first[1], second[1]]] : []
  })
  let result = text
  let start = text.length
  for (const [from, to] of cuts.toSorted(([one], [next]) => next - one)) {
    if (to > start) continue
    result = result.slice(0, from) + result.slice(to)
    start = from
  }
  return result
}
