// A cursor over the tokens of an expression, for the parsers of the collector's two languages.

export interface Token {
  readonly kind: 'name' | 'number' | 'bytes' | 'text' | 'sign' | 'end'
  readonly text: string
}

export class TokenReader {
  readonly #tokens: readonly Token[]
  readonly #error: (reason: string) => Error
  /** Index of the next token. Set it to go back. */
  at = 0

  /**
   * @param tokens the last one must have the kind `end`
   * @param error creates the error for an unexpected token
   */
  constructor(tokens: readonly Token[], error: (reason: string) => Error) {
    this.#tokens = tokens
    this.#error = error
  }

  get next(): Token {
    return this.#tokens[this.at] as Token
  }

  /** The token after the next one. */
  get following(): Token | undefined {
    return this.#tokens[this.at + 1]
  }

  /** Returns the next token and advances, but not beyond the end. */
  take(): Token {
    const token = this.next
    if (token.kind !== 'end') this.at++
    return token
  }

  /** Whether the next token is this operator or keyword. */
  is(text: string): boolean {
    const { kind, text: found } = this.next
    return (kind === 'sign' || kind === 'name') && found === text
  }

  /** The same, and consumes the token if so. */
  accept(text: string): boolean {
    const isNext = this.is(text)
    if (isNext) this.at++
    return isNext
  }

  expect(text: string): void {
    if (!this.accept(text)) this.refuse(this.next)
  }

  /** Returns the parsed result if an operator follows it, and consumes the operator. */
  expected<Result>(result: Result, text: string): Result {
    this.expect(text)
    return result
  }

  /** Returns the parsed result if the whole text has been read. */
  end<Result>(result: Result): Result {
    if (this.next.kind !== 'end') this.refuse(this.next)
    return result
  }

  refuse({ kind, text }: Token): never {
    throw this.#error(kind === 'end' ? 'it ends unexpectedly' : `\`${text}\` is unexpected`)
  }
}
