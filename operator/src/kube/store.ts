// The store behind a cache: objects by key, indexes, handlers. Reflectors fill it, and it freezes the objects.

import { errorText } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'
import { type KubeObject, keyOf, objectKey, type ResourceType } from '../api/object.ts'
import type { Cache, CacheSubscription, Change, ChangeType, Index } from './cache.ts'

/** How long an older state is ignored after an own write, if the event of the write never arrives. */
const expectationMs = 30_000
/** Number of remembered versions of an object, because the response to a write may arrive after its event. */
const rememberedVersions = 8
/** How long removed objects are remembered, for the same reason: longer than a request can take. */
const rememberRemovedMs = 120_000

interface Entry<T> {
  readonly object: T
  /** The newest version is the last. */
  readonly versions: readonly string[]
}

interface Expectation {
  readonly version: string
  readonly uid: string | undefined
  readonly until: number
}

export class Store<T extends KubeObject> implements Cache<T> {
  readonly type: ResourceType
  readonly #logger: Logger
  readonly #onHandlerError: () => void
  readonly #entries = new Map<string, Entry<T>>()
  readonly #expected = new Map<string, Expectation>()
  /** When objects were removed, by uid, the latest last: the response to a write may also arrive after that event. */
  readonly #removed = new Map<string, number>()
  readonly #indexes = new Map<string, { readonly keysOf: Index<T>; readonly keys: Map<string, Map<string, T>> }>()
  readonly #handlers = new Set<(change: Change<T>) => void>()
  readonly #waiting = new Set<() => void>()
  /** Scopes (a namespace, or all) that wait for their first list. */
  readonly #unsynced: Set<string>

  constructor(type: ResourceType, scopes: readonly string[], logger: Logger, onHandlerError: () => void = () => {}) {
    this.type = type
    this.#logger = logger
    this.#onHandlerError = onHandlerError
    this.#unsynced = new Set(scopes)
  }

  get synced(): boolean {
    return this.#unsynced.size === 0
  }

  get size(): number {
    return this.#entries.size
  }

  get(namespace: string | undefined, name: string): T | undefined {
    return this.#entries.get(objectKey(namespace, name))?.object
  }

