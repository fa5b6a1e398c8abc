// The origin of each value in a configuration: its file, and its path in that file. With it, a problem in the merged configuration
// points to the line that the user wrote.

import type { Problem } from '../schema/problems.ts'
import { pathOf } from '../schema/walk.ts'
import type { Interpolated } from './interpolate.ts'
import type { Document, Segments, TextBlock } from './syntax.ts'

/** A parsed configuration text. */
export interface SourceText {
  readonly file: string
  /** The original text. */
  readonly source: string
  readonly interpolated: Interpolated
  readonly document: Document
}

/** A value with the places that it was merged from; a configuration that was never text has none. */
export interface Located {
  readonly value: unknown
  /** Path from the root of the configuration. */
  readonly path: Segments
  readonly origins: readonly ValueOrigin[]
}

export interface ValueOrigin {
  readonly text: SourceText
  /** The path inside the document, and the value at that path, which helps to choose among several origins. */
  readonly path: Segments
  readonly value: unknown
}

export interface TextPosition {
  readonly line: number
  readonly column: number
}

export function positionAt(source: string, offset: number): TextPosition {
  const before = source.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  let line = 1
  for (let at = before.indexOf('\n'); at >= 0; at = before.indexOf('\n', at + 1)) line++
  return { line, column: offset - start + 1 }
}

/** A member of a located value. */
export function member(located: Located, segment: string | number): Located {
  return {
    value: memberValue(located.value, segment),
    path: [...located.path, segment],
    origins: located.origins
      .filter((origin) => memberValue(origin.value, segment) !== undefined)
      .map((origin) => ({
        text: origin.text,
        path: [...origin.path, segment],
        value: memberValue(origin.value, segment),
      })),
  }
}

function memberValue(value: unknown, segment: string | number): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined
  return (value as Record<string | number, unknown>)[segment]
}

/** A problem without its place. */
export interface ProblemFacts {
  readonly message: string
  readonly help?: string | undefined
  readonly severity?: 'error' | 'warning' | undefined
  readonly informational?: boolean | undefined
  /** Whether to point to the key instead of the value. */
  readonly atKey?: boolean | undefined
  /** Position inside a text value; lines and columns start at 1. */
  readonly position?: TextPosition | undefined
  readonly rendered?: string | undefined
  readonly diagnostic?: Problem['diagnostic']
  readonly code?: Problem['code']
}

/** Turns a finding into a problem at a path below a located value. */
export function problemAt(located: Located, below: Segments, finding: ProblemFacts): Problem {
  const place = placeOf(located, below, finding.atKey === true, finding.position)
  return {
    severity: finding.severity ?? 'error',
    path: pathOf([...located.path, ...below]),
    message: finding.message,
    ...(finding.help === undefined ? {} : { help: finding.help }),
    ...(finding.informational === true ? { informational: true } : {}),
    ...place,
    ...(finding.rendered === undefined ? {} : { rendered: finding.rendered }),
    ...(finding.diagnostic === undefined ? {} : { diagnostic: finding.diagnostic }),
    ...(finding.code === undefined ? {} : { code: finding.code }),
  }
}

function placeOf(
  located: Located,
  below: Segments,
  atKey: boolean,
  inside: TextPosition | undefined,
): { file?: string; line?: number; column?: number } {
  const origin = nearestOrigin(located, below)
  if (origin === undefined) return {}
  const { text } = origin
  const span = text.document.locate([...origin.path, ...below])
  const value = valueAt(origin.value, below)
  // For a table or list, point to its key.
  const atValue = value !== undefined && (typeof value !== 'object' || value === null)
  let offset = atKey || !atValue ? span.key : span.value
  if (inside !== undefined) offset = insideOffset(text.interpolated.text, span.value, span.block, inside)
  return { file: text.file, ...positionAt(text.source, text.interpolated.sourceOffset(offset)) }
}

/**
 * The offset in a file for a position inside a text of it.
 * @param value the offset of the text
 * @param block the first line of a text of several lines, and the indentation that is not part of the text
 */
export function insideOffset(text: string, value: number, block: TextBlock | undefined, inside: TextPosition): number {
  if (block === undefined) {
    if (text[value] === '"') return escapedOffset(text, value + 1, inside)
    return inside.line === 1 ? value + (text[value] === "'" ? 1 : 0) + inside.column - 1 : value
  }
  if (block.isFolded === true) return foldedOffset(text, block, inside)
  let offset = block.offset
  for (let line = 1; line < inside.line; line++) {
    const end = text.indexOf('\n', offset)
    if (end < 0) break
    offset = end + 1
  }
  return Math.min(offset + block.indent + inside.column - 1, text.length)
}

/** The offset for a position inside a text whose lines are joined by blanks; an empty line ends a line of the text. */
function foldedOffset(text: string, { offset, indent }: TextBlock, { line, column }: TextPosition): number {
  let [at, current, before] = [offset, 1, 0]
  for (const raw of text.slice(offset).split('\n')) {
    const length = raw.length - indent
    if (length <= 0) [current, before] = [current + 1, 0]
    else if (current === line && column <= before + length) return at + indent + Math.max(column - before - 1, 0)
    else before += length + 1
    at += raw.length + 1
  }
  return Math.min(at, text.length)
}

/** Numbers of characters of escapes that are not two characters long. */
const escapeLengths: Readonly<Record<string, number>> = { x: 4, u: 6, U: 10 }

/** The offset for a position inside a text in double quotes, in which escapes stand for characters and ends of lines. */
function escapedOffset(text: string, start: number, { line, column }: TextPosition): number {
  let at = start
  let current = { line: 1, column: 1 }
  while (at < text.length && text[at] !== '"') {
    if (current.line === line && current.column >= column) return at
    const letter = text[at] === '\\' ? text[at + 1] : undefined
    current = letter === 'n' ? { line: current.line + 1, column: 1 } : { ...current, column: current.column + 1 }
    // YAML reads the end of a line, and the blanks after it, as one blank.
    const folded = text[at] === '\n' ? /\n\s*/y : undefined
    if (folded !== undefined) folded.lastIndex = at
    at += letter === undefined ? (folded?.exec(text)?.[0].length ?? 1) : (escapeLengths[letter] ?? 2)
  }
  return at
}

/** The origin that contains the longest part of the path. */
function nearestOrigin(located: Located, below: Segments): ValueOrigin | undefined {
  let best: ValueOrigin | undefined
  let bestDepth = -1
  for (const origin of located.origins) {
    const depth = depthOf(origin.value, below)
    if (depth > bestDepth) {
      best = origin
      bestDepth = depth
    }
  }
  return best
}

function depthOf(value: unknown, below: Segments): number {
  let depth = 0
  for (const segment of below) {
    value = memberValue(value, segment)
    if (value === undefined) break
    depth++
  }
  return depth
}

function valueAt(value: unknown, below: Segments): unknown {
  for (const segment of below) value = memberValue(value, segment)
  return value
}
