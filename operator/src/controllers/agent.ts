// The reconcile loop of Agents: delivers the bundle of each, applies its workload, and reports. The steps are in agent/; this file decides
// their order, and how a rejected write affects the next pass.

import type { Agent } from '../api/agent.ts'
import { keyOf } from '../api/object.ts'
import type { SecretRef } from '../compile/artifact.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import type { FleetState } from '../fleet/state.ts'
import { KubeError } from '../kube/client.ts'
import { roleBindingType } from '../kube/resource-types.ts'
import { missingRights } from '../kube/rights.ts'
import type { WorkQueue } from '../kube/work-queue.ts'
import type { Fragment } from '../render/fragment.ts'
import { isOwn, labels } from '../workloads/names.ts'
import type { WorkloadInput } from '../workloads/pod.ts'
import { agentNamespaceRules } from '../workloads/rights.ts'
import { AgentBundles } from './agent/bundle.ts'
import { AgentCaches } from './agent/caches.ts'
import { type AgentMemory, newMemory } from './agent/memory.ts'
import { deniedMs, refusalOfAgent, refusedWrite } from './agent/refusals.ts'
import { ClusterRights } from './agent/rights.ts'
import { AgentStatusReports } from './agent/status.ts'
import { Workloads } from './agent/workload.ts'
import { unwatchedMs } from './agent-secrets.ts'
import { contendedMs } from './contention.ts'
import { Controller, ControllerMetrics } from './controller.ts'
import { Spacing } from './spacing.ts'

/** Delay of a pass after the first of many changes, so that applying thousands of Pipelines creates only a few revisions. */
const debounceMs = 1000

