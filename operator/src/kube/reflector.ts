// A reflector keeps a store equal to the API server's state: one list, then a watch as long as it lasts, and again. It never
// stops by itself: every failure is counted, and retried after a wait.
// The informer of @kubernetes/client-node is not used: it requests neither streamed lists nor bookmarks, so it holds the whole list as text
// and lists again after an expired version.

import type { IncomingMessage } from 'node:http'
import { errorText } from '@penstock/agent/errors'
import { BrokenStreamError, bodyText, watchLines, watchPathOf } from '@penstock/agent/kube'
import { Backoff, pause } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import { apiVersionOf, type KubeObject, type ResourceType } from '../api/object.ts'
import type { CacheShape } from './cache.ts'
import {
  errorOf,
  KubeError,
  metadataList,
  metadataObject,
  pathOf,
  queryOf,
  type Sender,
  statusError,
} from './client.ts'
import { monotonicNow } from './clock.ts'
import type { Store } from './store.ts'

export interface ReflectorOptions<T extends KubeObject> {
  readonly sender: Sender
  readonly type: ResourceType
  readonly store: Store<T>
  readonly namespace?: string | undefined
  /** The only watched object, of a cluster-scoped type, for accounts with a right to this name only. */
  readonly name?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly metadataOnly?: boolean
  readonly shape?: CacheShape | undefined
  readonly logger: Logger
  readonly onRelist?: () => void
  readonly onError?: () => void
  /** Maximum length of a line of a watch. */
  readonly maxLineBytes?: number
  /** Duration of a watch in seconds. */
  readonly watchSeconds?: () => number
  /** Additional seconds of silence after which a watch is abandoned. */
  readonly silenceSeconds?: number
}

/** When a reflector last received data, for probes and metrics; milliseconds since the epoch, 0 for never. */
export interface Liveness {
  lastList: number
  lastEvent: number
  lastBookmark: number
  relists: number
  /** Time of the last sign of a working connection, such as the response headers of a watch, on a monotonic clock. */
  lastProgress: number
}

const pageSize = 500
const listTimeoutMs = 60_000
/** A watch that ends sooner, without news, was not ended by its time limit. */
const minWatchMs = 1_000

/** Whether the server no longer has a version, or does not have it yet: its data were restored from a backup. */
function isExpired(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false
  return error.status === 410 || error.reason === 'Expired' || error.causes.includes('ResourceVersionTooLarge')
}

export class Reflector<T extends KubeObject> {
  readonly liveness: Liveness = { lastList: 0, lastEvent: 0, lastBookmark: 0, relists: 0, lastProgress: monotonicNow() }
  readonly #options: ReflectorOptions<T>
  readonly #scope: string
  readonly #what: string
  #version: string | undefined
  /** Whether the next list must be up to date, because the known state is expired or cannot be trusted. */
  #expired = false
  #streams = true
  /** Whether the last streamed list was not completed: servers behind some proxies, or with an old etcd, never send its end. */
  #isIncomplete = false
  #running: Promise<void> | undefined

