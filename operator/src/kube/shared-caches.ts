// One store and its reflectors for each type and selection, shared by all users.

import type { Logger } from '@penstock/agent/telemetry'
import { Counter, Gauge, type Registry } from 'prom-client'
import { group, type KubeObject, type ResourceType } from '../api/object.ts'
import type { Cache, CacheOptions, Caches } from './cache.ts'
import { type KubeClient, senderOf } from './client.ts'
import { monotonicNow } from './clock.ts'
import { Reflector } from './reflector.ts'
import { namespaceType } from './resource-types.ts'
import { Store } from './store.ts'

interface Shared {
  readonly store: Store<KubeObject>
  readonly reflectors: readonly Reflector<KubeObject>[]
}

export interface SharedCachesOptions {
  readonly kube: KubeClient
  readonly logger: Logger
  readonly metrics: Registry
  /** Ends all reflectors. */
  readonly signal: AbortSignal
  /** Namespaces to which caches of namespaced types are limited; the caches of our Cluster kinds are then empty. */
  readonly namespaces?: readonly string[] | undefined
  /**
   * Whether to watch only objects that Roles can grant: these Namespaces one by one, and no other cluster-wide object.
   */
  readonly rolesOnly?: boolean
}

/** Time without progress after which a reflector counts as stuck. */
const stuckMs = 15 * 60_000

export class SharedCaches implements Caches {
  readonly #options: SharedCachesOptions
  readonly #shared = new Map<string, Shared>()
  readonly #relists: Counter
  readonly #errors: Counter

  constructor(options: SharedCachesOptions) {
    this.#options = options
    const registers = [options.metrics]
    const labelNames = ['resource']
    this.#relists = new Counter({
      name: 'penstock_reflector_relists_total',
      help: 'Lists after the first one.',
      labelNames,
      registers,
    })
    this.#errors = new Counter({
      name: 'penstock_reflector_errors_total',
      help: 'Failures, of handlers too.',
      labelNames,
      registers,
    })
    const shared = this.#shared
    for (const [name, help, member] of [
      ['list', 'When the last list was complete, in seconds since the epoch.', 'lastList'],
      ['event', 'When the last event arrived, in seconds since the epoch.', 'lastEvent'],
      ['bookmark', 'When the last bookmark arrived, in seconds since the epoch.', 'lastBookmark'],
    ] as const) {
      new Gauge({
        name: `penstock_reflector_last_${name}_timestamp_seconds`,
        help,
        labelNames,
        registers,
        collect() {
          for (const { store, reflectors } of shared.values()) {
            if (reflectors.length === 0) continue
            const newest = Math.max(...reflectors.map((reflector) => reflector.liveness[member]))
            this.set({ resource: store.type.plural }, newest / 1000)
          }
        },
      })
    }
    new Gauge({
      name: 'penstock_cache_objects',
      help: 'Objects in a cache.',
      labelNames,
      registers,
      collect() {
        for (const { store } of shared.values()) this.set({ resource: store.type.plural }, store.size)
      },
    })
  }

  cache<T extends KubeObject = KubeObject>(type: ResourceType, options: CacheOptions = {}): Cache<T> {
    const key = JSON.stringify([
      type.group,
      type.version,
      type.plural,
      options.namespace,
      options.namespaces,
      options.labelSelector,
      options.fieldSelector,
      options.metadataOnly,
      options.shape?.name,
    ])
    let known = this.#shared.get(key)
    if (known === undefined) {
      known = this.#start(type, options)
      this.#shared.set(key, known)
    }
    return known.store as unknown as Cache<T>
  }

  async synced(signal: AbortSignal): Promise<void> {
    // Other parts may request caches while these are being filled.
    for (let waited = -1; waited !== this.#shared.size; ) {
      waited = this.#shared.size
      await Promise.all([...this.#shared.values()].map(({ store }) => store.whenSynced(signal)))
    }
  }

  get isSynced(): boolean {
    return this.unsynced.length === 0
  }

  /** Resources whose first list has not arrived yet. */
  get unsynced(): readonly string[] {
    const waiting = [...this.#shared.values()].filter(({ store }) => !store.synced)
    return [...new Set(waiting.map(({ store }) => store.type.plural))]
  }

  /** Resources whose reflectors have made no progress for 15 minutes. */
  stuck(now = monotonicNow()): readonly string[] {
    return [...this.#shared.values()]
      .filter(({ reflectors }) => reflectors.some(({ liveness }) => now - liveness.lastProgress > stuckMs))
      .map(({ store }) => store.type.plural)
  }

  /** The watched scopes: namespaces, or an empty name for all. */
  #scopes(type: ResourceType, { namespace, namespaces = this.#options.namespaces }: CacheOptions): readonly string[] {
    if (namespace !== undefined) return [namespace]
    if (type.namespaced) return namespaces ?? ['']
    if (this.#options.rolesOnly === true) return type === namespaceType ? (namespaces ?? []) : []
    return this.#options.namespaces !== undefined && type.group === group ? [] : ['']
  }

  #start(type: ResourceType, options: CacheOptions): Shared {
    const { kube, logger, signal, rolesOnly } = this.#options
    const scopes = this.#scopes(type, options)
    const labels = { resource: type.plural }
    const store = new Store<KubeObject>(type, scopes, logger, () => this.#errors.inc(labels))
    const reflectors = scopes.map(
      (scope) =>
        new Reflector<KubeObject>({
          sender: senderOf(kube, `reflector/${type.plural}`),
          type,
          store,
          logger,
          ...(rolesOnly === true && type === namespaceType ? { name: scope } : {}),
          namespace: scope === '' || !type.namespaced ? undefined : scope,
          labelSelector: options.labelSelector,
          fieldSelector: options.fieldSelector,
          metadataOnly: options.metadataOnly === true,
          shape: options.shape,
          onRelist: () => this.#relists.inc(labels),
          onError: () => this.#errors.inc(labels),
        }),
    )
    for (const reflector of reflectors) {
      // It only ends with the signal; any other failure is a bug that must be visible.
      reflector.run(signal).catch((error: unknown) => logger.error({ error, ...labels }, 'A reflector has ended.'))
    }
    return { store, reflectors }
  }
}
