// Console sink: prints events to standard output or standard error, for local runs and debugging. A batch is one write;
// the next batch waits until that write has finished.

import { ByteBatch } from '../bytes/byte-batch.ts'
import { compileStreamEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSink } from '../component.ts'
import type { Batch } from '../event/batch.ts'
import { BodyPool } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { encoding, outgoingFraming, screenCodecs } from '../schema/groups.ts'
import { oneOf } from '../schema/options.ts'
import { columnsOf, takesColors } from '../terminal.ts'
import { LineStream } from './stream/line-stream.ts'
import { Unencoded } from './stream/unencoded.ts'

const protocol = { protocol: 'console' }

export const consoleSink = defineSink({
  type: 'console',
  summary: 'Prints events to standard output or standard error.',
  accepts: ['log', 'metric'],
  reaches: 'agent',
  options: {
    target: oneOf(['stdout', 'stderr'], 'Stream to print to.', { default: 'stdout' }),
    encoding: encoding(screenCodecs),
    framing: outgoingFraming(),
  },
  check: (options) => [...encodingProblems(options.encoding), ...framingProblems(options.framing)],
  objectsBecause: (options) => linesReason(options.encoding, options.framing),

  build(options, context) {
    const bodies = new BodyPool(64 << 10, 2)
    const target = options.target === 'stdout' ? process.stdout : process.stderr
    const { messageKey } = context.globals.logSchema
    const screen = {
      color: takesColors(target),
      // Users may resize their terminal.
      get columns() {
        return columnsOf(target)
      },
    }
    const encoder = compileStreamEncoder(options.encoding, options.framing, messageKey, screen)
    let unencoded = new Unencoded()
    const failed = (event: LogEvent | MetricEvent, problem: string) => {
      unencoded.encoding++
      unencoded.problem = problem
      unencoded.bytes += event.size
    }
    const lines = LineStream.of(encoder, failed)
    // The callback of each write reports a closed reader; without a listener, the error event would end the process.
    const unheard = () => {}
    target.on('error', unheard)
    let writing: Promise<void> | undefined

    return {
      takesBytes: lines !== undefined,
      write(batch: Batch) {
        const body = bodies.take()
        unencoded = new Unencoded()
        if (lines !== undefined && batch instanceof ByteBatch) {
          lines.write(batch, 0, batch.count, body)
          batch.done()
        } else {
          const events: readonly (LogEvent | MetricEvent)[] = batch.events
          for (let index = 0; index < events.length; index++) {
            const event = events[index] as LogEvent | MetricEvent
            const problem = encoder.encode(event, body)
            if (problem !== undefined) failed(event, problem)
          }
        }
        unencoded.reject(batch, context.events)
        const count = batch.count - unencoded.count
        if (count === 0) {
          bodies.give(body)
          return undefined
        }
        const bytes = batch.bytes - unencoded.bytes
        writing = new Promise((resolve) => {
          target.write(body.view(), (error) => {
            if (error === null || error === undefined) {
              context.events.sent(count, bytes)
              context.events.sentBytes(body.length, protocol)
              batch.finalizer.release(1, 'delivered')
            } else {
              const message = 'The console accepts no more events.'
              context.events.error({ type: 'io_failed', stage: 'sending', message, fields: { error } })
              context.events.discarded(count, false, message)
              batch.finalizer.release(1, 'errored')
            }
            bodies.give(body)
            resolve()
          })
        })
        return writing
      },
      async close() {
        await writing
        target.off('error', unheard)
      },
    }
  },
})
