// The common part of all sinks over HTTP: batching, delivery, authentication, TLS, proxies, telemetry, health checks.
// A sink defines the address of requests and the encoding of events; it never accesses a connection.

import { BoundedMap, ownText } from '../bounded-map.ts'
import { systemClock } from '../clock.ts'
import type { Encoder, StreamEncoder } from '../codecs/encoding/encoder.ts'
import type { Sink, SinkContext, SinkEnvelope } from '../component.ts'
import { type AnyEvent, Batcher, type RequestWriter } from '../delivery/batcher.ts'
import { compileCompression } from '../delivery/compression.ts'
import type { ConcurrencyLimit } from '../delivery/concurrency.ts'
import { cpuLimit } from '../delivery/cpu-limit.ts'
import { type Attempt, type Call, Delivery, withTimeout } from '../delivery/delivery.ts'
import { Endpoints } from '../delivery/endpoints.ts'
import { encoderFailed } from '../delivery/failed-events.ts'
import { limitsOf, requestPace } from '../delivery/limits.ts'
import { LineTarget } from '../delivery/line-target.ts'
import { type Assemble, type Codec, type OpenRequest, type Request, sealRequest } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import type { Batch } from '../event/batch.ts'
import type { BodyPool } from '../event/body.ts'
import { joinedKey } from '../event/joined-key.ts'
import { compileProxy } from '../net/proxy.ts'
import { withoutSecret } from '../net/redact.ts'
import { compileTls } from '../net/tls.ts'
import { reasonText, transportFields } from '../net/transport-errors.ts'
import type { BatchOptions, CompressionOption, RequestOptions, TlsOptions } from '../schema/groups.ts'
import { authorization, type StaticAuth } from './auth.ts'
import { classifyResponse } from './classify.ts'
import { HttpClient, type HttpRequest, type HttpResponse, isUnsendable, parseUrl } from './client.ts'

/** The options that the common part needs. */
export interface HttpSinkOptions {
  readonly batch: BatchOptions
  readonly request: RequestOptions
  readonly tls: TlsOptions
  readonly auth?: StaticAuth | { readonly strategy: 'aws' } | undefined
  readonly compression?: CompressionOption | undefined
}

