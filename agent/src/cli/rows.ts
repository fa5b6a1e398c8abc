// The results of a command, for people and for machines: a single declaration of a row's fields provides table, JSON and
// YAML.

import { stringify } from 'yaml'

export const rowFormats = ['table', 'json', 'yaml'] as const
export type RowFormat = (typeof rowFormats)[number]

/** Formats of a command that also has a text format. */
export const outputFormats = ['text', ...rowFormats] as const

export interface Field<Row> {
  /** Its key in JSON and YAML, where undefined values are omitted. */
  readonly name: string
  readonly value: (row: Row) => unknown
  /** Heading of its column; undefined: not shown in tables. */
  readonly column?: string
  /** The text of its column, replacing the value. */
  readonly cell?: (row: Row) => string | undefined
}

/** Several rows: a list in JSON and YAML. */
export function rowsText<Row>(fields: readonly Field<Row>[], rows: readonly Row[], format: RowFormat): string {
  return format === 'table'
    ? table(fields, rows)
    : plainText(
        rows.map((row) => plain(fields, row)),
        format,
      )
}

/** One row that was requested by name: an object in JSON and YAML. */
export function rowText<Row>(fields: readonly Field<Row>[], row: Row, format: RowFormat): string {
  return format === 'table' ? table(fields, [row]) : plainText(plain(fields, row), format)
}

function plainText(value: unknown, format: 'json' | 'yaml'): string {
  return format === 'json' ? `${JSON.stringify(value, null, 2)}\n` : stringify(value, { lineWidth: 0 })
}

function plain<Row>(fields: readonly Field<Row>[], row: Row): Readonly<Record<string, unknown>> {
  const pairs = fields.map(({ name, value }) => [name, value(row)] as const)
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined))
}

function table<Row>(fields: readonly Field<Row>[], rows: readonly Row[]): string {
  const columns = fields.filter(({ column }) => column !== undefined)
  const lines = [
    columns.map(({ column = '' }) => column),
    ...rows.map((row) =>
      columns.map(({ value, cell = () => cellText(value(row)) }) => (cell(row) ?? '-').replaceAll(/\s+/g, ' ')),
    ),
  ]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => [...(line[at] ?? '')].length)))
  const padded = (line: readonly string[]) =>
    line.map((cell, at) => (at === line.length - 1 ? cell : cell + ' '.repeat((widths[at] ?? 0) - [...cell].length)))
  return lines.map((line) => `${padded(line).join('   ')}\n`).join('')
}

function cellText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(', ')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return String(value)
}
