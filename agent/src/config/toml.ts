// Parses TOML into plain values, with the place of every key. The library returns no positions, so a second pass over the valid text
// finds where each key and value begins.

import { parse, TomlDate, TomlError } from 'smol-toml'
import type { ParseResult, Segments, ValueSpan } from './syntax.ts'

export function parseToml(text: string): ParseResult {
  let value: unknown
  try {
    value = plain(parse(text, { integersAsBigInt: 'asNeeded' }))
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const message = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '')
    return {
      ok: false,
      problems: [{ offset: offsetAt(text, error.line, error.column), message: `not valid TOML: ${message}` }],
    }
  }
  let places: Place | undefined
  return {
    ok: true,
    document: {
      value: isEmpty(value) ? undefined : value,
      locate(path) {
        places ??= new PlaceFinder(text).run()
        return locate(places, path)
      },
    },
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** Converts values to plain objects and numbers, as the other formats have them, and dates to text. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (value instanceof TomlDate) return value.toISOString()
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]))
}

function offsetAt(text: string, line: number, column: number): number {
  let offset = 0
  for (let current = 1; current < line; current++) {
    const end = text.indexOf('\n', offset)
    if (end < 0) break
    offset = end + 1
  }
  return Math.min(offset + column - 1, text.length)
}

interface Place {
  key: number
  value: number
  block?: ValueSpan['block']
  readonly members: Map<string, Place>
  /** Number of items in a list of tables. */
  items: number
}

function locate(root: Place, path: Segments): ValueSpan {
  let place = root
  for (const segment of path) {
    const next = place.members.get(String(segment))
    if (next === undefined) break
    place = next
  }
  return { key: place.key, value: place.value, block: place.block }
}

/** Walks through a valid document and records the offset of each key and value. */
class PlaceFinder {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  run(): Place {
    const root = newPlace(0)
    let table = root
    for (;;) {
      this.#skipBlank()
      const char = this.#text[this.#at]
      if (char === undefined) return root
      if (char !== '[') {
        this.#pair(table)
        continue
      }
      const start = this.#at
      const listed = this.#text[this.#at + 1] === '['
      this.#at += listed ? 2 : 1
      const keys = this.#keys()
      this.#at += listed ? 2 : 1
      table = keys.reduce((parent, key, index) => {
        const child = descend(parent, key.name, start)
        if (listed && index === keys.length - 1) return descend(child, String(child.items++), start)
        return child.items > 0 ? (child.members.get(String(child.items - 1)) as Place) : child
      }, root)
    }
  }

  /** Reads `key = value`, and records the place of each part of a dotted key. */
  #pair(table: Place): void {
    let place = table
    for (const key of this.#keys()) place = descend(place, key.name, key.offset)
    this.#at++ // =
    this.#skipSpace()
    place.value = this.#at
    this.#value(place)
  }

  #value(place: Place): void {
    const text = this.#text
    const char = text[this.#at]
    if (char === '[') {
      this.#at++
      for (let index = 0; ; index++) {
        this.#skipBlank()
        if (text[this.#at] === ']') break
        this.#value(descend(place, String(index), this.#at))
        this.#skipBlank()
        if (text[this.#at] === ',') this.#at++
      }
      this.#at++
    } else if (char === '{') {
      this.#at++
      for (;;) {
        this.#skipBlank()
        if (text[this.#at] === '}') break
        this.#pair(place)
        this.#skipBlank()
        if (text[this.#at] === ',') this.#at++
      }
      this.#at++
    } else if (char === '"' || char === "'") {
      const start = this.#at
      this.#string()
      if (text.startsWith(char.repeat(3), start)) {
        const head = /^\r?\n/.exec(text.slice(start + 3, start + 5))
        if (head !== null) place.block = { offset: start + 3 + head[0].length, indent: 0 }
      }
    } else {
      this.#skip(/[^,\]}#\r\n]*/y)
    }
  }

  #keys(): { name: string; offset: number }[] {
    const keys: { name: string; offset: number }[] = []
    for (;;) {
      this.#skipSpace()
      const offset = this.#at
      const char = this.#text[offset]
      if (char === '"' || char === "'") {
        this.#string()
        const written = this.#text.slice(offset, this.#at)
        keys.push({ name: String((parse(`key = ${written}`) as { key: unknown }).key), offset })
      } else {
        this.#skip(/[A-Za-z0-9_-]+/y)
        keys.push({ name: this.#text.slice(offset, this.#at), offset })
      }
      this.#skipSpace()
      if (this.#text[this.#at] !== '.') return keys
      this.#at++
    }
  }

  #string(): void {
    const quote = this.#text[this.#at] as string
    if (this.#text.startsWith(quote.repeat(3), this.#at)) {
      this.#skip(quote === '"' ? /"""(?:[^"\\]+|\\[\s\S]|"{1,2}(?!"))*"{3,5}/y : /'''(?:[^']+|'{1,2}(?!'))*'{3,5}/y)
    } else {
      this.#skip(quote === '"' ? /"(?:[^"\\]+|\\.)*"/y : /'[^']*'/y)
    }
  }

  #skipSpace(): void {
    this.#skip(/[ \t]*/y)
  }

  /** Skips blanks, line breaks and comments. */
  #skipBlank(): void {
    this.#skip(/(?:[ \t\r\n]+|#[^\n]*)*/y)
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    // The text is valid. If a pattern still does not match, advance by one character, so that the pass ends.
    this.#at = match === null ? this.#at + 1 : pattern.lastIndex
  }
}

function newPlace(offset: number): Place {
  return { key: offset, value: offset, members: new Map(), items: 0 }
}

function descend(parent: Place, name: string, offset: number): Place {
  let child = parent.members.get(name)
  if (child === undefined) {
    child = newPlace(offset)
    parent.members.set(name, child)
  }
  return child
}
