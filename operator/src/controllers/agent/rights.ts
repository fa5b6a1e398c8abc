// The cluster-wide rights of agents: three roles, each with one binding for the accounts of all platform Agents.

import { sameJson } from '@penstock/agent/bundle'
import { apiVersionOf, type KubeObject, type OwnerReference } from '../../api/object.ts'
import type { OperatorContext } from '../../context.ts'
import type { Cache } from '../../kube/cache.ts'
import { KubeError } from '../../kube/client.ts'
import { clusterRoleBindingType, clusterRoleType } from '../../kube/resource-types.ts'
import { operatorName } from '../../workloads/installation-names.ts'
import { ForeignObjectError, labels } from '../../workloads/names.ts'
import { clusterBindings, renderRights } from '../../workloads/render.ts'
import type { AgentCaches } from './caches.ts'
import { holds } from './holds.ts'

const removeOldBindings =
  'kubectl delete clusterrolebindings -l app.kubernetes.io/managed-by=penstock,penstock.dev/agent-namespace'

export class ClusterRights {
  readonly #context: OperatorContext
  readonly #caches: Pick<AgentCaches, 'agents' | 'namespaces' | 'bindings'>
  #problem: string | undefined
  #oldBindingsLogged = false
  #owner: OwnerReference | undefined

  constructor(context: OperatorContext, caches: Pick<AgentCaches, 'agents' | 'namespaces' | 'bindings'>) {
    this.#context = context
    this.#caches = caches
  }

  /** Why the bindings do not have the desired state. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Applies the bindings; true if they have the desired state. `problem` gives the reason if not. */
  async apply(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#apply(signal)
      return true
    } catch (error) {
      if (error instanceof ForeignObjectError) this.#problem = error.message
      else if (error instanceof KubeError && error.status === 403)
        this.#problem = `The operator may not write the ClusterRoleBindings of agents: ${error.message}`
      else throw error
      return false
    }
  }

  /** Keeps the accounts of all platform Agents in the bindings of their roles. */
  async #apply(signal: AbortSignal): Promise<void> {
    const { settings, kube } = this.#context
    const { bindings } = this.#caches
    if (bindings === undefined) return
    const isMissing = clusterBindings.some((name) => bindings.get(undefined, name) === undefined)
    if (this.#owner === undefined || isMissing) this.#owner = await this.#ownerOf(signal)
    for (const wanted of renderRights(this.#caches.agents.values(), settings, { owner: this.#owner })) {
      const { name } = wanted.metadata
      const live = bindings.get(undefined, name) as (KubeObject & { readonly subjects?: unknown }) | undefined
      if (live === undefined && wanted.subjects.length === 0) continue
      const same = sameJson(live?.subjects ?? [], wanted.subjects)
      if (live !== undefined && same && holds(live, { ...wanted, subjects: undefined })) continue
      const foreign =
        live ?? (await kube.as('agent').get<KubeObject>(clusterRoleBindingType, undefined, name, { signal }))
      if (foreign !== undefined && foreign.metadata.labels?.[labels.managedBy] !== 'penstock')
        throw new ForeignObjectError('ClusterRoleBinding', foreign)
      const applied = await kube.as('agent').apply<KubeObject>(clusterRoleBindingType, wanted as KubeObject, { signal })
      bindings.expect({ ...applied, apiVersion: wanted.apiVersion, kind: wanted.kind })
    }
    await this.#removeOldBindings(bindings, signal)
    this.#problem = undefined
  }

  /**
   * The operator's own role owns the bindings. Every way of removing an installation deletes this role, so the bindings are deleted
   * even without an operator. The role is read again when a binding is missing, because the role may have been replaced by another with
   * the same name.
   */
  async #ownerOf(signal: AbortSignal): Promise<OwnerReference | undefined> {
    const { kube, settings } = this.#context
    const role = await kube.as('agent').get<KubeObject>(clusterRoleType, undefined, operatorName, { signal })
    const namespace = this.#caches.namespaces.get(undefined, settings.namespace)
    const owner = role ?? namespace
    if (owner?.metadata.uid === undefined) return undefined
    const { name, uid } = owner.metadata
    return {
      apiVersion: role === undefined ? 'v1' : apiVersionOf(clusterRoleType),
      kind: role === undefined ? 'Namespace' : 'ClusterRole',
      name,
      uid,
    }
  }

  /** In earlier releases each Agent had its own bindings, with names that two Agents could share. */
  async #removeOldBindings(bindings: Cache, signal: AbortSignal): Promise<void> {
    const old = [...bindings.values()].filter(
      ({ metadata }) =>
        metadata.labels?.[labels.managedBy] === 'penstock' && metadata.labels[labels.agentNamespace] !== undefined,
    )
    for (const object of old) {
      try {
        const { name, uid } = object.metadata
        const options = { signal, ...(uid === undefined ? {} : { uid }) }
        await this.#context.kube.as('agent').delete(clusterRoleBindingType, undefined, name, options)
      } catch (error) {
        if (!(error instanceof KubeError) || error.status !== 403) throw error
        if (this.#oldBindingsLogged) return
        this.#oldBindingsLogged = true
        this.#context.logger.warn(
          { bindings: old.map(({ metadata }) => metadata.name), command: removeOldBindings },
          'ClusterRoleBindings of an earlier release remain, and the operator may not delete them. Run the command.',
        )
        return
      }
    }
  }
}
