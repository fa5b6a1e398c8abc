// Runs the parts of a program that depend on few fields, once for all lines with equal values of those fields, and records the results.

import type { EventMetadata } from '../event/log.ts'
import { getField, setField, type Value, type ValueObject } from '../event/value.ts'
import { type Column, NewColumn, noValue, untouched, ValueRoom } from './columns.ts'
import type { ByteUnit, ColumnSource } from './form.ts'
import type { Kernel } from './kernel.ts'

// The fate of an event: a line that stays a line, no event, or the result of the whole program.
export const stays = 0
const ends = 1
export const runs = 2

/** Events as a program sees them after it has parsed the text. */
interface Found {
  readonly count: number
  readonly metadata: EventMetadata
  lineOf(index: number): number
  fieldOf(line: number, name: string): Value | undefined
  groups(fields: readonly string[]): Int32Array | undefined
}

/** Placeholder for a value that a unit does not read. */
const unread: ValueObject = Object.freeze({})

/** The results of a unit do not fit, or are nested too deeply: the caller then runs the program for the event. */
const needsRun = Symbol('needsRun')

export class Computation {
  readonly #found: Found
  readonly #older: readonly Column[]
  readonly #sources: readonly ColumnSource[]
  readonly #made: readonly NewColumn[]
  readonly #room: ValueRoom
  readonly #lineCount: number

  constructor(
    kernel: Kernel,
    lineCount: number,
    found: Found,
    older: readonly Column[],
    sources: readonly ColumnSource[],
  ) {
    this.#found = found
    this.#lineCount = lineCount
    this.#older = older
    this.#sources = sources
    this.#made = sources.map(() => new NewColumn(lineCount))
    this.#room = new ValueRoom(kernel, older)
  }

  /**
   * Returns the old and new columns. @param fates of events by their texts; updated for events that do not stay lines
   * @param ended records how the program ends for an event; false: it must be run
   */
  run(units: readonly ByteUnit[], fates: Uint8Array, ended: (end: object) => boolean): readonly Column[] {
    for (const [number, unit] of units.entries()) {
      const own = this.#made.filter((_, index) => {
        const source = this.#sources[index] as ColumnSource
        return 'unit' in source && source.unit === number
      })
      this.#runUnit(unit, own, fates, ended)
    }
    const hasRoom = this.#sources.every((source, index) => {
      const column = this.#made[index] as NewColumn
      if ('copied' in source) {
        return column.putUnder(this.#older[source.copied] as Column, this.#room) && column.fillWithNull(this.#room)
      }
      return source.over === undefined || column.putUnder(this.#older[source.over] as Column, this.#room)
    })
    if (!hasRoom) for (const [index, fate] of fates.entries()) if (fate === stays) fates[index] = runs
    return [...this.#older, ...this.#made]
  }

  #runUnit(unit: ByteUnit, columns: readonly NewColumn[], fates: Uint8Array, ended: (end: object) => boolean): void {
    const found = this.#found
    const groups = found.groups(unit.reads)
    // For each group, the line of the first event for which the program continues, plus one; or how the program ended.
    const lines = new Int32Array(this.#lineCount)
    const known = new Map<number, object | typeof needsRun>()
    for (let index = 0; index < found.count; index++) {
      if (fates[index] !== stays) continue
      const line = found.lineOf(index)
      const group = groups === undefined ? -1 : (groups[index] as number)
      const first = group < 0 ? 0 : (lines[group] as number)
      if (first > 0) {
        for (const { places } of columns) places[line] = places[first - 1] as number
        continue
      }
      const end = known.get(group) ?? this.#run(unit, columns, line)
      if (end === undefined) {
        if (group >= 0) lines[group] = line + 1
        continue
      }
      if (group >= 0) known.set(group, end)
      fates[index] = typeof end === 'object' && ended(end) ? ends : runs
    }
  }

  /** Runs a unit for a line. Returns how the program ended; undefined if it continues. */
  #run(unit: ByteUnit, columns: readonly NewColumn[], line: number): object | typeof needsRun | undefined {
    const { reads, writes } = unit
    const found = this.#found
    const fields: ValueObject = {}
    for (const name of reads) {
      const value = found.fieldOf(line, name)
      if (value !== undefined) setField(fields, name, value)
    }
    for (const name of writes) if (!reads.includes(name)) setField(fields, name, unread)
    const end = unit.run(fields, found.metadata)
    if (end !== undefined) return end
    for (let field = 0; field < writes.length; field++) {
      const name = writes[field] as string
      const column = columns[field] as NewColumn
      const before = reads.includes(name) ? found.fieldOf(line, name) : unread
      const after = getField(unit.after, name)
      const place = Object.is(after, before) ? untouched : after === undefined ? noValue : column.add(after, this.#room)
      if (place === undefined) return needsRun
      column.places[line] = place
    }
    return undefined
  }
}
