// A table that events fill: each field of an event is an entry, its name the key. Entries end after a time.
// Nothing is searched for ended entries but when others are written, so the table needs no timer and no end.

import { fieldNames, type Value, type ValueObject } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import type { TableOptionsOf } from './options.ts'
import type { LoadedTable } from './table.ts'

/** Bytes of an entry beside its key and its value. */
const entryBytes = 150

interface Entry {
  readonly value: Value
  readonly bytes: number
  /** Milliseconds of the clock that only goes forward. */
  readonly until: number
}

export class MemoryTable implements LoadedTable {
  readonly #options: TableOptionsOf<'memory'>
  readonly #now: () => number
  /** The one that ends first is the first. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0
  #searched: number

  constructor(options: TableOptionsOf<'memory'>, now: () => number = () => performance.now()) {
    this.#options = options
    this.#now = now
    this.#searched = now()
  }

  /** Writes the fields of an event; false if one had no room. */
  write(fields: ValueObject): boolean {
    const now = this.#now()
    if (now - this.#searched >= this.#options.scan_interval * 1000) this.#dropEnded(now)
    let room = true
    for (const name of fieldNames(fields)) if (!this.#put(name, fields[name] as Value, now)) room = false
    return room
  }

  #put(key: string, value: Value, now: number): boolean {
    const most = this.#options.max_byte_size
    const bytes = entryBytes + Buffer.byteLength(key) + Buffer.byteLength(writeJson(value))
    const before = this.#entries.get(key)?.bytes ?? 0
    if (this.#bytes - before + bytes > most) {
      this.#dropEnded(now)
      if (this.#bytes - (this.#entries.get(key)?.bytes ?? 0) + bytes > most) return false
    }
    this.#bytes += bytes - (this.#entries.get(key)?.bytes ?? 0)
    this.#entries.delete(key)
    this.#entries.set(key, { value, bytes, until: now + this.#options.ttl * 1000 })
    return true
  }

  #dropEnded(now: number): void {
    this.#searched = now
    for (const [key, entry] of this.#entries) {
      if (entry.until > now) return
      this.#entries.delete(key)
      this.#bytes -= entry.bytes
    }
  }

  /** Bytes as `max_byte_size` counts them. */
  get bytes(): number {
    return this.#bytes
  }

  find(condition: Readonly<Record<string, Value>>, select: readonly string[] | undefined): readonly Value[] | string {
    const key = condition['key']
    if (Object.keys(condition).length !== 1 || typeof key !== 'string') {
      return 'the table is asked by one field, `key`, which must be a text'
    }
    const now = this.#now()
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.until <= now) return []
    const all: ValueObject = { key, value: entry.value, ttl: Math.ceil((entry.until - now) / 1000) }
    return [select === undefined ? all : Object.fromEntries(select.map((name) => [name, all[name] ?? null]))]
  }
}
