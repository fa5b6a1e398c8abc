// The table of `penstock top`. On a terminal, keys also open one Pipeline with its status.

import type { Key } from 'node:readline'
import { type Drawing, RowKeys, type ScreenSize, styled, tableHelp } from '@penstock/agent/output'
import type { TopRow } from '../serving/observe/top-look.ts'
import { sizeText } from './size-text.ts'

interface Column {
  readonly title: string
  text(row: TopRow): string
  /** A number to sort by; the first column has none. */
  value?(row: TopRow): number
}

const nameOf = (row: TopRow) => (row.namespace === undefined ? row.name : `${row.namespace}/${row.name}`)

function numbers(title: string, value: (row: TopRow) => number): Column {
  return { title, value, text: (row) => String(value(row)) }
}

const columns: readonly Column[] = [
  { title: 'PIPELINE', text: nameOf },
  {
    // The heading is not AGENTS, which is the number of agents with the current version in `get` and `status`.
    title: 'ANSWERED',
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

/** Space between two columns. */
const gap = 2

/** If a name would have less space than this, a column is omitted instead. */
const minName = 16

/** Columns that a narrow screen omits, in this order. */
const expendable = ['SIZE', 'ANSWERED', 'BUFFERED']

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

/**
 * The heading and a line for each row, within the width of the screen: names are truncated, and then columns are
 * omitted.
 */
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
  if (rows.length === 0) return 'No Pipeline is running.'
  return joined(cellsOf(rows, columns, ({ title }) => title)).join('\n')
}

const detailsHelp = 'Esc: back  up/down: scroll  p: pause  q: quit'

/** Prefix of the selected row, and of all others while a row is selected. */
const marks = { chosen: '> ', other: '  ' }

const keyOf = (row: TopRow) => `${row.kind} ${nameOf(row)}`

/** Names in ascending order, figures in descending order. */
const orderBy =
  ({ value }: Column) =>
  (a: TopRow, b: TopRow) =>
    (value === undefined ? 0 : value(b) - value(a)) || nameOf(a).localeCompare(nameOf(b))

export class TopScreen implements Drawing {
  readonly #keys = new RowKeys<TopRow>({ keyOf, nameOf, orders: columns.map(orderBy) })
  /** The status of the opened row, once it is loaded. */
  #status: string | undefined

  /** Takes the newest figures; a paused screen keeps the displayed ones. */
  look(rows: readonly TopRow[]): void {
    this.#keys.update(rows)
  }

  /** The opened row, if its text must be loaded again. */
  get opened(): TopRow | undefined {
    const isWanted = this.#keys.isOpen && (!this.#keys.isPaused || this.#status === undefined)
    return isWanted ? this.#keys.chosenRow : undefined
  }

  /** Sets the text of the opened row. */
  describe(row: TopRow, text: string): void {
    if (this.#keys.isOpen && keyOf(row) === this.#keys.chosenKey) this.#status = text
  }

  press(text: string | undefined, key: Key): boolean {
    const quits = this.#keys.press(text, key)
    // A row that is opened again is loaded again.
    if (!this.#keys.isOpen) this.#status = undefined
    return quits
  }

  /** The whole screen, within its width and height. */
  text(size: ScreenSize): string {
    return this.#keys.isOpen ? this.#whole(size) : this.#table(size)
  }

  #table({ columns: width, rows: height, color }: ScreenSize): string {
    const by = columns[this.#keys.order] as Column
    const rows = this.#keys.shown
    const arrow = (by.value === undefined) === this.#keys.isReversed ? '↓' : '↑'
    const titleOf = (column: Column) => (column === by ? `${column.title}${arrow}` : column.title)
    const chosen = this.#keys.chosenIndex
    const markOf = (index: number) => (chosen < 0 ? '' : index === chosen ? marks.chosen : marks.other)
    const [heading = '', ...lines] = fittingLines(rows, width - markOf(-1).length, titleOf, by)
    const room = Math.max(1, height - 3)
    // Scrolls to keep the selected row visible.
    const from = Math.max(0, chosen - room + 1)
    const body = lines.slice(from, from + room).map((text, offset) => {
      const index = from + offset
      return rowLine(rows[index] as TopRow, `${markOf(index)}${text}`.slice(0, width), color)
    })
    const hidden = lines.length - body.length
    if (lines.length === 0)
      body.push(this.#keys.count === 0 ? 'No Pipeline is running.' : 'No name contains this text.')
    const states = [this.#keys.isPaused ? 'PAUSED' : '', this.#keys.filterText, hidden > 0 ? `${hidden} more` : '']
    const state = states.filter((each) => each !== '').join('   ')
    return [
      styled(`${markOf(-1)}${heading}`.slice(0, width), 'bold', color),
      ...body,
      styled((state || tableHelp(width)).slice(0, width), 'dim', color),
    ].join('\n')
  }

  /** One row, followed by the details of its Pipeline. */
  #whole({ columns: width, rows: height, color }: ScreenSize): string {
    const row = this.#keys.chosenRow
    const lines = (this.#status ?? 'Reading its status …').split('\n')
    const body = this.#keys.scrolled(lines, Math.max(1, height - 5))
    const hidden = lines.length - body.length
    const states = [this.#keys.isPaused ? 'PAUSED' : '', hidden > 0 ? `${hidden} more lines` : '', detailsHelp]
    const [heading = '', figures = ''] =
      row === undefined
        ? ['', 'No agent runs it now.']
        : fittingLines([row], width, ({ title }) => title, columns[0] as Column)
    return [
      styled(heading, 'bold', color),
      row === undefined ? figures : rowLine(row, figures, color),
      '',
      ...body,
      styled(
        states
          .filter((each) => each !== '')
          .join('  ')
          .slice(0, width),
        'dim',
        color,
      ),
    ].join('\n')
  }
}

function rowLine({ errorsPerSecond, droppedPerSecond }: TopRow, line: string, color: boolean): string {
  if (errorsPerSecond > 0) return styled(line, 'red', color)
  return droppedPerSecond > 0 ? styled(line, 'yellow', color) : line
}
