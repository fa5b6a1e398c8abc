// The table of `penstock top`, and what keys do to it on a terminal: sort, filter, pause and quit.

import type { Key } from 'node:readline'
import type { TopRow } from '../serving/observe/top-look.ts'
import { sizeText } from './size-text.ts'

interface Column {
  readonly title: string
  text(row: TopRow): string
  /** A number, for the order; the first column has none. */
  value?(row: TopRow): number
}

const nameOf = (row: TopRow) => (row.namespace === undefined ? row.name : `${row.namespace}/${row.name}`)

function numbers(title: string, value: (row: TopRow) => number): Column {
  return { title, value, text: (row) => String(value(row)) }
}

const columns: readonly Column[] = [
  { title: 'PIPELINE', text: nameOf },
  {
    title: 'AGENTS',
    value: ({ agents }) => agents.answered,
    text: ({ agents }) => `${agents.answered}/${agents.asked}`,
  },
  numbers('IN/S', (row) => row.inPerSecond),
  numbers('OUT/S', (row) => row.outPerSecond),
  numbers('DROPPED/S', (row) => row.droppedPerSecond),
  numbers('ERRORS/S', (row) => row.errorsPerSecond),
  numbers('BUFFERED', (row) => row.bufferedEvents),
  { title: 'SIZE', value: (row) => row.bufferedBytes, text: (row) => sizeText(row.bufferedBytes) },
  {
    title: 'LAG',
    value: (row) => row.lagSeconds ?? -1,
    text: (row) => (row.lagSeconds === undefined ? '-' : `${row.lagSeconds} s`),
  },
]

/** Columns of a table between two cells. */
const gap = 2

/** A name is cut where it would leave less than this for itself: then a column gives way. */
const minName = 16

/** Those that a narrow screen leaves out, the first one first. */
const expendable = ['SIZE', 'AGENTS', 'BUFFERED']

interface Cells {
  /** The heading first. */
  readonly lines: readonly (readonly string[])[]
  readonly widths: readonly number[]
}

function cellsOf(rows: readonly TopRow[], shown: readonly Column[], titleOf: (column: Column) => string): Cells {
  const lines = [shown.map(titleOf), ...rows.map((row) => shown.map((column) => column.text(row)))]
  const widths = shown.map((_, index) => Math.max(...lines.map((line) => (line[index] as string).length)))
  return { lines, widths }
}

const widthOf = (widths: readonly number[]) => widths.reduce((sum, width) => sum + width + gap, -gap)

function joined({ lines, widths }: Cells): readonly string[] {
  return lines.map((line) =>
    line
      .map((text, index) => (index === 0 ? text.padEnd(widths[0] as number) : text.padStart(widths[index] as number)))
      .join(' '.repeat(gap)),
  )
}

/** The heading and a line for each row, no wider than a screen: names are cut, and then columns are left out. */
function fittingLines(
  rows: readonly TopRow[],
  width: number,
  titleOf: (column: Column) => string,
  sorted: Column,
): readonly string[] {
  const left = [...expendable]
  let shown = columns
  for (;;) {
    const { lines, widths } = cellsOf(rows, shown, titleOf)
    const [longest = 0, ...others] = widths
    const room = width - widthOf([0, ...others])
    const gives = room < Math.min(longest, minName) ? left.shift() : undefined
    if (gives === undefined) {
      const nameWidth = Math.max(1, Math.min(longest, room))
      const cut = (name: string) => (name.length <= nameWidth ? name : `${name.slice(0, nameWidth - 1)}…`)
      const cutLines = lines.map(([name = '', ...cells]) => [cut(name), ...cells])
      return joined({ lines: cutLines, widths: [nameWidth, ...others] }).map((line) => line.slice(0, width))
    }
    shown = shown.filter((column) => column.title !== gives || column === sorted)
  }
}

