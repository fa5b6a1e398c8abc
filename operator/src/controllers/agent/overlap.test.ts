// Changes of different Pipelines that overlap: how long a change of b takes while one of a is on its canaries, is observed, proceeds,
// fails, hangs, or waits for an agent. Time is the test's.

import { expect, test, vi } from 'vitest'
import { type Harm, idOf, RolloutBench } from '../../testing/rollout-bench.ts'

const clock = vi.hoisted(() => ({ now: Date.parse('2026-01-01T00:00:00Z') }))
vi.mock('../../kube/clock.ts', () => ({ monotonicNow: () => clock.now }))

const size = 20

async function running(...contents: readonly string[]): Promise<RolloutBench> {
  const bench = new RolloutBench(clock, size)
  bench.want(...contents)
  await bench.settle()
  await bench.pass(10)
  for (const content of contents) expect(bench.count(content)).toBe(size)
  return bench
}

/** Canary for 60 s, and three steps of 30 s each. */
const ownSeconds = 150

interface Case {
  readonly state: string
  readonly rollout?: ConstructorParameters<typeof RolloutBench>[2]
  readonly harm?: Harm
  /** Seconds from the change of a to the change of b. */
  readonly seconds: number
  readonly each?: number
  /** The most that b takes. */
  readonly most: number
  /** Whether b is tried in the moment in which it changes. */
  readonly isTried?: boolean
}

test.each<Case>([
  { state: 'is on its canaries', seconds: 10, most: ownSeconds, isTried: true },
  { state: 'is at the end of its bake', seconds: 55, most: ownSeconds + 5, isTried: true },
  {
    state: 'is observed for an hour',
    ...{ rollout: { canary: { bake: '1h' } }, seconds: 1800, each: 60, most: 3600 + 90 + 5, isTried: true },
  },
  { state: 'is in a step', seconds: 75, most: 90 + ownSeconds },
  {
    state: 'fails, and nobody takes it back',
    ...{ rollout: { autoRollback: false }, harm: 'fails', seconds: 300, most: ownSeconds + 5, isTried: true },
  },
  {
    state: 'ends the agents, and nobody takes it back',
    ...{ rollout: { autoRollback: false }, harm: 'crashes', seconds: 300, most: ownSeconds + 10 },
  },
  { state: 'is not loaded by its canaries', harm: 'hangs', seconds: 600, most: ownSeconds + 5 },
  { state: 'is not loaded by its canaries yet', harm: 'hangs', seconds: 10, most: 300 + ownSeconds + 5 },
  { state: 'fails at the same time', harm: 'fails', seconds: 0, most: ownSeconds + 5, isTried: true },
  { state: 'ends the agents at the same time', harm: 'crashes', seconds: 0, most: 2 * ownSeconds },
  { state: 'waits for parts at the same time', harm: 'waits', seconds: 0, most: 3 * 120 + ownSeconds },
  { state: 'is not loaded by the canaries at the same time', harm: 'hangs', seconds: 0, most: 3 * 300 + ownSeconds },
])('while a $state, b changes within $most s', async ({ rollout, harm, seconds, each, most, isTried }) => {
  const bench = await running('a1', 'b1')
  bench.rollout = rollout
  if (harm !== undefined) bench.harms.set('a2', harm)
  if (seconds > 0) {
    bench.want('a2', 'b1')
    await bench.pass(seconds, each)
  }
  bench.want('a2', 'b2')
  await bench.settle()
  if (isTried === true) expect(bench.count('b2')).toBeGreaterThan(0)
  expect(bench.count('b2')).toBeLessThan(size / 4)
  expect(await bench.until('b2', most)).toBeLessThanOrEqual(most)
  const isTakenBack = harm !== undefined && harm !== 'hangs' && rollout?.autoRollback !== false
  await bench.pass(900)
  expect(bench.rolledBack).toEqual(isTakenBack ? ['a2'] : [])
  if (harm === undefined) expect(bench.count('a2')).toBe(size)
  else expect(bench.count('a2')).toBeLessThan(size / 4)
})

