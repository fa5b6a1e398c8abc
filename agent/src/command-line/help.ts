// Wraps the help text of a command to the width of the terminal. Lines break between words, and a description continues below its own
// beginning. Authors write one line for each paragraph and each flag, regardless of its length.

import { wrapped } from '../terminal.ts'

/** The width for pages, pipes and files. */
const plainColumns = 80
/** Longer lines are hard to read, even on a wide terminal. */
const maxColumns = 100
const minColumns = 40

function columnsOf(stream: { readonly isTTY?: boolean; readonly columns?: number }): number {
  const columns = stream.isTTY === true ? stream.columns || plainColumns : plainColumns
  return Math.min(maxColumns, Math.max(minColumns, columns))
}

const indentOf = (line: string): number => line.length - line.trimStart().length

/** The column at which the description in `  name   description` begins, after the name and at least two spaces. */
const descriptionAt = (line: string): number => /^ +\S.*? {2,}(?=\S)/.exec(line)?.[0].length ?? indentOf(line)

/** Wraps a text of paragraphs, which are not indented, and of lists, which are. Usage lines stay unchanged. */
export function helpText(text: string, columns = columnsOf(process.stdout)): string {
  const lines: { text: string; readonly isUsage: boolean }[] = []
  for (const line of text.split('\n')) {
    const last = lines.at(-1)
    const isUsage = line.startsWith('Usage:') || (last?.isUsage === true && indentOf(line) === 'Usage: '.length)
    const continuesLast =
      last !== undefined &&
      !last.isUsage &&
      !isUsage &&
      last.text !== '' &&
      line !== '' &&
      (indentOf(line) === 0
        ? indentOf(last.text) === 0
        : indentOf(line) > 2 && indentOf(line) === descriptionAt(last.text))
    if (continuesLast) last.text += ` ${line.trimStart()}`
    else lines.push({ text: line, isUsage })
  }
  return lines.map((line) => (line.isUsage ? line.text : entry(line.text, columns))).join('\n')
}

/** Columns before a description that stands below its name, because the terminal is too narrow for both. */
const belowName = 10

function entry(line: string, columns: number): string {
  const at = descriptionAt(line)
  if (at <= columns / 2) return wrapped(line, columns, at)
  const name = line.slice(0, at).trimEnd()
  const description = wrapped(`${' '.repeat(belowName)}${line.slice(at)}`, columns, belowName)
  return name === '' ? description : `${name}\n${description}`
}
