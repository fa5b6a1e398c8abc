// Converts source text to tokens. Operators are read greedily; a name directly before `(` or `!` is a function name.

import type { Span, SyntaxProblem } from './ast.ts'

export type TokenType =
  | 'newline'
  | 'identifier'
  | 'path-field'
  | 'call'
  | 'keyword'
  | 'reserved'
  | 'underscore'
  | 'integer'
  | 'float'
  | 'string'
  | 'raw-string'
  | 'regex'
  | 'timestamp'
  | 'operator'
  | 'punctuation'
  | 'bang'
  | 'invalid'
  | 'end'

export interface Token {
  readonly type: TokenType
  /** The text, without quotes for literals. */
  readonly text: string
  readonly start: number
  readonly end: number
}

/** A problem that ends the parsing of the whole program. */
export class LexicalError {
  readonly problem: SyntaxProblem

  constructor(code: number, message: string, span: Span, context: boolean) {
    const labels = [{ primary: true, span, message }]
    if (context) labels.push({ primary: false, span, message: 'use another name' })
    this.problem = { code, message, span, labels }
  }
}

export const keywords: ReadonlySet<string> = new Set(['if', 'else', 'true', 'false', 'null', 'abort', 'return'])
/** Reserved names, allowed only in paths, calls and argument keywords. */
export const reserved: ReadonlySet<string> = new Set(
  (
    'array bool boolean break continue do emit float for forall foreach all each any try undefined int integer iter object ' +
    'regex string traverse timestamp duration unless walk while loop'
  ).split(' '),
)

