// Search queries as log explorers have them: `status:error @http.code:[400 TO 499] -host:h* "some words"`.
// Compiled once to a function that tells whether an object matches.

import { getValue, type PathSegment, parsePath } from '../event/path.ts'
import { Bytes, isFloat, isInteger, type Value, type ValueObject } from '../event/value.ts'
import { plainText } from './key-value.ts'
import { compileBounded } from './regex-linear.ts'

export type Matcher = (object: ValueObject) => boolean

const reserved = new Set(['host', 'source', 'status', 'service', 'trace_id', 'message', 'timestamp', 'tags'])

/** The matcher of a query; a sentence if it is not valid. */
export function compileSearchQuery(query: string): Matcher | string {
  const parser = new Parser(query)
  try {
    return parser.all()
  } catch (error) {
    if (error instanceof InvalidQuery) return error.message
    throw error
  }
}

class InvalidQuery extends Error {}

const word = /(?:\\.|[^\s():"\\[\]{}<>=])(?:\\.|[^\s():"\\[\]{}])*/y
const phrase = /"((?:[^"\\]|\\.)*)"/sy
const range = /[[{]\s*("(?:[^"\\]|\\.)*"|[^\s\]}]+)\s+TO\s+("(?:[^"\\]|\\.)*"|[^\s\]}]+)\s*[\]}]/y
const comparison = /(>=|<=|>|<)\s*("(?:[^"\\]|\\.)*"|[^\s()]+)/y

