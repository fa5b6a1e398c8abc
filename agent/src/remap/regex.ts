// Translates patterns of the language (the dialect of RE2-like engines) to JavaScript. Patterns are compiled with flag
// `v`, because classes, `.` and case folding work on code points in the dialect.
// re2js is not used: it rejects `(?x)`, `[\w--\d]` and `\p{Script=Greek}`, and its `\w` and `\d` are ASCII. It is also
// slow (formats/regex-linear.ts).

import { BoundedMap, ownText } from '../bounded-map.ts'
import { Regex } from '../event/value.ts'
import { compileBounded } from '../formats/regex-linear.ts'

export interface InvalidRegex {
  readonly reason: string
}

const groupNamesOf = new WeakMap<RegExp, readonly (string | undefined)[]>()
// Patterns can come from data (`to_regex`). The size of a compiled pattern is estimated from the length of its translation,
// because Unicode classes expand a lot.
const cache = new BoundedMap<Regex | InvalidRegex>({
  maxEntries: 1000,
  maxBytes: 8 << 20,
  sizeOf: (regex) =>
    regex instanceof Regex
      ? 2000 + 20 * regex.compiled.source.length + 2 * regex.source.length
      : 2 * regex.reason.length,
})

/** Compiles a pattern once; equal pattern texts return the same value. */
export function compileRegex(pattern: string): Regex | InvalidRegex {
  const known = cache.get(pattern)
  if (known !== undefined) return known
  const compiled = build(ownText(pattern))
  cache.set(pattern, compiled)
  return compiled
}

/** Names of a pattern's groups by number, from 1; undefined for unnamed groups. Index 0 is the whole match. */
export function groupNames(regex: Regex): readonly (string | undefined)[] {
  return groupNamesOf.get(regex.compiled) ?? []
}

function build(pattern: string): Regex | InvalidRegex {
  try {
    if (pattern.length > maxLength) throw tooLarge()
    const translation = new Translator(pattern).translate()
    if (translation.source.length > maxLength) throw tooLarge()
    const compiled = compileBounded(translation.source, translation.flags)
    groupNamesOf.set(compiled, translation.names)
    return new Regex(pattern, compiled)
  } catch (error) {
    return { reason: `regex parse error: ${(error as Error).message}` }
  }
}

/**
 * The built-in engine compiles a pattern before other checks run. Its time grows with the length of the pattern, and with the square of
 * the length of a class, especially with Unicode properties: a pattern of 7,000 characters took 30 s.
 */
const maxLength = 131_072
const maxClassLength = 8192
const maxClassProperties = 100

function tooLarge(): Error {
  return new Error('Compiled regex exceeds size limit of 10485760 bytes.')
}

/** Returns a class that the built-in engine compiles in a few milliseconds; throws for any other. */
function boundedClass(text: string): string {
  if (text.length > maxClassLength) throw tooLarge()
  let properties = 0
  for (let at = text.indexOf('\\p{'); at >= 0; at = text.indexOf('\\p{', at + 1)) properties++
  for (let at = text.indexOf('\\P{'); at >= 0; at = text.indexOf('\\P{', at + 1)) properties++
  if (properties > maxClassProperties) throw tooLarge()
  return text
}

interface Flags {
  readonly i: boolean
  readonly m: boolean
  readonly s: boolean
  readonly x: boolean
  readonly u: boolean
  readonly U: boolean
}

const noFlags: Flags = { i: false, m: false, s: false, x: false, u: true, U: false }

const wordItems = '\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}'
const posix: Readonly<Record<string, string>> = {
  alnum: '0-9A-Za-z',
  alpha: 'A-Za-z',
  ascii: '\\x00-\\x7F',
  blank: '\\t\\x20',
  cntrl: '\\x00-\\x1F\\x7F',
  digit: '0-9',
  graph: '\\x21-\\x7E',
  lower: 'a-z',
  print: '\\x20-\\x7E',
  punct: '\\x21-\\x2F\\x3A-\\x40\\x5B-\\x60\\x7B-\\x7E',
  space: '\\t\\n\\v\\f\\r\\x20',
  upper: 'A-Z',
  word: '0-9A-Za-z_',
  xdigit: '0-9A-Fa-f',
}