const word = /[@_A-Za-z0-9]+/y
const digits = /-?[0-9][0-9_]*/y
const fraction = /\.[0-9_]*/y
const operatorRun = /[!&*+\-/<=>?|]+/y
const skipToElse = /(?:\s|#[^\n]*)*else(?![@_A-Za-z0-9])/y

function isWordStart(code: number): boolean {
  return code === 0x40 || code === 0x5f || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isOperator(code: number): boolean {
  return !Number.isNaN(code) && '!&*+-/<=>?|'.includes(String.fromCharCode(code))
}

/** All tokens, the last of type `end`; throws a LexicalError for a character that cannot start a token. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  const push = (type: TokenType, text: string, end: number): void => {
    tokens.push({ type, text, start: at, end })
    at = end
  }
  const match = (pattern: RegExp, from: number): string | undefined => {
    pattern.lastIndex = from
    return pattern.exec(source)?.[0]
  }
  while (at < source.length) {
    const code = source.charCodeAt(at)
    const char = source[at] as string
    if (char === '\n') {
      if (match(skipToElse, at) === undefined) push('newline', char, at + 1)
      else at++
      continue
    }
    if (/\s|\u0085/u.test(char) && char !== '\ufeff') {
      at++
      continue
    }
    if (char === '#') {
      const end = source.indexOf('\n', at)
      at = end < 0 ? source.length : end
      continue
    }
    if (char === '"') {
      const end = closing(source, at + 1, '"')
      if (end < 0) throw new LexicalError(207, 'unclosed string', [at, at + 1], false)
      push('string', source.slice(at + 1, end), end + 1)
      continue
    }
    if ((char === 's' || char === 'r' || char === 't') && source[at + 1] === "'") {
      const end = closing(source, at + 2, "'")
      if (end < 0) throw new LexicalError(208, 'unclosed literal', [at, at + 1], false)
      push(char === 's' ? 'raw-string' : char === 'r' ? 'regex' : 'timestamp', source.slice(at + 2, end), end + 1)
      continue
    }
    if (isWordStart(code)) {
      const text = match(word, at) as string
      push(wordType(text, source[at + text.length]), text, at + text.length)
      continue
    }
    if (isDigit(code) || (char === '-' && isDigit(source.charCodeAt(at + 1)))) {
      const number = match(digits, at) as string
      const after = source.charCodeAt(at + number.length)
      if (char !== '-' && isWordStart(after)) {
        const text = match(word, at) as string
        push(wordType(text, source[at + text.length]), text, at + text.length)
        continue
      }
      const decimals = match(fraction, at + number.length)
      if (decimals !== undefined) {
        push('float', number + decimals, at + number.length + decimals.length)
        continue
      }
      const value = BigInt(number.replaceAll('_', ''))
      const end = at + number.length
      if (BigInt.asIntN(64, value) !== value) throw new LexicalError(206, 'invalid number', [at, end], false)
      push('integer', number, end)
      continue
    }
    if (char === '!') {
      const next = source.charCodeAt(at + 1)
      if (next === 0x21 || (!Number.isNaN(next) && !isOperator(next))) {
        push('bang', char, at + 1)
        continue
      }
    }
    if (isOperator(code)) {
      const run = match(operatorRun, at) as string
      // The arrow of a closure may directly precede the bar.
      const text = run.startsWith('->|') ? '->' : run
      push('operator', text, at + text.length)
      continue
    }
    if ('()[]{},;:.%'.includes(char)) {
      push('punctuation', char, at + 1)
      continue
    }
    const length = (source.codePointAt(at) as number) > 0xffff ? 2 : 1
    push('invalid', source.slice(at, at + length), at + length)
  }
  push('end', '', at)
  return tokens
}

function wordType(text: string, next: string | undefined): TokenType {
  if (text === '_') return 'underscore'
  if (next === '(' || next === '!') return 'call'
  if (keywords.has(text)) return 'keyword'
  if (reserved.has(text)) return 'reserved'
  return text.includes('@') ? 'path-field' : 'identifier'
}

function closing(source: string, from: number, quote: string): number {
  for (let at = from; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (source[at] === quote) return at
  }
  return -1
}

export type StringPart = { readonly text: string } | { readonly variable: string }

/** Splits a double-quoted string into text and template variables. */
export function stringParts(raw: string, offset: number, templates: boolean): StringPart[] {
  const parts: StringPart[] = []
  let text = ''
  let at = 0
  while (at < raw.length) {
    const char = raw[at] as string
    if (char === '\\') {
      const next = raw[at + 1] as string
      if ((next === '{' || next === '}') && raw[at + 2] === next) {
        text += next + next
        at += 3
        continue
      }
      if (next === '\\' && templates && raw[at + 2] === '{' && raw[at + 3] === '{') {
        text += '{{'
        at += 4
        continue
      }
      const [value, length] = unescaped(raw, at, offset)
      text += value
      at += length
      continue
    }
    if (templates && char === '{' && raw[at + 1] === '{') {
      const end = raw.indexOf('}}', at + 2)
      if (end < 0) break // an unclosed template drops the rest
      const name = raw.slice(at + 2, end)
      if (name !== '') {
        if (text !== '') parts.push({ text })
        text = ''
        parts.push({ variable: name.trim() })
      }
      at = end + 2
      continue
    }
    text += char
    at++
  }
  if (text !== '' || parts.length === 0) parts.push({ text })
  return parts
}

const simpleEscapes = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['0', '\0'],
  ['\\', '\\'],
  ['"', '"'],
  ["'", "'"],
  ['{', '{'],
  ['}', '}'],
])

function unescaped(raw: string, at: number, offset: number): [string, number] {
  const next = raw[at + 1] as string
  const simple = simpleEscapes.get(next)
  if (simple !== undefined) return [simple, 2]
  if (next === '\n') {
    let end = at + 2
    while (end < raw.length && /\s/u.test(raw[end] as string)) end++
    return ['', end - at]
  }
  if (next === 'u' && raw[at + 2] === '{') {
    const end = raw.indexOf('}', at)
    const hex = end < 0 ? '' : raw.slice(at + 3, end)
    if (!/^[0-9A-Fa-f]*$/.test(hex)) {
      throw new LexicalError(209, 'invalid escape character: \\u', [offset + at + 1, offset + at + 2], false)
    }
    const value = /^[0-9A-Fa-f]+$/.test(hex) ? Number.parseInt(hex, 16) : -1
    if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      const stop = end < 0 ? raw.length : end + 1
      throw new LexicalError(211, 'invalid Unicode escape', [offset + at, offset + stop], false)
    }
    return [String.fromCodePoint(value), end + 1 - at]
  }
  throw new LexicalError(209, `invalid escape character: \\${next}`, [offset + at + 1, offset + at + 2], false)
}
