// Blackhole sink: discards all events, for benchmarks and for trying a configuration. It reads only the counts of a
// batch, so byte lines stay bytes.

import { ByteBatch } from '../bytes/byte-batch.ts'
import { pause, timerMs } from '../clock.ts'
import { defineSink } from '../component.ts'
import type { Batch } from '../event/batch.ts'
import { optional, seconds, uint } from '../schema/options.ts'

export const blackhole = defineSink({
  type: 'blackhole',
  summary: 'Discards all events.',
  accepts: ['log', 'metric'],
  options: {
    print_interval_secs: seconds('Seconds between two log messages with the number of events.', {
      zero: 'no reports',
      default: 0,
    }),
    rate: optional(uint('Maximum number of events per second. Unlimited if not given.', { minimum: 1 })),
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
    /** Time at which the events taken so far are due at this rate, in milliseconds of `performance.now`. */
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
        return pause(dueMs - now, context.abandoning)
      },
      async close() {
        if (reporting === undefined) return
        clearInterval(reporting)
        report()
      },
    }
  },
})
