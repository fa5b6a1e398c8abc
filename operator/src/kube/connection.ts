// The way to the API server: where it is and who we are, from a kubeconfig file or the pod's service account, by
// @kubernetes/client-node. It reads them again every minute, so that rotated tokens, certificates and authorities are used.

import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { errorText, PenstockError } from '@penstock/agent/errors'
import { kubeConfig } from './kubeconfig.ts'
import { type Access, type Exchange, Transport } from './transport.ts'

export interface ConnectionOptions {
  /** A kubeconfig file; `KUBECONFIG`, the service account or `~/.kube/config` if not given. */
  readonly kubeconfig?: string | undefined
  readonly context?: string | undefined
  /** How long what was read is good for. */
  readonly refreshMs?: number
}

export class KubeConnection {
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

  /** Namespace of the context or of the pod. */
  readonly namespace: string | undefined

  static async open(options: ConnectionOptions = {}): Promise<KubeConnection> {
    const { access, namespace } = await readAccess(options)
    return new KubeConnection(options, access, namespace)
  }

  /** How it is reached now. */
  get access(): Access {
    return this.#access
  }

  /** Hears of every change of `access`. */
  onAccess(listener: (access: Access) => void): Disposable {
    this.#listeners.add(listener)
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) }
  }

  async send(exchange: Exchange): Promise<IncomingMessage> {
    if (performance.now() - this.#readAt > (this.#options.refreshMs ?? 60_000)) await this.refresh()
    exchange.signal.throwIfAborted()
    const answer = await this.#transport.send(this.#access, exchange)
    // The token may have been replaced before its time: it is read again for the next request, once a second at most.
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
      // A file that is being replaced: the old values may still do, and the next request tries again.
      this.#readAt = performance.now() - (this.#options.refreshMs ?? 60_000) + 1000
      if (!(error instanceof PenstockError)) throw error
    }
  }

  close(): void {
    this.#transport.close()
  }
}

/** What the library takes for the cluster where it finds none. */
const nowhere = 'http://localhost:8080'

async function readAccess(options: ConnectionOptions): Promise<{ access: Access; namespace: string | undefined }> {
  const config = await kubeConfig()
  try {
    if (options.kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(options.kubeconfig)
    if (options.context !== undefined) config.setCurrentContext(options.context)
    const cluster = config.getCurrentCluster()
    if (cluster === null) throw new Error(`it names no cluster for the context "${config.getCurrentContext()}"`)
    if (options.kubeconfig === undefined && cluster.server === nowhere) {
      throw new PenstockError(
        'PEN_KUBERNETES',
        'No cluster is known here: KUBECONFIG is not set, there is no ~/.kube/config, and this is no pod of a cluster. Name a kubeconfig by --kubeconfig or KUBECONFIG.',
      )
    }
    const request: Parameters<typeof config.applyToHTTPSOptions>[0] & { auth?: string | null } = {}
    await config.applyToHTTPSOptions(request)
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(request.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim()
    if (typeof request.auth === 'string')
      headers['authorization'] = `Basic ${Buffer.from(request.auth).toString('base64')}`
    const text = (value: unknown): string | undefined =>
      value === undefined || value === null
        ? undefined
        : Buffer.isBuffer(value)
          ? value.toString('utf8')
          : String(value)
    const caFile = cluster.caFile
    return {
      access: {
        server: cluster.server,
        headers,
        tls: {
          ca: caFile === undefined ? text(request.ca) : readFileSync(caFile, 'utf8'),
          cert: text(request.cert),
          key: text(request.key),
          servername: text(request.servername),
          rejectUnauthorized: cluster.skipTLSVerify ? false : undefined,
        },
      },
      namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? undefined,
    }
  } catch (error) {
    if (error instanceof PenstockError) throw error
    const named = options.kubeconfig ?? process.env['KUBECONFIG']
    const from = named === undefined ? 'The kubeconfig or service account of this process' : `The kubeconfig ${named}`
    throw new PenstockError(
      'PEN_KUBERNETES',
      `${from} cannot be used to reach the Kubernetes API: ${errorText(error).replace(/\.$/, '')}. Give another by --kubeconfig or KUBECONFIG, or a context by --context.`,
      {
        cause: error,
      },
    )
  }
}
