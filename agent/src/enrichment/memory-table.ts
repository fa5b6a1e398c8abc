// A table that events fill. Each field of an event becomes an entry, with its name as the key. Entries expire after a time.
// The table removes expired entries only when it writes new ones, so it needs no timer and need not be closed.

import { fieldNames, ownValue, type Value, type ValueObject } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import type { TableOptionsOf } from './options.ts'
import type { LoadedTable } from './table.ts'

/** Bytes of an entry without its key and its value. */
const entryBytes = 150

interface Entry {
  readonly value: Value
  readonly bytes: number
  /** Expiry time, in milliseconds of a monotonic clock. */
  readonly until: number
}

export class MemoryTable implements LoadedTable {
  readonly #options: TableOptionsOf<'memory'>
  readonly #now: () => number
  /** The entries, in the order in which they expire. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0
  #sweptAt: number

  constructor(options: TableOptionsOf<'memory'>, now: () => number = () => performance.now()) {
    this.#options = options
    this.#now = now
    this.#sweptAt = now()
  }

  /** Writes the fields of an event. Returns false if one did not fit. */
  write(fields: ValueObject): boolean {
    const now = this.#now()
    if (now - this.#sweptAt >= this.#options.scan_interval * 1000) this.#removeExpired(now)
    let fits = true
    for (const name of fieldNames(fields)) if (!this.#put(name, fields[name] as Value, now)) fits = false
    return fits
  }

  #put(key: string, value: Value, now: number): boolean {
    const maxBytes = this.#options.max_byte_size
    const bytes = entryBytes + Buffer.byteLength(key) + Buffer.byteLength(writeJson(value))
    const before = this.#entries.get(key)?.bytes ?? 0
    if (this.#bytes - before + bytes > maxBytes) {
      this.#removeExpired(now)
      if (this.#bytes - (this.#entries.get(key)?.bytes ?? 0) + bytes > maxBytes) return false
    }
    this.#bytes += bytes - (this.#entries.get(key)?.bytes ?? 0)
    this.#entries.delete(key)
    this.#entries.set(key, { value: ownValue(value), bytes, until: now + this.#options.ttl * 1000 })
    return true
  }

  #removeExpired(now: number): void {
    this.#sweptAt = now
    for (const [key, entry] of this.#entries) {
      if (entry.until > now) return
      this.#entries.delete(key)
      this.#bytes -= entry.bytes
    }
  }

  /** Current size, as limited by `max_byte_size`. */
  get bytes(): number {
    return this.#bytes
  }

  find(condition: Readonly<Record<string, Value>>, select: readonly string[] | undefined): readonly Value[] | string {
    const key = condition['key']
    if (Object.keys(condition).length !== 1 || typeof key !== 'string') {
      return 'the condition must have exactly one field, `key`, with a string'
    }
    const now = this.#now()
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.until <= now) return []
    const all: ValueObject = { key, value: entry.value, ttl: Math.ceil((entry.until - now) / 1000) }
    return [select === undefined ? all : Object.fromEntries(select.map((name) => [name, all[name] ?? null]))]
  }
}
