// The operators of Ruby, from the conditional expression to the sign of a number.

import { pattern } from '../fluent-bit/text.ts'
import type { Emitter } from './ruby-emitter.ts'
import { formatted } from './ruby-format.ts'
import { asText, isNumber, isTrue, literalNode, type Match, type Node, testNode, UnknownRuby } from './ruby-node.ts'
import { groupIn } from './ruby-text.ts'
import { secondsBetween } from './ruby-time.ts'

/** A test of a text. */
export const found = (node: Node, regex: string) => `is_object(parse_grok(${asText(node)}, ${pattern(regex)}) ?? null)`

export abstract class Operators {
  protected readonly tokens: readonly string[]
  protected readonly emit: Emitter
  protected at = 0
  /** The last match, whose groups are `$1` and `$~[1]`. */
  protected matched: Match | undefined

  constructor(tokens: readonly string[], emitter: Emitter) {
    this.tokens = tokens
    this.emit = emitter
  }

  /** A value with its indexes and calls. */
  protected abstract operand(): Node
  /** A value behind a minus sign. */
  protected abstract number(): Node

  protected accept(...wanted: readonly string[]): string | undefined {
    const token = this.tokens[this.at]
    if (token === undefined || !wanted.includes(token)) return undefined
    this.at++
    return token
  }

  protected expect(token: string): void {
    if (this.accept(token) === undefined) throw new UnknownRuby()
  }

  protected choice(): Node {
    const test = this.#or()
    if (this.accept('?') === undefined) return test
    const yes = this.emit.scoped(() => this.choice())
    this.accept(';')
    this.expect(':')
    const no = this.emit.scoped(() => this.choice())
    return this.emit.either(isTrue(test), yes, no)
  }

  #or(): Node {
    let left = this.#and()
    while (this.accept('||'))
      left = this.any(
        left,
        this.emit.scoped(() => this.#and()),
      )
    return left
  }

  /** `a || b`: the first of both that is neither nil nor false. */
  protected any(left: Node, right: Node): Node {
    if (left.kind === 'boolean' && (right.kind === 'boolean' || right.isPlace))
      return {
        text: `(${left.text} || ${right.text})`,
        kind: 'boolean',
        ...(left.isPlace || right.isPlace ? { isPlace: true } : {}),
      }
    if (left.isPlace || right.isPlace) throw new UnknownRuby()
    if (left.kind !== 'any' && left.kind !== 'boolean') return left
    return { text: `(${left.text} || ${right.text})`, kind: 'any' }
  }

  #and(): Node {
    let left = this.#comparison()
    while (this.accept('&&'))
      left = this.both(
        left,
        this.emit.scoped(() => this.#comparison()),
      )
    return left
  }

  /** `a && b`: the second one, unless the first one is nil or false. */
  protected both(left: Node, right: Node): Node {
    const isTest = (node: Node) => node.kind === 'boolean'
    if (isTest(left) && isTest(right)) {
      const isPlace = left.isPlace || right.isPlace
      return { text: `(${left.text} && ${right.text})`, kind: 'boolean', ...(isPlace ? { isPlace: true } : {}) }
    }
    if (right.isPlace) throw new UnknownRuby()
    if (left.kind !== 'any' && left.kind !== 'boolean') return right
    // The place of a match is never the value of the whole, because nil is then the value.
    const otherwise = left.isPlace ? 'null' : left.text
    return this.emit.either(isTrue(left), right, { text: otherwise, kind: 'any' })
  }

  #comparison(): Node {
    const left = this.#sum()
    const sign = this.accept('==', '!=', '=~', '!~', '<', '>', '<=', '>=', '===')
    if (sign === undefined) return left
    const right = this.#sum()
    if (sign === '=~' || sign === '!~') {
      const [of, regex] = right.regex === undefined ? [right, left.regex] : [left, right.regex]
      if (regex === undefined) throw new UnknownRuby()
      this.matched = { of, regex }
      // A literal on the left side sets variables with the names of its groups.
      if (left.regex !== undefined)
        for (const [, name = ''] of regex.matchAll(/\(\?<([a-z_]\w*)>/g))
          this.emit.assign(name, groupIn(of, regex, literalNode(name)))
      const text = found(of, regex)
      return sign === '!~' ? testNode(`!${text}`) : { text, kind: 'boolean', isPlace: true }
    }
    const isSafe = sign === '==' || sign === '!=' || (isNumber(left) && isNumber(right))
    const whole = `(${left.text} ${sign} ${right.text})`
    if (isSafe) return testNode(whole)
    const compared = this.emit.kept(`${whole} ?? null`, 'any').text
    this.emit.failIf(`${compared} == null`)
    return testNode(`(${compared} == true)`)
  }