export interface AgentControllerOptions {
  /** Metrics of all controllers of the process; separate ones if not given. */
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

/** A queue key that is not an Agent: the rights of all Agents in the cluster. */
const rightsKey = '*/rights'

export class AgentController implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  readonly #controller: Controller
  readonly #queue: WorkQueue
  /** Spacing of passes caused by agents' reports or Pipeline changes. */
  readonly #spacing = new Spacing({ minMs: 200, maxMs: 2000, factor: 3 })
  readonly #caches: AgentCaches
  readonly #rights: ClusterRights
  readonly #bundles: AgentBundles
  readonly #workloads: Workloads
  readonly #reports: AgentStatusReports
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
    this.#caches = new AgentCaches(context)
    this.#rights = new ClusterRights(context, this.#caches)
    this.#bundles = new AgentBundles(context, this.#caches, fleet)
    this.#workloads = new Workloads(context, this.#caches, options.workloadInput)
    this.#reports = new AgentStatusReports(context, this.#caches)
  }

  async start(): Promise<this> {
    const { caches, artifacts, signal } = this.#context
    await caches.synced(signal)
    this.#fleet.lead()
    const all = () => {
      for (const agent of this.#caches.agents.values()) this.#soon(keyOf(agent))
    }
    this.#subscriptions.push(
      ...this.#caches.follow({
        agent: (key) => this.#queue.add(key),
        all,
        rights: () => this.#queue.add(rightsKey),
        values: ({ metadata: { namespace, name } }) => this.#valuesChanged(namespace, name),
      }),
      artifacts.subscribe(all),
      this.#fleet.onChange((agent) => this.#queue.addAfter(agent, this.#spacing.waitMs)),
    )
    this.#controller.start(() => [...[...this.#caches.agents.values()].map(keyOf), rightsKey])
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    await this.#controller[Symbol.asyncDispose]()
  }

  #soon(key: string): void {
    this.#queue.addAfter(key, Math.max(debounceMs, this.#spacing.waitMs))
  }

  /** Reconciles the Agents that hold values of this Secret or ConfigMap. */
  #valuesChanged(namespace: string | undefined, name: string): void {
    for (const [key, { selected }] of this.#fleet.agents()) {
      const usesIt = ({ secretRefs }: Fragment) => secretRefs.some((ref) => refersTo(ref, namespace, name))
      if (selected.values().some(usesIt)) this.#soon(key)
    }
  }

  /** One pass; returns the delay until the next one, if time alone can change something. */
  async #reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    if (key === rightsKey) return this.#applyRights(signal)
    const [namespace, name] = key.split('/') as [string, string]
    const agent = this.#caches.agents.get(namespace, name)
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) {
      await this.#forget(key, namespace, name, signal)
      return undefined
    }
    if (this.#caches.namespaces.get(undefined, namespace)?.metadata.deletionTimestamp !== undefined) return undefined
    const refusal = refusalOfAgent(
      agent,
      () => this.#caches.agents.values(),
      this.#context.settings,
      () => this.#workloads.live(agent),
    )
    if (refusal !== undefined) {
      this.#reports.report(agent, [refusal])
      return undefined
    }
    if (agent.spec.managementState === 'Unmanaged') return undefined
    const memory = this.#memoryOf(key, agent)
    return this.#writing(agent, signal, async () => {
      if (this.#context.artifacts.complete) return this.#apply(key, agent, memory, signal)
      await this.#bundles.offerRestored(key, agent, memory, signal)
      return debounceMs
    })
  }

  /** Reports writes that the API server rejects, and Secrets of others under the names of ours. */
  async #writing(
    agent: Agent,
    signal: AbortSignal,
    write: () => Promise<number | undefined>,
  ): Promise<number | undefined> {
    try {
      return await write()
    } catch (error) {
      const denied = error instanceof KubeError && error.status === 403
      const lacksRights = denied && (await this.#lacksRights(agent, signal))
      const refused = refusedWrite(agent, error, this.#context.settings, lacksRights)
      if (refused === undefined) throw error
      this.#reports.report(agent, refused.findings)
      if (refused.waitMs === undefined) throw error
      return refused.waitMs
    }
  }

  async #applyRights(signal: AbortSignal): Promise<number | undefined> {
    const known = this.#rights.problem
    if (await this.#rights.apply(signal)) return undefined
    if (known !== this.#rights.problem) for (const each of this.#caches.agents.values()) this.#queue.add(keyOf(each))
    return deniedMs
  }

  #memoryOf(key: string, agent: Agent): AgentMemory {
    const known = this.#memory.get(key)
    if (known !== undefined && known.uid === agent.metadata.uid) return known
    const memory = newMemory(agent, this.#context, this.#caches.secrets)
    this.#memory.set(key, memory)
    // Agents that report to a new process do so before its first pass.
    if (known !== undefined) this.#fleet.forget(key)
    return memory
  }

  /** Delivers the bundle, applies the workload, and reports both. */
  async #apply(key: string, agent: Agent, memory: AgentMemory, signal: AbortSignal): Promise<number | undefined> {
    let waitMs = await this.#bundles.deliver(key, agent, memory, signal)
    await this.#workloads.apply(agent, memory.applied, this.#fleet.get(key), signal)
    const contended = this.#workloads.contended(agent, memory.applied, memory.secrets.reverts)
    this.#reports.workload(agent, memory, { rightsProblem: this.#rights.problem, contended })
    if (contended !== undefined) waitMs = Math.min(waitMs ?? contendedMs, contendedMs / 10)
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
    for (const object of [...(this.#caches.owned.get(roleBindingType.kind)?.values() ?? [])]) {
      if (object.metadata.labels?.[labels.agentNamespace] === undefined || !isOwn(agent, object)) continue
      await this.#workloads.delete(roleBindingType, object, signal)
    }
  }

  #failed(key: string, error: unknown): void {
    const [namespace, name] = key.split('/') as [string, string]
    const agent = this.#caches.agents.get(namespace, name)
    if (agent !== undefined) this.#reports.failed(agent, error)
  }
}

function refersTo(ref: SecretRef, namespace: string | undefined, name: string): boolean {
  return ref.parts.some((part) => typeof part !== 'string' && part.namespace === namespace && part.name === name)
}