test('a new process of the operator knows which of two changes agents do not load', async () => {
  const bench = await running('a1', 'b1', 'c1')
  bench.want('a2', 'b1', 'c1')
  await bench.pass(30)
  bench.harms.set('b2', 'hangs')
  bench.want('a2', 'b2', 'c1')
  await bench.pass(10)
  bench.restartOperator()
  expect(await bench.until('a2', 300)).toBeDefined()
  expect(Object.keys(bench.delivered.record.aside ?? {})).not.toContain(idOf('a2'))
})

test('without automatic rollback a change that fails stays on its canaries until others change, and comes back after them', async () => {
  const bench = await running('a1', 'b1')
  bench.rollout = { autoRollback: false }
  bench.harms.set('a2', 'fails')
  bench.want('a2', 'b1')
  await bench.pass(600)
  const { writes } = bench
  expect(bench.count('a2')).toBeGreaterThan(0)
  await bench.pass(600)
  expect(bench.writes).toBe(writes)
  bench.want('a2', 'b2')
  await bench.settle()
  expect([bench.count('a2'), bench.count('b2') > 0]).toEqual([0, true])
  await bench.pass(ownSeconds + 30)
  expect([bench.count('a2') > 0, bench.count('b2')]).toEqual([true, size])
})

test('a change that agents do not load is tried again after others, and makes room for the next ones within a minute', async () => {
  const bench = await running('a1', 'b1', 'c1')
  bench.harms.set('a2', 'hangs')
  bench.want('a2', 'b1', 'c1')
  await bench.pass(400)
  bench.want('a2', 'b2', 'c1')
  expect(await bench.until('b2', ownSeconds + 5)).toBeDefined()
  await bench.pass(15)
  bench.want('a2', 'b2', 'c2')
  expect(await bench.until('c2', 60 + ownSeconds + 10)).toBeDefined()
  // By now it can be loaded.
  bench.harms.clear()
  expect(await bench.until('a2', ownSeconds + 45)).toBeDefined()
  await bench.pass(60)
  expect(bench.delivered.record.aside).toBeUndefined()
})

test('few agents that load nothing hold up a later step for nobody else', async () => {
  const bench = await running('a1', 'b1')
  bench.want('a2', 'b1')
  await bench.pass(100)
  const late = [...bench.nodes].filter(([, { revision }]) => !bench.holds(revision, 'a2')).slice(0, 2)
  for (const [, node] of late) node.isSlow = true
  await bench.pass(60)
  bench.want('a2', 'b2')
  await bench.pass(600)
  expect([bench.count('a2'), bench.count('b2')]).toEqual([size - 2, expect.any(Number)])
  expect(bench.count('b2')).toBeGreaterThan(0)
})

test('more versions that were rolled back than have a reason are not tried again either', async () => {
  const many = (version: number) =>
    Array.from(
      { length: 150 },
      (_, index) => `${String.fromCharCode(97 + (index % 26))}${'x'.repeat(index / 26)}${version}`,
    )
  const bench = await running(...many(1))
  for (const content of many(2)) bench.harms.set(content, 'fails')
  bench.want(...many(2))
  await bench.pass(60)
  expect([bench.rolledBack.length, bench.delivered.withheld?.size]).toEqual([100, 50])
  const { writes } = bench
  await bench.pass(600)
  bench.restartOperator()
  await bench.pass(600)
  expect(bench.writes).toBe(writes)
  expect([bench.count('a1'), bench.delivered.withheld?.size]).toEqual([size, 50])
  bench.want(...many(3))
  expect(await bench.until('a3', ownSeconds + 5)).toBeDefined()
  expect(bench.delivered.record.withheld).toBeUndefined()
})

test('no more than a few hundred changes that join others have a bake of their own; of more all begin theirs again', async () => {
  const many = (version: number) =>
    Array.from(
      { length: 250 },
      (_, index) => `${String.fromCharCode(97 + (index % 26))}${'x'.repeat(index / 26)}${version}`,
    )
  const bench = await running('zz1', ...many(1))
  bench.want('zz2', ...many(1))
  await bench.pass(30)
  bench.want('zz2', ...many(2))
  await bench.settle()
  expect(bench.count('a2')).toBeGreaterThan(0)
  expect(bench.delivered.record.joined).toBeUndefined()
  expect(await bench.until('a2', ownSeconds + 5)).toBeDefined()
})

