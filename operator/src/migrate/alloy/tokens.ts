// Tokens of Alloy's syntax.

import { unquote } from '../loki/selector.ts'
import { matchesIn } from '../matches.ts'

export interface Token {
  readonly kind: 'name' | 'number' | 'text' | 'sign' | 'end'
  readonly text: string
  /** From 1. */
  readonly line: number
  /** Number of open braces before it. */
  readonly depth: number
  readonly isFirstOfLine: boolean
}

export class SyntaxProblem extends Error {
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

const pattern =
  /([ \t\r]+)|(\n)|(\/\/[^\n]*)|(\/\*[\s\S]*?\*\/)|([A-Za-z_]\w*)|(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|"((?:[^"\\\n]|\\.)*)"|`([^`]*)`|(==|!=|<=|>=|&&|\|\||[{}()[\].,=+\-*/%^<>!])/y

/** Throws a SyntaxProblem for text that is not a token. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  let line = 1
  let depth = 0
  let isFirstOfLine = true
  const refused = (rest: string) => new SyntaxProblem(line, `unexpected \`${rest.slice(0, 20).split('\n')[0]}\``)
  for (const found of matchesIn(text, pattern, refused)) {
    const [whole, , newline, , comment, name, number, quoted, raw, sign] = found
    const add = (kind: Token['kind'], value: string) => {
      tokens.push({ kind, text: value, line, depth, isFirstOfLine })
      isFirstOfLine = false
    }
    if (name !== undefined) add('name', name)
    else if (number !== undefined) add('number', number)
    else if (quoted !== undefined) add('text', unquote(quoted))
    else if (raw !== undefined) add('text', raw)
    else if (sign !== undefined) {
      if (sign === '}') depth = Math.max(0, depth - 1)
      add('sign', sign)
      if (sign === '{') depth++
    }
    if (newline !== undefined) isFirstOfLine = true
    if (newline !== undefined || comment !== undefined || raw !== undefined) line += whole.split('\n').length - 1
  }
  tokens.push({ kind: 'end', text: 'the end', line, depth: 0, isFirstOfLine: true })
  return tokens
}