class Parser {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  all(): Matcher {
    this.#blank()
    if (this.#at === this.#text.length) return () => true
    const matcher = this.#either()
    this.#blank()
    if (this.#at < this.#text.length) throw new InvalidQuery(`unexpected ${JSON.stringify(this.#text.slice(this.#at))}`)
    return matcher
  }

  #either(): Matcher {
    const parts = [this.#both()]
    while (this.#operator('OR') || this.#operator('||')) parts.push(this.#both())
    return parts.length === 1 ? (parts[0] as Matcher) : (object) => parts.some((part) => part(object))
  }

  #both(): Matcher {
    const parts = [this.#single()]
    for (;;) {
      this.#blank()
      if (this.#at === this.#text.length || this.#text[this.#at] === ')') break
      if (this.#ahead('OR') || this.#ahead('||')) break
      if (!this.#operator('AND')) this.#operator('&&')
      parts.push(this.#single())
    }
    return parts.length === 1 ? (parts[0] as Matcher) : (object) => parts.every((part) => part(object))
  }

  #single(): Matcher {
    this.#blank()
    if (this.#operator('NOT') || this.#operator('!') || this.#take('-')) {
      const inner = this.#single()
      return (object) => !inner(object)
    }
    this.#take('+')
    if (this.#take('(')) {
      const inner = this.#either()
      this.#blank()
      if (!this.#take(')')) throw new InvalidQuery('a parenthesis is not closed')
      return inner
    }
    const quoted = this.#match(phrase)
    if (quoted !== null) return messageHas(unescape_(quoted[1] as string))
    const first = this.#match(word)?.[0]
    if (first === undefined) throw new InvalidQuery(`unexpected ${JSON.stringify(this.#text.slice(this.#at))}`)
    if (this.#text[this.#at] === ':') {
      this.#at++
      return this.#ofField(first)
    }
    // Words side by side are one phrase.
    const words = [first]
    for (;;) {
      const before = this.#at
      this.#blank()
      if (this.#ahead('AND') || this.#ahead('OR') || this.#ahead('NOT') || this.#text[this.#at] === '-') break
      const next = this.#match(word)?.[0]
      if (next === undefined || this.#text[this.#at] === ':') {
        this.#at = before
        break
      }
      words.push(next)
    }
    return messageHas(words.join(' '))
  }

  #ofField(name: string): Matcher {
    if (name === '_exists_' || name === '_missing_') {
      const field = this.#match(word)?.[0]
      if (field === undefined) throw new InvalidQuery(`${name} needs a field`)
      const exists = existence(field)
      return name === '_exists_' ? exists : (object) => !exists(object)
    }
    const target = values(name)
    const compared = this.#match(comparison)
    if (compared !== null) {
      const test = comparing(compared[1] as string, unquoted(compared[2] as string))
      return (object) => target(object).some(test)
    }
    const start = this.#text[this.#at]
    if (start === '[' || start === '{') {
      const found = this.#match(range)
      if (found === null) throw new InvalidQuery('a range is not valid')
      const lower = unquoted(found[1] as string)
      const upper = unquoted(found[2] as string)
      const above = lower === '*' ? () => true : comparing(start === '[' ? '>=' : '>', lower)
      const below = upper === '*' ? () => true : comparing(found[0].endsWith(']') ? '<=' : '<', upper)
      return (object) => target(object).some((value) => above(value) && below(value))
    }
    if (this.#take('(')) {
      // Several values of one field.
      const inner: Matcher[] = []
      let any = true
      for (;;) {
        this.#blank()
        if (this.#take(')')) break
        if (this.#operator('AND') || this.#operator('&&')) any = false
        else if (!this.#operator('OR')) this.#operator('||')
        this.#blank()
        inner.push(this.#ofField(name))
      }
      if (inner.length === 0) throw new InvalidQuery('parentheses hold nothing')
      return any ? (object) => inner.some((part) => part(object)) : (object) => inner.every((part) => part(object))
    }
    const quoted = this.#match(phrase)
    const text = quoted === null ? this.#match(/[^\s()"[\]{}]+/y)?.[0] : (quoted[1] as string)
    if (text === undefined) throw new InvalidQuery(`the field ${name} has no value`)
    if (name === '*' && text === '*') return () => true
    if (quoted === null && text === '*') return existence(name)
    const wanted = unescape_(text)
    if (name === 'message') return messageHas(wanted)
    if (quoted === null && text.includes('*')) {
      const pattern = wildcard(text, '^', '$')
      return (object) => target(object).some((value) => pattern.test(plainText(value)))
    }
    return (object) => target(object).some((value) => plainText(value) === wanted)
  }

  #blank(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match !== null) this.#at = pattern.lastIndex
    return match
  }

  #ahead(operator: string): boolean {
    this.#blank()
    if (!this.#text.startsWith(operator, this.#at)) return false
    return (
      !/[A-Z]/.test(operator) ||
      /^[\s()]|^$/.test(this.#text.slice(this.#at + operator.length, this.#at + operator.length + 1))
    )
  }

  #operator(operator: string): boolean {
    if (!this.#ahead(operator)) return false
    this.#at += operator.length
    return true
  }
}

function unescape_(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}

function unquoted(text: string): string {
  return text.startsWith('"') ? unescape_(text.slice(1, -1)) : unescape_(text)
}

function wildcard(text: string, before: string, after: string): RegExp {
  const parts = text.split('*').map((part) => unescape_(part).replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
  return compileBounded(before + parts.join('.*') + after, 's')
}

function messageHas(text: string): Matcher {
  const edge = (character: string | undefined): string => (character !== undefined && /\w/.test(character) ? '\\b' : '')
  const pattern = wildcard(text, edge(text[0]), edge(text.at(-1)))
  return (object) => {
    const message = object['message']
    return message !== undefined && message !== null && pattern.test(textOf(message))
  }
}

function textOf(value: Value): string {
  return value instanceof Bytes ? value.toString() : typeof value === 'string' ? value : plainText(value)
}

/** The values that a name stands for: a field of the event (`@a.b`, reserved names) or of its tags. */
function values(name: string): (object: ValueObject) => Value[] {
  const segments = segmentsOf(name)
  if (segments !== undefined) {
    return (object) => {
      const value = getValue(object, segments)
      return value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]
    }
  }
  const prefix = `${name}:`
  return (object) => {
    const tags = object['tags']
    if (!Array.isArray(tags)) return []
    return tags.flatMap((tag) => (typeof tag === 'string' && tag.startsWith(prefix) ? [tag.slice(prefix.length)] : []))
  }
}

function segmentsOf(name: string): readonly PathSegment[] | undefined {
  if (name.startsWith('@')) return parsePath(`.${name.slice(1)}`)?.segments ?? [name.slice(1)]
  return reserved.has(name) ? [name] : undefined
}

function existence(name: string): Matcher {
  const segments = segmentsOf(name)
  if (segments !== undefined) {
    return (object) => {
      const value = getValue(object, segments)
      return value !== undefined && value !== null
    }
  }
  return (object) => {
    const tags = object['tags']
    if (!Array.isArray(tags)) return false
    return tags.some((tag) => typeof tag === 'string' && (tag === name || tag.startsWith(`${name}:`)))
  }
}

/** Numbers compare with numbers, all else as text. */
function comparing(operator: string, wanted: string): (value: Value) => boolean {
  const number = wanted === '' ? Number.NaN : Number(wanted)
  return (value) => {
    let order: number
    if (isInteger(value) || isFloat(value)) {
      const mine = Number(typeof value === 'object' ? value.value : value)
      if (Number.isNaN(number)) return false
      order = mine - number
    } else {
      const mine = textOf(value)
      order = mine < wanted ? -1 : mine > wanted ? 1 : 0
    }
    switch (operator) {
      case '>':
        return order > 0
      case '>=':
        return order >= 0
      case '<':
        return order < 0
      default:
        return order <= 0
    }
  }
}
