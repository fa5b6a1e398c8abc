// The server of the webhooks. It answers on every replica and holds no state: what it needs is in the caches. The one thing that it
// writes is who has applied a ClusterPipeline, where that is asked for. A certificate that is renewed is used for the next connection.

import type { Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { errorText } from '@penstock/agent/errors'
import { Histogram } from 'prom-client'
import type { Agent } from '../api/agent.ts'
import { agentKind, clusterPipelineKind, type Kind, kindOf } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import { Authors, contentOf } from '../controllers/authors.ts'
import type { OperatorContext, OperatorPart } from '../controllers/context.ts'
import type { User } from '../kube/reviews.ts'
import type { WorkloadInput } from '../workloads/pod.ts'
import { type OperatorCertificate, secureServer } from './certificates.ts'
import { injectSidecar, misplacedWarnings, type Pod } from './inject.ts'
import { type Judge, validate } from './validate.ts'

export interface WebhookOptions {
  readonly judge: (context: OperatorContext) => Judge
  /** What sidecars are made with. */
  readonly workloadInput: (context: OperatorContext) => WorkloadInput
  /** Hears of the port once it is bound. */
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

/** Longer than any object that the API server stores, old and new together. */
const mostBytes = 8 * 1024 * 1024
const budgetMs = 4_500

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
  #minor: Promise<number> | undefined

  constructor(context: OperatorContext, certificate: OperatorCertificate, options: WebhookOptions) {
    this.#context = context
    this.#options = options
    this.#judge = options.judge(context)
    this.#agents = context.caches.cache<Agent>(agentKind)
    this.#authors = Authors.of(context, 'webhook')
    this.#duration = new Histogram({
      name: 'controller_runtime_webhook_latency_seconds',
      help: 'Time to answer the API server.',
      labelNames: ['webhook', 'allowed'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [context.metrics],
    })
    this.#server = secureServer(certificate, (request, answer) => {
      const end = (code: number, body: object) => {
        const text = JSON.stringify(body)
        answer.writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
        answer.end(text)
      }
      const path = new URL(request.url ?? '/', 'https://localhost').pathname
      if (request.method !== 'POST') return end(405, { message: 'A webhook is asked by POST.' })
      const parts: Buffer[] = []
      let size = 0
      request.on('error', () => {}) // the API server has gone; nobody waits for the answer
      request.on('data', (part: Buffer) => {
        size += part.length
        if (size > mostBytes) request.destroy()
        else parts.push(part)
      })
      request.on('end', () => {
        this.#answer(path, Buffer.concat(parts).toString()).then(
          ({ code, body }) => end(code, body),
          (error: unknown) => {
            context.logger.error({ error: errorText(error), path }, 'A webhook could not be answered.')
            end(500, { message: errorText(error) })
          },
        )
      })
    })
    this.#server.on('tlsClientError', (error) =>
      context.logger.debug({ error: error.message }, 'A connection to the webhooks failed.'),
    )
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
    // What is being answered is answered; connections that wait for nothing end now.
    this.#server.closeIdleConnections()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const last = setTimeout(() => this.#server.closeAllConnections(), budgetMs)
    await closed
    clearTimeout(last)
  }

  async #answer(path: string, text: string): Promise<{ code: number; body: object }> {
    let request: AdmissionRequest | undefined
    try {
      request = (JSON.parse(text) as { request?: AdmissionRequest }).request
    } catch (error) {
      return { code: 400, body: { message: `The body is no AdmissionReview: ${errorText(error)}` } }
    }
    if (typeof request?.uid !== 'string') return { code: 400, body: { message: 'The body is no AdmissionReview.' } }
    const handlers: Record<string, (request: AdmissionRequest) => Promise<AdmissionResponse> | AdmissionResponse> = {
      '/validate': (one) => this.#validate(one),
      '/inject': (one) => this.#inject(one),
      '/warn': ({ uid, object }) => ({ uid, allowed: true, warnings: misplacedWarnings(object ?? {}) }),
    }
    const handler = Object.hasOwn(handlers, path) ? handlers[path] : undefined
    if (handler === undefined) return { code: 404, body: { message: `There is no webhook ${path}.` } }
    const started = performance.now()
    const response = await handler(request)
    this.#duration.observe({ webhook: path, allowed: String(response.allowed) }, (performance.now() - started) / 1000)
    return { code: 200, body: { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } }
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
    // What is only tried leaves nothing behind.
    if (response.allowed && author?.isNew === true && request.dryRun !== true)
      await this.#authors?.record(object, request.userInfo ?? {})
    return response
  }

  async #verdictOf(kind: Kind, { uid, oldObject }: AdmissionRequest, object: KubeObject): Promise<AdmissionResponse> {
    const late = AbortSignal.timeout(budgetMs)
    const tooLate = new Promise<undefined>((done) => late.addEventListener('abort', () => done(undefined)))
    const verdict = await Promise.race([validate(kind, object, oldObject ?? undefined, this.#judge), tooLate])
    if (verdict === undefined)
      return { uid, allowed: true, warnings: ['The check took too long; the status will tell what it finds.'] }
    const { allowed, message, warnings } = verdict
    return {
      uid,
      allowed,
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(allowed ? {} : { status: { code: 422, reason: 'Invalid', message } }),
    }
  }

  /**
   * Whether the author of a ClusterPipeline may read the logs of all namespaces, where that is asked for; and whether it is to be written
   * down that this one may. Who changes no spec needs no right, and stands for a spec of which nobody is known if he has it.
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
    const result = injectSidecar(object as unknown as Pod, {
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

  /** The minor version of the API server; asked once, and again after a failure. */
  #serverMinor(): Promise<number> {
    this.#minor ??= this.#context.kube
      .request<{ minor: string }>('GET', '/version')
      .then(({ minor }) => Number.parseInt(minor, 10))
      .catch((error: unknown) => {
        this.#minor = undefined
        throw error
      })
    return this.#minor
  }
}
