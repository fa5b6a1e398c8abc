// Reads JSON token by token: exactly, with the position of an error, and for texts that `JSON.parse` cannot handle.

import { float, integer, setField, type Value, type ValueObject } from '../event/value.ts'

/** Text that is not JSON. */
export class FailedJson {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

export function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

const numberToken = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings may not hold control characters
const plainText = /[^"\\\u0000-\u001f]*/y

/** Longer strings are searched by the platform. */
const shortString = 48

const ordinaryObject = (): ValueObject => ({})

export class JsonReader {
  readonly #text: string
  readonly #maxDepth: number
  readonly #textBelow: number
  readonly #emptyObject: () => ValueObject
  #at = 0
  #failure: FailedJson | undefined

  constructor(
    text: string,
    depth: number,
    textBelow = Number.POSITIVE_INFINITY,
    emptyObject: () => ValueObject = ordinaryObject,
  ) {
    this.#text = text
    this.#maxDepth = depth
    this.#textBelow = textBelow
    this.#emptyObject = emptyObject
  }

  read(): Value | FailedJson {
    if (this.#text.charCodeAt(0) === 0xfeff) this.#at = 1
    this.#blanks()
    const value = this.#value(1)
    if (this.#failure !== undefined) return this.#failure
    this.#blanks()
    return this.#at === this.#text.length ? value : this.#failed('trailing characters', this.#at + 1)
  }

  /** `read` is the number of characters up to and including the wrong one. Columns count bytes, but not a byte order mark. */
  #failed(what: string, read: number): FailedJson {
    if (this.#failure === undefined) {
      const before = this.#text.slice(this.#text.charCodeAt(0) === 0xfeff ? 1 : 0, read)
      const lines = before.split('\n')
      const column = Buffer.byteLength(lines.at(-1) ?? '')
      this.#failure = new FailedJson(`${what} at line ${lines.length} column ${column}`)
    }
    return this.#failure
  }

  /** Fails at the character `ahead` of the current one, which may be the end of the text. */
  #fail(what: string, ahead = 0): null {
    this.#failed(what, Math.min(this.#at + ahead + 1, this.#text.length))
    return null
  }

  /** Fails at the current character, or because the text ends there. */
  #failOrEnd(what: string, end: string): null {
    return this.#fail(this.#at < this.#text.length ? what : `EOF while parsing ${end}`)
  }

  #blanks(): void {
    for (;;) {
      if (!isBlank(this.#text.charCodeAt(this.#at))) return
      this.#at++
    }
  }

  #value(depth: number): Value {
    const code = this.#text.charCodeAt(this.#at)
    switch (code) {
      case 0x7b:
      case 0x5b: {
        if (depth > this.#maxDepth) return this.#fail('recursion limit exceeded')
        const start = this.#at
        const value = code === 0x7b ? this.#object(depth) : this.#array(depth)
        return depth > this.#textBelow ? this.#text.slice(start, this.#at) : value
      }
      case 0x22:
        return this.#string()
      case 0x74:
        return this.#word('true', true)
      case 0x66:
        return this.#word('false', false)
      case 0x6e:
        return this.#word('null', null)
      default:
        if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.#number()
        return this.#failOrEnd('expected value', 'a value')
    }
  }

  #word(word: string, value: Value): Value {
    for (let index = 0; index < word.length; index++, this.#at++) {
      if (this.#text[this.#at] !== word[index]) return this.#failOrEnd('expected ident', 'a value')
    }
    return value
  }

  #number(): Value {
    return this.#shortInteger() ?? this.#anyNumber()
  }

  /** A whole number of 1 to 15 digits without a sign, the most common kind; undefined for any other. */
  #shortInteger(): number | undefined {
    const text = this.#text
    const first = this.#at
    let at = first
    let value = 0
    let code = text.charCodeAt(at)
    for (; code >= 0x30 && code <= 0x39 && at - first < 16; code = text.charCodeAt(++at))
      value = value * 10 + code - 0x30
    const digits = at - first
    if (digits === 0 || digits > 15 || (digits > 1 && text.charCodeAt(first) === 0x30)) return undefined
    if (code === 0x2e || (code | 0x20) === 0x65) return undefined
    this.#at = at
    return value
  }

