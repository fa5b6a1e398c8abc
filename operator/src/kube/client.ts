// The controllers' requests to the API server. Every request has a time limit, waits its turn in the client's flow control and names
// its controller in the User-Agent. Only this room accesses the API server. The head of the agent's kube/client.ts explains why
// agents have another client, and what both share.

import type { IncomingMessage } from 'node:http'
import { errorText } from '@penstock/agent/errors'
import { bodyText } from '@penstock/agent/kube'
import { TokenBucket, TokenLine, type Urgency, version } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import { Counter, type Registry } from 'prom-client'
import { apiVersionOf, type KubeObject, type ResourceType } from '../api/object.ts'
import type { KubeConnection } from './connection.ts'

export interface KubeRequestOptions {
  readonly signal?: AbortSignal | undefined
  /** 10 s if not given; lists 60 s. */
  readonly timeoutMs?: number | undefined
  /** Someone waits for it: it precedes other requests that wait for the rate limit. */
  readonly urgent?: Urgency | undefined
}

export interface ListOptions extends KubeRequestOptions {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly metadataOnly?: boolean | undefined
}

export interface ApplyOptions extends KubeRequestOptions {
  /** `penstock-operator` if not given. */
  readonly fieldManager?: string | undefined
  /** Whether to take fields over from other managers; true if not given. */
  readonly force?: boolean | undefined
  readonly subresource?: 'status' | 'scale' | undefined
  readonly dryRun?: boolean | undefined
}

export interface DeleteOptions extends KubeRequestOptions {
  /** Deletes only the object with this uid. */
  readonly uid?: string | undefined
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan' | undefined
}

export interface KubeClient {
  /** The same client under the name of a controller, for flow control and User-Agent. */
  as(controller: string): KubeClient
  /** Undefined when it is not there. */
  get<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options?: KubeRequestOptions,
  ): Promise<T | undefined>
  /** All objects, page by page, bypassing every cache. */
  list<T extends KubeObject>(type: ResourceType, options?: ListOptions): Promise<readonly T[]>
  create<T extends KubeObject>(
    type: ResourceType,
    object: T,
    options?: KubeRequestOptions & { readonly dryRun?: boolean },
  ): Promise<T>
  /** Server-side apply of our own fields. */
  apply<T extends KubeObject>(type: ResourceType, object: T, options?: ApplyOptions): Promise<T>
  /** A JSON merge patch, for the few cases in which a field of another manager must be removed. */
  patch<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: object,
    options?: KubeRequestOptions,
  ): Promise<T>
  /** True if there was something to delete. */
  delete(type: ResourceType, namespace: string | undefined, name: string, options?: DeleteOptions): Promise<boolean>
  /** Any other request; `body` is sent as JSON. Returns the parsed response. */
  request<T>(
    method: string,
    path: string,
    body?: unknown,
    options?: KubeRequestOptions & { readonly contentType?: string; readonly accept?: string },
  ): Promise<T>
  /** A response that is not JSON, such as a log. */
  text(path: string, options?: KubeRequestOptions): Promise<string>
  /** Whether the API server currently serves a type; looked up again every 5 minutes. */
  serves(type: ResourceType, options?: KubeRequestOptions): Promise<boolean>
}

/** An error response of the API server. */
export class KubeError extends Error {
  readonly status: number
  /** `NotFound`, `Conflict`, `AlreadyExists`, `Expired`, … */
  readonly reason: string
  /** Causes in `details`, such as `NamespaceTerminating`. */
  readonly causes: readonly string[]
  /** The name of the object that the response concerns; undefined: it concerns the path itself. */
  readonly object: string | undefined
  readonly retryAfterMs: number | undefined
  /**
   * A message for people if there was no response: which API server, and why, without the request. Undefined for a
   * response.
   */
  readonly unreachable: string | undefined
  /** The words of the API server alone, without the request. Undefined if no answer came. */
  readonly apiMessage: string | undefined

  constructor(
    message: string,
    facts: {
      status: number
      reason: string
      causes?: readonly string[]
      object?: string | undefined
      retryAfterMs?: number | undefined
      unreachable?: string | undefined
      apiMessage?: string | undefined
    },
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'KubeError'
    this.status = facts.status
    this.reason = facts.reason
    this.causes = facts.causes ?? []
    this.object = facts.object
    this.retryAfterMs = facts.retryAfterMs
    this.unreachable = facts.unreachable
    this.apiMessage = facts.apiMessage
  }
}

