// The tables of the guide for the OpenTelemetry collector.

import { type Described, mappingTables, type Refusal, refusalTable } from '../page.ts'
import { connectors, refusedConnectors } from './connectors.ts'
import { eventObject } from './events.ts'
import { exporters, refusedExporters } from './exporters.ts'
import { extensions, refusedExtensions } from './extensions.ts'
import { operatorTable } from './operators.ts'
import { converters } from './ottl/converters.ts'
import { editors } from './ottl/editors.ts'
import { processors, refusedProcessors } from './processors.ts'
import { receivers, refusedReceivers } from './receivers.ts'

/** The collector's spelling of names. */
const written: Readonly<Record<string, string>> = {
  k8sevents: 'k8s_events',
  memorylimiter: 'memory_limiter',
  probabilisticsampler: 'probabilistic_sampler',
  splunkhec: 'splunk_hec',
}

const named = (mappings: readonly Described[]): Described[] =>
  mappings.map((mapping) => ({ ...mapping, name: written[mapping.name] ?? mapping.name }))

export function otelTables(): string {
  const tables = (title: string, mappings: readonly Described[], refusals: readonly Refusal[]) =>
    mappingTables(title, named(mappings), refusals)
  return [
    tables('Receivers', [...receivers, eventObject], refusedReceivers),
    mappingTables('Operators', operatorTable, [], ['type', 'id', 'output', 'if']),
    tables('Processors', processors, refusedProcessors),
    functions(),
    tables('Connectors', connectors, refusedConnectors),
    tables('Exporters', exporters, refusedExporters),
    [
      '## Extensions',
      '',
      '| Extension | Replacement | See |',
      '|---|---|---|',
      ...extensions.map(({ name, reason, nearest }) => `| \`${name}\` | ${reason} | ${nearest} |`),
      '',
    ].join('\n'),
    refusalTable('Extensions without a counterpart', refusedExtensions),
  ].join('\n')
}

function functions(): string {
  const rows = Object.entries({ ...editors, ...converters }).map(
    ([name, { becomes }]) => `| \`${name}\` | ${becomes} |`,
  )
  return ['## Functions of OTTL', '', '| Function | Becomes |', '|---|---|', ...rows, ''].join('\n')
}
