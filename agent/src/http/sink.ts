// Shared by all sinks over HTTP: batching, delivery, authentication, TLS, proxies, telemetry, health checks.
// A sink says where requests go and how events are written; it never touches a connection.

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
import type { BatchOptions, CompressionOption, RequestOptions, TlsOptions } from '../schema/groups.ts'
import { authorization, type StaticAuth } from './auth.ts'
import { classifyResponse } from './classify.ts'
import {
  HttpClient,
  type HttpRequest,
  type HttpResponse,
  isUnsendable,
  parseUrl,
  reasonText,
  transportFields,
} from './client.ts'

/** Options that the shared part reads; a sink passes its own. */
export interface HttpSinkOptions {
  readonly batch: BatchOptions
  readonly request: RequestOptions
  readonly tls: TlsOptions
  readonly auth?: StaticAuth | { readonly strategy: 'aws' } | undefined
  readonly compression?: CompressionOption | undefined
}

/** Signs a request: gives the headers to send. */
export type Sign = (request: HttpRequest, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>

/** Asks the destination by GET, or by POST where there is a body; the headers are added to those of every request. */
export type Ask = (url: string, headers?: Readonly<Record<string, string>>, body?: string) => Promise<HttpResponse>

export interface HttpSinkSpec {
  /** Where requests go: one address, several of the same destination, or one for each partition. */
  readonly url: string | readonly string[] | ((key: string) => string)
  /** `POST` if not given. */
  readonly method?: string
  /** Headers of every request; names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | ((key: string) => Readonly<Record<string, string>>)
  /** Headers from dedicated options, such as the tenant of an event: `request.headers` cannot replace them. */
  readonly lastHeaders?: (key: string) => Readonly<Record<string, string>> | undefined
  /** The partition of an event; undefined if it cannot be sent, which the sink has counted. Left out: one for all. */
  readonly partition?: ((event: AnyEvent) => string | undefined) | undefined
  /** Writes the part before the first event. */
  readonly begin?: (request: OpenRequest) => void
  /** Appends events `[from, to)` and marks each; what cannot be encoded is counted and leaves nothing behind. */
  readonly encode: (events: readonly AnyEvent[], from: number, to: number, request: OpenRequest) => void
  /** The same for events that are lines still; left out: they are made objects. */
  readonly encodeLines?: RequestWriter['encodeLines']
  /** Whether events that are lines still are taken as such; if not given, where `encodeLines` is. */
  readonly takesBytes?: boolean
  /** Completes the body; returns the request to send, which may be another one with a body of the pool. */
  readonly finish?: (request: OpenRequest, pool: BodyPool) => OpenRequest
  /** Puts chosen events of a request together again. */
  readonly assemble: Assemble
  /** Largest body that the destination takes, before compression. */
  readonly maxBodyBytes?: number
  /** Whether a request is larger than the destination takes, where that depends on more than its body. */
  readonly tooLarge?: ((request: Request) => boolean) | undefined
  /** Judges an answer where that is not by its status alone. */
  readonly classify?: (response: HttpResponse, request: Request) => Attempt
  /** Values that must stay hidden if the destination repeats them in answers or logs, besides headers and credentials. */
  readonly secret?: string | undefined
  /** Bytes of an answer that `classify` needs. */
  readonly keepOfAnswer?: number
  readonly sign?: Sign | undefined
  /** Whether the body is compressed by the sink itself: `compression` is then not applied. */
  readonly codec?: Codec
  /** How the sink avoids failed endpoints, if there are several. */
  readonly distribution?: { readonly retry_initial_backoff_secs: number; readonly retry_max_duration_secs: number }
  /** Checks the destination by requests to it; throws a PenstockError if it is not usable. */
  readonly healthcheck?: ((get: Ask) => Promise<void>) | undefined
}

/** A path below a base address, with one slash between them; the query of the address stays at the end. */
export function joinPath(base: string, path: string): string {
  const url = parseUrl(base, 'endpoint')
  const credentials = url.username === '' && url.password === '' ? '' : `${url.username}:${url.password}@`
  const prefix = `${url.protocol}//${credentials}${url.host}${url.pathname.replace(/\/+$/, '')}`
  return `${prefix}/${path.replace(/^\/+/, '')}${url.search}`
}

/** A sink that also lets its component ask the destination, with the same authentication, TLS and proxies. */
export interface AskingSink extends Sink {
  get(
    url: string,
    signal: AbortSignal,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<HttpResponse>
}

export function httpSink(context: SinkContext, options: HttpSinkOptions, spec: HttpSinkSpec): AskingSink {
  return new HttpSink(context, options, spec)
}

/** `encode` for events that are written one after the other, with a separator between them. */
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

/** `encodeLines` for the same bodies; undefined if events are not JSON on one line there, or are in other frames. */
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

/** Addresses of partitions that are kept. */
const keptAddresses = {
  maxEntries: 1000,
  maxBytes: 8 << 20,
  // The parts of a URL are their own texts, and headers may repeat the key.
  sizeOf: ({ url, headers }: Address) => 1500 + 6 * url.href.length + 2 * lengthOf(headers),
}

function lengthOf(headers: Readonly<Record<string, string>>): number {
  let length = 0
  for (const name in headers) length += name.length + (headers[name] as string).length
  return length
}

class HttpSink implements AskingSink {
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
  /** The write that waits for a slot, if there is one. */
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
      const isAside = compression.compressAside !== undefined
      context.logger.debug(
        { algorithm: compression.algorithm, cpu_limit: cpuLimit() },
        isAside ? 'Other threads may compress large bodies.' : 'The main thread compresses bodies.',
      )
    }

    const { call, concurrency } = this.#route(urls)
    // Wrong addresses and credentials are reported at start.
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
      { partition: spec.partition, begin: spec.begin, encode: spec.encode, encodeLines: spec.encodeLines },
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

  /** How requests reach the destination: by one address, or by several that share them by their health. */
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

  /** Takes the rest of a batch as slots become free; resolves when the sink can take more. */
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
      // An address that is none does not become one by another attempt.
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
        'A request was refused.',
      )
    }
    return attempt.outcome === 'rejected' && isUnauthorized ? { ...attempt, unauthorized: true } : attempt
  }

  /** How the sink that has taken the place of this one identifies itself, if it sends in the same form to the same address. */
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

  /** The address of requests of a partition: worked out once. */
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
        // Paths made of event fields may be without number.
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
        : async (get: Ask) => {
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
      // Without credentials, no request was sent.
      if (error instanceof PenstockError && error.code === 'PEN_AUTH') throw error
      throw new PenstockError('PEN_HEALTHCHECK', `${url.origin} cannot be reached: ${reasonText(error)}.`, {
        cause: error,
      })
    }
  }
}

/** For `keepOfAnswer`, where an answer has a line for each event. Longer ones say nothing of an event; their status counts. */
export const maxListBytes = 8 << 20

/** The error of a health check that got the wrong answer. */
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
  // Before it is cut off: half of a secret is one too. Longer ones first: one may be part of another.
  for (const secret of secrets.toSorted((left, right) => right.length - left.length)) text = withoutSecret(text, secret)
  return text.slice(0, 512)
}

/** Headers that say who sends, by their names. */
const identifyingHeader = /auth|key|token|secret|signature|password|cookie/

/** Header values that a destination may repeat in its answer: those that identify the sender, and all that the user has set. */
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

/** 2xx: well; a server's error or none at all: not well; anything else says nothing about the endpoint. */
function healthOf(attempt: Attempt): 'healthy' | 'unhealthy' | 'unknown' {
  if (attempt.outcome === 'delivered' || attempt.outcome === 'partial') return 'healthy'
  const status = attempt.failure.fields?.['status']
  if (typeof status !== 'number') return 'unhealthy'
  return status >= 500 ? 'unhealthy' : 'unknown'
}
