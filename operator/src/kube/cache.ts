// The interface of a cache: the newest known state of all objects of a type, found by key or index, and a notification of every
// change. Objects are frozen. A reconcile reads caches; it never relies on the change that triggered it.

import type { KubeObject, ResourceType } from '../api/object.ts'

export type ChangeType = 'added' | 'changed' | 'deleted'

export interface Change<T extends KubeObject> {
  readonly type: ChangeType
  /** The current object; for `deleted` its last state. */
  readonly object: T
  readonly previous?: T | undefined
}

export interface CacheSubscription extends Disposable {
  /** Whether every object that existed at the start has been reported. */
  readonly synced: boolean
}

export type Index<T extends KubeObject> = (object: T) => readonly string[]

export interface Cache<T extends KubeObject = KubeObject> {
  readonly type: ResourceType
  readonly synced: boolean
  readonly size: number
  get(namespace: string | undefined, name: string): T | undefined
  values(): IterableIterator<T>
  /** Defines an index; defining it again has no effect. */
  index(name: string, keysOf: Index<T>): void
  find(index: string, key: string): readonly T[]
  /**
   * Reports every existing object as `added`, and then each change. If a handler throws, this is counted, and the handler is not called
   * again for that change.
   */
  subscribe(handler: (change: Change<T>) => void): CacheSubscription
  /** Stores the result of an own write, so that the operator never acts on an older state. */
  expect(object: T): void
}

/** The part of each object to keep; the whole object if omitted. */
export interface CacheShape {
  /** Caches of one type with the same shape name are shared. */
  readonly name: string
  of(object: KubeObject): KubeObject
}

export interface CacheOptions {
  /** Absent: all watched namespaces. */
  readonly namespace?: string
  /** Overrides the watched namespaces. */
  readonly namespaces?: readonly string[]
  readonly labelSelector?: string
  readonly fieldSelector?: string
  /** Keeps only metadata; for Secrets, ConfigMaps, Namespaces and Pods. */
  readonly metadataOnly?: boolean
  readonly shape?: CacheShape
}

/** One shared cache for each (type, options), with many handlers. */
export interface Caches {
  cache<T extends KubeObject = KubeObject>(type: ResourceType, options?: CacheOptions): Cache<T>
  /** Resolves when every cache requested so far has its first list. */
  synced(signal: AbortSignal): Promise<void>
}