/** A literal character, for use inside and outside classes. */
function literal(char: string): string {
  return /^[0-9A-Za-z_ \u0080-\u{10ffff}]$/u.test(char) ? char : `\\u{${(char.codePointAt(0) as number).toString(16)}}`
}

/**
 * Wraps a class in a group: with flag `v` the engine (V8 14.6) applies the flags of a preceding group such as `(?i:a)` to a
 * bare class.
 */
function alone(characters: string): string {
  return `(?:${characters})`
}

/** Without flag `u` these match single bytes. */
function invalidUtf8(): Error {
  return new Error('pattern can match invalid UTF-8')
}

interface Quantifier {
  readonly min: number
  /** Infinity: unlimited. */
  readonly max: number
  readonly lazy: boolean
}

/** A group that tries first to match nothing: with an empty first alternative, or with one lazy part that is optional. */
const beginsEmpty = /^\((?:\?:|\?<[^>]*>|(?!\?))(?:\||\(\?:(?:[^()]|\(\?:[^()]*\))*\)[?*]\?\)$)/

function repeated(atom: string, { min, max, lazy }: Quantifier): string {
  // An iteration that matches nothing ends a repetition. JavaScript would first try the other alternatives.
  if (max === Number.POSITIVE_INFINITY && beginsEmpty.test(atom)) return `(?:${atom})${min > 1 ? `{${min},}` : '+'}?`
  const optional = max - min
  // JavaScript undoes an iteration that matches nothing and tries others; the dialect keeps it.
  if (Number.isFinite(optional) && optional > 0 && optional * atom.length <= maxWrittenOut && matchesNothing(atom)) {
    let turns = ''
    for (let turn = 0; turn < optional; turn++) turns = lazy ? `(?:|${atom}${turns})` : `(?:${atom}${turns}|)`
    return min === 0 ? turns : `(?:${atom}){${min}}${turns}`
  }
  const sign =
    max === Number.POSITIVE_INFINITY
      ? min === 0
        ? '*'
        : min === 1
          ? '+'
          : `{${min},}`
      : min === 0 && max === 1
        ? '?'
        : min === max
          ? `{${min}}`
          : `{${min},${max}}`
  return `(?:${atom})${sign}${lazy ? '?' : ''}`
}

const maxWrittenOut = 2000

function matchesNothing(atom: string): boolean {
  return new RegExp(`^(?:${atom})$`, 'v').test('')
}

class Translator {
  readonly #chars: readonly string[]
  #at = 0
  #flags = noFlags
  readonly #names: (string | undefined)[] = [undefined]

  constructor(pattern: string) {
    this.#chars = Array.from(pattern)
  }

