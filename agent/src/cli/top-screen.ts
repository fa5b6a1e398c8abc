// `top` on a terminal: what keys do to the table. Sort, filter, choose a component and show it whole, pause and quit.

import type { Key } from 'node:readline'
import { styled } from '../formats/pretty.ts'
import type { Sheet } from '../terminal.ts'
import { type Column, colored, columns, type Look, lostOf, type Row, tableLines, titleOf } from './top-table.ts'

export interface ScreenSize extends Sheet {
  readonly columns: number
  readonly rows: number
}

const help = 'Enter: details  left/right: sort  r: reverse  /: filter  p: pause  q: quit'
const detailsHelp = 'Esc: back  p: pause  q: quit'

/** What is seen, and the choices of the person who looks. */
export class TopScreen {
  readonly #isHuman: boolean
  #look: Look | undefined
  #rows: readonly Row[] = []
  /** Undefined: in the order of the agent, from sources to sinks. */
  #sorted: Column | undefined
  #isReversed = false
  #isPaused = false
  #isTyping = false
  #filter = ''
  /** The id of the row that is chosen: it stays chosen wherever it moves. */
  #chosen: string | undefined
  #isOpen = false

  constructor(isHuman: boolean) {
    this.#isHuman = isHuman
  }

  /** Takes the newest figures; a paused screen keeps those that it shows. */
  look(look: Look, rows: readonly Row[]): void {
    if (this.#isPaused) return
    this.#look = look
    this.#rows = rows
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
    if (this.#isOpen) {
      if (name === 'escape' || name === 'left') this.#isOpen = false
      return false
    }
    if (name === 'escape') return true
    if (name === 'right' || name === 'left') this.#sort(name === 'right' ? 1 : -1)
    if (name === 'r') this.#isReversed = !this.#isReversed
    if (name === 'up' || name === 'down') this.#choose(name === 'down' ? 1 : -1)
    if (name === 'return' || name === 'enter') {
      if (this.#index() < 0) this.#choose(1)
      this.#isOpen = this.#index() >= 0
    }
    if (text === '/') this.#isTyping = true
    return false
  }

  #sort(by: number): void {
    const choices = [undefined, ...columns]
    this.#sorted = choices[(choices.indexOf(this.#sorted) + by + choices.length) % choices.length]
  }

  #type(text: string | undefined, name: string | undefined): void {
    if (name === 'return' || name === 'enter') this.#isTyping = false
    else if (name === 'escape') {
      this.#isTyping = false
      this.#filter = ''
    } else if (name === 'backspace') this.#filter = this.#filter.slice(0, -1)
    else if (text !== undefined && /^[\w./-]$/.test(text)) this.#filter += text
  }

  #index(): number {
    return this.#order().findIndex((row) => row.component_id === this.#chosen)
  }

  #choose(by: number): void {
    const rows = this.#order()
    this.#chosen = rows[Math.min(rows.length - 1, Math.max(0, this.#index() + by))]?.component_id
  }

  /** The rows that are shown: words from A to Z, figures from the greatest on. */
  #order(): readonly Row[] {
    const shown = this.#rows.filter((row) => row.component_id.includes(this.#filter))
    const column = this.#sorted
    const sorted =
      column === undefined
        ? shown
        : shown.toSorted((a, b) =>
            column.value === undefined
              ? column.text(a, String).localeCompare(column.text(b, String))
              : column.value(b) - column.value(a),
          )
    return this.#isReversed ? sorted.toReversed() : sorted
  }

  /** The whole screen, no line wider and no more lines than it has. */
  text(size: ScreenSize): string {
    if (this.#look === undefined) return ''
    return this.#isOpen ? this.#details(size) : this.#table(size, this.#look)
  }

  #table(size: ScreenSize, look: Look): string {
    const rows = this.#order()
    const chosen = this.#index()
    const markOf = (index: number) => (chosen < 0 ? '' : index === chosen ? '> ' : '  ')
    const isRising = (this.#sorted?.value === undefined) !== this.#isReversed
    const { heading, lines } = tableLines(rows, {
      isHuman: this.#isHuman,
      sheet: { ...size, columns: size.columns - markOf(-1).length },
      sorted: this.#sorted,
      mark: isRising ? '^' : 'v',
    })
    const room = Math.max(1, size.rows - 4)
    // The row that is chosen stays in sight.
    const from = Math.max(0, chosen - room + 1)
    const body = lines
      .slice(from, from + room)
      .map((line, offset) => colored(rows[from + offset], `${markOf(from + offset)}${line}`, size))
    if (lines.length === 0) body.push('No component has this text in its id.')
    const hidden = lines.length - body.length
    return [
      titleOf(look, rows, size),
      styled(`${markOf(-1)}${heading}`, 'bold', size.color),
      ...body,
      this.#footer(hidden > 0 ? `${hidden} more` : '', help, size),
    ].join('\n')
  }

  #footer(more: string, keys: string, { columns: width, color }: ScreenSize): string {
    const isFiltered = this.#isTyping || this.#filter !== ''
    const states = [
      this.#isPaused ? 'PAUSED' : '',
      isFiltered ? `filter: ${this.#filter}${this.#isTyping ? '_' : ''}` : '',
      more,
      keys,
    ]
    const line = states.filter((state) => state !== '').join('  ')
    return styled(line.slice(0, width), 'dim', color)
  }

  #details(size: ScreenSize): string {
    const row = this.#rows.find((each) => each.component_id === this.#chosen)
    if (row === undefined)
      return [`${this.#chosen} is no longer there.`, this.#footer('', detailsHelp, size)].join('\n')
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
        row.buffer_events === undefined ? undefined : `${row.buffer_events} events, ${row.buffer_bytes ?? 0} bytes`,
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
