// Search queries of log explorers: `status:error @http.code:[400 TO 499] -host:h* "some words"`. Compiled once to a
// function that returns whether an object matches.

import { getValue, parsePath } from '../event/path.ts'
import { Bytes, compareKeys, Float, isFloat, isInteger, type Value, type ValueObject } from '../event/value.ts'
import { plainText } from './key-value.ts'
import { compileBounded } from './regex-linear.ts'

export type Matcher = (object: ValueObject) => boolean

/** The fields searched for words without a field name. */
const searched = ['message', 'custom.error.message', 'custom.error.stack', 'custom.title', '_default_']
const reserved = new Set(['host', 'source', 'status', 'service', 'trace_id', 'timestamp', 'tags'])

/** The matcher of a query; a sentence if it is invalid. @param textOf converts a value other than a string to text */
export function compileSearchQuery(query: string, textOf: (value: Value) => string = plainText): Matcher | string {
  const parser = new Parser(query, (value) =>
    typeof value === 'string' ? value : value instanceof Bytes ? value.toString() : textOf(value),
  )
  try {
    return parser.all()
  } catch (error) {
    if (error instanceof InvalidQuery) return error.message
    throw error
  }
}

class InvalidQuery extends Error {}

const blank = /[ \r\n\t]*/y
const start = String.raw`(?:\\[\s\S]|[^\s"()[\]{}+\-!:~^?*\\>=<])`
const inside = String.raw`(?:\\[\s\S]|[^\s"()[\]{}!:~^?*\\><])`
const end = String.raw`(?=[\s)\]}]|$)`
// `AND`, `OR` and `NOT` are not words.
const word = new RegExp(String.raw`(?!(?:AND|OR|NOT)${end}|&&|\|\|)${start}${inside}*`, 'y')
const ended = new RegExp(end, 'y')
const prefix = new RegExp(String.raw`(${start}${inside}*)\*${end}`, 'y')
const globbed = new RegExp(`(?:${start}|[*?])(?:${inside}|[*?])*${end}`, 'y')
const phrase = /"((?:[^"\\]|\\.)*)"/sy
const range = /([[{])\s*([^\s\]}]+)\s*TO\s*([^\s\]}]+)\s*([\]}])/y
const number = /(?:\\?-)?\d+(?:\.\d+)?(?:E(?:\\?-)?\d+(?:\.\d+)?)?/y
const operator = />=|<=|>|</y
const conjunction = /&&|\|\||(?:AND|OR)(?=[\s(")]|$)/y
const joined = /[ \r\n\t]+(?:&&|\|\||(?:AND|OR)(?=[\s(")]|$))/y
const negation = /NOT(?=[\s(")]|$)|-/y

class Parser {
  readonly #text: string
  readonly #textOf: (value: Value) => string
  #at = 0

  constructor(text: string, textOf: (value: Value) => string) {
    this.#text = text
    this.#textOf = textOf
  }

  all(): Matcher {
    this.#take(blank)
    if (this.#at === this.#text.length) return () => true
    const matcher = this.#query(undefined)
    if (this.#at < this.#text.length) throw this.#unexpected()
    return matcher
  }

  /** Adjacent clauses must all match; `OR` separates groups of them. */
  #query(field: string | undefined): Matcher {
    const groups: Matcher[][] = [[]]
    for (;;) {
      const group = groups.at(-1) as Matcher[]
      this.#take(blank)
      const words = this.#words()
      if (words !== undefined) {
        group.push(this.#equals(field, words))
        continue
      }
      if (this.#at === this.#text.length || this.#text[this.#at] === ')') break
      const joins = this.#take(conjunction)?.[0]
      if (joins !== undefined && group.length === 0) throw new InvalidQuery(`${joins} has nothing before it`)
      this.#take(blank)
      const not = this.#take(negation) !== null
      if (!not) this.#take(/\+/y)
      this.#take(blank)
      const clause = this.#clause(field)
      const matcher: Matcher = not ? (object) => !clause(object) : clause
      if (joins === 'OR' || joins === '||') groups.push([matcher])
      else group.push(matcher)
    }
    if (groups.some((group) => group.length === 0)) throw this.#unexpected()
    if (groups.length === 1 && groups[0]?.length === 1) return groups[0][0] as Matcher
    return (object) => groups.some((group) => group.every((matcher) => matcher(object)))
  }

  /** Adjacent words without a following operator form a phrase. */
  #words(): string | undefined {
    const words: string[] = []
    for (;;) {
      const before = this.#at
      this.#take(blank)
      const found = this.#take(word)?.[0]
      const next = this.#text[this.#at]
      if (found === undefined || next === ':' || next === '*' || this.#ahead(joined)) {
        this.#at = before
        return words.length === 0 ? undefined : words.join(' ')
      }
      words.push(unescaped(found))
    }
  }

  #clause(around: string | undefined): Matcher {
    if (this.#take(/\*:\*/y) !== null) return () => true
    const before = this.#at
    const name = this.#take(word)?.[0]
    let field = around
    if (name !== undefined && this.#text[this.#at] === ':') {
      this.#at++
      field = unescaped(name)
    } else {
      this.#at = before
    }
    if (this.#text[this.#at] === '(') {
      this.#at++
      const inner = this.#query(field)
      this.#take(blank)
      if (this.#take(/\)/y) === null) throw new InvalidQuery('a parenthesis is not closed')
      return inner
    }
    return this.#value(field)
  }

  #value(field: string | undefined): Matcher {
    const existence = field === '_exists_' || field === '_missing_'
    const known = (name: string): Matcher => {
      const exists = this.#exists(name)
      return field === '_exists_' ? exists : (object) => !exists(object)
    }
    const quoted = this.#take(phrase)
    if (quoted !== null) {
      const text = unescaped(quoted[1] as string)
      return existence ? known(text) : this.#equals(field, text)
    }
    const started = this.#take(prefix)
    if (started !== null) return this.#prefix(field, unescaped(started[1] as string))
    const comparator = this.#take(operator)?.[0]
    if (comparator !== undefined) {
      const figure = this.#take(number)?.[0]
      const text = figure?.replaceAll('\\', '') ?? this.#take(word)?.[0]
      if (text === undefined) throw this.#unexpected()
      return this.#compare(field, comparator, figure === undefined ? unescaped(text) : bound(text))
    }
    const bounds = this.#take(range)
    if (bounds !== null) {
      const [, open, lower, upper, close] = bounds as unknown as [string, string, string, string, string]
      if (lower === '*' && upper === '*') return this.#exists(field)
      const above = lower === '*' ? undefined : this.#compare(field, open === '[' ? '>=' : '>', bound(lower))
      const below = upper === '*' ? undefined : this.#compare(field, close === ']' ? '<=' : '<', bound(upper))
      return (object) => (above === undefined || above(object)) && (below === undefined || below(object))
    }
    const before = this.#at
    const plain = this.#take(word)?.[0]
    if (plain !== undefined && this.#ahead(ended)) {
      return existence ? known(unescaped(plain)) : this.#equals(field, unescaped(plain))
    }
    this.#at = before
    const pattern = this.#take(globbed)?.[0]
    if (pattern === undefined) throw this.#unexpected()
    if (pattern === '*' && field === undefined) return () => true
    return this.#wildcard(field, unescaped(pattern))
  }

  #exists(field: string | undefined): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'tag') {
        const key = target.name
        return anyTag((text) => text === key || text.startsWith(`${key}:`), this.#textOf)
      }
      return () => target.name !== 'tags'
    })
  }

  #equals(field: string | undefined, wanted: string): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'searched') {
        const pattern = wordPattern(wanted)
        return (value) => (typeof value === 'string' || value instanceof Bytes) && pattern.test(this.#textOf(value))
      }
      if (target.kind === 'tag') return holds(`${target.name}:${wanted}`)
      if (target.name === 'tags') return holds(wanted)
      return (value) => this.#textOf(value) === wanted
    })
  }

  #prefix(field: string | undefined, wanted: string): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'searched') return this.#matches(wordPattern(`${wanted}*`))
      if (target.kind === 'tag') {
        return anyTag((text) => text.startsWith(`${target.name}:${wanted}`), this.#textOf)
      }
      return (value) => this.#textOf(value).startsWith(wanted)
    })
  }

  #wildcard(field: string | undefined, wanted: string): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'searched') return this.#matches(wordPattern(wanted))
      if (target.kind === 'tag') {
        const pattern = wildcardPattern(`${target.name}:${wanted}`)
        return anyTag((text) => pattern.test(text), this.#textOf)
      }
      return this.#matches(wildcardPattern(wanted))
    })
  }

  #matches(pattern: RegExp): (value: Value) => boolean {
    return (value) => pattern.test(this.#textOf(value))
  }

  /** Numeric attributes are compared as numbers, and all else as text. */
  #compare(field: string | undefined, comparator: string, wanted: string | number): Matcher {
    const text = typeof wanted === 'string' ? wanted : plainText(wanted)
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'tag') {
        const start = `${target.name}:`
        return anyTag(
          (tag) => tag.startsWith(start) && holdsFor(comparator, compareKeys(tag.slice(start.length), text)),
          this.#textOf,
        )
      }
      return (value) => {
        if (target.kind === 'attribute' && typeof wanted === 'number' && (isInteger(value) || isFloat(value))) {
          return holdsFor(comparator, Number(value instanceof Float ? value.value : value) - wanted)
        }
        return holdsFor(comparator, compareKeys(this.#textOf(value), text))
      }
    })
  }

  /** Turns a test of a field's value into a test of the object; false if the field is missing. */
  #ofTarget(field: string | undefined, test: (target: Target) => (value: Value) => boolean): Matcher {
    const matchers = targets(field).map((target): Matcher => {
      const path = target.kind === 'tag' ? 'tags' : target.name
      const segments = parsePath(path.startsWith('.') ? path : `.${path}`)?.segments
      if (segments === undefined) throw new InvalidQuery(`the field ${path} is not a path`)
      const matches = test(target)
      return (object) => {
        const value = getValue(object, segments)
        return value !== undefined && matches(value)
      }
    })
    return matchers.length === 1 ? (matchers[0] as Matcher) : (object) => matchers.some((matcher) => matcher(object))
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match !== null) this.#at = pattern.lastIndex
    return match
  }

  #ahead(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    return pattern.test(this.#text)
  }

  #unexpected(): InvalidQuery {
    const rest = this.#text.slice(this.#at)
    return new InvalidQuery(rest === '' ? 'the query ends too early' : `unexpected ${JSON.stringify(rest)}`)
  }
}

