// Changes of different Pipelines that overlap: how long a change of b takes while one of a is on its canaries, is observed, proceeds,
// fails, hangs, or waits for an agent. The test controls time.

import { describe, expect, test } from 'vitest'
import { type Harm, idOf, RolloutBench } from '../../testing/rollout-bench.ts'

/** As the real clock, it has fractions of a millisecond. */
const clock = { now: Date.parse('2026-01-01T00:00:00Z') + 0.372 }

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
  /** The maximum duration of b. */
  readonly max: number
  /** Whether b is tried as soon as it changes. */
  readonly isTried?: boolean
}

test.each<Case>([
  { state: 'is on its canaries', seconds: 10, max: ownSeconds, isTried: true },
  { state: 'is at the end of its bake', seconds: 55, max: ownSeconds + 10, isTried: true },
  {
    state: 'is observed for an hour',
    ...{ rollout: { canary: { bake: '1h' } }, seconds: 1800, each: 60, max: 3600 + 90 + 5, isTried: true },
  },
  ...[65, 75, 100, 130].map(
    (seconds): Case => ({
      state: `is in a step since ${seconds - 60} s`,
      ...{ seconds, max: ownSeconds + 10, isTried: true },
    }),
  ),
  {
    state: 'fails, without a rollback',
    ...{ rollout: { autoRollback: false }, harm: 'fails', seconds: 300, max: ownSeconds + 5, isTried: true },
  },
  {
    state: 'ends the agents, without a rollback',
    ...{ rollout: { autoRollback: false }, harm: 'crashes', seconds: 300, max: ownSeconds + 10 },
  },
  { state: 'is not loaded by its canaries', harm: 'hangs', seconds: 600, max: ownSeconds + 5 },
  { state: 'is not loaded by its canaries yet', harm: 'hangs', seconds: 10, max: 300 + ownSeconds + 5 },
  { state: 'fails at the same time', harm: 'fails', seconds: 0, max: ownSeconds + 5, isTried: true },
  { state: 'ends the agents at the same time', harm: 'crashes', seconds: 0, max: 2 * ownSeconds },
  { state: 'waits for parts at the same time', harm: 'waits', seconds: 0, max: 3 * 120 + ownSeconds },
  { state: 'is not loaded by the canaries at the same time', harm: 'hangs', seconds: 0, max: 3 * 300 + ownSeconds },
])('while a $state, b changes within $max s', async ({ rollout, harm, seconds, each, max, isTried }) => {
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
  expect(await bench.until('b2', max)).toBeLessThanOrEqual(max)
  const isRolledBack = harm !== undefined && harm !== 'hangs' && rollout?.autoRollback !== false
  await bench.pass(900)
  expect(bench.rolledBack).toEqual(isRolledBack ? ['a2'] : [])
  if (harm === undefined) expect(bench.count('a2')).toBe(size)
  else expect(bench.count('a2')).toBeLessThan(size / 4)
})

test.each([2, 5, size])('of %i agents, one ends again and again, and a change still reaches all', async (count) => {
  const bench = new RolloutBench(clock, count)
  bench.want('a1')
  await bench.settle()
  await bench.pass(10)
  const [sick] = [...bench.nodes.keys()]
  const endsFor = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 30) {
      bench.end(sick as string)
      await bench.pass(30)
    }
  }
  await endsFor(120)
  for (const content of ['a2', 'a3', 'a4', 'a5']) {
    bench.want(content)
    await endsFor(ownSeconds + 60)
    expect([bench.count(content), bench.rolledBack]).toEqual([count, []])
  }
  // A change that ends the others is still rolled back.
  bench.harms.set('a6', 'crashes')
  bench.want('a6')
  await endsFor(ownSeconds + 300)
  expect([bench.count('a5'), bench.rolledBack]).toEqual([count, ['a6']])
})