/** Signs a request, and returns the headers to send. */
export type Sign = (request: HttpRequest, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>

/** Queries the destination with GET, or with POST if there is a body. Adds the headers to those of every request. */
export type SendQuery = (
  url: string,
  headers?: Readonly<Record<string, string>>,
  body?: string,
) => Promise<HttpResponse>

export interface HttpSinkSpec {
  /** The address of requests: a single one, several of the same destination, or one for each partition. */
  readonly url: string | readonly string[] | ((key: string) => string)
  /** `POST` by default. */
  readonly method?: string
  /** Headers of every request, with lowercase names. */
  readonly headers?: Readonly<Record<string, string>> | ((key: string) => Readonly<Record<string, string>>)
  /** Headers from dedicated options, such as the tenant of an event, which `request.headers` cannot replace. */
  readonly lastHeaders?: (key: string) => Readonly<Record<string, string>> | undefined
  /** The partition of an event; undefined if it cannot be sent, which the sink has counted. By default, there is one partition. */
  readonly partition?: ((event: AnyEvent) => string | undefined) | undefined
  /** Writes the beginning of a body, before the first event. */
  readonly begin?: (request: OpenRequest) => void
  /** Appends events `[from, to)` and marks each. For an event that cannot be encoded, the sink writes nothing and counts the event. */
  readonly encode: (events: readonly AnyEvent[], from: number, to: number, request: OpenRequest) => void
  /** The same for events that are still lines. Without it, lines are converted to objects first. */
  readonly encodeLines?: RequestWriter['encodeLines']
  /** Whether the sink accepts events that are still lines; by default, if there is `encodeLines` and no `partition`. */
  readonly takesBytes?: boolean
  /** Completes the body. Returns the request to send, which may be a new one with another body from the pool. */
  readonly finish?: (request: OpenRequest, pool: BodyPool) => OpenRequest
  /** Assembles a request from selected events of another one. */
  readonly assemble: Assemble
  /** Maximum size of a body before compression. */
  readonly maxBodyBytes?: number
  /** Whether a request exceeds a limit of the destination other than the size of its body. */
  readonly tooLarge?: ((request: Request) => boolean) | undefined
  /** Classifies a response if its status is not sufficient. */
  readonly classify?: (response: HttpResponse, request: Request) => Attempt
  /** A secret besides headers and credentials, which is removed from logged responses. */
  readonly secret?: string | undefined
  /** Number of response bytes that `classify` needs. */
  readonly keepOfAnswer?: number
  readonly sign?: Sign | undefined
  /** The sink's own compression, which replaces `compression`. */
  readonly codec?: Codec
  /** How long the sink avoids a failed endpoint, if there are several. */
  readonly distribution?: { readonly retry_initial_backoff_secs: number; readonly retry_max_duration_secs: number }
  /** Checks the destination with queries; throws a PenstockError if the destination is not usable. */
  readonly healthcheck?: ((get: SendQuery) => Promise<void>) | undefined
}

/** Appends a path to a base address, with one slash between them. The query of the address stays at the end. */
export function joinPath(base: string, path: string): string {
  const url = parseUrl(base, 'endpoint')
  const credentials = url.username === '' && url.password === '' ? '' : `${url.username}:${url.password}@`
  const prefix = `${url.protocol}//${credentials}${url.host}${url.pathname.replace(/\/+$/, '')}`
  // Without a path, the base is the whole address.
  return `${prefix}${path === '' ? '' : `/${path.replace(/^\/+/, '')}`}${url.search}`
}

/** A sink with which its component can also query the destination, with the same authentication, TLS and proxies. */
export interface QueryingSink extends Sink {
  get(
    url: string,
    signal: AbortSignal,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<HttpResponse>
}

export function httpSink(context: SinkContext, options: HttpSinkOptions, spec: HttpSinkSpec): QueryingSink {
  return new HttpSink(context, options, spec)
}

/** An `encode` that writes events one by one, with a separator between them. */
export function encodeEach(context: SinkContext, encoder: Encoder, separator = ''): HttpSinkSpec['encode'] {
  return (events, from, to, request) => {
    const { body } = request
    for (let index = from; index < to; index++) {
      const before = body.length
      if (request.count > 0 && separator !== '') body.writeText(separator)
      const start = body.length
      const problem = encoder.encode(events[index] as AnyEvent, body)
      if (problem === undefined) {
        request.mark(start)
      } else {
        body.truncate(before)
        encoderFailed(context, problem)
      }
    }
  }
}

/** An `encodeLines` for the same bodies; undefined if the encoder does not write single-line JSON, or the framing is unsuitable. */
export function encodeEachLine(
  context: SinkContext,
  encoder: Encoder | StreamEncoder,
  separator = '',
): RequestWriter['encodeLines'] {
  const delimiter = 'framing' in encoder ? encoder.framing.delimiter : Buffer.from(separator)
  const fields = encoder.lineFields
  if (fields === undefined || delimiter === undefined || delimiter.length > 1 || delimiter[0] === 0) return undefined
  const frames = { delimiter: delimiter[0], isSeparator: separator !== '', fields }
  const target = new LineTarget(frames, encodeEach(context, encoder, separator))
  return (batch, from, to, request) => target.encode(batch, from, to, request)
}

interface Address {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Tags of `component_sent_bytes_total`. */
  readonly tags: Readonly<Record<string, string>>
}

/** Limits of the cached addresses of partitions. */
const keptAddresses = {
  maxEntries: 1000,
  maxBytes: 8 << 20,
  // A URL stores its parts as separate strings, and headers may repeat the key.
  sizeOf: ({ url, headers }: Address) => 1500 + 6 * url.href.length + 2 * lengthOf(headers),
}

function lengthOf(headers: Readonly<Record<string, string>>): number {
  let length = 0
  for (const name in headers) length += name.length + (headers[name] as string).length
  return length
}

class HttpSink implements QueryingSink {
  readonly healthcheck?: (signal: AbortSignal) => Promise<void>
  readonly #context: SinkContext
  readonly #options: HttpSinkOptions
  readonly #spec: HttpSinkSpec
  readonly #client: HttpClient
  readonly takesBytes: boolean
  readonly #batcher: Batcher
  readonly #delivery: Delivery
  readonly #contentEncoding: string | undefined
  readonly #addresses = new BoundedMap<Address>(keptAddresses)
  /** The write that waits for a slot; undefined if there is none. */
  #writing: Promise<void> | undefined

  constructor(context: SinkContext, options: HttpSinkOptions, spec: HttpSinkSpec) {
    this.#context = context
    this.#options = options
    this.#spec = spec
    this.takesBytes = spec.takesBytes ?? (spec.encodeLines !== undefined && spec.partition === undefined)
    const tls = compileTls(options.tls)
    for (const warning of tls.warnings) context.logger.warn({}, warning)
    const { request, batch } = options
    const urls = typeof spec.url === 'function' ? undefined : typeof spec.url === 'string' ? [spec.url] : spec.url
    this.#client = new HttpClient({
      tls,
      proxy: compileProxy(context.proxy),
      events: context.events,
      connections: typeof request.concurrency === 'number' ? request.concurrency : undefined,
      connectTimeoutMs: Math.min(request.timeout_secs * 1000, 10_000),
    })
    const compression = compileCompression(options.compression)
    this.#contentEncoding = spec.codec === undefined ? compression.contentEncoding : undefined
    const codec = spec.codec ?? compression
    if (this.#contentEncoding !== undefined) {
      const usesPool = compression.compressOnPool !== undefined
      context.logger.debug(
        { algorithm: compression.algorithm, cpu_limit: cpuLimit() },
        usesPool ? 'Other threads may compress large bodies.' : 'The main thread compresses bodies.',
      )
    }

    const { call, concurrency } = this.#route(urls)
    // Report invalid addresses and credentials at start.
    for (const url of urls ?? []) this.#address(url, '')

    this.#delivery = new Delivery(
      {
        ...requestPace(request),
        concurrency,
        authGraceMs: request.auth_grace_secs * 1000,
        maxBodyBytes: spec.maxBodyBytes,
        tooLarge: spec.tooLarge,
        rejected: context.rejected,
      },
      call,
      context.events,
      context.abandoning,
      systemClock,
    )
    this.#batcher = new Batcher(
      {
        maxBytes: batch.max_bytes ?? Number.POSITIVE_INFINITY,
        maxEvents: batch.max_events ?? Number.POSITIVE_INFINITY,
        timeoutMs: batch.timeout_secs * 1000,
        maxBodyBytes: spec.maxBodyBytes,
      },
      {
        partition: spec.partition,
        begin: spec.begin,
        encode: spec.encode,
        // A disk buffer may return lines from before a reload, when the sink accepted them.
        encodeLines: this.takesBytes ? spec.encodeLines : undefined,
      },
      systemClock,
      (open) => {
        const { pool } = this.#batcher
        this.#delivery.submit(sealRequest(spec.finish?.(open, pool) ?? open, pool, codec, spec.assemble))
      },
    )
    context.succession?.senders.push(this)
    const check = this.#healthcheckOf()
    if (check !== undefined) this.healthcheck = check
  }

  /** The call and the concurrency limit for one address, or for several addresses that share the requests by their health. */
  #route(urls: readonly string[] | undefined): { readonly call: Call; readonly concurrency: ConcurrencyLimit } {
    const { url: address, distribution } = this.#spec
    const { request } = this.#options
    const { events } = this.#context
    const limits = limitsOf(request, this.#context)
    const timeoutMs = request.timeout_secs * 1000
    const callTo = (addressOf: (key: string) => Address) =>
      withTimeout((outgoing, signal) => this.#send(addressOf, outgoing, signal), timeoutMs, systemClock)
    if (urls === undefined || urls.length <= 1) {
      const call = callTo(
        typeof address === 'function'
          ? (key) => this.#address(address(key), key)
          : (key) => this.#address(urls?.[0] as string, key),
      )
      return { call, concurrency: limits() }
    }
    const endpoints = new Endpoints(
      urls.map((url) => ({ call: callTo((key) => this.#address(url, key)), concurrency: limits() })),
      {
        initialMs: (distribution?.retry_initial_backoff_secs ?? 1) * 1000,
        maxMs: (distribution?.retry_max_duration_secs ?? 3600) * 1000,
      },
      healthOf,
      (active) => events.gauge('active_endpoints', active),
      systemClock,
    )
    return { call: endpoints.call, concurrency: endpoints }
  }

  write(batch: Batch): Promise<void> | undefined {
    const { count, finalizer } = batch
    if (count === 0) {
      finalizer.release(1, 'dropped')
      return undefined
    }
    finalizer.retain(count - 1)
    if (this.#writing === undefined) {
      const taken = this.#batcher.add(batch, 0, this.#isFull)
      if (taken === count && !this.#delivery.full) return undefined
      this.#writing = this.#writeRest(batch, taken)
    } else {
      const before = this.#writing
      this.#writing = before.then(() => this.#writeRest(batch, 0))
    }
    const writing = this.#writing
    return writing.then(() => {
      if (this.#writing === writing) this.#writing = undefined
    })
  }

  readonly #isFull = (): boolean => this.#delivery.full

  /** Writes the rest of a batch as slots become free. Resolves when the sink can accept more. */
  async #writeRest(batch: Batch, from: number): Promise<void> {
    let taken = from
    for (;;) {
      await this.#delivery.ready()
      if (taken === batch.count) return
      taken = this.#batcher.add(batch, taken, this.#isFull)
    }
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) {
      const writing = this.#writing
      await writing
      if (this.#writing === writing) this.#writing = undefined
    }
    this.#batcher.flush()
    await this.#delivery.close()
    await this.#client.close()
  }

  async #send(addressOf: (key: string) => Address, outgoing: Request, signal: AbortSignal): Promise<Attempt> {
    const spec = this.#spec
    let address: Address
    let sent: HttpRequest
    let response: HttpResponse
    try {
      address = addressOf(outgoing.key)
    } catch (error) {
      // The address is invalid, so another attempt would also fail.
      return { outcome: 'rejected', failure: { type: 'request_failed', fields: transportFields(error) } }
    }
    try {
      const { url } = address
      const { headers, sign } = (outgoing.resends > 0 ? this.#successorTo(address, outgoing.key) : undefined) ?? {
        headers: address.headers,
        sign: spec.sign,
      }
      const request: HttpRequest = { method: spec.method ?? 'POST', url, headers, body: outgoing.payload }
      sent = sign === undefined ? request : { ...request, headers: await sign(request, signal) }
      response = await this.#client.send(sent, signal, spec.keepOfAnswer)
    } catch (error) {
      if (signal.aborted) throw error
      if (isUnsendable(error)) {
        return { outcome: 'rejected', failure: { type: 'request_failed', fields: transportFields(error) } }
      }
      const type = error instanceof PenstockError && error.code === 'PEN_AUTH' ? 'authentication_failed' : undefined
      return { outcome: 'retry', failure: { type: type ?? 'connection_failed', fields: transportFields(error) } }
    }
    const attempt = (spec.classify ?? classifyResponse)(response, outgoing)
    const isUnauthorized = response.status === 401 || response.status === 403
    if (response.status >= 200 && response.status < 300) {
      this.#context.events.sentBytes(outgoing.payload.length, address.tags)
    } else if (this.#context.logger.isLevelEnabled('debug')) {
      const hidden = [...secretsOf(sent.headers, this.#options.request.headers), spec.secret ?? '']
      this.#context.logger.debug(
        { status: response.status, answer: excerpt(response.body, hidden) },
        'The destination rejected a request.',
      )
    }
    return attempt.outcome === 'rejected' && isUnauthorized ? { ...attempt, unauthorized: true } : attempt
  }

  /** The headers and signature of the sink that replaced this one, if it sends in the same form to the same address. */
  #successorTo(
    { url, headers }: Address,
    key: string,
  ): (Pick<HttpSinkSpec, 'sign'> & Pick<Address, 'headers'>) | undefined {
    for (const sender of this.#context.succession?.latest?.senders ?? []) {
      if (!(sender instanceof HttpSink)) continue
      const { url: known, sign } = sender.#spec
      const urls = typeof known === 'function' ? [known(key)] : typeof known === 'string' ? [known] : known
      for (const text of urls) {
        const address = sender.#address(text, key)
        const isSame = (name: string) => address.headers[name] === headers[name]
        if (address.url.href === url.href && isSame('content-type') && isSame('content-encoding')) {
          return { headers: address.headers, sign }
        }
      }
    }
    return undefined
  }

  /** The cached address for the requests of a partition. */
  #address(text: string, key: string): Address {
    const id = joinedKey([text, key])
    const known = this.#addresses.get(id)
    if (known !== undefined) return known
    const url = parseUrl(ownText(text), 'endpoint')
    if (this.#options.tls.enabled === true && url.protocol !== 'https:') {
      throw new PenstockError(
        'PEN_CONFIG_INVALID',
        `\`tls.enabled\` is true, but the scheme of ${url.origin} is not https.`,
      )
    }
    const header = authorization(url, this.#options.auth)
    const { headers } = this.#spec
    const address: Address = {
      url,
      headers: {
        ...(this.#contentEncoding === undefined ? {} : { 'content-encoding': this.#contentEncoding }),
        ...(typeof headers === 'function' ? headers(ownText(key)) : headers),
        ...lowerCased(this.#options.request.headers),
        ...(header === undefined ? {} : { authorization: header }),
        ...this.#spec.lastHeaders?.(ownText(key)),
      },
      tags: {
        protocol: url.protocol.slice(0, -1),
        // There may be an unlimited number of paths that contain event fields.
        endpoint: typeof this.#spec.url === 'function' ? url.origin : `${url.origin}${url.pathname}`,
      },
    }
    this.#addresses.set(id, address)
    return address
  }

  #healthcheckOf(): ((signal: AbortSignal) => Promise<void>) | undefined {
    const { healthcheck } = this.#options as Partial<SinkEnvelope>
    const uri = typeof healthcheck === 'object' ? healthcheck.uri : undefined
    const check =
      uri === undefined
        ? this.#spec.healthcheck
        : async (get: SendQuery) => {
            const { status } = await get(uri)
            if (status < 200 || status >= 300) throw unhealthy(uri, status)
          }
    if (check === undefined) return undefined
    return (signal) => check((url, headers, body) => this.get(url, signal, headers, body))
  }

  async get(
    text: string,
    signal: AbortSignal,
    added: Readonly<Record<string, string>> = {},
    body?: string,
  ): Promise<HttpResponse> {
    const url = parseUrl(text, 'endpoint')
    const header = authorization(url, this.#options.auth)
    const headers = {
      ...added,
      ...lowerCased(this.#options.request.headers),
      ...(header === undefined ? {} : { authorization: header }),
    }
    const request: HttpRequest =
      body === undefined ? { method: 'GET', url, headers } : { method: 'POST', url, headers, body: Buffer.from(body) }
    const { sign } = this.#spec
    try {
      return await this.#client.send(
        sign === undefined ? request : { ...request, headers: await sign(request, signal) },
        signal,
      )
    } catch (error) {
      // This error means that there are no credentials and no request was sent.
      if (error instanceof PenstockError && error.code === 'PEN_AUTH') throw error
      throw new PenstockError('PEN_HEALTHCHECK', `${url.origin} cannot be reached: ${reasonText(error)}.`, {
        cause: error,
      })
    }
  }
}

/** For `keepOfAnswer`, if a response has an entry for each event. If it is longer, only its status counts. */
export const maxListBytes = 8 << 20

/** The error of a health check that received an unexpected response. */
export function unhealthy(address: string, status: number): PenstockError {
  const url = URL.parse(address)
  const place = url === null ? 'The destination' : `${url.origin}${url.pathname}`
  const fact = `The destination responded with status ${status}.`
  return new PenstockError('PEN_HEALTHCHECK', `${place} responded with status ${status}.`, { fact, status })
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

function excerpt(body: Buffer, secrets: readonly string[]): string {
  let text = body.toString('utf8')
  // Replace secrets before truncating, because half of a secret is still secret. Replace longer secrets first, because one may contain
  // another.
  for (const secret of secrets.toSorted((left, right) => right.length - left.length)) text = withoutSecret(text, secret)
  return text.slice(0, 512)
}

/** Matches the names of headers that identify the sender. */
const identifyingHeader = /auth|key|token|secret|signature|password|cookie/

/** Secret header values that a destination may repeat in its response: those that identify the sender, and all that the user set. */
function secretsOf(headers: Readonly<Record<string, string>>, given: Readonly<Record<string, string>>): string[] {
  const secrets = Object.values(given)
  for (const name in headers) {
    if (!identifyingHeader.test(name)) continue
    const value = headers[name] as string
    const [scheme = '', rest = ''] = value.split(/ (.*)/s)
    secrets.push(value, rest)
    if (scheme !== 'Basic') continue
    const pair = Buffer.from(rest, 'base64').toString('utf8')
    secrets.push(pair, pair.slice(pair.indexOf(':') + 1))
  }
  return secrets
}

/** Status 2xx means healthy. Status 5xx or no response means unhealthy. Any other status is inconclusive. */
function healthOf(attempt: Attempt): 'healthy' | 'unhealthy' | 'unknown' {
  if (attempt.outcome === 'delivered' || attempt.outcome === 'partial') return 'healthy'
  const status = attempt.failure.fields?.['status']
  if (typeof status !== 'number') return 'unhealthy'
  return status >= 500 ? 'unhealthy' : 'unknown'
}
