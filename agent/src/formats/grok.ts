// Grok patterns: regular expressions with `%{NAME:field}` in them. Compiled once; the two dialects share the expansion.

import { parsePath } from '../event/path.ts'
import {
  Float,
  fieldNames,
  float,
  getField,
  integer,
  isFloat,
  isInteger,
  isObject,
  setField,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { compileStrftime, parseTimestamp, type Strftime } from './datetime.ts'
import { makeClassicPatterns } from './grok-library.ts'
import { extendedPatterns } from './grok-patterns.ts'
import { isFailedJson, parseJson } from './json.ts'
import { parseDecimal, parseInteger } from './number.ts'
import { compileBounded } from './regex-linear.ts'
import { parseRubyHash } from './ruby-hash.ts'
import { translateRuby } from './ruby-regex.ts'
import { findZone, utc, type Zone } from './timezone.ts'
import { parseXml } from './xml.ts'

type Filter = (value: Value) => Value | undefined

interface Capture {
  readonly group: string
  /** Where the value goes; empty: into the result itself. */
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

class InvalidGrok extends Error {}

let madeClassicPatterns: Readonly<Record<string, string>> | undefined

/** The patterns with names in capital letters. */
export function classicPatterns(): Readonly<Record<string, string>> {
  madeClassicPatterns ??= makeClassicPatterns()
  return madeClassicPatterns
}

/** What is left of the characters that patterns which belong together may expand to. */
export interface GrokEffort {
  left: number
}

const maxEffort = 262_144
/** An empty pattern takes time, too. */
const patternCost = 16

export function grokEffort(): GrokEffort {
  return { left: maxEffort }
}

/** A pattern of the classic dialect: it matches anywhere, every value is text, a field is named as it stands there. */
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

/** A pattern of the extended dialect: it matches the whole text, paths may be nested, matchers and filters convert. */
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

/** Writes into objects that this match made; a second value makes an array. */
function put(fields: ValueObject, path: readonly string[], value: Value): void {
  let old: Value | undefined = fields
  for (const name of path) old = old !== undefined && isObject(old) ? getField(old, name) : undefined
  write(fields, path, old === undefined ? value : Array.isArray(old) ? [...old, value] : [old, value])
}

function write(fields: ValueObject, path: readonly string[], value: Value): void {
  let object = fields
  for (const name of path.slice(0, -1)) {
    const inner = getField(object, name)
    if (inner !== undefined && isObject(inner)) {
      object = inner
    } else {
      const made: ValueObject = {}
      setField(object, name, made)
      object = made
    }
  }
  setField(object, path.at(-1) as string, value)
}

/** Objects whose keys are read as paths: `a.b` is nested. */
function nested(value: Value): Value {
  if (Array.isArray(value)) return value.map(nested)
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) {
    const path: readonly unknown[] = parsePath(`.${name}`)?.segments ?? []
    const names = path.filter((segment) => typeof segment === 'string')
    const whole = names.length > 0 && names.length === path.length ? names : [name]
    write(fields, whole, nested(value[name] as Value))
  }
  return fields
}

/** Objects without null and without objects that hold nothing. */
function withoutEmpty(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutEmpty)
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) {
    const inner = withoutEmpty(value[name] as Value)
    if (inner !== null && !(isObject(inner) && fieldNames(inner).length === 0)) setField(fields, name, inner)
  }
  return fields
}

