// The state that all log sources of one node share across pipelines: one API connection with its watches, one copy of the pods'
// metadata, one watch of the log folders, and the chunks just read from a file. Each source has its own position. The hub, not the
// options of a source, decides which pods it may read.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { CurrentKeys, SharedKeys } from '../../bytes/current-keys.ts'
import { pause } from '../../clock.ts'
import type { RateLimitOptions, Subscription } from '../../component.ts'
import { spaceOf } from '../../data-dir.ts'
import { ApiServerClient } from '../../kube/client.ts'
import type { KubeTarget } from '../../kube/config.ts'
import type { DiscoveryHooks, DiscoveryRules, Finder } from '../../tailing/discovery.ts'
import type { TailFiles } from '../../tailing/files.ts'
import { SharedDiscovery } from '../../tailing/shared-discovery.ts'
import { SharedReads } from '../../tailing/shared-reads.ts'
import { chunkPool } from '../../tailing/slab.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import type { Logger } from '../../telemetry/logger.ts'
import { version } from '../../version.ts'
import { KubeAccess } from './access.ts'
import { Limiter } from './limiter.ts'
import { type Pod, PodMetadata, parseFolder } from './pod-metadata.ts'
import { compileSelection } from './selection.ts'

export interface HubOptions {
  readonly node: string
  readonly target: KubeTarget
  /** The kubelet of the node, if pods are requested from it. */
  readonly kubelet?: KubeTarget | undefined
  /** The hub may only read these namespaces, each by name, and no cluster-wide objects. All if omitted. */
  readonly namespaces?: readonly string[] | undefined
  readonly logsDir: string
  readonly dataDir: string
  readonly logger: Logger
  readonly events: ComponentEvents
  /** Maximum number of unread rotated files of a container for one pipeline. */
  readonly maxRotatedFiles?: number | undefined
  /** Free fraction of the disk with the logs, from 0 to 1. */
  readonly freeSpace?: (() => number) | undefined
  /** Delay between the start of the first source and the first API request. */
  readonly startDelayMs?: number | undefined
  /** File operations of the tailers; those of the disk by default. */
  readonly files?: TailFiles | undefined
}

/** Below this the kubelet begins to evict pods. */
const minFree = 0.1

interface Reader {
  readonly namespaces: ReadonlySet<string> | undefined
  changed(folder: string | undefined): void
}

/** The pods that a subscription permits. */
export interface Selection {
  pod(folder: string): boolean
  container(folder: string, name: string): boolean
  /** True if the pod is no longer selected, so an open file must be closed. */
  excludes(folder: string): boolean
}

export class PodLogHub {
  readonly node: string
  readonly root: string
  readonly cursorsDir: string
  readonly maxRotatedFiles: number | undefined
  readonly files: TailFiles | undefined
  /** Removed files that are still open keep their disk space, so they must be closed under pressure. */
  isDiskFull = false
  readonly client: ApiServerClient
  /** Deleted pods stay known for the longest time that any source requests. */
  readonly metadata = new PodMetadata()
  readonly access: KubeAccess
  readonly pool = chunkPool()
  /** Pipelines at the same position of a file read it once. */
  readonly reads = new SharedReads(this.pool)
  readonly #kubelet: ApiServerClient | undefined
  readonly #discovery: SharedDiscovery
  readonly #readers = new Set<Reader>()
  /** Tables by the allowed namespaces; a table is freed with the last source that uses it. */
  readonly #keys = new Map<string, WeakRef<SharedKeys>>()
  /** Limiters by name; a limiter is freed with the last source that uses it. */
  readonly #limiters = new Map<string, { readonly key: string; readonly limiter: WeakRef<Limiter> }>()
  readonly #ending = new AbortController()
  #started: { readonly listed: Promise<void>; readonly ended: Promise<void> } | undefined
  #forget: NodeJS.Timeout | undefined
  readonly #freeSpace: () => number
  readonly #startDelayMs: number
  readonly #events: ComponentEvents

  constructor(options: HubOptions) {
    this.node = options.node
    this.root = resolve(options.logsDir)
    this.cursorsDir = join(options.dataDir, 'cursors')
    this.maxRotatedFiles = options.maxRotatedFiles
    this.files = options.files
    this.#freeSpace = options.freeSpace ?? (() => freePart(this.root))
    this.#startDelayMs = options.startDelayMs ?? 0
    this.#events = options.events
    this.client = new ApiServerClient(options.target, `Penstock/${version}`)
    this.#kubelet =
      options.kubelet === undefined ? undefined : new ApiServerClient(options.kubelet, `Penstock/${version}`)
    this.#discovery = new SharedDiscovery(this.root)
    this.access = new KubeAccess(
      this.client,
      {
        node: options.node,
        namespaces: true,
        nodeLabels: true,
        fromCache: true,
        fieldSelector: undefined,
        labelSelector: undefined,
        namespaceLabelSelector: undefined,
        within: options.namespaces,
        leftOutFile: join(options.dataDir, 'left-out.json'),
        keptPodsDir: join(options.dataDir, 'pods'),
        kubelet: this.#kubelet,
      },
      this.metadata,
      { logger: options.logger, events: options.events },
      (folder) => this.#changed(folder),
    )
  }

