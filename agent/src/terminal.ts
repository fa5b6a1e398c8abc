// Decides whether a stream gets colours: it must be a terminal with colours, and no setting may forbid them (`NO_COLOR`, `TERM=dumb`,
// `--color`). Also wraps long lines between words. Every command of both programs has the flag `--color`, so it is read here, before a
// command reads its own flags.

import type { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { PenstockError } from './errors.ts'

export const colorChoices = ['auto', 'always', 'never'] as const
export type ColorChoice = (typeof colorChoices)[number]

interface MaybeTerminal extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  hasColors?(): boolean
}

/** The choice for the whole process. */
let chosen: ColorChoice = 'auto'

/** Reads `--color WHEN`, or PENSTOCK_COLOR, for the whole process; returns the command line without the flag. */
export function readColor(argv: readonly string[]): readonly string[] {
  chosen = colorChoices.find((choice) => choice === process.env['PENSTOCK_COLOR']) ?? 'auto'
  const rest: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] as string
    if (word === '--') return [...rest, ...argv.slice(at)]
    if (word !== '--color' && !word.startsWith('--color=')) {
      rest.push(word)
      continue
    }
    const given = word === '--color' ? argv[++at] : word.slice('--color='.length)
    const choice = colorChoices.find((each) => each === given)
    if (choice === undefined) {
      const found = given === undefined ? 'nothing' : `\`${given}\``
      throw new PenstockError('PEN_USAGE', `\`--color\` takes one of ${colorChoices.join(', ')}; found ${found}.`)
    }
    chosen = choice
  }
  return rest
}

/** With `auto`, Node decides from the environment whether the terminal has colours. */
export function takesColors(stream: MaybeTerminal, choice: ColorChoice = chosen): boolean {
  if (choice !== 'auto') return choice === 'always'
  return stream.isTTY === true && stream.hasColors?.() === true
}

/** Whether lines on the stream can be overwritten. */
export function isRedrawn(stream: MaybeTerminal): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb'
}

/** The abilities of a stream; files and pipes have no columns. */
export interface Sheet {
  readonly color: boolean
  readonly columns?: number | undefined
}

export function sheetOf(stream: MaybeTerminal): Sheet {
  return { color: takesColors(stream), columns: columnsOf(stream) }
}

/** The width of a terminal. Undefined for files and pipes, and for a terminal that does not know its size, which gives 0. */
export function columnsOf(stream: MaybeTerminal): number | undefined {
  return stream.isTTY === true ? stream.columns || undefined : undefined
}

/**
 * Wraps a line between words.
 * @param hang indentation of the lines after the first
 */
export function wrapped(line: string, columns: number | undefined, hang: number): string {
  const widthOf = (text: string) => stripVTControlCharacters(text).length
  if (columns === undefined || widthOf(line) <= columns) return line
  const indent = ' '.repeat(Math.min(hang, Math.floor(columns / 2)))
  const [first = '', ...words] = line.split(/(?<=\S) (?=\S)/)
  const lines = [first]
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`
    if (widthOf(longer) <= columns) lines[lines.length - 1] = longer
    else lines.push(indent + word)
  }
  return lines.join('\n')
}
