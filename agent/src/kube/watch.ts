// Follows the objects of one type in the Kubernetes API: reads the list, and then watches for changes indefinitely. After a watch ends,
// the next one continues from the last seen version; the list is read again only if the server no longer has that version. Unlike the
// operator's reflector, which keeps all objects in a store that its controllers share, this code passes objects on page by page, because
// the agent keeps only the data that its pods need.

import { pause } from '../clock.ts'
import { errorText, PenstockError } from '../errors.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { doubledMs, jittered } from '../timing/backoff.ts'
import type { ApiServerClient } from './client.ts'
import { BrokenStreamError, watchLines } from './transport.ts'

export interface WatchedObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly creationTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[]
  }
}

export interface Followed {
  /** Name for logs and metrics, such as `pods`. */
  readonly name: string
  /** Path of the collection, such as `/api/v1/pods`. */
  readonly path: string
  /** Whether the path is that of a single object in the core group. Permission for this one name is then sufficient. */
  readonly single?: boolean
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

export interface FollowHooks<T extends WatchedObject> {
  /** Receives the whole list, initially and whenever the list was read again. */
  replaced(objects: readonly T[]): void
  /** Receives the list page by page, so that it is never in memory as a whole; `replaced` then receives an empty list. Pages may repeat. */
  page?(objects: readonly T[]): Promise<void> | undefined
  changed(object: T): void
  /** Called after each change. If it returns a promise, nothing more is read until it resolves. */
  room?(): Promise<void> | undefined
  removed(object: T): void
  /** Reports that the API is not reachable or returned an error. The request is retried. */
  failed(error: Error): void
  listed(): void
  /** Reports that everything up to this version has been received, after a list, a bookmark or a removal. */
  passed?(version: string): void
}

/** Logging and metrics for all watches. */
export function followReports(
  events: ComponentEvents,
  resource: string,
): Pick<FollowHooks<WatchedObject>, 'failed' | 'listed'> {
  return {
    failed: (error) =>
      events.error({
        type: 'reader_failed',
        stage: 'processing',
        code: 'kubernetes_lifecycle',
        message: 'Watching objects of the Kubernetes API failed; trying again.',
        fields: { resource, error },
        level: 'warn',
      }),
    listed: () => events.count('k8s_reflector_relists_total', 1, { resource }),
  }
}

const pageSize = 500
const watchSecs = 290
/** A watch that is silent for this time beyond the server's timeout counts as broken. */
const watchGraceMs = 30_000
const initialBackoffMs = 250
const maxBackoffMs = 30_000

/** Resolves when the signal aborts. */
export async function follow<T extends WatchedObject>(
  client: ApiServerClient,
  followed: Followed,
  hooks: FollowHooks<T>,
  options: {
    readonly fromCache: boolean
    readonly signal: AbortSignal
    /** The version to continue from. The list is read only if the server no longer has this version. */
    readonly from?: string | undefined
  },
): Promise<void> {
  const { signal } = options
  let version = options.from
  let failures = 0
  while (!signal.aborted) {
    try {
      version ??= await takeList<T>(client, followed, hooks, options)
      const ended: WatchEnd = await watch<T>(client, followed, version, hooks, signal)
      version = ended.version
      if (ended.seen > 0) failures = 0
      // Wait, so that a server that immediately ends every watch does not receive requests in a tight loop.
      else failures++
      if (failures > 1) await pause(backoffMs(failures - 1), signal)
    } catch (error) {
      if (signal.aborted) return
      failures++
      hooks.failed(error as Error)
      await pause(backoffMs(failures), signal)
    }
  }
}

/**
 * Passes the list to the hooks, and returns its version. It is a separate function because an async function keeps its variables while it
 * waits: `follow` would keep all objects of the list in memory until the watch ends.
 */
async function takeList<T extends WatchedObject>(
  client: ApiServerClient,
  followed: Followed,
  hooks: FollowHooks<T>,
  options: { readonly fromCache: boolean; readonly signal: AbortSignal },
): Promise<string> {
  const list = await readList<T>(client, followed, options.fromCache, options.signal, hooks)
  hooks.listed()
  hooks.replaced(list.items)
  hooks.passed?.(list.version)
  return list.version
}

function backoffMs(failures: number): number {
  return jittered(doubledMs(failures - 1, initialBackoffMs, maxBackoffMs), 'half')
}

interface ListAnswer<T> {
  readonly items?: readonly T[]
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
}

function query(followed: Followed, more: Record<string, string>): string {
  const parameters = new URLSearchParams(more)
  if (followed.labelSelector) parameters.set('labelSelector', followed.labelSelector)
  if (followed.fieldSelector) parameters.set('fieldSelector', followed.fieldSelector)
  return `${followed.path}?${parameters}`
}

async function readList<T>(
  client: ApiServerClient,
  followed: Followed,
  fromCache: boolean,
  signal: AbortSignal,
  hooks: { page?(objects: readonly T[]): Promise<void> | undefined },
): Promise<{ readonly items: T[]; readonly version: string }> {
  const items: T[] = []
  let token = ''
  for (;;) {
    const page: Record<string, string> = fromCache ? { resourceVersion: '0' } : { limit: String(pageSize) }
    if (token !== '') page['continue'] = token
    const { status, body } = await client.json(query(followed, page), signal)
    if (status === 410 && token !== '') {
      // The list expired while it was read, so start again from its first page.
      token = ''
      items.length = 0
      continue
    }
    if (status !== 200) throw refused(followed, status, body)
    const answer = (followed.single === true ? listOf(body as WatchedObject) : body) as ListAnswer<T>
    if (hooks.page === undefined) for (const item of answer.items ?? []) items.push(item)
    else await hooks.page(answer.items ?? [])
    signal.throwIfAborted()
    token = answer.metadata?.continue ?? ''
    if (token === '') return { items, version: answer.metadata?.resourceVersion ?? '' }
  }
}

const listOf = (object: WatchedObject) => ({
  items: [object],
  metadata: { resourceVersion: object.metadata.resourceVersion },
})

/**
 * The path for watching a single object. Watching the collection with a field selector would need permission for all objects, which a
 * Role for one name does not grant.
 * @param path the path of an object in the core group
 */
export function watchPathOf(path: string): string {
  return path.replace(/^\/api\/v1\//, '/api/v1/watch/')
}

function watched(followed: Followed): Followed {
  return followed.single === true ? { ...followed, path: watchPathOf(followed.path) } : followed
}

function refused(followed: Followed, status: number, body: unknown): PenstockError {
  const reason = (body as { message?: unknown } | undefined)?.message
  const help =
    status === 403 || status === 401
      ? ` The agent needs ${followed.single === true ? '`get`' : '`get`, `list`'} and \`watch\` on ${followed.name}: check its service account and the roles that are bound to it.`
      : ''
  return new PenstockError(
    'PEN_KUBERNETES',
    `The Kubernetes API returned status ${status} for ${followed.name}${typeof reason === 'string' ? `: ${reason}` : ''}.${help}`,
  )
}

interface WatchEnd {
  /** The version from which the next watch continues; undefined if the list must be read again. */
  readonly version: string | undefined
  /** Number of changes and bookmarks. */
  readonly seen: number
}

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: T & { readonly code?: number; readonly message?: string }
}

async function watch<T extends WatchedObject>(
  client: ApiServerClient,
  followed: Followed,
  from: string,
  hooks: FollowHooks<T>,
  signal: AbortSignal,
): Promise<WatchEnd> {
  const path = query(watched(followed), {
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: from,
    timeoutSeconds: String(watchSecs + Math.floor(Math.random() * 30)),
  })
  const silent = new AbortController()
  const limit = setTimeout(() => silent.abort(), (watchSecs + 30) * 1000 + watchGraceMs)
  limit.unref()
  let version: string | undefined = from
  let seen = 0
  try {
    const { status, body } = await client.get(path, AbortSignal.any([signal, silent.signal]))
    if (status !== 200) {
      body.on('error', () => {}) // no longer relevant
      body.destroy()
      if (status === 410) return { version: undefined, seen }
      throw refused(followed, status, undefined)
    }
    let problem: PenstockError | undefined
    try {
      for await (const line of watchLines(body)) {
        const event = JSON.parse(line) as WatchEvent<T>
        if (event.type === 'ERROR') {
          if (event.object.code === 410) return { version: undefined, seen }
          problem = refused(followed, event.object.code ?? 0, event.object)
          break
        }
        seen++
        const reached = event.object.metadata.resourceVersion
        if (event.type === 'DELETED') hooks.removed(event.object)
        else if (event.type !== 'BOOKMARK') {
          hooks.changed(event.object)
          const full = hooks.room?.()
          if (full !== undefined) await full
        }
        version = reached ?? version
        if (reached !== undefined && (event.type === 'DELETED' || event.type === 'BOOKMARK')) hooks.passed?.(reached)
      }
    } catch (error) {
      if (signal.aborted || (seen === 0 && !silent.signal.aborted)) throw error
      // A working watch lost its connection, so the next one continues from the last version.
      hooks.failed(
        new PenstockError('PEN_KUBERNETES', `The watch on ${followed.name} was interrupted: ${errorText(error)}`),
      )
      if (error instanceof BrokenStreamError) return { version: undefined, seen }
    }
    if (problem !== undefined) throw problem
    return { version, seen }
  } finally {
    clearTimeout(limit)
  }
}