export function table(rows: readonly TopRow[]): string {
  if (rows.length === 0) return 'There is no Pipeline that runs.'
  return joined(cellsOf(rows, columns, ({ title }) => title)).join('\n')
}

export interface ScreenSize {
  readonly width: number
  readonly height: number
  readonly isColored: boolean
}

/** Codes of colours that what is printed may contain. */
const codes = { bold: 1, dim: 2, red: 31, yellow: 33 }

const help = 'left/right: sort by   r: reverse   /: filter   p: pause   q: quit'

/** What is seen, and the choices of the person who looks. */
export class TopScreen {
  #rows: readonly TopRow[] = []
  #sorted = 0
  #isReversed = false
  #isPaused = false
  #isTyping = false
  #filter = ''

  /** Takes the newest figures; a paused screen keeps those that it shows. */
  look(rows: readonly TopRow[]): void {
    if (!this.#isPaused) this.#rows = rows
  }

  /** Does what a key means; true: the person wants to quit. */
  press(text: string | undefined, { name, ctrl = false }: Key): boolean {
    if (ctrl) return name === 'c' || name === 'd'
    if (this.#isTyping) {
      this.#type(text, name)
      return false
    }
    if (name === 'q' || name === 'escape') return true
    if (name === 'right') this.#sorted = (this.#sorted + 1) % columns.length
    if (name === 'left') this.#sorted = (this.#sorted + columns.length - 1) % columns.length
    if (name === 'r') this.#isReversed = !this.#isReversed
    if (name === 'p' || name === 'space') this.#isPaused = !this.#isPaused
    if (text === '/') this.#isTyping = true
    return false
  }

  #type(text: string | undefined, name: string | undefined): void {
    if (name === 'return' || name === 'enter') this.#isTyping = false
    else if (name === 'escape') {
      this.#isTyping = false
      this.#filter = ''
    } else if (name === 'backspace') this.#filter = this.#filter.slice(0, -1)
    else if (text !== undefined && /^[\w./-]$/.test(text)) this.#filter += text
  }

  /** The whole screen, no line wider and no more lines than it has. */
  text({ width, height, isColored }: ScreenSize): string {
    const by = columns[this.#sorted] as Column
    const { value } = by
    const shown = this.#rows.filter((row) => nameOf(row).includes(this.#filter))
    // Names from A to Z, figures from the greatest on.
    const sorted = shown.toSorted((a, b) =>
      value === undefined
        ? nameOf(a).localeCompare(nameOf(b))
        : value(b) - value(a) || nameOf(a).localeCompare(nameOf(b)),
    )
    if (this.#isReversed) sorted.reverse()
    const arrow = (value === undefined) === this.#isReversed ? 'v' : '^'
    const titleOf = (column: Column) => (column === by ? `${column.title}${arrow}` : column.title)
    const [heading = '', ...lines] = fittingLines(sorted, width, titleOf, by)
    const style = (code: number, line: string) => (isColored ? `\u001b[${code}m${line}\u001b[0m` : line)
    const room = Math.max(1, height - 3)
    const body = lines.slice(0, room).map((line, index) => {
      const { errorsPerSecond = 0, droppedPerSecond = 0 } = sorted[index] ?? {}
      if (errorsPerSecond > 0) return style(codes.red, line)
      return droppedPerSecond > 0 ? style(codes.yellow, line) : line
    })
    const hidden = lines.length - body.length
    if (lines.length === 0)
      body.push(this.#rows.length === 0 ? 'There is no Pipeline that runs.' : 'No name has this text.')
    const states = [
      this.#isPaused ? 'PAUSED' : '',
      this.#isTyping || this.#filter !== '' ? `filter: ${this.#filter}${this.#isTyping ? '_' : ''}` : '',
      hidden > 0 ? `${hidden} more` : '',
    ]
    const state = states.filter((each) => each !== '').join('   ')
    return [style(codes.bold, heading), ...body, style(codes.dim, (state || help).slice(0, width))].join('\n')
  }
}
