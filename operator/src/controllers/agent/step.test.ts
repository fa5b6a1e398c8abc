import type { Candidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import type { Report } from '../../fleet/state.ts'
import { type AgentPod, endedRepeatedly, endsOf, isAway } from './pods.ts'
import { StepWatch, StepWatches, worseIn } from './step.ts'

function pod(restartCount: number): AgentPod {
  const status = { containerStatuses: [{ name: 'agent', restartCount }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', uid: 'u' }, spec: { nodeName: 'n' }, status }
}

const report = (state: string) =>
  ({ podUid: 'u', node: 'n', revision: 'r', failed: new Set(), state }) as Partial<Report> as Report

test('an agent counts as crashed if its container restarted after the start of the step', () => {
  const watch = new StepWatch()
  watch.follow('r 0', [pod(3)])
  expect(watch.node(pod(3), undefined, false, 0).crashed).toBe(false)
  watch.follow('r 0', [pod(4)])
  expect(watch.node(pod(4), undefined, false, 0).crashed).toBe(true)
  watch.follow('r 1', [pod(4)])
  expect(watch.node(pod(4), undefined, false, 0).crashed).toBe(false)
})

test('the wait of an agent begins with its first consecutive report in this step', () => {
  const watch = new StepWatch()
  watch.follow('r 0', [pod(0)])
  const since = (state: string, now: number) => watch.sidecar(report(state), now).waitingSince
  expect([since('Waiting', 1), since('Waiting', 2), since('Loaded', 3), since('Waiting', 4)]).toEqual([
    1,
    1,
    undefined,
    4,
  ])
  watch.follow('r 1', [pod(0)])
  expect(since('Waiting', 5)).toBe(5)
})

test('a restarted agent still counts as a reader of logs until the step ends', () => {
  const watch = new StepWatch()
  const reads = (...ids: string[]) => {
    const received = { ...report('Loaded'), reading: new Set(ids) }
    return [...(watch.node(pod(0), received, false, 0).reads ?? [])]
  }
  watch.follow('r 0', [pod(0)])
  expect([reads('shop/a'), reads(), reads('shop/b')]).toEqual([['shop/a'], ['shop/a'], ['shop/a', 'shop/b']])
  watch.follow('r 1', [pod(0)])
  expect(reads()).toEqual([])
})

const end = { exitCode: 1, finishedAt: '2026-01-01T00:01:00Z' }
type State = NonNullable<NonNullable<NonNullable<AgentPod['status']>['containerStatuses']>[number]>

test.each<[string, Omit<State, 'name'>, startedAt: string, seconds: number, ends: number, away: boolean]>([
  ['runs since its start', { restartCount: 0, state: {} }, '00:00:00', 61, 0, false],
  ['has just ended', { restartCount: 0, state: { terminated: end } }, '00:00:00', 61, 1, true],
  [
    'waits to start again',
    { restartCount: 0, state: { waiting: {} }, lastState: { terminated: end } },
    '00:00:00',
    70,
    1,
    true,
  ],
  ['has started again', { restartCount: 1, state: {}, lastState: { terminated: end } }, '00:00:00', 70, 1, true],
  ['has reported again', { restartCount: 1, state: {}, lastState: { terminated: end } }, '00:01:10', 80, 1, false],
  [
    'stays away',
    { restartCount: 0, state: { waiting: {} }, lastState: { terminated: end } },
    '00:00:00',
    180,
    1,
    false,
  ],
  ['is being created', { restartCount: 0, state: { waiting: {} } }, '00:00:00', 61, 0, false],
])(
  'a container that %s has ended so often, and its agent is away or not',
  (_, state, startedAt, seconds, ends, away) => {
    const status = { containerStatuses: [{ name: 'agent', ...state }] }
    const found = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', uid: 'u' }, status }
    expect(endsOf(found)).toBe(ends)
    const received = { startedAt: `2026-01-01T${startedAt}.500Z` } as Report
    expect(isAway(found, received, Date.parse('2026-01-01T00:00:00Z') + seconds * 1000)).toBe(away)
  },
)

const candidate: Candidate = { rev: 'new', shards: [], percent: 5, salt: '' }
function figures([eventsIn, dropped]: readonly [number, number]): Report['pipelines'] {
  const rest = { generation: 1, uid: '', hash: '', eventsOut: 0, filtered: 0, lostBytes: 0, bufferedEvents: 0 }
  const buffer = { bufferedBytes: 0, bufferUse: 0, lagSeconds: 0, components: {} }
  return { 'shop/p': { ...rest, ...buffer, eventsIn, dropped, errors: 0 } }
}

test.each([
  {
    sentence: 'more than twice the losses of the stable revision are worse',
    stable: [1000, 20],
    tried: [100, 5],
    worse: true,
  },
  { sentence: 'twice the losses are not', stable: [1000, 20], tried: [100, 4], worse: false },
  { sentence: 'one event in a hundred may get lost', stable: [1000, 0], tried: [100, 1], worse: false },
  { sentence: 'too few events say nothing', stable: [1000, 0], tried: [99, 99], worse: false },
  {
    sentence: 'a pipeline without traffic before has nothing to be compared with',
    stable: [0, 0],
    tried: [100, 100],
    worse: false,
  },
] as const)('$sentence', ({ stable, tried, worse }) => {
  const reports = [
    { lacks: new Set(['shop/p', 'other/p']), pipelines: figures(stable) },
    { lacks: new Set<string>(), pipelines: figures(tried) },
  ]
  const found = (changed: string[], percent = 5) => [...worseIn(reports, { ...candidate, percent }, new Set(changed))]
  expect(found(['shop/p'])).toEqual(worse ? ['shop/p'] : [])
  expect(found(['other/p']), 'of changed pipelines alone').toEqual([])
  expect(found(['shop/p'], 100), 'while some agents run the stable revision').toEqual([])
})

test.each<[string, restarts: number, until: string, since: string, kept: boolean]>([
  ['two ends, the last a moment before', 2, '00:02:00', '00:00:00', true],
  ['a single end', 1, '00:02:00', '00:00:00', false],
  ['the last end long before', 2, '00:12:00', '00:00:00', false],
  ['an end after it', 2, '00:00:30', '00:00:00', false],
  ['an end that a change may have caused', 2, '00:02:00', '00:01:30', false],
])('whether an agent ended repeatedly before a trial: %s', (_, restartCount, until, since, kept) => {
  const at = (time: string) => Date.parse(`2026-01-01T${time}Z`)
  const status = { containerStatuses: [{ name: 'agent', restartCount, state: {}, lastState: { terminated: end } }] }
  expect(endedRepeatedly({ ...pod(0), status }, at(until), at(since))).toBe(kept)
})

test('the unsteady agents of a trial are those at its beginning; without a trial they can change', () => {
  const watches = new StepWatches()
  const ended = (finishedAt: string) => [
    {
      ...pod(0),
      status: {
        containerStatuses: [{ name: 'agent', restartCount: 2, lastState: { terminated: { ...end, finishedAt } } }],
      },
    },
  ]
  const before = ended('2026-01-01T00:01:00Z')
  const after = ended('2026-01-01T00:03:00Z')
  const now = Date.parse('2026-01-01T00:04:00Z')
  const begun = '2026-01-01T00:02:00Z'
  const steadyOf = (record: { begun?: string }, pods: readonly AgentPod[]) =>
    watches.unsteady({ history: [], ...record }, pods, now).size === 0
  expect([steadyOf({}, before), steadyOf({ begun }, before), steadyOf({ begun }, after)]).toEqual([false, false, false])
  // An operator that has just started does not know which ends were before the trial.
  watches.forget()
  expect([steadyOf({ begun }, after), steadyOf({}, after)]).toEqual([true, false])
})
