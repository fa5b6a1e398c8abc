// What a controller asks of the API server. Every request has a time limit, waits its turn in the client's flow control and names
// its controller in the User-Agent. Only this room speaks to the API server.

import type { KubeObject, ResourceType } from '../api/object.ts'

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined
  /** 10 s if not given; lists 60 s. */
  readonly timeoutMs?: number | undefined
}

export interface ListOptions extends RequestOptions {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly metadataOnly?: boolean | undefined
}

export interface ApplyOptions extends RequestOptions {
  /** `penstock-operator` if not given. */
  readonly fieldManager?: string | undefined
  /** Takes fields over from other managers; yes if not given. */
  readonly force?: boolean | undefined
  readonly subresource?: 'status' | 'scale' | undefined
  readonly dryRun?: boolean | undefined
}

export interface DeleteOptions extends RequestOptions {
  /** Deletes only the object with this uid. */
  readonly uid?: string | undefined
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan' | undefined
}

export interface KubeClient {
  /** The same client under the name of a controller, as flow control and User-Agent show it. */
  as(controller: string): KubeClient
  /** Undefined when it is not there. */
  get<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options?: RequestOptions,
  ): Promise<T | undefined>
  /** All objects, page by page, past every cache. */
  list<T extends KubeObject>(type: ResourceType, options?: ListOptions): Promise<readonly T[]>
  create<T extends KubeObject>(
    type: ResourceType,
    object: T,
    options?: RequestOptions & { readonly dryRun?: boolean },
  ): Promise<T>
  /** Server-side apply of the fields that are ours. */
  apply<T extends KubeObject>(type: ResourceType, object: T, options?: ApplyOptions): Promise<T>
  /** A JSON merge patch, for the few places where a field must go that is not ours. */
  patch<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: object,
    options?: RequestOptions,
  ): Promise<T>
  /** True when there was something to delete. */
  delete(type: ResourceType, namespace: string | undefined, name: string, options?: DeleteOptions): Promise<boolean>
  /** Any other request; `body` is sent as JSON. Gives the parsed answer. */
  request<T>(
    method: string,
    path: string,
    body?: unknown,
    options?: RequestOptions & { readonly contentType?: string },
  ): Promise<T>
  /** Whether the API server serves a type now; looked up again every 5 minutes. */
  serves(type: ResourceType, options?: RequestOptions): Promise<boolean>
}

/** An answer of the API server that is not a success. */
export class KubeError extends Error {
  readonly status: number
  /** `NotFound`, `Conflict`, `AlreadyExists`, `Expired`, … */
  readonly reason: string
  /** Causes of `details`, such as `NamespaceTerminating`. */
  readonly causes: readonly string[]
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    facts: { status: number; reason: string; causes?: readonly string[]; retryAfterMs?: number | undefined },
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'KubeError'
    this.status = facts.status
    this.reason = facts.reason
    this.causes = facts.causes ?? []
    this.retryAfterMs = facts.retryAfterMs
  }
}
