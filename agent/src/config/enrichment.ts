// The enrichment tables of a configuration, which are read before the components are checked. Each table that events fill gets a sink.

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

/** A constant, so that its schema compiles only once. */
const members = { enrichment_tables: enrichmentOption }

/** Reads the tables, and reports each problem at the table's place in the configuration. */
export function readTables(raw: Raw, environment: Environment, problems: Problem[]): Tables | undefined {
  const located = raw.globals.get('enrichment_tables')
  if (located === undefined) return undefined
  const parsed = parseOptions(members, { enrichment_tables: located.value })
  // The check of the settings reports problems with the setting itself.
  if (!parsed.ok || parsed.value.enrichment_tables === undefined) return undefined
  const zone = raw.globals.get('timezone')?.value
  const timezone = typeof zone === 'string' && zone !== 'local' ? zone : localTimezone(environment)
  const tables = Tables.open(parsed.value.enrichment_tables, timezone)
  for (const { table, message } of tables.problems) {
    problems.push(problemAt(located, [table], { message: `the table "${table}" cannot be read: ${message}` }))
  }
  return tables
}

/** The sinks for the tables that events fill. */
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
          message: `the table "${id}" has the same name as a component`,
          help: 'rename one of them',
        }),
      )
      continue
    }
    const options = parseOptions(optionsOf(declaration).members, {})
    if (!options.ok) throw new Error('The defaults of the sink for tables do not match their schema.')
    const { inputs } = table
    components.push({ id, kind: 'sink', located: place, declaration, options: options.value, inputs, given: {} })
  }
  return components
}
