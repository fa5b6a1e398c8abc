// The workload of an Agent: applied if it differs from the desired state, and pruned of objects that no longer belong to it.
// Foreign changes are reverted and counted.

import { canonicalJson } from '@penstock/agent/bundle'
import { type Agent, isTenants } from '../../api/agent.ts'
import { conditionOf, type Finding } from '../../api/conditions.ts'
import { type KubeObject, keyOf, type ResourceType } from '../../api/object.ts'
import type { OperatorContext } from '../../context.ts'
import type { Delivered } from '../../fleet/state.ts'
import { monotonicNow } from '../../kube/clock.ts'
import {
  clusterRoleBindingType,
  configMapType,
  deploymentType,
  jobType,
  leaseType,
  nodeType,
  persistentVolumeClaimType,
  podMonitorType,
  secretType,
  statefulSetType,
} from '../../kube/resource-types.ts'
import { ForeignObjectError, isOwn, labels, leaseName, leaseNames, workloadName } from '../../workloads/names.ts'
import type { WorkloadInput } from '../../workloads/pod.ts'
import { type Manifest, renderDrains, renderWorkloads } from '../../workloads/render.ts'
import { Corrections, contendedMs, managerOf, operatorManager, type Reverts } from '../contention.ts'
import { fragmentsIn } from '../revisions.ts'
import { type JobObject, recreation, type StatefulSetObject, type VolumeWork, volumeWork } from '../volumes.ts'
import { type AgentCaches, ownedTypes } from './caches.ts'
import { egressPorts } from './egress.ts'
import { holds } from './holds.ts'

/** The applied parts of an Agent's workload. */
export interface Applied {
  /** Version of each object that was found in the desired state. */
  readonly verified: Map<string, string>
  /** The reverted changes of others, by object. */
  readonly reverts: Map<string, Reverts>
}

export function newApplied(): Applied {
  return { verified: new Map(), reverts: new Map() }
}

export class Workloads {
  readonly #context: OperatorContext
  readonly #caches: AgentCaches
  readonly #input: ((agent: Agent) => Partial<WorkloadInput>) | undefined
  readonly #startedAt = monotonicNow()

  constructor(
    context: OperatorContext,
    caches: AgentCaches,
    input: ((agent: Agent) => Partial<WorkloadInput>) | undefined,
  ) {
    this.#context = context
    this.#caches = caches
    this.#input = input
  }

  /** The existing workloads of an Agent. */
  live(agent: Agent) {
    const live = (kind: string) => {
      const found = this.#caches.owned.get(kind)?.get(agent.metadata.namespace, workloadName(agent))
      return found !== undefined && isOwn(agent, found) ? found : undefined
    }
    return { deployment: live('Deployment'), set: live('StatefulSet') as StatefulSetObject | undefined }
  }

  async delete(type: ResourceType, { metadata }: KubeObject, signal: AbortSignal): Promise<boolean> {
    const { namespace, name, uid } = metadata
    return this.#context.kube
      .as('agent')
      .delete(type, namespace, name, { signal, ...(uid === undefined ? {} : { uid }) })
  }

