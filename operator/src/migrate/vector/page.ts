// The tables of the guide for Vector, generated from the declarations of components.

import { components, findComponent, otherOptions } from '@penstock/agent/config'
import { mappingTables } from '../page.ts'
import { refusals } from './refusals.ts'
import { services } from './services.ts'
import { settings } from './settings.ts'
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

/** A source that exists only in resources of the operator for Vector. */
const ofOperator = { name: 'kubernetes_events', becomes: '`orchestrator_events`', options: {} }

const ofLines = {
  name: 'reduce',
  becomes:
    '`multiline` of the source, if it joins the lines of streams after transforms that do not read the lines; a gap otherwise',
  options: {},
}

export function vectorTables(): string {
  const rewritten = rewritings.map(({ type, becomes }) => ({ name: type, becomes, options: {} }))
  const rewrittenSinks = services
    .filter(({ type }) => findComponent('sink', type) === undefined)
    .map(({ type, becomes }) => ({ name: type, becomes, options: {} }))
  const sinks = [...known('sink'), ...rewrittenSinks]
  const rows = Object.entries(settings).map(([name, { becomes }]) => `| \`${name}\` | ${becomes} |`)
  const options = otherOptions
    .filter(({ kind, path }) => kind !== 'global' || path.includes('*'))
    .map(({ kind, types, path, example, when, instead }) => {
      const value = when === undefined ? '' : `: ${JSON.stringify(example)}`
      const kinds = kind === 'global' ? 'enrichment tables' : `all ${kind}s`
      const of = types === undefined ? kinds : types.map((type) => `\`${type}\``).join(', ')
      return `| \`${path}${value}\` | ${of} | ${instead} |`
    })
  return [
    mappingTables('Sources', [...known('source'), ofOperator], refusals.sources),
    mappingTables(
      'Transforms',
      [...known('transform'), ...rewritten, ofLines],
      refusals.transforms.filter(({ name }) => name !== ofLines.name),
    ),
    mappingTables(
      'Sinks',
      sinks,
      refusals.sinks.filter(({ name }) => !sinks.some((each) => each.name === name)),
    ),
    ['## Options of other versions', '', '| Option | Of | What to write |', '|---|---|---|', ...options, ''].join('\n'),
    ['## Settings of the agent', '', '| Setting | In a cluster |', '|---|---|', ...rows, ''].join('\n'),
  ].join('\n')
}
