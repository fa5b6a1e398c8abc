// The table of `penstock top`, and what keys do to it on a terminal: sort, filter, pause and quit.

import type { Key } from 'node:readline'
import type { TopRow } from '../serving/observe/top-look.ts'

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
  numbers('BYTES', (row) => row.bufferedBytes),
  {
    title: 'LAG',
    value: (row) => row.lagSeconds ?? -1,
    text: (row) => (row.lagSeconds === undefined ? '-' : `${row.lagSeconds} s`),
  },
]

/** The heading and a line for each row. */
function linesOf(rows: readonly TopRow[], titles: readonly string[]): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => column.text(row)))
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...cells.map((line) => (line[index] as string).length)),
  )
  return [titles, ...cells].map((line) =>
    line
      .map((text, index) => (index === 0 ? text.padEnd(widths[0] as number) : text.padStart(widths[index] as number)))
      .join('  '),
  )
}

export function table(rows: readonly TopRow[]): string {
  if (rows.length === 0) return 'There is no Pipeline that runs.'
  const titles = columns.map(({ title }) => title)
  return linesOf(rows, titles).join('\n')
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
    const { value } = columns[this.#sorted] as Column
    const shown = this.#rows.filter((row) => nameOf(row).includes(this.#filter))
    // Names from A to Z, figures from the greatest on.
    const sorted = shown.toSorted((a, b) =>
      value === undefined
        ? nameOf(a).localeCompare(nameOf(b))
        : value(b) - value(a) || nameOf(a).localeCompare(nameOf(b)),
    )
    if (this.#isReversed) sorted.reverse()
    const arrow = (value === undefined) === this.#isReversed ? 'v' : '^'
    const titles = columns.map(({ title }, index) => (index === this.#sorted ? `${title}${arrow}` : title))
    const [heading = '', ...lines] = linesOf(sorted, titles)
    const style = (code: number, line: string) => (isColored ? `\u001b[${code}m${line}\u001b[0m` : line)
    const room = Math.max(1, height - 3)
    const body = lines.slice(0, room).map((line, index) => {
      const { errorsPerSecond = 0, droppedPerSecond = 0 } = sorted[index] ?? {}
      const fitting = line.slice(0, width)
      if (errorsPerSecond > 0) return style(codes.red, fitting)
      return droppedPerSecond > 0 ? style(codes.yellow, fitting) : fitting
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
      style(codes.bold, heading.slice(0, width)),
      ...body,
      style(codes.dim, (state || help).slice(0, width)),
    ].join('\n')
  }
}
