// Compiler diagnostics: a code, spans with labels and notes, and their rendered form with carets.

import type { Span } from './ast.ts'

export interface Label {
  readonly primary: boolean
  /** Offsets into the source in UTF-16 units. */
  readonly span: Span
  readonly message: string
}

export interface Diagnostic {
  readonly severity: 'error' | 'warning'
  readonly code: number
  readonly message: string
  readonly labels: readonly Label[]
  readonly notes: readonly string[]
}

/** Converts UTF-16 offsets to byte offsets. */
export class ByteOffsets {
  readonly #source: string
  readonly #plain: boolean

  constructor(source: string) {
    this.#source = source
    this.#plain = Buffer.byteLength(source) === source.length
  }

  at(offset: number): number {
    return this.#plain ? offset : Buffer.byteLength(this.#source.slice(0, offset))
  }

  span(span: Span): [number, number] {
    return [this.at(span[0]), this.at(span[1])]
  }
}

interface Line {
  readonly number: number
  readonly start: number
  readonly text: string
}

function linesOf(source: string): Line[] {
  let start = 0
  return source.split('\n').map((text, index) => {
    const line = { number: index + 1, start, text: text.replace(/\r$/, '') }
    start += text.length + 1
    return line
  })
}

/** Line and column of an offset, from 1; columns count code points. */
export function positionOf(source: string, offset: number): { line: number; column: number } {
  const before = source.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: Array.from(before.slice(start)).length + 1 }
}

/** Line and column of a byte offset, as used in run-time errors. */
export function positionOfByte(source: string, offset: number): { line: number; column: number } {
  return positionOf(source, Buffer.from(source).toString('utf8', 0, offset).length)
}

/** The program has an unexpected token, or ends too early. */
const syntaxErrors: readonly number[] = [203, 204]

/** A diagnostic as callers of the compiler report it: its code as users see it, and its location. */
export interface Summary {
  readonly code: string
  readonly message: string
  readonly position?: { readonly line: number; readonly column: number }
  /** The rendered diagnostic on its own, if there are others. */
  readonly rendered?: string
  readonly others?: readonly Summary[]
}

function summaryOf(source: string, { code, message, labels }: Diagnostic): Summary {
  const start = labels[0]?.span[0]
  const position = start === undefined ? {} : { position: positionOf(source, start) }
  // For a syntax error, the labels say what was found and what was expected.
  const details = syntaxErrors.includes(code)
    ? labels.map((label) => label.message).filter((text) => text !== message)
    : []
  return {
    code: codeText(code),
    message: details.length === 0 ? message : `${message}: ${details.join(', ')}`,
    ...position,
  }
}

/** The first diagnostic as callers report it, together with the others. */
export function summariesOf(source: string, [first, ...others]: readonly Diagnostic[]): Summary | undefined {
  if (first === undefined) return undefined
  if (others.length === 0) return summaryOf(source, first)
  const alone = (each: Diagnostic): Summary => ({
    ...summaryOf(source, each),
    rendered: renderDiagnostic(source, each),
  })
  return { ...alone(first), others: others.map(alone) }
}

const codeText = (code: number): string => `E${String(code).padStart(3, '0')}`

/** All diagnostics as text, each preceded by an empty line. */
export function renderDiagnostics(source: string, diagnostics: readonly Diagnostic[]): string {
  return diagnostics.map((diagnostic) => renderDiagnostic(source, diagnostic)).join('')
}

/** Begins the place in a rendered diagnostic with the name of the program: a file, or the option that holds it. */
export function named(rendered: string, name: string): string {
  return rendered.replaceAll(placeMark, (mark) => mark + name)
}

/** The place in a program. Lines of the program and the marks below them begin otherwise. */
const placeMark = /^ *┌─ (?=:\d+:\d+$)/gm

function renderDiagnostic(source: string, diagnostic: Diagnostic): string {
  const lines = linesOf(source)
  const out = ['', `${diagnostic.severity}[${codeText(diagnostic.code)}]: ${diagnostic.message}`]
  const first = diagnostic.labels[0]
  const gutter = String(lines.length).length
  const pad = ' '.repeat(gutter)
  if (first !== undefined) {
    const { line, column } = positionOf(source, first.span[0])
    out.push(`${pad} ┌─ :${line}:${column}`, `${pad} │`)
    const shown = lines.filter((candidate) => diagnostic.labels.some((label) => touches(label.span, candidate)))
    let last = 0
    for (const text of shown) {
      if (last > 0 && text.number > last + 1) out.push(`${pad} ·`)
      last = text.number
      out.push(`${String(text.number).padStart(gutter)} │ ${text.text}`)
      out.push(...marks(diagnostic.labels, text).map((mark) => `${pad} │ ${mark}`))
    }
    out.push(`${pad} │`)
  }
  for (const note of diagnostic.notes) out.push(`${pad} = ${note}`)
  return `${out.map((line) => line.trimEnd()).join('\n')}\n`
}

function touches(span: Span, line: Line): boolean {
  const end = line.start + line.text.length
  return span[0] <= end && (span[1] > line.start || (span[0] === span[1] && span[0] >= line.start))
}

/** The lines below a source line: carets and dashes, then a message for each label. */
function marks(labels: readonly Label[], line: Line): string[] {
  const here = labels.filter((label) => touches(label.span, line))
  const column = (offset: number): number =>
    Array.from(line.text.slice(0, Math.max(0, Math.min(offset - line.start, line.text.length)))).length
  const width = Array.from(line.text).length
  const cells: string[] = []
  for (const primary of [false, true]) {
    for (const label of here) {
      if (label.primary !== primary) continue
      const from = column(label.span[0])
      const to = Math.max(from + 1, Math.min(column(label.span[1]), Math.max(width, from + 1)))
      for (let at = from; at < to; at++) cells[at] = primary ? '^' : '-'
    }
  }
  const underline = Array.from(cells, (cell) => cell ?? ' ').join('')
  const rows = [underline]
  // Labels that end on this line are printed from right to left.
  const speaking = here
    .filter((label) => label.span[1] <= line.start + line.text.length + 1)
    .sort((left, right) => right.span[0] - left.span[0])
  const lastLabel = speaking[0]
  const only = speaking.filter((label) => label.span[0] === lastLabel?.span[0])
  if (lastLabel !== undefined && only.length === 1) rows[0] = `${underline} ${lastLabel.message}`
  const below = only.length === 1 ? speaking.slice(1) : speaking
  if (below.length > 0) {
    const starts = new Set(below.map((label) => column(label.span[0])))
    rows.push(Array.from({ length: Math.max(...starts) + 1 }, (_, at) => (starts.has(at) ? '│' : ' ')).join(''))
  }
  for (const label of below) {
    const bars = new Set(below.filter((other) => other.span[0] < label.span[0]).map((other) => column(other.span[0])))
    const from = column(label.span[0])
    rows.push(`${Array.from({ length: from }, (_, at) => (bars.has(at) ? '│' : ' ')).join('')}${label.message}`)
  }
  return rows
}
