import { takesCandidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import type { KnownRevision, RolloutRecord } from '../../fleet/state.ts'
import type { Fragment } from '../../render/fragment.ts'
import { type AgentNode, policyOf } from '../rollout-plan.ts'
import { advance, goBack, type RolloutState, type Seen } from './transition.ts'

const now = Date.parse('2026-01-01T00:10:00Z')
const at = '2026-01-01T00:10:00.000Z'

function revision(rev: string): KnownRevision {
  return { rev, shards: [], fragments: new Map() }
}

const none: RolloutRecord = { rolledBack: {}, history: [] }
const ran = { revision: 'old', at: '2026-01-01T00:00:00.000Z', result: 'RolledOut' }
const old = { rev: 'old', shards: [] }
const tried = { rev: 'new', shards: [], percent: 5, salt: 'new' }

function state(members: Partial<RolloutState>): RolloutState {
  return { stable: old, candidate: undefined, record: none, why: 'of an earlier pass', ...members }
}

function node(members: Partial<AgentNode> = {}): AgentNode {
  const calm = { stuck: false, waitingSince: undefined, stale: false, crashed: false }
  return { node: 'n', revision: 'old', failed: new Set(), failures: [], reason: undefined, ...calm, ...members }
}

const fragment = { id: 'shop/p', hash: 'sha256:2' } as Fragment

function seen(members: Partial<Seen>): Seen {
  return {
    now,
    policy: policyOf({ canary: { percent: 100, bake: '60s' } }),
    bundle: revision('new'),
    tried: new Map([['shop/p', fragment]]),
    changed: new Set(['shop/p']),
    worse: new Set(),
    nodes: [node()],
    retryOf: () => undefined,
    ...members,
  }
}

test.each([
  {
    sentence: 'the first revision of an Agent is rolled out at once',
    before: state({ stable: undefined }),
    given: seen({}),
    after: {
      state: {
        stable: { rev: 'new', shards: [] },
        candidate: undefined,
        record: { rolledBack: {}, history: [{ revision: 'new', at, result: 'RolledOut' }] },
        why: '',
      },
      reasons: ['RolledOut'],
      recheckMs: undefined,
    },
  },
  {
    sentence:
      'a revision that differs becomes the candidate, from its first step, and is looked at after its bake time',
    before: state({}),
    given: seen({}),
    after: {
      state: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 0, begun: at }, why: '' }),
      reasons: ['RolloutStarted'],
      recheckMs: 60_000,
    },
  },
  {
    sentence:
      'an agent that has not loaded the candidate is named as the reason to wait, and looked at every ten seconds',
    before: state({ candidate: { ...tried, percent: 100 } }),
    given: seen({}),
    after: {
      state: state({ candidate: { ...tried, percent: 100 }, why: 'It waits for 1 agent to load it.' }),
      reasons: [],
      recheckMs: 10_000,
    },
  },
  {
    sentence: 'the bake time counts from when all chosen agents run the candidate',
    before: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 0 } }),
    given: seen({ nodes: [node({ revision: 'new' })] }),
    after: {
      state: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 0, since: at }, why: '' }),
      reasons: [],
      recheckMs: 60_000,
    },
  },
  {
    sentence: 'a candidate that was watched for its bake time becomes stable, and the record of its steps ends',
    before: state({
      candidate: { ...tried, percent: 100 },
      record: { rolledBack: {}, history: [ran], step: 0, since: '2026-01-01T00:01:00.000Z' },
    }),
    given: seen({ nodes: [node({ revision: 'new' })] }),
    after: {
      state: state({
        stable: { rev: 'new', shards: [] },
        record: { rolledBack: {}, history: [{ revision: 'new', at, result: 'RolledOut' }, ran] },
        why: '',
      }),
      reasons: ['RolledOut'],
      recheckMs: undefined,
    },
  },
  {
    sentence: 'the contents that made agents fail are recorded with their retry, and what is left is rendered next',
    before: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 0 } }),
    given: seen({ nodes: [node({ crashed: true })], retryOf: () => 'again' }),
    after: {
      state: state({
        record: {
          rolledBack: {
            'shop/p': { hash: 'sha256:2', retry: 'again', why: '1 of 1 agent failed: the agent on n ended' },
          },
          history: [{ revision: 'new', at, result: 'RolledBack' }],
        },
        why: '',
      }),
      reasons: ['RolledBack'],
      recheckMs: 0,
    },
  },
  {
    sentence: 'content that an agent cannot load is recorded with the message of the agent',
    before: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 0 } }),
    given: seen({
      nodes: [
        node({
          revision: 'new',
          failed: new Set(['shop/p']),
          failures: [{ pipeline: 'shop/p', component: 'out', reason: 'BuildFailed', message: 'EACCES' }],
        }),
      ],
    }),
    after: {
      state: state({
        record: {
          rolledBack: {
            'shop/p': {
              hash: 'sha256:2',
              why: '1 of 1 agent failed: the agent on n could not activate it: out: EACCES',
            },
          },
          history: [{ revision: 'new', at, result: 'RolledBack' }],
        },
        why: '',
      }),
      reasons: ['RolledBack'],
      recheckMs: 0,
    },
  },
  {
    sentence: 'a candidate that nobody wants any more is dropped without an event',
    before: state({ candidate: tried, record: { ...none, step: 1, since: at } }),
    given: seen({ bundle: revision('old') }),
    after: { state: state({ why: '' }), reasons: [], recheckMs: undefined },
  },
  {
    sentence: 'a candidate that all agents run becomes stable when something newer waits, which is rendered next',
    before: state({ candidate: { ...tried, percent: 100 }, record: { ...none, step: 3 } }),
    given: seen({
      bundle: revision('newer'),
      policy: policyOf({}),
      nodes: [node({ revision: 'new' }), node({ node: 'm', revision: 'new' })],
    }),
    after: {
      state: state({
        stable: { rev: 'new', shards: [] },
        record: { rolledBack: {}, history: [{ revision: 'new', at, result: 'RolledOut' }] },
        why: '',
      }),
      reasons: [],
      recheckMs: 0,
    },
  },
  {
    sentence: 'with nothing new, nothing changes and nothing is looked at again',
    before: state({}),
    given: seen({ bundle: revision('old') }),
    after: { state: state({ why: 'Up to date.' }), reasons: [], recheckMs: undefined },
  },
])('$sentence', ({ before, given, after }) => {
  const frozen = structuredClone(before)
  const { state: next, events, recheckMs } = advance(before, given)
  expect({ state: next, reasons: events.map(({ reason }) => reason), recheckMs }).toEqual(after)
  expect(before, 'the state before is left as it was').toEqual(frozen)
})

