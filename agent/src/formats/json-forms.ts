// Reads JSON texts of known forms. Logs have few forms: the same keys in the same order, with values of the same kinds. For
// such a form, one regular expression checks the whole text and captures the values, and a generated function creates the
// object. That costs half of reading the text token by token, and numbers stay exact. The general reader, which defines the
// result, reads all other texts (escapes, other keys, unusual numbers, other blanks).

import { integer, type Value, type ValueObject } from '../event/value.ts'
import { parseJson, parseJsonToDictionaries } from './json.ts'
import { FailedJson } from './json-reader.ts'
import { KeyWatch } from './key-watch.ts'

/** Returns the object if the text has this form. */
type Form = (text: string) => ValueObject | undefined

/** Longer texts, texts with more values and deeper texts have no form. */
const maxText = 8192
const maxValues = 64
const maxDepth = 8
/** Number of forms that one reader keeps. */
const maxForms = 6

// Each matches in linear time: no repetition can match the following character.
const plain = '[^"\\\\\\x00-\\x1f]*'
const patterns = {
  string: `"(${plain})"`,
  /** Up to 15 digits, which fit in a double, without marks of a float. */
  integer: '(-?[1-9]\\d{0,14}|0)',
  /** Up to 19 digits that fit 64 bits. */
  wide: '(-?(?:[1-9]\\d{15,17}|[1-8]\\d{18}))',
  fraction: '(-?(?:0|[1-9]\\d{0,14})\\.\\d{1,17})',
  boolean: '(true|false)',
  strings: `(\\["${plain}"(?:, ?"${plain}")*\\])`,
} as const
type ValueKind = keyof typeof patterns

/** The value of capture `n`; a preceding statement may return undefined. */
const conversions: Readonly<Record<ValueKind, (n: number) => string>> = {
  string: (n) => `m[${n}]`,
  integer: (n) => `+m[${n}]`,
  wide: (n) => `integer(BigInt(m[${n}]))`,
  fraction: (n) => `f${n}`,
  boolean: (n) => `m[${n}] === 'true'`,
  strings: (n) => `JSON.parse(m[${n}])`,
}

/** Reads JSON texts from one source, which therefore have few forms. */
export class JsonFormReader {
  /** Most recently used first. */
  readonly #forms: Form[] = []
  /** Patterns of forms seen once: a form that does not recur is not worth generating code for. */
  #seen = new Set<string>()
  #made = 0
  #looks = 0
  #untilLook = 1
  #hits = 0
  #misses = 0
  /** Number of texts to skip, because too few of the previous ones had a form. */
  #rest = 0
  readonly #keys = new KeyWatch()

  /** Like `parseJson`. */
  read(text: string): Value | FailedJson {
    if (this.#rest > 0) {
      this.#rest--
      return this.#parse(text)
    }
    const forms = this.#forms
    for (let index = 0; index < forms.length; index++) {
      const form = forms[index] as Form
      const value = form(text)
      if (value === undefined) continue
      if (index > 0) {
        forms[index] = forms[0] as Form
        forms[0] = form
      }
      this.#hits++
      return value
    }
    return this.#missed(text)
  }

  #missed(text: string): Value | FailedJson {
    if (++this.#misses === 512) {
      if (this.#hits < 512) this.#rest = 16_384
      this.#hits = 0
      this.#misses = 0
    }
    if (--this.#untilLook <= 0) this.#look(text)
    return this.#parse(text)
  }

  #parse(text: string): Value | FailedJson {
    const value = this.#keys.areData ? parseJsonToDictionaries(text) : parseJson(text)
    if (!(value instanceof FailedJson)) this.#keys.look(value)
    return value
  }

