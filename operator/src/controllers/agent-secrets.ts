// The Secrets of an Agent: read once, then kept in memory, and written only if they differ from the desired state. The order of writes
// keeps the content consistent for agents: values, then shards, then the manifest that refers to both.

import { createHash } from 'node:crypto'
import type { Logger } from '@penstock/agent/telemetry'
import type { Agent } from '../api/agent.ts'
import type { KubeObject } from '../api/object.ts'
import type { OperatorSettings } from '../context.ts'
import type { Cache } from '../kube/cache.ts'
import { type KubeClient, KubeError } from '../kube/client.ts'
import { configMapType, secretType } from '../kube/resource-types.ts'
import { isAllowed } from '../policy/secret-access.ts'
import {
  configSecretName,
  configSlots,
  ForeignObjectError,
  isOwn,
  objectLabels,
  ownedBy,
  secretSlots,
  valuesSecretName,
} from '../workloads/names.ts'
import { Corrections, managerOf, type Reverts } from './contention.ts'

export type SecretContents = ReadonlyMap<string, Buffer>

interface Known {
  contents: SecretContents
  annotation: string | undefined
  /** Version of the object with the values; undefined if it does not exist. */
  version: string | undefined
}

interface SecretObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
  readonly type?: string
}

export const rolloutAnnotation = 'penstock.dev/rollout'

/** How often Secrets are read again if they cannot be watched. */
export const unwatchedMs = 60_000

export class AgentSecrets {
  readonly #agent: Agent
  readonly #kube: KubeClient
  readonly #cache: Cache
  readonly #logger: Logger
  readonly #known = new Map<string, Known>()
  /** Secrets that other clients have changed. */
  readonly reverts = new Map<string, Reverts>()

  constructor(agent: Agent, kube: KubeClient, cache: Cache, logger: Logger) {
    this.#agent = agent
    this.#kube = kube
    this.#cache = cache
    this.#logger = logger
  }