const both = new Map(['a', 'b'].map((id) => [id, { id, hash: `${id}2` } as Fragment]))
const earlier = '2026-01-01T00:08:00.000Z'
const joined = { b: { at: earlier } }
const onCanary = state({
  candidate: { ...tried, percent: 40, salt: 's' },
  record: { ...none, step: 0, begun: earlier, since: earlier, joined },
})
const four = Array.from({ length: 40 }, (_, index) => `n${index}`).filter((name) =>
  takesCandidate({ percent: 40, salt: 's' }, name),
)
const given = (how: Partial<AgentNode>, members: Partial<Seen> = {}) =>
  seen({
    ...{ policy: policyOf({ canary: { percent: 10, bake: '60s' } }), tried: both, changed: new Set(['a', 'b']) },
    nodes: [...four, 'outside'].map((name) => node({ node: name, revision: 'new', lacks: new Set(), ...how })),
    ...members,
  })

test.each([
  {
    sentence: 'a change that fails leaves the candidate, and the other stays where it is',
    given: given({ failed: new Set(['a']) }),
    leaves: ['a'],
    record: {
      step: 0,
      begun: earlier,
      since: earlier,
      joined,
      rolledBack: { a: expect.objectContaining({ hash: 'a2' }) },
    },
    reasons: ['RolledBack'],
  },
  {
    sentence: 'changes of which one ends the agents are set aside in two groups',
    given: given({ crashed: true }),
    leaves: ['a', 'b'],
    record: {
      rolledBack: {},
      aside: { a: expect.objectContaining({ hash: 'a2' }), b: expect.objectContaining({ hash: 'b2' }) },
    },
    reasons: ['SetAside'],
  },
  {
    sentence: 'a change that joined is watched since all agents of the step run it, and the first one since before',
    given: given({}),
    leaves: undefined,
    record: { since: earlier, joined: { b: { at: earlier, since: at } } },
    reasons: [],
  },
  {
    sentence: 'a change that agents have loaded is watched while they load the one that joined',
    given: given({ revision: 'other', lacks: new Set(['b']) }, { now: Date.parse(earlier) + 30_000 }),
    leaves: undefined,
    record: { since: earlier, joined },
    reasons: [],
  },
  {
    sentence: 'a change that agents have not loaded for two minutes stays behind while the other continues',
    given: given({ revision: 'other', lacks: new Set(['b']) }),
    leaves: ['b'],
    record: { step: 1, begun: earlier, stepped: at },
    reasons: [],
  },
])('$sentence', ({ given: what, leaves, record, reasons }) => {
  const next = advance(onCanary, what)
  expect(next.leaves && [...next.leaves].sort()).toEqual(leaves)
  expect(next.state.record).toMatchObject(record)
  expect(next.state.candidate?.percent).toBe(record.step === 1 ? 65 : 40)
  expect(next.events.map(({ reason }) => reason)).toEqual(reasons)
})

