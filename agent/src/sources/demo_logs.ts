// Demo source: sample log lines of well-known formats, to try a pipeline without a real log.

import { pause } from '../clock.ts'
import { compileDecoder, decodedTypes, eventBatches } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource, type OptionProblem } from '../component.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { annotate, Notes, reportUndecoded } from '../intake/annotate.ts'
import { decoding, framing } from '../schema/groups.ts'
import { list, oneOf, optional, seconds, text, uint } from '../schema/options.ts'
import { demoFormats, demoLine } from './demo_logs/lines.ts'

/** Lines passed on at once; without an interval, this many in each turn. */
const maxPerBatch = 1000

const protocol = { protocol: 'none' }

export const demoLogs = defineSource({
  type: 'demo_logs',
  summary: 'Generates sample log lines, for trials.',
  outputs: ['log', 'metric'],
  emits: ({ decoding: chosen }) => decodedTypes(chosen),
  options: {
    format: oneOf([...demoFormats, 'shuffle'], 'Format of the lines; `shuffle` draws from `lines`.'),
    lines: optional(list(text('A line.'), 'Lines to draw from with format `shuffle`.', { minItems: 1 })),
    interval: seconds('Seconds between two lines.', { zero: 'as fast as the pipeline accepts lines', default: 1 }),
    count: optional(uint('Number of lines after which the source ends. Unlimited if not given.', { minimum: 1 })),
    decoding: decoding(),
    framing: framing(),
  },
  check(options): OptionProblem[] {
    const problems: OptionProblem[] = framingProblems(options.framing)
    if (options.format === 'shuffle' && options.lines === undefined) {
      problems.push({ path: 'lines', message: '`lines` is required with format `shuffle`' })
    }
    return problems
  },

  build(options, context) {
    const { stopping } = context
    const decoder = compileDecoder(options.decoding, options.framing, context.globals, { stream: false })
    const notes = new Notes('demo_logs', context.globals.logSchema)
    const intervalMs = options.interval * 1000
    const total = options.count ?? Number.POSITIVE_INFINITY
    const drawn = options.lines ?? []
    const format = options.format
    const line = () =>
      format === 'shuffle' ? (drawn[Math.floor(Math.random() * drawn.length)] as string) : demoLine(format, new Date())

    const emit = async (lines: number): Promise<void> => {
      const events: (LogEvent | MetricEvent)[] = []
      let received = 0
      for (let index = 0; index < lines; index++) {
        const frame = Buffer.from(line())
        received += frame.length
        const decoded = decoder.message(frame)
        reportUndecoded(decoded, context.events)
        for (const event of decoded.events) events.push(event)
      }
      context.events.receivedBytes(received, protocol)
      annotate(events, notes)
      for (const batch of eventBatches(events, new Finalizer())) await context.output.send(batch)
    }

    return {
      async run() {
        const start = performance.now()
        let emitted = 0
        while (emitted < total && !stopping.aborted) {
          const passed = performance.now() - start
          const due = intervalMs === 0 ? Number.POSITIVE_INFINITY : Math.floor(passed / intervalMs) + 1
          const lines = Math.min(due - emitted, total - emitted, maxPerBatch)
          if (lines > 0) {
            await emit(lines)
            emitted += lines
          }
          // Even at full speed the loop yields to other work.
          const pauseMs = intervalMs === 0 ? 0 : emitted * intervalMs - (performance.now() - start)
          await pause(Math.max(0, pauseMs), stopping) // stopping ends the loop
        }
      },
    }
  },
})
