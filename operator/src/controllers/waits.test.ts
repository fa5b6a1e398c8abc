import type { Candidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import type { Delivered } from '../fleet/state.ts'
import type { Fragment } from '../render/fragment.ts'
import { waitText } from './waits.ts'

/** An Agent that runs `old` of a Pipeline, and tries these contents by id on a quarter of its agents. */
function trying(contents: Readonly<Record<string, string>> | undefined): Delivered {
  const revision = (rev: string, of: Readonly<Record<string, string>>) => {
    const fragments = new Map(Object.entries(of).map(([id, hash]) => [id, { id, hash } as Fragment]))
    return [rev, { rev, shards: [], fragments }] as const
  }
  const candidate: Candidate = { rev: '0123456789abcdef', shards: [], percent: 25, salt: '' }
  return {
    ...{ stable: { rev: 'r1', shards: [] }, candidate: contents && candidate, record: { rolledBack: {}, history: [] } },
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
])('what a Pipeline waits for while %s', (_, contents, hash, isPaused, text) => {
  expect(waitText('system/node', trying(contents), isPaused, { id: 'shop/p', hash })).toBe(text)
})