test.each([40, 75])(
  'what fails after %s s is taken back alone, and the others go on where they are',
  async (seconds) => {
    const bench = await running('a1', 'b1')
    bench.want('a2', 'b2')
    await bench.pass(seconds)
    const before = bench.count('b2')
    bench.harms.set('a2', 'fails')
    await bench.pass(10)
    expect([bench.rolledBack, bench.count('a2')]).toEqual([['a2'], 0])
    expect(bench.count('b2')).toBe(before)
    expect(await bench.until('b2', ownSeconds - seconds)).toBeDefined()
  },
)

test('a change that joined late is tried again where the others would wait too long for it', async () => {
  const bench = await running('a1', 'b1')
  bench.rollout = { canary: { bake: '1h' } }
  bench.want('a2', 'b1')
  await bench.pass(3540, 60)
  bench.want('a2', 'b2')
  await bench.settle()
  expect(bench.count('b2')).toBeGreaterThan(0)
  await bench.pass(150)
  expect([bench.count('a2') > size / 4, bench.count('b2')]).toEqual([true, 0])
  await bench.pass(120)
  expect(bench.count('a2')).toBe(size)
  expect(bench.count('b2')).toBeGreaterThan(0)
})

test('going back to an earlier revision ends what is set aside, and going on tries it again', async () => {
  const bench = await running('a1', 'b1')
  bench.want('a1', 'b2')
  expect(await bench.until('b2', ownSeconds)).toBeDefined()
  await bench.pass(60)
  const [, earlier] = bench.delivered.record.history
  bench.harms.set('a2', 'hangs')
  bench.want('a2', 'b2')
  await bench.pass(400)
  bench.want('a2', 'b3')
  await bench.settle()
  expect(Object.keys(bench.delivered.record.aside ?? {})).toEqual([idOf('a2')])
  bench.annotate({ 'penstock.dev/undo': `${earlier?.revision} now` })
  await bench.pass(10)
  expect([bench.delivered.record.aside, bench.count('a1'), bench.count('b1')]).toEqual([undefined, size, size])
  const { writes } = bench
  bench.restartOperator()
  await bench.pass(60)
  expect(bench.writes).toBe(writes)
  bench.harms.clear()
  bench.annotate({})
  expect(await bench.until('b3', ownSeconds + 5)).toBeDefined()
  expect(bench.count('a2')).toBe(size)
})

test('what was taken back is tried again on request, beside others', async () => {
  const bench = await running('a1', 'b1')
  bench.harms.set('a2', 'crashes')
  bench.want('a2', 'b1')
  await bench.pass(60)
  expect(bench.rolledBack).toEqual(['a2'])
  bench.harms.clear()
  bench.want('a2', 'b2')
  await bench.pass(30)
  bench.retry(idOf('a2'))
  expect(await bench.until('b2', ownSeconds)).toBeDefined()
  expect(await bench.until('a2', ownSeconds)).toBeDefined()
  expect(bench.rolledBack).toEqual([])
})

test.each([
  ['crashes', 5],
  ['waits', 8],
] as const)('changes every 20 s keep nothing from its turn that was set aside because one %s', async (harm, trials) => {
  const bench = await running('a1', 'b1', 'c1')
  bench.harms.set('a2', harm)
  let version = 1
  let seconds = 0
  for (; bench.count('b2') < size && seconds < 3600; seconds += 20) {
    bench.want('a2', 'b2', `c${++version}`)
    await bench.pass(20)
  }
  expect(seconds).toBeLessThanOrEqual(trials * ownSeconds)
  expect(bench.rolledBack).toEqual(['a2'])
  await bench.pass(3 * ownSeconds)
  expect(bench.count(`c${version}`)).toBe(size)
})
