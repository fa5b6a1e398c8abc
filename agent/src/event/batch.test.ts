import { expect, test } from 'vitest'
import { log } from '../testing/events.ts'
import { logBatch, ownEvents } from './batch.ts'
import { Finalizer } from './finalizer.ts'

const batch = () => logBatch([log({ message: 'a' }), log({ message: 'b' })], new Finalizer())

test('each holder of shared events gets its own, and the last one needs no copies', () => {
  const last = batch()
  const first = last.share()
  const second = last.share()
  const events = last.events
  const held = [first, second, last].map((holder) => ownEvents(holder))
  for (const [index, own] of held.entries()) for (const event of own) event.fields['holder'] = index
  expect(held.map((own) => own.map((event) => event.fields))).toEqual(
    [0, 1, 2].map((holder) => ['a', 'b'].map((message) => ({ message, holder }))),
  )
  expect(held[2]?.[0]).toBe(events[0])
})

test('if a holder keeps the events unchanged or has a slice of them, all others make copies', () => {
  const kept = batch()
  const changed = kept.share()
  for (const round of [1, 2]) for (const event of ownEvents(changed)) event.fields['more'] = round
  expect(kept.events[0]?.fields).toEqual({ message: 'a' })

  const whole = batch()
  const other = whole.share()
  const parts = [other.slice(0, 1), other.slice(1, 2)]
  for (const event of ownEvents(whole)) event.fields['more'] = 1
  for (const part of parts) for (const event of ownEvents(part)) event.fields['more'] = 2
  expect(parts.flatMap((part) => part.events.map((event) => event.fields))).toEqual([
    { message: 'a' },
    { message: 'b' },
  ])
})
