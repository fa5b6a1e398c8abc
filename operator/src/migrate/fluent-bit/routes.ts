// Routes of the YAML syntax: conditions on the records of an input, which choose outputs. Fluent Bit checks them after the processors of the
// input and before the filters. The name of the route becomes the tag of its records, so only filters that match this name apply.

import { pluginOf } from './names.ts'
import type { Context } from './plugin.ts'
import { conditionIn } from './processors.ts'
import { conditionKey, type Entry, entriesOf, lastValue, routeFallback, routeOutput, type Section } from './sections.ts'

export interface Route {
  readonly section: Section
  readonly name: string
  /** The condition of its records; undefined for all records of the input, which then keep their tag. */
  readonly condition: string | undefined
  readonly outputs: readonly Section[]
}

export function routesOf({ routes = [] }: Section, outputs: readonly Section[], context: Context): readonly Route[] {
  const conditions = routes.map((route) => conditionOfRoute(route, context))
  // A record without another route takes the default one. Routes without a condition do not count.
  const others = conditions.filter((condition) => condition !== 'default' && condition !== undefined)
  const rest = others.length === 0 ? 'true' : others.map((condition) => `!(${condition})`).join(' && ')
  return routes.map((section, index) => {
    const name = lastValue(section, 'name') ?? `route-${index + 1}`
    const condition = conditions[index] === 'default' ? rest : conditions[index]
    for (const entry of entriesOf(section, routeFallback)) {
      const reason =
        'Fluent Bit uses another output only if the configuration lacks the first one; the sink waits for its destination'
      context.replaced(entry, `route ${name}: fallback`, reason, 'Nothing to do.')
    }
    return { section, name, condition, outputs: outputsOf(section, name, outputs, context) }
  })
}

function conditionOfRoute(section: Section, context: Context): string | undefined {
  const entry = section.entries.find(({ key }) => key === conditionKey)
  if (entry === undefined) return undefined
  if (isDefault(entry)) return 'default'
  const condition = conditionIn(entry)
  if (condition !== undefined) return condition
  const reason = 'the condition has an unknown rule, so no record takes the route'
  context.gap(entry, 'routes: condition', reason, 'Write the condition of its filter transform.')
  return 'false'
}

const isDefault = ({ value }: Entry) => /^true$/i.test(String(Reflect.get(JSON.parse(value) as object, 'default')))

/** The outputs that a route names by their alias, by their plugin and number, or by their plugin. */
function outputsOf(section: Section, route: string, outputs: readonly Section[], context: Context): readonly Section[] {
  return entriesOf(section, routeOutput).flatMap((entry) => {
    const found = outputs.find((output, index) => {
      const plugin = pluginOf(output)
      return [lastValue(output, 'alias'), `${plugin}.${index}`, plugin].includes(entry.value)
    })
    if (found !== undefined) return [found]
    const reason = `no output has the alias or the name \`${entry.value}\``
    context.gap(entry, `route ${route}: ${entry.value}`, reason, 'Set `alias` of the output, and convert again.')
    return []
  })
}
