// Connectors: they pass the events of one pipeline to others.

import type { Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { type Context, each, type Mapping, none, type Part } from './mapping.ts'
import { Program } from './ottl/compile.ts'
import { type Node, parseCondition, parseStatement, Unconvertible } from './ottl/syntax.ts'

interface Passed {
  /** The pipeline that receives. */
  readonly target: string
  readonly steps: readonly Step[]
}

/** Gives, for the pipelines that have the connector as a receiver, what each of them gets. */
type Passing = (targets: readonly string[]) => readonly Passed[]

const forward: Mapping<Passing> = {
  name: 'forward',
  becomes: 'the `inputs` of the next component',
  options: {},
  build: () => (targets) => targets.map((target) => ({ target, steps: [] })),
}

interface Route {
  /** Lines that set the variable of the route. */
  readonly lines: readonly string[]
  readonly variable: string
  readonly pipelines: readonly string[]
}

/** The condition of a route: that of a statement `route() where …`, or the text alone. */
function conditionNode(part: Part): Node | undefined {
  const condition = part.text('condition')
  if (condition !== undefined) return parseCondition(condition)
  return parseStatement(part.text('statement') ?? '').where
}

function routesOf(part: Part, context: Context): Route[] {
  return part.tables('table').map((table, index) => {
    const row = part.within(['table', index], table, part.id)
    context.reportOptions(row, { name: 'table', options: routeOptions })
    const variable = `route${index + 1}`
    const pipelines = row.list('pipelines')
    const name = row.text('context') ?? 'resource'
    try {
      if (name !== 'resource' && name !== 'log')
        throw new Unconvertible(`the context \`${name}\` is none of log records`)
      const node = conditionNode(row)
      const program = new Program(name)
      const lines = program.newLines()
      const test = node === undefined ? 'true' : program.condition(node, lines, false)
      return { lines: [...lines.text(), `${variable} = ${test}`], variable, pipelines }
    } catch (error) {
      if (!(error instanceof Unconvertible)) throw error
      context.gap(
        row.place(),
        `${part.id}: route ${index + 1}`,
        `the condition is not converted: ${error.message}`,
        'No event takes the route. Correct the conditions of the filter transforms.',
      )
      return { lines: [`${variable} = false`], variable, pipelines }
    }
  })
}

const routeOptions = { context: '', statement: '', condition: '', pipelines: '' }

const routing: Mapping<Passing> = {
  name: 'routing',
  becomes: 'a filter transform for each pipeline that it passes events to',
  options: {
    table: 'the conditions',
    default_pipelines: 'the pipelines of events that no condition takes',
    match_once: '`false`: every condition that holds counts, not the first alone',
  },
  itself: { error_mode: 'a condition that fails is false' },
  build: (part, context) => {
    const routes = routesOf(part, context)
    const isOnce = part.flag('match_once', true)
    const noneOf = (list: readonly Route[]) => list.map(({ variable }) => `!${variable}`)
    return (targets) =>
      targets.map((target) => {
        const tests = routes.flatMap(({ variable, pipelines }, index) =>
          pipelines.includes(target)
            ? [[...(isOnce ? noneOf(routes.slice(0, index)) : []), variable].join(' && ')]
            : [],
        )
        if (part.list('default_pipelines').includes(target)) tests.push(noneOf(routes).join(' && ') || 'true')
        const lines = routes.flatMap((route) => route.lines)
        const text = [...lines, tests.map((test) => `(${test})`).join(' || ') || 'false'].join('\n')
        return { target, steps: [{ type: 'filter', text }] }
      })
  },
}

export const connectors: readonly Mapping<Passing>[] = [forward, routing]

export const refusedConnectors: readonly Refusal[] = [
  ...each(
    ['count', 'sum', 'signaltometrics', 'exceptions', 'datadog'],
    'events are not counted as metrics',
    'Count at the destination.',
  ),
  ...each(
    ['spanmetrics', 'servicegraph', 'grafanacloud'],
    'traces are not collected',
    'Keep the collector for traces.',
  ),
  none(
    'failover',
    'a sink has one destination',
    'Give `search_engine` several `endpoints`, or a balancer in front of the destination.',
  ),
  none('roundrobin', 'events are not dealt out in turn', 'Put a balancer in front of the destination.'),
]
