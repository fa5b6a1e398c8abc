// Delivers the bundle of an Agent, from the desired content to its Secrets and streams: content, undo, new Pipelines, one decision
// of the rollout, writes. Each step is in a separate file; the order is here.

import { canonicalJson } from '@penstock/agent/bundle'
import { errorText } from '@penstock/agent/errors'
import { type Agent, deliveryOf } from '../../api/agent.ts'
import type { OperatorContext } from '../../context.ts'
import type { Delivered, FleetState, KnownRevision } from '../../fleet/state.ts'
import { undoAnnotation } from '../../fleet/undo.ts'
import { digestFile, startSpreadOf } from '../../render/manifest.ts'
import { forgetRevisions, fragmentsIn, valueKeys, wantedIn } from '../revisions.ts'
import { policyOf } from '../rollout-plan.ts'
import { wantedPodsOf, workloadKindOf } from './available.ts'
import type { AgentCaches } from './caches.ts'
import { AgentContent } from './content.ts'
import type { AgentMemory } from './memory.ts'
import { offeredOf } from './offered.ts'
import { rebaseRollout } from './rebase.ts'
import { restored } from './restored.ts'
import { fitTogether, picked, planSecrets } from './slots.ts'
import { goBack, type RolloutEvent } from './transition.ts'
import { decideTrial } from './trial.ts'

export class AgentBundles {
  readonly #context: OperatorContext
  readonly #caches: AgentCaches
  readonly #fleet: FleetState
  readonly #content: AgentContent

  constructor(context: OperatorContext, caches: AgentCaches, fleet: FleetState) {
    this.#context = context
    this.#caches = caches
    this.#fleet = fleet
    this.#content = new AgentContent(context, caches)
  }

