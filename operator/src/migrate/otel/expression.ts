// Translates expressions of operators to remap. As in the collector, an expression that fails is false.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'
import { type Expression, UnknownExpression } from './expression-parser.ts'
import { fieldAt, roots } from './record.ts'
import { regexLiteral } from './text.ts'

/** The names of types in the language Expr, with the functions that test for them. */
const types = [
  ['null', 'nil'],
  ['boolean', 'bool'],
  ['integer', 'int'],
  ['float', 'float'],
  ['string', 'string'],
  ['array', 'array'],
] as const

/** The name of the type of a field. */
function typeText(field: string): string {
  const tests = types.map(([name, text]) => `if is_${name}(${field}) { "${text}" } else `)
  return `({ ${tests.join('')}{ "map" } })`
}

const numberCalls: Readonly<Record<string, string>> = { int: 'to_int', float: 'to_float' }

const isText = (expression: Expression) => expression.type === 'literal' && typeof expression.value === 'string'

/**
 * The expression as a condition, which is true or false for any event.
 * @param whenFailing the result if a part of the expression fails; `not` inverts it
 */
export function conditionOf(expression: Expression, whenFailing = false): string {
  switch (expression.type) {
    case 'literal':
      return expression.value === true ? 'true' : 'false'
    case 'path':
      return whenFailing ? `(${fieldAt(expression.path)} != false)` : `(${fieldAt(expression.path)} == true)`
    case 'not':
      return `!${conditionOf(expression.value, !whenFailing)}`
    case 'choice':
      return choiceOf(expression, (side) => conditionOf(side, whenFailing))
    case 'operation':
      return operationOf(expression.operator, expression.left, expression.right, whenFailing)
    default:
      throw new UnknownExpression(`\`${expression.type}\` is not a condition`)
  }
}

function choiceOf(
  { test, yes, no }: Expression & { readonly type: 'choice' },
  textOfSide: (side: Expression) => string,
): string {
  const condition = test === undefined ? `${valueText(yes)} != null` : conditionOf(test)
  return `({ if ${condition} { ${textOfSide(yes)} } else { ${textOfSide(no)} } })`
}

/** Operators on texts, with the calls that replace them. */
const textCalls: Readonly<Record<string, string>> = {
  contains: 'contains',
  startsWith: 'starts_with',
  endsWith: 'ends_with',
}

/** A condition on texts. Without a value it is false, and for other values it fails. */
function onTexts(fields: readonly string[], call: string, whenFailing: boolean): string {
  if (!whenFailing) return `(${[...fields.map((field) => `is_string(${field})`), call].join(' && ')})`
  const given = fields.map((field) => `${field} != null`)
  const others = fields.map((field) => `!is_string(${field})`)
  return fields.length === 0 ? `(${call})` : `(${given.join(' && ')} && (${[...others, call].join(' || ')}))`
}

function operationOf(operator: string, left: Expression, right: Expression, whenFailing: boolean): string {
  switch (operator) {
    case 'or':
    case '||':
    case 'and':
    case '&&':
      return bothOf(/^(?:and|&&)$/.test(operator), left, right, whenFailing)
    case '==':
    case '!=': {
      const others = [left, right].filter(({ type }) => type === 'literal')
      const isNil = others.some((other) => other.type === 'literal' && other.value === null)
      const absent = others.length === 0 ? undefined : isNil === (operator === '==')
      const code = `(${valueText(left)} ${operator} ${valueText(right)})`
      return guarded(code, [left, right], absent, whenFailing)
    }
    case '<':
    case '<=':
    case '>':
    case '>=':
      if (left.type === 'literal' && right.type === 'literal') throw new UnknownExpression('both sides are constants')
      // Remap rejects error handling for an operation that cannot fail.
      return isOrdered(left) !== undefined && isOrdered(left) === isOrdered(right)
        ? `(${valueText(left)} ${operator} ${valueText(right)})`
        : `((${valueText(left)} ${operator} ${valueText(right)}) ?? ${whenFailing})`
    case 'matches': {
      if (right.type !== 'literal' || typeof right.value !== 'string') {
        throw new UnknownExpression('the expression after `matches` must be a text')
      }
      const { code, fields } = textOf(left)
      return guarded(
        onTexts(fields, `match(${code}, ${regexLiteral(right.value)})`, whenFailing),
        [left],
        false,
        whenFailing,
      )
    }
    case 'in':
      if (right.type === 'list') return guarded(itemTest(left, right.items), [left], false, whenFailing)
      if (right.type === 'path' && left.type === 'literal' && typeof left.value === 'string') {
        return guarded(`exists(${fieldAt([...right.path, left.value])})`, [right], false, whenFailing)
      }
      if (right.type === 'operation' && right.operator === '..') {
        const isFailing = isOrdered(left) === 'number' ? '' : ' ?? false'
        const [from, to] = [valueText(right.left), valueText(right.right)]
        const tests = [`((${valueText(left)} >= ${from})${isFailing})`, `((${valueText(left)} <= ${to})${isFailing})`]
        return guarded(`(${tests.join(' && ')})`, [left], false, whenFailing)
      }
      throw new UnknownExpression('the right side of `in` must be a list or a field')
    default: {
      const call = Object.hasOwn(textCalls, operator) ? textCalls[operator] : undefined
      if (call === undefined) throw new UnknownExpression(`\`${operator}\` is not a condition`)
      const [a, b] = [textOf(left), textOf(right)]
      const code = onTexts([...a.fields, ...b.fields], `${call}(${a.code}, ${b.code})`, whenFailing)
      return guarded(code, [left, right], false, whenFailing)
    }
  }
}

