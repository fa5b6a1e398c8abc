// Reports the results of the loop of Agents in the status: whether an Agent is accepted, its workload runs, and its bundle is
// complete.

import type { Agent } from '../../api/agent.ts'
import { isTenants } from '../../api/agent.ts'
import type { Finding } from '../../api/conditions.ts'
import { agentKind } from '../../api/kinds.ts'
import type { OperatorContext } from '../../context.ts'
import { failedFinding } from '../internal-error.ts'
import { availabilityOf, workloadKindOf } from './available.ts'
import type { AgentCaches } from './caches.ts'
import { narrowedOf } from './desired.ts'
import type { AgentMemory } from './memory.ts'
import { acceptedOf } from './refusals.ts'

export class AgentStatusReports {
  readonly #context: OperatorContext
  readonly #caches: AgentCaches

  constructor(context: OperatorContext, caches: AgentCaches) {
    this.#context = context
    this.#caches = caches
  }

  /**
   * Reports a successful pass. @param seen why the cluster-wide rights do not have the desired state; whether another client keeps
   * changing the workload
   */
  workload(
    agent: Agent,
    { rendered }: AgentMemory,
    seen: { readonly rightsProblem: string | undefined; readonly contended: Finding | undefined },
  ): void {
    const { settings, artifacts } = this.#context
    const { rightsProblem, contended } = seen
    const kind = workloadKindOf(agent)
    const available = availabilityOf(
      agent,
      this.#caches.workloadOf(agent, kind),
      this.#caches.podsOf(agent),
      this.#caches.otherNodes,
    )
    const narrowed = narrowedOf(agent, artifacts.values(), this.#caches.namespaces.values(), settings)
    const findings: Finding[] = [
      rightsProblem === undefined || isTenants(agent, settings)
        ? acceptedOf(agent)
        : { type: 'Accepted', status: 'False', reason: 'NameConflict', message: rightsProblem },
      available.finding,
      ...(contended === undefined ? [] : [contended]),
      ...(narrowed === undefined ? [] : [narrowed]),
    ]
    this.report(agent, findings, { ...bundleFields(rendered?.bundle), ...available.fields })
  }

  /** Reports a failed pass. The text of the error stays in the log, because it may contain secret values. */
  failed(agent: Agent, error: unknown): void {
    const before = this.#context.status.reported(agentKind, agent, 'workload')
    const kept = before?.findings.filter(({ type }) => type !== 'Accepted') ?? []
    this.report(agent, [failedFinding('Accepted', error, ''), ...kept], before?.fields ?? {})
  }

  report(agent: Agent, findings: readonly Finding[], fields: Readonly<Record<string, unknown>> = {}): void {
    this.#context.status.report(agentKind, agent, 'workload', {
      generation: agent.metadata.generation ?? 0,
      findings,
      fields,
    })
  }
}

function bundleFields(bundle: NonNullable<AgentMemory['rendered']>['bundle'] | undefined) {
  if (bundle === undefined) return {}
  const { rawBytes, compressedBytes, shards } = bundle
  return { bundle: { rawBytes, compressedBytes, shards: shards.length } }
}