  /** Advances the Secrets and streams of an Agent by one decision; returns the delay until the next. */
  async deliver(key: string, agent: Agent, memory: AgentMemory, signal: AbortSignal): Promise<number | undefined> {
    const { secrets } = memory
    if (await secrets.read(signal)) memory.restored = undefined
    if (secrets.heldMs > 0) return secrets.heldMs
    const delivered = this.#fleet.get(key) ?? memory.restored ?? this.#restored(key, memory)
    memory.restored = undefined
    if (this.#content.withdraw(agent, delivered)) memory.withdrawing = true
    const stable = fragmentsIn(delivered, delivered.stable)
    const content = await this.#content.render(agent, delivered, memory, signal)
    const { bundle, createdAt, values } = content
    const request = agent.metadata.annotations?.[undoAnnotation]
    const back = goBack(delivered, delivered.revisions, request, bundle.rev, new Date(this.#fleet.now()).toISOString())
    Object.assign(delivered, back.state)
    this.#record(agent, back.events)
    let waitMs: number | undefined
    if (back.revision === undefined) {
      const seen = {
        ...{ policy: policyOf(agent.spec.rollout), createdAt, now: this.#fleet.now() },
        hasRoom: (all: readonly KnownRevision[]) =>
          fitTogether(all, (key) => values.get(key) ?? secrets.values.data(key)),
      }
      const start = await rebaseRollout(delivered, bundle, seen)
      const pods = this.#caches.podsOf(agent)
      const { artifacts } = this.#context
      const wantedPods = wantedPodsOf(this.#caches.workloadOf(agent, workloadKindOf(agent)))
      const seenNow = { start, pods, wantedPods, fleet: this.#fleet, artifacts }
      const decided = decideTrial(key, agent, delivered, memory, seenNow)
      waitMs = decided.waitMs
      if (decided.leaves !== undefined) {
        // The next content for the agents no longer has them.
        const rest = await this.#content.render(agent, delivered, memory, signal)
        await rebaseRollout(delivered, rest.bundle, { ...seen, leaves: decided.leaves })
      }
    } else {
      await this.#content.addValues(content, back.revision, stable, memory, signal)
    }
    await this.#write(key, delivered, memory, values, signal)
    memory.withdrawing = false
    this.#fleet.set(key, delivered)
    this.#record(agent, memory.decided.splice(0))
    return waitMs === undefined ? content.waitMs : Math.min(waitMs, content.waitMs ?? waitMs)
  }

  /**
   * Compiling all Pipelines after a start takes a while, in which pods appear and agents start. Agents that ask receive the current
   * content, like agents that read mounted files.
   */
  async offerRestored(key: string, agent: Agent, memory: AgentMemory, signal: AbortSignal): Promise<void> {
    if (deliveryOf(agent.spec) !== 'Stream' || memory.restored !== undefined) return
    const { secrets } = memory
    await secrets.read(signal)
    const delivered = this.#restored(key, memory)
    // The content granted by owners is only known when everything is compiled.
    if (this.#content.withdraw(agent, delivered)) return
    memory.restored = delivered
    const wanted = wantedIn(delivered)
    const needed = valueKeys(delivered, wanted)
    const named = picked(needed, secrets.values.data)
    // Agents would reject a bundle without all its values.
    if (wanted.length > 0 && named.size === needed.size)
      this.#fleet.offer(key, offeredOf(agent, delivered, named, digestFile(named)))
  }

  #restored(key: string, { secrets }: AgentMemory): Delivered {
    return restored(secrets, this.#fleet.now(), (error) =>
      this.#context.logger.error(
        { error: errorText(error), agent: key },
        'Could not read the delivered bundle; writing it again.',
      ),
    )
  }

  #record(agent: Agent, events: readonly RolloutEvent[]): void {
    for (const { type, reason, message } of events) this.#context.events.record(agent, type, reason, message)
  }

  async #write(
    key: string,
    delivered: Delivered,
    memory: AgentMemory,
    values: ReadonlyMap<string, Buffer>,
    signal: AbortSignal,
  ): Promise<void> {
    const { secrets } = memory
    const agent = this.#caches.agents.get(...(key.split('/') as [string, string]))
    if (agent !== undefined) delivered.startSpreadMs = this.#startSpread(agent, delivered.startSpreadMs)
    const plan = planSecrets(delivered, {
      agent: key,
      ...this.#runningOf(key, agent, memory),
      value: (id) => values.get(id),
      values: secrets.values,
      config: secrets.config,
      manifestExtras: { delivery: agent && deliveryOf(agent.spec), startSpreadMs: delivered.startSpreadMs },
    })
    forgetRevisions(delivered.revisions, plan.kept)
    const { named, digests } = plan
    await secrets.write(plan.values, plan.shards, canonicalJson(delivered.record), signal)
    // Only after the write: agents must not receive newer content than a successor of this process would find.
    this.#fleet.offer(key, agent === undefined ? undefined : offeredOf(agent, delivered, named, digests))
  }

  /** The revisions that pods run, and whether those of all pods are known. */
  #runningOf(key: string, agent: Agent | undefined, memory: AgentMemory) {
    const running = new Set<string>()
    let allKnown = true
    for (const pod of agent === undefined ? [] : this.#caches.podsOf(agent)) {
      const revision = this.#fleet.report(key, pod.metadata.uid ?? '')?.revision
      if (revision === undefined) allKnown = false
      else running.add(revision)
    }
    for (const { revision } of this.#fleet.reports(key)) if (revision !== undefined) running.add(revision)
    // Pods with a sidecar that have not reported since this process started are unknown.
    if (agent?.spec.mode === 'Sidecar' && !this.#fleet.isStale(undefined, this.#fleet.now())) allKnown = false
    // Withdrawn content must be removed even if pods may still run it.
    if (memory.withdrawing) allKnown = true
    return { running, allKnown }
  }

  /** The maximum delay of node agents before their first request to the API server. */
  #startSpread(agent: Agent, before: number): number {
    if (agent.spec.mode !== 'Node') return 0
    const { observedGeneration, desiredNumberScheduled } = this.#caches.workloadOf(agent, 'DaemonSet')?.status ?? {}
    // The count is 0 until the nodes are counted.
    if (observedGeneration === undefined || desiredNumberScheduled === undefined) return before
    return startSpreadOf(desiredNumberScheduled, before)
  }
}