test('a new process of the operator knows which of two changes is not loaded', async () => {
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

test('without automatic rollback, a failing change stays on its canaries until others change, and returns after them', async () => {
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

test('a change that agents do not load is tried again after others, and yields to the next ones within a minute', async () => {
  const bench = await running('a1', 'b1', 'c1')
  bench.harms.set('a2', 'hangs')
  bench.want('a2', 'b1', 'c1')
  await bench.pass(400)
  bench.want('a2', 'b2', 'c1')
  expect(await bench.until('b2', ownSeconds + 5)).toBeDefined()
  await bench.pass(15)
  bench.want('a2', 'b2', 'c2')
  expect(await bench.until('c2', 60 + ownSeconds + 10)).toBeDefined()
  // From now on, agents can load it.
  bench.harms.clear()
  expect(await bench.until('a2', ownSeconds + 45)).toBeDefined()
  await bench.pass(60)
  expect(bench.delivered.record.aside).toBeUndefined()
})

test('a few agents that load nothing do not delay a later step for others', async () => {
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

test('rolled back versions are not tried again, even beyond the number of stored reasons', async () => {
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

test('a limited number of joining changes have their own bake; beyond it, all bakes restart', async () => {
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
  'only the change that fails after %s s is rolled back, and the others continue where they are',
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

test('a change that joined late begins its own trial if the others would wait too long for it', async () => {
  const bench = await running('a1', 'b1')
  bench.rollout = { canary: { bake: '1h' } }
  bench.want('a2', 'b1')
  await bench.pass(3540, 60)
  bench.want('a2', 'b2')
  await bench.settle()
  expect(bench.count('b2')).toBeGreaterThan(0)
  const first = bench.count('b2')
  await bench.pass(130)
  expect([bench.count('a2') > first, bench.count('b2')]).toEqual([true, first])
  await bench.pass(140)
  expect(bench.count('a2')).toBe(size)
  expect(bench.count('b2')).toBeGreaterThan(0)
})

test('undoing a rollout forgets suspects, and resuming it tries them again', async () => {
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

test('retries a reverted change on request, beside others', async () => {
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
] as const)('changes every 20 s do not keep suspects from their turn after one %s', async (harm, trials) => {
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

describe('changes at intervals of one bake', () => {
  test('each needs only its own time, for any number of pending changes', async () => {
    const names = [...'abcdefgh']
    const bench = await running(...names.map((name) => `${name}1`))
    const begun = new Map<string, number>()
    const took = new Map<string, number>()
    for (let seconds = 0; took.size < names.length && seconds < 1200; seconds += 5) {
      const count = Math.min(names.length, Math.floor(seconds / 70) + 1)
      for (const name of names.slice(0, count)) if (!begun.has(name)) begun.set(name, seconds)
      bench.want(...names.map((name, index) => `${name}${index < count ? 2 : 1}`))
      await bench.pass(5)
      for (const name of names)
        if (!took.has(name) && bench.count(`${name}2`) === size)
          took.set(name, seconds + 5 - (begun.get(name) as number))
    }
    expect([...took.keys()]).toEqual(names)
    for (const [name, seconds] of took) expect(seconds, name).toBeLessThanOrEqual(ownSeconds + 15)
  })

  test('only the change that ends the agents is rolled back; earlier changes continue, and later ones follow its trial', async () => {
    const bench = await running('a1', 'b1', 'c1')
    bench.harms.set('b2', 'crashes')
    bench.want('a2', 'b1', 'c1')
    await bench.pass(75)
    bench.want('a2', 'b2', 'c1')
    await bench.pass(10)
    expect(bench.count('a2')).toBeGreaterThan(size / 5)
    bench.want('a2', 'b2', 'c2')
    expect(await bench.until('a2', ownSeconds - 75)).toBeDefined()
    expect(await bench.until('c2', ownSeconds + 20)).toBeDefined()
    await bench.pass(900)
    expect(bench.rolledBack).toEqual(['b2'])
  })

  test.each<[Harm, string]>([
    ['fails', 'cannot be activated'],
    ['crashes', 'ends the agents'],
  ])('an earlier change that %s in a step is rolled back, and the later one continues where it is', async (harm) => {
    const bench = await running('a1', 'b1')
    bench.want('a2', 'b1')
    await bench.pass(75)
    bench.want('a2', 'b2')
    await bench.pass(20)
    const tried = bench.count('b2')
    expect(tried).toBeGreaterThan(0)
    bench.harms.set('a2', harm)
    await bench.pass(10)
    expect([bench.rolledBack, bench.count('a2'), bench.count('b2')]).toEqual([['a2'], 0, tried])
    expect(await bench.until('b2', ownSeconds)).toBeDefined()
  })

  test('an earlier change that agents do not load in a step yields to the later one after five minutes', async () => {
    const bench = await running('a1', 'b1')
    bench.want('a2', 'b1')
    await bench.pass(50)
    bench.harms.set('a2', 'hangs')
    const had = bench.count('a2')
    await bench.pass(25)
    bench.want('a2', 'b2')
    await bench.settle()
    expect(bench.count('b2')).toBeGreaterThan(0)
    expect(await bench.until('b2', 300 + ownSeconds)).toBeDefined()
    expect(had).toBeGreaterThan(0)
    await bench.pass(900)
    expect(bench.rolledBack).toEqual([])
  })

  test('the next process of the operator continues all of them, and writes nothing again', async () => {
    const bench = await running('a1', 'b1', 'c1')
    bench.want('a2', 'b1', 'c1')
    await bench.pass(75)
    bench.want('a2', 'b2', 'c1')
    await bench.pass(65)
    bench.want('a2', 'b2', 'c2')
    await bench.settle()
    const counts = ['a2', 'b2', 'c2'].map((content) => bench.count(content))
    expect(bench.delivered.later).toHaveLength(2)
    const { writes } = bench
    bench.restartOperator()
    await bench.settle()
    expect(bench.writes).toBe(writes)
    expect(['a2', 'b2', 'c2'].map((content) => bench.count(content))).toEqual(counts)
    expect(await bench.until('c2', ownSeconds + 10)).toBeDefined()
    await bench.pass(60)
    expect([bench.delivered.later, bench.delivered.record.later]).toEqual([[], undefined])
  })

  test('a Pipeline that changes again during its steps runs its newest version everywhere directly', async () => {
    const bench = await running('a1')
    bench.want('a2')
    await bench.pass(75)
    bench.want('a3')
    await bench.settle()
    expect([bench.count('a3') > 0, bench.count('a2') > 0]).toEqual([true, true])
    expect(await bench.until('a3', ownSeconds + 10)).toBeDefined()
    expect(bench.rolledBack).toEqual([])
  })

  test('a version that canaries have not loaded stops when its Pipeline changes again', async () => {
    const bench = await running('a1', 'b1')
    bench.want('a2', 'b1')
    await bench.pass(30)
    bench.harms.set('b2', 'hangs')
    bench.want('a2', 'b2')
    await bench.pass(35)
    bench.want('a2', 'b3')
    await bench.pass(120)
    expect(bench.count('b2')).toBe(0)
    expect(await bench.until('b3', 300 + ownSeconds)).toBeDefined()
    expect([bench.count('a2'), bench.rolledBack]).toEqual([size, []])
  })

  test('meanwhile, a new Pipeline runs everywhere at once, and a removed one nowhere', async () => {
    const bench = await running('a1', 'b1', 'd1')
    bench.want('a2', 'b1', 'd1')
    await bench.pass(75)
    bench.want('a2', 'b2', 'd1')
    await bench.pass(5)
    bench.want('a2', 'b2', 'c1')
    await bench.settle()
    expect([bench.count('c1'), bench.count('d1')]).toEqual([size, 0])
  })
})

test('a change is also tried by an agent that reads logs for it', async () => {
  const bench = await running('a1', 'b1')
  const [, last] = [...bench.nodes].toSorted(([left], [right]) => (left < right ? -1 : 1)).slice(-2)
  for (const [name, node] of bench.nodes) node.reads = name === last?.[0] ? [idOf('a1')] : [idOf('b1')]
  await bench.pass(5)
  bench.want('a2', 'b1')
  await bench.settle()
  expect(bench.holds(last?.[1].revision, 'a2')).toBe(true)
  expect(bench.count('a2')).toBeLessThan(size / 4)
  expect(await bench.until('a2', ownSeconds)).toBeDefined()
})

const tries = (bench: RolloutBench, content: string) =>
  [...bench.nodes].filter(([, { revision }]) => bench.holds(revision, content)).map(([name]) => name)

test('an agent that a change has ended still counts as a reader of logs', async () => {
  const bench = await running('a1', 'b1')
  for (const [, node] of bench.nodes) node.reads = [idOf('a1')]
  await bench.pass(5)
  bench.want('a2', 'b1')
  await bench.settle()
  const canaries = tries(bench, 'a2')
  expect(canaries.length).toBeGreaterThan(0)
  // It reports before the kubelet has counted the restart.
  for (const name of canaries) Object.assign(bench.nodes.get(name) ?? {}, { reads: [] })
  await bench.pass(50)
  expect(tries(bench, 'a2')).toEqual(canaries)
})

test('the first report does not decide which agents read logs for a Pipeline that all agents have just received', async () => {
  const bench = await running('a1')
  for (const [, node] of bench.nodes) node.reads = [idOf('a1')]
  bench.want('a1', 'b1')
  await bench.settle()
  bench.want('a1', 'b2')
  await bench.settle()
  const canaries = tries(bench, 'b2')
  const early = [...bench.nodes].find(([name]) => !canaries.includes(name))
  Object.assign(early?.[1] ?? {}, { reads: [idOf('a1'), idOf('b1')] })
  await bench.pass(20)
  expect(tries(bench, 'b2')).toEqual(canaries)
  // Some heartbeats later, it is certain.
  await bench.pass(30)
  expect(tries(bench, 'b2')).toContain(early?.[0])
})

/** A bench with few agents, whose pods are replaced and whose operator restarts during a trial. */
async function few(nodes: number): Promise<RolloutBench> {
  const bench = new RolloutBench(clock, nodes)
  bench.want('a1')
  await bench.settle()
  await bench.pass(10)
  return bench
}

const names = (bench: RolloutBench) => [...bench.nodes.keys()]

test.each([
  { what: 'one of two pods is', gone: ['n1'] },
  { what: 'all pods are', gone: ['n0', 'n1'] },
])('a change made while $what being replaced goes to one agent first', async ({ gone }) => {
  const bench = await few(2)
  for (const name of gone) bench.remove(name)
  bench.want('a2')
  await bench.pass(10)
  for (const name of gone) bench.replace(name)
  await bench.pass(15)
  expect(tries(bench, 'a2')).toHaveLength(1)
  expect(await bench.until('a2', ownSeconds + 30)).toBeDefined()
})

test('a new Pipeline does not wait while all pods are being replaced', async () => {
  const bench = await few(2)
  for (const name of names(bench)) bench.remove(name)
  bench.want('a1', 'b1')
  await bench.settle()
  for (const name of names(bench)) bench.replace(name)
  expect(await bench.until('b1', 5)).toBeDefined()
})

test('a new Pipeline that ends agents is rolled back even if it arrived while all pods were being replaced', async () => {
  const bench = await few(2)
  for (const name of names(bench)) bench.remove(name)
  bench.harms.set('b1', 'crashes')
  bench.want('a1', 'b1')
  await bench.pass(5)
  for (const name of names(bench)) bench.replace(name)
  expect(await bench.until('a1', 60)).toBeDefined()
  expect(bench.rolledBack).toEqual(['b1'])
})

test('the pod that replaces a canary is watched like the one before it', async () => {
  const bench = await few(4)
  bench.want('a2')
  await bench.pass(10)
  const [canary = ''] = tries(bench, 'a2')
  bench.remove(canary)
  await bench.pass(10)
  expect(tries(bench, 'a2')).toEqual([])
  bench.replace(canary)
  await bench.pass(20)
  bench.end(canary)
  await bench.settle()
  expect(bench.rolledBack).toEqual(['a2'])
  expect(tries(bench, 'a2')).toEqual([])
})

test.each([
  { what: 'has just started', idleMs: 0 },
  { what: 'has been waiting for an hour', idleMs: 3_600_000 },
])('an operator that $what continues a trial only after the canaries have reported', async ({ idleMs }) => {
  const bench = await few(4)
  bench.want('a2')
  await bench.pass(55)
  const canaries = tries(bench, 'a2')
  for (const name of canaries) Object.assign(bench.nodes.get(name) ?? {}, { isSilent: true })
  bench.restartOperator(idleMs)
  await bench.pass(40)
  const others = names(bench).filter((name) => !canaries.includes(name))
  expect(others.filter((name) => bench.holds(bench.nodes.get(name)?.revision, 'a2'))).toEqual([])
  for (const name of canaries) Object.assign(bench.nodes.get(name) ?? {}, { isSilent: false })
  expect(await bench.until('a2', ownSeconds)).toBeDefined()
})

test('a change made while the operator restarts goes to few sidecars first, after they have reported', async () => {
  const bench = new RolloutBench(clock, 6, undefined, 'Sidecar')
  bench.want('a1')
  await bench.settle()
  await bench.pass(10)
  bench.restartOperator()
  bench.want('a2', 'b1')
  await bench.pass(30)
  expect([bench.count('a2'), bench.count('b1')]).toEqual([0, 6])
  await bench.pass(100)
  expect(bench.count('a2')).toBeGreaterThan(0)
  expect(bench.count('a2')).toBeLessThan(6)
  expect(await bench.until('a2', ownSeconds)).toBeDefined()
})

test('an agent that ended before the operator did counts, however long it stays away', async () => {
  const bench = await few(4)
  bench.want('a2')
  await bench.pass(30)
  const [canary = ''] = tries(bench, 'a2')
  bench.end(canary)
  Object.assign(bench.nodes.get(canary) ?? {}, { isSilent: true })
  bench.restartOperator()
  await bench.pass(200)
  expect(bench.rolledBack).toEqual(['a2'])
  expect(tries(bench, 'a2').filter((name) => name !== canary)).toEqual([])
})

test.each([0, 20_000])(
  'of two changes tried together, one that ends agents ends no others while it is found, with %i ms until they start again',
  async (backoffMs) => {
    const bench = new RolloutBench(clock, 12)
    bench.want('a1', 'b1')
    await bench.settle()
    for (const [, node] of bench.nodes) node.reads = [idOf('a1'), idOf('b1')]
    await bench.pass(120)
    bench.backoffMs = backoffMs
    bench.harms.set('a2', 'crashes')
    bench.want('a2', 'b2')
    await bench.settle()
    const [canary = ''] = names(bench).filter((name) => bench.nodes.get(name)?.endedAt !== undefined)
    // It has not opened its files when it reports again.
    Object.assign(bench.nodes.get(canary) ?? {}, { reads: [] })
    expect(await bench.until('b2', 2 * ownSeconds + 60)).toBeDefined()
    expect(bench.rolledBack).toEqual(['a2'])
    expect(names(bench).filter((name) => bench.nodes.get(name)?.endedAt !== undefined)).toEqual([canary])
  },
)

test('an end of an agent before the trial does not count against the changes that are tried', async () => {
  const bench = await few(4)
  for (const name of names(bench)) bench.end(name)
  await bench.pass(5)
  bench.want('a2')
  await bench.pass(10)
  bench.restartOperator(3_600_000)
  expect(await bench.until('a2', ownSeconds)).toBeDefined()
  expect(bench.rolledBack).toEqual([])
})

test('agents that end again and again by themselves do not delay changes', async () => {
  const bench = await running('a1', 'b1')
  bench.backoffMs = 20_000
  for (let round = 0; round < 10; round++) {
    bench.end('n3')
    await bench.pass(10)
  }
  bench.want('a2', 'b1')
  for (let round = 0; round < 30 && bench.count('a2') === 0; round++) {
    bench.end('n3')
    await bench.pass(10)
  }
  expect(bench.count('a2')).toBeGreaterThan(0)
})