const reference =
  /%\{\s*([\w.-]+)(\((?:[^()"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*\))?(?::((?:[^:"]|"[^"]*")*))?(?::([\s\S]*))?\}$/y

interface Reference {
  readonly name: string
  readonly args?: string | undefined
  readonly path?: string | undefined
  readonly filter?: string | undefined
  /** What the name stands for here, in place of the library. */
  readonly definition?: string | undefined
}

/** Of the classic dialect: `%{NAME}`, `%{NAME:field}`, `%{NAME:field:extract}`, each perhaps with `=definition` at its end. */
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

  /** The pattern in Ruby's dialect, with what its names stand for. */
  #expand(pattern: string, within: readonly string[]): string {
    if (within.length > 64) throw new InvalidGrok(`the pattern ${within[0]} is nested too deep`)
    // Names that each refer to others twice double with each level, before anything of them is compiled.
    this.#effort.left -= pattern.length + patternCost
    if (this.#effort.left < 0) {
      throw new InvalidGrok(
        `the patterns are too long: with all that their names stand for they may have ${maxEffort} characters together`,
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
    // The end is the brace that does not stand in quotes.
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
        // Without its two words the matcher of the reference matches nothing.
        inner = '(?!)'
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
    // A field that is named again is one of its own.
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

const largest = 2 ** 63

/** A number without fraction is an integer, if it fits 64 bits. */
function numberValue(number: number): Value {
  if (!Number.isInteger(number) || Math.abs(number) > largest) return float(number)
  return toInteger64(number)
}

/** The integer of 64 bits next to a number, towards zero. */
function toInteger64(number: number): Value {
  const whole = Math.trunc(number)
  if (Number.isSafeInteger(whole)) return whole + 0
  return whole >= largest ? integer(2n ** 63n - 1n) : whole <= -largest ? integer(-(2n ** 63n)) : integer(BigInt(whole))
}

function toNumber(value: Value): Value | undefined {
  const number = typeof value === 'string' ? parseDecimal(value) : undefined
  return number === undefined ? undefined : numberValue(number)
}

/** The names of a path such as `a.b`, `@a.$b` or `a["b c"]`. */
function pathOf(path: string): string[] {
  if (path === '') return []
  const part = /\["((?:\\.|[^"\\])*)"\]|[^.[]+/g
  return [...path.matchAll(part)].map((match) => match[1]?.replace(/\\(.)/g, '$1') ?? match[0])
}

function toInteger(value: Value): Value | undefined {
  return typeof value === 'string' ? parseInteger(value) : undefined
}

function toIntegerExtended(value: Value): Value | undefined {
  const number = typeof value === 'string' ? parseDecimal(value) : undefined
  return number === undefined ? undefined : toInteger64(number)
}

type Argument = string | number | undefined

function argumentsOf(text: string | undefined): Argument[] {
  if (text === undefined) return []
  const found: Argument[] = []
  const part = /\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^,"'()]+))\s*(,|$)/gy
  const inner = text.slice(1, -1)
  for (let match = part.exec(inner); match !== null && match[0] !== ''; match = part.exec(inner)) {
    const quoted = match[1] ?? match[2]
    if (quoted !== undefined) found.push(quoted.replace(/\\(["'\\])/g, '$1'))
    else if (/^-?[\d.]+$/.test((match[3] as string).trim())) found.push(Number(match[3]))
    else found.push((match[3] as string).trim())
  }
  return found
}

const plainXml = {
  trim: true,
  includeAttributes: true,
  attributePrefix: '',
  textKey: 'value',
  alwaysUseTextKey: false,
  parseBoolean: false,
  parseNull: false,
  parseNumber: false,
}

function filterOf(text: string): Filter {
  const match = /^(\w+)\s*(\([\s\S]*\))?$/.exec(text)
  const name = match?.[1] ?? text
  const args = argumentsOf(match?.[2])
  const onText =
    (work: (text: string) => Value | undefined): Filter =>
    (value) =>
      typeof value === 'string' ? work(value) : undefined
  switch (name) {
    case 'integer':
      return toInteger
    case 'integerExt':
      return toIntegerExtended
    case 'number':
    case 'numberExt':
      return toNumber
    case 'scale': {
      const [factor] = args
      if (typeof factor !== 'number') throw new InvalidGrok('scale needs a number')
      return (value) => {
        const number =
          typeof value === 'string'
            ? parseDecimal(value)
            : isInteger(value) || isFloat(value)
              ? Number(value instanceof Float ? value.value : value)
              : undefined
        return number === undefined || Number.isNaN(number * factor) ? undefined : numberValue(number * factor)
      }
    }
    case 'lowercase':
      return onText((value) => value.toLowerCase())
    case 'uppercase':
      return onText((value) => value.toUpperCase())
    case 'nullIf':
      if (typeof args[0] !== 'string') throw new InvalidGrok('nullIf needs a text')
      return onText((value) => (value === args[0] ? null : value))
    case 'boolean':
      return onText((value) => value.toLowerCase() === 'true')
    case 'json':
      return onText((value) => {
        const parsed = parseJson(value)
        return isFailedJson(parsed) ? undefined : parsed
      })
    case 'rubyhash':
      return onText(parseRubyHash)
    case 'querystring':
      return onText((value) => {
        const fields: ValueObject = {}
        for (const [key, item] of new URLSearchParams(value)) put(fields, [key], item)
        return fields
      })
    case 'decodeuricomponent':
      return onText((value) =>
        value.replace(/(?:%[0-9A-Fa-f]{2})+/g, (part) => Buffer.from(part.replaceAll('%', ''), 'hex').toString()),
      )
    case 'xml':
      return onText((value) => parseXml(value, plainXml))
    case 'array':
      return arrayFilter(match?.[2], args)
    case 'keyvalue':
      return keyValueFilter(args)
    default:
      throw new InvalidGrok(`unknown filter '${name}'`)
  }
}

/** `array([brackets,] delimiter, filter)`; each may be missing. */
function arrayFilter(text: string | undefined, args: readonly Argument[]): Filter {
  const inner = /(?:^\(|,)\s*([A-Za-z]\w*(?:\([^)]*\))?)\s*\)$/.exec(text ?? '')
  const filter = inner === null ? undefined : filterOf(inner[1] as string)
  const texts = filter === undefined ? args : args.slice(0, argumentCount(text) - 1)
  if (texts.length > 2 || texts.some((argument) => typeof argument !== 'string')) {
    throw new InvalidGrok('array needs brackets and a delimiter')
  }
  const brackets = texts.length === 2 ? String(texts[0]) : '[]'
  if (brackets.length > 2) throw new InvalidGrok('brackets are two characters')
  const delimiter = String(texts.at(-1) ?? ',').replace(/\\[nrt]/g, (escaped) =>
    escaped === '\\n' ? '\n' : escaped === '\\r' ? '\r' : '\t',
  )
  return (value) => {
    if (typeof value !== 'string') return undefined
    const items = brackets === '' ? value.split(delimiter) : bracketed(value, brackets, delimiter)
    if (items === undefined || filter === undefined) return items
    const results = items.map(filter)
    return results.every((result) => result !== undefined) ? results : undefined
  }
}

function argumentCount(text: string | undefined): number {
  return (text ?? '').replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\([^()]*\)(?=\s*\)$)/g, '').split(',').length
}

/** What stands between brackets, taken apart; undefined if the brackets are missing. */
function bracketed(text: string, brackets: string, delimiter: string): string[] | undefined {
  const open = brackets[0] as string
  const close = brackets.at(-1) as string
  if (!text.startsWith(open)) return undefined
  const items: string[] = []
  let at = 1
  for (;;) {
    // The last item goes up to the bracket.
    const next = text.indexOf(delimiter, at)
    const end = next < 0 ? text.indexOf(close, at) : next
    if (end < 0) return undefined
    items.push(text.slice(at, end))
    at = end
    if (!text.startsWith(delimiter, at)) break
    at += delimiter.length
  }
  return text.startsWith(close, at) && text.slice(at + 1).trim() === '' ? items : undefined
}

/** `keyvalue(separator, more characters of values, quotes, delimiters)`; the separator is a regular expression. */
function keyValueFilter(args: readonly Argument[]): Filter {
  if (args.some((argument) => typeof argument !== 'string')) throw new InvalidGrok('keyvalue needs texts')
  const [separator = '=', more = '', quotes = '', delimiters] = args as (string | undefined)[]
  if (quotes !== '' && quotes.length !== 2) throw new InvalidGrok('quotes are two characters')
  if (delimiters === '') throw new InvalidGrok('the delimiter of keyvalue is empty')
  const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  const pairs = quotes === '' ? ['""', "''", '<>'] : [quotes]
  const left = delimiters === undefined ? '\\s,;(\\[{' : delimiters[0]
  const right = delimiters === undefined ? '\\s,;)\\]}' : delimiters.length > 1 ? delimiters.slice(1) : delimiters
  const quoted = pairs.map(
    (pair) => `${literal(pair[0] as string)}[^${literal(pair[0] as string)}]+${literal(pair[1] as string)}|`,
  )
  const word = `(${quoted.join('')}[\\w\\u00aa-\\uffff.\\-@${more}]+)`
  const pattern = compileBounded(`(?<=[${left}]|^)${word}${separator}${word}(?:[${right}]|$)`, 'g')
  const unquoted = (text: string): string | undefined => {
    for (const [open, close] of pairs) {
      const end = text.startsWith(open as string) ? text.indexOf(close as string, 1) : -1
      if (end > 0) return text.slice(1, end)
    }
    return undefined
  }
  const scalar = (text: string): Value => {
    if (text.startsWith('null')) return null
    if (text.startsWith('true')) return true
    if (text.startsWith('false')) return false
    const number = parseDecimal(text)
    const octal = number !== undefined && Number.isInteger(number) && text.startsWith('0') && /[89]/.test(text)
    if (number !== undefined && !octal) return numberValue(number)
    return (unquoted(text) ?? text).trim()
  }
  return (value) => {
    if (typeof value !== 'string') return undefined
    const fields: ValueObject = {}
    for (const match of value.matchAll(pattern)) {
      const name = (match[1] as string).trim()
      const key = unquoted(name) ?? name
      const item = scalar((match[2] as string).trim().replace(/,+$/, ''))
      if (key !== '' && !key.includes(' ') && item !== null && item !== '') put(fields, [key], item)
    }
    return fields
  }
}

const joda: readonly (readonly [RegExp, string, string])[] = [
  [/^yyyy/, '%Y', '\\d{4}'],
  [/^yy/, '%y', '\\d{2}'],
  [/^y/, '%Y', '\\d{4}'],
  [/^MMMM/, '%B', '[A-Za-z]+'],
  [/^MMM/, '%b', '[A-Za-z]{3}'],
  [/^MM?/, '%m', '\\d{1,2}'],
  [/^dd?/, '%d', '\\d{1,2}'],
  [/^DD?D?/, '%j', '\\d{1,3}'],
  [/^EEEE+/, '%A', '[A-Za-z]+'],
  [/^E{1,3}/, '%a', '[A-Za-z]{3}'],
  [/^HH?/, '%H', '\\d{1,2}'],
  [/^hh?/, '%I', '\\d{1,2}'],
  [/^mm?/, '%M', '\\d{1,2}'],
  [/^ss?/, '%S', '\\d{1,2}'],
  [/^a/, '%p', '[AaPp][Mm]'],
  [/^ZZ/, '%:z', '(?:Z|[+-]\\d{2}:?\\d{2})'],
  [/^Z/, '%z', '(?:Z|[+-]\\d{2}:?\\d{2})'],
]

/** `date("pattern"[, zone])` with Joda's letters: milliseconds since the epoch. */
function dateOf(args: readonly Argument[]): { source: string; filter: Filter } {
  const [pattern, zoneName] = args
  if (typeof pattern !== 'string') throw new InvalidGrok('date needs a pattern')
  let zone = zoneName === undefined ? utc : zoneOf(String(zoneName))
  if (zone === undefined) throw new InvalidGrok(`the time zone ${zoneName} is not known`)
  let source = ''
  let form = ''
  let named = false
  let at = 0
  while (at < pattern.length) {
    const rest = pattern.slice(at)
    const quoted = /^'((?:[^']|'')*)'/.exec(rest)
    const fraction = /^([.,]?)S+/.exec(rest)
    if (quoted !== null) {
      const text = quoted[1] === '' ? "'" : (quoted[1] as string).replaceAll("''", "'")
      source += text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
      form += text.replaceAll('%', '%%')
      at += quoted[0].length
      continue
    }
    if (fraction !== null) {
      const digits = fraction[0].length - (fraction[1] as string).length
      source += `${fraction[1] === '' ? '' : '[.,]'}\\d{1,9}`
      form += fraction[1] === '.' ? '%.f' : `${fraction[1]}${digits === 6 ? '%6f' : digits === 9 ? '%9f' : '%3f'}`
      at += fraction[0].length
      continue
    }
    if (/^z/.test(rest)) {
      // A name of a zone: the instant is read in it.
      named = true
      source += '[A-Za-z_/]+'
      form += '%Z'
      at += /^z+/.exec(rest)?.[0].length ?? 1
      continue
    }
    const letter = joda.find(([start]) => start.test(rest))
    if (letter !== undefined) {
      form += letter[1]
      source += letter[2]
      at += letter[0].exec(rest)?.[0].length ?? 1
      continue
    }
    const character = pattern[at] as string
    if (/[A-Za-z]/.test(character)) throw new InvalidGrok(`the letter ${character} of the date is not known`)
    source += character === ' ' ? '\\s+' : character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
    form += character.replaceAll('%', '%%')
    at++
  }
  // What the pattern leaves out is that of the present day, and midnight.
  const missing = {
    year: !/[yY]/.test(pattern),
    month: !pattern.includes('M'),
    day: !form.includes('d'),
    time: !/%[HI]/.test(form),
  }
  const whole = `${missing.year ? '%Y ' : ''}${missing.month ? '%m ' : ''}${missing.day ? '%d ' : ''}${form}${missing.time ? ' %H:%M:%S' : ''}`
  const zoned = compileStrftime(whole)
  if (!zoned.ok) throw new InvalidGrok(zoned.problem)
  // The name is passed over by the pattern; the zone comes from the text.
  const compiledForm: Strftime = named ? { ...zoned, hasZone: false } : zoned
  const standard = zone
  return {
    source,
    filter(value) {
      let text = String(value)
      if (named) zone = findZone(/[A-Za-z_/]+$/.exec(text)?.[0] ?? '') ?? standard
      if (pattern.endsWith('Z') && text.endsWith('Z')) text = `${text.slice(0, -1)}+00:00`
      const present = new Date()
      if (missing.day) text = `${present.getUTCDate()} ${text}`
      if (missing.month) text = `${present.getUTCMonth() + 1} ${text}`
      if (missing.year) text = `${present.getUTCFullYear()} ${text}`
      if (missing.time) text += ' 00:00:00'
      const read = parseTimestamp(compiledForm, text, zone)?.ms
      if (read === undefined || read <= present.getTime() || !(missing.day || missing.year)) return read
      // What would lie ahead is that of yesterday, or of the last year.
      const past = new Date(read)
      if (!missing.day) past.setUTCFullYear(past.getUTCFullYear() - 1)
      else if (past.getUTCDate() > 1) past.setUTCDate(past.getUTCDate() - 1)
      return past.getTime()
    },
  }
}

/** An offset such as `+3`, `-0300` or `UTC+05:30` as a zone; names are those of the database. */
function zoneOf(name: string): Zone | undefined {
  const offset = /^[A-Za-z]*([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(name)
  if (offset === null) return findZone(name === 'Z' || name === 'UT' ? 'UTC' : name)
  const minutes = Number(offset[2]) * 60 + Number(offset[3] ?? 0)
  const ahead = (offset[1] === '-' ? -minutes : minutes) * 60_000
  return { name, offsetAt: () => ahead, instantOf: (localMs) => localMs - ahead, abbreviationAt: () => name }
}