/** The paths that an expression reads. */
export function pathsIn(expression: Expression): readonly (Expression & { type: 'path' })[] {
  switch (expression.type) {
    case 'path':
      return [expression]
    case 'not':
      return pathsIn(expression.value)
    case 'operation':
      return [...pathsIn(expression.left), ...pathsIn(expression.right)]
    case 'list':
      return expression.items.flatMap(pathsIn)
    case 'call':
      return expression.values.flatMap(pathsIn)
    case 'choice':
      return [expression.test, expression.yes, expression.no].flatMap((each) =>
        each === undefined ? [] : pathsIn(each),
      )
    default:
      return []
  }
}

/** A condition for events in which a path has a key below something else than an object; undefined if there are none. */
function pathFailure({ path, isSafe = false }: Expression & { type: 'path' }): string | undefined {
  const around = path.slice(0, -1)
  const isRoot = Object.values(roots).some((root) => root.join() === around.join() && root[0] !== 'message')
  if (around.length === 0 || isRoot || Object.values(roots).some((root) => root.join() === path.join()))
    return undefined
  const at = fieldAt(around)
  const test = typeof path.at(-1) === 'number' ? `!exists(${fieldAt(path)})` : `!is_object(${at})`
  return isSafe ? `(${at} != null && ${test})` : test
}

/**
 * A condition that also fails if it reads a key below something else than an object.
 * @param absent its result if the value is missing
 */
function guarded(
  code: string,
  sides: readonly Expression[],
  absent: boolean | undefined,
  whenFailing: boolean,
): string {
  const failures = [...new Set(sides.flatMap(failuresOf))]
  if (absent === whenFailing || failures.length === 0) return code
  return whenFailing ? `(${[...failures, code].join(' || ')})` : `(${[...failures.map(negated), code].join(' && ')})`
}

/** Conditions for events for which a value fails. */
const failuresOf = (value: Expression): readonly string[] =>
  value.type === 'list' ? value.items.flatMap(failuresOf) : [failureOf(value) ?? []].flat()

/** A condition or the call in it, negated. */
export const negated = (condition: string) =>
  /^!\w+\([^()]*\)$/.test(condition) ? condition.slice(1) : `!${condition}`

/** `and` or `or`. If the left side fails, so does the expression, whatever the right side is. */
function bothOf(isAnd: boolean, left: Expression, right: Expression, whenFailing: boolean): string {
  const both = `(${conditionOf(left, whenFailing)} ${isAnd ? '&&' : '||'} ${conditionOf(right, whenFailing)})`
  const failure = isAnd === whenFailing ? failureOfSide(left) : undefined
  // The right side then fails for the same events.
  if (failure === undefined || failure === failureOfSide(right)) return both
  return whenFailing ? `(${failure} || ${both})` : `(${negated(failure)} && ${both})`
}

/** Whether a list has a value. Unlike `includes`, the collector compares integers with floats. */
function itemTest(value: Expression, items: readonly Expression[]): string {
  const isNumber = (item: Expression) => item.type === 'literal' && typeof item.value === 'number'
  const numbers = items.filter(isNumber).map((item) => `${valueText(value)} == ${valueText(item)}`)
  const others = items.filter((item) => !isNumber(item))
  const list = `includes([${others.map(valueText).join(', ')}], ${valueText(value)})`
  const tests = [...(others.length === 0 && items.length > 0 ? [] : [list]), ...numbers]
  return tests.length === 1 ? `(${tests[0]})` : `(${tests.join(' || ')})`
}

