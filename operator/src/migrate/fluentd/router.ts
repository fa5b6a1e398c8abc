// Converts the output `label_router`. A route has conditions on the metadata of the pod, and sends the events that meet them to a label. An
// event that matches several routes is sent along all of them.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Context } from '../fluent-bit/plugin.ts'
import type { Described } from '../page.ts'
import { childrenOf, isOn, listOf, type Plugged, parameter } from './element.ts'
import type { Element } from './syntax.ts'

export const labelRouter: Described = {
  name: 'label_router',
  becomes: 'a filter transform for each route, followed by the filters and matches of its label',
  options: {
    route: 'a condition on fields below `.kubernetes`',
    default_route: 'the label for events that match no route',
    default_tag: 'the tag of events that match no route',
  },
  itself: {
    emit_mode: 'the agent passes events on in its own batches',
    sticky_tags: 'the filter checks every event',
    metrics: 'transforms have metrics',
    default_metrics_labels: 'metrics carry the name of the transform',
  },
}

/** A route for events. */
export interface Route {
  readonly at: Element
  readonly condition: string
  readonly label: string | undefined
  readonly tag: string | undefined
}

export function routesOf(section: Plugged, context: Context): readonly Route[] {
  const routes = childrenOf(section.element, 'route').map((route): Route => {
    // The first `<match>` that an event meets decides whether the event takes the route.
    const condition = childrenOf(route, 'match').reduceRight((others, match) => {
      const test = testOf(match, context)
      if (isOn(parameter(match, 'negate'), false)) return others === 'false' ? others : `!(${test}) && (${others})`
      return others === 'false' ? test : `${test} || ${others}`
    }, 'false')
    return {
      at: route,
      condition,
      label: given(parameter(route, '@label')),
      tag: given(parameter(route, 'tag')),
    }
  })
  const label = given(parameter(section.element, 'default_route'))
  const tag = given(parameter(section.element, 'default_tag'))
  if (label === undefined && tag === undefined) return routes
  const condition = routes.map((each) => `!(${each.condition})`).join(' && ') || 'true'
  return [...routes, { at: section.element, condition, label, tag }]
}

const given = (text: string | undefined) => (text === '' ? undefined : text)

const known: ReadonlySet<string> = new Set(['labels', 'namespaces', 'hosts', 'container_names', 'negate'])

function testOf(match: Element, context: Context): string {
  for (const each of match.parameters) {
    if (known.has(each.key)) continue
    const reason = `the option \`${each.key}\` has no counterpart`
    context.gap(each, `label_router: ${each.key}`, reason, 'Add the condition to the filter transform of the route.')
  }
  const equal = (path: readonly string[], value: string) =>
    `${fieldLiteral(['kubernetes', ...path])} == ${textLiteral(value)}`
  const oneOf = (key: string, field: string) => {
    const values = listOf(parameter(match, key))
    return values.length === 0 ? [] : [`(${values.map((value) => equal([field], value)).join(' || ')})`]
  }
  const tests = [
    ...oneOf('hosts', 'host'),
    ...oneOf('container_names', 'container_name'),
    ...oneOf('namespaces', 'namespace_name'),
    ...pairsIn(parameter(match, 'labels')).map(([name, value]) => equal(['labels', name], value)),
  ]
  return tests.length === 0 ? 'true' : tests.join(' && ')
}

/** Pairs of names and values: `a:b,c:d`, or a JSON object. */
function pairsIn(text: string | undefined): readonly (readonly [string, string])[] {
  if (text === undefined) return []
  try {
    const object: unknown = JSON.parse(text)
    if (typeof object === 'object' && object !== null)
      return Object.entries(object).map(([name, value]) => [name, String(value)])
  } catch {
    // The text is not JSON, so it consists of pairs.
  }
  return listOf(text).map((pair) => {
    const at = pair.indexOf(':')
    return [pair.slice(0, at < 0 ? undefined : at), at < 0 ? '' : pair.slice(at + 1)]
  })
}
