import type { Candidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import type { Delivered, RolloutRecord } from '../fleet/state.ts'
import type { Fragment } from '../render/fragment.ts'
import { waitText } from './waits.ts'

/** An Agent that runs `old` of a Pipeline, and tries these contents by id on a quarter of its agents. */
function trying(
  contents: Readonly<Record<string, string>> | undefined,
  record: Partial<RolloutRecord> = {},
): Delivered {
  const revision = (rev: string, of: Readonly<Record<string, string>>) => {
    const fragments = new Map(Object.entries(of).map(([id, hash]) => [id, { id, hash } as Fragment]))
    return [rev, { rev, shards: [], fragments }] as const
  }
  const candidate: Candidate = { rev: '0123456789abcdef', shards: [], percent: 25, salt: '' }
  return {
    ...{ stable: { rev: 'r1', shards: [] }, candidate: contents && candidate },
    record: { rolledBack: {}, history: [], ...record },
    revisions: new Map([revision('r1', { 'shop/p': 'old' }), revision(candidate.rev, contents ?? {})]),
    ...{ selected: new Map(), evicted: new Map(), startSpreadMs: 0, why: 'It waits for 2 agents to load it.' },
  }
}

test.each([
  ['nothing is tried', undefined, 'new', false, undefined],
  ['it runs everywhere already', { 'shop/p': 'old', 'shop/q': 'new' }, 'old', false, undefined],
  [
    'it is tried itself',
    { 'shop/p': 'new' },
    'new',
    false,
    'Its rollout on Agent system/node is at 25% of the agents. It waits for 2 agents to load it.',
  ],
  [
    'it is tried itself, and somebody has paused that',
    { 'shop/p': 'new' },
    'new',
    true,
    'Its rollout on Agent system/node is at 25% of the agents, and paused.',
  ],
  [
    'another one is tried',
    { 'shop/p': 'old', 'shop/q': 'new' },
    'new',
    false,
    'It waits for the rollout of revision 0123456789ab on Agent system/node, which is at 25% of the agents.',
  ],
  [
    'another one is tried, and somebody has paused that',
    { 'shop/p': 'old', 'shop/q': 'new' },
    'new',
    true,
    'It waits for the rollout of revision 0123456789ab on Agent system/node, which is at 25% of the agents, and paused.',
  ],
])('explains the wait of a Pipeline while %s', (_, contents, hash, isPaused, text) => {
  expect(waitText('system/node', trying(contents), isPaused, { id: 'shop/p', hash })).toBe(text)
})

const at = '2026-01-01T00:00:00Z'
const aside = { hash: 'new', group: 'g:0', why: '1 of 1 agent failed: the agent on n ended' }
const itsRollout = 'Its rollout on Agent system/node is at 25% of the agents.'
const wasAside =
  'It was set aside on Agent system/node and will be tried again separately: 1 of 1 agent failed: the agent on n ended.'

test.each<[string, Readonly<Record<string, string>> | undefined, Partial<RolloutRecord>, string | undefined]>([
  [
    'it is watched, and another one has just joined it',
    { 'shop/p': 'new' },
    { since: at, joined: { q: { at } } },
    `${itsRollout} It is being watched.`,
  ],
  [
    'its own agents load it since it joined another',
    { 'shop/p': 'new' },
    { since: at, joined: { 'shop/p': { at } } },
    `${itsRollout} Its first agents load it.`,
  ],
  [
    'it is watched since it joined another',
    { 'shop/p': 'new' },
    { joined: { 'shop/p': { at, since: at } } },
    `${itsRollout} It is being watched.`,
  ],
  [
    'it is set aside while another one is tried',
    { 'shop/p': 'old', 'shop/q': 'new' },
    { aside: { 'shop/p': aside } },
    wasAside,
  ],
  ['it is set aside, and nothing is tried at the moment', undefined, { aside: { 'shop/p': aside } }, wasAside],
  [
    'it was set aside, and is tried by now',
    { 'shop/p': 'new' },
    { aside: { 'shop/p': aside }, turn: 'g:0' },
    `${itsRollout} It waits for 2 agents to load it.`,
  ],
  [
    'an earlier content of it was set aside',
    undefined,
    { aside: { 'shop/p': { ...aside, hash: 'other' } } },
    undefined,
  ],
])('explains the wait of a Pipeline while %s', (_, contents, record, text) => {
  expect(waitText('system/node', trying(contents, record), false, { id: 'shop/p', hash: 'new' })).toBe(text)
})
