// A table of the records in a CSV file. Searches by the same columns share an index, which the first of them creates.

import { BoundedMap } from '../bounded-map.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Float, float, isObject, type Value, type ValueObject } from '../event/value.ts'
import { parseCsv } from '../formats/csv.ts'
import { compileStrftime, parseTimestamp } from '../formats/datetime.ts'
import { zoneOrUtc } from '../formats/timezone.ts'
import type { TableOptionsOf } from './options.ts'
import type { LoadedTable } from './table.ts'

type Convert = (text: string) => Value | undefined

/** Parses a table; returns a message if the text or the schema is not valid. */
export function csvTable(text: string, options: TableOptionsOf<'file'>, timezone: string): LoadedTable | string {
  const { delimiter, include_headers: headed } = options.file.encoding
  const records = parseCsv(text.replace(/^\ufeff/, ''), delimiter)
  const names = headed ? (records.shift() ?? []) : (records[0] ?? []).map((_, index) => String(index))
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate !== undefined) return `the column \`${duplicate}\` exists twice`
  const converters = new Map<string, Convert>()
  for (const [name, type] of Object.entries(options.schema)) {
    if (!names.includes(name))
      return `the column \`${name}\` in \`schema\` does not exist in the file, which has the columns ${names.join(', ')}`
    const convert = converterOf(type, timezone)
    if (convert === undefined) return `\`${type}\` is not a valid column type`
    converters.set(name, convert)
  }
  const rows: ValueObject[] = []
  for (const [index, record] of records.entries()) {
    const line = index + (headed ? 2 : 1)
    if (record.length !== names.length) {
      return `record ${line} has ${record.length} columns, expected ${names.length}`
    }
    const row: ValueObject = Object.create(null) as ValueObject
    for (const [column, name] of names.entries()) {
      const convert = converters.get(name)
      const value = convert === undefined ? (record[column] as string) : convert(record[column] as string)
      if (value === undefined) return `record ${line}: \`${name}\` is not a valid ${options.schema[name]}`
      row[name] = value
    }
    rows.push(row)
  }
  return new CsvTable(names, rows)
}

function converterOf(type: string, timezone: string): Convert | undefined {
  const [name, ...rest] = type.split('|')
  const format = rest.length === 0 ? undefined : rest.join('|')
  const zone = zoneOrUtc(timezone)
  switch (name) {
    case 'string':
      return (text) => text
    case 'integer':
      return (text) => {
        if (!/^[+-]?\d{1,19}$/.test(text)) return undefined
        const value = BigInt(text)
        return BigInt.asIntN(64, value) !== value
          ? undefined
          : Number.isSafeInteger(Number(value))
            ? Number(value)
            : value
      }
    case 'float':
      return (text) => (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? float(Number(text)) : undefined)
    case 'boolean':
      return (text) => {
        const lower = text.toLowerCase()
        if (['true', 't', 'yes', 'y', '1'].includes(lower)) return true
        return ['false', 'f', 'no', 'n', '0'].includes(lower) ? false : undefined
      }
    case 'date': {
      // The day begins at midnight.
      const compiled = compileStrftime(`${format ?? '%Y-%m-%d'} %H:%M`)
      return compiled.ok ? (text) => parseTimestamp(compiled, `${text} 00:00`, zone) : undefined
    }
    case 'timestamp': {
      const compiled = compileStrftime(format ?? '%+')
      return compiled.ok ? (text) => parseTimestamp(compiled, text, zone) : undefined
    }
    default:
      return undefined
  }
}

/** Finds rows by the values of some columns. */
interface Index {
  readonly numbers: ReadonlyMap<string, readonly number[]>
  readonly bytes: number
}

/** Estimated bytes of a row with a unique key in an index. */
const rowBytes = (keyLength: number) => 150 + 2 * keyLength

class CsvTable implements LoadedTable {
  readonly #names: readonly string[]
  readonly #rows: readonly ValueObject[]
  /** Indexes by case sensitivity and columns. Their number is limited, because conditions may come from data. */
  readonly #indexes: BoundedMap<Index>