  /** Applies the objects of an Agent's workload, and deletes those that it no longer needs. */
  async apply(agent: Agent, memory: Applied, delivered: Delivered | undefined, signal: AbortSignal): Promise<void> {
    const { settings, kube } = this.#context
    const client = kube.as('agent')
    const undone = delivered?.record.undone?.to === undefined ? [] : fragmentsIn(delivered, delivered.stable).values()
    const ports = egressPorts([...(delivered?.selected.values() ?? []), ...undone])
    const input: WorkloadInput = {
      image: settings.agentImage,
      operatorUrl: settings.heartbeatUrl,
      operatorNamespace: settings.namespace,
      tenant: isTenants(agent, settings),
      networkPolicy: settings.agentNetworkPolicy,
      egressPorts: ports,
      podMonitors: await client.serves(podMonitorType, { signal }),
      lease: leaseName(agent, this.#caches.agents.values()),
      ...(settings.rolesOnly ? { namespaces: settings.watchNamespaces ?? [] } : {}),
      ...(settings.metricsTokenSecret === '' ? {} : { metricsTokenSecret: settings.metricsTokenSecret }),
      ...this.#input?.(agent),
    }
    if (recreation(agent, this.live(agent))?.kind === 'storage') {
      // Its claim templates cannot be changed. The pods stay, and the next set adopts them.
      const options = { signal, propagation: 'Orphan' } as const
      await client.delete(statefulSetType, agent.metadata.namespace, workloadName(agent), options)
    }
    await this.#leaveReplicas(agent, signal)
    const wanted = new Set<string>()
    for (const manifest of renderWorkloads(agent, input)) {
      // An object that is being deleted is recreated afterwards.
      if (manifest.kind === 'StatefulSet' && this.live(agent).set?.metadata.deletionTimestamp !== undefined) continue
      const type = typeOf(manifest)
      wanted.add(idOf(manifest.kind, manifest.metadata))
      await this.#applyOne(agent, memory, type, manifest, signal)
    }
    const volumes = this.#volumes(agent)
    for (const manifest of renderDrains(agent, input, volumes.draining)) {
      wanted.add(`${manifest.kind}/${manifest.metadata.name}`)
      // The work of a running Job cannot be changed.
      if (this.#caches.owned.get('Job')?.get(agent.metadata.namespace, manifest.metadata.name) !== undefined) continue
      await this.#applyOne(agent, memory, jobType, manifest, signal)
      this.#context.events.record(
        agent,
        'Normal',
        'Draining',
        `${manifest.metadata.name} drains the volume of a deleted pod.`,
      )
    }
    for (const { metadata } of volumes.emptied) {
      const options = { signal, ...(metadata.uid === undefined ? {} : { uid: metadata.uid }) }
      await client.delete(persistentVolumeClaimType, metadata.namespace, metadata.name, options)
      this.#context.events.record(agent, 'Normal', 'Drained', `Volume ${metadata.name} is empty and was deleted.`)
    }
    for (const { claim, why } of volumes.failed) {
      const help = `Check the log of its Job; delete the Job to retry, or the claim to discard the events.`
      this.#context.events.record(
        agent,
        'Warning',
        'DrainFailed',
        `Could not drain volume ${claim.metadata.name}: ${why} ${help}`,
      )
    }
    await this.#prune(agent, wanted, signal)
  }

