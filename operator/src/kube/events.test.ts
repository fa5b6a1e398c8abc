import { silentLogger } from '@penstock/agent/telemetry'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import type { KubeClient } from './client.ts'
import { EventWriter } from './events.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const pipeline = (generation: number, name = 'p'): KubeObject => ({
  ...{ apiVersion: 'penstock.dev/v1', kind: 'Pipeline' },
  metadata: { name, namespace: 'shop', uid: name, generation },
})

function writer() {
  const notes: unknown[] = []
  const create = async (_: unknown, event: { readonly note: string }) => void notes.push(event.note)
  const kube = { create } as unknown as KubeClient
  const { signal } = new AbortController()
  return { notes, events: new EventWriter({ kube, logger: silentLogger, instance: 'i', signal, mayWrite: () => true }) }
}

test('an Event about the same generation is repeated after five minutes, and one about another generation is new', () => {
  const { notes, events } = writer()
  events.record(pipeline(1), 'Warning', 'Rejected', 'one mistake')
  events.record(pipeline(1), 'Warning', 'Rejected', 'the same again')
  vi.advanceTimersByTime(60_000)
  events.record(pipeline(2), 'Warning', 'Rejected', 'another mistake')
  events.record(pipeline(2), 'Normal', 'Accepted', 'fine')
  events.record(pipeline(1, 'q'), 'Warning', 'Rejected', 'of another Pipeline')
  vi.advanceTimersByTime(299_000)
  events.record(pipeline(2), 'Warning', 'Rejected', 'too soon')
  vi.advanceTimersByTime(2000)
  events.record(pipeline(2), 'Warning', 'Rejected', 'still')
  expect(notes).toEqual(['one mistake', 'another mistake', 'fine', 'of another Pipeline', 'still'])
})

test('an author who changes an object all the time causes few Events', () => {
  const { notes, events } = writer()
  for (let generation = 1; generation <= 3000; generation++) {
    events.record(pipeline(generation), 'Normal', 'Accepted', `${generation}`)
    vi.advanceTimersByTime(200)
  }
  // In ten minutes.
  expect(notes).toHaveLength(20)
})
