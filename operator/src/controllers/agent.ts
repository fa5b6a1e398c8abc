// The loop of one Agent: selects its Pipelines, renders their bundle, lets the rollout continue by one decision, writes Secrets and
// workloads, and reports. Decisions are functions without side effects in agent/; this file gathers facts, and writes what they decide.

import { canonicalJson } from '@penstock/agent/bundle'
import { errorText } from '@penstock/agent/errors'
import { type Agent, isTenants, refusalOf, takes } from '../api/agent.ts'
import type { Finding } from '../api/conditions.ts'
import { agentKind } from '../api/kinds.ts'
import { type KubeObject, keyOf, objectKey } from '../api/object.ts'
import { type Artifact, type SecretRef, secretValue } from '../compile/artifact.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { changesOf } from '../fleet/contents.ts'
import type { Delivered, FleetState, KnownRevision } from '../fleet/state.ts'
import { undoAnnotation } from '../fleet/undo.ts'
import type { Cache } from '../kube/cache.ts'
import { KubeError } from '../kube/client.ts'
import { monotonicNow } from '../kube/clock.ts'
import { missingRights } from '../kube/rights.ts'
import {
  clusterRoleBindingType,
  configMapType,
  namespaceType,
  nodeType,
  persistentVolumeClaimType,
  podType,
  roleBindingType,
  secretType,
} from '../kube/types.ts'
import type { WorkQueue } from '../kube/work-queue.ts'
import { renderBundle } from '../render/bundle.ts'
import type { Fragment } from '../render/fragment.ts'
import { digestFile, startSpreadOf } from '../render/manifest.ts'
import { isOwn, labels, workloadName } from '../workloads/names.ts'
import type { WorkloadInput } from '../workloads/pod.ts'
import { agentNamespaceRules } from '../workloads/rights.ts'
import { availabilityOf, type WorkloadObject, workloadKindOf } from './agent/available.ts'
import { dropRevisions, narrowedOf, selectFragments, withValues } from './agent/desired.ts'
import { offeredOf } from './agent/offered.ts'
import { type AgentPod, isLost, podsOf } from './agent/pods.ts'
import { keepRevision, rebaseRollout, triedRevisions } from './agent/rebase.ts'
import { acceptedOf, deniedMs, refusalOfAgent, refusedWrite } from './agent/refusals.ts'
import { restored } from './agent/restored.ts'
import { ClusterRights } from './agent/rights.ts'
import { picked, planSecrets } from './agent/slots.ts'
import { StepWatch, worseIn } from './agent/step.ts'
import { advance, goBack, type RolloutEvent } from './agent/transition.ts'
import { type Applied, contendedMs, newApplied, ownedTypes, Workloads } from './agent/workload.ts'
import { AgentSecrets, unwatchedMs, ValueReader } from './agent-secrets.ts'
import { Controller, ControllerMetrics } from './controller.ts'
import { internalError } from './internal-error.ts'
import { changedIn, forgetRevisions, fragmentsIn, valueKeys, wantedIn } from './revisions.ts'
import { type AgentNode, policyOf } from './rollout-plan.ts'
import { Spacing } from './spacing.ts'

/** A pass waits this long after the first of many changes, so that applying thousands of Pipelines gives a few revisions. */
const debounceMs = 1000

export interface AgentControllerOptions {
  /** Metrics of all controllers of the process; its own if not given. */
  readonly metrics?: ControllerMetrics
  /** Inputs for rendering workloads, besides the settings. */
  readonly workloadInput?: (agent: Agent) => Partial<WorkloadInput>
}

export function agentPart(fleet: FleetState, options: AgentControllerOptions = {}): OperatorPart {
  return {
    name: 'agent',
    leaderOnly: true,
    async start(context) {
      return new AgentController(context, fleet, options).start()
    },
  }
}

/** Not the key of an Agent: the rights of all of them in the cluster. */
const rightsKey = '*/rights'

