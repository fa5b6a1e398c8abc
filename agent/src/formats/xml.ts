// Converts XML documents to values. Elements become fields, repeated ones arrays, attributes prefixed fields; an element with only
// text becomes that text. Namespace prefixes are removed. Entities declared in a document are not expanded.
// fast-xml-parser is not used: it accepts `<a>1</b>`, documents with two roots and control characters, which are not well-formed; its
// validator accepts the last two. It expands a document's entities, joins the texts around an element, and leaves `&#65;` unchanged
// unless it reads all HTML entities.

import { float, getField, setField, type Value, type ValueObject } from '../event/value.ts'
import { parseDecimal, parseInteger } from './number.ts'

export interface XmlForm {
  /** Whether to omit white space between elements. */
  readonly trim: boolean
  readonly includeAttributes: boolean
  readonly attributePrefix: string
  /** Name of the field for text beside attributes and elements. */
  readonly textKey: string
  readonly alwaysUseTextKey: boolean
  readonly parseBoolean: boolean
  readonly parseNull: boolean
  readonly parseNumber: boolean
}

const maxDepth = 128
const name = /[\p{L}_:][\p{L}\p{N}\p{M}_:.·-]*/uy
const attribute = /\s+([\p{L}_:][\p{L}\p{N}\p{M}_:.·-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/uy
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that no document may have
const noCharacter = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/

/** The value of a document; undefined if it is not well-formed. */
export function parseXml(text: string, form: XmlForm): Value | undefined {
  if (noCharacter.test(text)) return undefined
  const lines = text.replace(/\r\n?/g, '\n')
  const reader = new Reader(form.trim ? lines.replace(/>\s+</g, '><') : lines, form)
  return reader.document()
}

class Reader {
  readonly #text: string
  readonly #form: XmlForm
  #at = 0

  constructor(text: string, form: XmlForm) {
    this.#text = text
    this.#form = form
  }

  document(): Value | undefined {
    if (!this.#misc() || this.#text[this.#at] !== '<') return undefined
    const fields: ValueObject = {}
    if (!this.#element(fields, 0, new Set(['xml'])) || !this.#misc()) return undefined
    return this.#at === this.#text.length ? fields : undefined
  }

  /** Skips content that may surround the root: blanks, comments, instructions. Document types are rejected. */
  #misc(): boolean {
    for (;;) {
      while (/\s|\ufeff/.test(this.#text[this.#at] ?? '')) this.#at++
      if (this.#starts('<?')) {
        if (!this.#skipTo('?>')) return false
      } else if (this.#starts('<!--')) {
        if (!this.#skipTo('-->')) return false
      } else {
        return true
      }
    }
  }

  #starts(prefix: string): boolean {
    return this.#text.startsWith(prefix, this.#at)
  }

  #skipTo(end: string): boolean {
    const at = this.#text.indexOf(end, this.#at)
    if (at < 0) return false
    this.#at = at + end.length
    return true
  }

  /** Reads an element into a field of its parent. */
  #element(into: ValueObject, depth: number, around: ReadonlySet<string>): boolean {
    if (depth > maxDepth) return false
    name.lastIndex = this.#at + 1
    const tag = name.exec(this.#text)?.[0]
    if (tag === undefined) return false
    this.#at = name.lastIndex
    const attributes = new Map<string, string>()
    let prefixes = around
    for (;;) {
      attribute.lastIndex = this.#at
      const found = attribute.exec(this.#text)
      if (found === null) break
      this.#at = attribute.lastIndex
      const [, key, double, single] = found as unknown as [string, string, string | undefined, string | undefined]
      const value = decoded((double ?? single ?? '').replace(/[\t\n]/g, ' '))
      if (value === undefined || attributes.has(key)) return false
      if (key.startsWith('xmlns:')) prefixes = new Set([...prefixes, key.slice(6)])
      else if (key !== 'xmlns') attributes.set(key, value)
    }
    for (const qualified of [tag, ...attributes.keys()]) {
      const colon = qualified.indexOf(':')
      if (colon >= 0 && !prefixes.has(qualified.slice(0, colon))) return false
    }
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++
    const fields: ValueObject = {}
    if (this.#form.includeAttributes) {
      for (const [key, value] of attributes) setField(fields, this.#form.attributePrefix + local(key), value)
    }
    let only: string | undefined
    if (this.#starts('/>')) {
      this.#at += 2
    } else {
      if (this.#text[this.#at] !== '>') return false
      this.#at++
      const content = this.#content(tag, fields, depth, prefixes)
      if (content === undefined) return false
      only = content.only
    }
    const plain = attributes.size === 0 ? !this.#form.alwaysUseTextKey : !this.#form.includeAttributes
    add(into, local(tag), plain && only !== undefined ? this.#scalar(only) : fields)
    return true
  }

  /**
   * Reads the content of an element; `only` is its text if there is nothing else. Undefined if it is not well-formed.
   */
  #content(
    tag: string,
    fields: ValueObject,
    depth: number,
    prefixes: ReadonlySet<string>,
  ): { only: string | undefined } | undefined {
    let run = ''
    let nodes = 0
    let only: string | undefined
    const endRun = (): void => {
      if (run === '') return
      nodes++
      only = run
      add(fields, this.#form.textKey, this.#scalar(run))
      run = ''
    }
    for (;;) {
      const next = this.#text.indexOf('<', this.#at)
      if (next < 0) return undefined
      const text = decoded(this.#text.slice(this.#at, next))
      if (text === undefined) return undefined
      run += text
      this.#at = next
      if (this.#starts('<![CDATA[')) {
        const end = this.#text.indexOf(']]>', next)
        if (end < 0) return undefined
        run += this.#text.slice(next + 9, end)
        this.#at = end + 3
        continue
      }
      endRun()
      if (this.#starts('</')) {
        const end = this.#text.indexOf('>', next)
        if (end < 0 || this.#text.slice(next + 2, end).trimEnd() !== tag) return undefined
        this.#at = end + 1
        return { only: nodes === 1 ? only : undefined }
      }
      nodes++
      only = undefined
      const instruction = this.#starts('<?')
      if (instruction || this.#starts('<!--')) {
        if (!this.#skipTo(instruction ? '?>' : '-->')) return undefined
      } else if (!this.#element(fields, depth + 1, prefixes)) {
        return undefined
      }
    }
  }

  #scalar(text: string): Value {
    const form = this.#form
    if (form.parseNull && (text === 'null' || text === '')) return null
    if (form.parseBoolean && (text === 'true' || text === 'false')) return text === 'true'
    if (!form.parseNumber) return text
    const whole = parseInteger(text)
    if (whole !== undefined) return whole
    const number = parseDecimal(text)
    if (number !== undefined) return float(number)
    return /^[+-]?nan$/i.test(text) ? float(0) : text
  }
}

function add(fields: ValueObject, field: string, value: Value): void {
  const old = getField(fields, field)
  if (old === undefined) setField(fields, field, value)
  // No element value is an array by itself, so this array holds repeated elements.
  else if (Array.isArray(old)) old.push(value)
  else setField(fields, field, [old, value])
}

function local(qualified: string): string {
  return qualified.slice(qualified.indexOf(':') + 1)
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function decoded(text: string): string | undefined {
  if (!text.includes('&')) return text
  let valid = true
  const result = text.replace(/&(?:#x([0-9A-Fa-f]{1,6})|#(\d{1,7})|(\w+));|&/g, (_, hex, decimal, entity) => {
    if (entity !== undefined && Object.hasOwn(entities, entity)) return entities[entity] as string
    const code = hex !== undefined ? Number.parseInt(hex, 16) : decimal !== undefined ? Number(decimal) : -1
    if (code < 1 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      valid = false
      return ''
    }
    return String.fromCodePoint(code)
  })
  return valid ? result : undefined
}