/** The failure of a side of an expression that has to be a boolean. */
const failureOfSide = (side: Expression) =>
  side.type === 'path' ? `!is_boolean(${fieldAt(side.path)})` : failureOf(side)

/** A condition for events for which the expression fails; undefined if it never does. */
export function failureOf(expression: Expression): string | undefined {
  const any = (tests: readonly (string | undefined)[]) => {
    const found = [...new Set(tests.filter((test) => test !== undefined))]
    return found.length === 0 ? undefined : found.length === 1 ? found[0] : `(${found.join(' || ')})`
  }
  switch (expression.type) {
    case 'path':
      return pathFailure(expression)
    case 'not':
      return failureOfSide(expression.value)
    case 'list':
      return any(expression.items.map(failureOf))
    case 'choice': {
      const { test, yes, no } = expression
      if (test === undefined) return any([failureOf(yes), failureOf(no)])
      const [ofYes, ofNo] = [failureOf(yes), failureOf(no)]
      return any([
        failureOfSide(test),
        ofYes === undefined ? undefined : `(${conditionOf(test)} && ${ofYes})`,
        ofNo === undefined ? undefined : `(!${conditionOf(test)} && ${ofNo})`,
      ])
    }
    case 'call':
      return any(expression.values.map((value) => failureOfArgument(expression.name, value)))
    case 'operation': {
      const { operator, left, right } = expression
      const isBoth = operator === 'and' || operator === '&&'
      if (isBoth || operator === 'or' || operator === '||') {
        const [first, later] = [failureOfSide(left), failureOfSide(right)]
        if (later === undefined || later === first) return first
        const reached = isBoth ? conditionOf(left) : `!${conditionOf(left)}`
        return any([first, `(${reached} && ${later})`])
      }
      const sides = [failureOf(left), failureOf(right)]
      if (/^[<>]/.test(operator)) {
        const [a, b] = [valueText(left), valueText(right)]
        if (isOrdered(left) !== undefined && isOrdered(left) === isOrdered(right)) return any(sides)
        return any([...sides, `(((${a} < ${b}) == null) ?? true)`])
      }
      const texts = [left, right].flatMap((side) => (side.type === 'path' ? [fieldAt(side.path)] : []))
      if (isArithmetic(expression)) return any([...sides, `(${valueText(expression)} == null)`])
      if (operator === '+') return any([...sides, ...texts.map((field) => `!is_string(${field})`)])
      const isOnTexts = operator === 'matches' || Object.hasOwn(textCalls, operator)
      return any([...sides, ...(isOnTexts ? texts.map((field) => `(${field} != null && !is_string(${field}))`) : [])])
    }
    default:
      return undefined
  }
}

/** A condition for events for which a call fails because of an argument. */
function failureOfArgument(name: string, value: Expression): string | undefined {
  if (isPart(value)) return undefined
  if (value.type !== 'path') return failureOf(value)
  const field = fieldAt(value.path)
  if (name === 'len') return `(${lengthOf(value)} == null)`
  if (Object.hasOwn(numberCalls, name)) return `(${valueText({ type: 'call', name, values: [value] })} == null)`
  return Object.hasOwn(textFunctions, name) ? `!is_string(${field})` : undefined
}

/** The kind of an expression whose values can always be ordered; otherwise undefined. */
function isOrdered(expression: Expression): 'text' | 'number' | undefined {
  if (expression.type === 'literal') {
    if (typeof expression.value === 'number') return 'number'
    return typeof expression.value === 'string' ? 'text' : undefined
  }
  if (isPart(expression)) return isPart(expression, 'severity_text') ? 'text' : 'number'
  if (expression.type === 'operation')
    return expression.operator === '+' && !isArithmetic(expression) ? 'text' : undefined
  if (expression.type === 'choice') {
    const kind = isOrdered(expression.yes)
    return kind === isOrdered(expression.no) ? kind : undefined
  }
  if (expression.type !== 'call') return undefined
  const [value] = expression.values
  if (expression.name === 'string') return 'text'
  if (value === undefined || isOrdered(value) !== 'text') return undefined
  if (expression.name === 'len') return 'number'
  return textCall(expression.name, expression.values.slice(1)) === undefined ? undefined : 'text'
}

/** Whether the expression is a part of a record that is never missing in the collector. */
const isPart = (expression: Expression, name?: string) =>
  expression.type === 'path' &&
  expression.path.length === 1 &&
  (name === undefined ? /^severity_(?:text|number)$/.test(String(expression.path[0])) : expression.path[0] === name)

