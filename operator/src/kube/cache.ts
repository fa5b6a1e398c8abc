// The interface of a cache: the newest known state of all objects of a type, found by key or index, and a notice of every change.
// Objects are frozen. A reconcile reads caches; it never trusts the change that woke it.

import type { KubeObject, ResourceType } from '../api/object.ts'

export type ChangeType = 'added' | 'changed' | 'deleted'

export interface Change<T extends KubeObject> {
  readonly type: ChangeType
  /** The object as it is now; for `deleted` as it was last. */
  readonly object: T
  readonly previous?: T | undefined
}

export interface CacheSubscription extends Disposable {
  /** Whether every object that was there at the start has been handed over. */
  readonly synced: boolean
}

export type Index<T extends KubeObject> = (object: T) => readonly string[]

export interface Cache<T extends KubeObject = KubeObject> {
  readonly type: ResourceType
  readonly synced: boolean
  readonly size: number
  get(namespace: string | undefined, name: string): T | undefined
  values(): IterableIterator<T>
  /** Names an index; the same name again is the same index. */
  index(name: string, keysOf: Index<T>): void
  find(index: string, key: string): readonly T[]
  /** Hears of every object that is there, as `added`, and then of each change. A handler that throws is counted and called no more for that change. */
  subscribe(handler: (change: Change<T>) => void): CacheSubscription
  /** Stores the result of an own write, so that the operator never acts on an older state. */
  expect(object: T): void
}

/** The part of each object to keep; the whole object if omitted. */
export interface CacheShape {
  /** Caches of one type whose shapes have one name are the same cache. */
  readonly name: string
  of(object: KubeObject): KubeObject
}

export interface CacheOptions {
  /** Absent: all namespaces that are watched. */
  readonly namespace?: string
  /** In place of the namespaces that are watched. */
  readonly namespaces?: readonly string[]
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Only metadata is kept; for Secrets, ConfigMaps, Namespaces and Pods. */
  readonly metadataOnly?: boolean
  readonly shape?: CacheShape
}

/** One shared cache for each (type, options), with many handlers. */
export interface Caches {
  cache<T extends KubeObject = KubeObject>(type: ResourceType, options?: CacheOptions): Cache<T>
  /** Resolves when every cache asked for so far has its first list. */
  synced(signal: AbortSignal): Promise<void>
}
