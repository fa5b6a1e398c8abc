// The tables of the guide for Vector: component by component, from the declarations.

import { components } from '@penstock/agent/registry'
import { mappingTables } from '../page.ts'
import { refusedSinks, refusedSources, refusedTransforms, settings } from './refusals.ts'
import { rewritings } from './transforms.ts'

const known = (kind: string) =>
  components
    .filter((component) => component.kind === kind)
    .flatMap(({ type, aliases = [] }) =>
      (aliases.length > 0 ? aliases : [type]).map((name) => ({
        name,
        becomes: name === type ? 'the same' : `\`${type}\``,
        options: {},
      })),
    )

export function vectorTables(): string {
  const rewritten = rewritings.map(({ type, becomes }) => ({ name: type, becomes, options: {} }))
  const rows = Object.entries(settings).map(([name, { becomes }]) => `| \`${name}\` | ${becomes} |`)
  return [
    mappingTables('Sources', known('source'), refusedSources),
    mappingTables('Transforms', [...known('transform'), ...rewritten], refusedTransforms),
    mappingTables('Sinks', known('sink'), refusedSinks),
    ['## Settings of the agent', '', '| Setting | In a cluster |', '|---|---|', ...rows, ''].join('\n'),
  ].join('\n')
}
