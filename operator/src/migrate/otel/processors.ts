// Converts processors to transforms. Processors that only protect the collector itself need no counterpart.

import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { attributes, groupByAttributes, resource } from './attributes.ts'
import { k8sAttributes, resourceDetection } from './kubernetes.ts'
import { each, type Mapping } from './mapping.ts'
import { fieldAt } from './record.ts'
import { redaction } from './redaction.ts'
import { filter, transform } from './statements.ts'

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

const remoteTap = itself('remotetap', 'nothing: `penstock tap` shows events', ['endpoint', 'limit', 'tls', 'auth'])

/** Makes a record of each item of a body that is a list. */
const unroll: Mapping<Steps> = {
  name: 'unroll',
  becomes: 'a remap transform that makes a record of each item of a list',
  options: { recursive: 'whether to make records of the items of lists in lists' },
  build: (part) => {
    const items = part.flag('recursive', false) ? 'flatten(array!(.message))' : 'array!(.message)'
    const text = [
      'if is_array(.message) {',
      '  record = object(.) ?? {}',
      `  . = map_values(${items}) -> |item| { merge(record, { "message": item }) }`,
      '}',
    ]
    return [{ type: 'remap', text: text.join('\n') }]
  },
}

/** Samples records by a hash of the trace or of an attribute, or at random. */
const sampler: Mapping<Steps> = {
  name: 'probabilisticsampler',
  becomes: 'a filter transform that samples by a hash of the trace id or of an attribute; at random without either',
  options: {
    sampling_percentage: 'the share of events to keep',
    from_attribute: 'the attribute to hash',
    attribute_source: '`record`: the attribute, not the trace id',
    sampling_priority: 'the attribute with a higher share',
    fail_closed: 'whether to discard records without the attribute',
  },
  itself: {
    hash_seed: 'the hash function differs',
    mode: 'records do not depend on traces',
    sampling_precision: 'the share is always exact',
  },
  build: (part, context) => {
    const share = Number(part.text('sampling_percentage') ?? 0)
    const priority = part.text('sampling_priority')
    if (share >= 100) return []
    const attribute = part.text('from_attribute')
    const isOfTraces = part.text('attribute_source') !== 'record'
    if (isOfTraces) {
      context.replaced(
        part.place(),
        `${part.id}: attribute_source`,
        attribute === undefined
          ? 'records without a trace id are sampled at random, and the collector discards them by default (`fail_closed`)'
          : 'the choice by trace id is not the one of other collectors, because the hash function differs',
        'Set `attribute_source: record` and `from_attribute` to choose by an attribute.',
      )
    }
    const field = attribute === undefined ? undefined : fieldAt(['attributes', attribute])
    const isRandom = attribute === undefined && isOfTraces
    const text = [
      isOfTraces
        ? `value = if match(to_string(.trace_id) ?? "", r'^[0-9a-fA-F]{32}$') { .trace_id } else { null }`
        : 'value = null',
      ...(field === undefined ? [] : [`if value == null && exists(${field}) && ${field} != "" { value = ${field} }`]),
      `share = ${Math.round(share * 100)}`,
      ...(priority === undefined ? [] : priorityLines(fieldAt(['attributes', priority]))),
      'part = random_int(0, 10000)',
      'if value != null { part = mod(abs(seahash(to_string(value) ?? encode_json(value))), 10000) }',
      ...(isRandom || !part.flag('fail_closed', true) ? [] : ['if value == null { part = 10000 }']),
      ...(isRandom || part.flag('fail_closed', true) ? [] : ['if value == null { part = 0 }']),
      'part < share',
    ]
    return [{ type: 'filter', text: text.join('\n') }]
  },
}

/** Statements that raise the share to the percentage in a field. */
const priorityLines = (field: string): readonly string[] => [
  `wanted = if is_integer(${field}) || is_float(${field}) { to_float(${field}) ?? 0.0 } else { 0.0 }`,
  'if wanted * 100.0 > to_float(share) { share = to_int(round(wanted * 100.0)) }',
]

/** `Components` follows its operators, which may form a graph. */
const logsTransform: Mapping<Steps> = {
  name: 'logstransform',
  becomes: 'transforms, as operators of `filelog`',
  options: { operators: 'transforms' },
  expresses: ['operators.value'],
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
  remoteTap,
  unroll,
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
