// The operator's HTTP server: /healthz and /readyz are open to probes; /metrics is for callers that the API server allows to read it,
// and on a loopback address for everyone.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { errorText, PenstockError } from '@penstock/agent/errors'
import type { Logger } from '@penstock/agent/telemetry'
import type { Registry } from 'prom-client'
import { inNetworks } from '../compile/tenancy.ts'
import type { Reviews } from '../kube/reviews.ts'
import { ReviewError, TokenGate } from '../kube/token-gate.ts'
import { Strangers } from './strangers.ts'

export interface ProbeOptions {
  /** Host and port. */
  readonly address: string
  readonly reviews: Reviews
  readonly metrics: Registry
  readonly logger: Logger
  /** Why it is unhealthy; undefined if it is healthy. */
  readonly health: () => string | undefined
  readonly readiness: () => string | undefined
  /** Maximum number of connections of clients that have not sent an accepted token. */
  readonly maxStrangers?: number
}

/** Reviews of unknown tokens, by address and in total. */
const strangers = { perSource: { perSecond: 0.5, burst: 10 }, total: { perSecond: 5, burst: 20 } }
/** Only the kubelet and a few collectors of metrics connect here. */
const maxStrangers = 256

export class ProbeServer implements AsyncDisposable {
  readonly #options: ProbeOptions
  readonly #server: Server
  /** Whether the owners of tokens may read metrics. */
  readonly #gate: TokenGate<true>
  readonly #strangers: Strangers

  constructor(options: ProbeOptions) {
    this.#options = options
    // An administrator needs the metrics most while the API server does not answer.
    this.#gate = new TokenGate({ ...strangers, review: (token) => this.#review(token), trustsKnown: () => true })
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        const isReview = error instanceof ReviewError
        if (!isReview) this.#options.logger.warn({ error: errorText(error) }, 'Could not respond to a request.')
        if (!response.headersSent) response.writeHead(503, { 'content-type': 'text/plain' })
        response.end(isReview ? `${error.message}\n` : 'unavailable\n')
      })
    })
    // A probe and a request for metrics have no body, so they arrive at once.
    this.#server.headersTimeout = 5_000
    this.#server.requestTimeout = 10_000
    this.#strangers = new Strangers(options.maxStrangers ?? maxStrangers)
    this.#strangers.follow(this.#server)
  }

  async open(): Promise<this> {
    const { address } = this.#options
    const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(address)
    if (match === null)
      throw new PenstockError('PEN_USAGE', `\`--http-address\` takes a host and a port; found \`${address}\`.`)
    const host = match[1] ?? match[2] ?? ''
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => {
        reject(new PenstockError('PEN_API_BIND', `Cannot listen on ${address}: ${errorText(error)}.`, { cause: error }))
      })
      this.#server.listen(Number(match[3]), host === '' ? undefined : host, resolve)
    })
    return this
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://operator')
    const { metrics, health, readiness } = this.#options
    if (pathname === '/healthz' || pathname === '/readyz') {
      const problem = pathname === '/healthz' ? health() : readiness()
      response.writeHead(problem === undefined ? 200 : 503, { 'content-type': 'text/plain' })
      response.end(`${problem ?? 'ok'}\n`)
      return
    }
    if (pathname !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404).end()
      return
    }
    if (!this.#isLoopback() && !(await this.#mayRead(request))) {
      response.writeHead(request.headers.authorization === undefined ? 401 : 403, { 'content-type': 'text/plain' })
      response.end('A token of an account that may get /metrics is needed.\n')
      return
    }
    response.writeHead(200, { 'content-type': metrics.contentType }).end(await metrics.metrics())
  }

  #isLoopback(): boolean {
    const address = this.#server.address()
    const host = typeof address === 'object' && address !== null ? address.address : ''
    return isIP(host) !== 0 && inNetworks(host, ['127.0.0.0/8', '::1/128'])
  }

  async #mayRead({ headers, socket }: IncomingMessage): Promise<boolean> {
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
    if (token === undefined || (await this.#gate.of(token, socket.remoteAddress ?? '')) !== true) return false
    this.#strangers.know(socket)
    return true
  }

  async #review(token: string): Promise<true | undefined> {
    const { reviews } = this.#options
    const user = await reviews.userOf(token)
    if (user === undefined) return undefined
    const may = await reviews.mayDo(user, { nonResourceAttributes: { path: '/metrics', verb: 'get' } })
    return may ? true : undefined
  }
}
