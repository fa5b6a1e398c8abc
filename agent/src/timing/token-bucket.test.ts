import { expect, test } from 'vitest'
import { TokenBucket, TokenLine, type Urgency } from './token-bucket.ts'

test('a bucket allows a burst at once, and then its rate per second', () => {
  const bucket = new TokenBucket(50, 100)
  const waits = Array.from({ length: 150 }, () => bucket.takeAfterMs())
  expect(waits.slice(0, 100).every((ms) => ms === 0)).toBe(true)
  expect(waits[149]).toBeGreaterThan(900)
})

test('a bucket never stores more than its capacity', () => {
  const bucket = new TokenBucket(10, 20)
  expect(bucket.fill(0)).toBe(20)
  bucket.take(15)
  expect([bucket.fill(500), bucket.fill(1_000_000)]).toEqual([10, 20])
})

test('a number beyond the capacity is available when the bucket is full, and its debt takes time', () => {
  const bucket = new TokenBucket(10)
  expect(bucket.has(25, 0)).toBe(true)
  bucket.take(25)
  expect([bucket.debtMs, bucket.has(1, 1500), bucket.has(1, 1600)]).toEqual([1500, false, true])
})

test('a bucket without capacity and rate has no tokens, and its debt never ends', () => {
  const bucket = new TokenBucket(0)
  expect([bucket.has(1, 0), bucket.has(1, 1e9), bucket.debtMs]).toEqual([false, false, 0])
  bucket.take(1)
  expect([bucket.fill(2e9), bucket.debtMs]).toEqual([-1, Number.POSITIVE_INFINITY])
})

test('a clock that goes back does not change the tokens', () => {
  const bucket = new TokenBucket(10)
  bucket.take(10)
  expect([bucket.fill(5000), bucket.fill(1000), bucket.fill(1500)]).toEqual([0, 0, 5])
})

test('a caller that aborts leaves its token to the next one', async () => {
  const line = new TokenLine(new TokenBucket(0.001, 1))
  const reason = new Error('given up')
  await expect(line.take(AbortSignal.abort(reason))).rejects.toBe(reason)
  await line.take(new AbortController().signal)
})

test('urgent callers go first, and others get every fifth turn', async () => {
  const line = new TokenLine(new TokenBucket(1000, 1))
  const { signal } = new AbortController()
  const served: string[] = []
  await line.take(signal)
  const wait = (name: string, urgent?: Urgency) => line.take(signal, { urgent }).then(() => void served.push(name))
  const others = Array.from({ length: 4 }, (_, index) => wait(`other ${index}`))
  const urgent = Array.from({ length: 10 }, (_, index) => wait(`urgent ${index}`, 'result'))
  await Promise.all([...others, ...urgent])
  const places = served.flatMap((name, place) => (name.startsWith('other') ? place : []))
  expect(places).toEqual([4, 9, 12, 13])
  expect(served.filter((name) => name.startsWith('urgent'))).toEqual(urgent.map((_, index) => `urgent ${index}`))
  expect(served.filter((name) => name.startsWith('other'))).toEqual(others.map((_, index) => `other ${index}`))
})

test('results and connections take turns, however many of one kind wait', async () => {
  const line = new TokenLine(new TokenBucket(1000, 1))
  const { signal } = new AbortController()
  const served: string[] = []
  await line.take(signal)
  const wait = (urgent: Urgency) => line.take(signal, { urgent }).then(() => void served.push(urgent))
  const connections = Array.from({ length: 20 }, () => wait('connection'))
  await Promise.all([...connections, wait('result'), wait('result')])
  expect(served.flatMap((urgent, place) => (urgent === 'result' ? place : []))).toEqual([0, 2])
})

test('after all callers have aborted, the token is available for the next one', async () => {
  const line = new TokenLine(new TokenBucket(1000, 1))
  const leaving = new AbortController()
  await line.take(leaving.signal)
  const left = [line.take(leaving.signal), line.take(leaving.signal, { urgent: 'connection' })]
  leaving.abort(new Error('given up'))
  for (const each of left) await expect(each).rejects.toThrow('given up')
  await line.take(new AbortController().signal)
})
