import { expect, test } from 'vitest'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { type Batch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { log } from '../testing/events.ts'
import { showBuffer } from './buffer.ts'
import { MemoryBuffer } from './memory.ts'

const component = { component_id: 'out', component_kind: 'sink', component_type: 'test' }

function batch(size: number, statuses: string[] = []): Batch {
  const events = Array.from({ length: size }, (_, index) => log({ message: `line ${index}` }))
  return logBatch(events, new Finalizer((status) => statuses.push(status)))
}

function memory(maxEvents: number, whenFull: 'block' | 'drop_newest') {
  const metrics = new Metrics()
  const buffer = new MemoryBuffer({ maxEvents, whenFull }, metrics, component)
  showBuffer(buffer, metrics, component)
  return { metrics, buffer }
}

test('a batch larger than the free space enters in slices, in order, under one finalizer', async () => {
  const { buffer, metrics } = memory(4, 'block')
  const statuses: string[] = []
  let admitted = false
  const wait = buffer.write(batch(10, statuses))
  void wait?.then(() => {
    admitted = true
  })
  expect(buffer.events).toBe(4)
  const sizes: number[] = []
  const messages: unknown[] = []
  for (let part = buffer.take(); part !== undefined; part = buffer.take()) {
    sizes.push(part.count)
    messages.push(...(part.events as LogEvent[]).map((event) => event.fields['message']))
    expect(statuses).toEqual([])
    part.finalizer.release(1, 'delivered')
  }
  await wait
  expect(admitted).toBe(true)
  expect(sizes).toEqual([4, 4, 2])
  expect(messages).toEqual(Array.from({ length: 10 }, (_, index) => `line ${index}`))
  expect(statuses).toEqual(['delivered'])
  expect(buffer.empty).toBe(true)
  expect(metrics.sum('buffer_received_events_total')).toBe(10)
  expect(metrics.sum('buffer_sent_events_total')).toBe(10)
  expect(metrics.sum('buffer_events')).toBe(0)
  expect(metrics.sum('buffer_byte_size')).toBe(0)
})

test.each(['block', 'drop_newest'] as const)(
  'the memory of lines is released after their last part: %s',
  (whenFull) => {
    const { buffer } = memory(2, whenFull)
    const line = Buffer.from('2026-01-02T03:04:05.123456789Z stdout F {"a":1}')
    let whole: ByteBatch | undefined
    new BytePod('web').read([line, line, line, line, line], (batch) => {
      whole = batch
      void buffer.write(batch)
    })
    const lines = whole?.lines
    const taken: string[] = []
    for (let part = buffer.take(); part instanceof ByteBatch; part = buffer.take()) {
      taken.push(lines?.event(0).fields['message'] as string)
      part.done()
    }
    expect(taken).toEqual(Array(whenFull === 'block' ? 3 : 1).fill('{"a":1}'))
    expect(() => lines?.event(0)).toThrow('after their memory was released')
  },
)

test('waiting writers enter in the order of their arrival', async () => {
  const { buffer } = memory(2, 'block')
  const order: number[] = []
  const waits = [3, 1, 1].map((size, index) => buffer.write(batch(size))?.then(() => order.push(index)))
  expect(waits.every((wait) => wait !== undefined)).toBe(true)
  const sizes: number[] = []
  for (let part = buffer.take(); part !== undefined; part = buffer.take()) sizes.push(part.count)
  await Promise.all(waits)
  expect(order).toEqual([0, 1, 2])
  expect(sizes).toEqual([2, 1, 1, 1])
})

test('drop_newest keeps events that fit, and discards the others intentionally', () => {
  const { buffer, metrics } = memory(4, 'drop_newest')
  const statuses: string[] = []
  expect(buffer.write(batch(10, statuses))).toBeUndefined()
  expect(buffer.write(batch(3, statuses))).toBeUndefined()
  expect(buffer.events).toBe(4)
  expect(metrics.sum('buffer_discarded_events_total', { intentional: 'true', buffer_id: 'out' })).toBe(9)
  expect(metrics.sum('buffer_max_event_size')).toBe(4)
  expect(statuses).toEqual(['delivered']) // the second batch, which was dropped completely
  buffer.take()?.finalizer.release(1, 'rejected')
  expect(statuses).toEqual(['delivered', 'rejected'])
})

test('a batch of any size passes if a reader takes it immediately', () => {
  const { buffer } = memory(4, 'block')
  let taken = 0
  buffer.onReadable = () => {
    for (let part = buffer.take(); part !== undefined; part = buffer.take()) taken += part.count
  }
  expect(buffer.write(batch(1001))).toBeUndefined()
  expect(taken).toBe(1001)
})

test('reports events inside a closed buffer as errored', async () => {
  const { buffer } = memory(4, 'block')
  const statuses: string[] = []
  const wait = buffer.write(batch(9, statuses))
  await buffer.close()
  await wait
  expect(statuses).toEqual(['errored'])
})
