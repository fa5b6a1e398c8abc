// The argument that names an enrichment table: a name that no table of the configuration has does not compile.

import { closest } from '../schema/problems.ts'
import type { CallSite } from './function.ts'

export function checkTable(call: CallSite): void {
  const name = call.constant('table')
  const { tableNames } = call.runtime
  if (typeof name !== 'string' || tableNames === undefined || tableNames.includes(name)) return
  const near = closest(name, tableNames)
  const help = near === undefined ? 'tables stand below `enrichment_tables`' : `did you mean "${near}"?`
  call.reject(`there is no enrichment table "${name}"; ${help}`)
}