  *values(): IterableIterator<T> {
    for (const { object } of this.#entries.values()) yield object
  }

  index(name: string, keysOf: Index<T>): void {
    if (this.#indexes.has(name)) return
    const index = { keysOf, keys: new Map<string, Map<string, T>>() }
    this.#indexes.set(name, index)
    for (const [key, { object }] of this.#entries) addTo(index, key, object)
  }

  find(index: string, key: string): readonly T[] {
    const found = this.#indexes.get(index)
    if (found === undefined) throw new TypeError(`There is no index "${index}" of ${this.type.plural}.`)
    return [...(found.keys.get(key)?.values() ?? [])]
  }

  subscribe(handler: (change: Change<T>) => void): CacheSubscription {
    const store = this
    // Existing objects are reported before any change: this happens within one turn of the loop.
    for (const { object } of this.#entries.values()) this.#call(handler, { type: 'added', object })
    this.#handlers.add(handler)
    return {
      get synced() {
        return store.synced
      },
      [Symbol.dispose]() {
        store.#handlers.delete(handler)
      },
    }
  }

  /** Resolves when the first list of every scope has arrived. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    while (!this.synced) {
      signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
    }
  }

  expect(object: T): void {
    const { uid, resourceVersion: version } = object.metadata
    if (version === undefined) return
    const key = keyOf(object)
    const known = this.#entries.get(key)
    if (known?.versions.includes(version) || this.#removed.has(uid ?? '')) return // its event arrived first
    this.#expected.set(key, { version, uid, until: performance.now() + expectationMs })
    this.#put(key, object)
  }

  // --- For reflectors ---

  /** Adds or updates an object. False if a handler failed. */
  set(object: T): boolean {
    const key = keyOf(object)
    return this.#isHeldBack(key, object) ? true : this.#put(key, object)
  }

  /** An object is gone. */
  remove(object: T): boolean {
    const key = keyOf(object)
    if (this.#isHeldBack(key, object, true)) return true
    return this.#drop(key, object)
  }

  /** The complete list of a scope: objects missing in it were deleted. */
  replace(objects: readonly T[], scope: string, isOfScope: (object: T) => boolean): boolean {
    let fine = true
    const listed = new Set<string>()
    for (const object of objects) {
      const key = keyOf(object)
      listed.add(key)
      this.#expected.delete(key) // a list is as new as any of our writes
      if (!this.#put(key, object)) fine = false
    }
    for (const [key, { object }] of [...this.#entries]) {
      if (listed.has(key) || !isOfScope(object)) continue
      this.#expected.delete(key)
      if (!this.#drop(key, object)) fine = false
    }
    if (this.#unsynced.delete(scope) && this.synced) {
      for (const resolve of this.#waiting) resolve()
      this.#waiting.clear()
    }
    return fine
  }

  #isHeldBack(key: string, object: T, deleted = false): boolean {
    const expected = this.#expected.get(key)
    if (expected === undefined) return false
    const { resourceVersion, uid } = object.metadata
    if (resourceVersion === expected.version || uid !== expected.uid || performance.now() > expected.until || deleted) {
      this.#expected.delete(key)
      return false
    }
    return true
  }

  #noteRemoved({ metadata: { uid } }: T): void {
    const now = performance.now()
    for (const [old, at] of this.#removed) {
      if (now - at < rememberRemovedMs) break
      this.#removed.delete(old)
    }
    if (uid !== undefined) this.#removed.set(uid, now)
  }

  #put(key: string, given: T): boolean {
    const entry = this.#entries.get(key)
    const version = given.metadata.resourceVersion ?? ''
    const previous = entry?.object
    if (previous !== undefined && version !== '' && entry?.versions.at(-1) === version) return true
    const object = frozen(stripped(given))
    const versions = [...(entry?.object.metadata.uid === object.metadata.uid ? (entry?.versions ?? []) : []), version]
    this.#entries.set(key, { object, versions: versions.slice(-rememberedVersions) })
    for (const index of this.#indexes.values()) {
      if (previous !== undefined) removeFrom(index, key, previous)
      addTo(index, key, object)
    }
    if (object.metadata.uid !== undefined) this.#removed.delete(object.metadata.uid)
    // Deleted and recreated in between: this is another object.
    if (previous !== undefined && previous.metadata.uid !== object.metadata.uid) {
      this.#noteRemoved(previous)
      const fine = this.#notify('deleted', previous)
      return this.#notify('added', object) && fine
    }
    return this.#notify(previous === undefined ? 'added' : 'changed', object, previous)
  }

  #drop(key: string, last: T): boolean {
    const entry = this.#entries.get(key)
    if (entry === undefined) return true
    this.#entries.delete(key)
    this.#noteRemoved(entry.object)
    for (const index of this.#indexes.values()) removeFrom(index, key, entry.object)
    return this.#notify('deleted', frozen(stripped(last)), entry.object)
  }

  #notify(type: ChangeType, object: T, previous?: T): boolean {
    let fine = true
    for (const handler of this.#handlers) if (!this.#call(handler, { type, object, previous })) fine = false
    return fine
  }

  #call(handler: (change: Change<T>) => void, change: Change<T>): boolean {
    try {
      handler(change)
      return true
    } catch (error) {
      this.#onHandlerError()
      const { kind } = this.type
      this.#logger.error(
        { error: errorText(error), kind, object: keyOf(change.object) },
        'A handler of changes failed.',
      )
      return false
    }
  }
}

interface KeyIndex<T extends KubeObject> {
  readonly keysOf: Index<T>
  readonly keys: Map<string, Map<string, T>>
}

function addTo<T extends KubeObject>(index: KeyIndex<T>, key: string, object: T): void {
  for (const name of index.keysOf(object)) {
    const found = index.keys.get(name)
    if (found === undefined) index.keys.set(name, new Map([[key, object]]))
    else found.set(key, object)
  }
}

function removeFrom<T extends KubeObject>(index: KeyIndex<T>, key: string, object: T): void {
  for (const name of index.keysOf(object)) {
    const found = index.keys.get(name)
    found?.delete(key)
    if (found?.size === 0) index.keys.delete(name)
  }
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Removes parts that use memory and that no controller reads. */
function stripped<T extends KubeObject>(object: T): T {
  const { managedFields, annotations, ...metadata } = object.metadata
  if (managedFields === undefined && annotations?.[lastApplied] === undefined) return object
  const { [lastApplied]: _, ...kept } = annotations ?? {}
  return { ...object, metadata: { ...metadata, ...(annotations === undefined ? {} : { annotations: kept }) } }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) frozen(member)
  }
  return value
}
