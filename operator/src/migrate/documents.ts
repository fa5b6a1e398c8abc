// The documents of a file and the tables in them that contain a configuration, with the places of their parts.

import {
  type formatOf,
  insideOffset,
  parseText,
  positionAt,
  type Segments,
  type TextPosition,
} from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Gap, NamedText } from './draft.ts'

type Format = ReturnType<typeof formatOf>

export type Table = Readonly<Record<string, unknown>>

/** A table with a configuration. */
export interface Root {
  readonly file: string
  readonly config: Table
  /** The line (from 1) of the value at a path, or of its nearest parent that exists. */
  lineOf(path: Segments): number
}

/** The places (from 1) of the parts of a table. */
export interface Places {
  lineOf(path: Segments): number
  /** The place of the value at a path, or of a position inside its text. */
  placeOf(path: Segments, inside?: TextPosition): TextPosition
}

/** A document whose content is a table. */
export interface TableDocument extends Places {
  readonly file: string
  readonly value: Table
  /** A table of the document that contains a configuration. */
  below(path: Segments, config: Table): Root & Places
  /** A text of the document, such as a value of a ConfigMap, with its lines and columns. */
  inside(path: Segments, text: string): InnerText
}

/** A part of a file. */
interface InnerText {
  readonly text: string
  /** Number of lines of the file before the text. */
  readonly above: number
  /** Number of characters before each line of the text that are not part of it. */
  readonly indent: number
}

export interface Reading {
  readonly format: Format
  /** Number of lines of the file before the text. */
  readonly above: number
  /** Number of characters before each line of the text that are not part of it. */
  readonly indent?: number
  /** Receives the problems of documents that cannot be parsed. */
  readonly gaps: Gap[]
  /** Maximum number of problems to report per document. */
  readonly maxProblems: number
}

/** The documents of a text whose content is a table. */
export function tableDocuments({ file, text }: NamedText, reading: Reading): readonly TableDocument[] {
  const { format, above } = reading
  const found: TableDocument[] = []
  let line = above
  for (const part of format === 'yaml' ? text.split(/^(?=---(?:\s|$))/m) : [text]) {
    const body = format === 'yaml' ? part.replace(/^---[^\n]*/, '') : part
    const document = tableDocument({ file, text: body }, { ...reading, above: line })
    if (document !== undefined) found.push(document)
    line += part.split('\n').length - 1
  }
  return found
}

function tableDocument(
  { file, text }: NamedText,
  { format, above, indent = 0, gaps, maxProblems }: Reading,
): TableDocument | undefined {
  const parsed = parseText(text, format)
  if (!parsed.ok) {
    for (const { offset, message } of parsed.problems.slice(0, maxProblems)) {
      const line = above + positionAt(text, offset).line
      gaps.push({ file, line, subject: file, reason: message, nearest: 'Correct the file.', isUnreadable: true })
    }
    return undefined
  }
  const { document } = parsed
  if (!isTable(document.value)) return undefined
  const placeOf: Places['placeOf'] = (path, inside) => {
    const { key, value, block } = document.locate(path)
    const isText = inside !== undefined && typeof memberAt(document.value, path) === 'string'
    const { line, column } = positionAt(text, isText ? insideOffset(text, value, block, inside) : key)
    return { line: above + line, column: indent + column }
  }
  const lineOf = (path: Segments) => placeOf(path).line
  return {
    file,
    value: document.value,
    lineOf,
    placeOf,
    below: (path, config) => ({ file, config, ...withPaths({ lineOf, placeOf }, (inner) => [...path, ...inner]) }),
    inside: (path, inner) => {
      const { block } = document.locate(path)
      if (block === undefined) return { text: inner, above: lineOf(path) - 1, indent: 0 }
      const start = above + positionAt(text, block.offset).line - 1
      return { text: inner, above: start, indent: indent + block.indent }
    },
  }
}

/** The value at a path through tables and lists. */
export const memberAt = (value: unknown, path: Segments) =>
  path.reduce<unknown>((above, segment) => Reflect.get(Object(above), segment), value)

/** The places of a table whose paths differ from those of another one. @param at the path in the other one */
export const withPaths = ({ lineOf, placeOf }: Places, at: (path: Segments) => Segments): Places => ({
  lineOf: (path) => lineOf(at(path)),
  placeOf: (path, inside) => placeOf(at(path), inside),
})

/** The places of a table whose lines are not those of the file. */
export const allAt = (line: number): Places => ({ lineOf: () => line, placeOf: () => ({ line, column: 1 }) })
