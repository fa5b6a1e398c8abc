// Tag-cardinality-limit transform: limits the number of values of each metric tag. Each value of a tag becomes a separate series at the
// destination, and too many series fill it up.

import { defineTransform } from '../component.ts'
import { type Batch, metricBatch } from '../event/batch.ts'
import type { MetricEvent, TagValue } from '../event/metric.ts'
import { oneOf, uint } from '../schema/options.ts'
import { SeenTagValues } from './seen-tag-values.ts'

export const tagCardinalityLimit = defineTransform({
  type: 'tag_cardinality_limit',
  summary: 'Limits how many values each tag of metric events has.',
  description:
    'The first values of a tag pass, for all metrics together. An event with a further value loses the tag, or the agent discards it. Values are counted from the start of the component and never forgotten; a restart or a reload that changes the component begins anew. All values together take at most 16 MiB of memory: where that is used up, values that are new are beyond the limit.',
  accepts: ['metric'],
  outputs: ['metric'],
  options: {
    value_limit: uint('Values of each tag that pass.', { default: 500, minimum: 1 }),
    limit_exceeded_action: oneOf(
      ['drop_tag', 'drop_event'],
      'Whether an event with a value beyond the limit loses the tag or is discarded.',
      { default: 'drop_tag' },
    ),
  },

  build({ value_limit: valueLimit, limit_exceeded_action: action }, { events, logger }) {
    const seen = new SeenTagValues(valueLimit, (tag) =>
      logger.warn({ tag, values: valueLimit }, 'A tag has as many values as `value_limit` lets pass.'),
    )
    const limit = action === 'drop_tag' ? withoutTags : withoutEvents
    return {
      transform(batch: Batch, output) {
        // The graph lets metric events through alone.
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
  /** Tags whose value was beyond the limit. */
  readonly exceeded: number
}

/** The events without the tags that have a value beyond the limit. Another holder of an event keeps it as it was. */
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

/** The events all of whose tags are within the limit. The tags of an event that goes do not count. */
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
