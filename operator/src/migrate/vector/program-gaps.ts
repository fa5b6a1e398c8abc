// Rows of the report about programs that do not compile, with the places of their mistakes in the files of the old configuration.

import type { Segments, TextPosition } from '@penstock/agent/config'
import type { ProgramDiagnostic } from '@penstock/agent/errors'
import { memberAt } from '../documents.ts'
import type { Gap, Included, NamedText } from '../draft.ts'
import type { Old } from './old.ts'
import { listOf } from './tables.ts'

/** The message of the compiler for a program. */
export interface FailedProgram {
  readonly message: string
  readonly rendered?: string | undefined
  readonly diagnostic?: ProgramDiagnostic | undefined
}

/** A place in a file. */
type FilePlace = Pick<Gap, 'file' | 'line' | 'column'>

/** Finds the place for a position in the compiled program. */
type PlaceOf = (position: TextPosition) => FilePlace

/**
 * The rows about a program of a component.
 * @param segments the path of the program in the options
 * @param text the compiled program, in which other texts may replace variables
 */
export function programGaps(
  old: Old,
  segments: Segments,
  text: string,
  { message, rendered, diagnostic }: FailedProgram,
  included: Included,
): readonly Gap[] {
  const kind = segments[0] === 'source' ? 'program' : 'condition'
  const placeOf = placesOf(old, segments, text, included)
  const row = (reason: string, position: TextPosition | undefined, own: string | undefined): Gap => ({
    ...placeOf(position ?? { line: 1, column: 1 }),
    subject: `${old.id}: ${segments.join('.')}`,
    reason,
    nearest: 'Correct it, and convert again.',
    ...(own !== undefined && { rendered: own }),
  })
  if (diagnostic === undefined) return [row(`the ${kind} is not valid: ${message}`, undefined, rendered)]
  return [diagnostic, ...(diagnostic.others ?? [])].map((each) =>
    row(`the ${kind} does not compile: ${each.message} (${each.code})`, each.position, each.rendered ?? rendered),
  )
}

function placesOf(old: Old, segments: Segments, text: string, included: Included): PlaceOf {
  const { root, kind, id, options } = old
  const given = memberAt(options, segments)
  const compiled = text.split('\n')
  if (typeof given === 'string') {
    const lines = given.split('\n')
    return ({ line, column }) => ({
      file: root.file,
      ...root.placeOf([kind, id, ...segments], { line, column: columnIn(lines, compiled, line, line, column) }),
    })
  }
  const files = listOf(options['file'] ?? options['files']).flatMap((path) =>
    included(String(path), root.file).slice(0, 1),
  )
  return ({ line, column }) =>
    inFiles(files, compiled, line, column) ?? { file: root.file, ...root.placeOf([kind, id]) }
}

/** The place in the files whose texts, one after the other, are the program. */
function inFiles(
  files: readonly NamedText[],
  compiled: readonly string[],
  line: number,
  column: number,
): FilePlace | undefined {
  let before = 0
  for (const { file, text, above = 0, indent = 0 } of files) {
    const lines = text.split('\n')
    const own = line - before
    if (own <= lines.length)
      return { file, line: above + own, column: indent + columnIn(lines, compiled, own, line, column) }
    before += lines.length
  }
  return undefined
}

/** The column in a line of the old program. If another text replaces a variable before the column, the rest of the line determines it. */
function columnIn(
  given: readonly string[],
  compiled: readonly string[],
  own: number,
  line: number,
  column: number,
): number {
  const [old = '', made = ''] = [given[own - 1], compiled[line - 1]]
  if (old.startsWith(made.slice(0, column - 1))) return column
  const rest = made.slice(column - 1)
  return old.endsWith(rest) ? old.length - rest.length + 1 : 1
}
