// Parses the collector's transformation language (OTTL) to statements and conditions.

import { matchesIn } from '../../matches.ts'
import { type Token, TokenReader } from '../tokens.ts'

/** A text that cannot be converted, with the reason. */
export class Unconvertible extends Error {
  readonly nearest: string

  constructor(message: string, nearest = 'Rewrite it as a remap transform.') {
    super(message)
    this.nearest = nearest
  }
}

export type Key = string | number

export interface PathPart {
  readonly name: string
  readonly keys: readonly Key[]
  /** A last key that is the value of an expression. */
  readonly computed?: Node
}

export interface Argument {
  readonly name?: string
  readonly value: Node
}

export interface Call {
  readonly type: 'call'
  readonly name: string
  readonly values: readonly Argument[]
  readonly keys: readonly Key[]
}

export type Node =
  | { readonly type: 'nil' }
  | { readonly type: 'literal'; readonly value: string | boolean }
  | { readonly type: 'number'; readonly value: number; readonly isFloat: boolean }
  | { readonly type: 'name'; readonly name: string }
  | { readonly type: 'path'; readonly parts: readonly PathPart[] }
  | { readonly type: 'list'; readonly items: readonly Node[] }
  | { readonly type: 'map'; readonly members: readonly (readonly [string, Node])[] }
  | { readonly type: 'math'; readonly operator: string; readonly left: Node; readonly right: Node }
  | { readonly type: 'compare'; readonly operator: string; readonly left: Node; readonly right: Node }
  | { readonly type: 'both'; readonly operator: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | { readonly type: 'not'; readonly value: Node }
  | Call

export interface Statement {
  readonly editor: Call
  readonly where: Node | undefined
}

const tokenPattern =
  /\s+|(0x[0-9a-fA-F]+)|(\d*\.\d+(?:[eE][-+]?\d+)?|\d+)|"((?:\\[\s\S]|[^\\"])*)"|([A-Za-z][A-Za-z0-9_]*)|(==|!=|>=|<=|[-+*/<>=(){}:,.[\]])/y

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '"': '"', '\\': '\\' }

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  const refused = (rest: string) => new Unconvertible(`\`${rest.slice(0, 10)}\` is unknown`)
  for (const found of matchesIn(text, tokenPattern, refused)) {
    const [, bytes, number, quoted, name, sign] = found
    if (bytes !== undefined) tokens.push({ kind: 'bytes', text: bytes.slice(2) })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (quoted !== undefined) {
      const plain = quoted.replace(/\\([\s\S])/g, (whole, sign: string) => escapes[sign] ?? whole)
      tokens.push({ kind: 'text', text: plain })
    } else if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

export function parseStatement(text: string): Statement {
  return new Parser(text).statement()
}

export function parseCondition(text: string): Node {
  return new Parser(text).condition()
}

const comparisons = ['==', '!=', '>=', '<=', '>', '<']

class Parser {
  readonly #tokens: TokenReader

  constructor(text: string) {
    this.#tokens = new TokenReader(tokensOf(text), (reason) => new Unconvertible(reason))
  }

  statement(): Statement {
    const editor = this.#value()
    if (editor.type !== 'call' || !/^[a-z]/.test(editor.name))
      throw new Unconvertible('the statement is not a function call')
    if (!this.#tokens.is('where')) return { editor, where: this.#tokens.end(undefined) }
    this.#tokens.at++
    return { editor, where: this.#tokens.end(this.#or()) }
  }

  condition(): Node {
    return this.#tokens.end(this.#or())
  }

  #or(): Node {
    let left = this.#and()
    while (this.#tokens.accept('or')) left = { type: 'both', operator: 'or', left, right: this.#and() }
    return left
  }

  #and(): Node {
    let left = this.#not()
    while (this.#tokens.accept('and')) left = { type: 'both', operator: 'and', left, right: this.#not() }
    return left
  }

  #not(): Node {
    return this.#tokens.accept('not') ? { type: 'not', value: this.#test() } : this.#test()
  }

  /** A comparison, a call, or a condition in parentheses, which can also be the left side of a comparison. */
  #test(): Node {
    const start = this.#tokens.at
    if (this.#tokens.accept('(')) {
      const inner = this.#or()
      this.#tokens.expect(')')
      if (![...comparisons, '+', '-', '*', '/'].some((sign) => this.#tokens.is(sign))) return inner
      this.#tokens.at = start
    }
    const left = this.#value()
    const operator = comparisons.find((sign) => this.#tokens.is(sign))
    if (operator === undefined) return left
    this.#tokens.at++
    return { type: 'compare', operator, left, right: this.#value() }
  }

  #value(): Node {
    let left = this.#product()
    while (this.#tokens.is('+') || this.#tokens.is('-')) {
      const operator = this.#tokens.take().text
      left = { type: 'math', operator, left, right: this.#product() }
    }
    return left
  }

  #product(): Node {
    let left = this.#atom()
    while (this.#tokens.is('*') || this.#tokens.is('/')) {
      const operator = this.#tokens.take().text
      left = { type: 'math', operator, left, right: this.#atom() }
    }
    return left
  }

  #atom(): Node {
    const token = this.#tokens.take()
    if (token.kind === 'text') return { type: 'literal', value: token.text }
    if (token.kind === 'bytes') return { type: 'literal', value: token.text.toLowerCase() }
    if (token.kind === 'number') return numberOf(token.text)
    if (token.kind === 'sign') {
      if (token.text === '-' || token.text === '+') {
        const number = this.#tokens.take()
        return number.kind === 'number' ? numberOf(`${token.text}${number.text}`) : this.#tokens.refuse(number)
      }
      if (token.text === '[') return { type: 'list', items: this.#listUntil(']', () => this.#value()) }
      if (token.text === '{') return { type: 'map', members: this.#listUntil('}', () => this.#member()) }
      if (token.text === '(') {
        const inner = this.#value()
        this.#tokens.expect(')')
        return inner
      }
    }
    if (token.kind !== 'name') return this.#tokens.refuse(token)
    if (token.text === 'nil') return { type: 'nil' }
    if (token.text === 'true' || token.text === 'false') return { type: 'literal', value: token.text === 'true' }
    if (this.#tokens.accept('(')) {
      const values = this.#listUntil(')', () => this.#argument())
      const { keys, computed } = this.#keys()
      if (computed !== undefined) throw new Unconvertible('a computed key has no counterpart after a call')
      return { type: 'call', name: token.text, values, keys }
    }
    if (/^[A-Z]/.test(token.text)) return { type: 'name', name: token.text }
    const parts: PathPart[] = [{ name: token.text, ...this.#keys() }]
    while (this.#tokens.accept('.')) {
      const next = this.#tokens.take()
      if (next.kind !== 'name') this.#tokens.refuse(next)
      parts.push({ name: next.text, ...this.#keys() })
    }
    return { type: 'path', parts }
  }

  #listUntil<Item>(end: string, item: () => Item): Item[] {
    const items: Item[] = []
    while (!this.#tokens.accept(end)) {
      items.push(item())
      if (!this.#tokens.is(end)) this.#tokens.expect(',')
    }
    return items
  }

  #member(): readonly [string, Node] {
    const key = this.#tokens.take()
    if (key.kind !== 'text') this.#tokens.refuse(key)
    this.#tokens.expect(':')
    return [key.text, this.#value()]
  }

  #argument(): Argument {
    const following = this.#tokens.following
    if (this.#tokens.next.kind === 'name' && following?.kind === 'sign' && following.text === '=') {
      const name = this.#tokens.take().text
      this.#tokens.at++
      return { name, value: this.#value() }
    }
    return { value: this.#value() }
  }

  #keys(): Pick<PathPart, 'keys' | 'computed'> {
    const keys: Key[] = []
    while (this.#tokens.accept('[')) {
      const { kind, text } = this.#tokens.next
      if (kind !== 'text' && kind !== 'number') {
        const computed = this.#value()
        this.#tokens.expect(']')
        if (this.#tokens.is('[')) throw new Unconvertible('a computed key before other keys has no counterpart')
        return { keys, computed }
      }
      this.#tokens.at++
      keys.push(kind === 'number' ? Number(text) : text)
      this.#tokens.expect(']')
    }
    return { keys }
  }
}

function numberOf(text: string): Node {
  return { type: 'number', value: Number(text), isFloat: /[.eE]/.test(text) }
}
