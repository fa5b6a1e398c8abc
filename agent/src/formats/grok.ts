// Grok patterns: regular expressions with `%{NAME:field}`. Compiled once; the two dialects share the expansion.
// Hand-written, because no library supports both dialects.

import { fieldNames, isObject, setField, type Value, type ValueObject } from '../event/value.ts'
import { dateOf } from './grok/date.ts'
import { nested, put, withoutEmpty } from './grok/fields.ts'
import {
  argumentsOf,
  type Filter,
  filterOf,
  InvalidGrok,
  toInteger,
  toIntegerExtended,
  toNumber,
} from './grok/filters.ts'
import { makeClassicPatterns } from './grok-library.ts'
import { extendedPatterns } from './grok-patterns.ts'
import { compileBounded } from './regex-linear.ts'
import { translateRuby } from './ruby-regex.ts'

interface Capture {
  readonly group: string
  /** Path for the value; empty: the result itself. */
  readonly path: readonly string[]
  readonly filters: readonly Filter[]
}

export interface Grok {
  readonly ok: true
  /** The fields of a text; undefined if the pattern does not match. */
  match(text: string): ValueObject | undefined
}

export interface BadGrok {
  readonly ok: false
  readonly problem: string
}

let madeClassicPatterns: Readonly<Record<string, string>> | undefined

/** The patterns by their upper-case names. */
export function classicPatterns(): Readonly<Record<string, string>> {
  madeClassicPatterns ??= makeClassicPatterns()
  return madeClassicPatterns
}

/** How many more characters related patterns may expand to. */
export interface GrokEffort {
  left: number
}

const maxEffort = 262_144
/** Even an empty pattern takes time. */
const patternCost = 16

export function grokEffort(): GrokEffort {
  return { left: maxEffort }
}

/** A pattern of the classic dialect: it matches anywhere, every value is text, and field names are literal. */
export function compileGrok(pattern: string): Grok | BadGrok {
  return compiled(() => {
    if (pattern === '') throw new InvalidGrok('the pattern is empty')
    const expansion = new Expansion({}, false, grokEffort())
    const regex = expansion.regex(pattern)
    return {
      ok: true,
      match(text) {
        const groups = regex.exec(text)
        if (groups === null) return undefined
        const fields: ValueObject = {}
        for (const capture of expansion.captures) {
          const value = groups.groups?.[capture.group]
          if (value !== undefined) setField(fields, capture.path[0] as string, value)
        }
        return fields
      },
    }
  })
}

/**
 * A pattern of the extended dialect: it matches the whole text, paths may be nested, and matchers and filters convert
 * values.
 */
export function compileExtendedGrok(
  pattern: string,
  aliases: Readonly<Record<string, string>>,
  effort = grokEffort(),
): Grok | BadGrok {
  return compiled(() => {
    const expansion = new Expansion(aliases, true, effort)
    const regex = expansion.regex(pattern)
    return {
      ok: true,
      match(text) {
        const groups = regex.exec(text)
        if (groups === null) return undefined
        const fields: ValueObject = {}
        for (const capture of expansion.captures) {
          let value: Value | undefined = groups.groups?.[capture.group]
          if (value === '') continue
          for (const filter of capture.filters) {
            if (value === undefined || value === null) break
            value = filter(value)
            if (value !== undefined && isObject(value)) value = nested(value)
          }
          if (value === undefined || value === null) continue
          if (capture.path.length > 0) put(fields, capture.path, value)
          else if (isObject(value)) for (const name of fieldNames(value)) setField(fields, name, value[name] as Value)
        }
        return withoutEmpty(fields) as ValueObject
      },
    }
  })
}

function compiled(build: () => Grok): Grok | BadGrok {
  try {
    return build()
  } catch (error) {
    if (error instanceof InvalidGrok || error instanceof SyntaxError) return { ok: false, problem: error.message }
    throw error
  }
}

