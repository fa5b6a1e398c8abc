// Connectors: they pass the events of one pipeline to others.

import type { Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { each, type Mapping, none } from './mapping.ts'

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

export const connectors: readonly Mapping<Passing>[] = [forward]

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
