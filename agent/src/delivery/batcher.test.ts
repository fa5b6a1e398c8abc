import { expect, test } from 'vitest'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { FakeClock } from '../testing/clock.ts'
import { log } from '../testing/events.ts'
import { batchOf } from '../testing/harness.ts'
import { Batcher, type BatchLimits, type RequestWriter } from './batcher.ts'

/** Events of ten bytes with a letter as message. `!` cannot be encoded, and the writer stops after `|`. */
const letters = (text: string) => [...text].map((letter) => log({ m: letter }))
const size = log({ m: 'a' }).size

function start(limits: Partial<BatchLimits>, partition?: RequestWriter['partition']) {
  const clock = new FakeClock()
  const closed: string[] = []
  const owners: number[][] = []
  const batcher = new Batcher(
    { maxBytes: Number.POSITIVE_INFINITY, maxEvents: Number.POSITIVE_INFINITY, timeoutMs: 1000, ...limits },
    {
      partition,
      encode(events, from, to, request) {
        for (let index = from; index < to; index++) {
          const text = (events[index] as LogEvent).fields['m'] as string
          if (text === '!') continue
          const before = request.body.length
          request.body.writeText(text)
          request.mark(before)
          if (text !== '|') continue
          request.stoppedAt = index + 1
          return
        }
      },
    },
    clock,
    (request) => {
      closed.push(`${clock.now()} ${request.body.view().toString()}`)
      owners.push(request.owners.counts.slice())
    },
  )
  const add = (text: string, finalizer = new Finalizer(), pause = () => false) => {
    const batch = batchOf(letters(text), finalizer)
    finalizer.retain(text.length - 1)
    return batcher.add(batch, 0, pause)
  }
  return { clock, closed, owners, batcher, add }
}

test('a request is closed when it is nearly full, before its body exceeds the limit of the destination', async () => {
  const { clock, closed, add } = start({ maxBodyBytes: 10_000 })
  for (let batch = 0; batch < 300; batch++) add('abcdefghij'.repeat(10))
  await clock.advance(1000)
  const lengths = closed.map((line) => line.length - line.indexOf(' ') - 1)
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(30_000)
  for (const length of lengths) expect(length).toBeLessThanOrEqual(10_000)
  for (const length of lengths.slice(0, -1)) expect(length).toBeGreaterThan(9500)
})

test.each([
  { maxBytes: 1 << 20, limit: 4 << 20 },
  { maxBytes: 2 << 20, limit: 8 << 20 },
  { maxBytes: Number.POSITIVE_INFINITY, limit: 64 << 20 },
])('a request of small events closes because of the text added to them: $maxBytes', async ({ maxBytes, limit }) => {
  const clock = new FakeClock()
  const text = 'x'.repeat(200_000)
  const lengths: number[] = []
  const counts: number[] = []
  const batcher = new Batcher(
    { maxBytes, maxEvents: 100_000, timeoutMs: 1000 },
    {
      encode(events, from, to, request) {
        for (let index = from; index < to; index++) {
          const before = request.body.length
          request.body.writeText((events[index] as LogEvent).fields['m'] as string)
          request.body.writeText(text)
          request.mark(before)
        }
      },
    },
    clock,
    (request) => {
      lengths.push(request.body.length)
      counts.push(request.count)
      request.owners.release('delivered')
    },
  )
  const finalizer = new Finalizer()
  const events = letters('abcdefghij'.repeat(100))
  finalizer.retain(events.length - 1)
  expect(batcher.add(batchOf(events, finalizer), 0, () => false)).toBe(1000)
  await clock.advance(1000)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1000)
  for (const length of lengths) expect(length).toBeLessThan(limit + 2 * text.length)
  for (const length of lengths.slice(0, -1)) expect(length).toBeGreaterThan(limit)
})

test.each([
  ['one partition', undefined],
  ['partitions', () => 'p'],
])(
  'a request is closed where the writer stops, and the remaining events go into other requests: %s',
  async (_name, partition) => {
    const { clock, closed, owners, add } = start({ maxBytes: 1_000_000 }, partition)
    add('ab|c|!|')
    add('d')
    await clock.advance(1000)
    expect(closed).toEqual(['0 ab|', '0 c|', '0 |', '1000 d'])
    expect(owners).toEqual([[3], [2], [1], [1]])
  },
)

test('if a writer stops and the sink is full, the rest of the batch waits', () => {
  const { closed, add } = start({ maxBytes: 1_000_000 })
  expect(add('ab|cd', new Finalizer(), () => true)).toBe(3)
  expect(closed).toEqual(['0 ab|'])
})

test('an event that exceeds the body limit gets its own request', async () => {
  const { clock, closed, add } = start({ maxBodyBytes: 1 })
  add('abc')
  await clock.advance(1000)
  expect(closed).toEqual(['0 a', '0 b', '1000 c'])
})

