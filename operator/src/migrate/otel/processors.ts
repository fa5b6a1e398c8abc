// Converts processors to transforms. Processors that only protect the collector itself need no counterpart.

import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { attributes, groupByAttributes, redaction, resource } from './attributes.ts'
import { k8sAttributes, resourceDetection } from './kubernetes.ts'
import { each, type Mapping } from './mapping.ts'
import { fieldAt } from './record.ts'
import { filter, transform } from './statements.ts'
import { decimal } from './text.ts'

type Steps = readonly Step[]

/** A processor whose work the agent does itself. */
const itself = (name: string, becomes: string, options: readonly string[]): Mapping<Steps> => ({
  name,
  becomes,
  options: {},
  itself: Object.fromEntries(options.map((option) => [option, becomes])),
  build: () => [],
})

const batch = itself('batch', 'nothing: sinks build batches', [
  'timeout',
  'send_batch_size',
  'send_batch_max_size',
  'metadata_keys',
  'metadata_cardinality_limit',
])

const memoryLimiter = itself('memorylimiter', 'nothing: sources wait while a buffer is full', [
  'check_interval',
  'limit_mib',
  'spike_limit_mib',
  'limit_percentage',
  'spike_limit_percentage',
  'min_gc_interval_when_soft_limited',
  'min_gc_interval_when_hard_limited',
])

/** Samples records, at random or by a hash. */
const sampler: Mapping<Steps> = {
  name: 'probabilisticsampler',
  becomes: 'a filter transform that samples at random, or by a hash of an attribute',
  options: {
    sampling_percentage: 'the share of events to keep',
    from_attribute: 'the attribute to hash',
    attribute_source: '`record` uses the attribute; otherwise the choice is random',
    sampling_priority: 'a gap: the attribute is not used',
  },
  itself: {
    hash_seed: 'the hash function differs',
    mode: 'records do not depend on traces',
    fail_closed: 'records without the attribute are sampled at random',
    sampling_precision: 'the share is always exact',
  },
  build: (part, context) => {
    if (part.has('sampling_priority')) {
      context.gap(
        part.place(['sampling_priority']),
        `${part.id}: sampling_priority`,
        'an attribute cannot raise the share',
        'Use a separate filter transform for events with the attribute.',
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

/** `Components` follows its operators, which may form a graph. */
const logsTransform: Mapping<Steps> = {
  name: 'logstransform',
  becomes: 'transforms, as operators of `filelog`',
  options: { operators: 'transforms' },
  build: () => [],
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
  logsTransform,
]

export const refusedProcessors: readonly Refusal[] = [
  none('tail_sampling', 'Penstock does not collect traces', 'Keep the collector for traces.'),
  none('span', 'Penstock does not collect traces', 'Keep the collector for traces.'),
  none('logdedup', 'a transform sees one event at a time', 'Remove duplicates at the destination.'),
  {
    name: 'routing',
    reason: 'a processor cannot choose exporters',
    nearest: 'Use the connector `routing`, and convert again.',
    isHere: true,
  },
  none('geoip', 'Penstock has no tables of IP addresses', 'Look up addresses at the destination.'),
  none('schema', 'Penstock does not translate attribute names', 'Rename fields in a remap transform.'),
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
    'the processor changes metrics or traces',
    'Collect them with Prometheus or another metrics agent.',
  ),
]
