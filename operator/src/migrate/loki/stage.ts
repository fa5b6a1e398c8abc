// The contract of a stage of a Promtail or Alloy pipeline, and lines that several stages need.

import type { Mapping, Part, Report } from './context.ts'
import { extracted, lineText } from './fields.ts'
import { translateRegex } from './regex.ts'
import { isMap, itemsOf, type Tree } from './tree.ts'

export type Lines = readonly string[]

export interface Scope {
  readonly report: Report
  /** Whether the source has already parsed the lines of the container runtime. */
  readonly isPods: boolean
  /** Whether stages of the pipeline contain a word, so that they may read the value with this name. */
  readonly mentions: (word: string) => boolean
  /** Lines of the inner stages of a stage. */
  readonly nested: (part: Part) => Lines
  /** Reports a gap and returns its comment, which replaces the stage. */
  readonly refuse: (part: Part, reason: string, nearest?: string) => Lines
}

export type Stage = Mapping<readonly [Scope], Lines> & {
  /** Whether option names are user-defined. */
  readonly takesNames?: true
  /** Whether its texts become expressions, which may read the environment. */
  readonly expresses?: true
}

export const indent = (lines: Lines): string[] => lines.map((line) => line.replace(/^(?=.)/gm, '  '))
export const block = (condition: string, lines: Lines): string[] => [`if ${condition} {`, ...indent(lines), '}']

/** Lines that process a text: the value that `source` names, otherwise the line. A value that is not a text stays unchanged. */
export function onSource(source: string | undefined, lines: (subject: string) => Lines): Lines {
  if (source === undefined || source === '') return lines(lineText)
  return block(`is_string(${extracted(source)})`, lines(`string!(${extracted(source)})`))
}

/** A regular expression as a literal; reports a gap if it cannot be converted. */
export function pattern(part: Part, scope: Scope, regex: string, lines: (literal: string) => Lines): Lines {
  const translated = translateRegex(regex)
  if (!translated.ok) return scope.refuse(part, `its regular expression is not valid: ${translated.reason}`)
  return lines(`r'${translated.text}'`)
}

/** The stages of a list; each item is a name with its options. */
export function partsOf(list: Tree | undefined): readonly Part[] {
  return itemsOf(list).flatMap((item) =>
    isMap(item) ? [...item.value].map(([name, tree]) => ({ file: item.file, line: item.line, name, tree })) : [],
  )
}
