// Processors as transforms. Those that only keep the collector itself in order need no counterpart.

import type { Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { each, type Mapping, none } from './mapping.ts'

type Steps = readonly Step[]

/** A processor whose work the agent does by itself. */
const itself = (name: string, becomes: string, options: readonly string[]): Mapping<Steps> => ({
  name,
  becomes,
  options: {},
  itself: Object.fromEntries(options.map((option) => [option, becomes])),
  build: () => [],
})

const batch = itself('batch', 'nothing: sinks make batches', [
  'timeout',
  'send_batch_size',
  'send_batch_max_size',
  'metadata_keys',
  'metadata_cardinality_limit',
])

const memoryLimiter = itself('memorylimiter', 'nothing: a full buffer makes its sources wait', [
  'check_interval',
  'limit_mib',
  'spike_limit_mib',
  'limit_percentage',
  'spike_limit_percentage',
  'min_gc_interval_when_soft_limited',
  'min_gc_interval_when_hard_limited',
])

export const processors: readonly Mapping<Steps>[] = [batch, memoryLimiter]

export const refusedProcessors: readonly Refusal[] = [
  none('tail_sampling', 'traces are not collected', 'Keep the collector for traces.'),
  none('span', 'traces are not collected', 'Keep the collector for traces.'),
  none('logdedup', 'a transform sees one event at a time', 'Let the destination recognise repeats.'),
  none('geoip', 'a Pipeline has no tables of addresses', 'Let the destination look addresses up.'),
  none('schema', 'names of attributes are not translated', 'Rename fields in a remap transform.'),
  ...each(
    [
      'metricstransform',
      'cumulativetodelta',
      'deltatorate',
      'deltatocumulative',
      'metricsgeneration',
      'interval',
      'groupbytrace',
      'metricstarttime',
    ],
    'the processor works on metrics or traces',
    'Let Prometheus or an agent of your metrics collect them.',
  ),
]