test.each<{ what: string; limits: Partial<BatchLimits>; batches: string[]; closed: string[] }>([
  { what: 'age from its first event', limits: {}, batches: ['ab', 'c'], closed: ['1000 abc'] },
  { what: 'number of events', limits: { maxEvents: 2 }, batches: ['abc', 'de'], closed: ['0 ab', '0 cd', '1000 e'] },
  {
    what: 'size, before the event that does not fit',
    limits: { maxBytes: size * 2.5 },
    batches: ['abc', 'd'],
    closed: ['0 ab', '1000 cd'],
  },
  { what: 'size, reached exactly', limits: { maxBytes: size * 2 }, batches: ['ab', 'c'], closed: ['0 ab', '1000 c'] },
  { what: 'size, with events larger than it', limits: { maxBytes: size / 2 }, batches: ['ab'], closed: ['0 a', '0 b'] },
  { what: 'nothing, when no event could be encoded', limits: {}, batches: ['!!'], closed: [] },
])('a request closes because of $what', async ({ limits, batches, closed: expected }) => {
  const { clock, closed, add } = start(limits)
  for (const batch of batches) add(batch)
  await clock.advance(1000)
  expect(closed).toEqual(expected)
})

test('the age of a request starts with its own first event', async () => {
  const { clock, closed, add } = start({ maxEvents: 2 })
  add('a')
  await clock.advance(600)
  add('bc') // `ab` is full
  await clock.advance(999)
  expect(closed).toEqual(['600 ab'])
  await clock.advance(1)
  expect(closed).toEqual(['600 ab', '1600 c'])
})

test('partitions never share a request, and each has its own age', async () => {
  const { clock, closed, add, batcher } = start({}, (event) => {
    const letter = (event as LogEvent).fields['m'] as string
    return letter === '-' ? undefined : letter.toLowerCase()
  })
  add('aAb')
  await clock.advance(500)
  add('ac-')
  await clock.advance(500)
  expect(closed).toEqual(['1000 aAa', '1000 b'])
  batcher.flush()
  expect(closed).toEqual(['1000 aAa', '1000 b', '1000 c'])
})

test('a request records how many of its events belong to each batch', () => {
  const { owners, add, batcher } = start({ maxEvents: 3 })
  add('ab')
  add('cd!')
  add('e')
  batcher.flush()
  expect(owners).toEqual([
    [2, 1],
    [1, 1],
  ])
})

test('events that cannot be encoded or have no partition are rejected', () => {
  const outcomes: string[] = []
  const { add } = start({})
  add('!', new Finalizer((status) => outcomes.push(status)))
  const partitioned = start({}, () => undefined)
  partitioned.add('a', new Finalizer((status) => outcomes.push(status)))
  expect(outcomes).toEqual(['rejected', 'rejected'])
})

test('if the sink is full, only the events up to the closed request are added', () => {
  const { closed, add } = start({ maxEvents: 2 })
  expect(add('abcdef', new Finalizer(), () => true)).toBe(2)
  expect(closed).toEqual(['0 ab'])
})

test('with too many open partitions, the oldest is sent at once and no event is lost', async () => {
  let sent = 0
  let finished = 0
  let maxOpen = 0
  const open = new Set<string>()
  const batcher = new Batcher(
    { maxBytes: 1 << 20, maxEvents: 1000, timeoutMs: 1000 },
    {
      partition: (event) => (event as LogEvent).fields['key'] as string,
      begin: (request) => open.add(request.key),
      encode(_events, from, to, request) {
        for (let index = from; index < to; index++) request.mark(request.body.length)
        maxOpen = Math.max(maxOpen, open.size)
      },
    },
    new FakeClock(),
    (request) => {
      open.delete(request.key)
      sent += request.count
      request.owners.release('delivered')
      batcher.pool.give(request.body)
    },
  )
  for (let from = 0; from < 20_000; from += 100) {
    const events = Array.from({ length: 100 }, (_, index) => log({ key: `tenant ${from + index}` }))
    const finalizer = new Finalizer(() => finished++)
    finalizer.retain(events.length - 1)
    batcher.add(batchOf(events, finalizer), 0, () => false)
  }
  expect(maxOpen).toBeLessThanOrEqual(2001)
  expect(sent).toBe(20_000 - open.size)
  batcher.flush()
  expect({ sent, finished }).toEqual({ sent: 20_000, finished: 200 })
})

test('partitions with long keys are sent before they exhaust the memory', () => {
  let held = 0
  let peak = 0
  const batcher = new Batcher(
    { maxBytes: 1 << 20, maxEvents: 1000, timeoutMs: 1000 },
    {
      partition: (event) => (event as LogEvent).fields['key'] as string,
      begin: (request) => {
        held += 2 * request.key.length
      },
      encode(_events, from, to, request) {
        for (let index = from; index < to; index++) request.mark(request.body.length)
        peak = Math.max(peak, held)
      },
    },
    new FakeClock(),
    (request) => {
      held -= 2 * request.key.length
      request.owners.release('delivered')
      batcher.pool.give(request.body)
    },
  )
  for (let index = 0; index < 1000; index++) {
    batcher.add(batchOf([log({ key: `${index}`.padEnd(200_000, 'x') })], new Finalizer()), 0, () => false)
  }
  expect(peak).toBeLessThanOrEqual((64 << 20) + 400_000)
  batcher.flush()
  expect(held).toBe(0)
})