const reference =
  /%\{\s*([\w.-]+)(\((?:[^()"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*\))?(?::((?:[^:"]|"[^"]*")*))?(?::([\s\S]*))?\}$/y

interface Reference {
  readonly name: string
  readonly args?: string | undefined
  readonly path?: string | undefined
  readonly filter?: string | undefined
  /** A local definition that overrides the library's. */
  readonly definition?: string | undefined
}

/**
 * The syntax of the classic dialect: `%{NAME}`, `%{NAME:field}`, `%{NAME:field:extract}`, each with an optional `=definition` at its end.
 */
const classicReference = /%\{(\w+)(?::([\w.[\]-]*))?(?::[\w.[\]-]*)?(?:=([^{}]+))?\}/y

class Expansion {
  readonly captures: Capture[] = []
  readonly #aliases: Readonly<Record<string, string>>
  readonly #extended: boolean
  readonly #effort: GrokEffort
  readonly #fieldCounts = new Map<string, number>()

  constructor(aliases: Readonly<Record<string, string>>, extended: boolean, effort: GrokEffort) {
    this.#aliases = aliases
    this.#extended = extended
    this.#effort = effort
  }

  regex(pattern: string): RegExp {
    const expanded = this.#expand(pattern, [])
    const source = this.#extended ? translateRuby(`\\A(?:${expanded})\\z`, true) : translateRuby(expanded, false)
    return compileBounded(source, 'v')
  }

  /** The pattern in Ruby's dialect with its names expanded. */
  #expand(pattern: string, within: readonly string[]): string {
    if (within.length > 64) throw new InvalidGrok(`the pattern ${within[0]} is nested too deep`)
    // If each name refers to others twice, the size doubles at each level, even before compilation.
    this.#effort.left -= pattern.length + patternCost
    if (this.#effort.left < 0) {
      throw new InvalidGrok(
        `the patterns are too long: with all expanded names, they may have ${maxEffort} characters together`,
      )
    }
    let result = ''
    let at = 0
    let classes = 0
    while (at < pattern.length) {
      if (pattern.startsWith('%{', at)) {
        const match = this.#reference(pattern, at)
        if (match === undefined)
          throw new InvalidGrok(`invalid reference at ${JSON.stringify(pattern.slice(at, at + 40))}`)
        at = match.end
        result += this.#one(match, within)
        continue
      }
      const named = classes > 0 ? null : /^\(\?<([A-Za-z_][\w.]*)>/.exec(pattern.slice(at, at + 80))
      if (named !== null) {
        result += `(?<${this.#capture([named[1] as string], [])}>`
        at += named[0].length
        continue
      }
      const character = pattern[at] as string
      if (character === '\\') {
        result += pattern.slice(at, at + 2)
        at += 2
        continue
      }
      if (character === '[') classes++
      else if (character === ']' && classes > 0) classes--
      result += character
      at++
    }
    return result
  }

  #reference(pattern: string, at: number): (Reference & { readonly end: number }) | undefined {
    if (!this.#extended) {
      classicReference.lastIndex = at
      const [text, name = '', path, definition] = classicReference.exec(pattern) ?? []
      return text === undefined ? undefined : { name, path, definition, end: at + text.length }
    }
    // Finds the closing brace outside quotes.
    let end = at + 2
    let quote: string | undefined
    for (; end < pattern.length; end++) {
      const character = pattern[end] as string
      if (quote !== undefined) {
        if (character === '\\') end++
        else if (character === quote) quote = undefined
      } else if (character === '"' || (character === "'" && /[(,\s]/.test(pattern[end - 1] as string))) {
        quote = character
      } else if (character === '}') {
        break
      }
    }
    if (end >= pattern.length) return undefined
    reference.lastIndex = 0
    const match = reference.exec(pattern.slice(at, end + 1))
    if (match === null || match[0].length !== end + 1 - at) return undefined
    return { name: match[1] as string, args: match[2], path: match[3], filter: match[4], end: end + 1 }
  }

  #one(found: Reference, within: readonly string[]): string {
    const { name } = found
    if (found.definition !== undefined) return this.#classic(found, this.#expand(found.definition, [...within, name]))
    if (within.includes(name)) throw new InvalidGrok(`the pattern ${name} refers to itself`)
    const filters: Filter[] = []
    let inner: string
    if (this.#extended && Object.hasOwn(this.#aliases, name)) {
      inner = this.#expand(this.#aliases[name] as string, [...within, name])
    } else if (this.#extended && name === 'regex') {
      const [source] = argumentsOf(found.args)
      if (typeof source !== 'string') throw new InvalidGrok('regex needs a pattern')
      inner = this.#expand(source, [...within, name])
    } else if (this.#extended && name === 'date') {
      const { source, filter } = dateOf(argumentsOf(found.args))
      inner = source
      filters.push(filter)
    } else if (this.#extended && name === 'boolean') {
      const [yes, no] = argumentsOf(found.args)
      if (typeof yes !== 'string' || typeof no !== 'string') {
        // Without its two arguments it is only a word.
        inner = 'boolean'
      } else {
        inner = `(?:${yes}|${no})`
        const pattern = compileBounded(`^(?:${yes})$`, '')
        filters.push((value) => pattern.test(String(value)))
      }
    } else {
      const library =
        this.#extended && Object.hasOwn(extendedPatterns, name)
          ? extendedPatterns[name]
          : Object.hasOwn(classicPatterns(), name)
            ? classicPatterns()[name]
            : undefined
      if (library === undefined) throw new InvalidGrok(`the given pattern definition name "${name}" could not be found`)
      inner = this.#expand(library, [...within, name])
      if (/^(number|numberExt)$/.test(name)) filters.push(toNumber)
      if (name === 'integer') filters.push(toInteger)
      if (name === 'integerExt') filters.push(toIntegerExtended)
    }
    if (!this.#extended) return this.#classic(found, inner)
    if (found.path === undefined && found.filter === undefined) return `(?:${inner})`
    const path = (found.path ?? '').trim()
    if (found.filter !== undefined) filters.push(filterOf(found.filter.trim()))
    const segments = pathOf(path)
    return `(?<${this.#capture(segments, filters)}>${inner})`
  }

  #classic({ path = '' }: Reference, inner: string): string {
    if (path === '') return `(?:${inner})`
    // A repeated field name gets a group of its own.
    const times = this.#fieldCounts.get(path) ?? 0
    this.#fieldCounts.set(path, times + 1)
    return `(?<${this.#capture([times === 0 ? path : `${path}[${times}]`], [])}>${inner})`
  }

  #capture(path: readonly string[], filters: readonly Filter[]): string {
    const group = `g${this.captures.length}`
    this.captures.push({ group, path, filters })
    return group
  }
}

/** The names of a path such as `a.b`, `@a.$b` or `a["b c"]`. */
function pathOf(path: string): string[] {
  if (path === '') return []
  const part = /\["((?:\\.|[^"\\])*)"\]|[^.[]+/g
  return [...path.matchAll(part)].map((match) => match[1]?.replace(/\\(.)/g, '$1') ?? match[0])
}
