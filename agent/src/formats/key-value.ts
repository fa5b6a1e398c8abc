// Delimited key-value text (`a=1 b="two words"`); logfmt is one variant. Reading does not convert values: every value is text, a
// key without a value is true, and a repeated key gives an array of its values.

import { Timestamp } from '../event/timestamp.ts'
import {
  Bytes,
  compareKeys,
  Float,
  getField,
  isObject,
  Regex,
  setField,
  sortedFieldNames,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { floatText } from './json.ts'
import { trimmed } from './white-space.ts'

export interface KeyValueForm {
  /** Delimiter between key and value. */
  readonly keyValueDelimiter: string
  /** Delimiter between fields. */
  readonly fieldDelimiter: string
}

export interface KeyValueReading extends KeyValueForm {
  /** Whether blanks may surround the delimiter of key and value. */
  readonly lenient: boolean
  readonly standaloneKeys: boolean
}

export interface KeyValueWriting extends KeyValueForm {
  /** Fields written first, in this order. */
  readonly first: readonly string[]
  /** Whether true is written as the key alone, and false is omitted. */
  readonly flattenBoolean: boolean
}

/** The fields of a text; undefined if it has another format. */
export function parseKeyValue(text: string, form: KeyValueReading): ValueObject | undefined {
  const reader = { text, form, fields: {}, delimiter: -1 }
  let at = parseField(reader, 0)
  if (at < 0) return undefined
  for (;;) {
    const next = skipDelimiter(text, at, form.fieldDelimiter)
    if (next < 0) break
    const end = parseField(reader, next)
    if (end < 0) break
    at = end
  }
  return trimmed(text.slice(at)) === '' ? reader.fields : undefined
}

interface Reader {
  readonly text: string
  readonly form: KeyValueReading
  readonly fields: ValueObject
  /** Position of the next delimiter of key and value, found once; the end of the text if there is none. */
  delimiter: number
}

function nextDelimiter(reader: Reader, from: number): number {
  if (reader.delimiter < from) {
    const found = reader.text.indexOf(reader.form.keyValueDelimiter, from)
    reader.delimiter = found < 0 ? Number.POSITIVE_INFINITY : found
  }
  return reader.delimiter
}

/** Position after blanks and tabs. */
function skipBlanks(text: string, from: number): number {
  let at = from
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code !== 32 && code !== 9) break
    at++
  }
  return at
}

/** Position after the delimiter between fields, or -1. */
function skipDelimiter(text: string, from: number, delimiter: string): number {
  let at = from
  while (text.charCodeAt(at) === 32) at++
  if (delimiter === ' ') return at > from ? at : -1
  return text.startsWith(delimiter, at) ? at + delimiter.length : -1
}

function parseField(reader: Reader, from: number): number {
  const { text, form, fields } = reader
  const start = skipBlanks(text, from)
  let key: string
  let at: number
  const quoted = parseQuoted(text, start, form.keyValueDelimiter, form.standaloneKeys ? form.fieldDelimiter : undefined)
  if (quoted !== undefined) {
    key = quoted.text
    at = quoted.end
  } else {
    const delimiter = nextDelimiter(reader, start)
    const found = text.indexOf(form.fieldDelimiter, start)
    const end = found < 0 ? text.length : found
    // Blanks may separate a key and its delimiter; otherwise the field ends at the first of the two delimiters.
    const belongs = !form.standaloneKeys || end >= delimiter || trimmed(text.slice(end, delimiter)) === ''
    if (belongs && delimiter > start && delimiter < text.length) {
      key = trimmed(text.slice(start, delimiter))
      at = delimiter
    } else {
      if (!form.standaloneKeys) return -1
      at = end
      key = trimmed(text.slice(start, at))
    }
  }
  if (key === '') return -1
  let separator = form.lenient ? skipBlanks(text, at) : at
  if (!text.startsWith(form.keyValueDelimiter, separator)) {
    if (!form.standaloneKeys) return -1
    add(fields, key, true)
    return at
  }
  separator += form.keyValueDelimiter.length
  if (form.lenient) separator = skipBlanks(text, separator)
  const value = parseQuoted(text, separator, form.fieldDelimiter, undefined)
  if (value !== undefined) {
    add(fields, key, value.text)
    return value.end
  }
  const end = text.indexOf(form.fieldDelimiter, separator)
  add(fields, key, trimmed(text.slice(separator, end < 0 ? text.length : end)))
  return end < 0 ? text.length : end
}

function add(fields: ValueObject, key: string, value: string | true): void {
  const old = getField(fields, key)
  if (old === undefined || old === true) setField(fields, key, value)
  else if (value === true) return
  else if (Array.isArray(old)) old.push(value)
  else setField(fields, key, [old, value])
}

/** A quoted word, if one of the delimiters or the end of the text follows it. */
function parseQuoted(
  text: string,
  from: number,
  delimiter: string,
  other: string | undefined,
): { text: string; end: number } | undefined {
  const quote = text[from]
  if (quote !== '"' && quote !== "'") return undefined
  let end = from + 1
  let escaped = false
  while (end < text.length && text[end] !== quote) {
    if (text[end] === '\\') {
      escaped = true
      end++
    }
    end++
  }
  if (end >= text.length) return undefined
  const inner = text.slice(from + 1, end)
  end++
  const after = skipBlanks(text, end)
  const ends =
    after === text.length ||
    skipDelimiter(text, end, delimiter) >= 0 ||
    (other !== undefined && skipDelimiter(text, end, other) >= 0)
  if (!ends) return undefined
  return { text: escaped ? inner.replace(/\\(n|\\|")/g, unescaped) : inner, end }
}

function unescaped(_: string, character: string): string {
  return character === 'n' ? '\n' : character
}

/** The fields as key-value text, with nested fields flattened (`a.b`, `a.0`), sorted by key. */
export function writeKeyValue(fields: ValueObject, form: KeyValueWriting): string {
  const flat = new Map<string, Value>()
  for (const name of sortedFieldNames(fields)) flatten(fields[name] as Value, name, flat)
  const keys = [...flat.keys()].sort(compareKeys)
  const ordered = form.first.length === 0 ? keys : [...new Set(form.first.filter((key) => flat.has(key)).concat(keys))]
  let text = ''
  let isFirst = true
  for (const key of ordered) {
    const value = flat.get(key) as Value
    if (form.flattenBoolean && value === false) continue
    if (!isFirst) text += form.fieldDelimiter
    isFirst = false
    text += quotedWhereNeeded(key)
    if (!(form.flattenBoolean && value === true)) text += form.keyValueDelimiter + quotedWhereNeeded(plainText(value))
  }
  return text
}

function flatten(value: Value, path: string, into: Map<string, Value>): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      flatten(value[index] as Value, `${path}.${index}`, into)
    }
  } else if (isObject(value)) {
    for (const name of sortedFieldNames(value)) flatten(value[name] as Value, `${path}.${name}`, into)
  } else {
    into.set(path, value)
  }
}

function quotedWhereNeeded(text: string): string {
  if (!/[\p{White_Space}"=\\]/u.test(text)) return text
  const escaped = text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\\\n')
  return /[\p{White_Space}"=]/u.test(text) ? `"${escaped}"` : escaped
}

/** The text of a scalar value, as text codecs write it. */
export function plainText(value: Value): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
      return floatText(value)
    case 'bigint':
    case 'boolean':
      return String(value)
  }
  if (value === null) return 'null'
  if (value instanceof Float) return floatText(value.value)
  if (value instanceof Timestamp || value instanceof Bytes) return value.toString()
  return value instanceof Regex ? value.source : ''
}