/** Functions of a text, with the calls that replace them. */
const textFunctions: Readonly<Record<string, string>> = {
  lower: 'downcase',
  upper: 'upcase',
  trim: 'strip_whitespace',
}

/** The replacement of a call that makes a text of a text; undefined if it is another one. */
function textCall(name: string, more: readonly Expression[]): ((code: string) => string) | undefined {
  const known = Object.hasOwn(textFunctions, name) ? textFunctions[name] : undefined
  if (known !== undefined) return more.length === 0 ? (code) => `${known}(${code})` : undefined
  const [first, second] = more.map((each) => (each.type === 'literal' ? each.value : undefined))
  if (name === '[:]') return partOf(first, second, more.length)
  if (typeof first !== 'string') return undefined
  if (name === 'replace' && typeof second === 'string')
    return (code) => `replace(${code}, ${textLiteral(first)}, ${textLiteral(second)})`
  if (more.length > 1) return undefined
  if (name === 'trimPrefix') return (code) => `replace(${code}, ${regexLiteral(`^${escapedText(first)}`)}, "")`
  if (name === 'trimSuffix') return (code) => `replace(${code}, ${regexLiteral(`${escapedText(first)}$`)}, "")`
  return undefined
}

/** A slice of a text. In the collector it ends where the text ends. */
function partOf(from: unknown, to: unknown, count: number): ((code: string) => string) | undefined {
  if (typeof from !== 'number' || (count > 1 && typeof to !== 'number')) return undefined
  const rest = (code: string) => (from === 0 ? code : `(slice(${code}, ${from}) ?? ${from < 0 ? code : '""'})`)
  if (typeof to !== 'number') return rest
  return from < 0 || to < from ? undefined : (code) => `truncate(${rest(code)}, ${to - from})`
}

/** A text expression, with the fields or other values that must be texts. */
function textOf(expression: Expression): { readonly code: string; readonly fields: readonly string[] } {
  if (isText(expression) || isPart(expression, 'severity_text')) return { code: valueText(expression), fields: [] }
  if (expression.type === 'path') return toBeText(fieldAt(expression.path))
  if (expression.type === 'choice')
    return isOrdered(expression) === 'text'
      ? { code: valueText(expression), fields: [] }
      : toBeText(valueText(expression))
  if (expression.type === 'operation' && isOrdered(expression) === 'text')
    return { code: valueText(expression), fields: [] }
  if (expression.type !== 'call') throw new UnknownExpression('one side is not a text')
  const [value, ...more] = expression.values
  const call = textCall(expression.name, more)
  if (value !== undefined && call !== undefined) {
    const { code, fields } = textOf(value)
    return { code: call(code), fields }
  }
  if (value?.type === 'path' && expression.name === 'type') return { code: typeText(fieldAt(value.path)), fields: [] }
  if (value !== undefined && expression.name === 'string') return { code: asText(value), fields: [] }
  if (expression.name === '[]') return toBeText(valueText(expression))
  throw new UnknownExpression(`the function \`${expression.name}\` is unknown, or has other arguments`)
}

const toBeText = (value: string) => ({ code: `string!(${value})`, fields: [value] })

/** The text for a value, as the function `string` makes it. */
function asText(value: Expression): string {
  if (value.type === 'literal') return textLiteral(String(value.value))
  if (isOrdered(value) === 'text') return valueText(value)
  const isNumber = isOrdered(value) === 'number' || isArithmetic(value) || isPart(value)
  // Remap rejects error handling for a conversion that cannot fail.
  return isNumber || (value.type === 'call' && Object.hasOwn(numberCalls, value.name))
    ? `to_string(${valueText(value)})`
    : `(to_string(${valueText(value)}) ?? "")`
}

/** Whether the expression calculates with numbers. `+` joins texts if one side is known to be a text. */
function isArithmetic(expression: Expression): boolean {
  if (expression.type !== 'operation' || !/^[-+*/%]$/.test(expression.operator)) return false
  return expression.operator !== '+' || ![expression.left, expression.right].some(isKnownText)
}

/** Whether the expression is a text, or fails. */
const isKnownText = (side: Expression) =>
  isOrdered(side) === 'text' ||
  (side.type === 'call' && (side.name === 'string' || textCall(side.name, side.values.slice(1)) !== undefined))

