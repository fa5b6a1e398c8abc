// A parser for the commonly used part of the language Expr, which operators use in `if`, `expr`, `is_first_entry` and `EXPR(…)`.

import { matchesIn } from '../matches.ts'
import { type Key, roots } from './record.ts'
import { type Token, TokenReader } from './tokens.ts'

export type Expression =
  | { readonly type: 'literal'; readonly value: string | number | boolean | null }
  | { readonly type: 'list'; readonly items: readonly Expression[] }
  /** `isSafe` if an expression may read a key below a missing object. */
  | { readonly type: 'path'; readonly path: readonly Key[]; readonly isSafe?: boolean }
  | { readonly type: 'call'; readonly name: string; readonly values: readonly Expression[] }
  | { readonly type: 'not'; readonly value: Expression }
  /** `test ? yes : no`, or `yes ?? no` without a test. */
  | { readonly type: 'choice'; readonly test?: Expression; readonly yes: Expression; readonly no: Expression }
  | { readonly type: 'operation'; readonly operator: string; readonly left: Expression; readonly right: Expression }

/** The parts of a record that expressions can read. */
const parts: typeof roots = { ...roots, severity_text: ['severity_text'], severity_number: ['severity_number'] }

/** The item of a list that a condition tests. */
const item: Expression = { type: 'call', name: '#', values: [] }

/** A text that this parser cannot read. */
export class UnknownExpression extends Error {}

