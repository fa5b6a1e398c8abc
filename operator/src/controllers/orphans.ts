// The sweep: once an hour it deletes objects with our labels whose Agent was deleted. It asks the API server, never a cache, and
// skips objects younger than ten minutes.

import { errorText } from '@penstock/agent/errors'
import { pause } from '@penstock/agent/program'
import type { Agent } from '../api/agent.ts'
import { agentKind } from '../api/kinds.ts'
import { type KubeObject, keyOf, objectKey, type ResourceType } from '../api/object.ts'
import { namespacesOf, type OperatorContext, type OperatorPart } from '../context.ts'
import { isNormal, KubeError } from '../kube/client.ts'
import {
  configMapType,
  daemonSetType,
  deploymentType,
  horizontalPodAutoscalerType,
  jobType,
  networkPolicyType,
  podDisruptionBudgetType,
  podMonitorType,
  roleBindingType,
  secretType,
  serviceAccountType,
  serviceType,
  statefulSetType,
} from '../kube/resource-types.ts'
import { labels } from '../workloads/names.ts'

const everyMs = 3_600_000
const minAgeMs = 600_000

const namespacedTypes: readonly ResourceType[] = [
  secretType,
  configMapType,
  serviceAccountType,
  serviceType,
  daemonSetType,
  deploymentType,
  statefulSetType,
  jobType,
  podDisruptionBudgetType,
  horizontalPodAutoscalerType,
  networkPolicyType,
  podMonitorType,
  roleBindingType,
]

export interface OrphanOptions {
  readonly everyMs?: number
  readonly minAgeMs?: number
}

export function orphanPart(options: OrphanOptions = {}): OperatorPart {
  return {
    name: 'orphans',
    leaderOnly: true,
    async start(context) {
      const stop = new AbortController()
      const signal = AbortSignal.any([context.signal, stop.signal])
      const running = (async () => {
        // Randomised, so that the replicas of all clusters do not run in the same minute.
        await pause((options.everyMs ?? everyMs) * (0.1 + Math.random() * 0.1), signal)
        while (!signal.aborted) {
          try {
            const deleted = await sweep(context, signal, options)
            if (deleted.length > 0) context.logger.info({ deleted }, 'Deleted objects whose Agent no longer exists.')
          } catch (error) {
            if (!signal.aborted)
              context.logger.warn({ error: errorText(error) }, 'The sweep failed; the next one follows in an hour.')
          }
          await pause(options.everyMs ?? everyMs, signal)
        }
      })()
      return {
        async [Symbol.asyncDispose]() {
          stop.abort()
          await running
        },
      }
    },
  }
}

/** Deletes orphans; returns their names. */
export async function sweep(
  context: Pick<OperatorContext, 'kube' | 'settings' | 'logger'>,
  signal: AbortSignal,
  options: OrphanOptions = {},
): Promise<readonly string[]> {
  const kube = context.kube.as('orphans')
  const { settings } = context
  // Node Agents may be in namespaces without Pipelines.
  const places = namespacesOf(settings) ?? [undefined]
  const agents = (
    await Promise.all(places.map((namespace) => kube.list<Agent>(agentKind, { namespace, signal })))
  ).flat()
  const uids = new Set(agents.map((agent) => agent.metadata.uid))
  const names = new Set(agents.map(keyOf))
  const namespaces = new Set([
    settings.namespace,
    ...settings.agentNamespaces,
    ...agents.map((agent) => agent.metadata.namespace ?? ''),
  ])
  const now = Date.now()
  const isOld = ({ metadata }: KubeObject) =>
    now - Date.parse(metadata.creationTimestamp ?? '') >= (options.minAgeMs ?? minAgeMs)
  const deleted: string[] = []
  const prune = async (type: ResourceType, object: KubeObject) => {
    const { namespace, name, uid } = object.metadata
    try {
      if (await kube.delete(type, namespace, name, { uid, signal })) deleted.push(`${type.kind} ${keyOf(object)}`)
    } catch (error) {
      // Objects that the operator may not delete do not belong to it, whatever their labels say.
      if (!isNormal(error) && !(error instanceof KubeError && error.status === 403)) throw error
    }
  }
  const labelSelector = `${labels.managedBy}=penstock,${labels.agent}`
  for (const type of namespacedTypes) {
    if (type === podMonitorType && !(await kube.serves(type, { signal }))) continue
    for (const namespace of namespaces) {
      const objects = await listed(type, namespace)
      for (const object of objects) {
        const owner = object.metadata.ownerReferences?.find(
          ({ kind, controller }) => kind === 'Agent' && controller === true,
        )
        if (owner !== undefined && !uids.has(owner.uid) && isOld(object)) await prune(type, object)
      }
    }
  }
  // Bindings in other namespaces have no owner that the garbage collector knows; their labels name it.
  for (const namespace of settings.rolesOnly ? (settings.watchNamespaces ?? []) : []) {
    for (const object of await listed(roleBindingType, namespace)) {
      const own = object.metadata.labels ?? {}
      const agent = objectKey(own[labels.agentNamespace], own[labels.agent] ?? '')
      if (own[labels.agentNamespace] !== undefined && !names.has(agent) && isOld(object))
        await prune(roleBindingType, object)
    }
  }
  return deleted

  async function listed(type: ResourceType, namespace: string | undefined): Promise<readonly KubeObject[]> {
    try {
      return await kube.list(type, { namespace, labelSelector, metadataOnly: true, signal })
    } catch (error) {
      // If the operator may not read a namespace, it has not written there either.
      if (error instanceof KubeError && [403, 404].includes(error.status)) return []
      throw error
    }
  }
}
