// Grok patterns: regular expressions with `%{NAME:field}` in them. Compiled once; the two dialects share the expansion.

import { float, getField, integer, isObject, setField, type Value, type ValueObject } from '../event/value.ts'
import { compileStrftime, parseTimestamp, type Strftime } from './datetime.ts'
import { classicPatterns, extendedPatterns } from './grok-patterns.ts'
import { isFailedJson, parseJson } from './json.ts'
import { parseDecimal } from './number.ts'
import { compileBounded } from './regex-linear.ts'
import { parseRubyHash } from './ruby-hash.ts'
import { findZone, utc } from './timezone.ts'
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

/** A pattern of the classic dialect: it matches anywhere, every value is text, a field is named as it stands there. */
export function compileGrok(pattern: string): Grok | BadGrok {
  return compiled(() => {
    const expansion = new Expansion({}, false)
    const regex = expansion.regex(pattern, false)
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
export function compileExtendedGrok(pattern: string, aliases: Readonly<Record<string, string>>): Grok | BadGrok {
  return compiled(() => {
    const expansion = new Expansion(aliases, true)
    const regex = expansion.regex(pattern, true)
    return {
      ok: true,
      match(text) {
        const groups = regex.exec(text)
        if (groups === null) return undefined
        const fields: ValueObject = {}
        for (const capture of expansion.captures) {
          let value: Value | undefined = groups.groups?.[capture.group]
          for (const filter of capture.filters) if (value !== undefined) value = filter(value)
          if (value === undefined || value === null) continue
          if (capture.path.length > 0) put(fields, capture.path, value)
          else if (isObject(value)) for (const name of Object.keys(value)) setField(fields, name, value[name])
        }
        return fields
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
  let object = fields
  for (const name of path.slice(0, -1)) {
    const inner = getField(object, name)
    if (isObject(inner)) {
      object = inner
    } else {
      const made: ValueObject = {}
      setField(object, name, made)
      object = made
    }
  }
  const last = path.at(-1) as string
  const old = getField(object, last)
  setField(object, last, old === undefined ? value : Array.isArray(old) ? [...old, value] : [old, value])
}

const reference =
  /%\{\s*([\w-]+)(\((?:[^()"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*\))?(?::([^:}]*))?(?::([\s\S]*?))?\}/y

class Expansion {
  readonly captures: Capture[] = []
  readonly #aliases: Readonly<Record<string, string>>
  readonly #extended: boolean

  constructor(aliases: Readonly<Record<string, string>>, extended: boolean) {
    this.#aliases = aliases
    this.#extended = extended
  }

  regex(pattern: string, whole: boolean): RegExp {
    let source = pattern
    let flags = ''
    const start = /^\(\?([imsx]+)\)/.exec(source)
    if (start !== null) {
      source = source.slice(start[0].length)
      if (start[1]?.includes('i')) flags += 'i'
      if (start[1]?.includes('s') || start[1]?.includes('m')) flags += 's'
    }
    const expanded = this.#expand(source, [])
    return compileBounded(whole ? `^(?:${expanded})$` : expanded, flags)
  }

  #expand(pattern: string, within: readonly string[]): string {
    if (within.length > 64) throw new InvalidGrok(`the pattern ${within[0]} is nested too deep`)
    let result = ''
    let at = 0
    while (at < pattern.length) {
      if (pattern.startsWith('%{', at)) {
        const match = this.#reference(pattern, at)
        if (match === undefined)
          throw new InvalidGrok(`invalid reference at ${JSON.stringify(pattern.slice(at, at + 40))}`)
        at = match.end
        result += this.#one(match, within)
        continue
      }
      const named = /^\(\?<([A-Za-z_][\w.]*)>/.exec(pattern.slice(at, at + 80))
      if (named !== null) {
        result += `(?<${this.#capture([named[1] as string], [])}>`
        at += named[0].length
        continue
      }
      const character = pattern[at] as string
      const next = pattern[at + 1]
      if (character === '\\' && next !== undefined) {
        // Anchors of the whole text, and what JavaScript spells otherwise.
        result +=
          next === 'A' ? '^' : next === 'z' || next === 'Z' ? '$' : next === 'h' ? '[0-9A-Fa-f]' : character + next
        at += 2
      } else if (pattern.startsWith('(?>', at)) {
        result += '(?:'
        at += 3
      } else {
        result += character
        at++
      }
    }
    return result
  }

  #reference(
    pattern: string,
    at: number,
  ):
    | { name: string; args: string | undefined; path: string | undefined; filter: string | undefined; end: number }
    | undefined {
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

  #one(
    found: { name: string; args: string | undefined; path: string | undefined; filter: string | undefined },
    within: readonly string[],
  ): string {
    const { name } = found
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
          : Object.hasOwn(classicPatterns, name)
            ? classicPatterns[name]
            : undefined
      if (library === undefined) throw new InvalidGrok(`the given pattern definition name "${name}" could not be found`)
      inner = this.#expand(library, [...within, name])
      if (/^(number|numberExt)$/.test(name)) filters.push(toNumber)
      if (/^(integer|integerExt)$/.test(name)) filters.push(toInteger)
    }
    if (found.path === undefined && found.filter === undefined) return `(?:${inner})`
    const path = (found.path ?? '').trim()
    if (!this.#extended) {
      // What a library pattern names inside is a field only where the pattern is not named itself.
      return path === '' ? `(?:${inner})` : `(?<${this.#capture([path], [])}>${inner})`
    }
    if (found.filter !== undefined) filters.push(filterOf(found.filter.trim()))
    const segments = path === '' ? [] : path.split('.')
    return `(?<${this.#capture(segments, filters)}>${inner})`
  }

  #capture(path: readonly string[], filters: readonly Filter[]): string {
    const group = `g${this.captures.length}`
    this.captures.push({ group, path, filters })
    return group
  }
}

function toNumber(value: Value): Value | undefined {
  const number = typeof value === 'string' ? parseDecimal(value) : undefined
  if (number === undefined) return undefined
  return Number.isSafeInteger(number) ? number + 0 : float(number)
}

function toInteger(value: Value): Value | undefined {
  if (typeof value !== 'string') return undefined
  if (/^[+-]?\d+$/.test(value)) {
    const whole = BigInt(value.replace('+', ''))
    return BigInt.asIntN(64, whole) === whole ? integer(whole) : undefined
  }
  const number = parseDecimal(value)
  return number !== undefined && Number.isSafeInteger(Math.trunc(number)) ? Math.trunc(number) + 0 : undefined
}

type Argument = string | number | undefined

function argumentsOf(text: string | undefined): Argument[] {
  if (text === undefined) return []
  const found: Argument[] = []
  const part = /\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^,"'()]+))\s*(,|$)/gy
  const inner = text.slice(1, -1)
  for (let match = part.exec(inner); match !== null && match[0] !== ''; match = part.exec(inner)) {
    const quoted = match[1] ?? match[2]
    if (quoted !== undefined) found.push(quoted.replace(/\\(["'])/g, '$1'))
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
  parseBoolean: true,
  parseNull: true,
  parseNumber: true,
}

function filterOf(text: string): Filter {
  const match = /^(\w+)\s*(\([\s\S]*\))?$/.exec(text)
  const name = match?.[1] ?? text
  const args = argumentsOf(match?.[2])
  const onText =
    (work: (text: string) => Value | undefined): Filter =>
    (value) =>
      typeof value === 'string' ? work(value) : value
  switch (name) {
    case 'integer':
    case 'integerExt':
      return toInteger
    case 'number':
    case 'numberExt':
      return toNumber
    case 'scale': {
      const factor = Number(args[0])
      if (Number.isNaN(factor)) throw new InvalidGrok('scale needs a number')
      return (value) => {
        const number =
          typeof value === 'object' && value !== null && 'value' in value ? Number(value.value) : Number(value)
        return Number.isNaN(number) ? undefined : float(number * factor)
      }
    }
    case 'lowercase':
      return onText((value) => value.toLowerCase())
    case 'uppercase':
      return onText((value) => value.toUpperCase())
    case 'nullIf':
      return (value) => (value === args[0] ? null : value)
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
      return onText((value) => Object.fromEntries(new URLSearchParams(value)))
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

/** `array([brackets], delimiter, filter)`; brackets and filter may be missing. */
function arrayFilter(text: string | undefined, args: readonly Argument[]): Filter {
  const strings = args.filter((argument) => typeof argument === 'string')
  const inner = /,\s*(\w+(?:\([^)]*\))?)\s*\)$/.exec(text ?? '')
  const filter = inner === null ? undefined : filterOf(inner[1] as string)
  const plain = filter === undefined ? strings : strings.slice(0, -1)
  const [first, second] = plain
  const brackets = second === undefined ? '' : String(first)
  const delimiter = String(second ?? first ?? ',')
    .replaceAll('\\n', '\n')
    .replaceAll('\\t', '\t')
  return (value) => {
    if (typeof value !== 'string') return undefined
    let list = value
    const open = brackets === '' ? '[' : (brackets[0] as string)
    const close = brackets === '' ? ']' : (brackets.at(-1) as string)
    if (list.startsWith(open) && list.endsWith(close) && list.length > 1) list = list.slice(1, -1)
    else if (brackets !== '') return undefined
    const items = list === '' ? [] : list.split(delimiter).map((item) => item.trim())
    return items.flatMap((item) => {
      const given = filter === undefined ? item : filter(item)
      return given === undefined ? [] : [given]
    })
  }
}

/** `keyvalue(separator, more characters of values, quotes, delimiter)`. */
function keyValueFilter(args: readonly Argument[]): Filter {
  const [separator = '=', more = '', quotes = '', delimiter = ''] = args.map(String)
  const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  const pairs =
    quotes.length >= 2
      ? [[quotes[0] as string, quotes.at(-1) as string]]
      : [
          ['"', '"'],
          ["'", "'"],
          ['<', '>'],
        ]
  const quoted = pairs.map(
    ([open, close]) => `${literal(open as string)}([^${literal(close as string)}]*)${literal(close as string)}`,
  )
  const end = delimiter === '' ? '' : `(?=${literal(delimiter)}|$)`
  const plain = delimiter === '' ? `[\\w.\\-@${literal(more)}]*` : `[^${literal(delimiter)}]*?`
  const pair = compileBounded(
    `(?:^|[\\s,;(\\[{|]|${delimiter === '' ? '(?!)' : literal(delimiter)})\\s*["']?([\\w.\\-@]+)["']?\\s*${literal(separator)}\\s*(?:${quoted.join('|')}|(${plain})${end})`,
    'g',
  )
  return (value) => {
    if (typeof value !== 'string') return undefined
    const fields: ValueObject = {}
    for (const match of value.matchAll(pair)) {
      const key = match[1] as string
      const text = match.slice(2).find((group) => group !== undefined)
      if (text === undefined || text === '' || text === 'null') continue
      put(fields, [key], text === 'true' ? true : text === 'false' ? false : (toNumber(text) ?? text))
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
  [/^ZZ/, '%:z', '[+-]\\d{2}:\\d{2}'],
  [/^Z/, '%z', '[+-]\\d{2}:?\\d{2}'],
]

/** `date("pattern"[, zone])` with Joda's letters: milliseconds since the epoch. */
function dateOf(args: readonly Argument[]): { source: string; filter: Filter } {
  const [pattern, zoneName] = args
  if (typeof pattern !== 'string') throw new InvalidGrok('date needs a pattern')
  let zone = zoneName === undefined ? utc : findZone(String(zoneName))
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
  const zoned = compileStrftime(form)
  if (!zoned.ok) throw new InvalidGrok(zoned.problem)
  // The name is passed over by the pattern; the zone comes from the text.
  const compiledForm: Strftime = named ? { ...zoned, hasZone: false } : zoned
  const standard = zone
  return {
    source,
    filter(value) {
      const text = String(value)
      if (named) zone = findZone(/[A-Za-z_/]+$/.exec(text)?.[0] ?? '') ?? standard
      return parseTimestamp(compiledForm, text, zone)?.ms
    },
  }
}
