// Function `get_vector_metric`.

import type { ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'
import { matchingMetrics, metricKind } from '../own-metrics.ts'

export const getVectorMetric = defineFunction({
  name: 'get_vector_metric',
  category: 'Metrics',
  summary: "Returns the first of the agent's own metrics with a name and tags; null if there is none.",
  description:
    'It has `name`, `type`, `kind`, `tags` (arrays of values) and `value`. A histogram has `buckets`, `count` and `sum` instead, and `value` is null.',
  parameters: [
    { name: 'key', kind: kinds.string, description: 'Name of the metric.' },
    {
      name: 'tags',
      kind: kinds.object,
      required: false,
      default: {},
      description: 'Tags that the metric must have; a value may contain `*`.',
    },
  ],
  returns: metricKind.or(kinds.null),
  fallible: 'never',
  pure: false,
  reaches: 'agent',
  examples: [
    { source: 'get_vector_metric("no_such_metric")', result: 'null' },
    { source: 'get_vector_metric("no_such_metric", tags: {"component_id": "in"})', result: 'null' },
    { source: 'is_null(get_vector_metric("no_such_metric"))', result: 'true' },
  ],
  compile: (call) => (key: string, tags: ValueObject) => matchingMetrics(call.runtime, key, tags)[0] ?? null,
})
