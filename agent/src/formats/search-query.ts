// Search queries of log explorers: `status:error @http.code:[400 TO 499] -host:h* "some words"`. Compiled once to a
// function that returns whether an object matches.

import { getValue, parsePath } from '../event/path.ts'
import { Bytes, compareKeys, Float, isFloat, isInteger, type Value, type ValueObject } from '../event/value.ts'
import { plainText } from './key-value.ts'
import { parseDecimal, parseInteger } from './number.ts'
import { compileBounded } from './regex-linear.ts'

export type Matcher = (object: ValueObject) => boolean

/** The fields searched for words without a field name. */
const defaultField = '_default_'
const searched = ['message', 'custom.error.message', 'custom.error.stack', 'custom.title', defaultField]
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

/** Deeper nesting is rejected, so that recursion cannot overflow the stack. */
const maxDepth = 250

/** A comparison of a field's value. */
type Bound = readonly [comparator: string, wanted: string | number | bigint]

const blank = /[ \r\n\t]*/y
const start = String.raw`(?:\\[^]|[^ \r\n\t"()[\]{}+\-!:~^?*\\>=<])`
const inside = String.raw`(?:\\[^]|[^ \r\n\t"()[\]{}!:~^?*\\><])`
const end = String.raw`(?=[ \r\n\t)\]}]|$)`
// A word does not begin with an operator, even if more letters follow it.
const word = new RegExp(String.raw`(?!AND|OR|NOT|&&|\|\|)${start}${inside}*`, 'y')
const ended = new RegExp(end, 'y')
const star = new RegExp(String.raw`\*${end}`, 'y')
const prefix = new RegExp(String.raw`(${start}${inside}*)\*${end}`, 'y')
const globbed = new RegExp(`(?:${start}|[*?])(?:${inside}|[*?])*${end}`, 'y')
const phrase = /"((?:[^"\\]|\\.)*)"/sy
const range = /(?:(\[)|\{)[ \r\n\t]*([^ \r\n\t\]}]+)[ \r\n\t]*TO[ \r\n\t]*([^ \r\n\t\]}]+)[ \r\n\t]*(?:(\])|\})/y
const number = /(?:\\?-)?\d+(?:\.\d+)?(?:E(?:\\?-)?\d+(?:\.\d+)?)?/y
const operator = />=|<=|>|</y
const conjunction = /AND|&&|OR|\|\|/y
const joined = /[ \r\n\t]+(?:AND|&&|OR|\|\|)/y
const modifier = /NOT|-|\+/y
const all: Matcher = () => true

/** Each rule returns undefined, at any position, if the text does not match it. */
class Parser {
  readonly #text: string
  readonly #textOf: (value: Value) => string
  #at = 0
  #depth = 0

  constructor(text: string, textOf: (value: Value) => string) {
    this.#text = text
    this.#textOf = textOf
  }

