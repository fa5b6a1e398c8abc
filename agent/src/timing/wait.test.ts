import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { unlessAborted, untilAborted, within } from './wait.ts'

const never = new Promise<never>(() => {})

test('`untilAborted` ends with the promise or the signal, and leaves no listener', async () => {
  const stop = new AbortController()
  await untilAborted(Promise.resolve(), stop.signal)
  await expect(untilAborted(Promise.reject(new Error('broken')), stop.signal)).rejects.toThrow('broken')
  expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  const waiting = untilAborted(never, stop.signal)
  stop.abort()
  await waiting
  await untilAborted(never, stop.signal)
})

test('`unlessAborted` returns the value unless the signal aborts first', async () => {
  const stop = new AbortController()
  expect(await unlessAborted(Promise.resolve(7), stop.signal)).toBe(7)
  const waiting = unlessAborted(never, stop.signal)
  stop.abort(new Error('stopping'))
  await expect(waiting).rejects.toThrow('stopping')
  await expect(unlessAborted(never, stop.signal)).rejects.toThrow('stopping')
})

test('`within` returns whether a promise resolves in time', async () => {
  expect(await within(Promise.resolve(), 60_000)).toBe(true)
  expect(await within(never, 1)).toBe(false)
  await expect(within(Promise.reject(new Error('broken')), 60_000)).rejects.toThrow('broken')
})
