// `top` on a terminal: the table, or the details of one component, depending on the keys pressed.

import type { Key } from 'node:readline'
import type { Drawing, ScreenSize } from '../command-line/live-screen.ts'
import { RowKeys, tableHelp } from '../command-line/row-keys.ts'
import { counted } from '../counted.ts'
import { styled } from '../formats/pretty.ts'
import {
  colored,
  columns,
  lostOf,
  type Row,
  type TopColumn,
  type TopSnapshot,
  tableLines,
  titleOf,
  waitLines,
} from './top-table.ts'

const detailsHelp = () => 'Esc: back  p: pause  q: quit'

/** Words in ascending order, figures in descending order. */
const orderBy = (column: TopColumn) => (a: Row, b: Row) =>
  column.value === undefined
    ? column.text(a, String).localeCompare(column.text(b, String))
    : column.value(b) - column.value(a)

export class AgentTopScreen implements Drawing {
  readonly #isHuman: boolean
  #look: TopSnapshot | undefined
  #note = ''
  readonly #keys = new RowKeys<Row>({
    keyOf: (row) => row.component_id,
    nameOf: (row) => row.component_id,
    // The first is the agent's order, from sources to sinks.
    orders: [undefined, ...columns.map(orderBy)],
  })

  constructor(isHuman: boolean) {
    this.#isHuman = isHuman
  }

  /** Takes the newest figures; a paused screen keeps the displayed ones. */
  look(look: TopSnapshot, rows: readonly Row[]): void {
    this.#note = ''
    if (!this.#keys.isPaused) this.#look = look
    this.#keys.update(rows)
  }

  /** Shows a line at the bottom until the next refresh. */
  say(note: string): void {
    this.#note = note
  }

  press(text: string | undefined, key: Key): boolean {
    return this.#keys.press(text, key)
  }

  /** The whole screen, within its width and height. */
  text(size: ScreenSize): string {
    if (this.#look === undefined) return ''
    const text = this.#keys.isOpen ? this.#details(size) : this.#table(size, this.#look)
    return this.#note === '' ? text : `${text}\n${this.#note.slice(0, size.columns)}`
  }

  #table(size: ScreenSize, look: TopSnapshot): string {
    const rows = this.#keys.shown
    const chosen = this.#keys.chosenIndex
    const markOf = (index: number) => (chosen < 0 ? '' : index === chosen ? '> ' : '  ')
    const sorted = columns[this.#keys.order - 1]
    const isRising = (sorted?.value === undefined) !== this.#keys.isReversed
    const { heading, lines } = tableLines(rows, {
      isHuman: this.#isHuman,
      sheet: { ...size, columns: size.columns - markOf(-1).length },
      sorted,
      mark: isRising ? '↑' : '↓',
    })
    const waits = waitLines(rows, size)
    const room = Math.max(1, size.rows - 4 - waits.length)
    // Scrolls to keep the selected row visible.
    const from = Math.max(0, chosen - room + 1)
    const body = lines
      .slice(from, from + room)
      .map((line, offset) => colored(rows[from + offset], `${markOf(from + offset)}${line}`, size))
    if (lines.length === 0) body.push('No component id contains this text.')
    const hidden = lines.length - body.length
    return [
      titleOf(look, rows, size),
      styled(`${markOf(-1)}${heading}`, 'bold', size.color),
      ...body,
      ...waits,
      this.#footer(hidden > 0 ? `${hidden} more` : '', tableHelp, size),
    ].join('\n')
  }

  /** @param help the keys, within a width */
  #footer(more: string, help: (columns: number) => string, { columns: width, color }: ScreenSize): string {
    const states = [this.#keys.isPaused ? 'PAUSED' : '', this.#keys.filterText, more].filter((state) => state !== '')
    const taken = states.reduce((sum, state) => sum + state.length + 2, 0)
    return styled([...states, help(width - taken)].join('  ').slice(0, width), 'dim', color)
  }

  #details(size: ScreenSize): string {
    const row = this.#keys.chosenRow
    if (row === undefined)
      return [`${this.#keys.chosenKey} no longer exists.`, this.#footer('', detailsHelp, size)].join('\n')
    const rate = (value: number | undefined) => (value === undefined ? '' : `, ${value.toFixed(1)} a second`)
    const facts: readonly (readonly [string, string | undefined])[] = [
      ['inputs', row.inputs?.join(', ')],
      ['outputs', row.outputs?.join(', ')],
      ['events in', `${row.received_events_total}${rate(row.received_per_second)}`],
      ['events out', `${row.sent_events_total}${rate(row.sent_per_second)}`],
      ['bytes in', `${row.received_bytes_total} received, ${row.received_event_bytes_total} as events`],
      ['bytes out', `${row.sent_bytes_total} sent, ${row.sent_event_bytes_total} as events`],
      ['errors', String(row.errors_total)],
      ['filtered', `${row.filtered_events_total}, on purpose`],
      ['lost', String(lostOf(row))],
      ['busy', row.utilization === undefined ? undefined : `${Math.round(row.utilization * 100)} % of the time`],
      [
        'buffer',
        row.buffer_events === undefined
          ? undefined
          : `${counted(row.buffer_events, 'event')}, ${counted(row.buffer_bytes ?? 0, 'byte')}`,
      ],
    ]
    const lines = facts.flatMap(([name, value]) => (value === undefined ? [] : [`  ${name.padEnd(12)}${value}`]))
    return [
      styled(`${row.component_id}  (${row.component_kind} ${row.component_type})`, 'bold', size.color),
      ...lines.slice(0, Math.max(1, size.rows - 3)).map((line) => line.slice(0, size.columns)),
      this.#footer('', detailsHelp, size),
    ].join('\n')
  }
}
