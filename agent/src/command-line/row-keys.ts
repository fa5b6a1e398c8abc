// Handles the keys for a table with changing rows: sort, filter, select a row, open and scroll it, pause and quit.

import type { Key } from 'node:readline'

export interface RowKeysOptions<Row> {
  /** Identifies a row, so that it stays selected when its content changes. */
  keyOf(row: Row): string
  /** The text that a filter searches. */
  nameOf(row: Row): string
  /** The sort orders that the left and right keys select; undefined keeps the order of the rows. */
  readonly orders: readonly (((a: Row, b: Row) => number) | undefined)[]
}

const keyHelps = ['Enter: details', 'left/right: sort', 'r: reverse', '/: filter', 'p: pause', 'q: quit']
/** Keys that a narrow terminal does not list, in this order. */
const expendableHelps = ['r: reverse', 'p: pause', '/: filter', 'left/right: sort', 'Enter: details']

/** The keys of a table, as far as they fit. */
export function tableHelp(columns: number): string {
  let shown = keyHelps
  for (const help of expendableHelps) {
    if (shown.join('  ').length <= columns) break
    shown = shown.filter((each) => each !== help)
  }
  return shown.join('  ')
}

export class RowKeys<Row> {
  readonly #options: RowKeysOptions<Row>
  #rows: readonly Row[] = []
  #order = 0
  #isReversed = false
  #isPaused = false
  #isTyping = false
  #filter = ''
  #chosen: string | undefined
  #isOpen = false
  #scrolled = 0

  constructor(options: RowKeysOptions<Row>) {
    this.#options = options
  }

  /** Updates the rows. A paused table keeps the rows that it shows. */
  update(rows: readonly Row[]): void {
    if (!this.#isPaused) this.#rows = rows
  }

  /** Number of rows, including those that the filter hides. */
  get count(): number {
    return this.#rows.length
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Index of the current order. */
  get order(): number {
    return this.#order
  }

  get isReversed(): boolean {
    return this.#isReversed
  }

  /** Whether the details of the selected row are open. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  get chosenKey(): string | undefined {
    return this.#chosen
  }

  /** The selected row; undefined if it no longer exists. */
  get chosenRow(): Row | undefined {
    return this.#rows.find((row) => this.#options.keyOf(row) === this.#chosen)
  }

  /** The text for the filter in the last line; empty if there is no filter. */
  get filterText(): string {
    if (!this.#isTyping && this.#filter === '') return ''
    return `filter: ${this.#filter}${this.#isTyping ? '_' : ''}`
  }

  /** The rows that match the filter, in the current order. */
  get shown(): readonly Row[] {
    const { nameOf, orders } = this.#options
    const filtered = this.#rows.filter((row) => nameOf(row).includes(this.#filter))
    const compare = orders[this.#order]
    const sorted = compare === undefined ? filtered : filtered.toSorted(compare)
    return this.#isReversed ? sorted.toReversed() : sorted
  }

  /** Index of the selected row among the shown rows, or -1. */
  get chosenIndex(): number {
    return this.shown.findIndex((row) => this.#options.keyOf(row) === this.#chosen)
  }

  /** The visible part of the opened row's `lines`: `room` lines, from the current scroll position. */
  scrolled(lines: readonly string[], room: number): readonly string[] {
    this.#scrolled = Math.min(this.#scrolled, Math.max(0, lines.length - room))
    return lines.slice(this.#scrolled, this.#scrolled + room)
  }

  /** Handles a key. Returns true if the user wants to quit. */
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
      else if (name === 'up') this.#scrolled = Math.max(0, this.#scrolled - 1)
      else if (name === 'down') this.#scrolled++
      return false
    }
    if (name === 'escape') {
      if (this.#filter === '') return true
      this.#filter = ''
    }
    if (name === 'right' || name === 'left') this.#sort(name === 'right' ? 1 : -1)
    if (name === 'r') this.#isReversed = !this.#isReversed
    if (name === 'up' || name === 'down') this.#choose(name === 'down' ? 1 : -1)
    if (name === 'return' || name === 'enter') this.#open()
    if (text === '/') this.#isTyping = true
    return false
  }

  #sort(by: number): void {
    const { length } = this.#options.orders
    this.#order = (this.#order + by + length) % length
  }

  #choose(by: number): void {
    const rows = this.shown
    const row = rows[Math.min(rows.length - 1, Math.max(0, this.chosenIndex + by))]
    this.#chosen = row === undefined ? undefined : this.#options.keyOf(row)
  }

  /** Opens the selected row, or the first one if none is selected. */
  #open(): void {
    if (this.chosenIndex < 0) this.#choose(1)
    this.#isOpen = this.chosenIndex >= 0
    this.#scrolled = 0
  }

  #type(text: string | undefined, name: string | undefined): void {
    if (name === 'return' || name === 'enter') this.#isTyping = false
    else if (name === 'escape') {
      this.#isTyping = false
      this.#filter = ''
    } else if (name === 'backspace') this.#filter = this.#filter.slice(0, -1)
    else if (text !== undefined && /^[\w./-]$/.test(text)) this.#filter += text
  }
}
