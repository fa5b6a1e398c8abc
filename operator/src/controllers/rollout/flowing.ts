// Computes `Flowing` of a Pipeline from the figures of its agents: the worst problem first.

import { conditionOf, type Finding, type Reason } from '../../api/conditions.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { Flow } from '../../fleet/flow.ts'
import { isStalled } from '../../fleet/state.ts'
import type { Traffic } from '../../fleet/traffic.ts'
import { type Lag, laggingText } from './view.ts'

/** How long events may take to be delivered before their absence is significant. */
const onTheWayMs = 20_000
/** Fill level from which a buffer counts as filling up. */
const fullFrom = 0.75
/** `Lagging` becomes true at the first threshold, and clears below the second (seconds). */
const laggingFrom = 60
const laggingUntil = 30

/** The observed work of a Pipeline's agents. */
export interface Work {
  readonly traffic: Readonly<Traffic>
  readonly lag: Lag
  /** Whether no agent has found a log of a selected pod. */
  readonly isUnread: boolean
}

const nothingFound =
  'No events were read, and no agent has found a log of a selected pod. Compare the selectors with the labels of the pods, or run: kubectl penstock why POD.'

/** @param flow figures of the last minutes, if any agent has reported */
export function flowingNow(
  flow: Flow | undefined,
  object: Pipeline,
  { traffic, lag, isUnread }: Work,
  now: number,
): Finding {
  const { eventsIn, eventsOut, filtered, dropped, lostBytes } = traffic
  const finding = (status: Finding['status'], reason: Reason, message: string): Finding => ({
    type: 'Flowing',
    status,
    reason,
    message,
  })
  if (dropped > 0 && eventsOut === 0 && dropped + filtered >= eventsIn) {
    return finding('False', 'AllEventsDropped', 'All events that were read were discarded.')
  }
  if (dropped > 0 || (flow?.recent(now).dropped ?? 0) > 0) {
    return finding('False', 'SomeEventsDropped', 'Some events that were read were discarded.')
  }
  if (lostBytes > 0) {
    const lost = `${lostBytes} bytes of log files were skipped before they were read.`
    return finding('False', 'SomeEventsDropped', `${lost} See the metric log_bytes_lost_total for files and reasons.`)
  }
  const hasDelivered = eventsOut > 0 || (flow?.figures(now).eventsOut ?? 0) > 0
  const silent = isStalled(traffic)
  const known = conditionOf(object.status?.conditions, 'Flowing')
  // Recently read events may still be in flight or in a batch: only errors, or time, show that they are stuck. The condition then stays
  // until an event is delivered, because minutes may pass between failing attempts.
  const isLate = traffic.silentMs >= onTheWayMs && !hasDelivered
  const isStuck = traffic.sinkErrors > 0 || isLate || known?.reason === 'NoEventsDelivered'
  if (silent && isStuck) return finding('False', 'NoEventsDelivered', 'Events were read, but none was delivered.')
  if (traffic.bufferUse >= fullFrom) return finding('False', 'BufferFillingUp', 'A buffer is filling up.')
  if (lag.seconds >= (known?.reason === 'Lagging' ? laggingUntil : laggingFrom)) {
    return finding('False', 'Lagging', laggingText(object, lag))
  }
  // If events are read or sent only occasionally, a report without any is normal.
  if (hasDelivered) return finding('True', 'Flowing', 'Events are delivered.')
  if (silent) return finding('Unknown', 'NoData', 'Events were read, but none has been delivered yet.')
  if (eventsIn === 0 && (flow?.figures(now).eventsIn ?? 0) === 0)
    return finding('Unknown', 'NoData', isUnread ? nothingFound : 'No events were read.')
  return finding('True', 'Flowing', 'Filters or programs remove all events that are read.')
}
