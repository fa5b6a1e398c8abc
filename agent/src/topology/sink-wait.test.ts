import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SinkWait } from './sink-wait.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A wait that records its reports, with writes that end on request. */
function started() {
  const reports: boolean[] = []
  const wait = new SinkWait((isWaiting) => reports.push(isWaiting))
  const write = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    wait.add(promise)
    return async () => {
      resolve()
      await Promise.resolve()
      await Promise.resolve()
    }
  }
  return { reports, wait, write }
}

test('a wait of five seconds is reported once, and its end as well', async () => {
  const { reports, wait, write } = started()
  const accept = write()
  vi.advanceTimersByTime(4000)
  expect([wait.seconds, reports]).toEqual([4, []])
  vi.advanceTimersByTime(60_000)
  expect([wait.seconds, reports]).toEqual([64, [true]])
  await accept()
  expect([wait.seconds, reports]).toEqual([0, [true, false]])
})

test('a slow sink, whose waits are short, is not reported', async () => {
  const { reports, write } = started()
  for (let index = 0; index < 30; index++) {
    const accept = write()
    vi.advanceTimersByTime(1000)
    await accept()
  }
  expect(reports).toEqual([])
})

test('with two writers, the wait begins again when the buffer accepts one, and may be reported again', async () => {
  const { reports, wait, write } = started()
  const [first, second] = [write(), write()]
  vi.advanceTimersByTime(6000)
  await first()
  expect([wait.seconds, reports]).toEqual([0, [true, false]])
  vi.advanceTimersByTime(6000)
  expect(reports).toEqual([true, false, true])
  await second()
  expect(reports).toEqual([true, false, true, false])
})
