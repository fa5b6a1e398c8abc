import { hostname } from 'node:os'
import { afterEach, expect, test, vi } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { createLogger } from '../telemetry/logger.ts'
import { startSource } from '../testing/harness.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

test("the agent's log lines become events", async () => {
  await using source = await startSource('internal_logs', { pid_key: 'process.id' })
  createLogger({ level: 'error', format: 'json' })
    .child({ component_id: 'out' })
    .error({ attempt: 2, error: new Error('refused') }, 'Request failed; retrying.')
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields).toMatchObject({
    message: 'Request failed; retrying.',
    level: 'error',
    attempt: 2,
    error: { message: 'refused' },
    component_id: 'out',
    host: hostname(),
    process: { id: process.pid },
    source_type: 'internal_logs',
  })
  expect(event?.fields['timestamp']).toBeInstanceOf(Timestamp)
  await source.stop()
  expect(source.events.counts.get('component_received_bytes_total')).toBeGreaterThan(100)
})
