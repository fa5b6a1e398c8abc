// The connection to the API server: its address and credentials, from a kubeconfig or the pod's service account. They are read again every
// minute, so that rotated tokens, certificates and authorities are used.

import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { PenstockError } from '@penstock/agent/errors'
import {
  type Access,
  accountFolder,
  addressOf,
  type Exchange,
  inClusterTarget,
  kubeConfigTarget,
  Transport,
} from '@penstock/agent/kube'
import type { SignedTarget } from './kubeconfig-library.ts'

export interface ConnectionOptions {
  /** A kubeconfig file; `KUBECONFIG`, the service account or `~/.kube/config` if not given. */
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  /** A user to impersonate; the API server checks whether the caller may. */
  readonly as?: string | undefined
  /** With `as`: groups of that user. */
  readonly asGroups?: readonly string[] | undefined
  /** How long the read values are valid. */
  readonly refreshMs?: number
}

export class KubeConnection {
  /** Namespace of the context or of the pod. */
  readonly namespace: string | undefined
  readonly #options: ConnectionOptions
  readonly #transport = new Transport()
  #access: Access
  #readAt = performance.now()
  #reading: Promise<void> | undefined
  readonly #listeners = new Set<(access: Access) => void>()

  private constructor(options: ConnectionOptions, access: Access, namespace: string | undefined) {
    this.#options = options
    this.#access = access
    this.namespace = namespace
  }

  static async open(options: ConnectionOptions = {}): Promise<KubeConnection> {
    const { access, namespace } = await readAccess(options)
    return new KubeConnection(options, access, namespace)
  }

  /** The current address and credentials. */
  get access(): Access {
    return this.#access
  }

  /** Notified of every change of `access`. */
  onAccess(listener: (access: Access) => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  async send(exchange: Exchange): Promise<IncomingMessage> {
    if (performance.now() - this.#readAt > (this.#options.refreshMs ?? 60_000)) await this.refresh()
    exchange.signal.throwIfAborted()
    const answer = await this.#transport.send(this.#access, exchange)
    // The token may have been replaced early: it is read again for the next request, at most once a second.
    if (answer.statusCode === 401 && performance.now() - this.#readAt > 1000) this.#readAt = Number.NEGATIVE_INFINITY
    return answer
  }

  /** Reads token, certificates and authority again. If a file cannot be read, its old content stays in use. */
  async refresh(): Promise<void> {
    this.#reading ??= this.#refresh().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  async #refresh(): Promise<void> {
    try {
      const { access } = await readAccess(this.#options)
      const changed = JSON.stringify(access) !== JSON.stringify(this.#access)
      this.#readAt = performance.now()
      if (!changed) return
      this.#access = access
      for (const listener of this.#listeners) listener(access)
    } catch (error) {
      // A file is being replaced: the old values may still work, and the next request tries again.
      this.#readAt = performance.now() - (this.#options.refreshMs ?? 60_000) + 1000
      if (!(error instanceof PenstockError)) throw error
    }
  }

  close(): void {
    this.#transport.close()
  }
}

async function readAccess(options: ConnectionOptions): Promise<{ access: Access; namespace: string | undefined }> {
  try {
    const target = await targetOf(options)
    const authorization = target.authorization()
    const own = authorization === undefined ? {} : { authorization }
    const groups = options.asGroups ?? []
    const other =
      options.as === undefined
        ? {}
        : { 'impersonate-user': options.as, ...(groups.length === 0 ? {} : { 'impersonate-group': groups }) }
    return {
      access: { ...addressOf(target), headers: { ...target.headers, ...own, ...other } },
      namespace: target.namespace,
    }
  } catch (error) {
    if (error instanceof PenstockError) {
      throw new PenstockError(
        'PEN_KUBERNETES',
        `${error.message.replace(/\.?$/, '.')} Set another kubeconfig with --kubeconfig or KUBECONFIG, or a context with --context.`,
        { cause: error },
      )
    }
    throw error
  }
}

/**
 * The order of kubectl: KUBECONFIG, which may name several files, then the file in the home folder, then the pod's service account.
 */
async function targetOf({ kubeconfig, context }: ConnectionOptions): Promise<SignedTarget> {
  const named = kubeconfig ?? (process.env['KUBECONFIG'] || undefined)
  if (kubeconfig === undefined && named?.includes(delimiter)) return byLibrary(undefined, context)
  const own = join(homedir(), '.kube/config')
  const path = named ?? (existsSync(own) ? own : undefined)
  if (path !== undefined) return kubeConfigTarget(path, { context, otherwise: () => byLibrary(path, context) })
  if (process.env['KUBERNETES_SERVICE_HOST'] !== undefined) {
    return { ...(await inClusterTarget()), namespace: readFileSync(`${accountFolder}/namespace`, 'utf8').trim() }
  }
  throw new PenstockError(
    'PEN_KUBERNETES',
    'No cluster is configured: KUBECONFIG is not set, ~/.kube/config does not exist, and this process does not run in a pod.',
  )
}

async function byLibrary(path: string | undefined, context: string | undefined): Promise<SignedTarget> {
  const { libraryTarget } = await import('./kubeconfig-library.ts')
  return libraryTarget(path, context)
}