  translate(): { source: string; flags: string; names: readonly (string | undefined)[] } {
    // Flags at the very beginning apply to the whole pattern.
    let flags = 'v'
    const start = this.#chars.join('').match(/^\(\?([imsxuU]*)\)/)
    if (start !== null) {
      this.#flags = { ...this.#flags, ...flagsOf(start[1] as string, true) }
      this.#at = start[0].length
      if (this.#flags.i) flags += 'i'
    }
    const source = this.#alternatives(this.#flags.i)
    if (this.#at < this.#chars.length) throw new Error('unopened group')
    return { source, flags, names: this.#names }
  }

  get #char(): string | undefined {
    return this.#chars[this.#at]
  }

  #starts(text: string): boolean {
    for (let index = 0; index < text.length; index++) if (this.#chars[this.#at + index] !== text[index]) return false
    return true
  }

  /** Reads up to the end of the group. `insensitive`: the engine's flag in the current context. */
  #alternatives(insensitive: boolean): string {
    const before = this.#flags
    let out = ''
    let open = this.#flags.i !== insensitive
    const opening = (): string => (this.#flags.i ? '(?i:' : '(?-i:')
    if (open) out += opening()
    let atom: string | undefined
    const flush = (): void => {
      if (atom !== undefined) out += atom
      atom = undefined
    }
    for (;;) {
      const char = this.#char
      if (char === undefined || char === ')') break
      if (this.#flags.x && /\s/u.test(char)) {
        this.#at++
        continue
      }
      if (this.#flags.x && char === '#') {
        while (this.#char !== undefined && this.#char !== '\n') this.#at++
        continue
      }
      if (char === '|') {
        flush()
        this.#at++
        out += open ? `)|${opening()}` : '|'
        continue
      }
      if (char === '*' || char === '+' || char === '?' || char === '{') {
        if (atom === undefined) throw new Error('repetition operator missing expression')
        atom = repeated(atom, this.#quantifier(char))
        continue
      }
      flush()
      if (char === '(' && this.#starts('(?') && /^[imsxuUR-]/.test(this.#chars[this.#at + 2] ?? '')) {
        const end = this.#chars.findIndex((text, index) => index > this.#at && (text === ')' || text === ':'))
        if (end < 0) throw new Error('unclosed group')
        const letters = this.#chars.slice(this.#at + 2, end).join('')
        if (!/^(?=.)[imsxuUR]*(?:-[imsxuUR]+)?$/.test(letters)) throw new Error('unrecognized flag')
        const [on = '', off = ''] = letters.split('-')
        const changed = { ...this.#flags, ...flagsOf(on, true), ...flagsOf(off, false) }
        this.#at = end + 1
        if (this.#chars[end] === ':') {
          const outer = this.#flags
          const around = outer.i
          this.#flags = changed
          atom = `(?:${this.#alternatives(around)})`
          this.#flags = outer
          this.#close()
        } else {
          if (open) out += ')'
          this.#flags = changed
          open = this.#flags.i !== insensitive
          if (open) out += opening()
        }
        continue
      }
      atom = this.#atom(char)
    }
    flush()
    if (open) out += ')'
    this.#flags = before
    return out
  }

  #close(): void {
    if (this.#char !== ')') throw new Error('unclosed group')
    this.#at++
  }

  #quantifier(char: string): Quantifier {
    this.#at++
    let min = char === '+' ? 1 : 0
    let max = char === '?' ? 1 : Number.POSITIVE_INFINITY
    if (char === '{') {
      const end = this.#chars.indexOf('}', this.#at)
      const body = end < 0 ? '' : this.#chars.slice(this.#at, end).join('').replaceAll(' ', '')
      const match = /^(\d+)(?:(,)(\d*))?$/.exec(body)
      if (match === null) throw new Error('repetition quantifier expects a valid decimal')
      const [, from, comma, to] = match
      min = Number(from)
      max = comma === undefined ? min : to === '' ? Number.POSITIVE_INFINITY : Number(to)
      if (max < min) throw new Error('invalid repetition count range, the start must be <= the end')
      this.#at = end + 1
    }
    let lazy = false
    if (this.#char === '?') {
      lazy = true
      this.#at++
    }
    return { min, max, lazy: lazy !== this.#flags.U }
  }

  #atom(char: string): string {
    switch (char) {
      case '(':
        return this.#group()
      case '[':
        return alone(this.#class())
      case '.':
        this.#at++
        if (!this.#flags.u) throw invalidUtf8()
        return this.#flags.s ? '[^]' : '[^\\n]'
      case '^':
        this.#at++
        return this.#flags.m ? '(?<![^\\n])' : '^'
      case '$':
        this.#at++
        return this.#flags.m ? '(?![^\\n])' : '$'
      case '\\':
        return this.#escape(false)
      default:
        this.#at++
        return literal(char)
    }
  }

  #group(): string {
    this.#at++
    let open = '('
    if (this.#char === '?') {
      if (this.#starts('?:')) {
        open = '(?:'
        this.#at += 2
      } else if (this.#starts('?P<') || (this.#starts('?<') && !this.#starts('?<=') && !this.#starts('?<!'))) {
        this.#at += this.#starts('?P<') ? 3 : 2
        const end = this.#chars.indexOf('>', this.#at)
        const name = end < 0 ? '' : this.#chars.slice(this.#at, end).join('')
        if (!/^[_\p{Alphabetic}][\p{Alphabetic}\p{Nd}_.[\]]*$/u.test(name))
          throw new Error('invalid capture group name')
        if (this.#names.includes(name)) throw new Error('duplicate capture group name')
        this.#names.push(name)
        // A name that JavaScript does not accept becomes a number.
        if (/^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(name)) open = `(?<${name}>`
        this.#at = end + 1
      } else {
        throw new Error('look-around, including look-ahead and look-behind, is not supported')
      }
    } else {
      this.#names.push(undefined)
    }
    const outer = this.#flags
    const body = this.#alternatives(outer.i)
    this.#flags = outer
    this.#close()
    return `${open}${body})`
  }

  /** An escape: returns items inside a class, and an atom elsewhere. */
  #escape(inClass: boolean): string {
    const char = this.#chars[this.#at + 1]
    if (char === undefined) throw new Error('incomplete escape sequence, reached end of pattern prematurely')
    this.#at += 2
    const unicode = this.#flags.u
    if (!unicode && (char === 'D' || char === 'S' || char === 'W')) throw invalidUtf8()
    switch (char) {
      case 'd':
        return unicode ? '\\p{Nd}' : '[0-9]'
      case 'D':
        return unicode ? '\\P{Nd}' : '[^0-9]'
      case 's':
        return unicode ? '\\p{White_Space}' : '[\\t\\n\\v\\f\\r\\x20]'
      case 'S':
        return unicode ? '\\P{White_Space}' : '[^\\t\\n\\v\\f\\r\\x20]'
      case 'w':
        return unicode ? `[${wordItems}]` : '[0-9A-Za-z_]'
      case 'W':
        return unicode ? `[^${wordItems}]` : '[^0-9A-Za-z_]'
      case 'p':
      case 'P': {
        const property = this.#property(char === 'P')
        return inClass ? property : alone(property)
      }
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'v':
        return `\\${char}`
      case 'a':
        return '\\x07'
      case 'x':
      case 'u':
      case 'U':
        return literal(this.#hex(char))
      case '0':
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7':
      case '8':
      case '9':
        throw new Error('backreferences are not supported')
    }
    if (!inClass) {
      const word = unicode ? `[${wordItems}]` : '[0-9A-Za-z_]'
      if (char === 'b' && this.#char === '{' && /[a-z]/.test(this.#chars[this.#at + 1] ?? '')) {
        const end = this.#chars.indexOf('}', this.#at)
        const kind = this.#chars.slice(this.#at + 1, end).join('')
        this.#at = end + 1
        if (kind === 'start') return `(?:(?<!${word})(?=${word}))`
        if (kind === 'end') return `(?:(?<=${word})(?!${word}))`
        if (kind === 'start-half') return `(?<!${word})`
        if (kind === 'end-half') return `(?!${word})`
        throw new Error('special word boundary assertion is invalid')
      }
      if (char === 'b') return `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`
      if (char === 'B') return `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`
      if (char === '<') return `(?:(?<!${word})(?=${word}))`
      if (char === '>') return `(?:(?<=${word})(?!${word}))`
      if (char === 'A') return '^'
      if (char === 'z') return '$'
    }
    if (/^[0-9A-Za-z<>]$/.test(char)) throw new Error('unrecognized escape sequence')
    return literal(char)
  }

  #hex(kind: string): string {
    let digits: string
    if (this.#char === '{') {
      const end = this.#chars.indexOf('}', this.#at)
      digits = end < 0 ? '' : this.#chars.slice(this.#at + 1, end).join('')
      this.#at = end + 1
    } else {
      const length = kind === 'x' ? 2 : kind === 'u' ? 4 : 8
      digits = this.#chars.slice(this.#at, this.#at + length).join('')
      if (digits.length < length) digits = ''
      this.#at += length
    }
    const value = /^[0-9A-Fa-f]+$/.test(digits) ? Number.parseInt(digits, 16) : -1
    if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      throw new Error('invalid hexadecimal escape')
    }
    return String.fromCodePoint(value)
  }

  #property(negated: boolean): string {
    let name: string
    if (this.#char === '{') {
      const end = this.#chars.indexOf('}', this.#at)
      if (end < 0) throw new Error('Unicode property not found')
      name = this.#chars.slice(this.#at + 1, end).join('')
      this.#at = end + 1
    } else {
      name = this.#char ?? ''
      this.#at++
    }
    let negative = negated
    if (name.startsWith('^')) {
      name = name.slice(1)
      negative = !negative
    }
    const escaped = negative ? 'P' : 'p'
    const [key, value] = name.split(/[=:]/) as [string, string?]
    const loose = (text: string): string => text.toLowerCase().replaceAll(/[\s_-]/g, '')
    const titled = (text: string): string =>
      text
        .toLowerCase()
        .split(/[\s_-]+/)
        .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
        .join('_')
    const candidates: string[] = []
    if (value !== undefined) {
      const kinds: Readonly<Record<string, string>> = {
        sc: 'Script',
        script: 'Script',
        scx: 'Script_Extensions',
        scriptextensions: 'Script_Extensions',
        gc: 'General_Category',
        generalcategory: 'General_Category',
      }
      const kind = kinds[loose(key)]
      if (kind !== undefined) candidates.push(`${kind}=${value}`, `${kind}=${titled(value)}`)
    } else {
      candidates.push(name, titled(name), `Script=${name}`, `Script=${titled(name)}`, name.toUpperCase())
      if (loose(name) === 'any') candidates.push('Any')
      if (loose(name) === 'ascii') candidates.push('ASCII')
    }
    for (const candidate of candidates) {
      try {
        // Flag `v` would also accept properties of strings, which are not classes of characters.
        new RegExp(`\\p{${candidate}}`, 'u')
        return `\\${escaped}{${candidate}}`
      } catch {
        // Not a property of this name; tries the next.
      }
    }
    throw new Error('Unicode property not found')
  }

  #class(): string {
    this.#at++
    let negated = false
    if (this.#char === '^') {
      if (!this.#flags.u) throw invalidUtf8()
      negated = true
      this.#at++
    }
    let items = ''
    let left: string | undefined
    let operator: string | undefined
    const combine = (): string => {
      const right = `[${items}]`
      if (left === undefined) return right
      if (operator === '&&') return `[${left}&&${right}]`
      if (operator === '--') return `[${left}--${right}]`
      return `[[${left}--${right}][${right}--${left}]]`
    }
    // A leading bracket or dashes are literal.
    let first = true
    for (;;) {
      const char = this.#char
      if (char === undefined) throw new Error('unclosed character class')
      if (char === ']' && !first) {
        this.#at++
        break
      }
      if (this.#flags.x && /\s/u.test(char)) {
        this.#at++
        continue
      }
      if (!first && (this.#starts('&&') || this.#starts('--') || this.#starts('~~'))) {
        // Symmetric differences repeat both sides.
        left = boundedClass(combine())
        operator = char + char
        items = ''
        this.#at += 2
        continue
      }
      first = false
      if (char === '[') {
        const name = /^\[:(\^?)([a-z]+):\]/.exec(this.#chars.slice(this.#at, this.#at + 12).join(''))
        if (name !== null) {
          const set = posix[name[2] as string]
          if (set === undefined) throw new Error('unrecognized ASCII class')
          items += `[${name[1]}${set}]`
          this.#at += name[0].length
        } else items += this.#class()
        continue
      }
      const from = this.#classItem()
      if (this.#char === '-' && this.#chars[this.#at + 1] !== ']' && !this.#starts('--')) {
        if (from.length > 1 && !/^\\(?:u\{|x|[nrtfv])/.test(from) && Array.from(from).length > 1) {
          throw new Error('invalid range in character class')
        }
        this.#at++
        items += `${from}-${this.#classItem()}`
      } else items += from
    }
    if (left === undefined) return boundedClass(`[${negated ? '^' : ''}${items}]`)
    const combined = boundedClass(combine())
    return negated ? `[^${combined}]` : combined
  }

  #classItem(): string {
    const char = this.#char
    if (char === undefined) throw new Error('unclosed character class')
    if (char === '\\') return this.#escape(true)
    this.#at++
    return literal(char)
  }
}

function flagsOf(letters: string, value: boolean): Partial<Flags> {
  const flags: Record<string, boolean> = {}
  for (const letter of letters) if (letter !== 'R') flags[letter] = value
  return flags
}
