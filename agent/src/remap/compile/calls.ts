// Function calls: evaluates arguments in order, tests kinds that the checker does not know, and handles closures and
// failures.

import type { PathSegment } from '../../event/path.ts'
import { Bytes } from '../../event/value.ts'
import type { Parameter } from '../function.ts'
import { mayBeLarge } from '../growth.ts'
import { isOfKind, kinds } from '../kind.ts'
import { some, type Typed } from '../typed.ts'
import { closureOf } from './closures.ts'
import { folded, takesBytes, takesEverything } from './folding.ts'
import type { Fail, Generation, Node } from './generation.ts'
import { read } from './places.ts'
import type { CallPlace } from './runtime.ts'
import { hasStatements } from './search.ts'

export function call(g: Generation, typed: Node<'call'>, fail: Fail): string {
  const { declaration, closure } = typed
  const prefix = g.out.hoist(callPlace(g, typed.span, declaration.name))
  const values = argumentValues(g, typed, prefix, fail)
  if (closure !== undefined) values.push(closureOf(g, closure, typed.span, declaration.name))
  const counts = g.budget.counts && declaration.looksAtTypeOnly !== true
  if (counts && (g.effects.inClosure || g.budget.weighs)) countUse(g, typed, values)
  if (declaration.writesMetadata === true) g.effects.writesMetadata = true
  const result = g.out.name()
  g.out.emit(`const ${result} = ${g.out.hoist(typed.run)}(${values.join(', ')});`)
  testFailure(g, typed, result, prefix, fail)
  if (counts && mayBeLarge(typed.kind)) {
    const unless = declaration.growth === 'product' ? '' : g.budget.unlessLittle()
    g.budget.limitMade(result, unless, typed.span, declaration.name)
  }
  return result
}

/** The values of the parameters; arguments are evaluated in source order. */
function argumentValues(g: Generation, typed: Node<'call'>, prefix: string, fail: Fail): string[] {
  const { parameters } = typed.declaration
  const failIn: Fail = (error, counts) => fail(`framed(${prefix}, ${error})`, counts)
  const values: string[] = parameters.map((parameter) =>
    parameter.default === undefined ? 'undefined' : g.out.literal(parameter.default),
  )
  const lastEffect = typed.order.findLastIndex((index) => {
    const argument = typed.args[index]
    return argument !== undefined && (some(argument, hasStatements) || needsTest(g, typed, index))
  })
  typed.order.forEach((index, position) => {
    const argument = typed.args[index] as Typed
    const parameter = parameters[index] as Parameter
    if (parameter.query === true) {
      values[index] = 'undefined'
      return
    }
    // The type is known without the value.
    if (typed.declaration.typeOfArguments === true) {
      values[index] = 'undefined'
      return
    }
    let value = g.expression(argument, failIn, true)
    if (position < lastEffect) value = g.out.temp(value)
    values[index] = typedArgument(g, argument, parameter, value, prefix, fail)
  })
  return values
}

/** Counts arguments that may be large. */
function countUse(g: Generation, typed: Node<'call'>, values: string[]): void {
  for (const index of typed.order) {
    const argument = typed.args[index]
    if (argument === undefined || argument.constant !== undefined || !mayBeLarge(argument.kind)) continue
    if (values[index] === 'undefined') continue
    const value = g.out.temp(values[index] as string)
    values[index] = value
    g.budget.limitUse([value], typed.span, typed.declaration.name)
  }
}

/** Ends the expression, the closure or the run if the call has failed. */
function testFailure(g: Generation, typed: Node<'call'>, result: string, prefix: string, fail: Fail): void {
  const { declaration, closure } = typed
  let leave = closure === undefined ? '' : `if (${result}.outcome !== 'error') return leaving(${result}); `
  if (declaration.growth === 'product') {
    g.effects.mayEnd()
    const place = g.out.hoist(g.placeOf(typed.span, declaration.name))
    leave = `if (${result} === tooMuch) return placedBudget(${place}); ${leave}`
    if (g.budget.counts) leave += `if ((M.bytes -= ${result}.made) < 0) return M.over(${place}); `
  }
  if (closure !== undefined && some(closure.body, (node) => node.op === 'return')) g.effects.mayEnd()
  const counts = typed.canFail || declaration.failsUnannounced === true
  g.out.emit(`if (${result} instanceof E) { ${leave}${fail(`framed(${prefix}, ${result})`, counts)} }`)
}

function callPlace(g: Generation, span: readonly [number, number], name: string): CallPlace {
  const place = g.placeOf(span, name)
  return { prefix: `function call error for "${name}" at (${place.start}:${place.end}): `, place }
}

function needsTest(g: Generation, typed: Node<'call'>, index: number): boolean {
  const argument = typed.args[index] as Typed
  const parameter = typed.declaration.parameters[index]
  return parameter !== undefined && !(g.trusted && argument.kind.within(parameter.kind))
}

/** Tests the kind of an argument if the checker does not know it, and converts bytes that are not UTF-8 to text. */
function typedArgument(
  g: Generation,
  argument: Typed,
  parameter: Parameter,
  value: string,
  prefix: string,
  fail: Fail,
): string {
  const { kind } = parameter
  if (takesEverything(parameter)) return value
  const constant = folded(argument)
  if (constant !== undefined && isOfKind(constant, kind)) {
    return constant instanceof Bytes && !takesBytes(parameter) ? g.out.literal(constant.toString()) : value
  }
  const known = parameter.ownCheck === true || (g.trusted && (argument.kind.isNever || argument.kind.within(kind)))
  const textual =
    !takesBytes(parameter) && kind.contains(kinds.string) && (!g.trusted || argument.kind.overlaps(kinds.string))
  if (known && !textual) return value
  const name = g.out.name()
  g.out.emit(`let ${name} = ${value};`)
  const expected = JSON.stringify(kind.toString())
  const test = `isOfKind(${name}, ${g.out.hoist(kind)})`
  const reject = `{ ${fail(`mismatch(${prefix}, ${expected}, ${name})`, true)} }`
  if (kind.is(kinds.string)) {
    const bytes = takesBytes(parameter) ? '' : `${name} = ${name}.toString(); `
    g.out.emit(
      `if (typeof ${name} !== 'string') { if (${name} instanceof Bytes) { ${bytes}} else ${known ? '{}' : reject} }`,
    )
    return name
  }
  if (!known) g.out.emit(`if (!${test}) ${reject}`)
  if (textual) g.out.emit(`if (${name} instanceof Bytes) ${name} = ${name}.toString();`)
  return name
}

export function unnested(g: Generation, typed: Node<'unnest'>, fail: Fail): string {
  const { at } = typed
  let base: string
  let segments: readonly PathSegment[] = []
  if (at.op === 'read') {
    segments = at.place.segments
    base = read(g, { ...at, place: { ...at.place, segments: [] } }, true)
  } else if (at.op === 'below') {
    segments = at.segments
    base = g.expression(at.base, fail, true)
  } else base = g.expression(at, fail, true)
  if (g.budget.counts) {
    base = g.out.temp(base)
    g.budget.limit(`M.unnests(${base}, ${g.out.hoist(segments)})`, typed.span, 'unnest')
  }
  const result = g.out.name()
  g.out.emit(`const ${result} = unnest(${base}, ${g.out.hoist(segments)});`)
  const prefix = g.out.hoist(callPlace(g, typed.span, 'unnest'))
  g.out.emit(`if (${result} instanceof E) { ${fail(`framed(${prefix}, ${result})`, true)} }`)
  return result
}