  /**
   * Before an autoscaler takes over, the replica count gets another field manager: a field that its only manager stops applying
   * returns to its default, which is one pod.
   */
  async #leaveReplicas(agent: Agent, signal: AbortSignal): Promise<void> {
    const { namespace } = agent.metadata
    const name = workloadName(agent)
    if (agent.spec.aggregator?.autoscaling === undefined) return
    if (this.#caches.owned.get('HorizontalPodAutoscaler')?.get(namespace, name) !== undefined) return
    for (const type of [deploymentType, statefulSetType]) {
      const live = this.live(agent)[type === deploymentType ? 'deployment' : 'set'] as StatefulSetObject | undefined
      const replicas = live?.spec?.replicas
      if (live === undefined || live.metadata.deletionTimestamp !== undefined || replicas === undefined) continue
      const { apiVersion, kind } = live
      const left = { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } }
      const options = { fieldManager: 'penstock-replicas', signal }
      await this.#context.kube.as('agent').apply(type, { ...left, spec: { replicas } } as KubeObject, options)
    }
  }

  #volumes(agent: Agent): VolumeWork {
    const { namespace } = agent.metadata
    const pods = new Set<string>()
    for (const { metadata } of this.#caches.pods.values()) if (metadata.namespace === namespace) pods.add(metadata.name)
    return volumeWork(agent, {
      workload: this.live(agent).set,
      claims: this.#caches.claims.values(),
      pods,
      job: (name) => this.#caches.owned.get('Job')?.get(namespace, name) as JobObject | undefined,
    })
  }

  async #applyOne(
    agent: Agent,
    memory: Applied,
    type: ResourceType,
    manifest: Manifest,
    signal: AbortSignal,
  ): Promise<void> {
    const id = idOf(type.kind, manifest.metadata)
    const namespace = type.namespaced ? (manifest.metadata.namespace ?? agent.metadata.namespace) : undefined
    const cache = this.#caches.owned.get(manifest.kind)
    // ConfigMaps are cached without their content, and PodMonitors and the frequently changing Leases are not cached: these objects are
    // read individually.
    const whole = cache !== undefined && type !== configMapType
    const live = whole
      ? cache.get(namespace, manifest.metadata.name)
      : await this.#context.kube.as('agent').get<KubeObject>(type, namespace, manifest.metadata.name, { signal })
    // Caches only contain objects with our labels: an object without them may still exist, and belongs to another owner.
    const there =
      live ??
      (whole
        ? await this.#context.kube.as('agent').get<KubeObject>(type, namespace, manifest.metadata.name, { signal })
        : undefined)
    if (there !== undefined && !isOwn(agent, there) && !this.#isLeft(there))
      throw new ForeignObjectError(type.kind, there)
    const mark = `${live?.metadata.resourceVersion} ${canonicalJson(manifest)}`
    if (live !== undefined) {
      if (memory.verified.get(id) === mark) return
      if (holds(live, manifest)) {
        memory.verified.set(id, mark)
        return
      }
    }
    // It matched before and the desired state is unchanged, so another client has changed it.
    const isForeign = live !== undefined && memory.verified.get(id)?.endsWith(` ${canonicalJson(manifest)}`) === true
    if (isForeign) {
      if ((memory.reverts.get(id)?.corrections.waitMs() ?? 0) > 0) return
      await this.#contend(agent, memory, type, id, manifest.metadata.name, signal)
    }
    const applied = await this.#context.kube.as('agent').apply<KubeObject>(type, manifest as KubeObject, { signal })
    if (whole) cache.expect({ ...applied, apiVersion: manifest.apiVersion, kind: manifest.kind })
    memory.verified.set(id, `${applied.metadata.resourceVersion} ${canonicalJson(manifest)}`)
  }

  /** Whether an object belonged to a deleted Agent: names of Leases, and of objects named after them, are reused. */
  #isLeft({ metadata }: KubeObject): boolean {
    const agent = metadata.labels?.[labels.agent]
    if (metadata.labels?.[labels.managedBy] !== 'penstock' || agent === undefined) return false
    return leaseNames.includes(metadata.name) && this.#caches.agents.get(metadata.namespace, agent) === undefined
  }

  /** Records a foreign change that is about to be reverted, and who made it. */
  async #contend(
    agent: Agent,
    memory: Applied,
    type: ResourceType,
    id: string,
    name: string,
    signal: AbortSignal,
  ): Promise<void> {
    const namespace = type.namespaced ? agent.metadata.namespace : undefined
    // Cached objects have no `managedFields`, so the live object is fetched.
    const live = await this.#context.kube.as('agent').get<KubeObject>(type, namespace, name, { signal })
    const manager = live === undefined ? 'unknown' : managerOf(live)
    const { corrections } = memory.reverts.get(id) ?? { corrections: new Corrections() }
    if (monotonicNow() - corrections.last > 60_000) {
      const facts = { agent: keyOf(agent), object: id, manager: manager ?? operatorManager }
      this.#context.logger.info(facts, 'Reverting a change by another client.')
    }
    corrections.add()
    memory.reverts.set(id, { corrections, manager })
  }

  /** Managers that repeatedly change our objects; a result of an earlier process is kept for the same time. */
  contended(agent: Agent, { reverts }: Applied, ofSecrets: ReadonlyMap<string, Reverts>): Finding | undefined {
    const now = monotonicNow()
    for (const [id, { corrections, manager }] of [...reverts, ...ofSecrets]) {
      if (!corrections.isContended(now)) continue
      const who = manager === undefined ? 'Another operator of Penstock' : `"${manager}"`
      const message = `${who} keeps changing ${id}: at least five times in ten minutes. This operator reverts it every two minutes.`
      return { type: 'Contended', status: 'True', reason: 'ForeignManager', message }
    }
    const known = conditionOf(agent.status?.conditions, 'Contended')
    if (known?.status !== 'True' || now - this.#startedAt > contendedMs) return undefined
    return { type: 'Contended', status: 'True', reason: 'ForeignManager', message: known.message }
  }

  async #prune(agent: Agent, wanted: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { namespace, uid } = agent.metadata
    for (const [kind, cache] of this.#caches.owned) {
      // All Agents share these.
      if (cache.type === clusterRoleBindingType) continue
      for (const object of [...cache.values()]) {
        const { metadata } = object
        if (metadata.deletionTimestamp !== undefined || !isOwn(agent, object)) continue
        // The label of a binding names its Agent.
        const labelled = metadata.labels?.[labels.agentNamespace]
        const owned =
          labelled === undefined
            ? metadata.namespace === namespace && metadata.ownerReferences?.some((owner) => owner.uid === uid) === true
            : labelled === namespace
        if (!owned || wanted.has(idOf(kind, metadata))) continue
        await this.#context.kube.as('agent').delete(cache.type, metadata.namespace, metadata.name, {
          signal,
          ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
        })
      }
    }
  }
}

/** Bindings in several namespaces may have the same name. */
function idOf(kind: string, { namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return kind === 'RoleBinding' ? `${kind}/${namespace}/${name}` : `${kind}/${name}`
}

function typeOf(manifest: Manifest): ResourceType {
  for (const type of [...ownedTypes, leaseType, podMonitorType, secretType, nodeType])
    if (type.kind === manifest.kind) return type
  throw new TypeError(`Objects of kind ${manifest.kind} are not applied for an Agent.`)
}