  /** The first call starts watching pods, namespaces and the node; resolves when they are known. */
  listed(): Promise<void> {
    if (this.#started === undefined) {
      const access = this.#start()
      this.#started = {
        listed: access.then((started) => started?.listed),
        ended: access.then((started) => started?.ended),
      }
    }
    return this.#started.listed
  }

  async #start() {
    const { signal } = this.#ending
    if (this.#startDelayMs > 0) await pause(this.#startDelayMs, signal)
    if (signal.aborted) return undefined
    this.#forget = setInterval(() => this.#expire(), 1000)
    return this.access.start(signal)
  }

  find(rules: DiscoveryRules, hooks: DiscoveryHooks): Finder {
    return this.#discovery.open(rules, hooks)
  }

  /**
   * Calls a reader back with each folder whose pod has changed, or with undefined if any may have. Returns a function that ends
   * this.
   */
  follow(subscription: Subscription, changed: (folder: string | undefined) => void): () => void {
    const { namespaces } = subscription
    const reader = { namespaces: namespaces === undefined ? undefined : new Set(namespaces), changed }
    this.#readers.add(reader)
    return () => {
      this.#readers.delete(reader)
    }
  }

  select(subscription: Subscription): Selection {
    const { access, metadata } = this
    const namespaces = subscription.namespaces === undefined ? undefined : new Set(subscription.namespaces)
    const selection = compileSelection(subscription)
    const matches = (pod: Pod | undefined, namespace: string): boolean =>
      selection.namespace(namespace, metadata.namespaceLabels(namespace) ?? pod?.namespaceLabels) && selection.pod(pod)
    return {
      pod(folder) {
        const namespace = parseFolder(folder)?.namespace
        if (namespace === undefined || (namespaces !== undefined && !namespaces.has(namespace))) return false
        return access.wants(folder) && matches(metadata.pod(folder), namespace)
      },
      container(folder, name) {
        return selection.container(name, metadata.pod(folder)?.excludedContainers)
      },
      excludes(folder) {
        const pod = metadata.pod(folder)
        // Unknown labels exclude nothing.
        return pod?.labels !== undefined && !matches(pod, pod.namespace)
      },
    }
  }

  /**
   * Interned names of members for a source. All sources with the same namespaces share one table, so that other sources cannot fill
   * it.
   */
  keys({ namespaces }: Subscription): CurrentKeys {
    for (const [scope, table] of this.#keys) if (table.deref() === undefined) this.#keys.delete(scope)
    const scope = namespaces === undefined ? '' : [...namespaces].sort().join(' ')
    const known = this.#keys.get(scope)?.deref()
    if (known !== undefined) return new CurrentKeys(known)
    const shared = new SharedKeys()
    this.#keys.set(scope, new WeakRef(shared))
    return new CurrentKeys(shared)
  }

  /** The shared limiter of a name; a changed limit starts a new one. */
  limiter(name: string, options: RateLimitOptions): Limiter {
    const key = JSON.stringify([options.lines, options.bytes, options.onLimit])
    for (const [each, { limiter }] of this.#limiters) if (limiter.deref() === undefined) this.#limiters.delete(each)
    const known = this.#limiters.get(name)
    const shared = known?.key === key ? known.limiter.deref() : undefined
    if (shared !== undefined) return shared
    const limiter = new Limiter(options)
    this.#limiters.set(name, { key, limiter: new WeakRef(limiter) })
    return limiter
  }

  async close(): Promise<void> {
    clearInterval(this.#forget)
    this.#ending.abort()
    this.#discovery.close()
    await this.client.close()
    await this.#kubelet?.close()
    await this.#started?.ended
  }

  #changed(folder: string | undefined): void {
    const namespace = folder === undefined ? undefined : parseFolder(folder)?.namespace
    for (const reader of this.#readers) {
      if (namespace === undefined || reader.namespaces === undefined || reader.namespaces.has(namespace)) {
        reader.changed(folder)
      }
    }
  }

  #expire(): void {
    this.isDiskFull = this.#freeSpace() < minFree
    this.reads.expire()
    this.#events.gauge('shared_read_bytes', this.reads.bytes)
    for (const folder of this.metadata.expire(Date.now())) {
      if (existsSync(`${this.root}/${folder}`)) this.access.recheck(folder, () => this.#changed(folder))
    }
    this.access.forget((folder) => existsSync(`${this.root}/${folder}`))
  }
}

function freePart(path: string): number {
  const space = spaceOf(path)
  return space === undefined ? 1 : space.available / space.size
}
