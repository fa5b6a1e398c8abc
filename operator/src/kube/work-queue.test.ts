import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WorkQueue } from './work-queue.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a key is queued once, processed by one worker, and queued again if it was added meanwhile', async () => {
  const queue = new WorkQueue()
  queue.add('a')
  queue.add('a')
  expect(await queue.next()).toBe('a')
  queue.add('a')
  expect(queue.depth).toBe(0)
  queue.done('a')
  expect(await queue.next()).toBe('a')
  queue.done('a')
  expect(queue.idle).toBe(true)
})

test('prefers changes of users to a resync, also for the same key', async () => {
  const queue = new WorkQueue()
  queue.add('old', 'resync')
  queue.add('new')
  queue.add('both', 'resync')
  queue.add('both')
  expect([await queue.next(), await queue.next(), await queue.next()]).toEqual(['new', 'both', 'old'])
})

test('the earlier of two times wins', async () => {
  const queue = new WorkQueue()
  queue.addAfter('a', 1000)
  queue.addAfter('a', 200)
  queue.addAfter('a', 500)
  vi.advanceTimersByTime(199)
  expect(queue.depth).toBe(0)
  vi.advanceTimersByTime(1)
  expect(await queue.next()).toBe('a')
  queue.done('a')
  vi.advanceTimersByTime(10_000)
  expect(queue.idle).toBe(true)
})

test('the wait doubles after each failure, up to a limit, and is reset after a success', () => {
  const queue = new WorkQueue({ maxDelayMs: 100 })
  const waits = Array.from({ length: 7 }, () => queue.retry('a'))
  expect(waits).toEqual([5, 10, 20, 40, 80, 100, 100])
  queue.forget('a')
  expect(queue.retry('a')).toBe(5)
  expect(queue.retry('b', { minMs: 3000 })).toBe(3000)
})

test('a hundred simultaneous failures exhaust the common budget', () => {
  const queue = new WorkQueue()
  const waits = Array.from({ length: 120 }, (_, index) => queue.retry(`key-${index}`))
  expect(waits[99]).toBe(5)
  expect(waits[119]).toBeGreaterThan(1_500)
})

test('a closed queue releases its workers', async () => {
  const queue = new WorkQueue()
  const worker = queue.next()
  queue.close()
  queue.add('late')
  expect(await worker).toBeUndefined()
  expect(await queue.next()).toBeUndefined()
})

test('namespaces take turns, and none of them occupies every worker', async () => {
  const lines = { of: (key: string) => key.split('/')[0] as string, maxActive: 2 }
  const queue = new WorkQueue({ lines })
  for (const key of ['evil/1', 'evil/2', 'evil/3', 'evil/4', 'shop/1', 'shop/2']) queue.add(key)
  expect(queue.depth).toBe(6)
  const first = [await queue.next(), await queue.next(), await queue.next(), await queue.next()]
  expect(first).toEqual(['evil/1', 'shop/1', 'evil/2', 'shop/2'])
  const waiting = queue.next()
  queue.add('blog/1')
  expect(await waiting).toBe('blog/1')
  // A slot of its own line must be free before the line's next key.
  const third = queue.next()
  queue.done('shop/1')
  expect(queue.depth).toBe(2)
  queue.done('evil/2')
  expect(await third).toBe('evil/3')
  queue.close()
})

test('periodic checks never occupy every worker', async () => {
  const queue = new WorkQueue({ maxResyncs: 2 })
  for (const key of ['a', 'b', 'c', 'd']) queue.add(key, 'resync')
  expect([await queue.next(), await queue.next()]).toEqual(['a', 'b'])
  const third = queue.next()
  queue.add('x')
  expect(await third).toBe('x')
  // A finished user change does not let another check in, but a finished check does.
  const fourth = queue.next()
  queue.done('x')
  expect(queue.depth).toBe(2)
  queue.done('b')
  expect(await fourth).toBe('c')
  // A change that makes a waiting check urgent is not counted as a check.
  queue.add('d', 'user')
  expect(await queue.next()).toBe('d')
  queue.close()
})

test('a delay beyond the limit of timers is not shortened', () => {
  const queue = new WorkQueue()
  queue.addAfter('a', Number.POSITIVE_INFINITY)
  vi.advanceTimersByTime(2_147_483_646)
  expect([queue.depth, queue.delayed]).toEqual([0, 1])
})
