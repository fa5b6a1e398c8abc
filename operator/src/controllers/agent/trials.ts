// The trials of a rollout in the order in which they began: the candidate, then later candidates. Each trial adds changes to the
// previous one, so the previous candidate is its stable revision. Pure.

import type { Candidate } from '@penstock/agent/bundle'
import type { Delivered, RolloutRecord, TrialRecord } from '../../fleet/state.ts'
import type { RolloutState } from './transition.ts'

/** Each trial needs space for its revision in the Secrets, and the agents load all of them one after the other. */
export const maxTrials = 4

type Trials = Pick<Delivered, 'stable' | 'candidate' | 'later' | 'record' | 'why'>

export function trialsOf({ candidate, later = [] }: Pick<Delivered, 'candidate' | 'later'>): readonly Candidate[] {
  return candidate === undefined ? later : [candidate, ...later]
}

/**
 * The state of one trial for its decisions.
 * @param index of the trial; the number of trials for one that may begin
 */
export function viewOf(delivered: Trials, index: number): RolloutState {
  const { stable, candidate, later, record, why } = delivered
  if (index === 0) return { stable, candidate, record, why, ...(later === undefined ? {} : { later }) }
  const trials = trialsOf(delivered)
  const { rev, shards } = trials[index - 1] as Candidate
  const [, { turn: _, later: records = [], ...shared }] = split(record)
  return { stable: { rev, shards }, candidate: trials[index], record: { ...shared, ...records[index - 1] }, why }
}

/** Stores the state after a decision about a trial. */
export function putView(delivered: Trials, index: number, state: RolloutState): void {
  if (index === 0) {
    Object.assign(delivered, state)
    return
  }
  const { candidate } = state
  const [own, shared] = split(state.record)
  const [first, { turn, later: records = [] }] = split(delivered.record)
  const replaced = <T>(list: readonly T[], item: T) => [
    ...list.slice(0, index - 1),
    ...(candidate === undefined ? [] : [item]),
    ...list.slice(index),
  ]
  delivered.later = replaced(delivered.later ?? [], candidate as Candidate)
  const record = { ...shared, ...first, ...(turn === undefined ? {} : { turn }) }
  delivered.record = withLater(record, replaced(records, own).slice(0, delivered.later.length))
}

/** Moves the next trial to the first place if the first one has ended. */
export function moveUp(delivered: Trials): void {
  const [next, ...later] = delivered.later ?? []
  if (delivered.candidate !== undefined || next === undefined) return
  const [, { turn: _, later: records = [], ...shared }] = split(delivered.record)
  const [own, ...others] = records
  delivered.candidate = next
  delivered.later = later
  delivered.record = withLater({ ...shared, ...own }, others)
}

function withLater(record: RolloutRecord, later: readonly TrialRecord[]): RolloutRecord {
  const { later: _, ...rest } = record
  return later.length === 0 ? rest : { ...rest, later }
}

/** Splits a record into the times of its trial and the rest. */
function split({
  step,
  since,
  begun,
  stepped,
  joined,
  ...rest
}: RolloutRecord): [TrialRecord, Omit<RolloutRecord, keyof TrialRecord>] {
  return [
    {
      ...(step === undefined ? {} : { step }),
      ...(since === undefined ? {} : { since }),
      ...(begun === undefined ? {} : { begun }),
      ...(stepped === undefined ? {} : { stepped }),
      ...(joined === undefined ? {} : { joined }),
    },
    rest,
  ]
}
