// Agents whose content a new process has not determined yet: compiling all Pipelines and rendering a large bundle may take longer than
// receiving the reports of all agents. Until then, nothing new is known about the Pipelines that these Agents may run.

import type { Agent } from '../../api/agent.ts'
import { agentKind } from '../../api/kinds.ts'
import { keyOf } from '../../api/object.ts'
import type { StatusWriter } from '../../context.ts'
import type { FleetState } from '../../fleet/state.ts'

export function unseenAgents(
  agents: Iterable<Agent>,
  fleet: Pick<FleetState, 'get'>,
  status: Pick<StatusWriter, 'reported'>,
): Agent[] {
  return [...agents].filter((agent) => {
    if (agent.metadata.deletionTimestamp !== undefined || fleet.get(keyOf(agent)) !== undefined) return false
    const findings = status.reported(agentKind, agent, 'workload')?.findings ?? []
    // An Agent that is not accepted runs nothing.
    return !findings.some((found) => found.type === 'Accepted' && found.status === 'False')
  })
}

/** Whether the operator will determine the content of an Agent in a moment. */
export const isManaged = ({ spec }: Agent): boolean => spec.managementState !== 'Unmanaged'
