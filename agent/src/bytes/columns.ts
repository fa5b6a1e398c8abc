// Values that programs have computed for byte lines: one column per field, with an entry for each line.

import { Body } from '../event/body.ts'
import { memberSize } from '../event/size.ts'
import type { Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import type { Kernel } from './kernel.ts'

/** The entry of a line without a value number: no such field, or the field that exists without the column. */
export const noValue = -1
export const untouched = -2

export interface Column {
  /** For each line, the number of a value, `noValue` or `untouched`. */
  readonly places: Int32Array
  readonly values: readonly Value[]
  /** Estimated sizes of the values, without names. */
  readonly sizes: readonly number[]
  /** The JSON of all values, and the end of each. */
  readonly json: Body
  readonly ends: readonly number[]
}

export const noColumns: readonly Column[] = []

/** Tracks the kernel's remaining room for values. */
export class ValueRoom {
  #values: number
  #bytes: number

  constructor(kernel: Kernel, columns: readonly Column[]) {
    this.#values = kernel.at('maxValues')
    this.#bytes = kernel.at('maxValueBytes')
    for (const { values, json } of columns) this.take(values.length, json.length)
  }

  /** Reserves room for values; false if there is not enough. */
  take(values: number, bytes: number): boolean {
    if (this.#values < values || this.#bytes < bytes) return false
    this.#values -= values
    this.#bytes -= bytes
    return true
  }
}

/** A column under construction. */
export class NewColumn implements Column {
  readonly places: Int32Array
  readonly values: Value[] = []
  readonly sizes: number[] = []
  readonly json = new Body(64)
  readonly ends: number[] = []

  constructor(lineCount: number) {
    this.places = new Int32Array(lineCount).fill(untouched)
  }

  /** Adds a value, and returns its number; undefined if it does not fit or is nested too deeply. */
  add(value: Value, room: ValueRoom): number | undefined {
    const { json } = this
    const start = json.length
    try {
      const size = memberSize('', value) - 4
      json.writeText(writeJson(value))
      if (!room.take(1, json.length - start)) {
        json.length = start
        return undefined
      }
      this.sizes.push(size)
      this.ends.push(json.length)
      return this.values.push(value) - 1
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      json.length = start
      return undefined
    }
  }

  /** Fills the gaps of this column with the values of an older column; false if they do not fit. */
  putUnder(older: Column, room: ValueRoom): boolean {
    const shift = this.values.length
    const start = this.json.length
    if (!room.take(older.values.length, older.json.length)) return false
    this.json.writeBytes(older.json.view())
    for (const [index, value] of older.values.entries()) {
      this.values.push(value)
      this.sizes.push(older.sizes[index] as number)
      this.ends.push(start + (older.ends[index] as number))
    }
    for (let line = 0; line < this.places.length; line++) {
      const place = older.places[line] as number
      if (this.places[line] === untouched) this.places[line] = place < 0 ? place : place + shift
    }
    return true
  }

  /** Fills the gaps with null; false if that does not fit. */
  fillWithNull(room: ValueRoom): boolean {
    const place = this.add(null, room)
    if (place === undefined) return false
    for (let line = 0; line < this.places.length; line++) if (this.places[line] === noValue) this.places[line] = place
    return true
  }
}

/**
 * Splits groups of events in which these columns differ. The number of a new group is also the line of its first event.
 * @param lineOf returns the line of an event
 */
export function splitBy(
  unsplit: Int32Array,
  columns: readonly Column[],
  lineOf: (index: number) => number,
): Int32Array {
  const groups = unsplit.slice()
  for (const { places, values } of columns) {
    const firsts = new Map<number, number>()
    for (let index = 0; index < groups.length; index++) {
      const group = groups[index] as number
      if (group < 0) continue
      const line = lineOf(index)
      const pair = group * (values.length + 2) + (places[line] as number) + 2
      const first = firsts.get(pair) ?? line
      if (first === line) firsts.set(pair, line)
      groups[index] = first
    }
  }
  return groups
}

/** Loads columns into the kernel. They must fit. */
export function enterColumns(kernel: Kernel, columns: readonly Column[]): void {
  const { content, memory, values: list } = kernel
  if (content.columns === columns) return
  content.columns = columns
  const maxLines = kernel.at('maxLines')
  let first = kernel.at('valueBytes')
  let next = 0
  for (const [number, { places, sizes, json, ends }] of columns.entries()) {
    kernel.columns.set(places, number * maxLines)
    memory.set(json.view(), first)
    let start = 0
    for (let index = 0; index < ends.length; index++) {
      const end = ends[index] as number
      list[next] = first + start
      list[next + 1] = end - start
      list[next + 2] = sizes[index] as number
      next += 3
      start = end
    }
    first += json.length
  }
}
