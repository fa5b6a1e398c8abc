// Conditions and operators: which operands run, and the result of their values.

import { mayBeLarge } from '../growth.ts'
import { kinds } from '../kind.ts'
import type { Typed } from '../typed.ts'
import { folded } from './folding.ts'
import type { Fail, Generation, Node } from './generation.ts'
import { operands } from './operands.ts'

export function conditional(g: Generation, typed: Node<'if'>, fail: Fail, wanted: boolean): string {
  const predicate = g.expression(typed.predicate, fail, true)
  const result = wanted ? g.out.name() : 'null'
  if (wanted) g.out.emit(`let ${result} = null;`)
  g.out.emit(g.trusted ? `if (${predicate}) {` : `if (${predicate} === true) {`)
  branch(g, typed.consequent, fail, wanted, result)
  if (typed.alternative !== undefined) {
    g.out.emit('} else {')
    branch(g, typed.alternative, fail, wanted, result)
  }
  g.out.emit('}')
  return result
}

function branch(g: Generation, typed: Typed, fail: Fail, wanted: boolean, result: string): void {
  g.effects.branches++
  const value = g.expression(typed, fail, wanted)
  if (wanted && !typed.kind.isNever) g.out.emit(`${result} = ${value};`)
  g.effects.branches--
}

export function binary(g: Generation, typed: Node<'binary'>, fail: Fail): string {
  const { operator, left, right } = typed
  switch (operator) {
    case '??':
      return coalesce(g, left, right, fail)
    case '||': {
      const value = g.out.temp(g.expression(left, fail, true))
      const result = g.out.name()
      g.out.emit(`let ${result} = ${value};`)
      g.out.emit(`if (${value} === null || ${value} === false) {`)
      branch(g, right, fail, true, result)
      g.out.emit('}')
      return result
    }
    case '&&':
      return and(g, typed, fail)
  }
  let [a, b] = operands(g, [left, right], fail) as [string, string]
  if (g.budget.counts && g.effects.inClosure && (mayBeLarge(left.kind) || mayBeLarge(right.kind))) {
    a = g.out.temp(a)
    b = g.out.temp(b)
    // Comparisons recurse as deeply as their operands.
    if (operator === '==' || operator === '!=') g.budget.limitUse([a, b], typed.span, operator)
  }
  switch (operator) {
    case '==':
      return equality(left, right, a, b)
    case '!=':
      return `!${equality(left, right, a, b)}`
    case '|': {
      if (!g.budget.counts) return `mergeObjects(${a}, ${b})`
      const merged = g.out.temp(`mergeObjects(${a}, ${b})`)
      g.budget.limitMade(merged, g.budget.unlessLittle(), typed.span, '|')
      return merged
    }
  }
  const names = {
    '+': 'add',
    '-': 'subtract',
    '*': 'multiply',
    '/': 'divide',
    '<': 'less',
    '<=': 'lessOrEqual',
    '>': 'greater',
    '>=': 'greaterOrEqual',
  } as const
  const comparison = operator.startsWith('<') || operator.startsWith('>')
  if (comparison && !typed.fallible && g.trusted) return `${names[operator]}(${a}, ${b})`
  const repeats = g.budget.counts && operator === '*' && mayBeLarge(typed.kind)
  const joins = g.budget.counts && operator === '+' && mayBeLarge(typed.kind)
  if (repeats || joins) {
    a = g.out.temp(a)
    b = g.out.temp(b)
  }
  if (repeats) g.budget.limit(`M.repeats(${a}, ${b})`, typed.span, operator)
  const result = g.out.name()
  g.out.emit(`const ${result} = ${names[operator]}(${a}, ${b});`)
  if (joins) g.budget.limitJoined([left, a], [right, b], result, typed.span)
  // Sums of floats may be NaN although the checker calls them infallible.
  const counts = typed.fallible || !g.trusted || typed.kind.overlaps(kinds.float) || operator === '*'
  const place = g.out.hoist(g.placeOf(typed.span, operator))
  g.out.emit(`if (${result} instanceof E) { ${fail(`placed(${place}, ${result})`, counts)} }`)
  return result
}

function equality(left: Typed, right: Typed, a: string, b: string): string {
  const value = folded(right) ?? undefined
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return `(${a} === ${b})`
  const other = folded(left)
  if (other === null || typeof other === 'string' || typeof other === 'boolean') return `(${a} === ${b})`
  return `equals(${a}, ${b})`
}

function and(g: Generation, typed: Node<'binary'>, fail: Fail): string {
  const { left, right } = typed
  const booleans = g.trusted && left.kind.is(kinds.boolean) && right.kind.is(kinds.boolean)
  const a = g.expression(left, fail, true)
  g.effects.branches++
  const second = g.out.apart(() => g.expression(right, fail, true))
  g.effects.branches--
  if (booleans && second.lines.length === 0) return `(${a} && ${second.value})`
  const name = g.out.temp(a)
  const result = g.out.name()
  g.out.emit(`let ${result} = false;`)
  g.out.emit(`if (${name} !== null && ${name} !== false) {`)
  g.out.lines.push(...second.lines)
  if (right.kind.isNever) {
    g.out.emit('}')
    return result
  }
  const b = g.out.temp(second.value)
  g.out.emit(`if (${name} === true && (${b} === null || typeof ${b} === 'boolean')) ${result} = ${b} === true;`)
  g.out.emit(`else { ${fail(`invalidAnd(${name}, ${b})`, typed.fallible || !g.trusted)} }`)
  g.out.emit('}')
  return result
}

function coalesce(g: Generation, left: Typed, right: Typed, fail: Fail): string {
  const result = g.out.name()
  const done = g.out.label()
  const failed = g.out.label()
  g.out.emit(`let ${result} = null;`)
  g.out.emit(`${done}: { ${failed}: {`)
  branch(g, left, () => `break ${failed};`, true, result)
  g.out.emit(`break ${done}; }`)
  branch(g, right, fail, true, result)
  g.out.emit('}')
  return result
}
