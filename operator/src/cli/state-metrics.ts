// The state of resources as metrics, computed from the caches at each scrape: conditions by reason, and the agents of each Agent.

import { Gauge, type Registry } from 'prom-client'
import type { Agent } from '../api/agent.ts'
import type { Condition } from '../api/conditions.ts'
import { kinds } from '../api/kinds.ts'
import type { CustomResource, ResourceType } from '../api/object.ts'

/** The objects of a kind; undefined if it is not watched. */
export type ObjectsOf = (kind: ResourceType) => Iterable<CustomResource<unknown, unknown>> | undefined

const agentStates = ['desired', 'ready', 'current', 'failed', 'stale'] as const

export function stateMetrics(metrics: Registry, objectsOf: ObjectsOf): void {
  new Gauge({
    name: 'penstock_conditions',
    help: 'Number of objects with a condition, by kind, type, status and reason of the condition.',
    labelNames: ['kind', 'type', 'status', 'reason'],
    registers: [metrics],
    collect() {
      this.reset()
      for (const kind of kinds) {
        for (const { status } of objectsOf(kind) ?? []) {
          const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] }
          for (const { type, status: holds, reason } of conditions) {
            this.inc({ kind: kind.kind, type, status: holds, reason })
          }
        }
      }
    },
  })
  new Gauge({
    name: 'penstock_agents',
    help: 'Number of agents of an Agent: desired, ready, with the newest revision, failed to load it, and silent.',
    labelNames: ['agent', 'state'],
    registers: [metrics],
    collect() {
      this.reset()
      const type = kinds.find(({ kind }) => kind === 'Agent')
      if (type === undefined) return
      for (const agent of (objectsOf(type) ?? []) as Iterable<Agent>) {
        const { metadata, status } = agent
        for (const state of agentStates) {
          const count = status?.nodes?.[state]
          if (count !== undefined) this.set({ agent: `${metadata.namespace}/${metadata.name}`, state }, count)
        }
      }
    },
  })
}
