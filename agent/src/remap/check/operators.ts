// Operators: the kind of their result, and whether they can fail, by the kinds of both operands.

import { Float, type Value } from '../../event/value.ts'
import type { Binary, Expression, Span } from '../ast.ts'
import { isFailure } from '../function.ts'
import { type Kind, kinds, mergedObjects } from '../kind.ts'
import { add, divide, multiply, subtract } from '../operations.ts'
import { some, type Typed } from '../typed.ts'
import type { CheckContext } from './context.ts'
import { copyOf, mergeInto, type State } from './state.ts'

const comparisons = new Set(['==', '!=', '<', '<=', '>', '>='])

export function checkNot(check: CheckContext, node: Extract<Expression, { node: 'not' }>, state: State): Typed {
  const operand = check.expression(node.operand, state)
  if (!isOnly(operand.kind, kinds.boolean)) {
    check.report(660, 'non-boolean negation', [
      { primary: true, span: node.operator, message: 'negation only works on boolean values' },
      { primary: false, span: node.operand.span, message: `this expression resolves to ${operand.kind}` },
    ])
  }
  return { op: 'not', operand, kind: kinds.boolean, fallible: operand.fallible, constant: undefined, span: node.span }
}

export function checkBinary(check: CheckContext, node: Binary, state: State): Typed {
  const before = check.pending.length
  const left = check.expression(node.left, state)
  if (node.operator === '??') check.pending.length = before
  // The right operand may not run at all.
  const lazy = node.operator === '??' || node.operator === '||' || node.operator === '&&'
  const rightState = lazy ? copyOf(state) : state
  const right = check.expression(node.right, rightState)
  if (lazy) {
    const runs = rightRuns(node.operator, left)
    if (runs === 'always') Object.assign(state, rightState)
    else if (runs === 'perhaps') mergeInto(state, rightState)
  }
  const pending = check.pending.splice(before)
  if (comparisons.has(node.operator) && node.left.node === 'binary' && comparisons.has(node.left.operator)) {
    check.report(650, 'comparison operators cannot be chained', [
      { primary: true, span: node.operatorSpan, message: '' },
    ])
  }
  if (node.operator === '??' && !left.fallible) {
    check.report(651, 'unnecessary error coalescing operation', [
      { primary: true, span: node.left.span, message: 'this expression cannot fail' },
      { primary: false, span: node.right.span, message: 'this expression never resolves' },
      { primary: false, span: node.operatorSpan, message: 'remove this error coalescing operation' },
    ])
  }
  const operation = typedOperation(check, node, left, right)
  // An operand that never runs, or whose failure is handled, is not a cause.
  if (operation.fallible) check.pending.push(...pending)
  return operation
}

export function typedOperation(
  check: CheckContext,
  node: Pick<Binary, 'operator' | 'span'> & { left: { span: Span }; right: { span: Span } },
  left: Typed,
  right: Typed,
): Typed {
  const result: Result = (kind, fallible, value, isNominal = false) => ({
    op: 'binary',
    operator: node.operator,
    left,
    right,
    isNominal,
    kind,
    fallible,
    constant: value,
    span: node.span,
  })
  const l = left.kind
  const r = right.kind
  const operands = left.fallible || right.fallible
  switch (node.operator) {
    case '??':
      return result(l.or(r), right.fallible)
    case '||': {
      const runs = rightRuns('||', left)
      if (runs === 'always') return result(r, operands)
      if (runs === 'never') {
        // A missing value counts as true here, although it is null at run time.
        const differs = l.overlaps(kinds.undefined) && (!r.within(l) || some(right, hasEffects))
        return result(l, left.fallible, undefined, differs)
      }
      return result(l.without(kinds.null).or(r), operands)
    }
    case '&&': {
      const runs = rightRuns('&&', left)
      if (runs === 'never') return result(kinds.boolean, left.fallible)
      if (runs === 'always') return result(kinds.boolean, right.fallible)
      return result(kinds.boolean, operands || isOutside(left, right, kinds.null.or(kinds.boolean)))
    }
    case '==':
    case '!=':
      return result(kinds.boolean, operands)
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const same =
        (isOnly(l, kinds.string) && isOnly(r, kinds.string)) ||
        (isOnly(l, kinds.timestamp) && isOnly(r, kinds.timestamp))
      return result(kinds.boolean, operands || (!same && isOutside(left, right, kinds.number)))
    }
    case '|': {
      for (const [side, kind] of [
        [node.left, l],
        [node.right, r],
      ] as const) {
        if (!isOnly(kind, kinds.object)) {
          check.report(652, 'only objects can be merged', [
            { primary: true, span: side.span, message: `this expression resolves to the kind ${kind}` },
          ])
        }
      }
      return result(mergedObjects(l, r), operands)
    }
    case '/':
      return result(kinds.float, operands || !isSafeDivision(l, right.constant), fold(divide, left, right))
    case '+':
    case '-':
    case '*':
      return arithmetic(node.operator, left, right, result)
  }
}

