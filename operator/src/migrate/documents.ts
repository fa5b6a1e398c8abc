// The documents of a file and the tables in them that contain a configuration, with the line numbers of their parts.

import { type formatOf, parseText, positionAt, type Segments } from '@penstock/agent/config'
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

/** A document whose content is a table. */
export interface TableDocument {
  readonly file: string
  readonly value: Table
  lineOf(path: Segments): number
  /** A table of the document that contains a configuration. */
  below(path: Segments, config: Table): Root
  /** A text of the document, such as a value of a ConfigMap, and the number of lines of the file before it. */
  inside(path: Segments, text: string): { readonly text: string; readonly above: number }
}

export interface Reading {
  readonly format: Format
  /** Number of lines of the file before the text. */
  readonly above: number
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
  { format, above, gaps, maxProblems }: Reading,
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
  const lineOf = (path: Segments) => above + positionAt(text, document.locate(path).key).line
  return {
    file,
    value: document.value,
    lineOf,
    below: (path, config) => ({ file, config, lineOf: (inner) => lineOf([...path, ...inner]) }),
    inside: (path, inner) => {
      const { block } = document.locate(path)
      const start = block === undefined ? lineOf(path) - 1 : above + positionAt(text, block.offset).line - 1
      return { text: inner, above: start }
    },
  }
}
