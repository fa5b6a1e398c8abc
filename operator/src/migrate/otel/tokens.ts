// Reads the tokens of an expression one after another, for the parsers of the collector's two languages.

export interface Token {
  readonly kind: 'name' | 'number' | 'bytes' | 'text' | 'sign' | 'end'
  readonly text: string
}

export class TokenReader {
  readonly #tokens: readonly Token[]
  readonly #error: (reason: string) => Error
  /** Place of the next token: set it to go back. */
  at = 0

  /**
   * @param tokens of which the last one is of kind `end`
   * @param error of a token that cannot stand where it does
   */
  constructor(tokens: readonly Token[], error: (reason: string) => Error) {
    this.#tokens = tokens
    this.#error = error
  }

  get next(): Token {
    return this.#tokens[this.at] as Token
  }

  /** The one behind the next. */
  get following(): Token | undefined {
    return this.#tokens[this.at + 1]
  }

  /** The next token, and goes on behind it; the end stays the end. */
  take(): Token {
    const token = this.next
    if (token.kind !== 'end') this.at++
    return token
  }

  /** Whether the next token is a sign or word of the language. */
  is(text: string): boolean {
    const { kind, text: found } = this.next
    return (kind === 'sign' || kind === 'name') && found === text
  }

  /** The same, and takes it then. */
  accept(text: string): boolean {
    const isNext = this.is(text)
    if (isNext) this.at++
    return isNext
  }

  expect(text: string): void {
    if (!this.accept(text)) this.refuse(this.next)
  }

  /** Returns what was read of the whole text. */
  end<Result>(result: Result): Result {
    if (this.next.kind !== 'end') this.refuse(this.next)
    return result
  }

  refuse({ kind, text }: Token): never {
    throw this.#error(kind === 'end' ? 'it ends too early' : `\`${text}\` cannot stand where it does`)
  }
}