/** Whether the right operand of an operator that may skip it runs, if the left one decides that. */
function rightRuns(operator: Binary['operator'], left: Typed): 'always' | 'never' | 'perhaps' {
  if (operator === '??') return 'perhaps'
  const isFalse = isOnly(left.kind, kinds.null) || left.constant === false
  if (operator === '&&') return isFalse ? 'never' : left.constant === true ? 'always' : 'perhaps'
  if (isFalse) return 'always'
  return left.constant === true || !left.kind.overlaps(kinds.null.or(kinds.boolean)) ? 'never' : 'perhaps'
}

function hasEffects({ op }: Typed): boolean {
  return op === 'assign' || op === 'assign-or-error' || op === 'del'
}

/** Builds the result of an operator: its kind, whether it can fail, and its value if that is known. */
type Result = (kind: Kind, fallible: boolean, value?: Value, isNominal?: boolean) => Typed

function arithmetic(operator: '+' | '-' | '*', left: Typed, right: Typed, result: Result): Typed {
  const operands = left.fallible || right.fallible
  const value = fold(operator === '+' ? add : operator === '-' ? subtract : multiply, left, right)
  if (operator === '+' && (isOnly(left.kind, kinds.string) || isOnly(right.kind, kinds.string))) {
    return result(kinds.string, operands || isOutside(left, right, kinds.string.or(kinds.null)))
  }
  if (isOnly(left.kind, kinds.float) || isOnly(right.kind, kinds.float)) {
    const bothConstant = left.constant !== undefined && right.constant !== undefined
    return result(
      kinds.float,
      operands || isOutside(left, right, kinds.number) || (bothConstant && value === undefined),
      value,
    )
  }
  if (isOnly(left.kind, kinds.integer) && isOnly(right.kind, kinds.integer))
    return result(kinds.integer, operands, value)
  const mixed =
    (isOnly(left.kind, kinds.string) && isOnly(right.kind, kinds.integer)) ||
    (isOnly(left.kind, kinds.integer) && isOnly(right.kind, kinds.string))
  if (operator === '*' && mixed) return result(kinds.string, operands)
  return result(operator === '-' ? kinds.number : kinds.string.or(kinds.number), true)
}

function isSafeDivision(dividend: Kind, divisor: Value | undefined): boolean {
  if (!isOnly(dividend, kinds.integer) && !isOnly(dividend, kinds.float)) return false
  if (typeof divisor === 'bigint') return true
  const number = divisor instanceof Float ? divisor.value : divisor
  return typeof number === 'number' && number !== 0 && Number.isFinite(number)
}

function isOutside(left: Typed, right: Typed, kind: Kind): boolean {
  return !within(left.kind, kind) || !within(right.kind, kind)
}

/** Whether every possible value has the kind; an expression that never has a value has any kind. */
function isOnly(kind: Kind, other: Kind): boolean {
  return kind.isNever || kind.is(other)
}

function within(kind: Kind, other: Kind): boolean {
  return kind.isNever || kind.within(other)
}

function fold(
  operation: (left: Value, right: Value) => ReturnType<typeof add>,
  left: Typed,
  right: Typed,
): Value | undefined {
  const isNumber = (value: Value | undefined): value is Value =>
    typeof value === 'number' || typeof value === 'bigint' || value instanceof Float
  if (!isNumber(left.constant) || !isNumber(right.constant)) return undefined
  const result = operation(left.constant, right.constant)
  return isFailure(result) ? undefined : result
}
