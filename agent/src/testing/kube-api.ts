// A fake Kubernetes API server on loopback: lists, watches and reads of pods, namespaces, nodes and events, with the versions, pages,
// bookmarks and selectors of the real server, and with faults on demand.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ApiObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly [key: string]: unknown
  }
  readonly [key: string]: unknown
}

type Resource = 'pods' | 'namespaces' | 'nodes' | 'events'

interface Change {
  readonly version: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: ApiObject
}

interface Watcher {
  readonly resource: Resource
  readonly response: ServerResponse
  readonly matches: (object: ApiObject) => boolean
}

export class KubeApi implements AsyncDisposable {
  readonly #objects: Record<Resource, Map<string, ApiObject>> = {
    pods: new Map(),
    namespaces: new Map(),
    nodes: new Map(),
    events: new Map(),
  }
  readonly #changes: Record<Resource, Change[]> = { pods: [], namespaces: [], nodes: [], events: [] }
  readonly #watchers = new Set<Watcher>()
  #server: Server | undefined
  #port = 0
  #version = 1000
  #oldest = 0
  /** Requested paths with queries, except requests for the version. */
  readonly requests: string[] = []
  /** The token that requests must contain, if any. */
  token: string | undefined
  /** The only namespaces that requests may read, one at a time; by default, all resources may be read. */
  within: readonly string[] | undefined
  /** The minor version of Kubernetes 1 that it reports. */
  minor = '36'
  /** Number of requests for its version. */
  versionRequests = 0
  /** Responds to the next requests with these statuses. */
  readonly failures: number[] = []

  static async start(): Promise<KubeApi> {
    const api = new KubeApi()
    await api.resume()
    return api
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** A kubeconfig for this server. */
  kubeConfig(user: Record<string, unknown> = {}): string {
    return JSON.stringify({
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [{ name: 'test', cluster: { server: this.url } }],
      users: [{ name: 'test', user }],
    })
  }

  /** Adds or replaces an object. */
  set(resource: Resource, object: ApiObject): void {
    const key = keyOf(object)
    const known = this.#objects[resource].has(key)
    const version = ++this.#version
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    this.#objects[resource].set(key, stored)
    this.#publish(resource, { version, type: known ? 'MODIFIED' : 'ADDED', object: stored })
  }

  remove(resource: Resource, name: string, namespace?: string): void {
    const key = keyOf({ metadata: namespace === undefined ? { name } : { name, namespace } })
    const object = this.#objects[resource].get(key)
    if (object === undefined) return
    this.#objects[resource].delete(key)
    const version = ++this.#version
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    this.#publish(resource, { version, type: 'DELETED', object: last })
  }

  #publish(resource: Resource, change: Change): void {
    this.#changes[resource].push(change)
    for (const watcher of this.#watchers) {
      if (watcher.resource !== resource) continue
      if (watcher.matches(change.object)) sendChange(watcher.response, change)
      // For this watch, an object that no longer matches the selectors is deleted.
      else if (change.type === 'MODIFIED') sendChange(watcher.response, { ...change, type: 'DELETED' })
    }
  }

  /** Drops all changes so far, as the real server does after some minutes. Older watches get 410 Gone. */
  compact(): void {
    this.#oldest = ++this.#version
    for (const changes of Object.values(this.#changes)) changes.length = 0
  }

  /** Sends watchers the current version. */
  bookmark(): void {
    for (const { response } of this.#watchers) {
      response.write(
        `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.#version) } } })}\n`,
      )
    }
  }

  /** Closes the connections of all watches without an end of the response. */
  cutWatches(): void {
    for (const { response } of this.#watchers) response.destroy()
    this.#watchers.clear()
  }

  get watches(): number {
    return this.#watchers.size
  }

  /** Stops responding, as during a restart of the server. `resume` listens on the same port again. */
  async pause(): Promise<void> {
    this.cutWatches()
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }

  async resume(): Promise<void> {
    const server = createServer((request, response) => this.#answer(request, response))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.pause()
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url)
    if (url.pathname === '/version') this.versionRequests++
    else this.requests.push(request.url ?? '')
    const match =
      /^\/apis?\/(?:events\.k8s\.io\/)?v1\/(?:watch\/)?(?:namespaces\/([^/]+)\/)?(pods|namespaces|nodes|events)(?:\/([^/]+))?$/.exec(
        url.pathname,
      )
    const asked = match?.[1] ?? (match?.[2] === 'namespaces' ? match[3] : undefined)
    const failure = match === null ? undefined : this.failures.shift()
    if (failure !== undefined) sendStatus(response, failure)
    else if (match !== null && this.within?.includes(asked ?? '') === false) sendStatus(response, 403)
    else if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      sendStatus(response, 401)
    } else if (url.pathname === '/version') {
      sendJson(response, 200, { major: '1', minor: this.minor, gitVersion: `v1.${this.minor}.0` })
    } else if (match === null) sendStatus(response, 404)
    else this.#answerFor(match, url, response)
  }

  #answerFor(match: RegExpExecArray, url: URL, response: ServerResponse): void {
    const resource = match[2] as Resource
    const isOne = match[3] !== undefined && url.pathname.startsWith('/api/v1/watch/')
    if (match[3] !== undefined && !isOne) {
      const metadata = match[1] === undefined ? { name: match[3] } : { name: match[3], namespace: match[1] }
      const object = this.#objects[resource].get(keyOf({ metadata }))
      if (object === undefined) sendStatus(response, 404)
      else sendJson(response, 200, object)
      return
    }
    const selected = selectorsOf(url.searchParams)
    const matches = (object: ApiObject) =>
      selected(object) &&
      (match[1] === undefined || object.metadata.namespace === match[1]) &&
      (!isOne || object.metadata.name === match[3])
    if (url.searchParams.get('watch') === 'true') this.#watch(resource, url.searchParams, matches, response)
    else this.#list(resource, url.searchParams, matches, response)
  }

  #list(
    resource: Resource,
    parameters: URLSearchParams,
    matches: (object: ApiObject) => boolean,
    response: ServerResponse,
  ): void {
    const objects = [...this.#objects[resource].values()].filter(matches)
    const limit = Number(parameters.get('limit') ?? objects.length) || objects.length
    const from = Number(parameters.get('continue') ?? 0)
    const next = from + limit < objects.length ? { continue: String(from + limit) } : {}
    sendJson(response, 200, {
      kind: 'List',
      metadata: { resourceVersion: String(this.#version), ...next },
      items: objects.slice(from, from + limit),
    })
  }

  #watch(
    resource: Resource,
    parameters: URLSearchParams,
    matches: (object: ApiObject) => boolean,
    response: ServerResponse,
  ): void {
    const from = Number(parameters.get('resourceVersion'))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (from < this.#oldest) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, metadata: {} } })}\n`)
      return
    }
    const watcher = { resource, response, matches }
    for (const change of this.#changes[resource]) {
      if (change.version > from && matches(change.object)) sendChange(response, change)
    }
    this.#watchers.add(watcher)
    response.on('close', () => this.#watchers.delete(watcher))
  }
}

function keyOf(object: { metadata: { name: string; namespace?: string } }): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

function sendChange(response: ServerResponse, change: Change): void {
  response.write(`${JSON.stringify({ type: change.type, object: change.object })}\n`)
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function sendStatus(response: ServerResponse, code: number): void {
  sendJson(response, code, { kind: 'Status', code, message: `status ${code}` })
}

function selectorsOf(parameters: URLSearchParams): (object: ApiObject) => boolean {
  const labels = terms(parameters.get('labelSelector'))
  const fields = terms(parameters.get('fieldSelector'))
  return (object) =>
    labels.every(({ key, value, equal }) => (object.metadata.labels?.[key] === value) === equal) &&
    fields.every(({ key, value, equal }) => (fieldOf(object, key) === value) === equal)
}

function terms(text: string | null): { key: string; value: string; equal: boolean }[] {
  if (text === null || text === '') return []
  return text.split(',').map((term) => {
    const match = /^([^!=]+)(!=|==?)(.*)$/.exec(term)
    if (match === null) throw new TypeError(`The fake API server does not support the selector ${term}.`)
    return { key: match[1] as string, value: match[3] as string, equal: match[2] !== '!=' }
  })
}

function fieldOf(object: ApiObject, path: string): unknown {
  let value: unknown = object
  for (const name of path.split('.')) value = (value as Record<string, unknown> | undefined)?.[name]
  return value
}