/** A number made of two; null if one of them is not a number. `+` also joins two texts. */
function arithmeticOf({ operator, left, right }: Expression & { readonly type: 'operation' }): string {
  const sides = [left, right]
  if (sides.every((side) => isOrdered(side) === 'number')) throw new UnknownExpression('both sides are known numbers')
  if (sides.some(isText)) throw new UnknownExpression(`a side of \`${operator}\` is not a number`)
  const [a, b] = [valueText(left), valueText(right)]
  const open = sides.filter((side) => isOrdered(side) !== 'number').map(valueText)
  const all = (test: (field: string) => string) => open.map(test).join(' && ')
  const numbers = all((field) =>
    operator === '%' ? `is_integer(${field})` : `(is_integer(${field}) || is_float(${field}))`,
  )
  const texts = operator === '+' && open.length === 2 ? ` || (${all((field) => `is_string(${field})`)})` : ''
  const code = operator === '%' ? `mod(${a}, ${b})` : `(${a} ${operator} ${b})`
  return `({ if ${texts === '' ? numbers : `(${numbers})${texts}`} { ${code} ?? null } else { null } })`
}

/** Two texts, joined. */
function joinedOf({ left, right }: Expression & { readonly type: 'operation' }): string {
  const sides = [left, right].map((side) => {
    if (isOrdered(side) === 'text') return valueText(side)
    if (
      side.type === 'path' ||
      isKnownText(side) ||
      side.type === 'choice' ||
      (side.type === 'call' && side.name === '[]')
    )
      return `(to_string(${valueText(side)}) ?? "")`
    throw new UnknownExpression('`+` adds values that may be no texts')
  })
  return `(${sides.join(' + ')})`
}

/** The length of a text in characters, of a list or of an object; null for other values, so that comparisons with it are false. */
function lengthOf(expression: Expression): string {
  if (expression.type !== 'path') {
    const [list] = expression.type === 'call' && expression.name === 'split' ? expression.values : []
    const { code, fields } = list === undefined ? textOf(expression) : textOf(list)
    if (list !== undefined)
      return fields.length === 0 ? `length(${valueText(expression)})` : `(length(${valueText(expression)}) ?? null)`
    return fields.length === 0 ? `strlen(${code})` : `(strlen(${valueText(expression)}) ?? null)`
  }
  const field = fieldAt(expression.path)
  return `(strlen(${field}) ?? length(${field}) ?? null)`
}

/** A call with several arguments; undefined if it is another one. */
function callText(name: string, value: Expression, more: readonly Expression[]): string | undefined {
  const [second] = more
  if (name === '[]' && second?.type === 'literal' && typeof second.value === 'number') {
    const list = valueText(value)
    // A list that is always one.
    const isList = list.startsWith('split(')
    return `(get(${isList ? list : `array(${list}) ?? []`}, [${second.value}]) ?? null)`
  }
  if (name !== 'split' || more.length !== 1) return undefined
  if (second === undefined || !isText(second)) throw new UnknownExpression('`split` has arguments that are not texts')
  const { code, fields } = textOf(value)
  return ifTexts(fields, `split(${code}, ${valueText(second)})`)
}

/** A value, or null if the fields in it are not texts. */
function ifTexts(fields: readonly string[], code: string): string {
  const tests = fields.map((field) => `is_string(${field})`)
  return tests.length === 0 ? code : `({ if ${tests.join(' && ')} { ${code} } else { null } })`
}

/** The expression as a value. */
export function valueText(expression: Expression): string {
  switch (expression.type) {
    case 'literal':
      return typeof expression.value === 'string' ? textLiteral(expression.value) : String(expression.value)
    case 'list':
      return `[${expression.items.map(valueText).join(', ')}]`
    case 'path':
      if (!isPart(expression)) return fieldAt(expression.path)
      return isPart(expression, 'severity_text') ? '(string(.severity_text) ?? "")' : '(int(.severity_number) ?? 0)'
    case 'operation':
      if (isArithmetic(expression)) return arithmeticOf(expression)
      return expression.operator === '+' ? joinedOf(expression) : conditionOf(expression)
    case 'not':
      return conditionOf(expression)
    case 'choice':
      return choiceOf(expression, valueText)
    default: {
      const [value, ...more] = expression.values
      if (expression.name === 'len' && value !== undefined && more.length === 0) return lengthOf(value)
      const made = value === undefined ? undefined : callText(expression.name, value, more)
      if (made !== undefined) return made
      const number = Object.hasOwn(numberCalls, expression.name) ? numberCalls[expression.name] : undefined
      const isAny =
        value?.type === 'path' || value?.type === 'choice' || (value?.type === 'call' && value.name === '[]')
      if (number !== undefined && isAny && isOrdered(value) === undefined && more.length === 0) {
        const field = valueText(value)
        return `({ if ${field} == null { null } else { ${number}(${field}) ?? null } })`
      }
      const { code, fields } = textOf(expression)
      return ifTexts(fields, code)
    }
  }
}
