// The observation server: health, readiness, metrics, components and tap. Watching never slows the agent: it
// skips data that a reader does not take in time, and keeps none of it.

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

// An import of node:http would make Node load its whole client for `fetch` and `WebSocket`, 16 MB that no agent uses.
const { createServer } = process.getBuiltinModule('node:http')

export interface ApiOptions {
  /** `host:port`. */
  readonly address: string
  readonly logger: Logger
  readonly exposition: Exposition
  /** Whether a request that is not for a probe may be answered; every one may if not given. */
  readonly allows?: (request: IncomingMessage, path: string) => Promise<boolean>
  /** Why the agent is not healthy; undefined if it is. */
  readonly trouble?: () => string | undefined
  /** Why the agent cannot do its work although it runs; undefined if it can. */
  readonly unready?: () => string | undefined
  /** Text that the programs of a pipeline have logged. */
  readonly programLines?: (pipeline: string) => readonly object[]
}

const listenReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EADDRNOTAVAIL: 'it is no address of this machine',
  EACCES: 'permission denied',
}

const listenReason = (error: NodeJS.ErrnoException): string => listenReasons[error.code ?? ''] ?? error.message

export class ApiServer {
  /** Runs since the agent has started; undefined before. */
  topology: Topology | undefined
  /** True from the first sign of a stop. */
  stopping = false
  readonly #server: Server
  readonly #options: ApiOptions
  readonly #startedAt = performance.now()
  readonly #closing = new AbortController()

  private constructor(options: ApiOptions) {
    this.#options = options
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        options.logger.error({ error, path: request.url }, 'The observation server could not answer.')
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
        const message = `The observation server cannot listen on ${options.address}: ${listenReason(error)}. \`api.address\` chooses another address.`
        reject(new PenstockError('PEN_API_BIND', message, { cause: error }))
      })
      api.#server.listen(port, host, resolve)
    })
    // The server alone does not keep the agent running.
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
      answer(response, 405, { error: 'Only GET and HEAD are answered here.' })
      return
    }
    const { allows } = this.#options
    const open = url.pathname === '/health' || url.pathname === '/ready'
    if (!open && allows !== undefined && !(await allows(request, url.pathname))) {
      response.setHeader('www-authenticate', 'Bearer')
      answer(response, request.headers.authorization === undefined ? 401 : 403, {
        error: 'A bearer token is needed whose owner may get this path (a nonResourceURL).',
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
          error: 'There is nothing here; see /health, /ready, /metrics, /v1/components and /v1/tap.',
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
    const message = `\`api.address\` must be host:port, such as 127.0.0.1:8686; it is "${address}".`
    throw new PenstockError('PEN_CONFIG_INVALID', message)
  }
  return { host: match[1] ?? (match[2] === '' || match[2] === undefined ? '0.0.0.0' : match[2]), port }
}
