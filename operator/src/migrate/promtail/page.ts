// The tables of the guide for Promtail.

import { ruleTable, stageTables } from '../loki/page.ts'
import { pushItself } from '../loki/push.ts'
import { mappingTables } from '../page.ts'
import { clientOptions, sections } from './convert.ts'
import { inputKinds, refusedInputs } from './jobs.ts'

export function promtailTables(): string {
  return [
    mappingTables('The file', [{ name: 'promtail.yaml', becomes: 'one Pipeline', ...sections }], []),
    mappingTables(
      'Inputs',
      inputKinds.map((kind) => ({ ...kind, options: {} })),
      refusedInputs,
    ),
    ruleTable('relabel_configs'),
    stageTables((name) => name),
    mappingTables(
      'Clients',
      [{ name: 'clients', becomes: '`log_aggregator`', options: clientOptions, itself: pushItself }],
      [],
    ),
  ].join('\n')
}