interface AgentMemory {
  readonly secrets: AgentSecrets
  uid: string | undefined
  /** The state that an earlier process has delivered, until this one makes its first decision. */
  restored: Delivered | undefined
  /** Whether the Secrets may still hold what was withdrawn. */
  withdrawing: boolean
  /** Changes of what is selected that have been rendered. */
  rendered: { readonly key: string; readonly bundle: Awaited<ReturnType<typeof renderBundle>> } | undefined
  /** The events of agents in the candidate's present step. */
  readonly step: StepWatch
  /** The applied parts of its workload. */
  readonly applied: Applied
  /** Events about a decision, which are recorded once it is written. */
  readonly decided: RolloutEvent[]
}

export class AgentController implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  readonly #controller: Controller
  readonly #queue: WorkQueue
  /** Of passes that reports of agents, or changes of Pipelines, bring about. */
  readonly #spacing = new Spacing({ leastMs: 200, mostMs: 2000, factor: 3 })
  #running = false
  readonly #rights: ClusterRights
  readonly #workloads: Workloads
  readonly #agents: Cache<Agent>
  readonly #namespaces: Cache
  readonly #pods: Cache<AgentPod>
  readonly #secretCache: Cache
  readonly #owned = new Map<string, Cache>()
  readonly #otherNodes: Cache
  readonly #values: ValueReader
  readonly #memory = new Map<string, AgentMemory>()
  readonly #subscriptions: Disposable[] = []

  constructor(context: OperatorContext, fleet: FleetState, options: AgentControllerOptions) {
    this.#context = context
    this.#fleet = fleet
    this.#controller = new Controller({
      name: 'agent',
      logger: context.logger,
      metrics: options.metrics ?? new ControllerMetrics(context.metrics),
      signal: context.signal,
      reconcile: (key, signal) => this.#spacing.measured(() => this.#reconcile(key, signal)),
      failed: (key, error) => this.#failed(key, error),
    })
    this.#queue = this.#controller.queue
    const { caches } = context
    this.#agents = caches.cache<Agent>(agentKind)
    this.#namespaces = caches.cache(namespaceType, { metadataOnly: true })
    this.#pods = caches.cache<AgentPod>(podType, { labelSelector: labels.agent })
    const { secretsMode, agentNamespaces } = context.settings
    // Where Secrets of tenants cannot be watched, those of the Agents still can.
    this.#secretCache = caches.cache(secretType, {
      metadataOnly: true,
      ...(secretsMode === 'Namespaced' ? { namespaces: agentNamespaces } : {}),
    })
    const configMaps = caches.cache(configMapType, { metadataOnly: true })
    this.#values = new ValueReader(context.kube.as('agent'), context.settings, {
      Secret: this.#secretCache,
      ConfigMap: configMaps,
    })
    const claims = caches.cache(persistentVolumeClaimType, {
      metadataOnly: true,
      labelSelector: `${labels.name}=penstock-agent`,
    })
    const os = 'kubernetes.io/os'
    this.#otherNodes = caches.cache(nodeType, { metadataOnly: true, labelSelector: `${os},${os}!=linux` })
    for (const type of ownedTypes) {
      if (context.settings.rolesOnly && type === clusterRoleBindingType) continue
      this.#owned.set(
        type.kind,
        type === configMapType ? configMaps : caches.cache(type, { labelSelector: labels.agent }),
      )
    }
    const bindings = this.#owned.get(clusterRoleBindingType.kind)
    this.#rights = new ClusterRights(context, this.#agents, this.#namespaces, bindings)
    const seen = { agents: this.#agents, pods: this.#pods, owned: this.#owned, claims }
    this.#workloads = new Workloads(context, seen, options.workloadInput)
  }

  async start(): Promise<this> {
    const { caches, artifacts, signal } = this.#context
    await caches.synced(signal)
    const all = () => {
      for (const agent of this.#agents.values()) this.#soon(keyOf(agent))
    }
    const ofOwner = ({ object }: { object: KubeObject }) => {
      const agent = object.metadata.labels?.[labels.agent]
      const namespace = object.metadata.labels?.[labels.agentNamespace] ?? object.metadata.namespace
      if (agent !== undefined && namespace !== undefined) this.#queue.add(objectKey(namespace, agent))
    }
    this.#subscriptions.push(
      this.#agents.subscribe(({ object }) => {
        this.#queue.add(keyOf(object))
        this.#queue.add(rightsKey)
      }),
      artifacts.subscribe(all),
      this.#namespaces.subscribe(({ type, object, previous }) => {
        const same = canonicalJson(object.metadata.labels ?? {}) === canonicalJson(previous?.metadata.labels ?? {})
        if (type !== 'changed' || !same) all()
      }),
      this.#secretCache.subscribe((change) => {
        if (change.object.metadata.labels?.[labels.agent] !== undefined) ofOwner(change)
        else if (change.type !== 'added' || this.#running) this.#secretChanged(change.object)
      }),
      this.#pods.subscribe(ofOwner),
      // The claims of a StatefulSet carry the labels of its pods' selector alone.
      this.#workloads.claims.subscribe(({ object: { metadata } }) => {
        const agent = metadata.labels?.[labels.instance]
        if (agent !== undefined && metadata.namespace !== undefined)
          this.#queue.add(objectKey(metadata.namespace, agent))
      }),
      ...[...this.#owned.values()].map((cache) => cache.subscribe(ofOwner)),
      ...[this.#owned.get(clusterRoleBindingType.kind)].flatMap(
        (cache) => cache?.subscribe(() => this.#queue.add(rightsKey)) ?? [],
      ),
      this.#otherNodes.subscribe(({ type }) => {
        if (type !== 'changed') all()
      }),
      this.#fleet.onChange((agent) => this.#queue.addAfter(agent, this.#spacing.waitMs)),
    )
    this.#running = true
    this.#controller.start(() => [...[...this.#agents.values()].map(keyOf), rightsKey])
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    await this.#controller[Symbol.asyncDispose]()
  }

  #soon(key: string): void {
    this.#queue.addAfter(key, Math.max(debounceMs, this.#spacing.waitMs))
  }

  /** A Secret or ConfigMap of a user has changed: the Agents that carry its values are looked at. */
  #secretChanged(object: KubeObject): void {
    const { namespace, name } = object.metadata
    for (const [key, { selected }] of this.#fleet.agents()) {
      for (const { secretRefs } of selected.values()) {
        if (!secretRefs.some((ref) => refersTo(ref, namespace, name))) continue
        this.#soon(key)
        break
      }
    }
  }

  /** One pass; returns after how long the next is due, if time alone can change something. */
  async #reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    if (key === rightsKey) {
      const known = this.#rights.problem
      if (await this.#rights.apply(signal)) return undefined
      if (known !== this.#rights.problem) for (const each of this.#agents.values()) this.#queue.add(keyOf(each))
      return deniedMs
    }
    const [namespace, name] = key.split('/') as [string, string]
    const agent = this.#agents.get(namespace, name)
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) {
      await this.#forget(key, namespace, name, signal)
      return undefined
    }
    if (this.#namespaces.get(undefined, namespace)?.metadata.deletionTimestamp !== undefined) return undefined
    const refusal = refusalOfAgent(
      agent,
      () => this.#agents.values(),
      this.#context.settings,
      () => this.#workloads.live(agent),
    )
    if (refusal !== undefined) {
      this.#report(agent, [refusal], {})
      return undefined
    }
    if (agent.spec.managementState === 'Unmanaged') return undefined
    let memory = this.#memory.get(key)
    if (memory === undefined || memory.uid !== agent.metadata.uid) {
      memory = {
        secrets: new AgentSecrets(agent, this.#context.kube.as('agent'), this.#secretCache, this.#context.logger),
        uid: agent.metadata.uid,
        restored: undefined,
        withdrawing: false,
        rendered: undefined,
        step: new StepWatch(),
        applied: newApplied(),
        decided: [],
      }
      this.#memory.set(key, memory)
      this.#fleet.forget(key)
    }
    if (!this.#context.artifacts.complete) {
      await this.#offerRestored(key, agent, memory, signal)
      return debounceMs
    }
    let waitMs: number | undefined
    try {
      waitMs = await this.#deliver(key, agent, memory, signal)
      await this.#workloads.apply(agent, memory.applied, this.#fleet.get(key), signal)
    } catch (error) {
      const denied = error instanceof KubeError && error.status === 403
      const lacksRights = denied && (await this.#lacksRights(agent, signal))
      const refused = refusedWrite(agent, error, this.#context.settings, lacksRights)
      if (refused === undefined) throw error
      this.#report(agent, refused.findings, {})
      if (refused.waitMs === undefined) throw error
      return refused.waitMs
    }
    this.#reportWorkload(key, agent, memory)
    if (this.#workloads.contended(agent, memory.applied) !== undefined)
      waitMs = Math.min(waitMs ?? contendedMs, contendedMs / 10)
    if (this.#context.settings.secretsMode !== 'Namespaced') return waitMs
    const usesSecrets = [...(this.#fleet.get(key)?.selected.values() ?? [])].some((one) => one.secretRefs.length > 0)
    return usesSecrets ? Math.min(waitMs ?? unwatchedMs, unwatchedMs) : waitMs
  }

  async #lacksRights({ metadata: { namespace = '' } }: Agent, signal: AbortSignal): Promise<boolean> {
    return (await missingRights(this.#context.kube.as('agent'), namespace, agentNamespaceRules, signal)).length > 0
  }

  async #forget(key: string, namespace: string, name: string, signal: AbortSignal): Promise<void> {
    this.#memory.delete(key)
    this.#fleet.forget(key)
    // In other namespaces it has no owner that the garbage collector knows.
    const agent = { metadata: { namespace, name } }
    for (const object of [...(this.#owned.get(roleBindingType.kind)?.values() ?? [])]) {
      if (object.metadata.labels?.[labels.agentNamespace] === undefined || !isOwn(agent, object)) continue
      await this.#workloads.delete(roleBindingType, object, signal)
    }
  }

  // --- the bundle ---

  async #deliver(key: string, agent: Agent, memory: AgentMemory, signal: AbortSignal): Promise<number | undefined> {
    const { secrets } = memory
    if (await secrets.read(signal)) memory.restored = undefined
    const delivered = this.#fleet.get(key) ?? memory.restored ?? this.#restored(key, secrets)
    memory.restored = undefined
    if (this.#withdraw(agent, delivered)) memory.withdrawing = true
    const stableFragments = fragmentsIn(delivered, delivered.stable)
    const artifacts = [...this.#context.artifacts.values()].filter((artifact) => this.#takes(agent, artifact))
    const { entries, rolledBack } = selectFragments(artifacts, delivered.record.rolledBack, stableFragments)
    delivered.record = { ...delivered.record, rolledBack }
    const read = async (ref: SecretRef) => (await this.#value(ref, signal)) ?? secrets.values.data(ref.key)
    const values = await withValues(entries, stableFragments, read)
    const { reasons } = values
    const renderKey = values.entries
      .map(({ fragment }) => `${fragment.id} ${fragment.hash} ${fragment.generation}`)
      .join('\n')
    const isNew = memory.rendered?.key !== renderKey
    if (memory.rendered === undefined || isNew) {
      memory.rendered = { key: renderKey, bundle: await renderBundle(values.entries) }
    }
    const { bundle } = memory.rendered
    for (const id of bundle.evicted)
      reasons.set(id, 'The bundle of the Agent is full; younger Pipelines give way to older ones.')
    delivered.evicted = reasons
    delivered.selected = new Map(entries.map(({ fragment }) => [fragment.id, fragment]))
    if (isNew || delivered.revisions.get(bundle.rev)?.shards.length !== bundle.shards.length)
      keepRevision(delivered, bundle)
    const request = agent.metadata.annotations?.[undoAnnotation]
    const back = goBack(delivered, delivered.revisions, request, bundle.rev, new Date().toISOString())
    Object.assign(delivered, back.state)
    for (const { type, reason, message } of back.events) this.#event(agent, type, reason, message)
    if (back.revision !== undefined) {
      // Its values are followed as those of any other revision.
      const earlier = [...back.revision.fragments.values()].map((fragment) => ({ fragment, createdAt: '' }))
      const { of } = await withValues(earlier, stableFragments, read)
      for (const [id, value] of of) values.of.set(id, value)
    }
    if (back.revision === undefined) {
      const createdAt = new Map(values.entries.map((entry) => [entry.fragment.id, entry.createdAt]))
      await rebaseRollout(delivered, bundle, policyOf(agent.spec.rollout), createdAt, monotonicNow())
    }
    const waitMs = back.revision === undefined ? this.#advance(key, agent, memory, delivered, bundle) : undefined
    await this.#write(key, delivered, memory, values.of, signal)
    memory.withdrawing = false
    this.#fleet.set(key, delivered)
    for (const { type, reason, message } of memory.decided.splice(0)) this.#event(agent, type, reason, message)
    return waitMs
  }

  /**
   * Compiling all Pipelines after a start takes a while, in which pods come and agents start. Agents that ask get the content that is
   * already in force, like agents that read mounted files.
   */
  async #offerRestored(key: string, agent: Agent, memory: AgentMemory, signal: AbortSignal): Promise<void> {
    if (agent.spec.configDelivery !== 'Stream' || memory.restored !== undefined) return
    const { secrets } = memory
    await secrets.read(signal)
    const delivered = this.#restored(key, secrets)
    // The content that an owner lends is known when everything is compiled.
    if (this.#withdraw(agent, delivered)) return
    memory.restored = delivered
    const wanted = wantedIn(delivered)
    const needed = valueKeys(delivered, wanted)
    const named = picked(needed, secrets.values.data)
    // Agents would refuse one without all of its values.
    if (wanted.length > 0 && named.size === needed.size)
      this.#fleet.offer(key, offeredOf(agent, delivered, named, digestFile(named)))
  }

  #restored(key: string, secrets: AgentSecrets): Delivered {
    return restored(secrets, (error) =>
      this.#context.logger.error(
        { error: errorText(error), agent: key },
        'The delivered bundle could not be read; it is written anew.',
      ),
    )
  }

  #takes(agent: Agent, artifact: Artifact): boolean {
    const home = artifact.namespace === undefined ? undefined : this.#namespaces.get(undefined, artifact.namespace)
    return takes(agent, artifact, home?.metadata.labels, this.#context.settings)
  }

  /** Whether an Agent may have what an earlier revision holds of a Pipeline, by what owners of shared objects lend now. */
  #mayCarry(agent: Agent, { id, secretRefs }: Fragment): boolean {
    const [namespace] = id.split('/')
    const { lent, withheld } = this.#context.artifacts.get(id) ?? {}
    const carried = { namespace: namespace === '_cluster' ? undefined : namespace, secretRefs, lent, withheld }
    return refusalOf(agent, carried, this.#context.settings) === undefined
  }

  /** Drops the revisions that hold what an Agent of a tenant may no longer have. */
  #withdraw(agent: Agent, delivered: Delivered): boolean {
    if (!isTenants(agent, this.#context.settings)) return false
    return dropRevisions(delivered, (fragment) => this.#mayCarry(agent, fragment))
  }

  async #value(ref: SecretRef, signal: AbortSignal): Promise<Buffer | undefined> {
    const objects = new Map<string, ReadonlyMap<string, Buffer> | undefined>()
    for (const part of ref.parts) {
      if (typeof part === 'string') continue
      const id = `${part.kind}/${part.namespace}/${part.name}`
      objects.set(id, await this.#values.read(part.kind, part.namespace, part.name, signal))
    }
    const result = secretValue(ref, (part) => objects.get(`${part.kind}/${part.namespace}/${part.name}`)?.get(part.key))
    return result.ok ? result.value : undefined
  }

  /** Lets the rollout continue by one decision; returns after how long to look again. */
  #advance(
    key: string,
    agent: Agent,
    memory: AgentMemory,
    delivered: Delivered,
    bundle: KnownRevision,
  ): number | undefined {
    const now = monotonicNow()
    const { candidate, stable, record } = delivered
    const tried = fragmentsIn(delivered, candidate)
    const runs = fragmentsIn(delivered, stable)
    const changed = changedIn(tried, runs)
    const pods = podsOf(agent, this.#pods.values())
    // Its content follows what comes and goes; the rollout is the same.
    if (candidate !== undefined) memory.step.follow(`${candidate.salt} ${record.begun} ${record.step ?? 0}`, pods)
    // Drops the reports of pods that are gone, which must not count as losses either.
    const seen =
      agent.spec.mode === 'Sidecar' ? this.#sidecarsOf(key, memory, now) : this.#nodesOf(key, pods, memory, now)
    const revisionOf = triedRevisions(delivered, candidate, changed)
    const nodes = seen.map((node) => ({ ...node, revision: revisionOf(node.revision) }))
    const reports = [...this.#fleet.reports(key)].map(({ revision, pipelines }) => ({
      revision: revisionOf(revision),
      pipelines,
    }))
    const { state, events, recheckMs, isStarted } = advance(delivered, {
      now,
      policy: policyOf(agent.spec.rollout),
      bundle,
      tried,
      changed,
      worse: worseIn(reports, candidate, changed),
      isArrival: changesOf(bundle.fragments, runs).length === 0,
      triesArrivals: candidate !== undefined && changesOf(tried, runs).length === 0,
      nodes,
      retryOf: (id) => this.#context.artifacts.get(id)?.retry,
    })
    Object.assign(delivered, state)
    if (isStarted) memory.step.forget()
    for (const event of events)
      if (!memory.decided.some(({ message }) => message === event.message)) memory.decided.push(event)
    return recheckMs
  }

  #event(agent: Agent, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record(agent, type, reason, message)
  }

  #nodesOf(key: string, pods: readonly AgentPod[], memory: AgentMemory, now: number): AgentNode[] {
    this.#fleet.keep(key, new Set(pods.map((pod) => pod.metadata.uid ?? '')))
    return pods.map((pod) => {
      const report = this.#fleet.report(key, pod.metadata.uid ?? '')
      return memory.step.node(pod, report, isLost(pod, report, this.#fleet, now), now)
    })
  }

  /** Pods with a sidecar are the users' own: only those that report are known. */
  #sidecarsOf(key: string, memory: AgentMemory, now: number): AgentNode[] {
    const reports = [...this.#fleet.reports(key)].filter((report) => !this.#fleet.isStale(report, now))
    this.#fleet.keep(key, new Set(reports.map((report) => report.podUid)))
    return reports.map((report) => memory.step.sidecar(report, now))
  }

  async #write(
    key: string,
    delivered: Delivered,
    memory: AgentMemory,
    values: ReadonlyMap<string, Buffer>,
    signal: AbortSignal,
  ): Promise<void> {
    const { secrets } = memory
    const running = new Set<string>()
    let allKnown = true
    const agent = this.#agents.get(...(key.split('/') as [string, string]))
    for (const pod of agent === undefined ? [] : podsOf(agent, this.#pods.values())) {
      const revision = this.#fleet.report(key, pod.metadata.uid ?? '')?.revision
      if (revision === undefined) allKnown = false
      else running.add(revision)
    }
    for (const { revision } of this.#fleet.reports(key)) if (revision !== undefined) running.add(revision)
    // Pods with a sidecar that have not reported since this process started are not known.
    if (agent?.spec.mode === 'Sidecar' && !this.#fleet.isStale(undefined, monotonicNow())) allKnown = false
    // Withdrawn content must not stay for pods that may run it.
    if (memory.withdrawing) allKnown = true
    if (agent !== undefined) delivered.startSpreadMs = this.#startSpread(agent, delivered.startSpreadMs)
    const plan = planSecrets(delivered, {
      agent: key,
      running,
      allKnown,
      value: (id) => values.get(id),
      values: secrets.values,
      config: secrets.config,
      manifestExtras: { delivery: agent?.spec.configDelivery, startSpreadMs: delivered.startSpreadMs },
    })
    forgetRevisions(delivered.revisions, plan.kept)
    const { named, digests } = plan
    await secrets.write(plan.values, plan.shards, canonicalJson(delivered.record), signal)
    // Only now: what agents are given is never newer than what a successor of this process finds.
    this.#fleet.offer(key, agent === undefined ? undefined : offeredOf(agent, delivered, named, digests))
  }

  /** The most that node agents wait at their start before they ask the API server. */
  #startSpread(agent: Agent, before: number): number {
    if (agent.spec.mode !== 'Node') return 0
    const { namespace } = agent.metadata
    const workload = this.#owned.get('DaemonSet')?.get(namespace, workloadName(agent)) as WorkloadObject | undefined
    const { observedGeneration, desiredNumberScheduled } = workload?.status ?? {}
    // Before its nodes are counted it says 0.
    if (observedGeneration === undefined || desiredNumberScheduled === undefined) return before
    return startSpreadOf(desiredNumberScheduled, before)
  }

  // --- the status ---

  #reportWorkload(key: string, agent: Agent, memory: AgentMemory): void {
    const delivered = this.#fleet.get(key)
    const bundle = memory.rendered?.bundle
    const kind = workloadKindOf(agent)
    const workload = kind && this.#owned.get(kind)?.get(agent.metadata.namespace, workloadName(agent))
    const otherNodes = [...this.#otherNodes.values()].length
    const available = availabilityOf(
      agent,
      workload as WorkloadObject | undefined,
      podsOf(agent, this.#pods.values()),
      otherNodes,
    )
    const contended = this.#workloads.contended(agent, memory.applied)
    const narrowed = narrowedOf(
      agent,
      this.#context.artifacts.values(),
      this.#namespaces.values(),
      this.#context.settings,
    )
    const findings: Finding[] = [
      this.#rights.problem === undefined || isTenants(agent, this.#context.settings)
        ? acceptedOf(agent)
        : { type: 'Accepted', status: 'False', reason: 'NameConflict', message: this.#rights.problem },
      available.finding,
      ...(contended === undefined ? [] : [contended]),
      ...(narrowed === undefined ? [] : [narrowed]),
    ]
    this.#report(agent, findings, {
      ...(bundle === undefined || delivered === undefined
        ? {}
        : {
            bundle: {
              rawBytes: bundle.rawBytes,
              compressedBytes: bundle.compressedBytes,
              shards: bundle.shards.length,
            },
          }),
      ...available.fields,
    })
  }

  /** The text of the error stays in the log: secret values pass through here. */
  #failed(key: string, error: unknown): void {
    const [namespace, name] = key.split('/') as [string, string]
    const agent = this.#agents.get(namespace, name)
    if (agent === undefined) return
    const before = this.#context.status.reported(agentKind, agent, 'workload')
    const kept = before?.findings.filter(({ type }) => type !== 'Accepted') ?? []
    this.#report(agent, [internalError('Accepted', error, ''), ...kept], before?.fields ?? {})
  }

  #report(agent: Agent, findings: readonly Finding[], fields: Readonly<Record<string, unknown>>): void {
    this.#context.status.report(agentKind, agent, 'workload', {
      generation: agent.metadata.generation ?? 0,
      findings,
      fields,
    })
  }
}

function refersTo(ref: SecretRef, namespace: string | undefined, name: string): boolean {
  return ref.parts.some((part) => typeof part !== 'string' && part.namespace === namespace && part.name === name)
}
