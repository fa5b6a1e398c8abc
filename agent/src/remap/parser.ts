// Converts tokens to a syntax tree. After a syntax error, parsing continues with the next root expression, so one
// compilation can report several; lexer errors end it.

import type { Value } from '../event/value.ts'
import { float, integer } from '../event/value.ts'
import type {
  Argument,
  BinaryOperator,
  Block,
  ClosureExpression,
  Expression,
  If,
  Query,
  Root,
  Span,
  SyntaxProblem,
  Target,
  WrittenSegment,
} from './ast.ts'
import { LexicalError, type StringPart, stringParts, type Token, tokenize } from './lexer.ts'

/** The root expressions of a program; a single problem if it cannot be tokenised. */
export function parseProgram(source: string): Root[] {
  try {
    return new Parser(source).program()
  } catch (error) {
    if (error instanceof LexicalError) return [{ node: 'problem', problem: error.problem }]
    throw error
  }
}

class SyntaxFailure {
  readonly problem: SyntaxProblem

  constructor(problem: SyntaxProblem) {
    this.problem = problem
  }
}

/** Binary operators by increasing precedence; all are left-associative. */
export const levels: readonly (readonly BinaryOperator[])[] = [
  ['??'],
  ['||', '&&'],
  ['==', '!='],
  ['>', '>=', '<', '<='],
  ['|'],
  ['+', '-'],
  ['*', '/'],
]

class Parser {
  readonly #source: string
  readonly #tokens: Token[]
  #at = 0

  constructor(source: string) {
    this.#source = source
    this.#tokens = tokenize(source)
  }

