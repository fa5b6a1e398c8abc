// Parses a Fluentd configuration to a tree of elements with line numbers. Values in double quotes may span lines and contain Ruby.
// References to environment variables become `${NAME}`; other Ruby is kept and reported.

import type { Component, Selector, Step } from '../draft.ts'
import type { Place } from '../fluent-bit/sections.ts'
import { hostVariable } from '../fluent-bit/text.ts'

export interface Parameter extends Place {
  readonly key: string
  readonly value: string
}

export interface Element extends Place {
  /** `source`, `match`, `parse`, … */
  readonly name: string
  /** The text after the name: a tag pattern or chunk keys. */
  readonly argument: string
  readonly parameters: readonly Parameter[]
  readonly children: readonly Element[]
  /** For a source generated from a resource: the pods it reads, and transforms before and after the one that builds the record. */
  readonly selector?: Selector | undefined
  /** For a source generated from a resource without a plugin of Fluentd: its counterpart. */
  readonly component?: Component
  readonly before?: readonly Step[]
  readonly after?: readonly Step[]
}

export interface Include extends Place {
  readonly path: string
}

/** A reader's report about a place. */
export interface Remark extends Place {
  readonly subject: string
  readonly reason: string
  readonly nearest: string
  /** Whether the text cannot be parsed. */
  readonly isUnreadable?: true
}

export interface ElementFile {
  readonly parts: readonly (Element | Include)[]
  readonly remarks: readonly Remark[]
}

interface Open {
  name: string
  argument: string
  line: number
  parameters: Parameter[]
  children: Element[]
}

/** The name of an element for an `@include` within an element; its argument is the path. */
export const innerInclude = '@include'

/** Parses a text; unknown parts become remarks. */
export function readFluentd(text: string, file: string): ElementFile {
  const reader = new Reader(text, file)
  reader.read()
  return reader
}

/** Parses the content of an element: returns an element with these parameters and inner elements. */
export function readInner(text: string, file: string): { readonly element: Element } & Pick<ElementFile, 'remarks'> {
  const reader = new Reader(text, file)
  return { element: reader.readWithin(), remarks: reader.remarks }
}

class Reader implements ElementFile {
  readonly parts: (Element | Include)[] = []
  readonly remarks: Remark[] = []
  readonly #lines: readonly string[]
  readonly #file: string
  readonly #open: Open[] = []
  #at = 0

  constructor(text: string, file: string) {
    this.#lines = text.split(/\r?\n/)
    this.#file = file
  }

