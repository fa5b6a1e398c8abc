// The desired content of an Agent: the versions of its Pipelines, their secret values, and the rendered bundle.

import type { Agent } from '../../api/agent.ts'
import { isTenants, refusalOf, takes } from '../../api/agent.ts'
import { type Artifact, type SecretRef, secretValue } from '../../compile/artifact.ts'
import type { OperatorContext } from '../../context.ts'
import type { Delivered, KnownRevision } from '../../fleet/state.ts'
import { KubeError } from '../../kube/client.ts'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { ValueReader } from '../agent-secrets.ts'
import { fragmentsIn } from '../revisions.ts'
import type { AgentCaches } from './caches.ts'
import { dropRevisions, selectFragments, unreadable, withValues } from './desired.ts'
import type { AgentMemory } from './memory.ts'
import { keepRevision } from './rebase.ts'

export interface DesiredContent {
  readonly bundle: KnownRevision
  /** Creation time of each Pipeline, by id. */
  readonly createdAt: ReadonlyMap<string, string>
  /** Secret values by their keys. */
  readonly values: Map<string, Buffer>
  /** Set if some value could not be read: after this time, the operator must try again. */
  readonly waitMs: number | undefined
}

/** The API server failed to return a Secret; it may be the only one. */
const unreadableMs = 10_000

export class AgentContent {
  readonly #context: OperatorContext
  readonly #caches: AgentCaches
  readonly #values: ValueReader

  constructor(context: OperatorContext, caches: AgentCaches) {
    this.#context = context
    this.#caches = caches
    const { secrets: Secret, configMaps: ConfigMap } = caches
    this.#values = new ValueReader(context.kube.as('agent'), context.settings, { Secret, ConfigMap })
  }

  /** Selects and renders; stores the selection, and the reasons for excluded Pipelines, in `delivered`. */
  async render(agent: Agent, delivered: Delivered, memory: AgentMemory, signal: AbortSignal): Promise<DesiredContent> {
    const stable = fragmentsIn(delivered, delivered.stable)
    const { artifacts: all } = this.#context
    const artifacts = [...all.values()].filter((artifact) => this.#takes(agent, artifact))
    const { entries, rolledBack, withheld } = selectFragments(artifacts, delivered.record, stable, all.unknown)
    const { withheld: before, ...record } = delivered.record
    const still = new Set(withheld.values())
    const digests = before?.filter((digest) => still.has(digest) || all.unknown.size > 0) ?? []
    delivered.record = { ...record, rolledBack, ...(digests.length === 0 ? {} : { withheld: digests }) }
    delivered.withheld = new Set(withheld.keys())
    const reader = this.#reader(memory, signal)
    const { of: values, entries: kept, reasons } = await withValues(entries, stable, reader.read)
    const key = kept.map(({ fragment: { id, hash, generation } }) => `${id} ${hash} ${generation}`).join('\n')
    const isNew = memory.rendered?.key !== key
    if (memory.rendered === undefined || isNew) memory.rendered = { key, bundle: await renderBundle(kept) }
    const { bundle } = memory.rendered
    for (const id of bundle.evicted) reasons.set(id, "The Agent's bundle is full; younger Pipelines are excluded.")
    delivered.evicted = reasons
    delivered.selected = new Map(entries.map(({ fragment }) => [fragment.id, fragment]))
    if (isNew || delivered.revisions.get(bundle.rev)?.shards.length !== bundle.shards.length)
      keepRevision(delivered, bundle)
    const createdAt = new Map(kept.map((entry) => [entry.fragment.id, entry.createdAt]))
    return { bundle, createdAt, values, waitMs: reader.hasFailed() ? unreadableMs : undefined }
  }

  /** Adds the values of an earlier revision that runs again: they are watched like those of any other revision. */
  async addValues(
    { values }: DesiredContent,
    { fragments }: KnownRevision,
    stable: ReadonlyMap<string, Fragment>,
    memory: AgentMemory,
    signal: AbortSignal,
  ): Promise<void> {
    const entries = [...fragments.values()].map((fragment) => ({ fragment, createdAt: '' }))
    const { of } = await withValues(entries, stable, this.#reader(memory, signal).read)
    for (const [key, value] of of) values.set(key, value)
  }

  /** Removes the revisions with content that a tenant's Agent may no longer have; true if there were any. */
  withdraw(agent: Agent, delivered: Delivered): boolean {
    if (!isTenants(agent, this.#context.settings)) return false
    return dropRevisions(delivered, (fragment) => this.#mayCarry(agent, fragment))
  }

  #takes(agent: Agent, artifact: Artifact): boolean {
    const { namespace } = artifact
    const home = namespace === undefined ? undefined : this.#caches.namespaces.get(undefined, namespace)
    return takes(agent, artifact, home?.metadata.labels, this.#context.settings)
  }

  /** Whether an Agent may have an earlier revision's version of a Pipeline, by the current grants of shared objects. */
  #mayCarry(agent: Agent, { id, secretRefs }: Fragment): boolean {
    const [namespace] = id.split('/')
    const { lent, withheld } = this.#context.artifacts.get(id) ?? {}
    const carried = { namespace: namespace === '_cluster' ? undefined : namespace, secretRefs, lent, withheld }
    return refusalOf(agent, carried, this.#context.settings) === undefined
  }

  /** Reads a value from the user's object; a deleted value, or one that cannot be read, stays as the Agent has it. */
  #reader({ secrets }: AgentMemory, signal: AbortSignal) {
    let failed = false
    const read = async (ref: SecretRef) => {
      try {
        return (await this.#value(ref, signal)) ?? secrets.values.data(ref.key)
      } catch (error) {
        // One Secret that its server cannot decrypt must not keep the content of all others back.
        if (signal.aborted || !(error instanceof KubeError) || error.status < 500) throw error
        failed = true
        return secrets.values.data(ref.key) ?? unreadable
      }
    }
    return { read, hasFailed: () => failed }
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
}
