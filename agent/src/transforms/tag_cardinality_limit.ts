// Tag-cardinality-limit transform: limits the number of values of each metric tag. Each value of a tag becomes a separate series at the
// destination, and too many series would overload it.

import { defineTransform } from '../component.ts'
import { type Batch, metricBatch } from '../event/batch.ts'
import type { MetricEvent, TagValue } from '../event/metric.ts'
import { oneOf, uint } from '../schema/options.ts'
import { SeenTagValues } from './seen-tag-values.ts'

export const tagCardinalityLimit = defineTransform({
  type: 'tag_cardinality_limit',
  summary: 'Limits the number of values of each metric tag.',
  description:
    'The first values of a tag pass, for all metrics together. An event with an additional value loses the tag or is discarded. The component counts values from its start and never forgets one; a restart, or a reload that changes the component, resets the count. All values together use at most 16 MiB of memory; beyond that, any new value exceeds the limit.',
  accepts: ['metric'],
  outputs: ['metric'],
  options: {
    value_limit: uint('Maximum number of values of each tag.', { default: 500, minimum: 1 }),
    limit_exceeded_action: oneOf(
      ['drop_tag', 'drop_event'],
      'Whether an event with a value beyond the limit loses the tag or is discarded.',
      { default: 'drop_tag' },
    ),
  },

  build({ value_limit: valueLimit, limit_exceeded_action: action }, { events, logger }) {
    const seen = new SeenTagValues(valueLimit, (tag) =>
      logger.warn({ tag, values: valueLimit }, 'A tag has reached `value_limit`; further values will not pass.'),
    )
    const limit = action === 'drop_tag' ? withoutTags : withoutEvents
    return {
      transform(batch: Batch, output) {
        // The graph check permits only metric events.
        if (batch.type === 'log') return output.send(batch)
        const { kept, exceeded } = limit(batch.events, seen)
        if (exceeded === 0) return output.send(batch)
        events.count('tag_value_limit_exceeded_total', exceeded)
        const discarded = batch.events.length - kept.length
        if (discarded > 0) events.discarded(discarded, true, 'A tag had a value beyond the limit.')
        if (kept.length === 0) {
          batch.finalizer.release(1, 'dropped')
          return undefined
        }
        const limited = metricBatch(kept, batch.finalizer)
        return output.send(batch.shared ? limited.share() : limited)
      },
    }
  },
})

interface Limited {
  readonly kept: MetricEvent[]
  /** Number of tags with a value beyond the limit. */
  readonly exceeded: number
}

/** Removes tags with a value beyond the limit. Changes only copies, because other components may hold the same events. */
function withoutTags(events: readonly MetricEvent[], seen: SeenTagValues): Limited {
  const kept = new Array<MetricEvent>(events.length)
  let exceeded = 0
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as MetricEvent
    let changed = event
    for (const [tag, value] of event.tags ?? []) {
      if (seen.admit(tag, value)) continue
      exceeded++
      if (changed === event) changed = event.copy()
      changed.tags?.delete(tag)
    }
    kept[index] = changed
  }
  return { kept, exceeded }
}

/** Removes events with any tag value beyond the limit. The other tags of a removed event do not count. */
function withoutEvents(events: readonly MetricEvent[], seen: SeenTagValues): Limited {
  const kept: MetricEvent[] = []
  let exceeded = 0
  for (const event of events) {
    const tags: readonly [string, TagValue][] = event.tags === undefined ? [] : [...event.tags]
    if (tags.every(([tag, value]) => seen.hasRoom(tag, value))) {
      for (const [tag, value] of tags) seen.admit(tag, value)
      kept.push(event)
    } else exceeded++
  }
  return { kept, exceeded }
}
