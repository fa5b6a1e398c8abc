// Expressions of operators (`if`, `expr`, `is_first_entry`, `EXPR(…)`): a parser for the commonly used part of the language Expr, and its
// translation to remap. As in the collector, an expression that fails is false.

import { textLiteral } from '@penstock/agent/config'
import { fieldAt, type Key, roots } from './record.ts'
import { regexLiteral } from './text.ts'
import { type Token, TokenReader } from './tokens.ts'

export type Expression =
  | { readonly type: 'literal'; readonly value: string | number | boolean | null }
  | { readonly type: 'list'; readonly items: readonly Expression[] }
  /** `isSafe` if a missing object around a key is no failure. */
  | { readonly type: 'path'; readonly path: readonly Key[]; readonly isSafe?: boolean }
  | { readonly type: 'call'; readonly name: string; readonly values: readonly Expression[] }
  | { readonly type: 'not'; readonly value: Expression }
  /** `test ? yes : no`, or `yes ?? no` without a test. */
  | { readonly type: 'choice'; readonly test?: Expression; readonly yes: Expression; readonly no: Expression }
  | { readonly type: 'operation'; readonly operator: string; readonly left: Expression; readonly right: Expression }

/** A text that this parser cannot read. */
export class UnknownExpression extends Error {}

const tokenPattern =
  /\s+|([A-Za-z_$][\w$]*)|(\d+(?:\.\d+)?)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`([^`]*)`|(==|!=|<=|>=|&&|\|\||\?\?|\?\.|[-+*/%<>!()[\].,?:{}])/y

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < text.length) {
    const at = tokenPattern.lastIndex
    const found = tokenPattern.exec(text)
    if (found === null) throw new UnknownExpression(`\`${text.slice(at, at + 10)}\` is unknown`)
    const [, name, number, double, single, raw, sign] = found
    const quoted = double ?? single
    if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: unescaped(quoted) })
    else if (raw !== undefined) tokens.push({ kind: 'text', text: raw })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '"': '"', "'": "'", '\\': '\\' }

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (whole, sign: string) => escapes[sign] ?? whole)
}

