// Metric-to-log transform: converts each metric event to a log event, for sinks that accept only logs.

import { defineTransform } from '../component.ts'
import { type Batch, logBatch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { findZone, zoneOrUtc } from '../formats/timezone.ts'
import { oneOf, optional, text } from '../schema/options.ts'
import { metricLog } from './metric-log.ts'

export const metricToLog = defineTransform({
  type: 'metric_to_log',
  summary: 'Converts metric events to log events.',
  description:
    'The log event has the members of the JSON form of the metric (`name`, `namespace`, `tags`, `kind`, and the value under its type), and its time as the timestamp.',
  accepts: ['metric'],
  outputs: ['log'],
  options: {
    host_tag: optional(
      text('Tag that becomes the host field (`log_schema.host_key`). By default, all tags stay below `tags`.'),
    ),
    timezone: optional(
      text(
        'Time zone for times without one, for metric events with their time in a tag (`log_schema.timestamp_key`). The default is the global `timezone`.',
      ),
    ),
    metric_tag_values: oneOf(
      ['single', 'full'],
      'Whether a tag becomes its last value or an array of all its values.',
      {
        default: 'single',
      },
    ),
  },

  check({ timezone }) {
    if (timezone === undefined || timezone === 'local' || findZone(timezone) !== undefined) return []
    const message = `\`${timezone}\` is not a time zone.`
    return [{ path: 'timezone', message, help: 'Use a name from the TZ database such as `Europe/Berlin`, or `local`.' }]
  },

  build(options, { globals }) {
    const form = {
      hostTag: options.host_tag,
      hostKey: globals.logSchema.hostKey,
      timestampKey: globals.logSchema.timestampKey,
      zone: zoneOrUtc(options.timezone ?? globals.timezone),
      tagValues: options.metric_tag_values,
    }
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