test('a group of suspects is forgotten when it becomes stable', () => {
  const entry = { hash: 'a2', why: '' }
  const aside = { a: { ...entry, group: 'g:0' }, b: { ...entry, group: 'g:1' } }
  const record = { ...none, step: 4, begun: earlier, since: earlier, stepped: earlier, aside, turn: 'g:0' }
  const before = state({ candidate: { ...tried, percent: 100 }, record })
  const next = advance(before, given({}, { turn: 'g:0', waits: 'aside' }))
  expect(next.state.stable?.rev).toBe('new')
  expect(next.state.record.aside).toEqual({ b: aside.b })
})

const revisions = new Map([['old', revision('old')]])
const history = [{ ...ran, revision: 'new' }, ran]

test.each([
  {
    sentence: 'without a request nothing is gone back to',
    before: state({ record: { rolledBack: {}, history } }),
    request: undefined,
    after: { stable: 'old', undone: undefined, runs: undefined, reasons: [] },
  },
  {
    sentence: 'a revision that ran everywhere runs everywhere again, and a rollout ends',
    before: state({
      stable: { rev: 'new', shards: [] },
      candidate: tried,
      record: { rolledBack: {}, history, step: 2 },
    }),
    request: 'old now',
    after: { stable: 'old', undone: { request: 'old now', to: 'old', from: 'new' }, runs: 'old', reasons: ['Undone'] },
  },
  {
    sentence: 'a revision that is gone back to already is reported once',
    before: state({ record: { rolledBack: {}, history, undone: { request: 'old now', to: 'old', from: 'new' } } }),
    request: 'old now',
    after: { stable: 'old', undone: { request: 'old now', to: 'old', from: 'new' }, runs: 'old', reasons: [] },
  },
  {
    sentence: 'a request for a revision that nobody knows is reported as failed',
    before: state({ record: { rolledBack: {}, history } }),
    request: 'lost now',
    after: { stable: 'old', undone: { request: 'lost now' }, runs: undefined, reasons: ['UndoFailed'] },
  },
  {
    sentence: 'the same request is not reported as failed again',
    before: state({ record: { rolledBack: {}, history, undone: { request: 'lost now' } } }),
    request: 'lost now',
    after: { stable: 'old', undone: { request: 'lost now' }, runs: undefined, reasons: [] },
  },
  {
    sentence: 'a revision whose content is lost gives way to what is to run',
    before: state({
      stable: { rev: 'new', shards: [] },
      record: { rolledBack: {}, history, undone: { request: 'gone now', to: 'gone', from: 'new' } },
    }),
    request: 'gone now',
    after: { stable: 'new', undone: { request: 'gone now' }, runs: undefined, reasons: [] },
  },
])('$sentence', ({ before, request, after }) => {
  const { state: next, events, revision: runs } = goBack(before, revisions, request, 'new', at)
  const reasons = events.map(({ reason }) => reason)
  expect({ stable: next.stable?.rev, undone: next.record.undone, runs: runs?.rev, reasons }).toEqual(after)
  if (runs !== undefined) expect([next.candidate, next.record.step, next.why]).toEqual([undefined, undefined, ''])
})
