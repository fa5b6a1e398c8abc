// Enrichment tables of a configuration: read before the components are checked, and sinks for those that events fill.

import { erased } from '../component.ts'
import { enrichmentOption, type TableOptions } from '../enrichment/options.ts'
import { Tables } from '../enrichment/tables.ts'
import type { Environment } from '../environment.ts'
import type { Problem } from '../schema/problems.ts'
import { parseOptions } from '../schema/validate.ts'
import { memoryTable } from '../sinks/memory_table.ts'
import { type Component, optionsOf } from './component-options.ts'
import { localTimezone } from './globals.ts'
import type { Raw } from './merge.ts'
import { type Located, member, problemAt } from './place.ts'

/** One object, so that it is compiled once. */
const members = { enrichment_tables: enrichmentOption }

/** Reads the tables; a problem of a table has its place. */
export function readTables(raw: Raw, environment: Environment, problems: Problem[]): Tables | undefined {
  const located = raw.globals.get('enrichment_tables')
  if (located === undefined) return undefined
  const parsed = parseOptions(members, { enrichment_tables: located.value })
  // The check of the settings reports problems of the setting itself.
  if (!parsed.ok || parsed.value.enrichment_tables === undefined) return undefined
  const zone = raw.globals.get('timezone')?.value
  const timezone = typeof zone === 'string' && zone !== 'local' ? zone : localTimezone(environment)
  const tables = Tables.open(parsed.value.enrichment_tables, timezone)
  for (const { table, message } of tables.problems) {
    problems.push(problemAt(located, [table], { message: `the table "${table}" cannot be read: ${message}` }))
  }
  return tables
}

/** Sinks of the tables that events fill. */
export function tableSinks(
  tables: Readonly<Record<string, TableOptions>>,
  raw: Raw,
  problems: Problem[],
): readonly Component[] {
  const located = raw.globals.get('enrichment_tables') as Located
  const declaration = erased(memoryTable)
  const components: Component[] = []
  for (const [id, table] of Object.entries(tables)) {
    if (table.type !== 'memory') continue
    const place = member(located, id)
    if (raw.sources.has(id) || raw.transforms.has(id) || raw.sinks.has(id)) {
      problems.push(
        problemAt(place, [], {
          atKey: true,
          message: `the table "${id}" has the name of a component`,
          help: 'give one of the two another name',
        }),
      )
      continue
    }
    const options = parseOptions(optionsOf(declaration).members, {})
    if (!options.ok) throw new Error('The defaults of the sink of tables do not fit their own schema.')
    const { inputs } = table
    components.push({ id, kind: 'sink', located: place, declaration, options: options.value, inputs, given: {} })
  }
  return components
}
