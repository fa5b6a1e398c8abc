// Function `aggregate_vector_metrics`.

import { float, isFloat, isInteger, isObject, type ValueObject } from '../../event/value.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'
import { matchingMetrics } from '../own-metrics.ts'

export const aggregateVectorMetrics = defineFunction({
  name: 'aggregate_vector_metrics',
  category: 'Metrics',
  summary: "Returns the sum, average, minimum or maximum of the agent's own metrics; null if there are none.",
  parameters: [
    {
      name: 'function',
      kind: kinds.string,
      enum: ['sum', 'avg', 'max', 'min'],
      description: 'Statistic to compute.',
    },
    { name: 'key', kind: kinds.string, description: 'Name of the metrics; they must be counters or gauges.' },
    {
      name: 'tags',
      kind: kinds.object,
      required: false,
      default: {},
      description: 'Tags that the metrics must have; a value may contain `*`.',
    },
  ],
  returns: kinds.float.or(kinds.null),
  fallible: 'never',
  pure: false,
  reaches: 'agent',
  examples: [
    { source: 'aggregate_vector_metrics("sum", "no_such_metric")', result: 'null' },
    { source: 'aggregate_vector_metrics("avg", "no_such_metric", tags: {"component_id": "in"})', result: 'null' },
    { source: 'is_null(aggregate_vector_metrics("max", "no_such_metric"))', result: 'true' },
  ],
  compile: (call) => (operation: string, key: string, tags: ValueObject) => {
    const numbers: number[] = []
    for (const metric of matchingMetrics(call.runtime, key, tags)) {
      const value = isObject(metric) ? metric['value'] : undefined
      if (isInteger(value) || isFloat(value)) numbers.push(toNumber(value))
    }
    if (numbers.length === 0) return null
    const sum = numbers.reduce((total, number) => total + number, 0)
    switch (operation) {
      case 'avg':
        return float(sum / numbers.length)
      case 'max':
        return float(Math.max(...numbers))
      case 'min':
        return float(Math.min(...numbers))
      default:
        return float(sum)
    }
  },
})
