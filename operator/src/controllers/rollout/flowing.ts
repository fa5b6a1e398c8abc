// `Flowing` of a Pipeline from the figures of its agents: the worst problem first.

import { conditionOf, type Finding, type Reason } from '../../api/conditions.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { Flow } from '../../fleet/flow.ts'
import { isStalled } from '../../fleet/state.ts'
import type { Traffic } from '../../fleet/traffic.ts'
import { type Lag, laggingText } from './view.ts'

/** How long events may be on their way before their absence at the destination means something. */
const onTheWayMs = 20_000
/** A buffer is filling up from here on. */
const fullFrom = 0.75
/** Reading is lagging from the first on, until it is less behind than the second. */
const laggingFrom = 60
const laggingUntil = 30

export const nothingRead = 'No events were read.'

/** @param flow figures of the last minutes, if any agent has reported */
export function flowingNow(
  flow: Flow | undefined,
  object: Pipeline,
  traffic: Readonly<Traffic>,
  lag: Lag,
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
    const lost = `${lostBytes} bytes of log files were given up before they were read.`
    return finding('False', 'SomeEventsDropped', `${lost} See the metric log_bytes_lost_total for files and reasons.`)
  }
  const hasDelivered = eventsOut > 0 || (flow?.figures(now).eventsOut ?? 0) > 0
  const silent = isStalled(traffic)
  const known = conditionOf(object.status?.conditions, 'Flowing')
  // Events just read may still be on their way, or in a batch: only errors, or time, show that they are stuck. The condition then stays until
  // something is delivered, because minutes may pass between failing attempts.
  const isLate = traffic.silentMs >= onTheWayMs && !hasDelivered
  const isStuck = traffic.sinkErrors > 0 || isLate || known?.reason === 'NoEventsDelivered'
  if (silent && isStuck) return finding('False', 'NoEventsDelivered', 'Events were read, and none was delivered.')
  if (traffic.bufferUse >= fullFrom) return finding('False', 'BufferFillingUp', 'A buffer is filling up.')
  if (lag.seconds >= (known?.reason === 'Lagging' ? laggingUntil : laggingFrom)) {
    return finding('False', 'Lagging', laggingText(object, lag))
  }
  // If events arrive, or are sent, only occasionally, a report without any is no news.
  if (hasDelivered) return finding('True', 'Flowing', 'Events are delivered.')
  if (silent) return finding('Unknown', 'NoData', 'Events were read, and none has been delivered yet.')
  if (eventsIn === 0 && (flow?.figures(now).eventsIn ?? 0) === 0) return finding('Unknown', 'NoData', nothingRead)
  return finding('True', 'Flowing', 'All events that are read are taken away by filters or programs.')
}
