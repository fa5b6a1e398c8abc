// Values known at compile time: they become constants of the generated code.

import { Bytes, type Value } from '../../event/value.ts'
import { isFailure, type Parameter } from '../function.ts'
import { isOfKind, kinds } from '../kind.ts'
import type { Typed } from '../typed.ts'

/** The value if it depends only on literals. */
export function folded(typed: Typed): Value | undefined {
  if (typed.constant !== undefined && isLiteral(typed)) return typed.constant
  if (typed.op !== 'call' || !typed.declaration.pure || typed.closure !== undefined) return undefined
  if (typed.declaration.parameters.some((parameter) => parameter.query === true)) return undefined
  const values: (Value | undefined)[] = []
  for (const [index, parameter] of typed.declaration.parameters.entries()) {
    const argument = typed.args[index]
    if (argument === undefined) {
      values.push(parameter.default)
      continue
    }
    const value = folded(argument)
    if (value === undefined || !isOfKind(value, parameter.kind)) return undefined
    values.push(value instanceof Bytes && !takesBytes(parameter) ? value.toString() : value)
  }
  const result = typed.run(...(values as Value[]))
  // Constants built from constants could grow without limit during compilation.
  return isFailure(result) || slotsOf(result) > maxFoldedSlots ? undefined : result
}

/** Length of a literal text. */
export function textLength(typed: Typed): number | undefined {
  const value = folded(typed)
  return typeof value === 'string' ? value.length : undefined
}

const maxFoldedSlots = 65_536

function slotsOf(value: Value): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0
}

export function takesEverything({ kind }: Parameter): boolean {
  return kind.contains(kinds.any.without(kinds.undefined))
}

/** Whether the function receives strings that are not UTF-8 unchanged. */
export function takesBytes(parameter: Parameter): boolean {
  return parameter.bytes === true || takesEverything(parameter)
}

function isLiteral(typed: Typed): boolean {
  switch (typed.op) {
    case 'constant':
      return true
    case 'array':
      return typed.items.every(isLiteral)
    case 'object':
      return typed.fields.every(([, value]) => isLiteral(value))
    case 'binary':
      return isLiteral(typed.left) && isLiteral(typed.right)
    default:
      return false
  }
}
