// The HTTP client of all components: one connection pool for each origin, requests with complete bodies, and no redirects.
// It loads only the required part of undici, and only for the first request, because all of undici would cost 10 MB more.

import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Dispatcher, Pool } from 'undici'
import { timeoutSignal } from '../clock.ts'
import { PenstockError } from '../errors.ts'
import { openConnection } from '../net/connect.ts'
import type { ChooseProxy, ProxyAddress } from '../net/proxy.ts'
import type { TlsSettings } from '../net/tls.ts'
import { errorKind } from '../net/transport-errors.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { version } from '../version.ts'
import { AnswerBody, codings, type HeldBytes } from './answer-body.ts'

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  /** Lowercase names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
}

export interface HttpResponse {
  readonly status: number
  /** Lowercase names. Repeated headers are joined with a comma. */
  readonly headers: ReadonlyMap<string, string>
  /** The decompressed body, truncated to the limit of the caller. */
  readonly body: Buffer
}

export interface HttpClientOptions {
  readonly tls: TlsSettings
  readonly proxy: ChooseProxy
  /** Receives the `http_client_*` metrics. */
  readonly events?: ComponentEvents
  /** Maximum number of connections to one origin; by default as many as there are requests. */
  readonly connections?: number | undefined
  readonly connectTimeoutMs?: number
}

/** Value of `User-Agent`. */
export const userAgent = `Penstock/${version}`

// This path is not part of undici's public interface. A test verifies it, and the lock file pins the version.
let poolClass: typeof Pool | undefined

async function loadPool(): Promise<void> {
  poolClass ??= (await import('undici/lib/dispatcher/pool.js')).default
}

/** The connection on which each body was written last. */
const connections = new WeakMap<object, Socket>()
subscribe('undici:client:sendHeaders', (message) => {
  const { request, socket } = message as { readonly request: { readonly body: unknown }; readonly socket: Socket }
  if (Buffer.isBuffer(request.body)) connections.set(request.body, socket)
})

/** Interval between two checks of whether a connection has sent everything. */
const sentCheckMs = 5

/**
 * Waits until a connection has sent the body of an answered request, or has ended. Until then it reads the memory of the body, in which the
 * caller may write the next one. Destinations that answer before they have read the request are rare.
 */
async function untilSent(connection: Socket, signal: AbortSignal): Promise<void> {
  while (connection.writableLength > 0 && !connection.destroyed) {
    if (signal.aborted) connection.destroy()
    else await wait(sentCheckMs)
  }
}

const keptOfBody = 65_536

/** Maximum number of bytes to read beyond those to keep, so that the connection can be reused. For a longer body, it is closed. */
const maxSurplus = 1 << 20

/** Tag objects for one tag name. Each value has a single object, because counters are looked up by the identity of their tags. */
class KnownTags {
  readonly #name: string
  readonly #byValue = new Map<string, Readonly<Record<string, string>>>()

  constructor(name: string) {
    this.#name = name
  }

