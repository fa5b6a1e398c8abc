// The observation server: health, readiness, metrics, components and tap. Readers never slow down the agent: the server skips data that
// a reader does not read in time, and does not store it.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { errorText, PenstockError } from '../errors.ts'
import type { Exposition } from '../telemetry/exposition.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Topology } from '../topology/run.ts'
import { version } from '../version.ts'
import { componentViews } from './components.ts'
import { serveTap } from './tap.ts'

// Importing node:http would make Node.js load its client for `fetch` and `WebSocket`, 16 MB that the agent does not use.
const { createServer } = process.getBuiltinModule('node:http')

export interface ApiOptions {
  /** Address in the form `host:port`. */
  readonly address: string
  readonly logger: Logger
  readonly exposition: Exposition
  /** Whether a request is permitted, except for probes; by default all requests are. */
  readonly allows?: (request: IncomingMessage, path: string) => Promise<boolean>
  /** The reason why the agent is not healthy; undefined if it is. */
  readonly trouble?: () => string | undefined
  /** The reason why a running agent is not ready; undefined if it is. */
  readonly unready?: () => string | undefined
  /** Log lines from the programs of a pipeline. */
  readonly programLines?: (pipeline: string) => readonly object[]
}

const listenReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses this address',
  EADDRNOTAVAIL: 'this machine does not have this address',
  EACCES: 'permission denied',
}

const listenReason = (error: NodeJS.ErrnoException): string => listenReasons[error.code ?? ''] ?? error.message

export class ApiServer {
  /** The running topology; undefined until the agent has started. */
  topology: Topology | undefined
  /** True as soon as the agent begins to stop. */
  stopping = false
  readonly #server: Server
  readonly #options: ApiOptions
  readonly #startedAt = performance.now()
  readonly #closing = new AbortController()

  private constructor(options: ApiOptions) {
    this.#options = options
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        options.logger.error({ error, path: request.url }, 'The observation server could not respond to a request.')
        if (response.headersSent) response.destroy()
        else answer(response, 500, { error: errorText(error) })
      })
    })
  }

  static async start(options: ApiOptions): Promise<ApiServer> {
    const api = new ApiServer(options)
    const { host, port } = splitAddress(options.address)
    await new Promise<void>((resolve, reject) => {
      api.#server.once('error', (error) => {
        const message = `The observation server cannot listen on ${options.address}: ${listenReason(error)}. Set \`api.address\` to another address.`
        reject(new PenstockError('PEN_API_BIND', message, { cause: error }))
      })
      api.#server.listen(port, host, resolve)
    })
    // The server does not keep the process running.
    api.#server.unref()
    options.logger.info({ address: api.address }, 'The observation server has started.')
    return api
  }

  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://agent')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      answer(response, 405, { error: 'Only the methods GET and HEAD are supported.' })
      return
    }
    const { allows } = this.#options
    const open = url.pathname === '/health' || url.pathname === '/ready'
    if (!open && allows !== undefined && !(await allows(request, url.pathname))) {
      response.setHeader('www-authenticate', 'Bearer')
      answer(response, request.headers.authorization === undefined ? 401 : 403, {
        error: 'This path requires a bearer token whose owner has the permission to get it (a nonResourceURL).',
      })
      return
    }
    switch (url.pathname) {
      case '/health':
        {
          const trouble = this.stopping ? 'The agent is stopping.' : this.#options.trouble?.()
          answer(response, trouble === undefined ? 200 : 503, { ok: trouble === undefined, reason: trouble })
        }
        return
      case '/ready': {
        const isRunning = this.topology !== undefined && !this.stopping
        const reason = isRunning ? this.#options.unready?.() : undefined
        const ready = isRunning && reason === undefined
        answer(response, ready ? 200 : 503, { ok: ready, reason })
        return
      }
      case '/metrics': {
        const page = await this.#options.exposition.render()
        response.writeHead(200, { 'content-type': page.contentType })
        response.end(page.text)
        return
      }
      case '/v1/components': {
        const uptime = (performance.now() - this.#startedAt) / 1000
        const components = this.topology === undefined ? [] : componentViews(this.topology)
        answer(response, 200, { version, hostname: hostname(), uptime_seconds: uptime, components })
        return
      }
      case '/v1/logs':
        answer(response, 200, { lines: this.#options.programLines?.(url.searchParams.get('pipeline') ?? '') ?? [] })
        return
      case '/v1/tap':
        if (this.topology === undefined) answer(response, 503, { error: 'The agent is starting.' })
        else serveTap(this.topology, url.searchParams, response, this.#closing.signal)
        return
      default:
        answer(response, 404, {
          error: 'This path does not exist. See /health, /ready, /metrics, /v1/components and /v1/tap.',
        })
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeAllConnections()
    await closed
  }
}

function answer(response: ServerResponse, status: number, content: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify(content)}\n`)
}

function splitAddress(address: string): { host: string; port: number } {
  const match = /^(?:\[(.+)\]|([^:]*)):(\d{1,5})$/.exec(address)
  const port = Number(match?.[3])
  if (match === null || port > 65_535) {
    const message = `\`api.address\` must be host:port, such as 127.0.0.1:8686, found "${address}".`
    throw new PenstockError('PEN_CONFIG_INVALID', message)
  }
  return { host: match[1] ?? (match[2] === '' || match[2] === undefined ? '0.0.0.0' : match[2]), port }
}
