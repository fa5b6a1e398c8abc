// Function `find_vector_metrics`.

import type { ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { matchingMetrics, metricKind } from '../own-metrics.ts'

export const findVectorMetrics = defineFunction({
  name: 'find_vector_metrics',
  category: 'Metrics',
  summary: "Returns all of the agent's own metrics with a name and tags.",
  description:
    'Each has `name`, `type`, `kind`, `tags` (arrays of values) and `value`. A histogram has `buckets`, `count` and `sum` instead, and `value` is null.',
  parameters: [
    { name: 'key', kind: kinds.string, description: 'Name of the metrics.' },
    {
      name: 'tags',
      kind: kinds.object,
      required: false,
      default: {},
      description: 'Tags that the metrics must have; a value may contain `*`.',
    },
  ],
  returns: kinds.arrayEach(metricKind),
  fallible: 'never',
  pure: false,
  reaches: 'agent',
  examples: [
    { source: 'find_vector_metrics("no_such_metric")', result: '[]' },
    { source: 'find_vector_metrics("no_such_metric", tags: {"component_id": "in"})', result: '[]' },
    { source: 'length(find_vector_metrics("no_such_metric"))', result: '0' },
  ],
  compile: (call) => (key: string, tags: ValueObject) => matchingMetrics(call.runtime, key, tags),
})
