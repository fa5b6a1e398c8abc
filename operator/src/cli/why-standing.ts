// Whether a Pipeline that selects a pod reads its logs, from what the status of the Pipeline says of all nodes and the agent of the pod's
// node of its files. Pure; its test has every combination.

import { type Condition, conditionOf, type Reason } from '../api/conditions.ts'

/**
 * The state of the pod's files on the agent of its node: some are open, none is, or it is unknown because the agent has not answered or
 * the caller may not ask it. `absent`: no agent that runs the Pipeline is on that node, whatever those of other nodes do.
 */
export type Files = 'open' | 'none' | 'unknown' | 'absent'

const absent =
  'no agent that runs it reports from the node of the pod: the Agents that select it have no pod there, or that pod does not run'

export interface ReadingState {
  readonly reads: boolean
  /** Why nothing reads it. */
  readonly obstacle?: string | undefined
  /** Why the current version does not run on all nodes, where some version reads the pod. */
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

/** With these reasons agents may run no version, whatever they ran once: the numbers of the status say whether some do. */
const stopping: ReadonlySet<string | undefined> = new Set<Reason>([
  'Pending',
  'Suspended',
  'Stopped',
  'BundleTooLarge',
  'RolledBack',
  'Undone',
])

/** Whether no agent is to run the current version, which some may have tried. */
function isTakenBack(programmed: Condition | undefined): boolean {
  return programmed?.status === 'False' && ['RolledBack', 'Undone', 'BundleTooLarge'].includes(programmed.reason)
}

/**
 * @param isPlaced whether the pod has a node
 * @param failure of the agent of the node, for the current version
 */
export function standingOf(pipeline: Judged, isPlaced: boolean, files: Files, failure?: string): ReadingState {
  const { generation = 0 } = pipeline.metadata
  const { programmedGeneration, conditions, agents = [] } = pipeline.status ?? {}
  const accepted = conditionOf(conditions, 'Accepted')
  const programmed = conditionOf(conditions, 'Programmed')
  const runsEarlier = agents.some(({ earlier = 0 }) => earlier > 0)
  const hasEarlier = runsEarlier || (programmedGeneration !== undefined && !stopping.has(programmed?.reason))
  // A condition of an earlier generation says nothing of what the user has applied since.
  const isJudged = accepted !== undefined && (accepted.observedGeneration ?? generation) >= generation
  const state =
    accepted?.status === 'False'
      ? `${isJudged ? 'it is not accepted' : 'its last version was not accepted'}: ${accepted.reason}: ${accepted.message}`
      : failure !== undefined
        ? failure
        : !isJudged
          ? 'the operator has not looked at its current version yet'
          : programmed?.status === 'True'
            ? undefined
            : programmed === undefined
              ? 'no agent has reported on it yet'
              : `${programmed.reason}: ${programmed.message}`
  const no = (obstacle: string): ReadingState => ({ reads: false, obstacle })
  if (!isPlaced) return no(state ?? 'the pod has no node yet')
  if (state === undefined) return files === 'absent' ? no(absent) : { reads: true }
  // Open files are proof, whatever the status says of other nodes.
  if (files === 'open')
    return {
      reads: true,
      rollout: state,
      isEarlier: accepted?.status === 'False' || failure !== undefined || isTakenBack(programmed),
    }
  // Agents keep the version that they run until another one is in force.
  if (hasEarlier && files === 'absent') return no(failure ?? absent)
  if (hasEarlier)
    return { reads: true, rollout: state, isEarlier: runsEarlier || (programmedGeneration ?? generation) < generation }
  return no(
    accepted?.status === 'False' || failure !== undefined || !isJudged
      ? state
      : `not all agents run it, and the one of its node has shown no open log file: ${state}`,
  )
}
