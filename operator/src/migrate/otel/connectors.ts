// Connectors, which pass the events of one pipeline to others.

import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { type Context, each, type Mapping, type Part } from './mapping.ts'
import { Program } from './ottl/compile.ts'
import { type Node, parseCondition, parseStatement, Unconvertible } from './ottl/syntax.ts'
import { indent } from './text.ts'

interface Passed {
  /** The receiving pipeline. */
  readonly target: string
  readonly steps: readonly Step[]
}

/** For each pipeline that has the connector as a receiver, returns the components whose events it receives. */
type Passing = (targets: readonly string[]) => readonly Passed[]

const forward: Mapping<Passing> = {
  name: 'forward',
  becomes: 'the `inputs` of the next component',
  options: {},
  build: () => (targets) => targets.map((target) => ({ target, steps: [] })),
}

interface Route {
  /** Lines that compute the variable of the route. */
  readonly lines: readonly string[]
  readonly variable: string
  /** The program of a statement that also changes the records of the route. */
  readonly change?: string
  /** Whether later routes also get the records of the route. */
  readonly isCopied: boolean
  readonly pipelines: readonly string[]
}

/** The condition of a route: from a statement such as `route() where …`, or the text itself. */
function conditionNode(part: Part): Node | undefined {
  const condition = part.text('condition')
  if (condition !== undefined) return parseCondition(condition)
  return parseStatement(part.text('statement') ?? '').where
}

/** The program of a statement that changes records, such as `delete_key(…) where …`. Its condition chooses the route. */
function changeOf(part: Part, context: 'resource' | 'log'): string | undefined {
  const text = part.text('statement')
  if (text === undefined || part.has('condition')) return undefined
  const { editor } = parseStatement(text)
  if (editor.name === 'route') return undefined
  const program = new Program(context)
  program.run({ editor, where: undefined }, text)
  return program.text()
}

function routesOf(part: Part, context: Context): Route[] {
  return part.tables('table').map((table, index) => {
    const row = part.within(['table', index], table, part.id)
    context.reportOptions(row, { name: 'table', options: routeOptions })
    const variable = `route${index + 1}`
    const pipelines = row.list('pipelines')
    const isCopied = row.text('action') === 'copy'
    const name = row.text('context') ?? 'resource'
    try {
      if (name !== 'resource' && name !== 'log')
        throw new Unconvertible(`the context \`${name}\` is none of log records`)
      const node = conditionNode(row)
      const program = new Program(name)
      const lines = program.newLines()
      const test = node === undefined ? 'true' : program.condition(node, lines)
      const change = changeOf(row, name)
      return {
        lines: [...lines.text(), `${variable} = ${test}`],
        variable,
        isCopied,
        pipelines,
        ...(change === undefined ? {} : { change }),
      }
    } catch (error) {
      if (!(error instanceof Unconvertible)) throw error
      context.gap(
        row.place(),
        `${part.id}: route ${index + 1}`,
        `the condition is not converted: ${error.message}`,
        'The route receives no events. Correct the conditions of the filter transforms.',
      )
      return { lines: [`${variable} = false`], variable, isCopied, pipelines }
    }
  })
}

const routeOptions = { context: '', statement: '', condition: '', action: '', pipelines: '' }

const routing: Mapping<Passing> = {
  name: 'routing',
  becomes: 'a filter transform for each pipeline that it passes events to',
  options: {
    table: 'the conditions, and a remap transform for statements other than `route()`',
    default_pipelines: 'the pipelines for events that match no condition',
    match_once: '`false`: an event follows all routes whose conditions match, not only the first',
  },
  itself: { error_mode: 'a failing condition is false' },
  build: (part, context) => {
    const routes = routesOf(part, context)
    const isOnce = part.flag('match_once', true)
    const noneOf = (list: readonly Route[]) =>
      list.filter(({ isCopied }) => !isCopied).map(({ variable }) => `!${variable}`)
    return (targets) =>
      targets.map((target) => {
        const taken = routes.flatMap(({ variable, pipelines, change }, index) =>
          pipelines.includes(target)
            ? [{ test: [...(isOnce ? noneOf(routes.slice(0, index)) : []), variable].join(' && '), change }]
            : [],
        )
        const tests = taken.map(({ test }) => test)
        if (part.list('default_pipelines').includes(target)) tests.push(noneOf(routes).join(' && ') || 'true')
        const lines = routes.flatMap((route) => route.lines)
        const text = [...lines, tests.map((test) => `(${test})`).join(' || ') || 'false'].join('\n')
        const changes = taken.flatMap(({ test, change }) =>
          change === undefined ? [] : [`if ${test} {`, indent(change), '}'],
        )
        const change: readonly Step[] =
          changes.length === 0 ? [] : [{ type: 'remap', text: [...lines, ...changes].join('\n') }]
        return { target, steps: [{ type: 'filter', text }, ...change] }
      })
  },
}

const failover: Mapping<Passing> = {
  name: 'failover',
  becomes: 'the `inputs` of the pipelines of the first level, and a gap',
  options: { priority_levels: 'the first level' },
  itself: {
    retry_interval: 'the sink retries',
    retry_gap: 'the sink retries',
    max_retries: 'the sink retries',
    sending_queue: 'all sinks have a buffer',
  },
  build: (part, context) => {
    const refusal = {
      reason: 'a sink has one destination, so only the pipelines of the first level get events',
      nearest: 'Set several `endpoints` in `search_engine`, or use a load balancer for the destination.',
    }
    context.missing(part.place(), part.title, refusal, 'connector')
    const [first] = Array.isArray(part.get('priority_levels')) ? (part.get('priority_levels') as unknown[]) : []
    const taken = Array.isArray(first) ? first.map(String) : []
    return (targets) => targets.filter((target) => taken.includes(target)).map((target) => ({ target, steps: [] }))
  },
}

export const connectors: readonly Mapping<Passing>[] = [forward, routing, failover]

export const refusedConnectors: readonly Refusal[] = [
  ...each(
    ['count', 'sum', 'signaltometrics', 'exceptions', 'datadog'],
    'no transform derives metrics from events',
    'Count at the destination.',
  ),
  ...each(
    ['spanmetrics', 'servicegraph', 'grafanacloud'],
    'Penstock does not collect traces',
    'Keep the collector for traces.',
  ),
  none('roundrobin', 'Penstock does not distribute events in turn', 'Use a load balancer for the destination.'),
]