interface Target {
  /** `searched` is compared word by word, `attribute` is a path in the event, `tag` is one of its tags. */
  readonly kind: 'attribute' | 'reserved' | 'searched' | 'tag'
  readonly name: string
}

function targets(field: string | undefined): Target[] {
  if (field === undefined) return searched.map((name) => ({ kind: 'searched', name }))
  const name = field.replaceAll('@', '.')
  if (field.startsWith('@')) return [{ kind: 'attribute', name }]
  if (searched.includes(name)) return [{ kind: 'searched', name }]
  return [{ kind: reserved.has(name) ? 'reserved' : 'tag', name }]
}

function anyTag(test: (text: string) => boolean, textOf: (value: Value) => string): (value: Value) => boolean {
  return (value) => Array.isArray(value) && value.some((tag) => test(textOf(tag)))
}

function holds(wanted: string): (value: Value) => boolean {
  return (value) => Array.isArray(value) && value.includes(wanted)
}

function holdsFor(comparator: string, order: number): boolean {
  switch (comparator) {
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

/** The bound: a number if it parses as one. */
function bound(text: string): string | number {
  const plain = text.replace(/^"(.*)"$/s, '$1')
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(plain) ? Number(plain) : Number.NaN
  return Number.isNaN(value) ? plain : value
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}

/** A boundary between a word character and another character. */
const edge = String.raw`(?:(?<=[\p{L}\p{M}\p{Nd}\p{Pc}])(?![\p{L}\p{M}\p{Nd}\p{Pc}])|(?<![\p{L}\p{M}\p{Nd}\p{Pc}])(?=[\p{L}\p{M}\p{Nd}\p{Pc}]))`

function wordPattern(text: string): RegExp {
  return compileBounded(edge + starred(text) + edge, 'su')
}

function wildcardPattern(text: string): RegExp {
  return compileBounded(`^${starred(text)}$`, 'su')
}

function starred(text: string): string {
  return text
    .split('*')
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
    .join('.*')
}
