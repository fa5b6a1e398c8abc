// The text form of a Ruby hash: `{ "a" => 1, :b => nil, c: [true] }`. Numbers are floats, and quoted text keeps its
// backslashes.
// Hand-written, because no library parses this form.

import { float, setField, type Value, type ValueObject } from '../event/value.ts'

const maxDepth = 128
const blank = /[ \t\r\n]*/y
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const infinite = /([+-]?)inf(?:inity)?/iy
const symbol = /[A-Za-z0-9_]+/y
const word = /nil|true|false/y
const words: Readonly<Record<string, Value>> = { nil: null, true: true, false: false }

/** The object of a text; undefined if it has another format. */
export function parseRubyHash(text: string): ValueObject | undefined {
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  const skip = (token: string): boolean => {
    take(blank)
    if (!text.startsWith(token, at)) return false
    at += token.length
    return true
  }
  /** A name, or a quoted text including its backslashes. */
  const quotedOr = (other: RegExp | undefined): string | undefined => {
    const quote = text[at]
    if (quote !== '"' && quote !== "'") return other === undefined ? undefined : take(other)?.[0]
    const end = endOfQuoted(text, at + 1, quote)
    if (end < 0) return undefined
    const inner = text.slice(at + 1, end)
    at = end + 1
    return inner
  }
  const colonName = (): string | undefined => {
    at++
    return quotedOr(symbol)
  }
  const value = (depth: number): Value | undefined => {
    take(blank)
    if (depth > maxDepth) return undefined
    switch (text[at]) {
      case '{':
        return hash(depth)
      case '[': {
        at++
        const items: Value[] = []
        if (skip(']')) return items
        for (;;) {
          const item = value(depth + 1)
          if (item === undefined) return undefined
          items.push(item)
          if (skip(']')) return items
          if (!skip(',')) return undefined
        }
      }
      case ':':
        return colonName()
      case '"':
      case "'":
        return quotedOr(undefined)
    }
    const figure = take(number)
    if (figure !== null) return float(Number(figure[0]))
    const without = take(infinite)
    if (without !== null) return float(without[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY)
    const known = take(word)
    return known === null ? undefined : words[known[0]]
  }
  const hash = (depth: number): ValueObject | undefined => {
    at++
    const fields: ValueObject = {}
    if (skip('}')) return fields
    for (;;) {
      take(blank)
      const name = text[at] === ':' ? colonName() : quotedOr(symbol)
      const field = name !== undefined && (skip(':') || skip('=>')) ? value(depth + 1) : undefined
      if (name === undefined || field === undefined) return undefined
      setField(fields, name, field)
      if (skip('}')) return fields
      if (!skip(',')) return undefined
    }
  }
  if (text[0] !== '{') return undefined
  const fields = hash(0)
  return text.slice(at).trim() === '' ? fields : undefined
}

/** The end of a quoted text, or -1. A backslash may precede a quote, another backslash or a plain character. */
function endOfQuoted(text: string, from: number, quote: string): number {
  let plain = false
  for (let at = from; at < text.length; at++) {
    const character = text[at]
    if (character === quote) return at
    if (character !== '\\') {
      plain = true
      continue
    }
    at++
    if (text[at] !== '\\' && text[at] !== quote && !plain) return -1
    plain = false
  }
  return -1
}
