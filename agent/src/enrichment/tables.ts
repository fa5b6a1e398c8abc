// The enrichment tables of a configuration. They are read together with the configuration; programs access only memory.

import { GivenFileError, readGivenFile } from '../given-file.ts'
import { addressTable } from './address-table.ts'
import { csvTable } from './csv-table.ts'
import { MemoryTable } from './memory-table.ts'
import type { TableOptions } from './options.ts'
import type { LoadedTable } from './table.ts'

export interface TableProblem {
  readonly table: string
  readonly message: string
}

export class Tables {
  readonly #tables: Map<string, LoadedTable>
  readonly problems: readonly TableProblem[]
  /** Files that tables were read from, to watch for changes. */
  readonly files: readonly string[]

  private constructor(tables: Map<string, LoadedTable>, problems: readonly TableProblem[], files: readonly string[]) {
    this.#tables = tables
    this.problems = problems
    this.files = files
  }

  /** Reads all tables. A table that cannot be read is reported in `problems` and is missing. */
  static open(options: Readonly<Record<string, TableOptions>>, timezone: string): Tables {
    const tables = new Map<string, LoadedTable>()
    const problems: TableProblem[] = []
    const files: string[] = []
    for (const [name, table] of Object.entries(options)) {
      if (table.type === 'file') files.push(table.file.path)
      else if (table.type !== 'memory') files.push(table.path)
      const opened = open(table, timezone)
      if (typeof opened === 'string') problems.push({ table: name, message: opened })
      else tables.set(name, opened)
    }
    return new Tables(tables, problems, files)
  }

  find(name: string): LoadedTable | undefined {
    return this.#tables.get(name)
  }

  memory(name: string): MemoryTable | undefined {
    const table = this.#tables.get(name)
    return table instanceof MemoryTable ? table : undefined
  }

  /** Replaces tables by those that were read later from the same options. Memory tables keep their entries. */
  replaceBy(later: Tables): void {
    for (const [name, table] of later.#tables) if (!(table instanceof MemoryTable)) this.#tables.set(name, table)
  }
}

/** Maximum size of a file. Databases of addresses have several hundred megabytes. */
const maxBytes = 1024 * 1024 * 1024

/** Opens a table; returns a message if this fails. */
function open(options: TableOptions, timezone: string): LoadedTable | string {
  if (options.type === 'memory') return new MemoryTable(options)
  const path = options.type === 'file' ? options.file.path : options.path
  let data: Buffer
  try {
    data = readGivenFile({ option: options.type === 'file' ? 'file.path' : 'path', path, maxBytes })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    const { code, reason } = error
    return code === 'ENOENT' ? `the file "${path}" does not exist` : `the file "${path}" cannot be read: ${reason}`
  }
  if (options.type === 'file') {
    const table = csvTable(data.toString('utf8'), options, timezone)
    return typeof table === 'string' ? `the file "${path}" is not usable: ${table}` : table
  }
  try {
    return addressTable(data, options.type === 'geoip' ? options : undefined)
  } catch (error) {
    return `the file "${path}" is not an MMDB database: ${(error as Error).message}`
  }
}
