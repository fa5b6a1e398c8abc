// The HTTP client of every component: one pool of connections for each origin, requests with whole bodies, no redirects.
// Only the part of undici that this needs is loaded, and only for the first request: all of it costs 10 MB more.

import type { Dispatcher, Pool } from 'undici'
import { timeoutSignal } from '../clock.ts'
import { errorText, PenstockError } from '../errors.ts'
import { openConnection } from '../net/connect.ts'
import type { ChooseProxy, ProxyAddress } from '../net/proxy.ts'
import type { TlsSettings } from '../net/tls.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { errorFact, fact } from '../telemetry/facts.ts'
import { version } from '../version.ts'
import { AnswerBody, codings, type HeldBytes } from './answer-body.ts'

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | undefined
}

export interface HttpResponse {
  readonly status: number
  /** Names in lower case; repeated headers are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>
  /** The body, decompressed; cut off at the limit that the caller gave. */
  readonly body: Buffer
}

export interface HttpClientOptions {
  readonly tls: TlsSettings
  readonly proxy: ChooseProxy
  /** Where `http_client_*` metrics go. */
  readonly events?: ComponentEvents
  /** Most connections to one origin; as many as there are requests if not given. */
  readonly connections?: number | undefined
  readonly connectTimeoutMs?: number
}

/** Value of `User-Agent`. */
export const userAgent = `Penstock/${version}`

// The path is not part of undici's promises, so a test holds it; the lock file holds the version.
let poolClass: typeof Pool | undefined

async function loadPool(): Promise<void> {
  poolClass ??= (await import('undici/lib/dispatcher/pool.js')).default
}

const keptOfBody = 65_536

/** Bytes of a body that are read beyond those that are kept, to reuse the connection; beyond them it is closed. */
const maxSurplus = 1 << 20

/** Tags with one name: one object for each value, because counters are found by the identity of their tags. */
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

// Few values each: methods, status codes, and error codes of the system and of the client.
const methods = new KnownTags('method')
const statuses = new KnownTags('status')
const errorKinds = new KnownTags('error_kind')

/** Origins with connections at a time: an address can come from data. */
const maxOrigins = 100

export class HttpClient {
  readonly #options: HttpClientOptions
  /** By origin, the one that was used longest ago first. */
  readonly #pools = new Map<string, { readonly pool: Pool; readonly proxy: ProxyAddress | undefined }>()
  /** Pools that end with the requests that they have. */
  readonly #ending = new Set<Pool>()
  readonly #closing = new AbortController()
  readonly #answers: HeldBytes = { held: 0 }

  constructor(options: HttpClientOptions) {
    this.#options = options
  }

  /**
   * Sends a request and reads the answer. Rejects with the transport's error, or with the signal's reason.
   * @param keep bytes of the answer's body that are kept, before and after decompression; a little more is read and thrown away
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
        const coding = headers.get('content-encoding')
        if (coding === undefined || !codings.has(coding)) {
          resolve({ status, headers, body: body.raw() })
          body.release()
          return
        }
        const decoded = body.decoded(coding).then((plain) => ({ status, headers, body: plain }))
        resolve(decoded.finally(() => body.release()))
      }
      signal.addEventListener('abort', abort)
      try {
        const { pool, proxy } = this.#pool(request.url)
        pool.dispatch(dispatchOptions(request, proxy), {
          onRequestStart(started) {
            controller = started
            if (settled) started.abort(new Error('The request was given up.'))
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
            started.abort(new Error('The answer is longer than what is read of it.'))
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

  /** Ends all connections. Requests under way fail. */
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
      // The caller's signal bounds each request as a whole.
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

  /** Closes the connections of the origin that was used longest ago, once the requests under way are answered. */
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

/** Tag `error_kind`: the code of the system or of the client. */
function errorKind(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown'
}

/** The URL of an address that a user gave; throws a PenstockError if it is none. */
export function parseUrl(text: string, option: string): URL {
  const url = URL.parse(text)
  if (url !== null && (url.protocol === 'http:' || url.protocol === 'https:')) return url
  throw new PenstockError('PEN_CONFIG_INVALID', `\`${option}\` must be a URL with scheme http or https.`)
}

/** For log fields: the error and, where there is one, its system code. */
export function transportFields(error: unknown): Record<string, unknown> {
  return { error: errorFact(reasonText(error), error), error_kind: fact(errorKind(error)) }
}

/** Why a request failed, without a full stop. Several addresses that failed together have no text but a code. */
export function reasonText(error: unknown): string {
  const text = errorText(error).replace(/\.$/, '')
  return text === '' ? errorKind(error) : text
}

/** True for requests that cannot be sent unchanged, such as with a header that is none: another attempt is in vain. */
export function isUnsendable(error: unknown): boolean {
  return errorKind(error) === 'UND_ERR_INVALID_ARG'
}
