// Generates the code of an expression, by its operation.

import { kinds } from '../kind.ts'
import type { Typed } from '../typed.ts'
import { call, unnested } from './calls.ts'
import { folded } from './folding.ts'
import type { Fail, Generation, Node } from './generation.ts'
import { operands, sequence } from './operands.ts'
import { binary, conditional } from './operators.ts'
import { below, del, read, write } from './places.ts'

/**
 * Emits preparatory code and returns a JavaScript expression for the value, which must be used immediately and only
 * once.
 */
export function expression(g: Generation, typed: Typed, fail: Fail, wanted: boolean): string {
  const constant = folded(typed)
  if (constant !== undefined) return g.out.literal(constant)
  switch (typed.op) {
    case 'constant':
      return g.out.literal(typed.value)
    case 'read':
      return wanted ? read(g, typed, true) : 'null'
    case 'below': {
      const base = g.expression(typed.base, fail, true)
      return `(${below(g, base, typed.base.kind, typed.segments)} ?? null)`
    }
    case 'block':
      return sequence(g, typed.body, fail, wanted)
    case 'array':
      g.budget.literalMade(typed.items.length)
      return `[${operands(g, typed.items, fail).join(', ')}]`
    case 'object': {
      g.budget.literalMade(typed.fields.length)
      const values = operands(
        g,
        typed.fields.map(([, value]) => value),
        fail,
      )
      const members = typed.fields.map(([name], index) =>
        name === '__proto__' ? `["__proto__"]: ${values[index]}` : `${JSON.stringify(name)}: ${values[index]}`,
      )
      return `({ ${members.join(', ')} })`
    }
    case 'if':
      return conditional(g, typed, fail, wanted)
    case 'binary':
      return binary(g, typed, fail)
    case 'not':
      return `!${g.expression(typed.operand, fail, true)}`
    case 'assign': {
      const fresh = !wanted && isFresh(typed.value)
      const value = g.expression(typed.value, fail, true)
      const name = wanted || typed.to.segments.length > 0 ? g.out.temp(value) : value
      write(g, typed.to, name, typed.rootKind, fresh)
      return wanted ? name : 'null'
    }
    case 'assign-or-error':
      return assignOrError(g, typed, fail, wanted)
    case 'call':
      return call(g, typed, fail)
    case 'del':
      return del(g, typed, fail, wanted)
    case 'exists': {
      if (typed.at.op === 'read') return `(${read(g, typed.at, false)} !== undefined)`
      if (typed.at.op === 'below') {
        const base = g.expression(typed.at.base, fail, true)
        return `(${below(g, base, typed.at.base.kind, typed.at.segments)} !== undefined)`
      }
      return 'true'
    }
    case 'unnest':
      return unnested(g, typed, fail)
    case 'abort': {
      const message = typed.message === undefined ? 'null' : g.expression(typed.message, fail, true)
      g.effects.mayEnd()
      g.out.emit(`return aborted(${message});`)
      return 'null'
    }
    case 'return': {
      const value = g.expression(typed.value, fail, true)
      if (g.effects.inClosure) g.out.emit(`return new E('', 'return', null, ${value});`)
      else {
        const name = g.out.temp(value)
        g.leave([typed])
        g.out.emit(`return ${name};`)
      }
      return 'null'
    }
  }
}

function isFresh(typed: Typed): boolean {
  if (folded(typed) !== undefined) return false
  return typed.op === 'object' || (typed.op === 'call' && typed.declaration.fresh === true)
}

function assignOrError(g: Generation, typed: Node<'assign-or-error'>, _fail: Fail, wanted: boolean): string {
  const error = g.out.name()
  const done = g.out.label()
  const failed = g.out.label()
  const result = wanted ? g.out.name() : 'null'
  g.out.emit(`let ${error} = null;`)
  if (wanted) g.out.emit(`let ${result} = null;`)
  g.out.emit(`${done}: { ${failed}: {`)
  g.effects.branches++
  const value = g.out.temp(g.expression(typed.value, (problem) => `${error} = ${problem}; break ${failed};`, true))
  const fresh = !wanted && isFresh(typed.value)
  write(g, typed.to, value, typed.rootKind, fresh)
  write(g, typed.error, 'null', typed.error.root === 'event' ? kinds.any : typed.rootKind, false)
  if (wanted) g.out.emit(`${result} = ${value};`)
  g.out.emit(`break ${done}; }`)
  write(g, typed.to, g.out.literal(typed.default), typed.rootKind, false)
  const message = g.out.temp(`${error}.message`)
  write(g, typed.error, message, kinds.any, false)
  if (wanted) g.out.emit(`${result} = ${message};`)
  g.out.emit('}')
  g.effects.branches--
  return result
}