/** `/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/checkout` */
export function pathOf(type: ResourceType, namespace?: string | undefined, name?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`
  const scope = type.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${type.plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}

/** The query of a path; undefined members are omitted. */
export function queryOf(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value))
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

export const metadataList = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
export const metadataObject = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

/** The error in an answer. */
export async function errorOf(answer: IncomingMessage, what: string): Promise<KubeError> {
  const text = await bodyText(answer, 1024 * 1024).catch((error: unknown) => errorText(error))
  return statusError(answer.statusCode ?? 0, text, what, answer.headers['retry-after'])
}

interface Status {
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: {
    readonly name?: string
    readonly causes?: readonly { readonly reason?: string }[]
    readonly retryAfterSeconds?: number
  }
}

/** A proxy may demand hours, in which nothing would notice that the API server answers again. */
const maxRetryAfterMs = 60_000

/** The error of a `Status` object, from a response or from a watch event. */
export function statusError(code: number, text: string, what: string, retryAfter?: string): KubeError {
  let status: Status = {}
  try {
    status = JSON.parse(text) as Status
  } catch {
    status = { message: text.slice(0, 500) } // a proxy, or a starting server, responds in another format
  }
  const seconds = Number(retryAfter ?? status.details?.retryAfterSeconds)
  return new KubeError(`${what}: ${code} ${status.message ?? 'without a message'}`, {
    status: code,
    reason: status.reason ?? '',
    causes: (status.details?.causes ?? []).map((cause) => cause.reason ?? ''),
    object: status.details?.name,
    apiMessage: status.message,
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds * 1000, maxRetryAfterMs) : undefined,
  })
}

function parsedAnswer<T>(text: string): T {
  try {
    return JSON.parse(text) as T
  } catch (error) {
    const message = 'the answer is not JSON; another program, such as a proxy with a login page, may answer there'
    throw new Error(message, { cause: error })
  }
}

export interface ClientOptions {
  /** Counts requests. */
  readonly metrics?: Registry
  /** Logs each request at level debug. */
  readonly logger?: Logger
  /** Called before every write: false rejects the write, for a process that is not the leader. */
  readonly mayWrite?: () => boolean
  readonly perSecond?: number
  readonly burst?: number
}

const requestTimeoutMs = 10_000
const listTimeoutMs = 60_000
const pageSize = 500

export function createKubeClient(connection: KubeConnection, options: ClientOptions = {}): KubeClient {
  const shared: Shared = {
    connection,
    logger: options.logger,
    turns: new TokenLine(new TokenBucket(options.perSecond ?? 50, options.burst ?? 100)),
    requests:
      options.metrics === undefined
        ? undefined
        : new Counter({
            name: 'rest_client_requests_total',
            help: 'Number of HTTP requests, partitioned by status code, method, and host.',
            labelNames: ['code', 'method', 'host'],
            registers: [options.metrics],
          }),
    served: new Map(),
  }
  return new Client(shared, 'penstock', options.mayWrite)
}

/** The same client, whose writes fail if `mayWrite` returns false. */
export function guarded(client: KubeClient, mayWrite: () => boolean): KubeClient {
  if (!(client instanceof Client)) throw new TypeError('Only clients of createKubeClient can be guarded.')
  return client.guardedBy(mayWrite)
}

interface Shared {
  readonly connection: KubeConnection
  readonly logger: Logger | undefined
  readonly turns: TokenLine
  readonly requests: Counter | undefined
  readonly served: Map<string, { readonly at: number; readonly plurals: Promise<ReadonlySet<string>> }>
}

class Client implements KubeClient {
  readonly #shared: Shared
  readonly #controller: string
  readonly #mayWrite: (() => boolean) | undefined

  constructor(shared: Shared, controller: string, mayWrite: (() => boolean) | undefined) {
    this.#shared = shared
    this.#controller = controller
    this.#mayWrite = mayWrite
  }

  as(controller: string): KubeClient {
    return new Client(this.#shared, controller, this.#mayWrite)
  }

  guardedBy(mayWrite: () => boolean): KubeClient {
    return new Client(this.#shared, this.#controller, mayWrite)
  }

  async get<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options: KubeRequestOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.request<T>('GET', pathOf(type, namespace, name), undefined, options)
    } catch (error) {
      if (isReason(error, 'NotFound')) return undefined
      throw error
    }
  }

  async list<T extends KubeObject>(type: ResourceType, options: ListOptions = {}): Promise<readonly T[]> {
    const { namespace, labelSelector, fieldSelector, metadataOnly, ...rest } = options
    const items: T[] = []
    let next: string | undefined
    let limit: number | undefined = pageSize
    for (;;) {
      const query = queryOf({ labelSelector, fieldSelector, limit, continue: next })
      const accept = metadataOnly === true ? metadataList : undefined
      let page: ListPage<T>
      try {
        page = await this.#exchange<ListPage<T>>('GET', pathOf(type, namespace) + query, undefined, {
          timeoutMs: listTimeoutMs,
          ...rest,
          accept,
        })
      } catch (error) {
        // The pages read so far belong to an expired state: starts again, in one piece.
        if (!(error instanceof KubeError) || error.status !== 410 || next === undefined) throw error
        items.length = 0
        next = undefined
        limit = undefined
        continue
      }
      for (const item of page.items ?? []) items.push({ ...item, apiVersion: apiVersionOf(type), kind: type.kind })
      next = page.metadata.continue
      if (next === undefined || next === '') return items
    }
  }

  create<T extends KubeObject>(
    type: ResourceType,
    object: T,
    options: KubeRequestOptions & { readonly dryRun?: boolean } = {},
  ): Promise<T> {
    const query = queryOf({ dryRun: options.dryRun === true ? 'All' : undefined, fieldManager: 'penstock-operator' })
    return this.request<T>('POST', pathOf(type, object.metadata.namespace) + query, object, options)
  }

  apply<T extends KubeObject>(type: ResourceType, object: T, options: ApplyOptions = {}): Promise<T> {
    const { fieldManager = 'penstock-operator', force = true, subresource, dryRun, ...rest } = options
    const path = pathOf(type, object.metadata.namespace, object.metadata.name)
    const query = queryOf({ fieldManager, force, dryRun: dryRun === true ? 'All' : undefined })
    return this.request<T>('PATCH', `${path}${subresource === undefined ? '' : `/${subresource}`}${query}`, object, {
      ...rest,
      contentType: 'application/apply-patch+yaml',
    })
  }

  patch<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: object,
    options: KubeRequestOptions = {},
  ): Promise<T> {
    return this.request<T>('PATCH', pathOf(type, namespace, name), patch, {
      ...options,
      contentType: 'application/merge-patch+json',
    })
  }

  async delete(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options: DeleteOptions = {},
  ): Promise<boolean> {
    const { uid, propagation = 'Background', ...rest } = options
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: propagation,
      ...(uid === undefined ? {} : { preconditions: { uid } }),
    }
    try {
      await this.request('DELETE', pathOf(type, namespace, name), body, rest)
      return true
    } catch (error) {
      if (isReason(error, 'NotFound')) return false
      throw error
    }
  }

  request<T>(
    method: string,
    path: string,
    body?: unknown,
    options: KubeRequestOptions & { readonly contentType?: string; readonly accept?: string } = {},
  ): Promise<T> {
    return this.#exchange<T>(method, path, body, options)
  }

  async text(path: string, options: KubeRequestOptions = {}): Promise<string> {
    const limit = AbortSignal.timeout(options.timeoutMs ?? listTimeoutMs)
    const signal = options.signal === undefined ? limit : AbortSignal.any([options.signal, limit])
    await this.#shared.turns.take(signal)
    const answer = await this.send('GET', path, undefined, signal)
    const code = answer.statusCode ?? 0
    if (code < 200 || code > 299) throw await errorOf(answer, `GET ${path.split('?')[0]}`)
    return bodyText(answer)
  }

  async serves(type: ResourceType, options: KubeRequestOptions = {}): Promise<boolean> {
    const group = pathOf({ ...type, plural: '' }).replace(/\/$/, '')
    let known = this.#shared.served.get(group)
    if (known === undefined || performance.now() - known.at > 300_000) {
      const plurals = this.#exchange<{ resources: readonly { name: string }[] }>('GET', group, undefined, options).then(
        (list) => new Set(list.resources.map((resource) => resource.name)),
        (error: unknown) => {
          if (isReason(error, 'NotFound') || (error instanceof KubeError && error.status === 404))
            return new Set<string>()
          this.#shared.served.delete(group)
          throw error
        },
      )
      known = { at: performance.now(), plurals }
      this.#shared.served.set(group, known)
    }
    return (await known.plurals).has(type.plural)
  }

  async #exchange<T>(
    method: string,
    path: string,
    body: unknown,
    options: KubeRequestOptions & { readonly contentType?: string; readonly accept?: string | undefined },
  ): Promise<T> {
    const what = `${method} ${path.split('?')[0]}`
    const limit = AbortSignal.timeout(options.timeoutMs ?? requestTimeoutMs)
    const signal = options.signal === undefined ? limit : AbortSignal.any([options.signal, limit])
    try {
      await this.#shared.turns.take(signal, { urgent: options.urgent })
      // Called after the wait, right before the write, because leadership may have been lost meanwhile.
      if (method !== 'GET' && this.#mayWrite?.() === false) {
        throw new KubeError(`${what}: this process is not the leader, so it does not write`, {
          status: 0,
          reason: 'NotLeader',
        })
      }
      const answer = await this.send(method, path, body, signal, options)
      const code = answer.statusCode ?? 0
      if (code < 200 || code > 299) throw await errorOf(answer, what)
      return parsedAnswer<T>(await bodyText(answer))
    } catch (error) {
      if (error instanceof KubeError) throw error
      options.signal?.throwIfAborted()
      const reason = limit.aborted
        ? `no response within ${(options.timeoutMs ?? requestTimeoutMs) / 1000} s`
        : errorText(error)
      const unreachable = `The API server ${this.#shared.connection.access.server} cannot be reached: ${reason}`
      throw new KubeError(`${what}: ${reason}`, { status: 0, reason: 'Unreachable', unreachable }, { cause: error })
    }
  }

  /** Sends a request without flow control and time limits: for reflectors, which have their own. */
  async send(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal,
    options: { readonly contentType?: string; readonly accept?: string | undefined } = {},
  ): Promise<IncomingMessage> {
    const { connection, requests } = this.#shared
    const host = new URL(connection.access.server).host
    const headers: Record<string, string> = { 'user-agent': `penstock/${version} (${this.#controller})` }
    if (options.accept !== undefined) headers['accept'] = options.accept
    if (body !== undefined) headers['content-type'] = options.contentType ?? 'application/json'
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const answer = await connection.send({ method, path, headers, body: text, signal })
      requests?.inc({ code: String(answer.statusCode), method, host })
      const facts = { method, path, status: answer.statusCode, controller: this.#controller }
      this.#shared.logger?.debug(facts, 'A request was answered.')
      return answer
    } catch (error) {
      requests?.inc({ code: '<error>', method, host })
      throw error
    }
  }
}

interface ListPage<T> {
  readonly metadata: { readonly continue?: string; readonly resourceVersion?: string }
  readonly items: readonly T[]
}

/** The parts of a client that a reflector needs. */
export type Sender = Pick<Client, 'send'>

/** The sender of a client, under the name of a reflector. */
export function senderOf(client: KubeClient, name: string): Sender {
  const named = client.as(name)
  if (!(named instanceof Client)) throw new TypeError('Only clients of createKubeClient can watch.')
  return named
}

export function isReason(error: unknown, reason: string): boolean {
  return error instanceof KubeError && error.reason === reason
}

/** Whether an error is part of normal operation: another client was faster, or the namespace is being deleted. */
export function isNormal(error: unknown): boolean {
  if (!(error instanceof KubeError)) return false
  return (
    ['NotFound', 'AlreadyExists', 'Conflict', 'NotLeader'].includes(error.reason) ||
    (error.status === 403 && error.causes.includes('NamespaceTerminating'))
  )
}

/** Whether a write was rejected because its namespace is being deleted. */
export function isTerminating(error: unknown): boolean {
  return error instanceof KubeError && error.status === 403 && error.causes.includes('NamespaceTerminating')
}
