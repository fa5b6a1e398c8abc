// The table of `penstock top`, and what keys do to it on a terminal: sort, filter, choose a Pipeline and show it whole, pause and quit.

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

const help = 'Enter: details  left/right: sort  r: reverse  /: filter  p: pause  q: quit'
const detailsHelp = 'Esc: back  up/down: scroll  p: pause  q: quit'

/** Before the line of the row that is chosen, and before all others while one is. */
const marks = { chosen: '> ', other: '  ' }

const keyOf = (row: TopRow) => `${row.kind} ${nameOf(row)}`

/** What is seen, and the choices of the person who looks. */
export class TopScreen {
  #rows: readonly TopRow[] = []
  #sorted = 0
  #isReversed = false
  #isPaused = false
  #isTyping = false
  #filter = ''
  /** The key of the row that is chosen: it stays chosen wherever it moves. */
  #chosen: string | undefined
  #details: { text: string | undefined; from: number } | undefined

  /** Takes the newest figures; a paused screen keeps those that it shows. */
  look(rows: readonly TopRow[]): void {
    if (!this.#isPaused) this.#rows = rows
  }

  /** The row that is shown whole, if its text should be read again. */
  get opened(): TopRow | undefined {
    const isWanted = this.#details !== undefined && (!this.#isPaused || this.#details.text === undefined)
    return isWanted ? this.#rows.find((row) => keyOf(row) === this.#chosen) : undefined
  }

  /** Takes the text of a row that is shown whole. */
  describe(row: TopRow, text: string): void {
    if (this.#details !== undefined && keyOf(row) === this.#chosen) this.#details.text = text
  }

  /** Does what a key means; true: the person wants to quit. */
  press(text: string | undefined, { name, ctrl = false }: Key): boolean {
    if (ctrl) return name === 'c' || name === 'd'
    if (this.#isTyping) {
      this.#type(text, name)
      return false
    }
    if (name === 'q') return true
    if (name === 'p' || name === 'space') this.#isPaused = !this.#isPaused
    if (this.#details !== undefined) {
      if (name === 'escape') this.#details = undefined
      else if (name === 'up') this.#details.from = Math.max(0, this.#details.from - 1)
      else if (name === 'down') this.#details.from++
      return false
    }
    if (name === 'escape') return true
    if (name === 'right') this.#sorted = (this.#sorted + 1) % columns.length
    if (name === 'left') this.#sorted = (this.#sorted + columns.length - 1) % columns.length
    if (name === 'r') this.#isReversed = !this.#isReversed
    if (name === 'up' || name === 'down') this.#choose(name === 'down' ? 1 : -1)
    if (name === 'return' || name === 'enter') {
      if (this.#index() < 0) this.#choose(1)
      if (this.#index() >= 0) this.#details = { text: undefined, from: 0 }
    }
    if (text === '/') this.#isTyping = true
    return false
  }

  /** Where the row that is chosen stands; less than 0: none is. */
  #index(): number {
    return this.#order().findIndex((row) => keyOf(row) === this.#chosen)
  }

  #choose(by: number): void {
    const rows = this.#order()
    const row = rows[Math.min(rows.length - 1, Math.max(0, this.#index() + by))]
    this.#chosen = row === undefined ? undefined : keyOf(row)
  }

  #type(text: string | undefined, name: string | undefined): void {
    if (name === 'return' || name === 'enter') this.#isTyping = false
    else if (name === 'escape') {
      this.#isTyping = false
      this.#filter = ''
    } else if (name === 'backspace') this.#filter = this.#filter.slice(0, -1)
    else if (text !== undefined && /^[\w./-]$/.test(text)) this.#filter += text
  }

  /** The rows that are shown: names from A to Z, figures from the greatest on. */
  #order(): readonly TopRow[] {
    const { value } = columns[this.#sorted] as Column
    const shown = this.#rows.filter((row) => nameOf(row).includes(this.#filter))
    const sorted = shown.toSorted((a, b) =>
      value === undefined
        ? nameOf(a).localeCompare(nameOf(b))
        : value(b) - value(a) || nameOf(a).localeCompare(nameOf(b)),
    )
    return this.#isReversed ? sorted.reverse() : sorted
  }

  /** The whole screen, no line wider and no more lines than it has. */
  text(size: ScreenSize): string {
    return this.#details === undefined ? this.#table(size) : this.#whole(size, this.#details)
  }

  #table({ width, height, isColored }: ScreenSize): string {
    const by = columns[this.#sorted] as Column
    const rows = this.#order()
    const arrow = (by.value === undefined) === this.#isReversed ? 'v' : '^'
    const titleOf = (column: Column) => (column === by ? `${column.title}${arrow}` : column.title)
    const chosen = this.#index()
    const markOf = (index: number) => (chosen < 0 ? '' : index === chosen ? marks.chosen : marks.other)
    const [heading = '', ...lines] = fittingLines(rows, width - markOf(-1).length, titleOf, by)
    const room = Math.max(1, height - 3)
    // The row that is chosen stays in sight.
    const from = Math.max(0, chosen - room + 1)
    const body = lines.slice(from, from + room).map((text, offset) => {
      const index = from + offset
      return rowLine(rows[index] as TopRow, `${markOf(index)}${text}`.slice(0, width), isColored)
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
    return [
      styled(codes.bold, `${markOf(-1)}${heading}`.slice(0, width), isColored),
      ...body,
      styled(codes.dim, (state || help).slice(0, width), isColored),
    ].join('\n')
  }

  /** One row, and below it what is known of its Pipeline. */
  #whole(
    { width, height, isColored }: ScreenSize,
    details: { readonly text: string | undefined; from: number },
  ): string {
    const row = this.#rows.find((each) => keyOf(each) === this.#chosen)
    const lines = (details.text ?? 'Reading its status …').split('\n')
    const room = Math.max(1, height - 5)
    details.from = Math.min(details.from, Math.max(0, lines.length - room))
    const body = lines.slice(details.from, details.from + room)
    const hidden = lines.length - body.length
    const states = [this.#isPaused ? 'PAUSED' : '', hidden > 0 ? `${hidden} more lines` : '', detailsHelp]
    const [heading = '', figures = ''] =
      row === undefined
        ? ['', 'No agent runs it now.']
        : fittingLines([row], width, ({ title }) => title, columns[0] as Column)
    return [
      styled(codes.bold, heading, isColored),
      row === undefined ? figures : rowLine(row, figures, isColored),
      '',
      ...body,
      styled(
        codes.dim,
        states
          .filter((each) => each !== '')
          .join('  ')
          .slice(0, width),
        isColored,
      ),
    ].join('\n')
  }
}

function styled(code: number, line: string, isColored: boolean): string {
  return isColored ? `\u001b[${code}m${line}\u001b[0m` : line
}

function rowLine({ errorsPerSecond, droppedPerSecond }: TopRow, line: string, isColored: boolean): string {
  if (errorsPerSecond > 0) return styled(codes.red, line, isColored)
  return droppedPerSecond > 0 ? styled(codes.yellow, line, isColored) : line
}
