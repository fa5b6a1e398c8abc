// The help of a command, fitted to what shows it: sentences and descriptions of flags are broken between words, and a description goes on
// below its own beginning. Authors write one line for each paragraph and each flag, whatever its length.

import { wrapped } from '../terminal.ts'

/** Pages, pipes and files are as wide as the terminals of old. */
const plainColumns = 80
/** Longer lines are hard to read, however wide the terminal is. */
const mostColumns = 100
const leastColumns = 40

function columnsOf(stream: { readonly isTTY?: boolean; readonly columns?: number }): number {
  const columns = stream.isTTY === true ? stream.columns || plainColumns : plainColumns
  return Math.min(mostColumns, Math.max(leastColumns, columns))
}

const indentOf = (line: string): number => line.length - line.trimStart().length

/** Where the description of `  name   description` begins: behind the name and two blanks at least. */
const descriptionAt = (line: string): number => /^ +\S.*? {2,}(?=\S)/.exec(line)?.[0].length ?? indentOf(line)

/** Fits a text of paragraphs, which begin at the left, and of lists, which are indented. Lines of usage stay as they are. */
export function helpText(text: string, columns = columnsOf(process.stdout)): string {
  const lines: { text: string; readonly isUsage: boolean }[] = []
  for (const line of text.split('\n')) {
    const last = lines.at(-1)
    const isUsage = line.startsWith('Usage:') || (last?.isUsage === true && indentOf(line) === 'Usage: '.length)
    const goesOn =
      last !== undefined &&
      !last.isUsage &&
      !isUsage &&
      last.text !== '' &&
      line !== '' &&
      (indentOf(line) === 0
        ? indentOf(last.text) === 0
        : indentOf(line) > 2 && indentOf(line) === descriptionAt(last.text))
    if (goesOn) last.text += ` ${line.trimStart()}`
    else lines.push({ text: line, isUsage })
  }
  return lines
    .map((line) => (line.isUsage ? line.text : wrapped(line.text, columns, descriptionAt(line.text))))
    .join('\n')
}
