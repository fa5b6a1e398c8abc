// Decides whether a Pipeline that selects a pod reads its logs, from the Pipeline's status and the file report of the node's agent. Pure;
// its test covers every combination.

import { type Condition, conditionOf, type Reason } from '../api/conditions.ts'

/**
 * The state of the pod's files on the agent of its node: some are open, none is, or it is unknown because the agent has not answered or
 * the caller lacks the right. `absent`: no agent that runs the Pipeline is on that node, regardless of other nodes.
 */
export type Files = 'open' | 'none' | 'unknown' | 'absent'

const absent =
  'no agent that runs it reports from the node of the pod: the Agents that select it have no pod there, or that pod is not running'

export interface ReadingState {
  readonly reads: boolean
  /** Why nothing reads it. */
  readonly obstacle?: string | undefined
  /** Why the current version does not run on all nodes, if some version reads the pod. */
  readonly rollout?: string | undefined
  /** Whether that version is known to be an earlier one. */
  readonly isEarlier?: boolean
}

interface Judged {
  readonly metadata: { readonly generation?: number | undefined }
  readonly status?:
    | {
        readonly programmedGeneration?: number | undefined
        readonly conditions?: readonly Condition[] | undefined
        readonly agents?: readonly { readonly earlier?: number | undefined }[] | undefined
      }
    | undefined
}

/** With these reasons agents may run no version, even if they once did: the numbers in the status show whether some do. */
const stopping: ReadonlySet<string | undefined> = new Set<Reason>([
  'Pending',
  'Suspended',
  'Stopped',
  'BundleTooLarge',
  'RolledBack',
  'Undone',
])

/** Whether no agent should run the current version, although some may have tried it. */
function isRolledBack(programmed: Condition | undefined): boolean {
  return programmed?.status === 'False' && ['RolledBack', 'Undone', 'BundleTooLarge'].includes(programmed.reason)
}

/** @param isPlaced whether the pod has a node @param failure of the agent of the node, for the current version */
export function readingStateOf(pipeline: Judged, isPlaced: boolean, files: Files, failure?: string): ReadingState {
  const { generation = 0 } = pipeline.metadata
  const { programmedGeneration, conditions, agents = [] } = pipeline.status ?? {}
  const accepted = conditionOf(conditions, 'Accepted')
  const programmed = conditionOf(conditions, 'Programmed')
  const runsEarlier = agents.some(({ earlier = 0 }) => earlier > 0)
  const hasEarlier = runsEarlier || (programmedGeneration !== undefined && !stopping.has(programmed?.reason))
  // A condition of an earlier generation does not apply to later changes of the user.
  const isJudged = accepted !== undefined && (accepted.observedGeneration ?? generation) >= generation
  const state =
    accepted?.status === 'False'
      ? `${isJudged ? 'it is not accepted' : 'its last version was not accepted'}: ${accepted.reason}: ${accepted.message}`
      : failure !== undefined
        ? failure
        : !isJudged
          ? 'the operator has not processed its current version yet'
          : programmed?.status === 'True'
            ? undefined
            : programmed === undefined
              ? 'no agent has reported on it yet'
              : `${programmed.reason}: ${programmed.message}`
  const no = (obstacle: string): ReadingState => ({ reads: false, obstacle })
  if (!isPlaced) return no(state ?? 'the pod has no node yet')
  if (state === undefined) return files === 'absent' ? no(absent) : { reads: true }
  // Open files are proof, whatever the status says about other nodes.
  if (files === 'open')
    return {
      reads: true,
      rollout: state,
      isEarlier: accepted?.status === 'False' || failure !== undefined || isRolledBack(programmed),
    }
  // Agents keep their version until another one is active.
  if (hasEarlier && files === 'absent') return no(failure ?? absent)
  if (hasEarlier)
    return { reads: true, rollout: state, isEarlier: runsEarlier || (programmedGeneration ?? generation) < generation }
  return no(
    accepted?.status === 'False' || failure !== undefined || !isJudged
      ? state
      : `not all agents run it, and the agent of its node has shown no open log file: ${state}`,
  )
}