  /** Reads Secrets that are unknown or have changed since the last write. True if another client has changed one. */
  async read(signal: AbortSignal): Promise<boolean> {
    const { namespace } = this.#agent.metadata
    let foreign = false
    for (const name of this.#names()) {
      const known = this.#known.get(name)
      const cached = this.#cache.get(namespace, name)?.metadata.resourceVersion
      if (known !== undefined && known.version === cached) continue
      const live = await this.#kube.get<SecretObject>(secretType, namespace, name, { signal })
      if (live !== undefined && !isOwn(this.#agent, live)) throw new ForeignObjectError('Secret', live)
      const next: Known = {
        contents: new Map(
          Object.entries(live?.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64')] as const),
        ),
        annotation: live?.metadata.annotations?.[rolloutAnnotation],
        version: live?.metadata.resourceVersion,
      }
      if (known !== undefined && known.version !== next.version && digestOf(known) !== digestOf(next)) {
        foreign = true
        const { corrections } = this.reverts.get(`Secret/${name}`) ?? { corrections: new Corrections() }
        corrections.add()
        this.reverts.set(`Secret/${name}`, { corrections, manager: live === undefined ? 'unknown' : managerOf(live) })
        this.#logger.info({ secret: `${namespace}/${name}` }, 'Another client has changed a Secret; restoring it.')
      }
      this.#known.set(name, next)
    }
    return foreign
  }

  /** Milliseconds until Secrets may be restored that another client keeps changing. */
  get heldMs(): number {
    return Math.max(0, ...[...this.reverts.values()].map(({ corrections }) => corrections.waitMs()))
  }

  #names(): string[] {
    return [
      ...Array.from({ length: configSlots }, (_, slot) => configSecretName(this.#agent, slot)),
      ...Array.from({ length: secretSlots }, (_, slot) => valuesSecretName(this.#agent, slot)),
    ]
  }

  /** Keys of the shards, and the slot of each. */
  get config(): { readonly slots: ReadonlyMap<string, number>; data(key: string): Buffer | undefined } {
    return this.#placed(configSlots, configSecretName)
  }

  get values(): { readonly slots: ReadonlyMap<string, number>; data(key: string): Buffer | undefined } {
    return this.#placed(secretSlots, valuesSecretName)
  }

  get annotation(): string | undefined {
    return this.#known.get(configSecretName(this.#agent, 0))?.annotation
  }

  #placed(count: number, name: (agent: Agent, slot: number) => string) {
    const slots = new Map<string, number>()
    const contents = new Map<string, Buffer>()
    for (let slot = 0; slot < count; slot++) {
      for (const [key, data] of this.#known.get(name(this.#agent, slot))?.contents ?? []) {
        slots.set(key, slot)
        contents.set(key, data)
      }
    }
    return { slots, data: (key: string) => contents.get(key) }
  }

  /** Writes in an order that keeps the content consistent for agents; returns the number of writes. */
  async write(
    values: readonly SecretContents[],
    shards: readonly SecretContents[],
    annotation: string,
    signal: AbortSignal,
  ): Promise<number> {
    let writes = 0
    // First adds new values to the old ones, because running agents need the old ones until the manifest changes.
    for (const [slot, contents] of values.entries()) {
      writes += await this.#put(valuesSecretName(this.#agent, slot), contents, undefined, signal)
    }
    for (const [slot, contents] of shards.entries()) {
      if (slot > 0) writes += await this.#put(configSecretName(this.#agent, slot), contents, undefined, signal)
    }
    const [first] = shards
    if (first !== undefined) writes += await this.#put(configSecretName(this.#agent, 0), first, annotation, signal)
    return writes
  }

  async #put(
    name: string,
    contents: SecretContents,
    annotation: string | undefined,
    signal: AbortSignal,
  ): Promise<number> {
    const known = this.#known.get(name)
    const wanted: Known = { contents, annotation, version: known?.version }
    // A slot that was never used is not created.
    if (contents.size === 0 && (known === undefined || known.version === undefined)) return 0
    if (known !== undefined && digestOf(known) === digestOf(wanted)) return 0
    const { namespace } = this.#agent.metadata
    const applied = await this.#kube.apply<SecretObject>(
      secretType,
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name,
          ...(namespace === undefined ? {} : { namespace }),
          labels: objectLabels(this.#agent),
          ...(annotation === undefined ? {} : { annotations: { [rolloutAnnotation]: annotation } }),
          ownerReferences: ownedBy(this.#agent),
        },
        type: 'Opaque',
        data: Object.fromEntries([...contents].sort().map(([key, data]) => [key, data.toString('base64')])),
      },
      { signal },
    )
    this.#known.set(name, { ...wanted, version: applied.metadata.resourceVersion })
    this.#cache.expect({ ...applied, apiVersion: 'v1', kind: 'Secret' })
    return 1
  }
}

function digestOf(known: Known): string {
  const hash = createHash('sha256').update(known.annotation ?? '')
  for (const [key, data] of [...known.contents].sort(([left], [right]) => (left < right ? -1 : 1))) {
    hash.update(`\u0000${key}\u0000${data.length}\u0000`).update(data)
  }
  return hash.digest('hex')
}

interface Values {
  /** Version of the object; if it cannot be watched, the time of the read. */
  readonly version: string | number
  readonly data: ReadonlyMap<string, Buffer> | undefined
}

/** Values of users' Secrets and ConfigMaps: read when their version changes, and kept no longer than needed. */
export class ValueReader {
  readonly #kube: KubeClient
  readonly #settings: Pick<OperatorSettings, 'secretsMode'>
  readonly #caches: { readonly Secret: Cache; readonly ConfigMap: Cache }
  readonly #known = new Map<string, Values>()

  constructor(
    kube: KubeClient,
    settings: Pick<OperatorSettings, 'secretsMode'>,
    caches: { readonly Secret: Cache; readonly ConfigMap: Cache },
  ) {
    this.#kube = kube
    this.#settings = settings
    this.#caches = caches
  }

  /** The keys of an object; undefined if it does not exist, or may not be used. */
  async read(
    kind: 'Secret' | 'ConfigMap',
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Buffer> | undefined> {
    const id = `${kind}/${namespace}/${name}`
    const known = this.#known.get(id)
    if (kind === 'Secret' && this.#settings.secretsMode === 'Namespaced') {
      const now = performance.now()
      if (known !== undefined && now - Number(known.version) < unwatchedMs / 2) return known.data
      const data = await this.#get(kind, namespace, name, signal)
      this.#known.set(id, { version: now, data })
      return data
    }
    const cached = this.#caches[kind].get(namespace, name)
    const version = cached?.metadata.resourceVersion
    if (version === undefined || (kind === 'Secret' && !isAllowed(this.#settings, cached))) {
      this.#known.delete(id)
      return undefined
    }
    if (known?.version === version) return known.data
    const data = await this.#get(kind, namespace, name, signal)
    this.#known.set(id, { version, data })
    return data
  }

  async #get(kind: 'Secret' | 'ConfigMap', namespace: string, name: string, signal: AbortSignal) {
    const type = kind === 'Secret' ? secretType : configMapType
    let live: (SecretObject & { readonly binaryData?: Readonly<Record<string, string>> }) | undefined
    try {
      live = await this.#kube.get(type, namespace, name, { signal })
    } catch (error) {
      // A namespace that denies access is treated as if the Secret did not exist.
      if (error instanceof KubeError && error.status === 403) return undefined
      throw error
    }
    if (live === undefined) return undefined
    const data = new Map<string, Buffer>()
    const encoding = kind === 'Secret' ? 'base64' : 'utf8'
    for (const [key, value] of Object.entries(live.data ?? {})) data.set(key, Buffer.from(value, encoding))
    for (const [key, value] of Object.entries(live.binaryData ?? {})) data.set(key, Buffer.from(value, 'base64'))
    return data
  }
}
