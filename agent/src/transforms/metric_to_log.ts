// Metric-to-log transform: converts each metric event to a log event, for sinks that accept only logs.

import { defineTransform } from '../component.ts'
import { type Batch, logBatch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { zoneProblems } from '../formats/timezone.ts'
import { metricLog, metricLogForm, metricLogOptions } from './metric-log.ts'

export const metricToLog = defineTransform({
  type: 'metric_to_log',
  summary: 'Converts metric events to log events.',
  description:
    'The log event has the members of the JSON form of the metric (`name`, `namespace`, `tags`, `kind`, and the value under its type), and its time as the timestamp.',
  accepts: ['metric'],
  outputs: ['log'],
  options: metricLogOptions,

  check: ({ timezone }) => zoneProblems('timezone', timezone),

  build(options, { globals }) {
    const form = metricLogForm(options, globals)
    return {
      transform(batch: Batch, output) {
        // The graph check permits only metric events.
        if (batch.type === 'log') return output.send(batch)
        const logs: LogEvent[] = []
        for (const metric of batch.events) logs.push(metricLog(metric, form))
        return output.send(logBatch(logs, batch.finalizer))
      },
    }
  },
})
