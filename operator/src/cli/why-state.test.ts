// `why` in every state of a rollout: each combination of the Pipeline's status, the revision that agents ran before or still run, and
// the pod and the agent of its node.

import { describe, expect, test } from 'vitest'
import type { Condition } from '../api/conditions.ts'
import { type Files, readingStateOf } from './why-state.ts'

const at = '2026-01-01T00:00:00Z'
const condition = (type: string, status: Condition['status'], reason: string, observedGeneration = 2): Condition => ({
  ...{ type, status, reason, message: 'why', observedGeneration, lastTransitionTime: at },
})
const accepted = condition('Accepted', 'True', 'Valid')
const programmed = (reason: string) => condition('Programmed', reason === 'Programmed' ? 'True' : 'False', reason)

/** States of the current version; `running`: all agents run it. */
const states: Record<string, { conditions: readonly Condition[]; running?: true; stopped?: true; failure?: string }> = {
  'just created': { conditions: [] },
  'judged, without a report': { conditions: [accepted] },
  refused: { conditions: [condition('Accepted', 'False', 'CompileFailed'), programmed('PreviousGeneration')] },
  'changed, not judged': { conditions: [condition('Accepted', 'True', 'Valid', 1), programmed('Programmed')] },
  'changed after a refusal': { conditions: [condition('Accepted', 'False', 'CompileFailed', 1)] },
  pending: { conditions: [accepted, programmed('Pending')], stopped: true },
  'resumed, not judged': {
    conditions: [condition('Accepted', 'True', 'Valid', 1), programmed('Suspended')],
    stopped: true,
  },
  'too large': { conditions: [accepted, programmed('BundleTooLarge')], stopped: true },
  'rolling out': { conditions: [accepted, programmed('RollingOut')] },
  'rolled back': { conditions: [accepted, programmed('RolledBack')], stopped: true },
  undone: { conditions: [accepted, programmed('Undone')], stopped: true },
  'failed on another node': { conditions: [accepted, programmed('NodesFailed')] },
  'failed on this node': { conditions: [accepted, programmed('NodesFailed')], failure: 'it cannot' },
  running: { conditions: [accepted, programmed('Programmed')], running: true },
  'running, but for this node': { conditions: [accepted, programmed('Programmed')], failure: 'it cannot' },
}
const allFiles: readonly Files[] = ['open', 'none', 'unknown', 'absent']

describe.each(Object.entries(states))('a Pipeline that is %s', (_, { conditions, running, stopped, failure }) => {
  const revisions = [
    { what: 'new', before: undefined, earlier: 0 },
    { what: 'run before', before: 1, earlier: 0 },
    { what: 'run before, and now on two nodes', before: 1, earlier: 2 },
    { what: 'run before on two nodes alone', before: undefined, earlier: 2 },
  ]
  for (const { what, before, earlier } of revisions) {
    for (const isPlaced of [true, false]) {
      for (const files of isPlaced ? allFiles : (['unknown'] as const)) {
        const pod = isPlaced ? `files ${files}` : 'no node'
        test(`${what}, ${pod}`, () => {
          const agents = [earlier === 0 ? {} : { earlier }]
          const status = { conditions, agents, programmedGeneration: running === true ? 2 : before }
          const found = readingStateOf({ metadata: { generation: 2 }, status }, isPlaced, files, failure)
          const hasEarlier = earlier > 0 || (before !== undefined && stopped !== true)
          // A pod without a node has no logs. Otherwise it is read if all agents run the current version or an earlier one, or if the agent
          // of the node has shown it; but not on a node without an agent, regardless of other nodes.
          const reads = isPlaced && files !== 'absent' && (running === true || hasEarlier || files === 'open')
          expect(found.reads).toBe(reads)
          // A pod that is not read gets a reason, and so does a pod read by another version than the current one.
          expect(found.obstacle !== undefined).toBe(!reads)
          expect(found.rollout !== undefined).toBe(reads && running !== true)
          if (failure !== undefined) expect(found.rollout ?? found.obstacle).toContain(failure)
        })
      }
    }
  }
})

test.each<{
  what: string
  conditions: readonly Condition[]
  before?: number
  earlier?: number
  files: Files
  says: object
}>([
  {
    what: 'a change that waits for another rollout, while all agents run the version before it',
    conditions: [accepted, programmed('Pending')],
    before: 1,
    earlier: 2,
    files: 'unknown',
    says: { reads: true, rollout: 'Pending: why', isEarlier: true },
  },
  {
    what: 'a change that was rolled back, on a node whose agent has the files open',
    conditions: [accepted, programmed('RolledBack')],
    before: 1,
    earlier: 2,
    files: 'open',
    says: { reads: true, rollout: 'RolledBack: why', isEarlier: true },
  },
  {
    what: 'a new Pipeline that ran everywhere before it was rolled back',
    conditions: [accepted, programmed('RolledBack')],
    before: 2,
    files: 'none',
    says: {
      reads: false,
      obstacle: 'not all agents run it, and the agent of its node has shown no open log file: RolledBack: why',
    },
  },
  {
    what: 'a Pipeline that was just created',
    conditions: [],
    files: 'none',
    says: { reads: false, obstacle: 'the operator has not processed its current version yet' },
  },
  {
    what: 'a refused change of a Pipeline that runs',
    conditions: [condition('Accepted', 'False', 'CompileFailed'), programmed('PreviousGeneration')],
    before: 1,
    files: 'open',
    says: { reads: true, rollout: 'it is not accepted: CompileFailed: why', isEarlier: true },
  },
  {
    what: 'a change on its way, before it has reached the node',
    conditions: [accepted, programmed('RollingOut')],
    before: 1,
    files: 'none',
    says: { reads: true, rollout: 'RollingOut: why', isEarlier: true },
  },
  {
    what: 'a version that ran everywhere and now fails on another node',
    conditions: [accepted, programmed('NodesFailed')],
    before: 2,
    files: 'unknown',
    says: { reads: true, rollout: 'NodesFailed: why', isEarlier: false },
  },
  {
    what: 'a Pipeline that all agents run, on a node that has none',
    conditions: [accepted, programmed('Programmed')],
    before: 2,
    files: 'absent',
    says: {
      reads: false,
      obstacle:
        'no agent that runs it reports from the node of the pod: the Agents that select it have no pod there, or that pod is not running',
    },
  },
  {
    what: 'a Pipeline that was stopped after it ran everywhere',
    conditions: [condition('Accepted', 'False', 'ForbiddenOption'), programmed('Stopped')],
    before: 1,
    files: 'unknown',
    says: { reads: false, obstacle: 'it is not accepted: ForbiddenOption: why' },
  },
  {
    what: 'a new Pipeline that has reached the node',
    conditions: [accepted, programmed('RollingOut')],
    files: 'open',
    says: { reads: true, rollout: 'RollingOut: why', isEarlier: false },
  },
])('$what', ({ conditions, before, earlier, files, says }) => {
  const status = { conditions, programmedGeneration: before, agents: earlier === undefined ? [] : [{ earlier }] }
  expect(readingStateOf({ metadata: { generation: 2 }, status }, true, files)).toEqual(says)
})