  constructor(options: ReflectorOptions<T>) {
    this.#options = options
    this.#scope = options.namespace ?? options.name ?? ''
    const where = options.namespace === undefined ? ` ${options.name ?? ''}` : ` in ${options.namespace}`
    this.#what = `${options.type.plural}${this.#scope === '' ? '' : where}`
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#loop(signal)
    return this.#running
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ initialMs: 800, maxMs: 30_000, jitter: 'full', resetMs: 120_000 })
    while (!signal.aborted) {
      const [began, version] = [monotonicNow(), this.#version]
      try {
        await (version === undefined ? this.#list(signal) : this.#watch(signal))
        // A proxy may end every watch at once: the next one must not follow immediately.
        const isIdle = version !== undefined && this.#version === version
        if (isIdle && monotonicNow() - began < minWatchMs) await pause(backoff.next(), signal)
      } catch (error) {
        if (signal.aborted) return
        this.#options.onError?.()
        const facts = { resource: this.#what, error: errorText(error) }
        const waitMs = Math.max(backoff.next(), (error instanceof KubeError && error.retryAfterMs) || 0)
        if (isExpired(error)) {
          this.#options.logger.info(facts, 'The watched version has expired; listing again.')
          this.#forget()
        } else {
          if (error instanceof BrokenStreamError) this.#forget()
          this.#options.logger.warn(
            { ...facts, wait_ms: Math.round(waitMs) },
            'Watching a resource failed; trying again.',
          )
        }
        await pause(waitMs, signal)
      }
    }
  }

  #forget(): void {
    this.#version = undefined
    this.#expired = true
  }

  // --- The initial list ---

  async #list(signal: AbortSignal): Promise<void> {
    if (this.liveness.lastList > 0) {
      this.liveness.relists++
      this.#options.onRelist?.()
    }
    if (this.#streams && !this.#isIncomplete) {
      try {
        return await this.#watch(signal, true)
      } catch (error) {
        // Servers before 1.32, or with the feature disabled, reject the parameter.
        if (!(error instanceof KubeError) || ![400, 422].includes(error.status)) throw error
        this.#streams = false
      }
    }
    await (this.#options.name === undefined ? this.#listPages(signal) : this.#listOne(signal))
    this.#isIncomplete = false
  }

  async #listOne(signal: AbortSignal): Promise<void> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)])
    const accept = this.#options.metadataOnly === true ? metadataObject : undefined
    const answer = await this.#options.sender.send('GET', this.#path(), undefined, limited, { accept })
    if (answer.statusCode !== 200) throw await errorOf(answer, this.#what)
    const object = JSON.parse(await bodyText(answer)) as T
    signal.throwIfAborted()
    this.#replace([this.#typed(object)], object.metadata.resourceVersion ?? '')
  }

  async #listPages(signal: AbortSignal): Promise<void> {
    const items: T[] = []
    let next: string | undefined
    let paged = true
    for (;;) {
      const query = queryOf({
        ...this.#selectors(),
        limit: paged ? pageSize : undefined,
        continue: next,
        // Any state is sufficient at first; after a gap only the newest. A continued list has its own version.
        resourceVersion: next === undefined ? (this.#expired ? undefined : '0') : undefined,
      })
      const limited = AbortSignal.any([signal, AbortSignal.timeout(listTimeoutMs)])
      const accept = this.#options.metadataOnly === true ? metadataList : undefined
      const answer = await this.#options.sender.send('GET', this.#path() + query, undefined, limited, { accept })
      if (answer.statusCode !== 200) {
        const error = await errorOf(answer, `list of ${this.#what}`)
        if (error.status !== 410 || next === undefined) throw error
        // The pages read so far belong to an expired state.
        items.length = 0
        next = undefined
        paged = false
        continue
      }
      const page = JSON.parse(await bodyText(answer)) as {
        metadata: { continue?: string; resourceVersion: string }
        items: readonly T[]
      }
      for (const item of page.items) items.push(this.#typed(item))
      this.liveness.lastProgress = monotonicNow()
      next = page.metadata.continue
      if (next === undefined || next === '') {
        signal.throwIfAborted()
        this.#replace(items, page.metadata.resourceVersion)
        return
      }
    }
  }

  #replace(items: readonly T[], version: string): void {
    const { namespace, name, store } = this.#options
    this.liveness.lastList = Date.now()
    const isOurs = ({ metadata }: T) =>
      (namespace === undefined || metadata.namespace === namespace) && (name === undefined || metadata.name === name)
    const fine = store.replace(items, this.#scope, isOurs)
    this.#version = version
    this.#expired = false
    if (!fine) throw new BrokenStreamError('a handler failed')
  }

  // --- Watches ---

  /** With `initial`, the stream begins with every existing object. */
  async #watch(signal: AbortSignal, initial = false): Promise<void> {
    const seconds = this.#options.watchSeconds?.() ?? 300 + Math.floor(Math.random() * 300)
    const query = queryOf({
      ...this.#selectors(),
      watch: true,
      allowWatchBookmarks: true,
      timeoutSeconds: seconds,
      ...(initial
        ? {
            sendInitialEvents: true,
            resourceVersionMatch: 'NotOlderThan',
            resourceVersion: this.#expired ? undefined : '0',
          }
        : { resourceVersion: this.#version }),
    })
    const abort = new AbortController()
    const joined = AbortSignal.any([signal, abort.signal])
    const longMs = (seconds + (this.#options.silenceSeconds ?? 30)) * 1000
    const accept = this.#options.metadataOnly === true ? metadataObject : undefined
    // Until the response headers arrive, a list's time limit applies, and then that of silence.
    let silence = setTimeout(() => abort.abort(new Error('no answer in time')), listTimeoutMs)
    let answer: IncomingMessage | undefined
    const state: { listed: T[] | undefined } = { listed: initial ? [] : undefined }
    try {
      answer = await this.#options.sender.send('GET', this.#watchPath() + query, undefined, joined, { accept })
      if (answer.statusCode !== 200) throw await errorOf(answer, `watch of ${this.#what}`)
      this.liveness.lastProgress = monotonicNow()
      const heard = () => {
        clearTimeout(silence)
        const silenceMs = state.listed === undefined ? longMs : Math.min(longMs, listTimeoutMs)
        silence = setTimeout(() => abort.abort(new Error(`silent for ${silenceMs / 1000} s`)), silenceMs)
      }
      for await (const line of watchLines(answer, this.#options.maxLineBytes, heard)) {
        if (signal.aborted) break
        const isList = state.listed !== undefined
        this.#take(line, state)
        if (isList && state.listed === undefined) heard()
      }
      // The initial stream ended early, so its objects are incomplete.
      if (state.listed !== undefined) throw new Error('the list ended before it was complete')
    } catch (error) {
      this.#isIncomplete = state.listed !== undefined && answer?.statusCode === 200
      if (abort.signal.aborted && !signal.aborted) throw new Error(errorText(abort.signal.reason), { cause: error })
      throw error
    } finally {
      clearTimeout(silence)
      answer?.destroy()
    }
  }

  #take(line: string, state: { listed: T[] | undefined }): void {
    let event: { type: string; object: T }
    try {
      event = JSON.parse(line) as { type: string; object: T }
    } catch (error) {
      throw new BrokenStreamError('a line is not valid JSON', { cause: error })
    }
    const now = Date.now()
    this.liveness.lastProgress = monotonicNow()
    const { store } = this.#options
    const version = event.object.metadata?.resourceVersion
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED': {
        this.liveness.lastEvent = now
        const object = this.#typed(event.object)
        if (state.listed !== undefined) {
          state.listed.push(object)
          return
        }
        this.#version = version
        const fine = event.type === 'DELETED' ? store.remove(object) : store.set(object)
        if (!fine) throw new BrokenStreamError('a handler failed')
        return
      }
      case 'BOOKMARK':
        this.liveness.lastBookmark = now
        if (state.listed === undefined) {
          this.#version = version
        } else if (event.object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
          const { listed } = state
          state.listed = undefined
          this.#replace(listed, version ?? '')
        }
        return
      case 'ERROR': {
        const { code = 500 } = event.object as unknown as { code?: number }
        throw statusError(code, JSON.stringify(event.object), `watch of ${this.#what}`)
      }
      default:
        throw new BrokenStreamError(`unknown event type ${JSON.stringify(event.type)}`)
    }
  }

  /** List items have no kind, and metadata has a different one. A shape is a part of its type. */
  #typed(object: T): T {
    const { type, shape } = this.#options
    const apiVersion = apiVersionOf(type)
    const kept = shape === undefined ? object : (shape.of(object) as T)
    if (kept.apiVersion === apiVersion && kept.kind === type.kind) return kept
    return { ...kept, apiVersion, kind: type.kind }
  }

  #path(): string {
    return pathOf(this.#options.type, this.#options.namespace, this.#options.name)
  }

  #watchPath(): string {
    return this.#options.name === undefined ? this.#path() : watchPathOf(this.#path())
  }

  #selectors() {
    const { labelSelector, fieldSelector } = this.#options
    return { labelSelector, fieldSelector }
  }
}
