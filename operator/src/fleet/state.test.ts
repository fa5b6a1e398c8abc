import type { HeartbeatBody } from '@penstock/agent/bundle'
import { expect, test, vi } from 'vitest'
import { monotonicNow } from '../kube/clock.ts'
import type { Fragment } from '../render/fragment.ts'
import { FleetState } from './state.ts'

const sender = { pod: 'agent-1', podUid: 'uid-1', node: 'node-1' }

function fleet(...selected: readonly string[]): FleetState {
  const made = new FleetState()
  made.set('shop/sidecar', {
    stable: undefined,
    candidate: undefined,
    record: { rolledBack: {}, history: [] },
    revisions: new Map(),
    selected: new Map(selected.map((id) => [id, {} as Fragment])),
    evicted: new Map(),
    startSpreadMs: 0,
    why: '',
  })
  return made
}

const body = (extra: object): HeartbeatBody =>
  ({ schema: 1, state: 'Loaded', failures: [], failed: [], pipelines: {}, ...extra }) as unknown as HeartbeatBody

const traffic = { eventsIn: 10, eventsOut: 9, dropped: 1, errors: 1, components: { out: { kind: 'sink', errors: 1 } } }

test('an agent reports only for the pipelines of its Agent', () => {
  const made = fleet('shop/own')
  made.hear(
    'shop/sidecar',
    sender,
    body({
      failed: ['shop/own', 'bank/other'],
      failures: [{ pipeline: 'bank/other', reason: 'X', message: 'Y' }],
      pipelines: { 'shop/own': traffic, 'bank/other': traffic },
    }),
    1_000_000,
  )
  const report = made.report('shop/sidecar', 'uid-1')
  expect(Object.keys(report?.pipelines ?? {})).toEqual(['shop/own'])
  expect(made.flow('bank/other')).toBeUndefined()
  expect(made.flow('shop/own')?.figures(1_000_000)).toMatchObject({ eventsIn: 10, eventsOut: 9, dropped: 1, errors: 1 })
  expect(made.flow('shop/own')?.figures(1_400_000).eventsIn).toBe(0)
})

const nothing = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0, buffered: 0 }

test.each([
  { pipelines: [1, 2] },
  { pipelines: { 'shop/own': null } },
  { pipelines: { 'shop/own': { eventsIn: 'many', components: { out: { lastError: { at: 'never' } } } } } },
  { pipelines: { 'shop/own': { eventsIn: -5, components: 7 } }, failed: 'all', failures: { length: 3 } },
  { state: { toString: 1 }, revision: 'r'.repeat(100_000) },
])('an invalid heartbeat is read as an empty one: %j', (extra) => {
  const made = fleet('shop/own')
  made.hear('shop/sidecar', sender, body(extra), 1_000_000)
  const report = made.report('shop/sidecar', 'uid-1')
  expect(report?.revision?.length ?? 0).toBeLessThanOrEqual(1024)
  expect(made.flow('shop/own')?.figures(1_000_000) ?? nothing).toEqual(nothing)
})

test('a change is announced once, and a repetition is not announced', () => {
  const made = fleet('shop/own')
  const announced: string[] = []
  using _ = made.onChange((agent) => announced.push(agent))
  for (const at of [1, 2, 3]) made.hear('shop/sidecar', sender, body({ revision: 'r1' }), at)
  made.hear('shop/sidecar', sender, body({ revision: 'r2' }), 4)
  expect(announced).toEqual(['shop/sidecar', 'shop/sidecar'])
})

test('a jump of the clock makes no agent stale', () => {
  const made = fleet('shop/own')
  made.hear('shop/sidecar', sender, body({}), monotonicNow())
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
  try {
    expect(made.isStale(made.report('shop/sidecar', 'uid-1'), monotonicNow())).toBe(false)
  } finally {
    vi.useRealTimers()
  }
})

test('which pipelines an agent reads is unknown until the content of its Agent is', () => {
  const made = new FleetState()
  made.hear('shop/sidecar', sender, body({ reading: ['shop/own'] }), 1)
  expect(made.report('shop/sidecar', 'uid-1')?.reading).toBeUndefined()
  const known = fleet('shop/own')
  known.hear('shop/sidecar', sender, body({ reading: ['shop/own', 'bank/other'] }), 1)
  expect(known.report('shop/sidecar', 'uid-1')?.reading).toEqual(new Set(['shop/own']))
})