  of(value: string): Readonly<Record<string, string>> {
    let tags = this.#byValue.get(value)
    if (tags === undefined) {
      tags = { [this.#name]: value }
      this.#byValue.set(value, tags)
    }
    return tags
  }
}

// Each has few values: methods, status codes, and error codes of the system and of the client.
const methods = new KnownTags('method')
const statuses = new KnownTags('status')
const errorKinds = new KnownTags('error_kind')

/** Maximum number of origins with open connections, because addresses can come from data. */
const maxOrigins = 100

export class HttpClient {
  readonly #options: HttpClientOptions
  /** The pools by origin, least recently used first. */
  readonly #pools = new Map<string, { readonly pool: Pool; readonly proxy: ProxyAddress | undefined }>()
  /** Pools that close after their current requests. */
  readonly #ending = new Set<Pool>()
  readonly #closing = new AbortController()
  readonly #answers: HeldBytes = { held: 0 }

  constructor(options: HttpClientOptions) {
    this.#options = options
  }

  /**
   * Sends a request and reads the response. Rejects with the transport's error, or with the signal's reason.
   * @param keep maximum number of bytes of the body to keep, before and after decompression; a few more may be read and discarded
   */
  async send(request: HttpRequest, signal: AbortSignal, keep = keptOfBody): Promise<HttpResponse> {
    if (poolClass === undefined) await loadPool()
    return await this.#send(request, signal, keep)
  }

  #send(request: HttpRequest, signal: AbortSignal, keep: number): Promise<HttpResponse> {
    const { events } = this.#options
    const start = performance.now()
    events?.count('http_client_requests_sent_total', 1, methods.of(request.method))
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      let controller: Dispatcher.DispatchController | undefined
      const abort = () => {
        fail(signal.reason)
        controller?.abort(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)))
      }
      const end = () => signal.removeEventListener('abort', abort)
      let settled = false
      const fail = (error: unknown) => {
        if (settled) return
        settled = true
        body.release()
        end()
        const kind = errorKind(error)
        const tags = errorKinds.of(kind)
        events?.count('http_client_errors_total', 1, tags)
        events?.observe('http_client_error_rtt_seconds', (performance.now() - start) / 1000, tags)
        reject(error)
      }
      let status = 0
      let headers: ReadonlyMap<string, string> = new Map()
      const body = new AnswerBody(keep, this.#answers)
      const answered = () => {
        if (settled) return
        settled = true
        end()
        const seconds = (performance.now() - start) / 1000
        const tags = statuses.of(String(status))
        events?.count('http_client_responses_total', 1, tags)
        events?.observe('http_client_rtt_seconds', seconds)
        events?.observe('http_client_response_rtt_seconds', seconds, tags)
        const answer = answerOf({ status, headers }, body)
        const connection = request.body && connections.get(request.body)
        if (connection === undefined || connection.writableLength === 0) resolve(answer)
        else resolve(Promise.allSettled([answer, untilSent(connection, signal)]).then(() => answer))
      }
      signal.addEventListener('abort', abort)
      try {
        const { pool, proxy } = this.#pool(request.url)
        pool.dispatch(dispatchOptions(request, proxy), {
          onRequestStart(started) {
            controller = started
            if (settled) started.abort(new Error('The request was aborted.'))
          },
          onResponseStart(_, code, fields) {
            status = code
            headers = headerMap(fields)
          },
          onResponseData(started, chunk) {
            if (settled) return
            body.add(chunk)
            if (body.surplus <= maxSurplus) return
            answered()
            started.abort(new Error('The response is longer than the limit.'))
          },
          onResponseEnd() {
            answered()
          },
          onResponseError(_, error) {
            fail(error)
          },
        })
      } catch (error) {
        fail(error)
      }
    })
  }

  /** Closes all connections. Requests in flight fail. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('The client was closed.'))
    const pools = [...Array.from(this.#pools.values(), ({ pool }) => pool), ...this.#ending]
    this.#pools.clear()
    await Promise.all(pools.map((pool) => pool.destroy()))
  }

  #pool(url: URL): { readonly pool: Pool; readonly proxy: ProxyAddress | undefined } {
    const known = this.#pools.get(url.origin)
    if (known !== undefined) {
      if (this.#pools.size > 1) {
        this.#pools.delete(url.origin)
        this.#pools.set(url.origin, known)
      }
      return known
    }
    if (this.#pools.size >= maxOrigins) this.#endOldest()
    const { tls, connections, connectTimeoutMs = 10_000 } = this.#options
    const proxy = this.#options.proxy(url)
    const secure = url.protocol === 'https:'
    const target = {
      host: url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname,
      port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
      secure,
    }
    const closing = this.#closing.signal
    const pool = new (poolClass as typeof Pool)(url.origin, {
      connections: connections ?? null,
      pipelining: 1,
      // The caller's signal limits the total time of a request.
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: tls.offersHttp2,
      connect: (_, callback) => {
        const limit = AbortSignal.any([closing, timeoutSignal(connectTimeoutMs)])
        openConnection(target, proxy, tls, limit, this.#options.proxy.egress).then(
          (socket) => callback(null, socket),
          (error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null),
        )
      },
    })
    const made = { pool, proxy }
    this.#pools.set(url.origin, made)
    return made
  }

  /** Closes the connections of the least recently used origin, after the responses to its current requests. */
  #endOldest(): void {
    for (const [origin, { pool }] of this.#pools) {
      this.#pools.delete(origin)
      this.#ending.add(pool)
      const ended = () => this.#ending.delete(pool)
      pool.close().then(ended, ended)
      return
    }
  }
}

/** The response with its decompressed body; gives the memory of the body back. */
function answerOf(
  { status, headers }: Omit<HttpResponse, 'body'>,
  body: AnswerBody,
): HttpResponse | Promise<HttpResponse> {
  const coding = headers.get('content-encoding')
  if (coding === undefined || !codings.has(coding)) {
    const raw = body.raw()
    body.release()
    return { status, headers, body: raw }
  }
  const decoded = body.decoded(coding).then((plain) => ({ status, headers, body: plain }))
  return decoded.finally(() => body.release())
}

function dispatchOptions(request: HttpRequest, proxy: ProxyAddress | undefined): Dispatcher.DispatchOptions {
  const { method, url, body } = request
  const headers: Record<string, string> = { ...request.headers }
  headers['user-agent'] ??= userAgent
  headers['accept-encoding'] ??= 'identity'
  let path = `${url.pathname}${url.search}`
  if (proxy !== undefined && url.protocol === 'http:') {
    path = `${url.origin}${path}`
    if (proxy.authorization !== undefined) headers['proxy-authorization'] = proxy.authorization
  }
  return { method: method as Dispatcher.HttpMethod, path, headers, body: body ?? null }
}

function headerMap(fields: Readonly<Record<string, string | string[] | undefined>>): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (const name in fields) {
    const value = fields[name]
    if (value !== undefined) headers.set(name.toLowerCase(), typeof value === 'string' ? value : value.join(', '))
  }
  return headers
}

/** Parses an address that a user configured; throws a PenstockError if it is not an HTTP URL. */
export function parseUrl(text: string, option: string): URL {
  const url = URL.parse(text)
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return url
  throw new PenstockError('PEN_CONFIG_INVALID', `\`${option}\` must be a URL with scheme http or https.`)
}

/** Whether a request is invalid, for example because of an invalid header, so that another attempt would also fail. */
export function isUnsendable(error: unknown): boolean {
  return errorKind(error) === 'UND_ERR_INVALID_ARG'
}
