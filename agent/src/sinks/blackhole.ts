// Blackhole sink: takes events and forgets them, for tests of speed and for trying a configuration.
// It looks at the counts of a batch only, so events that still are bytes stay bytes.

import { setTimeout as wait } from 'node:timers/promises'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { timerMs } from '../clock.ts'
import { defineSink } from '../component.ts'
import type { Batch } from '../event/batch.ts'
import { optional, seconds, uint } from '../schema/options.ts'

export const blackhole = defineSink({
  type: 'blackhole',
  summary: 'Discards all events.',
  accepts: ['log', 'metric'],
  options: {
    print_interval_secs: seconds('Seconds between two reports in the log of how many events came.', {
      zero: 'no reports',
      default: 0,
    }),
    rate: optional(uint('Most events taken in a second. Unlimited if not given.', { minimum: 1 })),
  },

  objectsBecause: () => undefined,

  build(options, context) {
    let events = 0
    let bytes = 0
    const report = () => {
      context.logger.info({ events, bytes }, 'Collected events.')
    }
    const intervalMs = options.print_interval_secs * 1000
    const reporting = intervalMs === 0 ? undefined : setInterval(report, timerMs(intervalMs)).unref()
    /** When the events taken so far would have come at the rate, in milliseconds of `performance.now`. */
    let dueMs = 0

    return {
      takesBytes: true,
      write(batch: Batch) {
        const count = batch.count
        events += count
        bytes += batch.bytes
        context.events.sent(count, batch.bytes)
        if (batch instanceof ByteBatch) batch.done()
        batch.finalizer.release(1, 'delivered')
        if (options.rate === undefined) return undefined
        const now = performance.now()
        dueMs = Math.max(dueMs, now) + (count / options.rate) * 1000
        // An abandoned wait is over, and no error.
        return wait(timerMs(dueMs - now), undefined, { signal: context.abandoning }).catch(() => {})
      },
      async close() {
        if (reporting === undefined) return
        clearInterval(reporting)
        report()
      },
    }
  },
})
