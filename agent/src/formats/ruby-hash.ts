// The text form of a Ruby hash: `{ "a" => 1, :b => nil, c: [true] }`. Numbers are floats.

import { float, setField, type Value, type ValueObject } from '../event/value.ts'

const maxDepth = 128
const blank = /[\s]*/y
const double = /"((?:[^"\\]|\\.)*)"/sy
const single = /'((?:[^'\\]|\\.)*)'/sy
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const symbol = /:([A-Za-z_]\w*[?!]?)/y
const bare = /([A-Za-z_]\w*)/y
const digits = /\d+/y

/** The object of a text; undefined if it is of another form. */
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
  const quoted = (): string | undefined => {
    const match = take(double) ?? take(single)
    return match === null ? undefined : unescaped(match[1] as string)
  }
  const key = (): string | undefined => {
    take(blank)
    const string = quoted()
    if (string !== undefined) return skip('=>') || skip(':') ? string : undefined
    const name = take(symbol)?.[1] ?? take(digits)?.[0]
    if (name !== undefined) return skip('=>') ? name : undefined
    const word = take(bare)?.[1]
    return word !== undefined && (skip('=>') || skip(':')) ? word : undefined
  }
  const value = (depth: number): Value | undefined => {
    take(blank)
    if (depth > maxDepth) return undefined
    if (text[at] === '{') return hash(depth)
    if (text[at] === '[') {
      at++
      const items: Value[] = []
      if (skip(']')) return items
      for (;;) {
        const item = value(depth + 1)
        if (item === undefined) return undefined
        items.push(item)
        if (skip(']')) return items
        if (!skip(',')) return undefined
        if (skip(']')) return items
      }
    }
    const string = quoted()
    if (string !== undefined) return string
    const figure = take(number)
    if (figure !== null) return float(Number(figure[0]))
    const name = take(symbol)?.[1]
    if (name !== undefined) return name
    switch (take(bare)?.[1]) {
      case 'true':
        return true
      case 'false':
        return false
      case 'nil':
        return null
      default:
        return undefined
    }
  }
  const hash = (depth: number): ValueObject | undefined => {
    if (!skip('{')) return undefined
    const fields: ValueObject = {}
    if (skip('}')) return fields
    for (;;) {
      const name = key()
      const field = name === undefined ? undefined : value(depth + 1)
      if (name === undefined || field === undefined) return undefined
      setField(fields, name, field)
      if (skip('}')) return fields
      if (!skip(',')) return undefined
      if (skip('}')) return fields
    }
  }
  const fields = hash(0)
  take(blank)
  return at === text.length ? fields : undefined
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, (whole, character: string) => {
    switch (character) {
      case 'n':
        return '\n'
      case 't':
        return '\t'
      case 'r':
        return '\r'
      case '"':
      case "'":
      case '\\':
        return character
      default:
        return whole
    }
  })
}
