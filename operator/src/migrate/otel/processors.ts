// Processors as transforms. Those that only keep the collector itself in order need no counterpart.

import type { Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { attributes, groupByAttributes, redaction, resource } from './attributes.ts'
import { k8sAttributes, resourceDetection } from './kubernetes.ts'
import { each, type Mapping, none } from './mapping.ts'
import { fieldAt } from './record.ts'
import { filter, transform } from './statements.ts'
import { decimal } from './text.ts'

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

/** A part of the records, chosen by chance or by a hash. */
const sampler: Mapping<Steps> = {
  name: 'probabilisticsampler',
  becomes: 'a filter transform that chooses by chance, or by a hash of an attribute',
  options: {
    sampling_percentage: 'the share of the events that stay',
    from_attribute: 'the attribute whose hash decides',
    attribute_source: '`record` chooses by the attribute; else by chance',
    sampling_priority: 'a gap: the attribute does not decide',
  },
  itself: {
    hash_seed: 'the hash is another one',
    mode: 'records have no trace whose decision counts',
    fail_closed: 'a record without the attribute is chosen by chance',
    sampling_precision: 'the share is exact',
  },
  build: (part, context) => {
    if (part.has('sampling_priority')) {
      context.gap(
        part.place(['sampling_priority']),
        `${part.id}: sampling_priority`,
        'an attribute does not raise the share',
        'Let events with the attribute pass a filter transform of their own.',
      )
    }
    const share = Number(part.text('sampling_percentage') ?? 0)
    if (share >= 100) return []
    const attribute = part.text('attribute_source') === 'record' ? part.text('from_attribute') : undefined
    const chance = 'random_float(0.0, 100.0)'
    const text =
      attribute === undefined
        ? `${chance} < ${decimal(share)}`
        : [
            `value = ${fieldAt(['attributes', attribute])}`,
            `part = if value == null { random_int(0, 10000) } else { mod(abs(seahash(to_string(value) ?? encode_json(value))), 10000) }`,
            `part < ${Math.round(share * 100)}`,
          ].join('\n')
    return [{ type: 'filter', text }]
  },
}

export const processors: readonly Mapping<Steps>[] = [
  batch,
  memoryLimiter,
  attributes,
  resource,
  filter,
  transform,
  k8sAttributes,
  resourceDetection,
  sampler,
  groupByAttributes,
  redaction,
]

export const refusedProcessors: readonly Refusal[] = [
  none('tail_sampling', 'traces are not collected', 'Keep the collector for traces.'),
  none('span', 'traces are not collected', 'Keep the collector for traces.'),
  none('logdedup', 'a transform sees one event at a time', 'Let the destination recognise repeats.'),
  {
    name: 'logstransform',
    reason: 'operators are converted at receivers alone',
    nearest: 'Put its operators into `operators` of the receiver, and convert again.',
    isHere: true,
  },
  {
    name: 'routing',
    reason: 'a processor cannot choose exporters',
    nearest: 'Use the connector `routing`, and convert again.',
    isHere: true,
  },
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