  #sum(): Node {
    return this.#operation(['+', '-'], () => this.#operation(['*', '/', '%'], () => this.#unary()))
  }

  /** Operators for numbers and texts. */
  #operation(signs: readonly string[], operand: () => Node): Node {
    let left = operand()
    for (let sign = this.accept(...signs); sign !== undefined; sign = this.accept(...signs)) {
      left = this.result(sign, left, operand())
    }
    return left
  }

  protected result(sign: string, left: Node, right: Node): Node {
    if (left.instant !== undefined && right.instant !== undefined && sign === '-')
      return secondsBetween(left.instant, right.instant)
    if (left.instant !== undefined || right.instant !== undefined) throw new UnknownRuby()
    if (sign === '/') return this.#divided(left, right)
    if (sign === '%') return this.#remainder(left, right)
    const text = `${left.text} ${sign} ${right.text}`
    const kind = kindOfResult(left, right, sign)
    return kind === 'any' ? this.#checked(left, text, right) : { text: `(${text})`, kind }
  }

  /** The result of an operation that fails for nil, and for values of different kinds. */
  #checked(left: Node, operation: string, right: Node): Node {
    const unknown = [left, right].filter(({ kind }) => kind === 'any').map(({ text }) => `${text} == null`)
    if (unknown.length > 0) this.emit.failIf(unknown.join(' || '))
    const result = this.emit.kept(`(${operation}) ?? null`, 'any')
    this.emit.failIf(`${result.text} == null`)
    return result
  }

  /** An integer divided by another one is the integer below. */
  #divided(left: Node, right: Node): Node {
    if (isNumber(left) && isDivisor(right)) {
      const text = `(${left.text} / ${right.text})`
      const areIntegers = left.kind === 'integer' && right.kind === 'integer'
      return areIntegers ? { text: `to_int(floor(${text}))`, kind: 'integer' } : { text, kind: 'float' }
    }
    const quotient = this.emit.kept(`(${left.text} / ${right.text}) ?? null`, 'any')
    const areIntegers = `is_integer(${left.text}) && is_integer(${right.text}) && is_float(${quotient.text})`
    this.emit.before.push(`if ${areIntegers} { ${quotient.text} = to_int(floor(float!(${quotient.text}))) }`)
    this.emit.failIf(`${quotient.text} == null`)
    return quotient
  }

  /** A format with its values, or the rest of a division, which has the sign of the divisor in Ruby. */
  #remainder(left: Node, right: Node): Node {
    if (left.kind === 'text') return formatted(left, right.items ?? [right], this.emit)
    if (!isDivisor(right)) throw new UnknownRuby()
    const divisor = right.text
    if (left.kind === 'integer' && right.kind === 'integer')
      return { text: `mod(mod(${left.text}, ${divisor}) + ${divisor}, ${divisor})`, kind: 'integer' }
    const whole = this.emit.kept(`mod(${left.text}, ${divisor}) ?? null`, 'any')
    this.emit.failIf(`${whole.text} == null`)
    const rest = this.emit.kept(`mod((${whole.text} + ${divisor}) ?? 0, ${divisor}) ?? null`, 'any')
    return rest
  }

  #unary(): Node {
    if (this.accept('!')) return testNode(`!${isTrue(this.#unary())}`)
    if (this.accept('-') === undefined) return this.operand()
    const { text, kind } = this.number()
    if (!/^\d/.test(text)) throw new UnknownRuby()
    return { text: `-${text}`, kind }
  }
}

/** A number other than zero, so that remap knows that a division cannot fail. */
const isDivisor = (node: Node) => isNumber(node) && Number(node.text) !== 0 && !Number.isNaN(Number(node.text))

/** Two numbers give a number, and two texts a text. The result of other values is unknown. */
function kindOfResult(left: Node, right: Node, sign: string): Node['kind'] {
  if (isNumber(left) && isNumber(right)) return left.kind === right.kind ? left.kind : 'float'
  return left.kind === 'text' && right.kind === 'text' && sign === '+' ? 'text' : 'any'
}