/** Precedence of operators. */
const levels: readonly (readonly string[])[] = [
  ['or', '||'],
  ['and', '&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'matches', 'contains', 'startsWith', 'endsWith', 'in', 'not'],
  ['+', '-'],
]

export function parseExpression(text: string): Expression {
  return new Parser(tokensOf(text)).whole()
}

class Parser {
  readonly #tokens: TokenReader

  constructor(tokens: readonly Token[]) {
    this.#tokens = new TokenReader(tokens, (reason) => new UnknownExpression(reason))
  }

  whole(): Expression {
    return this.#tokens.end(this.#choice())
  }

  #choice(): Expression {
    const first = this.#binary(0)
    if (this.#tokens.is('??')) {
      this.#tokens.at++
      return { type: 'choice', yes: first, no: this.#choice() }
    }
    if (!this.#tokens.is('?')) return first
    this.#tokens.at++
    const yes = this.#choice()
    this.#tokens.expect(':')
    return { type: 'choice', test: first, yes, no: this.#choice() }
  }

  #binary(level: number): Expression {
    const operators = levels[level]
    if (operators === undefined) return this.#unary()
    let left = this.#binary(level + 1)
    while (operators.some((operator) => this.#tokens.is(operator))) {
      const isNegated = this.#tokens.is('not')
      if (isNegated) this.#tokens.at++
      const operator = this.#tokens.take().text
      const operation: Expression = { type: 'operation', operator, left, right: this.#binary(level + 1) }
      left = isNegated ? { type: 'not', value: operation } : operation
    }
    return left
  }

  #unary(): Expression {
    if (this.#tokens.is('not') || this.#tokens.is('!')) {
      // `not` negates a whole comparison, `!` the next operand.
      return { type: 'not', value: this.#tokens.take().text === 'not' ? this.#binary(2) : this.#unary() }
    }
    if (this.#tokens.is('-')) {
      this.#tokens.at++
      const token = this.#tokens.take()
      return token.kind === 'number' ? { type: 'literal', value: -Number(token.text) } : this.#tokens.refuse(token)
    }
    return this.#primary()
  }

  #listUntil(end: string): Expression[] {
    const items: Expression[] = []
    while (!this.#tokens.is(end)) {
      items.push(this.#binary(0))
      if (!this.#tokens.is(end)) this.#tokens.expect(',')
    }
    this.#tokens.at++
    return items
  }

  #primary(): Expression {
    const token = this.#tokens.take()
    if (token.kind === 'text') return { type: 'literal', value: token.text }
    if (token.kind === 'number') return { type: 'literal', value: Number(token.text) }
    if (token.text === '(') {
      const inner = this.#choice()
      this.#tokens.expect(')')
      return inner
    }
    if (token.text === '[') return { type: 'list', items: this.#listUntil(']') }
    if (token.kind !== 'name') return this.#tokens.refuse(token)
    if (token.text === 'true' || token.text === 'false') return { type: 'literal', value: token.text === 'true' }
    if (token.text === 'nil' || token.text === 'null') return { type: 'literal', value: null }
    if (this.#tokens.is('(')) {
      this.#tokens.at++
      return this.#items(callOf(token.text, this.#listUntil(')')))
    }
    return this.#path(token.text)
  }

  /** The items that indexes after a call name. */
  #items(list: Expression): Expression {
    if (list.type === 'path' || !this.#tokens.is('[')) return list
    this.#tokens.at++
    const index = this.#unary()
    this.#tokens.expect(']')
    return this.#items({ type: 'call', name: '[]', values: [list, index] })
  }

  #path(name: string): Expression {
    const root = roots[name.replace(/^\$/, '')]
    if (root === undefined) throw new UnknownExpression(`\`${name}\` is not a part of a record`)
    const path: Key[] = [...root]
    let isSafe = false
    for (;;) {
      if (this.#tokens.is('.') || this.#tokens.is('?.')) {
        isSafe = this.#tokens.take().text === '?.' || isSafe
        // `a?.["b"]`
        if (this.#tokens.is('[')) continue
        const key = this.#tokens.take()
        if (key.kind !== 'name') return this.#tokens.refuse(key)
        path.push(key.text)
      } else if (this.#tokens.is('[')) {
        this.#tokens.at++
        const key = this.#tokens.take()
        if (key.kind !== 'text' && key.kind !== 'number') throw new UnknownExpression('keys must be texts or numbers')
        path.push(key.kind === 'number' ? Number(key.text) : key.text)
        this.#tokens.expect(']')
      } else return { type: 'path', path, isSafe }
    }
  }
}

/** Functions with the effect of an operator. */
const operatorCalls: Readonly<Record<string, string>> = { hasPrefix: 'startsWith', hasSuffix: 'endsWith' }

/** A call. `get` with a field and a key is that field. */
function callOf(name: string, values: readonly Expression[]): Expression {
  const [from, key] = values
  const operator = Object.hasOwn(operatorCalls, name) ? operatorCalls[name] : undefined
  if (operator !== undefined && from !== undefined && key !== undefined)
    return { type: 'operation', operator, left: from, right: key }
  if (name === 'get' && values.length === 2 && from?.type === 'path' && key?.type === 'literal') {
    if (typeof key.value === 'string' || typeof key.value === 'number')
      return { type: 'path', path: [...from.path, key.value], isSafe: true }
  }
  return { type: 'call', name, values }
}

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
  const failures = [...new Set(sides.flatMap(pathsIn).flatMap((path) => pathFailure(path) ?? []))]
  if (absent === whenFailing || failures.length === 0) return code
  return whenFailing ? `(${[...failures, code].join(' || ')})` : `(${[...failures.map(negated), code].join(' && ')})`
}

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
  if (expression.type === 'operation') return expression.operator === '+' ? 'text' : undefined
  if (expression.type !== 'call') return undefined
  const [value] = expression.values
  if (expression.name === 'string') return 'text'
  if (value === undefined || isOrdered(value) !== 'text') return undefined
  return expression.name === 'len' ? 'number' : 'text'
}

/** Functions of a text, with the calls that replace them. */
const textFunctions: Readonly<Record<string, string>> = {
  lower: 'downcase',
  upper: 'upcase',
  trim: 'strip_whitespace',
}

/** A text expression, with the fields that must be texts. */
function textOf(expression: Expression): { readonly code: string; readonly fields: readonly string[] } {
  if (isText(expression)) return { code: valueText(expression), fields: [] }
  if (expression.type === 'path') {
    const field = fieldAt(expression.path)
    return { code: `string!(${field})`, fields: [field] }
  }
  if (expression.type === 'call') {
    const [value] = expression.values
    const name = Object.hasOwn(textFunctions, expression.name) ? textFunctions[expression.name] : undefined
    if (value !== undefined && expression.values.length === 1 && name !== undefined) {
      const { code, fields } = textOf(value)
      return { code: `${name}(${code})`, fields }
    }
    if (value?.type === 'path' && expression.name === 'type') return { code: typeText(fieldAt(value.path)), fields: [] }
    if (value !== undefined && expression.name === 'string') {
      if (value.type === 'literal') return { code: textLiteral(String(value.value)), fields: [] }
      const code = isOrdered(value) === 'text' ? valueText(value) : `(to_string(${valueText(value)}) ?? "")`
      return { code, fields: [] }
    }
  }
  if (expression.type === 'call')
    throw new UnknownExpression(`the function \`${expression.name}\` is unknown, or has other arguments`)
  throw new UnknownExpression('one side is not a text')
}

/** The length of a text in characters, of a list or of an object; null for other values, so that comparisons with it are false. */
function lengthOf(expression: Expression): string {
  if (expression.type !== 'path') {
    const { code, fields } = textOf(expression)
    if (fields.length > 0) throw new UnknownExpression('`len` works only on fields')
    return `strlen(${code})`
  }
  const field = fieldAt(expression.path)
  return `(strlen(${field}) ?? length(${field}) ?? null)`
}

/** A call with several arguments; undefined if it is another one. */
function callText(name: string, value: Expression, more: readonly Expression[]): string | undefined {
  const [second, third] = more
  if (name === '[]' && second?.type === 'literal' && typeof second.value === 'number')
    return `(get(array(${valueText(value)}) ?? [], [${second.value}]) ?? null)`
  const isSplit = name === 'split' && more.length === 1
  if (!isSplit && !(name === 'replace' && more.length === 2)) return undefined
  if (second === undefined || !more.every(isText))
    throw new UnknownExpression(`\`${name}\` has arguments that are not texts`)
  const { code, fields } = textOf(value)
  const call =
    third === undefined
      ? `split(${code}, ${valueText(second)})`
      : `replace(${code}, ${valueText(second)}, ${valueText(third)})`
  const tests = fields.map((field) => `is_string(${field})`)
  return tests.length === 0 ? call : `({ if ${tests.join(' && ')} { ${call} } else { null } })`
}

/** The expression as a value. */
export function valueText(expression: Expression): string {
  switch (expression.type) {
    case 'literal':
      return typeof expression.value === 'string' ? textLiteral(expression.value) : String(expression.value)
    case 'list':
      return `[${expression.items.map(valueText).join(', ')}]`
    case 'path':
      return fieldAt(expression.path)
    case 'operation': {
      if (expression.operator !== '+') return conditionOf(expression)
      const sides = [expression.left, expression.right]
      // `+` joins texts. If neither side is known to be a text, a field may contain a number, and `+` adds numbers.
      const isCased = (side: Expression) => side.type === 'call' && Object.hasOwn(textFunctions, side.name)
      const isJoined = sides.some((side) => isOrdered(side) === 'text' || isCased(side))
      if (!isJoined || sides.some((side) => side.type !== 'path' && isOrdered(side) !== 'text' && !isCased(side)))
        throw new UnknownExpression('`+` adds numbers, or values that may be numbers')
      const [left, right] = sides.map((side) =>
        isOrdered(side) === 'text' ? valueText(side) : `(to_string(${valueText(side)}) ?? "")`,
      )
      return `(${left} + ${right})`
    }
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
      if (number !== undefined && value?.type === 'path' && more.length === 0) {
        const field = fieldAt(value.path)
        return `({ if ${field} == null { null } else { ${number}(${field}) ?? null } })`
      }
      const { code, fields } = textOf(expression)
      const tests = fields.map((field) => `is_string(${field})`)
      return tests.length === 0 ? code : `({ if ${tests.join(' && ')} { ${code} } else { null } })`
    }
  }
}
