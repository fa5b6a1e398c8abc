// The output `label_router`: each route takes the events whose facts about the pod meet its conditions, and leads them to a label. An event
// takes all routes that it meets.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Context } from '../fluent-bit/plugin.ts'
import { isOn } from '../fluent-bit/sections.ts'
import type { Described } from '../page.ts'
import { childrenOf, listOf, type Plugged, parameter } from './element.ts'
import type { Element } from './syntax.ts'

export const labelRouter: Described = {
  name: 'label_router',
  becomes: 'a filter transform for each route, behind which the filters and matches of its label follow',
  options: {
    route: 'a condition by the fields below `.kubernetes`',
    default_route: 'the label for events that no route takes',
    default_tag: 'the tag of events that no route takes',
  },
  itself: {
    emit_mode: 'events go on one by one',
    sticky_tags: 'every event is looked at',
    metrics: 'transforms have metrics',
    default_metrics_labels: 'metrics have the name of the transform',
  },
}

/** A way that events may take. */
export interface Route {
  readonly at: Element
  readonly condition: string
  readonly label: string | undefined
  readonly tag: string | undefined
}

export function routesOf(section: Plugged, context: Context): readonly Route[] {
  const routes = childrenOf(section.element, 'route').map((route): Route => {
    // The first match that an event meets says whether the route takes it.
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

/** Names with their values: `a:b,c:d`, or an object of JSON. */
function pairsIn(text: string | undefined): readonly (readonly [string, string])[] {
  if (text === undefined) return []
  try {
    const object: unknown = JSON.parse(text)
    if (typeof object === 'object' && object !== null)
      return Object.entries(object).map(([name, value]) => [name, String(value)])
  } catch {
    // A text that is no JSON has pairs.
  }
  return listOf(text).map((pair) => {
    const at = pair.indexOf(':')
    return [pair.slice(0, at < 0 ? undefined : at), at < 0 ? '' : pair.slice(at + 1)]
  })
}