  all(): Matcher {
    if (this.#text.trim() === '') return all
    const matcher = this.#query(defaultField)
    if (matcher === undefined || this.#at < this.#text.length) throw this.#unexpected()
    return matcher
  }

  /** Adjacent clauses must all match; `OR` separates groups of them. `field` is that of values without one. */
  #query(field: string): Matcher | undefined {
    if (++this.#depth > maxDepth) return undefined
    const groups: Matcher[][] = [[]]
    for (;;) {
      const words = this.#words()
      if (words !== undefined) {
        groups.at(-1)?.push(this.#equals(field, words))
        this.#take(blank)
        continue
      }
      const before = this.#at
      const isFirst = groups[0]?.length === 0
      const joins = isFirst ? undefined : this.#take(conjunction)?.[0]
      this.#take(blank)
      const modified = this.#take(modifier)?.[0] ?? '+'
      this.#take(blank)
      const clause = this.#clause(field)
      if (clause === undefined) {
        if (isFirst) return undefined
        this.#at = before
        break
      }
      const matcher: Matcher = modified === '+' ? clause : (object) => !clause(object)
      if (joins === 'OR' || joins === '||') groups.push([matcher])
      else groups.at(-1)?.push(matcher)
      this.#take(blank)
    }
    this.#depth--
    if (groups.length === 1 && groups[0]?.length === 1) return groups[0][0] as Matcher
    return (object) => groups.some((group) => group.every((matcher) => matcher(object)))
  }

  /** Adjacent words without a following operator form a phrase. */
  #words(): string | undefined {
    const words: string[] = []
    for (;;) {
      const before = this.#at
      const found = this.#take(word)?.[0]
      const next = this.#text[this.#at]
      if (found === undefined || next === ':' || next === '*' || this.#ahead(joined)) {
        this.#at = before
        return words.length === 0 ? undefined : words.join(' ')
      }
      words.push(unescaped(found))
      this.#take(blank)
    }
  }

  #clause(around: string): Matcher | undefined {
    if (this.#take(/\*:\*/y) !== null) return all
    const before = this.#at
    const name = this.#take(word)?.[0]
    let field = around
    if (name !== undefined && this.#text[this.#at] === ':') {
      this.#at++
      field = unescaped(name)
    } else {
      this.#at = before
    }
    this.#take(blank)
    const value = this.#value(field)
    if (value !== undefined || this.#take(/\(/y) === null) return value
    this.#take(blank)
    const inner = this.#query(field)
    return this.#take(/[ \r\n\t]*\)/y) === null ? undefined : inner
  }

  #value(field: string): Matcher | undefined {
    const existence = field === '_exists_' || field === '_missing_'
    const known = (name: string): Matcher => {
      const exists = this.#exists(name)
      return field === '_exists_' ? exists : (object) => !exists(object)
    }
    if (this.#take(star) !== null) return field === defaultField ? all : this.#wildcard(field, '*')
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
      if (figure !== undefined) return this.#compare(field, [[comparator, bound(figure) ?? '*']])
      const text = this.#take(word)?.[0]
      return text === undefined ? undefined : this.#compare(field, [[comparator, unescaped(text)]])
    }
    const bounds = this.#take(range)
    if (bounds !== null) return this.#range(field, bounds)
    const before = this.#at
    const plain = this.#take(word)?.[0]
    if (plain !== undefined && this.#ahead(ended)) {
      return existence ? known(unescaped(plain)) : this.#equals(field, unescaped(plain))
    }
    this.#at = before
    const pattern = this.#take(globbed)?.[0]
    return pattern === undefined ? undefined : this.#wildcard(field, unescaped(pattern))
  }

  #range(field: string, [, open, from, to, close]: RegExpExecArray): Matcher | undefined {
    if ((open === undefined) !== (close === undefined)) return undefined
    const lower = bound(from as string)
    const upper = bound(to as string)
    const bounds: Bound[] = []
    if (lower !== undefined) bounds.push([open === undefined ? '>' : '>=', lower])
    if (upper !== undefined) bounds.push([open === undefined ? '<' : '<=', upper])
    return bounds.length === 0 ? this.#exists(field) : this.#compare(field, bounds)
  }

  #exists(field: string): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'tag') {
        const key = target.name
        return anyTag((text) => text === key || text.startsWith(`${key}:`), this.#textOf)
      }
      return () => target.name !== 'tags'
    })
  }

  #equals(field: string, wanted: string): Matcher {
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

  #prefix(field: string, wanted: string): Matcher {
    return this.#ofTarget(field, (target) => {
      if (target.kind === 'searched') return this.#matches(wordPattern(`${wanted}*`))
      if (target.kind === 'tag') {
        return anyTag((text) => text.startsWith(`${target.name}:${wanted}`), this.#textOf)
      }
      return (value) => this.#textOf(value).startsWith(wanted)
    })
  }

  #wildcard(field: string, wanted: string): Matcher {
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
  #compare(field: string, bounds: readonly Bound[]): Matcher {
    return this.#ofTarget(field, (target) => {
      const text = (value: string) =>
        bounds.every(([comparator, wanted]) =>
          holdsFor(comparator, compareKeys(value, typeof wanted === 'string' ? wanted : plainText(wanted))),
        )
      // The key of a tag is not compared.
      if (target.kind === 'tag') return (value) => bounds.every((one) => this.#anyTagValue(value, one))
      return (value) => {
        if (target.kind !== 'attribute' || !(isInteger(value) || isFloat(value))) return text(this.#textOf(value))
        const figure = value instanceof Float ? value.value : value
        return bounds.every(([comparator, wanted]) =>
          typeof wanted === 'string'
            ? holdsFor(comparator, compareKeys(this.#textOf(value), wanted))
            : holdsFor(comparator, figure < wanted ? -1 : figure > wanted ? 1 : 0),
        )
      }
    })
  }

  #anyTagValue(value: Value, [comparator, wanted]: Bound): boolean {
    const limit = typeof wanted === 'string' ? wanted : plainText(wanted)
    return anyTag((tag) => {
      const colon = tag.indexOf(':')
      return colon >= 0 && holdsFor(comparator, compareKeys(tag.slice(colon + 1), limit))
    }, this.#textOf)(value)
  }

  /** Turns a test of a field's value into a test of the object; false if the field is missing. */
  #ofTarget(field: string, test: (target: Target) => (value: Value) => boolean): Matcher {
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

function targets(field: string): Target[] {
  if (field === defaultField) return searched.map((name) => ({ kind: 'searched', name }))
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

/** A bound: a number if it parses as one; undefined for `*`. */
function bound(given: string): string | number | bigint | undefined {
  const text = unescaped(given).replace(/^"(.+)"$/, '$1')
  return text === '*' ? undefined : (parseInteger(text) ?? parseDecimal(text) ?? text)
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
