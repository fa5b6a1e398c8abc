// The transformation language of the collector (OTTL): text to statements and conditions.

/** A text that cannot be converted, and why. */
export class Unconvertible extends Error {
  readonly nearest: string

  constructor(message: string, nearest = 'Write it as a remap transform.') {
    super(message)
    this.nearest = nearest
  }
}

export type Key = string | number

export interface PathPart {
  readonly name: string
  readonly keys: readonly Key[]
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

interface Token {
  readonly kind: 'name' | 'number' | 'bytes' | 'text' | 'sign' | 'end'
  readonly text: string
}

const tokenPattern =
  /\s+|(0x[0-9a-fA-F]+)|(\d*\.\d+(?:[eE][-+]?\d+)?|\d+)|"((?:\\[\s\S]|[^\\"])*)"|([A-Za-z][A-Za-z0-9_]*)|(==|!=|>=|<=|[-+*/<>=(){}:,.[\]])/y

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '"': '"', '\\': '\\' }

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < text.length) {
    const at = tokenPattern.lastIndex
    const found = tokenPattern.exec(text)
    if (found === null) throw new Unconvertible(`\`${text.slice(at, at + 10)}\` is not known`)
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
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  statement(): Statement {
    const editor = this.#value()
    if (editor.type !== 'call' || !/^[a-z]/.test(editor.name))
      throw new Unconvertible('the statement is no call of a function')
    if (!this.#is('where')) return { editor, where: this.#end(undefined) }
    this.#at++
    return { editor, where: this.#end(this.#or()) }
  }

  condition(): Node {
    return this.#end(this.#or())
  }

  #end<Result>(result: Result): Result {
    if (this.#next.kind !== 'end') this.#refuse(this.#next)
    return result
  }

  get #next(): Token {
    return this.#tokens[this.#at] as Token
  }

  #take(): Token {
    const token = this.#next
    if (token.kind !== 'end') this.#at++
    return token
  }

  #refuse({ kind, text }: Token): never {
    throw new Unconvertible(kind === 'end' ? 'it ends too early' : `\`${text}\` cannot stand where it does`)
  }

  #is(text: string): boolean {
    return (this.#next.kind === 'sign' || this.#next.kind === 'name') && this.#next.text === text
  }

  #accept(text: string): boolean {
    const isNext = this.#is(text)
    if (isNext) this.#at++
    return isNext
  }

  #expect(text: string): void {
    if (!this.#accept(text)) this.#refuse(this.#next)
  }

  #or(): Node {
    let left = this.#and()
    while (this.#accept('or')) left = { type: 'both', operator: 'or', left, right: this.#and() }
    return left
  }

  #and(): Node {
    let left = this.#not()
    while (this.#accept('and')) left = { type: 'both', operator: 'and', left, right: this.#not() }
    return left
  }

  #not(): Node {
    return this.#accept('not') ? { type: 'not', value: this.#test() } : this.#test()
  }

  /** A comparison, a call, or a condition in parentheses, which may also be the left side of a comparison. */
  #test(): Node {
    const start = this.#at
    if (this.#accept('(')) {
      const inner = this.#or()
      this.#expect(')')
      if (![...comparisons, '+', '-', '*', '/'].some((sign) => this.#is(sign))) return inner
      this.#at = start
    }
    const left = this.#value()
    const operator = comparisons.find((sign) => this.#is(sign))
    if (operator === undefined) return left
    this.#at++
    return { type: 'compare', operator, left, right: this.#value() }
  }

  #value(): Node {
    let left = this.#product()
    while (this.#is('+') || this.#is('-')) {
      const operator = this.#take().text
      left = { type: 'math', operator, left, right: this.#product() }
    }
    return left
  }

  #product(): Node {
    let left = this.#atom()
    while (this.#is('*') || this.#is('/')) {
      const operator = this.#take().text
      left = { type: 'math', operator, left, right: this.#atom() }
    }
    return left
  }

  #atom(): Node {
    const token = this.#take()
    if (token.kind === 'text') return { type: 'literal', value: token.text }
    if (token.kind === 'bytes') return { type: 'literal', value: token.text.toLowerCase() }
    if (token.kind === 'number') return numberOf(token.text)
    if (token.kind === 'sign') {
      if (token.text === '-' || token.text === '+') {
        const number = this.#take()
        return number.kind === 'number' ? numberOf(`${token.text}${number.text}`) : this.#refuse(number)
      }
      if (token.text === '[') return { type: 'list', items: this.#listUntil(']', () => this.#value()) }
      if (token.text === '{') return { type: 'map', members: this.#listUntil('}', () => this.#member()) }
      if (token.text === '(') {
        const inner = this.#value()
        this.#expect(')')
        return inner
      }
    }
    if (token.kind !== 'name') return this.#refuse(token)
    if (token.text === 'nil') return { type: 'nil' }
    if (token.text === 'true' || token.text === 'false') return { type: 'literal', value: token.text === 'true' }
    if (this.#accept('(')) {
      const values = this.#listUntil(')', () => this.#argument())
      return { type: 'call', name: token.text, values, keys: this.#keys() }
    }
    if (/^[A-Z]/.test(token.text)) return { type: 'name', name: token.text }
    const parts: PathPart[] = [{ name: token.text, keys: this.#keys() }]
    while (this.#accept('.')) {
      const next = this.#take()
      if (next.kind !== 'name') this.#refuse(next)
      parts.push({ name: next.text, keys: this.#keys() })
    }
    return { type: 'path', parts }
  }

  #listUntil<Item>(end: string, item: () => Item): Item[] {
    const items: Item[] = []
    while (!this.#accept(end)) {
      items.push(item())
      if (!this.#is(end)) this.#expect(',')
    }
    return items
  }

  #member(): readonly [string, Node] {
    const key = this.#take()
    if (key.kind !== 'text') this.#refuse(key)
    this.#expect(':')
    return [key.text, this.#value()]
  }

  #argument(): Argument {
    const following = this.#tokens[this.#at + 1]
    if (this.#next.kind === 'name' && following?.kind === 'sign' && following.text === '=') {
      const name = this.#take().text
      this.#at++
      return { name, value: this.#value() }
    }
    return { value: this.#value() }
  }

  #keys(): Key[] {
    const keys: Key[] = []
    while (this.#accept('[')) {
      const key = this.#take()
      if (key.kind !== 'text' && key.kind !== 'number') {
        throw new Unconvertible('a key that is computed has no counterpart in a path')
      }
      keys.push(key.kind === 'number' ? Number(key.text) : key.text)
      this.#expect(']')
    }
    return keys
  }
}

function numberOf(text: string): Node {
  return { type: 'number', value: Number(text), isFloat: /[.eE]/.test(text) }
}