  #anyNumber(): Value {
    numberToken.lastIndex = this.#at
    const match = numberToken.exec(this.#text)
    this.#at = match === null ? this.#at + 1 : numberToken.lastIndex
    if (match === null || isUnfinished(match, this.#text[this.#at])) return this.#failNumber()
    const token = match[0]
    if (match[1] === undefined && match[2] === undefined && token !== '-0') {
      if (token.length < 16) return Number(token)
      const whole = BigInt(token)
      if (BigInt.asIntN(64, whole) === whole) return integer(whole)
    }
    const value = Number(token)
    return Number.isFinite(value) ? float(value) : this.#fail('number out of range', -1)
  }

  /** A number is wrong where digits are missing after a sign, a point or an exponent, and where one follows a leading zero. */
  #failNumber(): null {
    const mark = /^(?:\.|[eE][+-]?)/.exec(this.#text.slice(this.#at, this.#at + 2))
    this.#at += mark?.[0].length ?? 0
    return this.#failOrEnd('invalid number', 'a value')
  }

  #string(): string {
    return this.#shortString() ?? this.#anyString()
  }

  /** A short string without escapes, the most common kind; undefined for any other. */
  #shortString(): string | undefined {
    const text = this.#text
    const start = this.#at + 1
    for (let at = start; at < start + shortString; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x22) {
        this.#at = at + 1
        return text.slice(start, at)
      }
      if (code === 0x5c || !(code >= 0x20)) return undefined
    }
    return undefined
  }

  #anyString(): string {
    const text = this.#text
    plainText.lastIndex = this.#at + 1
    plainText.test(text)
    const end = plainText.lastIndex
    if (text.charCodeAt(end) === 0x22) {
      const plain = text.slice(this.#at + 1, end)
      this.#at = end + 1
      return plain
    }
    let out = text.slice(this.#at + 1, end)
    this.#at = end
    for (;;) {
      const code = text.charCodeAt(this.#at)
      if (code === 0x22) {
        this.#at++
        return out
      }
      if (code !== 0x5c) {
        return this.#failOrEnd('control character (\\u0000-\\u001F) found while parsing a string', 'a string') ?? ''
      }
      const escaped = this.#escaped()
      if (escaped === undefined) return ''
      out += escaped
      plainText.lastIndex = this.#at
      plainText.test(text)
      out += text.slice(this.#at, plainText.lastIndex)
      this.#at = plainText.lastIndex
    }
  }

  #escaped(): string | undefined {
    const mark = this.#text[this.#at + 1]
    const simple = mark === undefined ? undefined : escapes[mark]
    if (simple !== undefined) {
      this.#at += 2
      return simple
    }
    if (mark !== 'u') return this.#failEscape(mark === undefined ? undefined : 'invalid escape', 1)
    const unit = this.#unit()
    if (unit === undefined) return undefined
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit)
    if (unit >= 0xdc00) return this.#failEscape('lone leading surrogate in hex escape', -1)
    for (const [ahead, expected] of ['\\', 'u'].entries()) {
      const next = this.#text[this.#at + ahead]
      if (next !== expected) return this.#failEscape(next && 'unexpected end of hex escape', ahead)
    }
    const second = this.#unit()
    if (second === undefined) return undefined
    if (second < 0xdc00 || second > 0xdfff) return this.#failEscape('lone leading surrogate in hex escape', -1)
    return String.fromCharCode(unit, second)
  }

  /** Fails at the character `ahead` of the current one; `what` is undefined where the text ends. */
  #failEscape(what: string | undefined, ahead: number): undefined {
    this.#fail(what || 'EOF while parsing a string', ahead)
    return undefined
  }

  #unit(): number | undefined {
    const digits = this.#text.slice(this.#at + 2, this.#at + 6)
    if (digits.length < 4) return this.#failEscape(undefined, 5)
    if (!/^[0-9A-Fa-f]{4}$/.test(digits)) return this.#failEscape('invalid escape', 5)
    this.#at += 6
    return Number.parseInt(digits, 16)
  }

  #array(depth: number): Value {
    const items: Value[] = []
    this.#at++
    this.#blanks()
    if (this.#text.charCodeAt(this.#at) === 0x5d) {
      this.#at++
      return items
    }
    if (this.#at === this.#text.length) return this.#fail('EOF while parsing a list')
    for (;;) {
      items.push(this.#value(depth + 1))
      if (this.#failure !== undefined) return null
      this.#blanks()
      const code = this.#text.charCodeAt(this.#at)
      if (code === 0x5d) {
        this.#at++
        return items
      }
      if (code !== 0x2c) return this.#failOrEnd('expected `,` or `]`', 'a list')
      this.#at++
      this.#blanks()
      if (this.#text.charCodeAt(this.#at) === 0x5d) return this.#fail('trailing comma')
    }
  }

  #object(depth: number): Value {
    const fields = this.#emptyObject()
    this.#at++
    this.#blanks()
    if (this.#text.charCodeAt(this.#at) === 0x7d) {
      this.#at++
      return fields
    }
    let end = 'an object'
    for (;;) {
      if (this.#text.charCodeAt(this.#at) !== 0x22) return this.#failOrEnd('key must be a string', end)
      const name = this.#string()
      this.#blanks()
      if (this.#failure !== undefined) return null
      if (this.#text.charCodeAt(this.#at) !== 0x3a) return this.#failOrEnd('expected `:`', 'an object')
      this.#at++
      this.#blanks()
      const value = this.#value(depth + 1)
      if (this.#failure !== undefined) return null
      setField(fields, name, value)
      this.#blanks()
      const code = this.#text.charCodeAt(this.#at)
      if (code === 0x7d) {
        this.#at++
        return fields
      }
      if (code !== 0x2c) return this.#failOrEnd('expected `,` or `}`', 'an object')
      this.#at++
      this.#blanks()
      if (this.#text.charCodeAt(this.#at) === 0x7d) return this.#fail('trailing comma')
      end = 'a value'
    }
  }
}

/** True if the character after the number belongs to it, but what follows does not: `1.`, `1.5e`, `01`. */
function isUnfinished([, fraction, exponent]: RegExpExecArray, next: string | undefined): boolean {
  if (next === undefined || exponent !== undefined) return false
  return next === 'e' || next === 'E' || (fraction === undefined && (next === '.' || (next >= '0' && next <= '9')))
}

const escapes: Readonly<Record<string, string>> = {
  __proto__: null as never,
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
