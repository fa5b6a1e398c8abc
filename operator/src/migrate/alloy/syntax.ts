// Alloy's syntax: blocks with names, labels and bodies; attributes with expressions. The parser skips a statement that it cannot read,
// reports a problem, and continues with the next statement.

import { SyntaxProblem, type Token, tokensOf } from './tokens.ts'

export type Expression = { readonly line: number } & (
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'object'; readonly members: readonly (readonly [string, Expression])[] }
  /** `loki.write.default.receiver`. */
  | { readonly kind: 'path'; readonly path: readonly string[] }
  | { readonly kind: 'index'; readonly of: Expression; readonly index: Expression }
  | { readonly kind: 'call'; readonly name: string; readonly values: readonly Expression[] }
  | { readonly kind: 'binary'; readonly sign: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: 'unary'; readonly sign: string; readonly value: Expression }
)

export interface Attribute {
  readonly name: string
  readonly line: number
  readonly value: Expression
}

export interface Block {
  /** `stage.json`. */
  readonly name: string
  /** The text after the name. */
  readonly label: string | undefined
  readonly line: number
  readonly attributes: readonly Attribute[]
  readonly blocks: readonly Block[]
}

export interface AlloyFile {
  readonly attributes: readonly Attribute[]
  readonly blocks: readonly Block[]
  readonly problems: readonly { readonly line: number; readonly message: string }[]
}

export function parseAlloy(text: string): AlloyFile {
  let tokens: readonly Token[]
  try {
    tokens = tokensOf(text)
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error
    // The text before the problem is still readable.
    const before = text
      .split('\n')
      .slice(0, error.line - 1)
      .join('\n')
    const rest = error.line > 1 ? parseAlloy(before) : { attributes: [], blocks: [], problems: [] }
    return {
      ...rest,
      problems: [...rest.problems, { line: error.line, message: `${error.message}; nothing after it is read` }],
    }
  }
  return new Parser(tokens).file()
}

