// Shared by functions that search enrichment tables: their parameters, and the lookup. A table name missing in the
// configuration does not compile.

import { fieldNames, type Value, type ValueObject } from '../event/value.ts'
import { closest } from '../schema/problems.ts'
import { caseSensitive } from './elements.ts'
import { type CallSite, failure, type RemapError } from './function.ts'
import { kinds } from './kind.ts'

export const lookupParameters = [
  { name: 'table', kind: kinds.string, description: 'Name of the table.' },
  { name: 'condition', kind: kinds.object, description: 'Fields and their required values.' },
  {
    name: 'select',
    kind: kinds.array,
    required: false,
    description: 'Fields of a record in the result; all if absent.',
  },
  caseSensitive,
  {
    name: 'wildcard',
    kind: kinds.string,
    required: false,
    description: 'A wildcard value in the table that matches any value.',
  },
] as const

/** Result of a lookup: all records, or the reason why there are none. */
export type Lookup = (
  table: string,
  condition: ValueObject,
  select: readonly Value[] | undefined,
  exactly: boolean,
  wildcard: string | undefined,
) => readonly Value[] | RemapError

export function compileLookup(call: CallSite): Lookup {
  checkTable(call)
  return (name, condition, select, exactly, wildcard) => {
    const table = call.runtime.table(name)
    if (table === undefined) return failure(`table ${name} not loaded`)
    const wanted = Object.fromEntries(fieldNames(condition).map((field) => [field, condition[field] as Value]))
    const found = table.find(wanted, select?.map(String), exactly, wildcard)
    return typeof found === 'string' ? failure(found) : found
  }
}

function checkTable(call: CallSite): void {
  const name = call.constant('table')
  const { tableNames } = call.runtime
  if (typeof name !== 'string' || tableNames === undefined || tableNames.includes(name)) return
  const near = closest(name, tableNames)
  const help = near === undefined ? 'tables are configured in `enrichment_tables`' : `did you mean "${near}"?`
  call.reject(`there is no enrichment table "${name}"; ${help}`)
}
