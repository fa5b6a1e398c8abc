// The caches that the loop of Agents reads, and the Agents that each change concerns.

import { sameJson } from '@penstock/agent/bundle'
import type { Agent } from '../../api/agent.ts'
import { agentKind } from '../../api/kinds.ts'
import { type KubeObject, keyOf, objectKey, type ResourceType } from '../../api/object.ts'
import type { OperatorContext } from '../../context.ts'
import type { Cache } from '../../kube/cache.ts'
import {
  clusterRoleBindingType,
  configMapType,
  daemonSetType,
  deploymentType,
  horizontalPodAutoscalerType,
  jobType,
  namespaceType,
  networkPolicyType,
  nodeType,
  persistentVolumeClaimType,
  podDisruptionBudgetType,
  podType,
  roleBindingType,
  secretType,
  serviceAccountType,
  serviceType,
  statefulSetType,
} from '../../kube/resource-types.ts'
import { labels, workloadName } from '../../workloads/names.ts'
import type { WorkloadObject } from './available.ts'
import { type AgentPod, podsOf } from './pods.ts'

/** Types that an Agent owns, watched for foreign changes. */
export const ownedTypes: readonly ResourceType[] = [
  serviceAccountType,
  clusterRoleBindingType,
  roleBindingType,
  configMapType,
  daemonSetType,
  deploymentType,
  statefulSetType,
  serviceType,
  podDisruptionBudgetType,
  horizontalPodAutoscalerType,
  networkPolicyType,
  jobType,
]

export interface AgentChanges {
  /** The Agent with this key must be reconciled. */
  agent(key: string): void
  /** All Agents must be reconciled; many such changes are combined. */
  all(): void
  /** The cluster-wide rights of Agents must be reconciled. */
  rights(): void
  /** A user's Secret or ConfigMap was changed or deleted. */
  values(object: KubeObject): void
}

export class AgentCaches {
  readonly agents: Cache<Agent>
  readonly namespaces: Cache
  /** Secrets: their metadata alone. */
  readonly secrets: Cache
  readonly configMaps: Cache
  /** The objects that Agents own, by kind. */
  readonly owned = new Map<string, Cache>()
  /** Cluster-wide bindings of agents' rights; undefined if the operator cannot grant any. */
  readonly bindings: Cache | undefined
  readonly pods: Cache<AgentPod>
  /** PersistentVolumeClaims of agents. */
  readonly claims: Cache
  readonly #otherNodes: Cache

  constructor({ caches, settings }: OperatorContext) {
    this.agents = caches.cache<Agent>(agentKind)
    this.namespaces = caches.cache(namespaceType, { metadataOnly: true })
    this.pods = caches.cache<AgentPod>(podType, { labelSelector: labels.agent })
    // If Secrets of tenants cannot be watched, those of the Agents still can.
    this.secrets = caches.cache(secretType, {
      metadataOnly: true,
      ...(settings.secretsMode === 'Namespaced' ? { namespaces: settings.agentNamespaces } : {}),
    })
    this.configMaps = caches.cache(configMapType, { metadataOnly: true })
    this.claims = caches.cache(persistentVolumeClaimType, {
      metadataOnly: true,
      labelSelector: `${labels.name}=penstock-agent`,
    })
    const os = 'kubernetes.io/os'
    this.#otherNodes = caches.cache(nodeType, { metadataOnly: true, labelSelector: `${os},${os}!=linux` })
    for (const type of ownedTypes) {
      if (settings.rolesOnly && type === clusterRoleBindingType) continue
      this.owned.set(
        type.kind,
        type === configMapType ? this.configMaps : caches.cache(type, { labelSelector: labels.agent }),
      )
    }
    this.bindings = this.owned.get(clusterRoleBindingType.kind)
  }

  /** The running pods of an Agent. */
  podsOf(agent: Agent): AgentPod[] {
    return podsOf(agent, this.pods.values())
  }

  workloadOf(agent: Agent, kind: string | undefined): WorkloadObject | undefined {
    if (kind === undefined) return undefined
    return this.owned.get(kind)?.get(agent.metadata.namespace, workloadName(agent)) as WorkloadObject | undefined
  }

  /** Number of nodes on which agents cannot run. */
  get otherNodes(): number {
    return [...this.#otherNodes.values()].length
  }

  /** Starts to report changes, and reports the existing objects. */
  follow(changes: AgentChanges): Disposable[] {
    let isFollowing = false
    const ofOwner = ({ object }: { readonly object: KubeObject }) => {
      const agent = object.metadata.labels?.[labels.agent]
      const namespace = object.metadata.labels?.[labels.agentNamespace] ?? object.metadata.namespace
      if (agent !== undefined && namespace !== undefined) changes.agent(objectKey(namespace, agent))
    }
    const subscriptions: Disposable[] = [
      this.agents.subscribe(({ object }) => {
        changes.agent(keyOf(object))
        changes.rights()
      }),
      this.namespaces.subscribe(({ type, object, previous }) => {
        const same = sameJson(object.metadata.labels ?? {}, previous?.metadata.labels ?? {})
        if (type !== 'changed' || !same) changes.all()
      }),
      this.secrets.subscribe((change) => {
        if (change.object.metadata.labels?.[labels.agent] !== undefined) ofOwner(change)
        else if (change.type !== 'added' || isFollowing) changes.values(change.object)
      }),
      this.pods.subscribe(ofOwner),
      // The volume claims of a StatefulSet only have the labels of its pod selector.
      this.claims.subscribe(({ object: { metadata } }) => {
        const agent = metadata.labels?.[labels.instance]
        if (agent !== undefined && metadata.namespace !== undefined) changes.agent(objectKey(metadata.namespace, agent))
      }),
      ...[...this.owned.values()].map((cache) => cache.subscribe(ofOwner)),
      ...(this.bindings === undefined ? [] : [this.bindings.subscribe(() => changes.rights())]),
      this.#otherNodes.subscribe(({ type }) => {
        if (type !== 'changed') changes.all()
      }),
    ]
    isFollowing = true
    return subscriptions
  }
}
