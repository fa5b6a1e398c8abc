// The agent's own log as events. Lines wait, up to a limit, while the pipeline applies back-pressure: the log must
// never block the agent, and log lines about a full pipeline must not fill it further.

import { hostname } from 'node:os'
import { defineSource } from '../component.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { float, setField, type Value, type ValueObject } from '../event/value.ts'
import { parseRfc3339 } from '../formats/datetime.ts'
import { Notes } from '../intake/annotate.ts'
import { fieldPath, optional } from '../schema/options.ts'
import { type LogRecord, subscribe } from '../telemetry/logger.ts'

const maxWaiting = 1000

/** Nothing is received over a network, so the bytes received are those of the events. */
const protocol = { protocol: 'internal' }

export const internalLogs = defineSource({
  type: 'internal_logs',
  summary: "Emits the agent's own log.",
  outputs: ['log'],
  reaches: 'agent',
  options: {
    host_key: optional(fieldPath('Field for the name of the host. Empty: none. If not given, `log_schema.host_key`.')),
    pid_key: optional(fieldPath('Field for the process id. None if not given.')),
  },

  build(options, context) {
    const { logSchema } = context.globals
    const notes = new Notes('internal_logs', logSchema, [
      [options.host_key ?? logSchema.hostKey, hostname()],
      [options.pid_key ?? '', process.pid],
    ])
    return {
      async run() {
        const waiting: LogEvent[] = []
        let lost = 0
        let wake = () => {}
        const unsubscribe = subscribe((record) => {
          if (waiting.length >= maxWaiting) {
            lost++
            return
          }
          const event = eventOf(record, logSchema)
          notes.add(event)
          waiting.push(event)
          wake()
        })
        const stop = () => wake()
        context.stopping.addEventListener('abort', stop)
        try {
          while (!context.stopping.aborted || waiting.length > 0) {
            if (waiting.length === 0) {
              await new Promise<void>((resolve) => {
                wake = resolve
              })
              continue
            }
            const events = waiting.splice(0)
            if (lost > 0) {
              const count = lost
              lost = 0
              context.events.discarded(count, false, 'The agent logs faster than the pipeline accepts its log.')
            }
            const batch = logBatch(events, new Finalizer())
            context.events.receivedBytes(batch.bytes, protocol)
            await context.output.send(batch)
          }
        } finally {
          context.stopping.removeEventListener('abort', stop)
          unsubscribe()
        }
      },
    }
  },
})

function eventOf(record: LogRecord, schema: { messageKey: string; timestampKey: string }): LogEvent {
  const { message, timestamp, ...rest } = record
  const fields: ValueObject = {}
  for (const name in rest) setField(fields, name, valueFrom(rest[name]))
  setField(fields, schema.messageKey, typeof message === 'string' ? message : '')
  const instant = typeof timestamp === 'string' ? parseRfc3339(timestamp) : undefined
  setField(fields, schema.timestampKey, instant ?? Timestamp.now())
  return new LogEvent(fields)
}

/** Converts a JSON value into an event value. */
function valueFrom(json: unknown): Value {
  if (json === null || json === undefined) return null
  if (typeof json === 'number') return Number.isInteger(json) && !Number.isSafeInteger(json) ? float(json) : json
  if (typeof json === 'string' || typeof json === 'boolean') return json
  if (Array.isArray(json)) return json.map(valueFrom)
  const object: ValueObject = {}
  for (const [name, value] of Object.entries(json as object)) setField(object, name, valueFrom(value))
  return object
}
