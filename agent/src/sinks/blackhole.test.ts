import { expect, test, vi } from 'vitest'
import type { LogBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

test('accepts and counts events without creating them', async () => {
  await using sink = await startSink('blackhole', { print_interval_secs: 60 })
  const heard: string[] = []
  const batch = {
    type: 'log',
    count: 3,
    bytes: 300,
    get events(): never {
      throw new Error('The events were made.')
    },
    finalizer: new Finalizer((status) => heard.push(status)),
  } as unknown as LogBatch
  expect(sink.sink.write(batch)).toBeUndefined()
  expect(heard).toEqual(['delivered'])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(3)
})

test('with a rate, the next batch waits', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  await using sink = await startSink('blackhole', { rate: 1000 })
  let waits = 0
  for (let batch = 0; batch < 3; batch++) {
    const wait = sink.sink.write({
      type: 'log',
      count: 20,
      bytes: 1,
      events: [log({})],
      finalizer: new Finalizer(),
    } as unknown as LogBatch)
    if (wait !== undefined) waits++
    await wait
  }
  vi.useRealTimers()
  expect(waits).toBe(3)
})
