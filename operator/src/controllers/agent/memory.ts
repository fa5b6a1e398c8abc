// The state of one Agent that its loop keeps between passes.

import type { Agent } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import type { Delivered } from '../../fleet/state.ts'
import type { Cache } from '../../kube/cache.ts'
import type { RenderedBundle } from '../../render/bundle.ts'
import { AgentSecrets } from '../agent-secrets.ts'
import { StepWatches } from './step.ts'
import type { RolloutEvent } from './transition.ts'
import { type Applied, newApplied } from './workload.ts'

export interface AgentMemory {
  readonly secrets: AgentSecrets
  uid: string | undefined
  /** The state delivered by an earlier process, until this one makes its first decision. */
  restored: Delivered | undefined
  /** Whether the Secrets may still contain withdrawn content. */
  withdrawing: boolean
  /** Changes of the selection that have been rendered. */
  rendered: { readonly key: string; readonly bundle: RenderedBundle } | undefined
  /** The agents' events in the current step of each candidate. */
  readonly steps: StepWatches
  /** The applied parts of its workload. */
  readonly applied: Applied
  /** Events about a decision, recorded once it is written. */
  readonly decided: RolloutEvent[]
}

export function newMemory(agent: Agent, { kube, logger }: OperatorContext, secrets: Cache): AgentMemory {
  return {
    secrets: new AgentSecrets(agent, kube.as('agent'), secrets, logger),
    uid: agent.metadata.uid,
    restored: undefined,
    withdrawing: false,
    rendered: undefined,
    steps: new StepWatches(),
    applied: newApplied(),
    decided: [],
  }
}
