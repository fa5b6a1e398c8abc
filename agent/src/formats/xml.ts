// XML documents to values. Elements become fields, repeated ones arrays, attributes fields with a prefix; an element that holds
// nothing but text becomes that text. Prefixes of namespaces are left out. No entities of a document's own are expanded.

import { float, getField, integer, setField, type Value, type ValueObject } from '../event/value.ts'

export interface XmlForm {
  /** Leave out white space between elements. */
  readonly trim: boolean
  readonly includeAttributes: boolean
  readonly attributePrefix: string
  /** Name of the text beside attributes and elements. */
  readonly textKey: string
  readonly alwaysUseTextKey: boolean
  readonly parseBoolean: boolean
  readonly parseNull: boolean
  readonly parseNumber: boolean
}

const maxDepth = 128
const name = /[^\s<>/=!?"'&]+/y
const attribute = /\s+([^\s<>/=!?"'&]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y

/** The value of a document; undefined if it is not well-formed. */
export function parseXml(text: string, form: XmlForm): Value | undefined {
  const reader = new Reader(text, form)
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
    if (!this.#element(fields, 0) || !this.#misc()) return undefined
    return this.#at === this.#text.length ? fields : undefined
  }

  /** Skips what may stand around the root: blanks, comments, instructions, the document type. */
  #misc(): boolean {
    for (;;) {
      while (/\s|\ufeff/.test(this.#text[this.#at] ?? '')) this.#at++
      if (this.#starts('<?')) {
        if (!this.#skipTo('?>')) return false
      } else if (this.#starts('<!--')) {
        if (!this.#skipTo('-->')) return false
      } else if (this.#starts('<!DOCTYPE')) {
        const subset = this.#text.indexOf('[', this.#at)
        const end = this.#text.indexOf('>', this.#at)
        if (subset >= 0 && subset < end && !this.#skipTo(']')) return false
        if (!this.#skipTo('>')) return false
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

  /** Reads an element into a field of what is around it. */
  #element(into: ValueObject, depth: number): boolean {
    if (depth > maxDepth) return false
    name.lastIndex = this.#at + 1
    const tag = name.exec(this.#text)?.[0]
    if (tag === undefined) return false
    this.#at = name.lastIndex
    const fields: ValueObject = {}
    const seen = new Set<string>()
    for (;;) {
      attribute.lastIndex = this.#at
      const found = attribute.exec(this.#text)
      if (found === null) break
      this.#at = attribute.lastIndex
      const value = decoded(found[2] ?? found[3] ?? '')
      if (value === undefined || seen.has(found[1] as string)) return false
      seen.add(found[1] as string)
      if (this.#form.includeAttributes && !/^xmlns(:|$)/.test(found[1] as string)) {
        setField(fields, this.#form.attributePrefix + local(found[1] as string), value)
      }
    }
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++
    const texts: string[] = []
    if (this.#starts('/>')) {
      this.#at += 2
    } else {
      if (this.#text[this.#at] !== '>') return false
      this.#at++
      if (!this.#content(tag, fields, texts, depth)) return false
    }
    add(into, local(tag), this.#valueOf(fields, texts))
    return true
  }

  #content(tag: string, fields: ValueObject, texts: string[], depth: number): boolean {
    let run = ''
    const endRun = (): void => {
      if (run !== '' && !(this.#form.trim && /^\s*$/.test(run))) texts.push(run)
      run = ''
    }
    for (;;) {
      const next = this.#text.indexOf('<', this.#at)
      if (next < 0) return false
      const text = decoded(this.#text.slice(this.#at, next))
      if (text === undefined) return false
      run += text
      this.#at = next
      if (this.#starts('<![CDATA[')) {
        const end = this.#text.indexOf(']]>', next)
        if (end < 0) return false
        run += this.#text.slice(next + 9, end)
        this.#at = end + 3
      } else if (this.#starts('<!--')) {
        if (!this.#skipTo('-->')) return false
      } else if (this.#starts('<?')) {
        if (!this.#skipTo('?>')) return false
      } else if (this.#starts('</')) {
        endRun()
        const end = this.#text.indexOf('>', next)
        if (end < 0 || this.#text.slice(next + 2, end).trimEnd() !== tag) return false
        this.#at = end + 1
        return true
      } else {
        endRun()
        if (!this.#element(fields, depth + 1)) return false
      }
    }
  }

  #valueOf(fields: ValueObject, texts: readonly string[]): Value {
    const empty = Object.keys(fields).length === 0
    if (texts.length === 0) return fields
    if (empty && texts.length === 1 && !this.#form.alwaysUseTextKey) return this.#scalar(texts[0] as string)
    for (const text of texts) add(fields, this.#form.textKey, this.#scalar(text))
    return fields
  }

  #scalar(text: string): Value {
    const form = this.#form
    if (form.parseBoolean && (text === 'true' || text === 'false')) return text === 'true'
    if (form.parseNull && (text === 'null' || text === '')) return null
    if (form.parseNumber) {
      if (/^[+-]?\d+$/.test(text)) {
        const value = BigInt(text.replace('+', ''))
        if (BigInt.asIntN(64, value) === value) return integer(value)
      }
      if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return float(Number(text))
    }
    return text
  }
}

function add(fields: ValueObject, field: string, value: Value): void {
  const old = getField(fields, field)
  if (old === undefined) setField(fields, field, value)
  // No value of an element is an array of itself: this one was made of its siblings.
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