  readWithin(): Element {
    const open: Open = { name: innerInclude, argument: '', line: 1, parameters: [], children: [] }
    this.#open.push(open)
    this.read()
    return { file: this.#file, ...open }
  }

  read(): void {
    const around = this.#open.length
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = (this.#lines[this.#at] as string).trim()
      if (line === '' || line.startsWith('#')) continue
      const opening = /^<([A-Za-z_]\w*)(?:\s+(.*?))?>\s*(?:#.*)?$/.exec(line)
      const closing = /^<\/([A-Za-z_]\w*)>\s*(?:#.*)?$/.exec(line)
      const include = /^@?include\s+(\S.*)$/.exec(line)
      if (opening?.[1] !== undefined) this.#begin(opening[1], opening[2] ?? '')
      else if (closing?.[1] !== undefined) this.#end(closing[1])
      else if (include?.[1] !== undefined) {
        const path = this.#ruby(include[1].replace(/^["'](.*)["']$/, '$1'))
        const parent = this.#open.at(-1)
        if (parent === undefined) this.parts.push({ ...this.#place(), path })
        else
          parent.children.push({ ...this.#place(), name: innerInclude, argument: path, parameters: [], children: [] })
      } else this.#parameter(line)
    }
    while (this.#open.length > around) {
      const { name, line } = this.#open.at(-1) as Open
      this.remarks.push({
        file: this.#file,
        line,
        subject: `<${name}>`,
        reason: `\`</${name}>\` is missing`,
        nearest: 'Add the closing tag.',
        isUnreadable: true,
      })
      this.#end(name)
    }
  }

  #place(): Place {
    return { file: this.#file, line: this.#at + 1 }
  }

  #remark(subject: string, reason: string, nearest: string, isReplaced?: true): void {
    this.remarks.push({ ...this.#place(), subject, reason, nearest, ...(isReplaced && { isReplaced }) })
  }

  #unreadable(place: Place, subject: string, reason: string): void {
    this.remarks.push({ ...place, subject, reason, nearest: 'Correct the file.', isUnreadable: true })
  }

  #begin(name: string, argument: string): void {
    const plain = argument.replace(/^"(.*)"$/s, '$1')
    this.#open.push({ name, argument: this.#ruby(plain), line: this.#at + 1, parameters: [], children: [] })
  }

  #end(name: string): void {
    const open = this.#open.pop()
    if (open === undefined || open.name !== name) {
      if (open !== undefined) this.#open.push(open)
      this.#unreadable(this.#place(), `</${name}>`, 'there is no open element with this name')
      return
    }
    const element: Element = { file: this.#file, ...open }
    const parent = this.#open.at(-1)
    if (parent === undefined) this.parts.push(element)
    else parent.children.push(element)
  }

  #parameter(line: string): void {
    const place = this.#place()
    const found = /^("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S+)(?:\s+(.*))?$/s.exec(line)
    const key = (found?.[1] ?? '').replace(/^(["'])(.*)\1$/s, '$2')
    const open = this.#open.at(-1)
    if (open === undefined) {
      this.#unreadable(place, line, 'a parameter is outside of all elements')
      return
    }
    const value = this.#value((found?.[2] ?? '').trim(), key)
    // If the variable is not set, Fluentd ignores the parameter.
    if (value !== notGiven) open.parameters.push({ ...place, key, value: value.replaceAll(notGiven, '') })
  }

  /** A value with all of its lines. */
  #value(start: string, key: string): string {
    const first = start[0]
    if (first === '"' || first === "'") return this.#quoted(start, first, key)
    if (first === '[' || first === '{') return this.#ruby(this.#balanced(start), key)
    const plain = start.replace(/\s+#(?!\{).*$/, '')
    // Without quotes, Ruby within a placeholder belongs to the placeholder.
    return this.#open.at(-1)?.name === 'record' && plain.includes('${') ? plain : this.#ruby(plain, key)
  }

  #quoted(start: string, quote: string, key: string): string {
    let text = start
    const place = this.#place()
    while (closingQuote(text, quote) < 0 && this.#at + 1 < this.#lines.length) {
      text += `\n${this.#lines[++this.#at] as string}`
    }
    const end = closingQuote(text, quote)
    if (end < 0) this.#unreadable(place, key, `the text that begins with ${quote} has no closing quote`)
    const inner = text.slice(1, end < 0 ? undefined : end)
    if (quote === "'") return inner.replace(/\\(['\\])/g, '$1')
    return this.#ruby(unescaped(inner), key)
  }

  /** JSON, which may span several lines. */
  #balanced(start: string): string {
    let text = start
    const last = Math.min(this.#lines.length, this.#at + 200)
    let at = this.#at
    while (!isJson(text) && at + 1 < last && !/^\s*<\/?\w/.test(this.#lines[at + 1] as string)) {
      text += `\n${this.#lines[++at] as string}`
    }
    if (!isJson(text)) return start
    this.#at = at
    return text
  }

  /** References to variables as `${NAME}`. */
  #ruby(text: string, key = ''): string {
    const remark: RubyRemark = (...parts) => this.#remark(...parts)
    return evaluated(text, key, this.#open.at(-1), remark)
  }
}

type RubyRemark = (subject: string, reason: string, nearest: string, isReplaced?: true) => void

/** Options whose default is the name of the host. */
function isHostOption(key: string, { name, parameters }: Pick<Element, 'name' | 'parameters'>): boolean {
  const type = parameters.find((each) => /^@?type$/.test(each.key))?.value ?? ''
  return (
    (name === 'inject' && key === 'hostname') || key === 'dd_hostname' || (key === 'host' && type.startsWith('splunk'))
  )
}

/**
 * A value with references to variables as `${NAME}`.
 * @param within the element with the parameter
 */
export function evaluated(
  text: string,
  key: string,
  within: Pick<Element, 'name' | 'parameters'> | undefined,
  remark: RubyRemark,
): string {
  return text.replace(/#\{((?:[^{}]|\{[^{}]*\})*)\}/g, (whole, code: string) => {
    const variable =
      /^\s*ENV(?:\[\s*['"](\w+)['"]\s*\]|\.fetch\(\s*['"](\w+)['"]\s*(?:,\s*['"]?([^'")]*)['"]?\s*)?\))(.*)$/s.exec(
        code,
      )
    const name = variable?.[1] ?? variable?.[2]
    const fallback = /^\s*\|\|\s*['"]?([^'"]*?)['"]?\s*$/s.exec(variable?.[4] ?? '')?.[1] ?? variable?.[3]
    if (name === undefined && isOfItself.test(key)) return ''
    const isHost = /^\s*(?:Socket\.gethostname|hostname|`hostname`\.(?:chomp|strip))\s*$/.test(code)
    // A field of a record is worked out for each event.
    if (isHost && within?.name === 'record') return `\${hostname}`
    if (isHost && key === 'extra_labels') return hostVariable
    // The name of the host is the default of these options.
    if (isHost && within !== undefined && isHostOption(key, within)) return notGiven
    if (/^\s*worker_id\s*$/.test(code)) return '0'
    if (name === undefined) {
      remark(
        whole,
        '`convert` does not run Ruby in values',
        'Replace it with its value, or set the field in a remap transform.',
      )
      return whole
    }
    if (fallback === 'use_default' || fallback === 'use_nil') return isSecret.test(key) ? `\${${name}}` : notGiven
    if (fallback === undefined) return `\${${name}}`
    remark(
      whole,
      `the variable \`${name}\` has no value here, so its default \`${fallback}\` applies`,
      'Replace it with the actual value.',
      true,
    )
    return fallback
  })
}

const oldOptions =
  /^(?:type|format|buffer_(?:type|path|chunk_limit|queue_limit)|disable_retry_limit|num_threads|max_retry_wait)$/
const newElements: ReadonlySet<string> = new Set(['parse', 'buffer', 'format', 'regexp', 'exclude', 'inject', 'rule'])

/** Whether a configuration is in the syntax before version 0.14: it has options of that time, and no elements of later versions. */
export function isOld(elements: readonly Element[]): boolean {
  const all = (each: readonly Element[]): readonly Element[] => each.flatMap((one) => [one, ...all(one.children)])
  const whole = all(elements)
  return (
    whole.some(({ name, parameters }) => name !== 'record' && parameters.some(({ key }) => oldOptions.test(key))) &&
    !whole.some(({ name }) => newElements.has(name))
  )
}

/** Marks a value that Fluentd treats as not set. */
export const notGiven = '\u0000'
/** Parameters that get a Secret even if the variable is optional. */
const isSecret = /user|pass|token|secret|(?:api|access|license|shared|storage)_?key/i
/** Parameters for files and connections of Fluentd itself, which components do not have. */
const isOfItself = /^(?:pos_file|path_to_|kubernetes_url|@id$|bind$)/

function closingQuote(text: string, quote: string): number {
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === quote) return at
    // Quotes within Ruby do not end the value.
    else if (quote === '"' && text[at] === '#' && text[at + 1] === '{') {
      const end = text.indexOf('}', at)
      if (end < 0) return -1
      at = end
    }
  }
  return -1
}

function unescaped(text: string): string {
  const letters: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', f: '\f', b: '\b', '0': '\0', '\n': '' }
  return text.replace(/\\(.)/gs, (whole, sign: string) => {
    if (Object.hasOwn(letters, sign)) return letters[sign] as string
    // Fluentd rejects other letters, and takes other signs as they are.
    return /[A-Za-z0-9]/.test(sign) ? whole : sign
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
