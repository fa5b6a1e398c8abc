import { expect, test } from 'vitest'
import type { RolloutRecord } from '../../fleet/state.ts'
import type { Fragment } from '../../render/fragment.ts'
import { agentStatus } from './agent-status.ts'
import type { AgentView } from './view.ts'

/** An Agent of three pods, of which one runs the candidate. */
function view(record: Partial<RolloutRecord>, why: string): AgentView {
  const revision = (rev: string) =>
    [rev, { rev, shards: [], fragments: new Map([['a', { id: 'a', hash: rev } as Fragment]]) }] as const
  return {
    ...{ key: 'system/node', isSidecar: false, isPaused: false, desired: 3, live: [], stale: 0, isSettled: true },
    ...{ turnout: { serving: 3, starting: 0, lost: 0 }, serving: new Set(), servingBy: new Map(), failing: new Map() },
    ...{ traffic: new Map(), reading: undefined, byRevision: new Map([['new', [{} as never]]]) },
    delivered: {
      ...{ stable: { rev: 'old', shards: [] }, candidate: { rev: 'new', shards: [], percent: 5, salt: '' } },
      ...{ revisions: new Map([revision('old'), revision('new')]), selected: new Map(), evicted: new Map() },
      ...{ startSpreadMs: 0, why, record: { rolledBack: {}, history: [], ...record } },
    },
  }
}

const entry = (group: string) => ({ hash: '2', group, why: '' })

test.each([
  ['nothing is set aside', {}, 'It is being watched.', '1 of 3 agents runs revision new. It is being watched.'],
  [
    'a change is set aside, and another one tried',
    { aside: { b: entry('x:0') } },
    'It is being watched.',
    '1 of 3 agents runs revision new. It is being watched. 1 change is set aside and tried later.',
  ],
  [
    'changes were set aside, and some of them are tried',
    { aside: { a: entry('x:0'), b: entry('x:1'), c: entry('x:1') }, turn: 'x:0' },
    '',
    '1 of 3 agents runs revision new. 2 changes are set aside and tried later.',
  ],
])('an Agent reports its progress when %s', (_, record, why, message) => {
  expect(agentStatus(view(record, why))?.findings[0]).toMatchObject({ status: 'False', reason: 'RollingOut', message })
})

test.each([
  [0, 'The API server does not answer reviews', '1 of 3 agents runs revision new.'],
  [2, undefined, '1 of 3 agents runs revision new.'],
  [
    2,
    'The API server answers reviews with status 500',
    '1 of 3 agents runs revision new. The API server answers reviews with status 500, so the operator cannot accept the reports of 2 agents.',
  ],
])('an Agent with %s silent pods names the problem of the reviews', (stale, problem, message) => {
  expect(agentStatus({ ...view({}, ''), stale }, problem)?.findings[0]).toMatchObject({ message })
})
