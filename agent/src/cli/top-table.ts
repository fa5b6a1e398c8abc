// The table of `top`: a row for each component, with columns that a narrow terminal omits.

import type { ComponentView } from '../api/components.ts'
import { styled } from '../formats/pretty.ts'
import type { Sheet } from '../terminal.ts'

export interface TopSnapshot {
  readonly version: string
  readonly hostname: string
  readonly uptime_seconds: number
  readonly components: readonly ComponentView[]
}

/** The current state of a component; rates need an earlier snapshot. */
export interface Row extends ComponentView {
  readonly received_per_second?: number
  readonly sent_per_second?: number
}

/** The rows of a snapshot, with the rates since an earlier one. */
export function rowsOf(
  look: TopSnapshot,
  before: { readonly look: TopSnapshot; readonly seconds: number } | undefined,
): Row[] {
  const old = new Map(before?.look.components.map((component) => [component.component_id, component]))
  return look.components.map((component) => {
    const then = old.get(component.component_id)
    if (then === undefined || before === undefined || before.seconds === 0) return component
    const rate = (name: 'received_events_total' | 'sent_events_total') =>
      Math.max(0, component[name] - then[name]) / before.seconds
    return {
      ...component,
      received_per_second: rate('received_events_total'),
      sent_per_second: rate('sent_events_total'),
    }
  })
}

export interface TopColumn {
  readonly title: string
  text(row: Row, number: (value: number) => string): string
  /** Sort value of a row; a text column has none. */
  value?(row: Row): number
}

const counted = (title: string, value: (row: Row) => number | undefined): TopColumn => ({
  title,
  value: (row) => value(row) ?? -1,
  text: (row, number) => {
    const found = value(row)
    return found === undefined ? '-' : number(found)
  },
})

/** Bytes from a source's origin, bytes to a sink's destination, otherwise bytes of the events passed on. */
const bytesOf = (row: Row) =>
  row.component_kind === 'source'
    ? row.received_bytes_total
    : row.component_kind === 'sink'
      ? row.sent_bytes_total
      : row.sent_event_bytes_total

export const lostOf = (row: Row) => row.discarded_events_total - row.filtered_events_total

export const columns: readonly TopColumn[] = [
  { title: 'ID', text: (row) => row.component_id },
  { title: 'KIND', text: (row) => row.component_kind },
  { title: 'TYPE', text: (row) => row.component_type },
  counted('IN', (row) => row.received_events_total),
  counted('IN/s', (row) => row.received_per_second),
  counted('OUT', (row) => row.sent_events_total),
  counted('OUT/s', (row) => row.sent_per_second),
  {
    title: 'BYTES',
    value: bytesOf,
    text: (row, number) => (number === short ? `${short(bytesOf(row))}B` : number(bytesOf(row))),
  },
  counted('ERRORS', (row) => row.errors_total),
  counted('FILTERED', (row) => row.filtered_events_total),
  counted('LOST', lostOf),
  {
    title: 'BUSY',
    value: (row) => row.utilization ?? -1,
    text: ({ utilization }) => (utilization === undefined ? '-' : `${Math.round(utilization * 100)}%`),
  },
  counted('BUFFER', (row) => row.buffer_events),
]

/** Columns that a narrow terminal omits, in this order. */
const expendable = ['TYPE', 'BYTES', 'BUSY', 'KIND', 'FILTERED', 'BUFFER', 'IN', 'OUT']

export interface TopTableOptions {
  readonly isHuman: boolean
  readonly sheet: Sheet
  /** The column by which rows are sorted. */
  readonly sorted?: TopColumn | undefined
  readonly mark?: string
}

/**
 * The heading and a line for each row, within the width of the terminal. A Pipeline shared by all rows is named only
 * once.
 */
export function tableLines(
  rows: readonly Row[],
  { isHuman, sheet, sorted, mark = '' }: TopTableOptions,
): { readonly heading: string; readonly lines: readonly string[] } {
  const number = isHuman ? short : whole
  const common = sheet.columns === undefined ? '' : commonPrefix(rows.map((row) => row.component_id))
  const titles = columns.map((column) => (column === sorted ? `${column.title}${mark}` : column.title))
  const cells = rows.map((row) =>
    columns.map((column, index) => column.text(row, number).slice(index === 0 ? common.length : 0)),
  )
  const widths = titles.map((title, index) => Math.max(title.length, ...cells.map((row) => row[index]?.length ?? 0)))
  const kept = fitting(widths, sheet.columns, sorted)
  const line = (texts: readonly string[]) =>
    kept
      .map((index) => {
        const [cell = '', width = 0] = [texts[index], widths[index]]
        return index < 3 ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
      .slice(0, sheet.columns)
  return { heading: line(titles), lines: cells.map(line) }
}

export function titleOf(look: TopSnapshot, rows: readonly Row[], sheet: Sheet): string {
  const common = sheet.columns === undefined ? '' : commonPrefix(rows.map((row) => row.component_id))
  const of = common === '' ? '' : `, ${common.slice(0, -1)}`
  const title = `penstock-agent ${look.version} on ${look.hostname}${of}, up ${Math.round(look.uptime_seconds)} s`
  return title.slice(0, sheet.columns)
}

/** A line for each sink whose inputs wait for it. */
export function waitLines(rows: readonly Row[], sheet: Sheet): readonly string[] {
  return rows.flatMap(({ component_id: id, inputs = [], inputs_wait_seconds: seconds }) => {
    if (seconds === undefined) return []
    const line = `The buffer of ${id} has been full for ${seconds} s: ${inputs.join(', ')} must wait.`
    return [styled(line.slice(0, sheet.columns), 'yellow', sheet.color)]
  })
}

/** Red for errors, yellow for losses without an error. */
export function colored(row: Row | undefined, line: string, sheet: Sheet): string {
  if (row === undefined) return line
  if (row.errors_total > 0) return styled(line, 'red', sheet.color)
  return lostOf(row) > 0 ? styled(line, 'yellow', sheet.color) : line
}

/** The namespace and Pipeline with which all ids begin, up to the last slash; empty if they share none. */
function commonPrefix([first = '', ...others]: readonly string[]): string {
  const prefix = first.slice(0, first.lastIndexOf('/') + 1)
  return others.length > 0 && others.every((id) => id.lastIndexOf('/') + 1 === prefix.length && id.startsWith(prefix))
    ? prefix
    : ''
}

/** The indices of the columns that fit; the sorted column always stays. */
function fitting(
  widths: readonly number[],
  room = Number.POSITIVE_INFINITY,
  sorted: TopColumn | undefined,
): readonly number[] {
  let kept = columns.map((_, index) => index)
  for (const name of expendable) {
    if (kept.reduce((sum, index) => sum + 2 + (widths[index] as number), -2) <= room) break
    kept = kept.filter((index) => columns[index]?.title !== name || columns[index] === sorted)
  }
  return kept
}

const whole = (value: number) => String(Math.round(value))

/** A number of at most four characters and a unit. */
function short(value: number): string {
  const units = ['', 'k', 'M', 'G', 'T', 'P']
  let unit = 0
  let rest = value
  while (rest >= 1000 && unit < units.length - 1) {
    rest /= 1000
    unit++
  }
  return `${unit === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)}${units[unit]}`
}
