// Values in Go templates and their expressions in the remap language.

import { textLiteral } from '@penstock/agent/config'

/** The value of an operand or a call. */
export interface Value {
  /** `number` is a literal. */
  readonly type: 'text' | 'number' | 'integer' | 'float' | 'condition' | 'list'
  readonly expression: string
  /**
   * Whether the value can be missing. The expression of a `field` is the path of an extracted value. Other expressions return null if the
   * value is missing. An extracted value that is null is missing, too: the old agents make a template only of values that are texts.
   */
  readonly missing?: 'field' | 'null'
  /** The text of a literal. */
  readonly constant?: string
  /** Whether the items of a list have names: `_0`, `_1` and so on. */
  readonly hasNames?: true
}

export const text = (expression: string): Value => ({ type: 'text', expression })
export const condition = (expression: string): Value => ({ type: 'condition', expression })
export const integer = (expression: string): Value => ({ type: 'integer', expression })
export const float = (expression: string): Value => ({ type: 'float', expression })
export const list = (expression: string): Value => ({ type: 'list', expression })
/** A text, or null if it is missing. */
export const perhaps = (expression: string): Value => ({ type: 'text', expression, missing: 'null' })

export const isWhole = ({ type, expression }: Value): boolean =>
  type === 'integer' || (type === 'number' && !expression.includes('.'))
export const isFloat = ({ type, expression }: Value): boolean =>
  type === 'float' || (type === 'number' && expression.includes('.'))
export const isNumber = (value: Value): boolean => isWhole(value) || isFloat(value)

/** Go's text for a number of the type `float64`. */
const floatText = (expression: string) => `replace(to_string(${expression}), r'\\.0$', "")`

/** The text of a value that is not missing, as Go prints it. */
function textOf({ type, expression }: Value): string {
  switch (type) {
    case 'text':
      return expression
    case 'number':
      return textLiteral(expression.includes('.') ? String(Number(expression)) : expression)
    case 'integer':
    case 'condition':
      return `to_string(${expression})`
    case 'float':
      return floatText(expression)
    case 'list':
      throw new Error('a list is used as text')
  }
}

/** A text; null if the value is missing. */
export function nullable(value: Value): string {
  if (value.missing === undefined) return textOf(value)
  const { expression } = value
  return value.missing === 'null'
    ? expression
    : `({ if is_string(${expression}) { string!(${expression}) } else { null } })`
}

/** A text; empty if the value is missing. */
export const orEmpty = (value: Value): string =>
  value.missing === undefined ? textOf(value) : `string!(${value.expression} || "")`

/** A text; `instead` if the value is missing. */
export function orElse(value: Value, instead: string): string {
  if (value.missing === undefined) return textOf(value)
  const { expression } = value
  return value.missing === 'null'
    ? `string!(${expression} || ${textLiteral(instead)})`
    : `(string(${expression}) ?? ${textLiteral(instead)})`
}

/** Whether a value is neither empty nor missing, zero or false. */
export function testOf(value: Value): string {
  switch (value.type) {
    case 'condition':
      return value.expression
    case 'number':
      return String(Number(value.expression) !== 0)
    case 'integer':
      return `${value.expression} != 0`
    case 'float':
      return `${value.expression} != 0.0`
    case 'list':
      return `length(${value.expression}) != 0`
    case 'text':
      return `${orEmpty(value)} != ""`
  }
}