/** The precedence of binary operators. */
const strengths: Readonly<Record<string, number>> = {
  '||': 1,
  '&&': 2,
  '==': 3,
  '!=': 3,
  '<': 3,
  '<=': 3,
  '>': 3,
  '>=': 3,
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
  '%': 5,
  '^': 6,
}
const maxDepth = 100
const maxOperands = 500

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  file(): AlloyFile {
    const attributes: Attribute[] = []
    const blocks: Block[] = []
    const problems: { line: number; message: string }[] = []
    while (this.#peek().kind !== 'end') {
      try {
        this.#statement(attributes, blocks)
      } catch (error) {
        if (!(error instanceof SyntaxProblem)) throw error
        problems.push({ line: error.line, message: error.message })
        this.#depth = 0
        this.#at++
        while (this.#peek().kind !== 'end' && !this.#beginsStatement()) this.#at++
      }
    }
    return { attributes, blocks, problems }
  }

  #beginsStatement(): boolean {
    const { kind, depth, isFirstOfLine } = this.#peek()
    return kind === 'name' && depth === 0 && isFirstOfLine
  }

  #peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token
  }

  #accept(sign: string): boolean {
    const token = this.#peek()
    if (token.kind !== 'sign' || token.text !== sign) return false
    this.#at++
    return true
  }

  #expect(sign: string): void {
    if (!this.#accept(sign)) this.#fail(`\`${sign}\``)
  }

  #fail(expected: string): never {
    const { text, line } = this.#peek()
    throw new SyntaxProblem(line, `expected ${expected}, found \`${text}\``)
  }

  #name(): string {
    const token = this.#peek()
    if (token.kind !== 'name') this.#fail('a name')
    this.#at++
    return token.text
  }

  #statement(attributes: Attribute[], blocks: Block[]): void {
    const { line } = this.#peek()
    let name = this.#name()
    while (this.#accept('.')) name += `.${this.#name()}`
    if (this.#accept('=')) {
      attributes.push({ name, line, value: this.#expression(0) })
      return
    }
    const next = this.#peek()
    const label = next.kind === 'text' ? next.text : undefined
    if (label !== undefined) this.#at++
    this.#expect('{')
    if (++this.#depth > maxDepth) throw new SyntaxProblem(line, 'blocks are nested too deep')
    const inner = { attributes: [] as Attribute[], blocks: [] as Block[] }
    while (!this.#accept('}')) {
      if (this.#peek().kind === 'end') this.#fail('`}`')
      this.#statement(inner.attributes, inner.blocks)
      this.#accept(',')
    }
    this.#depth--
    blocks.push({ name, label, line, ...inner })
  }

  #expression(strength: number): Expression {
    if (++this.#depth > maxDepth) throw new SyntaxProblem(this.#peek().line, 'an expression is nested too deep')
    let left = this.#unary()
    for (let steps = 0; ; steps++) {
      const { kind, text, line } = this.#peek()
      if (steps > maxOperands) throw new SyntaxProblem(line, 'an expression is too long')
      const own = kind === 'sign' && Object.hasOwn(strengths, text) ? (strengths[text] as number) : 0
      if (own <= strength) break
      this.#at++
      // A power is right-associative.
      const right = this.#expression(text === '^' ? own - 1 : own)
      left = { kind: 'binary', sign: text, left, right, line }
    }
    this.#depth--
    return left
  }

  #unary(): Expression {
    const { kind, text, line } = this.#peek()
    if (kind === 'sign' && (text === '-' || text === '!')) {
      this.#at++
      if (++this.#depth > maxDepth) throw new SyntaxProblem(line, 'an expression is nested too deep')
      const value = this.#unary()
      this.#depth--
      return { kind: 'unary', sign: text, value, line }
    }
    return this.#access(this.#primary())
  }

  #access(start: Expression): Expression {
    let value = start
    for (let steps = 0; ; steps++) {
      const { line } = this.#peek()
      if (steps > maxDepth) throw new SyntaxProblem(line, 'a path is too long')
      if (this.#accept('.')) {
        const name = this.#name()
        value =
          value.kind === 'path'
            ? { ...value, path: [...value.path, name] }
            : { kind: 'index', of: value, index: { kind: 'literal', value: name, line }, line }
      } else if (this.#accept('[')) {
        const index = this.#expression(0)
        this.#expect(']')
        value = { kind: 'index', of: value, index, line }
      } else if (value.kind === 'path' && this.#accept('(')) {
        value = { kind: 'call', name: value.path.join('.'), values: this.#items(')'), line: value.line }
      } else return value
    }
  }

  #items(end: string): readonly Expression[] {
    const items: Expression[] = []
    while (!this.#accept(end)) {
      items.push(this.#expression(0))
      if (!this.#accept(',')) {
        this.#expect(end)
        break
      }
    }
    return items
  }

  #primary(): Expression {
    const { kind, text, line } = this.#peek()
    this.#at++
    if (kind === 'text') return { kind: 'literal', value: text, line }
    if (kind === 'number') return { kind: 'literal', value: Number(text), line }
    if (kind === 'name') {
      if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true', line }
      if (text === 'null') return { kind: 'literal', value: null, line }
      return { kind: 'path', path: [text], line }
    }
    if (kind === 'sign' && text === '[') return { kind: 'list', items: this.#items(']'), line }
    if (kind === 'sign' && text === '(') {
      const inner = this.#expression(0)
      this.#expect(')')
      return inner
    }
    if (kind === 'sign' && text === '{') return { kind: 'object', members: this.#members(), line }
    this.#at--
    this.#fail('a value')
  }

  #members(): readonly (readonly [string, Expression])[] {
    const members: (readonly [string, Expression])[] = []
    while (!this.#accept('}')) {
      const { kind, text } = this.#peek()
      if (kind !== 'name' && kind !== 'text') this.#fail('the name of a member')
      this.#at++
      this.#expect('=')
      members.push([text, this.#expression(0)])
      if (!this.#accept(',')) {
        this.#expect('}')
        break
      }
    }
    return members
  }
}