  /** Checks whether the text has a form worth keeping; less and less often, because that costs more than reading. */
  #look(text: string): void {
    this.#untilLook = ++this.#looks <= 32 ? 1 : 61 << Math.min(this.#made >> 2, 10)
    const described = describe(text)
    if (described === undefined) return
    if (!this.#seen.has(described.pattern)) {
      if (this.#seen.size >= 32) this.#seen = new Set()
      this.#seen.add(described.pattern)
      return
    }
    this.#seen.delete(described.pattern)
    this.#made++
    if (this.#forms.length === maxForms) this.#forms.pop()
    this.#forms.unshift(compile(described))
  }
}

interface Description {
  readonly pattern: string
  /** Kinds of the captures. */
  readonly kinds: readonly ValueKind[]
  /** The object as source code. */
  readonly object: string
}

/** The form of a text; undefined if it is not an object, or contains something that forms do not support. */
export function describe(text: string): Description | undefined {
  if (text.length > maxText || text.charCodeAt(0) !== 0x7b || text.includes('\\')) return undefined
  const description = new Describer(text)
  const object = description.object(1)
  if (object === undefined || description.at !== text.length) return undefined
  return { pattern: `^${description.pattern}$`, kinds: description.kinds, object }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings may not hold control characters
const token = /[{}[\]:,]|"[^"\\\x00-\x1f]*"|-?\d+(?:\.\d+)?(?![\d.eE+-])|true|false|null/y
const plainStrings = new RegExp(patterns.strings, 'y')
const whole = (kind: ValueKind) => new RegExp(`^${patterns[kind]}$`)
const numbers = (['integer', 'wide', 'fraction'] as const).map((kind) => [kind, whole(kind)] as const)

class Describer {
  readonly #text: string
  at = 0
  pattern = ''
  readonly kinds: ValueKind[] = []

  constructor(text: string) {
    this.#text = text
  }

  /** The next token; preceding blanks become part of the pattern. */
  #token(): string | undefined {
    const start = this.at
    while (this.#text.charCodeAt(this.at) === 0x20) this.at++
    this.pattern += ' '.repeat(this.at - start)
    token.lastIndex = this.at
    return token.exec(this.#text)?.[0]
  }

  #literal(text: string): void {
    this.pattern += RegExp.escape(text)
    this.at += text.length
  }

  object(depth: number): string | undefined {
    if (depth > maxDepth || this.#token() !== '{') return undefined
    this.#literal('{')
    const members: string[] = []
    const names = new Set<string>()
    let next = this.#token()
    if (next !== '}') {
      for (;;) {
        if (next?.charCodeAt(0) !== 0x22) return undefined
        const name = next.slice(1, -1)
        // The second of two equal keys would win, and keys like indexes would be reordered. `__proto__` has a special meaning.
        if (names.has(name) || name === '__proto__' || /^\d+$/.test(name)) return undefined
        names.add(name)
        this.#literal(next)
        if (this.#token() !== ':') return undefined
        this.#literal(':')
        const value = this.#value(depth)
        if (value === undefined) return undefined
        members.push(`${JSON.stringify(name)}: ${value}`)
        next = this.#token()
        if (next === '}') break
        if (next !== ',') return undefined
        this.#literal(',')
        next = this.#token()
      }
    }
    this.#literal('}')
    return `{ ${members.join(', ')} }`
  }

  #value(depth: number): string | undefined {
    const value = this.#token()
    switch (value) {
      case undefined:
        return undefined
      case '{':
        return this.object(depth + 1)
      case 'null':
        this.#literal(value)
        return value
      case 'true':
      case 'false':
        return this.#capture('boolean', value)
      case '[': {
        if (this.#text.startsWith('[]', this.at)) {
          this.#literal('[]')
          return '[]'
        }
        plainStrings.lastIndex = this.at
        const strings = plainStrings.exec(this.#text)?.[0]
        return strings === undefined ? undefined : this.#capture('strings', strings)
      }
    }
    if (value.startsWith('"')) return this.#capture('string', value)
    const kind = numbers.find(([, pattern]) => pattern.test(value))?.[0]
    return kind === undefined ? undefined : this.#capture(kind, value)
  }

  #capture(kind: ValueKind, text: string): string | undefined {
    if (this.kinds.length === maxValues) return undefined
    this.pattern += patterns[kind]
    this.at += text.length
    this.kinds.push(kind)
    return conversions[kind](this.kinds.length)
  }
}

function compile({ pattern, kinds, object }: Description): Form {
  // A fraction may be integral, like 1.0, or round to an integer: such a float needs another representation.
  const fractions = kinds.flatMap((kind, index) =>
    kind === 'fraction' ? [`const f${index + 1} = +m[${index + 1}]; if (Number.isInteger(f${index + 1})) return;`] : [],
  )
  const code = [
    '"use strict";',
    'return function read(text) {',
    'const m = pattern.exec(text);',
    'if (m === null) return;',
    ...fractions,
    `return ${object};`,
    '}',
  ].join('\n')
  return new Function('pattern', 'integer', code)(new RegExp(pattern), integer) as Form
}