  get #token(): Token {
    return this.#tokens[this.#at] as Token
  }

  #atEnd(): boolean {
    return this.#token.type === 'end'
  }

  program(): Root[] {
    const roots: Root[] = []
    this.#newlines()
    while (!this.#atEnd()) {
      try {
        const expression = this.#expression()
        if (!this.#isEnd() && !this.#atEnd()) this.#unexpected('an operator', 'a new line')
        roots.push(expression)
      } catch (error) {
        if (!(error instanceof SyntaxFailure)) throw error
        roots.push({ node: 'problem', problem: error.problem })
        while (!this.#isEnd() && !this.#atEnd()) this.#at++
      }
      if (this.#isEnd()) this.#end()
    }
    return roots
  }

  /** @param expected tokens or parts of the language that could stand here */
  #unexpected(...expected: readonly string[]): never {
    const token = this.#token
    const needed = `expected ${expected.join(' or ')}`
    if (token.type === 'end') {
      const span: Span = [this.#source.length, this.#source.length]
      throw new SyntaxFailure({
        code: 204,
        message: 'unexpected end of program',
        span,
        labels: [
          { primary: true, span, message: 'unexpected end of program' },
          { primary: false, span, message: needed },
        ],
      })
    }
    const found = token.type === 'newline' ? 'new line' : `"${this.#source.slice(token.start, token.end)}"`
    return this.#wrong([token.start, token.end], `unexpected ${found}`, needed)
  }

  #wrong(span: Span, found: string, needed: string): never {
    throw new SyntaxFailure({
      code: 203,
      message: 'syntax error',
      span,
      labels: [
        { primary: true, span, message: found },
        { primary: false, span, message: needed },
      ],
    })
  }

  /** A wrong character in a path, or the end of a path that lacks its last part. */
  #unexpectedInPath(expected: string): never {
    const { type, text, start } = this.#token
    const { end } = this.#tokens[this.#at - 1] as Token
    const isInPath =
      start === end && (text === '[' || text === '{' || text === '(' || type === 'integer' || type === 'float')
    if (isInPath) return this.#unexpected(expected)
    return this.#wrong([end - 1, end], 'unexpected end of the path', `expected ${expected}`)
  }

  #is(text: string): boolean {
    const token = this.#token
    return (token.type === 'punctuation' || token.type === 'operator') && token.text === text
  }

  #take(text: string): Token {
    if (!this.#is(text)) this.#unexpected(`"${text}"`)
    return this.#next()
  }

  #next(): Token {
    const token = this.#token
    this.#at++
    return token
  }

  #isEnd(): boolean {
    return this.#token.type === 'newline' || this.#is(';')
  }

  /** `newline+ | ";" newline*` */
  #end(): void {
    if (this.#is(';')) this.#at++
    this.#newlines()
  }

  #newlines(): void {
    while (this.#token.type === 'newline') this.#at++
  }

  #isKeyword(text: string): boolean {
    return this.#token.type === 'keyword' && this.#token.text === text
  }

  #expression(): Expression {
    const token = this.#token
    if (token.type === 'keyword') {
      if (token.text === 'if') return this.#if()
      if (token.text === 'abort') {
        this.#at++
        const none = this.#isEnd() || this.#token.type === 'end' || this.#is('}') || this.#is(')')
        const message = none ? undefined : this.#expression()
        return { node: 'abort', span: [token.start, message?.span[1] ?? token.end], message }
      }
      if (token.text === 'return') {
        this.#at++
        const value = this.#expression()
        return { node: 'return', span: [token.start, value.span[1]], value }
      }
    }
    return this.#assignment()
  }

  #assignment(): Expression {
    let first: Target | undefined
    if (this.#token.type === 'underscore') {
      const token = this.#next()
      first = { target: 'none', span: [token.start, token.end] }
    } else {
      const expression = this.#arithmetic()
      if (!this.#is('=') && !this.#is('|=') && !this.#is(',')) return expression
      first = asTarget(expression)
      if (first === undefined) return expression
    }
    let error: Target | undefined
    if (this.#is(',')) {
      this.#at++
      error = this.#target()
    }
    if (!this.#is('=') && !this.#is('|=')) this.#unexpected('"="', '"|="')
    const operator = this.#next()
    this.#newlines()
    const value = this.#expression()
    return {
      node: 'assignment',
      span: [first.span[0], value.span[1]],
      to: first,
      error,
      merge: operator.text === '|=',
      operatorSpan: [operator.start, operator.end],
      value,
    }
  }

  #target(): Target {
    const token = this.#token
    if (token.type === 'underscore') {
      this.#at++
      return { target: 'none', span: [token.start, token.end] }
    }
    const start = this.#at
    const target = asTarget(this.#term())
    if (target !== undefined) return target
    this.#at = start
    return this.#unexpected('a path', 'a variable')
  }

  #arithmetic(level = 0): Expression {
    const operators = levels[level]
    if (operators === undefined) return this.#unary()
    let left = this.#arithmetic(level + 1)
    for (;;) {
      const token = this.#token
      const operator = operators.find((text) => text === token.text)
      if (token.type !== 'operator' || operator === undefined) return left
      this.#at++
      this.#newlines()
      const right = this.#arithmetic(level + 1)
      left = {
        node: 'binary',
        span: [left.span[0], right.span[1]],
        left,
        operator,
        operatorSpan: [token.start, token.end],
        right,
      }
    }
  }

  #unary(): Expression {
    const token = this.#token
    if (token.type !== 'bang') return this.#term()
    this.#at++
    const operand = this.#unary()
    return { node: 'not', span: [token.start, operand.span[1]], operator: [token.start, token.end], operand }
  }

  #term(): Expression {
    const token = this.#token
    const span: Span = [token.start, token.end]
    switch (token.type) {
      case 'integer':
        this.#at++
        return { node: 'literal', span, value: integer(BigInt(token.text.replaceAll('_', ''))) }
      case 'float':
        this.#at++
        return { node: 'literal', span, value: float(Number(token.text.replaceAll('_', ''))) }
      case 'string':
        this.#at++
        return template(stringParts(token.text, token.start + 1, true), span)
      case 'raw-string':
        this.#at++
        return { node: 'literal', span, value: token.text }
      case 'regex':
        this.#at++
        return { node: 'regex', span, pattern: token.text.replaceAll("\\'", "'") }
      case 'timestamp':
        this.#at++
        return { node: 'timestamp', span, text: token.text }
      case 'reserved':
        throw new LexicalError(205, `reserved keyword: ${token.text}`, span, true)
      case 'keyword':
        if (token.text === 'true' || token.text === 'false' || token.text === 'null') {
          this.#at++
          const value: Value = token.text === 'null' ? null : token.text === 'true'
          return { node: 'literal', span, value }
        }
        return this.#unexpected('an expression')
      case 'identifier':
        this.#at++
        return this.#query({ node: 'variable', span, name: token.text })
      case 'call':
        return this.#call()
      case 'punctuation':
        if (token.text === '.' || token.text === '%') {
          this.#at++
          const root = token.text === '.' ? 'event' : 'metadata'
          const segments: WrittenSegment[] = []
          const field = this.#field()
          if (field !== undefined) segments.push(field)
          return this.#segments({ node: 'query', span, root, segments })
        }
        if (token.text === '(') return this.#group()
        if (token.text === '[') return this.#query(this.#array())
        if (token.text === '{') return this.#query(this.#isObject() ? this.#object() : this.#block())
        return this.#unexpected('an expression')
      default:
        return this.#unexpected('an expression')
    }
  }

  /** A field name directly after the last token. */
  #field(): WrittenSegment | undefined {
    const token = this.#token
    if (token.start !== this.#tokens[this.#at - 1]?.end) return undefined
    const span: Span = [token.start, token.end]
    switch (token.type) {
      case 'identifier':
      case 'path-field':
      case 'keyword':
      case 'reserved':
      case 'underscore':
        this.#at++
        return { value: token.text, span }
      case 'string': {
        this.#at++
        const [part] = stringParts(token.text, token.start + 1, false) as [{ text: string }]
        return { value: part.text, span }
      }
      default:
        return undefined
    }
  }

  #query(root: Expression): Expression {
    const query = this.#segments({ node: 'query', span: root.span, root, segments: [] })
    return query.segments.length === 0 ? root : query
  }

  #segments(query: Query): Query {
    const segments = [...query.segments]
    for (;;) {
      const token = this.#token
      const end = this.#tokens[this.#at - 1]?.end as number
      if (token.start !== end) break
      if (this.#is('[')) {
        this.#at++
        const index = this.#token
        if (index.type === 'end') this.#unexpectedInPath('an integer')
        if (index.type !== 'integer') this.#unexpected('an integer')
        this.#at++
        if (this.#token.type === 'end') this.#unexpectedInPath('"]"')
        const close = this.#take(']')
        segments.push({ value: Number(index.text.replaceAll('_', '')), span: [token.start, close.end] })
      } else if (this.#is('.') && (segments.length > 0 || typeof query.root !== 'string')) {
        this.#at++
        const field = this.#field()
        if (field === undefined) return this.#unexpectedInPath('the name of a field')
        segments.push(field)
      } else break
    }
    return { ...query, segments, span: [query.span[0], this.#tokens[this.#at - 1]?.end as number] }
  }

  #group(): Expression {
    const open = this.#take('(')
    const inner = this.#assignment()
    const close = this.#take(')')
    return { node: 'group', span: [open.start, close.end], inner }
  }

  #array(): Expression {
    const open = this.#take('[')
    const items: Expression[] = []
    this.#newlines()
    while (!this.#is(']')) {
      items.push(this.#arithmetic())
      if (this.#is(',')) {
        this.#at++
        this.#newlines()
        continue
      }
      this.#newlines()
      if (!this.#is(']')) this.#unexpected('","', '"]"')
    }
    const close = this.#take(']')
    return { node: 'array', span: [open.start, close.end], items }
  }

  /** Whether the current `{` begins an object: it is empty, or its first token is a string before `:`. */
  #isObject(): boolean {
    let at = this.#at + 1
    while (this.#tokens[at]?.type === 'newline') at++
    const first = this.#tokens[at] as Token
    if (first.type === 'punctuation' && first.text === '}') return true
    return first.type === 'string' && this.#tokens[at + 1]?.text === ':'
  }

  #object(): Expression {
    const open = this.#take('{')
    const fields: [string, Expression][] = []
    this.#newlines()
    while (!this.#is('}')) {
      const key = this.#token
      if (key.type !== 'string') this.#unexpected('a quoted name', '"}"')
      this.#at++
      this.#take(':')
      const [part] = stringParts(key.text, key.start + 1, false) as [{ text: string }]
      fields.push([part.text, this.#arithmetic()])
      if (this.#is(',')) {
        this.#at++
        this.#newlines()
        continue
      }
      this.#newlines()
      if (!this.#is('}')) this.#unexpected('","', '"}"')
    }
    const close = this.#take('}')
    return { node: 'object', span: [open.start, close.end], fields }
  }

  #block(): Block {
    const open = this.#take('{')
    this.#newlines()
    const body = [this.#expression()]
    for (;;) {
      if (this.#isEnd()) this.#end()
      else if (!this.#is('}')) this.#unexpected('a new line', '"}"')
      if (this.#is('}')) break
      body.push(this.#expression())
    }
    const close = this.#take('}')
    return { node: 'block', span: [open.start, close.end], body }
  }

  #if(): If {
    const start = this.#next().start
    const predicate = this.#predicate()
    this.#newlines()
    const consequent = this.#block()
    let alternative: Block | If | undefined
    if (this.#isKeyword('else')) {
      this.#at++
      this.#newlines()
      alternative = this.#isKeyword('if') ? this.#if() : this.#block()
    }
    const end = (alternative ?? consequent).span[1]
    return { node: 'if', span: [start, end], predicate, consequent, alternative }
  }

  #predicate(): If['predicate'] {
    if (!this.#is('(') || !this.#isSequence()) {
      const expression = this.#arithmetic()
      return { span: expression.span, body: [expression] }
    }
    const open = this.#next()
    this.#newlines()
    const body: Expression[] = []
    while (!this.#is(')')) {
      body.push(this.#expression())
      // Only the last of several expressions may lack an end.
      if (!this.#isEnd() && (body.length === 1 || !this.#is(')'))) this.#unexpected('a new line', '";"')
      while (this.#isEnd()) this.#at++
    }
    if (body.length === 0) this.#unexpected('an expression')
    const close = this.#next()
    return { span: [open.start, close.end], body }
  }

  /** Whether the current parenthesis contains several expressions. */
  #isSequence(): boolean {
    let depth = 0
    for (let at = this.#at; at < this.#tokens.length; at++) {
      const token = this.#tokens[at] as Token
      if (token.type === 'newline' && depth === 1 && this.#tokens[at - 1]?.type !== 'operator') return true
      if (token.type !== 'punctuation') continue
      if ('([{'.includes(token.text)) depth++
      else if (')]}'.includes(token.text) && --depth === 0) return false
      else if (token.text === ';' && depth === 1) return true
    }
    return false
  }

  #call(): Expression {
    const name = this.#next()
    let bang: Span | undefined
    if (this.#token.type === 'bang') {
      const token = this.#next()
      bang = [token.start, token.end]
    }
    if (bang === undefined && this.#token.start !== name.end) this.#unexpected('"("')
    this.#take('(')
    this.#newlines()
    const args: Argument[] = []
    while (!this.#is(')')) {
      args.push(this.#argument())
      if (this.#is(',')) {
        this.#at++
        this.#newlines()
        continue
      }
      this.#newlines()
      if (!this.#is(')')) this.#unexpected('","', '")"')
    }
    const close = this.#take(')')
    const closure = this.#is('->') ? this.#closure() : undefined
    const call: Expression = {
      node: 'call',
      span: [name.start, closure?.span[1] ?? close.end],
      name: name.text,
      nameSpan: [name.start, name.end],
      bang,
      arguments: args,
      closure,
    }
    return closure === undefined ? this.#query(call) : call
  }

  #argument(): Argument {
    const token = this.#token
    const named = ['identifier', 'keyword', 'reserved', 'path-field'].includes(token.type)
    const colon = this.#tokens[this.#at + 1]
    if (named && colon?.type === 'punctuation' && colon.text === ':') {
      this.#at += 2
      const value = this.#arithmetic()
      return { span: value.span, keyword: token.text, keywordSpan: [token.start, token.end], value }
    }
    const value = this.#arithmetic()
    return { span: value.span, keyword: undefined, keywordSpan: value.span, value }
  }

  #closure(): ClosureExpression {
    const arrow = this.#take('->')
    const parameters: { name: string; span: Span }[] = []
    let parametersSpan: Span
    if (this.#is('||')) {
      const token = this.#next()
      parametersSpan = [token.start, token.end]
    } else {
      const open = this.#take('|')
      while (!this.#is('|')) {
        const token = this.#token
        if (token.type === 'reserved') {
          throw new LexicalError(205, `reserved keyword: ${token.text}`, [token.start, token.end], true)
        }
        if (token.type !== 'identifier' && token.type !== 'underscore') this.#unexpected('a name')
        this.#at++
        parameters.push({ name: token.text, span: [token.start, token.end] })
        if (this.#is(',')) {
          this.#at++
          this.#newlines()
          continue
        }
        this.#newlines()
        if (!this.#is('|')) this.#unexpected('","', '"|"')
      }
      const close = this.#next()
      const first = parameters[0]
      const last = parameters.at(-1)
      parametersSpan =
        first === undefined || last === undefined ? [open.start, close.end] : [first.span[0], last.span[1]]
    }
    this.#newlines()
    const body = this.#block()
    return { span: [arrow.start, body.span[1]], parameters, parametersSpan, body }
  }
}

/** The expression as an assignment target; undefined if it cannot be one. */
function asTarget(expression: Expression): Target | undefined {
  const span = expression.span
  if (expression.node === 'variable') return { target: 'variable', span, name: expression.name, segments: [] }
  if (expression.node !== 'query') return undefined
  const { root, segments } = expression
  if (typeof root === 'string') return { target: root, span, segments }
  if (root.node === 'variable') return { target: 'variable', span, name: root.name, segments }
  return { target: 'invalid', span }
}

/** A string with templates is the sum of its parts. */
function template(parts: readonly StringPart[], span: Span): Expression {
  let sum: Expression | undefined
  for (const part of parts) {
    const piece: Expression =
      'text' in part ? { node: 'literal', span, value: part.text } : { node: 'variable', span, name: part.variable }
    sum =
      sum === undefined ? piece : { node: 'binary', span, left: sum, operator: '+', operatorSpan: span, right: piece }
  }
  return sum as Expression
}
