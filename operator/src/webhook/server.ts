// The server of the webhooks. It runs on every replica and has no state: its data are in the caches. It only writes the authors of
// ClusterPipelines, if that is enabled. New connections use a renewed certificate. It only answers the API server, which knows the
// secret in the path of each webhook and can be required to present a certificate; of all other requests, it only reads the path.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { errorText } from '@penstock/agent/errors'
import { Counter, Histogram } from 'prom-client'
import type { Agent } from '../api/agent.ts'
import { agentKind, clusterPipelineKind, kindOf, type ResourceKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import { FairQueue } from '../compile/fair-queue.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { KubeError } from '../kube/client.ts'
import type { User } from '../kube/reviews.ts'
import { Authors, contentOf } from '../policy/authors.ts'
import { type OperatorCertificate, secureServer } from '../serving/certificates.ts'
import { Strangers } from '../serving/strangers.ts'
import type { WorkloadInput } from '../workloads/pod.ts'
import { type AdmittedPod, injectSidecar, misplacedWarnings } from './inject.ts'
import type { WebhookTokens } from './tokens.ts'
import { type Judge, validate } from './validate.ts'

/** The required name in the API server's client certificate. */
export interface ClientAuthority {
  /** PEM certificates of the authorities that sign it. */
  readonly ca: string
  /** Common names or DNS names; the certificate must have one of them. Any if empty. */
  readonly names: readonly string[]
}

export interface WebhookOptions {
  /** Maximum number of connections of clients that have not been identified as the API server. */
  readonly maxStrangers?: number
  readonly tokens: WebhookTokens
  /** Undefined: clients do not need a certificate. */
  readonly clients?: ClientAuthority | undefined
  readonly judge: (context: OperatorContext) => Judge
  /** The inputs of sidecars. */
  readonly workloadInput: (context: OperatorContext) => WorkloadInput
  /** Called with the port after it is bound. */
  readonly listening?: (port: number) => void
}

interface AdmissionRequest {
  readonly uid: string
  readonly kind: { readonly kind: string }
  readonly namespace?: string
  readonly operation: string
  readonly dryRun?: boolean
  readonly object: KubeObject | null
  readonly oldObject: KubeObject | null
  readonly userInfo?: User
}

interface AdmissionResponse {
  readonly uid: string
  readonly allowed: boolean
  readonly status?: { readonly code: number; readonly message: string; readonly reason: string }
  readonly warnings?: readonly string[]
  readonly patchType?: 'JSONPatch'
  readonly patch?: string
}

/** More than the size of any object that the API server stores, in its old and new version. */
const maxBytes = 8 * 1024 * 1024
/** Limit for all requests in progress, because they are in the memory of the process. */
const maxBytesTogether = 48 * 1024 * 1024
/** Time limit for an answer if the API server does not specify one. */
const budgetMs = 4_500
/** The answer must be ready this much before the API server's timeout. */
const marginMs = 500
/**
 * Maximum numbers of reviews in progress and of waiting reviews, and of their bytes: for one namespace (or user, for objects without a
 * namespace), and in total.
 */
const maxReviews = { perKey: 2, total: 4 }
const waitingReviews = { perKey: 16, total: 128 }
const maxBytesPerKey = 12 * 1024 * 1024
const paths = ['/validate', '/inject', '/warn'] as const

export function webhookPart(certificate: OperatorCertificate, options: WebhookOptions): OperatorPart {
  return {
    name: 'webhook',
    leaderOnly: false,
    async start(context) {
      const server = new WebhookServer(context, certificate, options)
      await server.listen()
      return server
    },
  }
}

export class WebhookServer implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #options: WebhookOptions
  readonly #judge: Judge
  readonly #server: Server
  readonly #duration: Histogram
  readonly #agents
  readonly #authors: Authors | undefined
  readonly #refused: Counter
  readonly #waiting = new FairQueue<Waiting>(waitingReviews)
  readonly #strangers: Strangers
  /** Reviews that are being judged, in total and by key. */
  #judging = 0
  readonly #judgingBy = new Map<string, number>()
  readonly #bytesBy = new Map<string, number>()
  /** Bytes of all requests in progress. */
  #bytes = 0
  #minor: Promise<number> | undefined

  constructor(context: OperatorContext, certificate: OperatorCertificate, options: WebhookOptions) {
    this.#context = context
    this.#options = options
    this.#judge = options.judge(context)
    this.#strangers = new Strangers(options.maxStrangers)
    this.#agents = context.caches.cache<Agent>(agentKind)
    this.#authors = Authors.of(context, 'webhook')
    this.#duration = new Histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'Time to answer the API server.',
      labelNames: ['webhook', 'allowed'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [context.metrics],
    })
    this.#refused = new Counter({
      name: 'penstock_webhook_refused_total',
      help: 'Webhook requests that were refused before they were read, by reason.',
      labelNames: ['reason'],
      registers: [context.metrics],
    })
    const { clients } = options
    this.#server = secureServer(certificate, (request, answer) => this.#serve(request, answer), clients?.ca)
    this.#server.headersTimeout = 5_000
    this.#server.requestTimeout = 10_000
    this.#server.keepAliveTimeout = 30_000
    this.#strangers.follow(this.#server)
    this.#server.on('tlsClientError', (error) =>
      context.logger.debug({ error: error.message }, 'A connection to the webhooks failed.'),
    )
  }

  /** Reads only the path until it is certain that the caller is the API server. */
  #serve(request: IncomingMessage, answer: ServerResponse): void {
    const end = (code: number, body: object) => {
      const text = JSON.stringify(body)
      answer.writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      answer.end(text)
    }
    request.on('error', () => {}) // the API server closed the connection; nobody waits for the answer
    const refuse = (code: number, reason: string, message: string) => {
      this.#refused.inc({ reason })
      answer.setHeader('connection', 'close')
      end(code, { message })
      answer.once('finish', () => request.destroy())
    }
    const url = URL.parse(request.url ?? '/', 'https://localhost')
    const path = url === null ? undefined : this.#options.tokens.webhookAt(url.pathname, paths)
    if (url === null || path === undefined) {
      refuse(
        404,
        'path',
        'There is no webhook at this path. The API server finds the paths in its webhook configurations.',
      )
      return
    }
    if (!this.#isExpected(request.socket as TLSSocket)) {
      refuse(403, 'certificate', 'This server requires a client certificate of the API server.')
      return
    }
    this.#strangers.know(request.socket)
    if (request.method !== 'POST') {
      refuse(405, 'method', 'Webhooks only accept POST.')
      return
    }
    const limitMs = Math.max(100, budgetOf(url.searchParams.get('timeout')))
    const parts: Buffer[] = []
    let size = 0
    let isOver = false
    answer.once('close', () => {
      this.#bytes -= size
    })
    request.on('data', (part: Buffer) => {
      if (isOver) return
      size += part.length
      this.#bytes += part.length
      isOver = size > maxBytes || this.#bytes > maxBytesTogether
      if (size > maxBytes) refuse(413, 'size', `A review may have at most ${maxBytes} bytes.`)
      else if (isOver) refuse(429, 'busy', 'Too many reviews are waiting; try again in a few seconds.')
      else parts.push(part)
    })
    request.on('end', () => {
      if (isOver) return
      this.#answer(path, Buffer.concat(parts).toString(), limitMs).then(
        ({ code, body }) => end(code, body),
        (error: unknown) => {
          this.#context.logger.error({ error: errorText(error), path }, 'Could not respond to a webhook request.')
          end(500, { message: 'The review failed; see the log of the operator.' })
        },
      )
    })
  }

  /** Whether the client presents a certificate that the settings accept. */
  #isExpected(socket: TLSSocket): boolean {
    const { clients } = this.#options
    if (clients === undefined) return true
    if (!socket.authorized) return false
    if (clients.names.length === 0) return true
    const { subject, subjectaltname = '' } = socket.getPeerCertificate()
    const others = subjectaltname.split(', ').flatMap((name) => (name.startsWith('DNS:') ? [name.slice(4)] : []))
    return [subject?.CN ?? [], others].flat().some((name) => clients.names.includes(name))
  }

  async listen(): Promise<void> {
    const { webhookAddress } = this.#context.settings
    if (webhookAddress === '') return
    const { hostname, port } = new URL(`tcp://${webhookAddress}`)
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(Number(port), hostname.replace(/^\[|\]$/g, ''), resolve)
    })
    const bound = (this.#server.address() as AddressInfo).port
    this.#options.listening?.(bound)
    this.#context.logger.info({ address: webhookAddress, port: bound }, 'Webhooks are answered.')
  }

  async [Symbol.asyncDispose]() {
    if (!this.#server.listening) return
    // Answers the requests in progress; closes idle connections immediately.
    this.#server.closeIdleConnections()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const last = setTimeout(() => this.#server.closeAllConnections(), budgetMs)
    await closed
    clearTimeout(last)
  }

  async #answer(path: string, text: string, limitMs: number): Promise<{ code: number; body: object }> {
    let request: AdmissionRequest | undefined
    try {
      request = (JSON.parse(text) as { request?: AdmissionRequest } | null)?.request
    } catch {
      return { code: 400, body: { message: 'The body is not an AdmissionReview: it is not JSON.' } }
    }
    if (typeof request?.uid !== 'string') return { code: 400, body: { message: 'The body is not an AdmissionReview.' } }
    const started = performance.now()
    const response = await this.#respond(path, request, started + limitMs, text.length)
    this.#duration.observe({ webhook: path, allowed: String(response.allowed) }, (performance.now() - started) / 1000)
    return { code: 200, body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } }
  }

  async #respond(path: string, request: AdmissionRequest, until: number, bytes: number): Promise<AdmissionResponse> {
    if (path === '/inject') return this.#inject(request)
    if (path === '/warn') return { uid: request.uid, allowed: true, warnings: misplacedWarnings(request.object ?? {}) }
    const key = request.namespace ? `namespace ${request.namespace}` : `user ${request.userInfo?.username ?? ''}`
    const isTooMuch = (this.#bytesBy.get(key) ?? 0) + bytes > maxBytesPerKey
    count(this.#bytesBy, key, bytes)
    try {
      const turn = isTooMuch ? 'full' : await this.#turn(key, until)
      if (turn === 'late') return tooLate(request.uid)
      if (turn === 'full') {
        const message = `The webhook of Penstock has too many reviews in progress for ${key.replace(' ', ' "')}"; try again in a few seconds.`
        return { uid: request.uid, allowed: false, status: { code: 429, reason: 'TooManyRequests', message } }
      }
      try {
        return await this.#validateInTime(request, until)
      } finally {
        this.#judging--
        count(this.#judgingBy, key, -1)
        this.#hand()
      }
    } finally {
      count(this.#bytesBy, key, -bytes)
    }
  }

  /** Waits until a review may be processed. The caller must release its turn. */
  #turn(key: string, until: number): Promise<'now' | 'late' | 'full'> {
    return new Promise((resolve) => {
      const end = (turn: 'now' | 'late' | 'full') => {
        clearTimeout(timer)
        if (turn === 'now') {
          this.#judging++
          count(this.#judgingBy, key, 1)
        }
        resolve(turn)
      }
      const waiting: Waiting = { end }
      const timer = setTimeout(() => {
        this.#waiting.remove(key, waiting)
        end('late')
      }, until - performance.now())
      this.#waiting.add(key, waiting)?.end('full')
      this.#hand()
    })
  }

  #hand(): void {
    const isFree = (key: string) => (this.#judgingBy.get(key) ?? 0) < maxReviews.perKey
    while (this.#judging < maxReviews.total) {
      const next = this.#waiting.take(isFree)
      if (next === undefined) return
      next.end('now')
    }
  }

  /** Everything that a review needs may be slow, or fail. That must not keep the author from applying the object. */
  async #validateInTime(request: AdmissionRequest, until: number): Promise<AdmissionResponse> {
    const late = Promise.withResolvers<AdmissionResponse>()
    const timer = setTimeout(() => late.resolve(tooLate(request.uid)), until - performance.now())
    try {
      return await Promise.race([this.#validate(request), late.promise])
    } catch (error) {
      if (!(error instanceof KubeError) && !(error instanceof Error && error.name === 'TimeoutError')) throw error
      this.#context.logger.warn({ error: errorText(error) }, 'A review is incomplete, because the API server failed.')
      return unanswered(request.uid)
    } finally {
      clearTimeout(timer)
    }
  }

  async #validate(request: AdmissionRequest): Promise<AdmissionResponse> {
    const { uid, object } = request
    const kind = kindOf(request.kind.kind)
    if (kind === undefined || object === null) return { uid, allowed: true }
    const author = kind === clusterPipelineKind ? await this.#authorOf(request) : undefined
    if (author?.isRefused === true) {
      const message = `${request.userInfo?.username ?? 'The author'} may not collect penstock.dev/logs in all namespaces.`
      return { uid, allowed: false, status: { code: 403, reason: 'Forbidden', message } }
    }
    const response = await this.#verdictOf(kind, request, object)
    // A dry run leaves nothing behind.
    if (response.allowed && author?.isNew === true && request.dryRun !== true)
      await this.#authors?.record(object, request.userInfo ?? {})
    return response
  }

  async #verdictOf(
    kind: ResourceKind,
    { uid, oldObject }: AdmissionRequest,
    object: KubeObject,
  ): Promise<AdmissionResponse> {
    const { allowed, message, warnings } = await validate(kind, object, oldObject ?? undefined, this.#judge)
    return {
      uid,
      allowed,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(allowed ? {} : { status: { code: 422, reason: 'Invalid', message } }),
    }
  }

  /**
   * Whether the author of a ClusterPipeline may read the logs of all namespaces, if that is required, and whether to record this author.
   * A user who does not change the spec needs no permission. If the spec has no author, such a user becomes its author if permitted.
   */
  async #authorOf({ object, oldObject, userInfo }: AdmissionRequest): Promise<{ isRefused: boolean; isNew: boolean }> {
    if (this.#authors === undefined || object === null) return { isRefused: false, isNew: false }
    const isSame = oldObject !== null && oldObject !== undefined && contentOf(object) === contentOf(oldObject)
    if (isSame && (await this.#authors.knows(object))) return { isRefused: false, isNew: false }
    const may = await this.#authors.mayCollect(userInfo ?? {})
    return { isRefused: !may && !isSame, isNew: may }
  }

  async #inject({ uid, namespace = '', object }: AdmissionRequest): Promise<AdmissionResponse> {
    if (object === null) return { uid, allowed: true }
    const result = injectSidecar(object as unknown as AdmittedPod, {
      agent: (name) => this.#agents.get(namespace, name),
      input: this.#options.workloadInput(this.#context),
      namespace,
      minor: await this.#serverMinor(),
    })
    if (!result.allowed)
      return { uid, allowed: false, status: { code: 422, reason: 'Invalid', message: result.message } }
    const { patch, warnings } = result
    return {
      uid,
      allowed: true,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(patch.length === 0
        ? {}
        : { patchType: 'JSONPatch' as const, patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
    }
  }

  /** The minor version of the API server; requested once, and again after a failure. */
  #serverMinor(): Promise<number> {
    this.#minor ??= this.#context.kube
      .request<{ minor: string }>('GET', '/version', undefined, { urgent: 'connection' })
      .then(({ minor }) => Number.parseInt(minor, 10))
      .catch((error: unknown) => {
        this.#minor = undefined
        throw error
      })
    return this.#minor
  }
}

interface Waiting {
  end(turn: 'now' | 'late' | 'full'): void
}

/** Adds to a number, and removes it at zero. */
function count(numbers: Map<string, number>, key: string, added: number): void {
  const number = (numbers.get(key) ?? 0) + added
  if (number > 0) numbers.set(key, number)
  else numbers.delete(key)
}

const unanswered = (uid: string): AdmissionResponse => ({
  uid,
  allowed: true,
  warnings: ['The API server failed during the check; see the status for its result.'],
})

const tooLate = (uid: string): AdmissionResponse => ({
  uid,
  allowed: true,
  warnings: ['The check took too long; see the status for its result.'],
})

/** Milliseconds for an answer, from the `timeout` that the API server adds to the URL, such as `5s`. */
function budgetOf(timeout: string | null): number {
  const seconds = /^(\d{1,3}(?:\.\d+)?)s$/.exec(timeout ?? '')?.[1]
  return seconds === undefined ? budgetMs : Math.min(30_000, Number(seconds) * 1000 - marginMs)
}