  constructor(names: readonly string[], rows: readonly ValueObject[]) {
    this.#names = names
    this.#rows = rows
    // Every single index must fit. The largest one has all columns, and the limit is at least eight times its size.
    let largest = 0
    for (const row of rows) largest += rowBytes(names.reduce((sum, name) => sum + maxKeyLength(row[name]), 0))
    const maxBytes = Math.max(16 << 20, 8 * largest + (1 << 20))
    this.#indexes = new BoundedMap({ maxEntries: 64, maxBytes, sizeOf: ({ bytes }) => bytes })
  }

  find(
    condition: Readonly<Record<string, Value>>,
    select: readonly string[] | undefined,
    caseSensitive: boolean,
    wildcard: Value | undefined,
  ): readonly Value[] | string {
    const equal: string[] = []
    const ranges: string[] = []
    for (const name of Object.keys(condition)) {
      if (!this.#names.includes(name)) return `the table has no column ${name}`
      if (isRange(condition[name])) ranges.push(name)
      else equal.push(name)
    }
    for (const name of select ?? []) if (!this.#names.includes(name)) return `the table has no column ${name}`
    equal.sort()
    let numbers: Iterable<number> = this.#rows.keys()
    if (equal.length > 0) {
      const index = this.#index(equal, caseSensitive).numbers
      // Each column may match the value or the wildcard.
      let keys = ['']
      for (const name of equal) {
        const value = keyOf(condition[name], caseSensitive)
        const other = wildcard === undefined ? undefined : keyOf(wildcard, caseSensitive)
        keys = keys.flatMap((key) =>
          other === undefined || other === value ? [key + value] : [key + value, key + other],
        )
      }
      numbers =
        keys.length === 1
          ? (index.get(keys[0] as string) ?? [])
          : keys.flatMap((key) => index.get(key) ?? []).sort((left, right) => left - right)
    }
    const found: Value[] = []
    for (const number of numbers) {
      const row = this.#rows[number] as ValueObject
      if (ranges.every((name) => inRange(row[name], condition[name] as ValueObject))) {
        found.push(select === undefined ? { ...row } : Object.fromEntries(select.map((name) => [name, row[name]])))
      }
    }
    return found
  }

  #index(names: readonly string[], caseSensitive: boolean): Index {
    const id = JSON.stringify([caseSensitive, ...names])
    const known = this.#indexes.get(id)
    if (known !== undefined) return known
    const numbers = new Map<string, number[]>()
    let bytes = 0
    for (const [number, row] of this.#rows.entries()) {
      const key = names.map((name) => keyOf(row[name], caseSensitive)).join('')
      const there = numbers.get(key)
      if (there === undefined) {
        numbers.set(key, [number])
        bytes += rowBytes(key.length)
      } else {
        there.push(number)
        bytes += 8
      }
    }
    const index = { numbers, bytes }
    this.#indexes.set(id, index)
    return index
  }
}

/** A key that only equal values share, and that can be concatenated unambiguously. Rows contain no objects and no arrays. */
function keyOf(value: Value | undefined, caseSensitive: boolean): string {
  if (isObject(value) || Array.isArray(value)) return 'none'
  const given =
    value instanceof Float ? value.value : typeof value === 'object' && value !== null ? String(value) : value
  const text = typeof given === 'string' && !caseSensitive ? given.toLowerCase() : String(given)
  return `${typeof given === 'bigint' ? 'number' : typeof given}:${text.length}:${text}`
}

/** Maximum length of a value's key. A letter may become two in lowercase. */
function maxKeyLength(value: Value | undefined): number {
  return typeof value === 'string' ? 20 + 2 * value.length : 60
}

/** Whether a value is a time range `{ from, to }`, one of which may be missing. */
function isRange(value: Value | undefined): value is ValueObject {
  return isObject(value) && (value['from'] instanceof Timestamp || value['to'] instanceof Timestamp)
}

function inRange(value: Value | undefined, range: ValueObject): boolean {
  if (!(value instanceof Timestamp)) return false
  const { from, to } = range
  return !(from instanceof Timestamp && value.compare(from) < 0) && !(to instanceof Timestamp && value.compare(to) > 0)
}
