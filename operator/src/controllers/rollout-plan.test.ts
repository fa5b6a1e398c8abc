import { takesCandidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { maxWaitMs } from './rollout-judge.ts'
import {
  type AgentNode,
  type Decision,
  decide,
  fieldDurationMs,
  type Observation,
  policyOf,
  readersFor,
} from './rollout-plan.ts'

const node = (name: string, extra: Partial<AgentNode> = {}): AgentNode => ({
  node: name,
  revision: 'old',
  failed: new Set(),
  failures: [],
  reason: undefined,
  stuck: false,
  waitingSince: undefined,
  stale: false,
  crashed: false,
  ...extra,
})
const forty = Array.from({ length: 40 }, (_, index) => node(`node-${index}`))
const policy = policyOf(undefined)
const base: Observation = {
  now: 1_000_000,
  policy,
  stable: 'old',
  candidate: undefined,
  desired: 'old',
  changed: new Set(['shop/a']),
  worse: new Set(),
  nodes: forty,
}

/** Runs a rollout: every selected agent loads the candidate, and time advances while the rollout waits. */
function run(start: Observation, takes: (node: AgentNode) => AgentNode): { steps: string[]; end: Decision } {
  const steps: string[] = []
  let seen = start
  for (let turn = 0; turn < 400; turn++) {
    const decision = decide(seen)
    if (decision.action === 'start') {
      const { percent, salt } = decision
      seen = { ...seen, candidate: { rev: seen.desired, percent, salt, step: 0, since: undefined } }
    } else if (decision.action === 'step' && seen.candidate !== undefined) {
      const step = seen.candidate.step + 1
      seen = { ...seen, candidate: { ...seen.candidate, percent: decision.percent, step, since: undefined } }
    } else if (decision.action === 'watch' && seen.candidate !== undefined) {
      seen = { ...seen, candidate: { ...seen.candidate, since: seen.now } }
      continue
    } else if (decision.action !== 'none' || decision.waitMs === undefined) return { steps, end: decision }
    else {
      seen = { ...seen, now: seen.now + decision.waitMs }
      continue
    }
    const { candidate } = seen
    if (candidate === undefined) throw new Error('There is no candidate.')
    steps.push(`${candidate.percent}% at ${(seen.now - start.now) / 1000} s`)
    seen = { ...seen, nodes: seen.nodes.map((each) => (takesCandidate(candidate, each.node) ? takes(each) : each)) }
  }
  throw new Error('The rollout does not end.')
}

test('a revision is loaded by canaries, then in steps, and then promoted', () => {
  const { steps, end } = run({ ...base, desired: 'new' }, (each) => ({ ...each, revision: 'new' }))
  expect(steps.length).toBe(5)
  expect(steps[0]).toMatch(/^\d+% at 0 s$/)
  expect(steps.slice(1).map((step) => step.split(' at ')[1])).toEqual(['60 s', '90 s', '120 s', '150 s'])
  expect(steps.at(-1)).toMatch(/^100%/)
  expect(end).toEqual({ action: 'promote' })
})

test('at least the requested number of canaries is selected, even from few agents', () => {
  for (const count of [2, 3, 5]) {
    const nodes = forty.slice(0, count)
    const decision = decide({ ...base, desired: 'new', nodes })
    if (decision.action !== 'start') throw new Error(decision.action)
    expect(nodes.filter(({ node: name }) => takesCandidate(decision, name)).length).toBeGreaterThanOrEqual(1)
  }
})

test.each([
  { canary: { percent: 0, minNodes: 0 } },
  { canary: { percent: 1, minNodes: 0 } },
  { canary: { percent: 0 } },
  { canary: { percent: 0, minNodes: 0, bake: '0s' }, step: { percent: 1, bake: '0s' }, maxFailedPercent: 0 },
])('the smallest settings of a rollout select one agent first, and complete it: %j', (rollout) => {
  for (const count of [2, 5, 40]) {
    const start = { ...base, policy: policyOf(rollout), desired: 'new', nodes: forty.slice(0, count) }
    const first = decide(start)
    const chosen = start.nodes.filter((each) => first.action === 'start' && takesCandidate(first, each.node))
    expect(chosen.length).toBeGreaterThan(0)
    expect(run(start, (each) => ({ ...each, revision: 'new' })).end).toEqual({ action: 'promote' })
  }
})

test('a single node gets a candidate at once, and the rule for rollbacks applies to it', () => {
  const nodes = [node('only')]
  const { steps, end } = run({ ...base, desired: 'new', nodes }, (each) => ({ ...each, revision: 'new' }))
  expect({ steps, end }).toEqual({ steps: ['100% at 0 s'], end: { action: 'promote' } })
  const crashed = run({ ...base, desired: 'new', nodes }, (each) => ({ ...each, crashed: true }))
  expect(crashed.end).toMatchObject({ action: 'abort', culprits: new Set(['shop/a']) })
})

test.each([
  { what: 'ends', sick: { crashed: true }, why: 'ended' },
  { what: 'cannot build a changed pipeline', sick: { revision: 'new', failed: new Set(['shop/a']) }, why: 'could not' },
  { what: 'hangs', sick: { stuck: true }, why: 'too long' },
])('a candidate is rolled back when a canary $what', ({ sick, why }) => {
  const { steps, end } = run({ ...base, desired: 'new' }, (each) => ({ ...each, ...sick }))
  expect(steps).toHaveLength(1)
  expect(end).toMatchObject({ action: 'abort', culprits: new Set(['shop/a']), why: expect.stringContaining(why) })
})

test('each rolled back Pipeline gets the report of an agent about it, and no other Pipeline does', () => {
  const of = (pipeline: string, component: string | undefined, message: string) => ({
    ...{ pipeline, component, message, reason: 'BuildFailed' },
  })
  const failures = [of('shop/a', 'out', 'EACCES: mkdir `/var/lib`.'), of('bank/b', undefined, 'no'.repeat(500))]
  const nodes = [node('n', { revision: 'new', failed: new Set(['shop/a', 'bank/b', 'late/c']), failures })]
  const candidate = { rev: 'new', percent: 100, salt: 's', step: 0, since: undefined }
  const changed = new Set(['shop/a', 'bank/b', 'late/c'])
  const decision = decide({ ...base, changed, candidate, desired: 'new', nodes })
  if (decision.action !== 'abort') throw new Error(decision.action)
  expect(decision.culprits).toEqual(changed)
  expect(decision.why).toBe('1 of 1 agent failed: the agent on n could not activate it')
  expect(decision.reasons?.get('shop/a')).toBe(`${decision.why}: out: EACCES: mkdir \`/var/lib\``)
  expect(decision.reasons?.get('bank/b')).toHaveLength(decision.why.length + 2 + 256)
  expect(decision.reasons?.get('late/c')).toBeUndefined()
})

test('a Pipeline that loses more events gets the component, its node and its error as the reason', () => {
  const candidate = { rev: 'new', percent: 5, salt: 's', step: 0, since: undefined }
  const ids = new Set(['shop/a', 'bank/b', 'late/c'])
  const lossCauses = new Map([['shop/a', 'transforms[parse] on n: Mapping failed with event.']])
  const seen = { ...base, changed: ids, candidate, desired: 'new', lossCauses }
  const losing = decide({ ...seen, worse: new Set(['shop/a', 'bank/b']) })
  if (losing.action !== 'abort') throw new Error(losing.action)
  expect(losing.culprits).toEqual(new Set(['shop/a', 'bank/b']))
  expect(losing.reasons?.get('shop/a')).toBe(`${losing.why}: transforms[parse] on n: Mapping failed with event`)
  expect(losing.reasons?.get('bank/b')).toBeUndefined()

  // Another Pipeline that an agent cannot load does not hide the losses.
  const failures = [{ pipeline: 'late/c', component: 'out', message: 'EACCES', reason: 'BuildFailed' }]
  const nodes = [node('n', { revision: 'new', failed: new Set(['late/c']), failures })]
  const both = decide({ ...seen, candidate: { ...candidate, percent: 100 }, nodes, worse: new Set(['shop/a']) })
  if (both.action !== 'abort') throw new Error(both.action)
  expect(both.culprits).toEqual(new Set(['shop/a', 'late/c']))
  expect(both.reasons?.get('shop/a')).toBe(losing.reasons?.get('shop/a'))
  expect(both.reasons?.get('late/c')).toBe('1 of 1 agent failed: the agent on n could not activate it: out: EACCES')
})

test.each([
  [{ stuck: true }, 'takes too long to load it: the disk is slow'],
  [{ waitingSince: 0 }, 'has waited for more than 2 minutes and cannot load it: the disk is slow'],
])('an agent that loads nothing reports the reason: %j', (sick, why) => {
  const candidate = { rev: 'new', percent: 100, salt: 's', step: 0, since: undefined }
  const nodes = [node('n', { ...sick, reason: 'the disk is slow.' })]
  const decision = decide({ ...base, candidate, desired: 'new', nodes })
  expect(decision).toMatchObject({ action: 'abort', why: `1 of 1 agent failed: the agent on n ${why}` })
})

test('an unchanged pipeline that failed before does not roll back the others', () => {
  const { end } = run({ ...base, desired: 'new' }, (each) => ({
    ...each,
    revision: 'new',
    failed: new Set(['shop/z']),
  }))
  expect(end).toEqual({ action: 'promote' })
})

test('a new pipeline on all agents is rolled back if agents fail to load it, and the change that is tried beside it is not', () => {
  const candidate = { rev: 'new', percent: 100, salt: 'x', step: 0, since: undefined }
  const failing = forty.map((each) => ({ ...each, revision: 'new', failed: new Set(['shop/added']) }))
  const seen = { ...base, desired: 'new', candidate, nodes: failing }
  expect(decide({ ...seen, added: new Set(['shop/added']) })).toMatchObject({
    action: 'abort',
    culprits: new Set(['shop/added']),
  })
  expect(decide({ ...seen, added: new Set(['shop/other']) })).toMatchObject({ action: 'watch' })
})

const reads = (...ids: string[]) => ({ reads: new Set(ids) })
test.each<[string, Partial<AgentNode>, Partial<AgentNode>, 'spared' | 'suspected']>([
  ['read it unharmed', reads('shop/added'), reads('shop/added'), 'spared'],
  ['run it unharmed, and none reads logs for it', reads(), reads(), 'spared'],
  ['run it, but only the failing ones read logs for it', reads('shop/added'), reads('shop/other'), 'suspected'],
  ['end, too', reads('shop/added'), { ...reads('shop/added'), crashed: true }, 'suspected'],
  ['hang', reads('shop/added'), { ...reads('shop/added'), stuck: true }, 'suspected'],
  ['are silent', reads('shop/added'), { ...reads('shop/added'), stale: true }, 'suspected'],
  ['have just started', reads('shop/added'), { ...reads('shop/added'), isFresh: true }, 'suspected'],
  ['have not loaded it', reads('shop/added'), { ...reads('shop/added'), revision: 'older' }, 'suspected'],
  ['report nothing about what they read', {}, {}, 'suspected'],
])(
  'agents end after a change, and a recent new Pipeline is judged by the others: they %s',
  (_, failing, others, is) => {
    const candidate = { rev: 'new', percent: 10, salt: 's', step: 0, since: undefined }
    for (const sick of [{ crashed: true }, { stuck: true }]) {
      const nodes = forty.map((each) =>
        takesCandidate(candidate, each.node)
          ? { ...each, revision: 'new', ...failing, ...sick }
          : { ...each, revision: 'old', ...others },
      )
      const decision = decide({ ...base, desired: 'new', candidate, nodes, added: new Set(['shop/added']) })
      const ids = is === 'spared' ? ['shop/a'] : ['shop/a', 'shop/added']
      const suspects = decision.action === 'aside' ? decision.ids : decision.action === 'abort' && decision.culprits
      expect(suspects).toEqual(new Set(ids))
    }
  },
)

test.each([2, 3, 10, 40])(
  'one agent of %i that ended repeatedly before a change does not cause a rollback if others run the change',
  (count) => {
    // The agent with the lowest bucket would be the canary if it were steady.
    for (const index of forty.slice(0, count).keys()) {
      const nodes = forty.slice(0, count).map((each, at) => (at === index ? { ...each, isUnsteady: true } : each))
      const { steps, end } = run({ ...base, desired: 'new', nodes }, (each) => ({
        ...each,
        revision: each.isUnsteady === true ? 'old' : 'new',
        crashed: each.isUnsteady === true,
      }))
      expect(end).toEqual({ action: 'promote' })
      expect(steps.length).toBeGreaterThan(1)
    }
  },
)

test('an unsteady agent counts if a steady one also ends, or if no other agent has the change', () => {
  const unsteady = forty.map((each, at) => (at % 2 === 0 ? { ...each, isUnsteady: true } : each))
  const crash = (each: AgentNode) => ({ ...each, revision: 'new', crashed: true })
  for (const nodes of [unsteady, forty.map((each) => ({ ...each, isUnsteady: true }))])
    expect(run({ ...base, desired: 'new', nodes }, crash).end).toMatchObject({ action: 'abort' })
})

test('a failure of a Pipeline that an unsteady agent reports still counts', () => {
  const candidate = { rev: 'new', percent: 100, salt: 's', step: 3, since: 0 }
  const report = { revision: 'new', failed: new Set(['shop/a']), isUnsteady: true }
  const nodes = forty.map((each, at) => (at === 0 ? { ...each, ...report } : { ...each, revision: 'new' }))
  expect(decide({ ...base, desired: 'new', candidate, nodes })).toMatchObject({ action: 'abort' })
})

test('a rollout waits for an agent that has not loaded it, but not for a silent one', () => {
  const candidate = { rev: 'new', percent: 100, salt: 's', step: 3, since: 0 }
  const loaded = forty.map((each) => ({ ...each, revision: 'new' }))
  const late = [...loaded.slice(1), node('late')]
  expect(decide({ ...base, desired: 'new', candidate, nodes: late }).action).toBe('none')
  const silent = [...loaded.slice(1), node('late', { stale: true })]
  expect(decide({ ...base, desired: 'new', candidate, nodes: silent })).toEqual({ action: 'promote' })
})

test('the bake begins when the canaries run the revision, not when it is offered to them', () => {
  const started = decide({ ...base, desired: 'new' })
  if (started.action !== 'start') throw new Error(started.action)
  const candidate = { rev: 'new', percent: started.percent, salt: started.salt, step: 0, since: undefined }
  const offered = { ...base, desired: 'new', candidate }
  expect(decide({ ...offered, now: base.now + 3_600_000 })).toMatchObject({ action: 'none' })
  const nodes = forty.map((each) => (takesCandidate(candidate, each.node) ? { ...each, revision: 'new' } : each))
  expect(decide({ ...offered, nodes })).toEqual({ action: 'watch', waitMs: 60_000 })
  const watched = { ...offered, nodes, candidate: { ...candidate, since: base.now } }
  expect(decide({ ...watched, now: base.now + 59_000 })).toMatchObject({ action: 'none', waitMs: 1000 })
  expect(decide({ ...watched, now: base.now + 60_000 })).toMatchObject({ action: 'step' })
})

test('a candidate is rolled back if a canary only waits for two minutes, also if a newer revision exists', () => {
  const candidate = { rev: 'new', percent: 30, salt: 's', step: 0, since: undefined }
  const changed = new Set(['evil/p', 'shop/a'])
  const waiting = forty.map((each) =>
    takesCandidate(candidate, each.node) ? { ...each, waitingSince: base.now } : { ...each, waitingSince: 0 },
  )
  const seen = { ...base, changed, candidate, desired: 'new', nodes: waiting }
  expect(decide({ ...seen, now: base.now + maxWaitMs - 1 }).action).toBe('none')
  const why = expect.stringContaining('has waited for more than 2 minutes and cannot load it')
  for (const desired of ['new', 'newer']) {
    const later = { ...seen, desired, now: base.now + maxWaitMs }
    expect(decide({ ...later, changed: new Set(['shop/a']) })).toEqual({
      ...{ action: 'abort', culprits: new Set(['shop/a']), why },
    })
    // The cause may be either of the two.
    expect(decide(later)).toEqual({ action: 'aside', ids: changed, halved: true, why })
  }
  // The others continue: the rest, without the culprits, is tried and promoted.
  const left = { ...base, changed: new Set(['shop/b']), desired: 'left', now: base.now + maxWaitMs }
  expect(run(left, (each) => ({ ...each, revision: 'left' })).end).toEqual({ action: 'promote' })

  const lost = waiting.map((each) => ({ ...each, stale: true }))
  expect(decide({ ...seen, nodes: lost, now: base.now + maxWaitMs }).action).not.toBe('abort')
  const manual = policyOf({ autoRollback: false })
  const one = { ...seen, changed: new Set(['shop/a']), policy: manual }
  expect(decide({ ...one, now: base.now + maxWaitMs })).toMatchObject({ action: 'none', why })
  const loaded = waiting.map((each) => ({ ...each, revision: 'new' })) // now they wait for something else
  expect(decide({ ...seen, nodes: loaded, now: base.now + maxWaitMs }).action).toBe('watch')
})

test('lost agents are not selected as canaries, and others replace lost canaries', () => {
  const three = forty.slice(0, 3)
  const first = decide({ ...base, desired: 'new', nodes: three })
  if (first.action !== 'start') throw new Error(first.action)
  const nodes = three.map((each) => (takesCandidate(first, each.node) ? { ...each, stale: true } : each))
  const others = decide({ ...base, desired: 'new', nodes })
  if (others.action !== 'start') throw new Error(others.action)
  const chosen = (from: { percent: number; salt: string }) =>
    nodes.filter(({ node: name, stale }) => !stale && takesCandidate(from, name))
  expect(chosen(first)).toHaveLength(0)
  expect(chosen(others)).toHaveLength(1)
  const candidate = { ...first, rev: 'new', step: 0, since: undefined }
  expect(decide({ ...base, desired: 'new', candidate, nodes })).toEqual(others)
  const allLost = nodes.map((each) => ({ ...each, stale: true }))
  expect(decide({ ...base, desired: 'new', candidate, nodes: allLost }).action).toBe('watch')
})

test('a newer revision waits for a healthy candidate; a failing candidate is rolled back first', () => {
  const candidate = { rev: 'new', percent: 30, salt: 's', step: 1, since: 999_999 }
  const on = (extra: Partial<AgentNode>) =>
    forty.map((each) => (takesCandidate(candidate, each.node) ? { ...each, revision: 'new', ...extra } : each))
  expect(decide({ ...base, desired: 'newer', candidate, nodes: on({}) })).toMatchObject({ action: 'none' })
  expect(decide({ ...base, desired: 'newer', candidate, nodes: on({ failed: new Set(['shop/a']) }) })).toMatchObject({
    action: 'abort',
    culprits: new Set(['shop/a']),
  })
  expect(decide({ ...base, desired: 'old', candidate, nodes: on({}) })).toEqual({ action: 'drop' })
  const everywhere = { ...candidate, percent: 100, step: 4 }
  const all = forty.map((each) => ({ ...each, revision: 'new' }))
  expect(decide({ ...base, desired: 'newer', candidate: everywhere, nodes: all })).toEqual({ action: 'settle' })
})

test('without automatic rollback, a failing candidate stays on its agents', () => {
  const manual = policyOf({ autoRollback: false })
  const { end } = run({ ...base, desired: 'new', policy: manual }, (each) => ({ ...each, crashed: true }))
  expect(end).toMatchObject({ action: 'none', why: expect.stringContaining('ended') })
})

test('a trial makes no step before its agents have reported since its bake time began', () => {
  const tried = { rev: 'new', percent: 5, salt: 's', step: 0, since: 900_000 }
  const heard = (heardAt: number) =>
    forty.map((each) => (takesCandidate(tried, each.node) ? { ...each, revision: 'new', heardAt } : each))
  const seen = { ...base, desired: 'new', candidate: tried }
  expect(decide({ ...seen, nodes: heard(899_000) })).toMatchObject({
    action: 'none',
    why: expect.stringContaining('to report again'),
  })
  expect(decide({ ...seen, nodes: heard(905_000) })).toMatchObject({ action: 'step' })
})

test('a trial begins when agents that have just ended report again, and a new Pipeline does not wait for them', () => {
  const nodes = forty.map((each, index) => (index === 7 ? { ...each, isAway: true, isAwayByChange: true } : each))
  const seen = { ...base, desired: 'new', nodes }
  expect(decide(seen)).toMatchObject({ action: 'none', why: 'It waits for agents that start again.' })
  expect(decide({ ...seen, isArrival: true })).toMatchObject({ action: 'start' })
  expect(decide({ ...seen, nodes: forty })).toMatchObject({ action: 'start' })
  const byItself = nodes.map((each) => ({ ...each, isAwayByChange: false }))
  expect(decide({ ...seen, nodes: byItself })).toMatchObject({ action: 'start' })
})

test('changes that were suspected are tried again on the same agents', () => {
  const first = decide({ ...base, desired: 'new' })
  if (first.action !== 'start') throw new Error(first.action)
  const again = decide({ ...base, desired: 'half of new', salt: first.salt, starts: new Set(['shop/a']) })
  expect(again).toEqual(first)
})

test('a paused rollout makes no step', () => {
  const { steps, end } = run({ ...base, desired: 'new', policy: policyOf({ paused: true }) }, (each) => ({
    ...each,
    revision: 'new',
  }))
  expect(steps).toHaveLength(1)
  expect(end).toMatchObject({ action: 'none' })
})

test('durations', () => {
  expect([fieldDurationMs('1m30s'), fieldDurationMs('500ms'), fieldDurationMs('2h')]).toEqual([90_000, 500, 7_200_000])
})

const few = { percent: 5, salt: 's' }
const outside = forty.map(({ node: name }) => name).filter((name) => !takesCandidate(few, name))
const inside = forty.map(({ node: name }) => name).filter((name) => takesCandidate(few, name))
const reading = (reads: Readonly<Record<string, readonly string[]>>, extra: Partial<AgentNode> = {}) =>
  forty.map((each) => ({
    ...each,
    ...(reads[each.node] === undefined ? {} : { reads: new Set(reads[each.node]), ...extra }),
  }))
const [out = '', out2 = ''] = outside
const [within = ''] = inside

test.each<[string, readonly AgentNode[], readonly string[]]>([
  ['nobody reads logs for it', forty, []],
  ['a canary reads logs for it', reading({ [within]: ['shop/a'], [out]: ['shop/a'] }), []],
  ['only others read logs for it', reading({ [out]: ['shop/a'] }), [out]],
  ['only a lost one reads logs for it', reading({ [out]: ['shop/a'] }, { stale: true }), []],
  ['one of them reads for two changes', reading({ [out]: ['shop/a', 'shop/b'], [out2]: ['shop/c'] }), [out]],
])('the agents added to the canaries of a change when %s', (_, nodes, also) => {
  expect(readersFor(few, new Set(['shop/a', 'shop/b']), nodes, policy)).toEqual(also)
  // The added nodes are canaries.
  expect(readersFor({ ...few, also }, new Set(['shop/a', 'shop/b']), nodes, policy)).toEqual(also)
})

test.each<[string, Partial<AgentNode>]>([
  ['has ended', { crashed: true }],
  ['hangs', { stuck: true }],
  ['could not load the change', { failed: new Set(['shop/a']) }],
  ['has not reported yet', { revision: undefined }],
])('no agent is added while a canary %s', (_, trouble) => {
  const nodes = reading({ [out]: ['shop/a'] })
  expect(readersFor(few, new Set(['shop/a']), nodes, policy)).toEqual([out])
  const inTrouble = nodes.map((each) => (each.node === within ? { ...each, ...trouble } : each))
  expect(readersFor(few, new Set(['shop/a']), inTrouble, policy)).toEqual([])
})

test('only a few agents are added, for any number of changes that other nodes read', () => {
  const names = outside.slice(0, 20)
  const nodes = reading(Object.fromEntries(names.map((name) => [name, [`shop/${name}`]])))
  const changed = new Set(names.map((name) => `shop/${name}`))
  const also = readersFor(few, changed, nodes, policy)
  expect(also).toHaveLength(Math.max(3, inside.length))
  expect(readersFor({ ...few, also }, changed, nodes, policy)).toEqual(also)
})

test('in a small cluster, no agent is added, and the canary reads logs for the change', () => {
  for (const count of [2, 3, 4])
    for (const reader of forty.slice(0, count)) {
      const nodes = forty
        .slice(0, count)
        .map((each) => (each === reader ? { ...each, reads: new Set(['shop/a']) } : each))
      const decision = decide({ ...base, desired: 'new', starts: new Set(['shop/a']), nodes })
      if (decision.action !== 'start') throw new Error(decision.action)
      expect(nodes.filter(({ node: name }) => takesCandidate(decision, name)).map(({ node: name }) => name)).toEqual([
        reader.node,
      ])
      expect(readersFor(decision, new Set(['shop/a']), nodes, policy)).toEqual([])
    }
})

test('a later candidate is only offered to agents that have loaded the earlier one', () => {
  const tried = { rev: 'new', percent: 30, salt: 's', step: 1, since: 0, stepped: 0 }
  const nodes = forty.map((each) => (takesCandidate(tried, each.node) ? { ...each, revision: 'new' } : each))
  const seen = { ...base, candidate: tried, desired: 'new', nodes }
  const beside = (percent: number, isLoaded: boolean) => decide({ ...seen, base: { percent, salt: 's', isLoaded } })
  expect(beside(80, true)).toEqual({ action: 'step', percent: 55 })
  expect(beside(40, true)).toEqual({ action: 'step', percent: 40 })
  expect(beside(30, true)).toMatchObject({ action: 'none' })
  expect(beside(80, false)).toMatchObject({ action: 'none' })
})

test('only the later candidate waits for its agents, and they count for an earlier one if they name its pipeline', () => {
  const tried = { rev: 'new', percent: 100, salt: 's', step: 3, since: 0, stepped: 0 }
  const others = forty.slice(1).map((each) => ({ ...each, revision: 'new' }))
  const decided = (later: Partial<AgentNode>) =>
    decide({
      ...base,
      candidate: tried,
      desired: 'new',
      nodes: [node('later', { isLater: true, ...later }), ...others],
    })
  expect(decided({ crashed: true, revision: 'new' })).toEqual({ action: 'promote' })
  expect(decided({ revision: 'newer', lacks: new Set(), failed: new Set(['shop/a']) })).toMatchObject({
    action: 'abort',
    culprits: new Set(['shop/a']),
  })
})

test('a later candidate that ends agents is tried again without the earlier ones before it is rolled back', () => {
  const candidate = { rev: 'new', percent: 5, salt: 's', step: 0, since: undefined }
  const nodes = forty.map((each) => ({ ...each, crashed: takesCandidate(candidate, each.node) }))
  const seen = { ...base, candidate, desired: 'new', nodes }
  expect(decide(seen)).toMatchObject({ action: 'abort' })
  expect(decide({ ...seen, base: { percent: 30, salt: 's', isLoaded: true } })).toMatchObject({
    ...{ action: 'aside', ids: new Set(['shop/a']), halved: true },
  })
})

test.each([
  ['steady', {}],
  ['unsteady', { isUnsteady: true }],
  ['unsteady and ended', { isUnsteady: true, crashed: true }],
])(
  'a decision chooses among %s agents as often for 200 changes as for one, and in proportion to the agents',
  (_, extra) => {
    const joinedAt = { at: base.now, since: undefined }
    const looksFor = (agents: number, changes: number) => {
      let looks = 0
      const nodes = Array.from({ length: agents }, (_, index) =>
        Object.defineProperty(node('', { lacks: new Set(), ...extra }), 'node', {
          get() {
            looks++
            return `node-${index}`
          },
        }),
      )
      const joined = new Map(Array.from({ length: changes }, (_, index) => [`shop/p-${index}`, joinedAt]))
      const candidate = { rev: 'new', percent: 20, salt: 'new', step: 0, since: undefined, begun: base.now, joined }
      decide({ ...base, desired: 'newer', waits: 'new', changed: new Set(joined.keys()), candidate, nodes })
      return looks
    }
    expect(looksFor(100, 200)).toBe(looksFor(100, 1))
    expect(looksFor(400, 1)).toBeLessThan(5 * looksFor(100, 1))
  },
)