const tokenPattern =
  /\s+|([A-Za-z_$][\w$]*)|(\d+(?:\.\d+)?)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`([^`]*)`|(==|!=|<=|>=|&&|\|\||\?\?|\?\.|\.\.|[-+*/%<>!()[\].,?:{}#|])/y

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  const refused = (rest: string) => new UnknownExpression(`\`${rest.slice(0, 10)}\` is unknown`)
  for (const found of matchesIn(text, tokenPattern, refused)) {
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

/** How strongly operators bind. */
const strengths: ReadonlyMap<string, number> = new Map(
  Object.entries({
    '|': 0,
    or: 10,
    '||': 10,
    and: 15,
    '&&': 15,
    '..': 25,
    '+': 30,
    '-': 30,
    '*': 60,
    '/': 60,
    '%': 60,
    '??': 500,
  }),
)
const comparisons = ['==', '!=', '<', '<=', '>', '>=', 'matches', 'contains', 'startsWith', 'endsWith', 'in']
const strengthOf = (operator: string) => (comparisons.includes(operator) ? 20 : strengths.get(operator))
const ofNot = 50
const ofSign = 90

export function parseExpression(text: string): Expression {
  return new Parser(tokensOf(text)).whole()
}

class Parser {
  readonly #tokens: TokenReader

  constructor(tokens: readonly Token[]) {
    this.#tokens = new TokenReader(tokens, (reason) => new UnknownExpression(reason))
  }

  whole(): Expression {
    return this.#tokens.end(this.#expression())
  }

  /** An expression with operators of this strength or a higher one. */
  #expression(min = 0): Expression {
    let left = this.#unary()
    for (;;) {
      const isNegated = this.#tokens.is('not')
      const operator = isNegated ? this.#tokens.following : this.#tokens.next
      const strength = operator?.kind === 'sign' || operator?.kind === 'name' ? strengthOf(operator.text) : undefined
      if (operator === undefined || strength === undefined || strength < min) break
      this.#tokens.at += isNegated ? 2 : 1
      const made = operator.text === '|' ? this.#piped(left) : this.#operation(operator.text, left, strength)
      left = isNegated ? { type: 'not', value: made } : made
    }
    return min === 0 ? this.#choice(left) : left
  }

  #operation(operator: string, left: Expression, strength: number): Expression {
    const right = this.#expression(strength + 1)
    if (operator === '??') return { type: 'choice', yes: left, no: right }
    const made: Expression = { type: 'operation', operator, left, right }
    // `a < b < c`
    if (!/^[<>]/.test(operator) || !/^[<>]/.test(this.#tokens.next.text)) return made
    const next = this.#operation(this.#tokens.take().text, right, strength)
    return { type: 'operation', operator: 'and', left: made, right: next }
  }

  /** A call after an expression, which is its first argument. */
  #piped(first: Expression): Expression {
    const name = this.#tokens.take().text
    this.#tokens.expect('(')
    return this.#items(callOf(name, [first, ...this.#listUntil(')')]))
  }

  #choice(test: Expression): Expression {
    if (!this.#tokens.accept('?')) return test
    const yes = this.#tokens.is(':') ? test : this.#expression()
    this.#tokens.expect(':')
    return this.#choice({ type: 'choice', test, yes, no: this.#expression() })
  }

  #unary(): Expression {
    if (this.#tokens.accept('not') || this.#tokens.accept('!')) return { type: 'not', value: this.#expression(ofNot) }
    if (!this.#tokens.accept('-')) return this.#primary()
    const value = this.#expression(ofSign)
    if (value.type === 'literal' && typeof value.value === 'number') return { type: 'literal', value: -value.value }
    return { type: 'operation', operator: '-', left: { type: 'literal', value: 0 }, right: value }
  }

  #listUntil(end: string): Expression[] {
    const items: Expression[] = []
    while (!this.#tokens.is(end)) {
      items.push(this.#expression())
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
      return this.#items(this.#tokens.expected(this.#expression(), ')'))
    }
    if (token.text === '[') return { type: 'list', items: this.#listUntil(']') }
    if (token.text === '#') return item
    // The condition on the items of a list.
    if (token.text === '{') return this.#tokens.expected(this.#expression(), '}')
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
    if (this.#tokens.accept(':')) return this.#slice(list, { type: 'literal', value: 0 })
    const index = this.#unary()
    if (this.#tokens.accept(':')) return this.#slice(list, index)
    this.#tokens.expect(']')
    return this.#items({ type: 'call', name: '[]', values: [list, index] })
  }

  /** The part of a text between two positions. */
  #slice(text: Expression, from: Expression): Expression {
    const to: readonly Expression[] = this.#tokens.is(']') ? [] : [this.#unary()]
    this.#tokens.expect(']')
    return { type: 'call', name: '[:]', values: [text, from, ...to] }
  }

  #path(name: string): Expression {
    const root = parts[name.replace(/^\$/, '')]
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
        const following = this.#tokens.following?.text
        this.#tokens.at++
        if (following === ':') {
          this.#tokens.at++
          return this.#slice({ type: 'path', path, isSafe }, { type: 'literal', value: 0 })
        }
        const key = this.#tokens.take()
        if (key.kind === 'number' && this.#tokens.accept(':'))
          return this.#slice({ type: 'path', path, isSafe }, { type: 'literal', value: Number(key.text) })
        if (key.kind !== 'text' && key.kind !== 'number') throw new UnknownExpression('keys must be texts or numbers')
        path.push(key.kind === 'number' ? Number(key.text) : key.text)
        this.#tokens.expect(']')
      } else return { type: 'path', path, isSafe }
    }
  }
}

/** Functions with the effect of an operator. */
const operatorCalls: Readonly<Record<string, string>> = { hasPrefix: 'startsWith', hasSuffix: 'endsWith' }

/** An expression for one item of a list. */
function withItem(expression: Expression, value: Expression): Expression {
  const inner = (each: Expression) => withItem(each, value)
  switch (expression.type) {
    case 'call':
      return expression === item ? value : { ...expression, values: expression.values.map(inner) }
    case 'list':
      return { ...expression, items: expression.items.map(inner) }
    case 'not':
      return { ...expression, value: inner(expression.value) }
    case 'operation':
      return { ...expression, left: inner(expression.left), right: inner(expression.right) }
    case 'choice': {
      const { test, yes, no } = expression
      return { ...expression, ...(test === undefined ? {} : { test: inner(test) }), yes: inner(yes), no: inner(no) }
    }
    default:
      return expression
  }
}

/** Functions that test the items of a list, with the operator between the tests and whether it is negated. */
const listCalls: Readonly<Record<string, readonly [operator: string, isNegated: boolean]>> = {
  any: ['or', false],
  all: ['and', false],
  none: ['or', true],
}

/** Tests of the items of a literal list; undefined for other calls. */
function listCall(name: string, [list, test]: readonly Expression[]): Expression | undefined {
  const known = Object.hasOwn(listCalls, name) ? listCalls[name] : undefined
  if (known === undefined || test === undefined) return undefined
  if (list?.type !== 'list' || list.items.length === 0)
    throw new UnknownExpression(`\`${name}\` is only known for a list of constants`)
  const [operator, isNegated] = known
  const [first, ...others] = list.items.map((each) => withItem(test, each)) as [Expression, ...Expression[]]
  const all = others.reduce<Expression>((left, right) => ({ type: 'operation', operator, left, right }), first)
  return isNegated ? { type: 'not', value: all } : all
}

/** A call. `get` with a field and a key is that field. */
function callOf(name: string, values: readonly Expression[]): Expression {
  const [from, key] = values
  const tests = listCall(name, values)
  if (tests !== undefined) return tests
  const operator = Object.hasOwn(operatorCalls, name) ? operatorCalls[name] : undefined
  if (operator !== undefined && from !== undefined && key !== undefined)
    return { type: 'operation', operator, left: from, right: key }
  if (name === 'get' && values.length === 2 && from?.type === 'path' && key?.type === 'literal') {
    if (typeof key.value === 'string' || typeof key.value === 'number')
      return { type: 'path', path: [...from.path, key.value], isSafe: true }
  }
  return { type: 'call', name, values }
}
