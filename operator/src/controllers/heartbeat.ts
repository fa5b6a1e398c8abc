// Where agents report. It runs on every replica: who is asked is made sure of by a review of the token, and what was said is passed
// on to the leader, who alone keeps it. Pod and node are those of the token, never those that the body names.

import { createHash } from 'node:crypto'
import {
  createServer as createPlain,
  type IncomingMessage,
  request as requestPlain,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecure, request as requestSecure } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import type { HeartbeatAnswer } from '@penstock/agent/bundle/format'
import type { HeartbeatBody } from '@penstock/agent/bundle/heartbeat'
import { errorText } from '@penstock/agent/errors'
import { Counter } from 'prom-client'
import { type KubeObject, objectKey } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import { isNormal } from '../kube/client.ts'
import { podType, tokenReviewType } from '../kube/types.ts'
import { labels, tokenAudience } from '../workloads/names.ts'
import type { OperatorContext, OperatorPart } from './context.ts'
import type { Delivery } from './delivery.ts'

export interface ServerCertificate {
  readonly cert: string
  readonly key: string
  /** The authority that agents and other replicas trust. */
  readonly ca: string
}

export interface HeartbeatServerOptions {
  /** The certificate now; undefined where there is none, and then only a loopback address is served. */
  readonly certificate?: (() => ServerCertificate | undefined) | undefined
}

interface Sender {
  readonly agent: string
  readonly pod: string
  readonly podUid: string
  readonly node: string
}

type Pod = KubeObject & { readonly spec?: { readonly nodeName?: string } }

const keepMs = 60_000
const mostBytes = 4 * 1024 * 1024
const forwardedHeader = 'x-penstock-forwarded'

export function heartbeatPart(delivery: Delivery, options: HeartbeatServerOptions = {}): OperatorPart {
  return {
    name: 'heartbeat',
    leaderOnly: false,
    async start(context) {
      const server = new HeartbeatServer(context, delivery, options)
      await server.listen()
      return server
    },
  }
}

export class HeartbeatServer implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #delivery: Delivery
  readonly #options: HeartbeatServerOptions
  #server: Server | undefined
  readonly #pods: Cache<Pod>
  readonly #reviewed = new Map<string, { readonly until: number; readonly sender: Promise<Sender | undefined> }>()
  readonly #count: Counter
  #renew: NodeJS.Timeout | undefined

  constructor(context: OperatorContext, delivery: Delivery, options: HeartbeatServerOptions) {
    this.#context = context
    this.#delivery = delivery
    this.#options = options
    this.#pods = context.caches.cache<Pod>(podType, { labelSelector: labels.agent })
    this.#count = new Counter({
      name: 'penstock_heartbeats_total',
      help: 'Heartbeats of agents, by what became of them.',
      labelNames: ['result'],
      registers: [context.metrics],
    })
  }

  /** Listens as soon as there is a certificate: the first one is made by the leader. */
  async listen(): Promise<void> {
    const { heartbeatAddress } = this.#context.settings
    if (heartbeatAddress === '') return
    const { host } = split(heartbeatAddress)
    const local = host === '127.0.0.1' || host === '::1' || host === 'localhost'
    if (this.#options.certificate?.() !== undefined || local) return this.#open()
    this.#context.logger.info('Agents may report as soon as there is a certificate.')
    this.#renew = setInterval(() => {
      if (this.#options.certificate?.() === undefined) return
      clearInterval(this.#renew)
      this.#open().catch((error: unknown) => {
        this.#context.logger.error({ error: errorText(error) }, 'The server for heartbeats cannot listen.')
      })
    }, 500)
  }

  async #open(): Promise<void> {
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch((error: unknown) => {
        this.#count.inc({ result: 'failed' })
        this.#context.logger.warn({ error: errorText(error) }, 'A heartbeat could not be taken.')
        if (!response.headersSent) answer(response, 500, 'The heartbeat could not be taken.')
      })
    }
    let certificate = this.#options.certificate?.()
    let server: Server
    if (certificate === undefined) server = createPlain(listener)
    else {
      const secure = createSecure({ cert: certificate.cert, key: certificate.key }, listener)
      server = secure
      this.#renew = setInterval(() => {
        const now = this.#options.certificate?.()
        if (now === undefined || now.cert === certificate?.cert) return
        certificate = now
        secure.setSecureContext({ cert: now.cert, key: now.key })
      }, 10_000)
    }
    server.requestTimeout = 20_000
    this.#server = server
    const { host, port } = split(this.#context.settings.heartbeatAddress)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, host, resolve)
    })
    this.#context.logger.info({ address: this.address }, 'Agents may report.')
  }

  get address(): string {
    if (this.#server === undefined) return ''
    const { address, port } = this.#server.address() as AddressInfo
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renew)
    const server = this.#server
    if (server === undefined) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || request.url !== '/v1/heartbeat') {
      return answer(response, 404, 'There is nothing here but POST /v1/heartbeat.')
    }
    const authorization = request.headers.authorization ?? ''
    const token = /^Bearer (\S+)$/i.exec(authorization)?.[1]
    const sender = token === undefined ? undefined : await this.#senderOf(token)
    if (sender === undefined) {
      this.#count.inc({ result: 'refused' })
      return answer(response, 401, `A token for the audience ${tokenAudience} is needed, bound to a pod of an Agent.`)
    }
    const body = await bodyOf(request)
    if (body === undefined) return answer(response, 413, `A heartbeat has at most ${mostBytes} bytes.`)
    if (!this.#context.isLeader()) return this.#forward(request, response, authorization, body)
    let heartbeat: HeartbeatBody
    try {
      heartbeat = JSON.parse(body.toString('utf8')) as HeartbeatBody
      if (heartbeat?.schema !== 1) throw new TypeError(`the schema is ${JSON.stringify(heartbeat?.schema)}, not 1`)
    } catch (error) {
      this.#count.inc({ result: 'refused' })
      return answer(response, 400, `The heartbeat is not understood: ${errorText(error)}`)
    }
    const { agent, ...from } = sender
    this.#delivery.hear(agent, from, heartbeat, Date.now())
    this.#count.inc({ result: 'taken' })
    this.#taken(response)
  }

  #taken(response: ServerResponse): void {
    const said: HeartbeatAnswer = { periodMs: this.#context.settings.heartbeatPeriodMs }
    response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(said)}\n`)
  }

  #senderOf(token: string): Promise<Sender | undefined> {
    const key = createHash('sha256').update(token).digest('base64')
    const now = performance.now()
    const known = this.#reviewed.get(key)
    if (known !== undefined && known.until > now) return known.sender
    if (this.#reviewed.size > 10_000) {
      for (const [each, { until }] of this.#reviewed) if (until <= now) this.#reviewed.delete(each)
    }
    const sender = this.#review(token)
    this.#reviewed.set(key, { until: now + keepMs, sender })
    // A failure to ask is no answer.
    sender.catch(() => this.#reviewed.delete(key))
    return sender
  }

  async #review(token: string): Promise<Sender | undefined> {
    const { kube } = this.#context
    const review = await kube.as('heartbeat').request<{
      status?: {
        authenticated?: boolean
        audiences?: readonly string[]
        user?: { username?: string; extra?: Readonly<Record<string, readonly string[]>> }
      }
    }>('POST', `/apis/${tokenReviewType.group}/${tokenReviewType.version}/${tokenReviewType.plural}`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [tokenAudience] },
    })
    const { status } = review
    if (status?.authenticated !== true || status.audiences?.includes(tokenAudience) !== true) return undefined
    const extra = (name: string) => status.user?.extra?.[`authentication.kubernetes.io/${name}`]?.[0]
    const namespace = /^system:serviceaccount:([^:]+):/.exec(status.user?.username ?? '')?.[1]
    const name = extra('pod-name')
    const uid = extra('pod-uid')
    if (namespace === undefined || name === undefined || uid === undefined) return undefined
    // Pods of workloads are known already; those with a sidecar are asked for.
    const cached = this.#pods.get(namespace, name)
    const pod = cached?.metadata.uid === uid ? cached : await kube.as('heartbeat').get<Pod>(podType, namespace, name)
    if (pod === undefined || pod.metadata.uid !== uid) return undefined
    const injected = pod.metadata.annotations?.['penstock.dev/injected']?.split('.')[0]
    const agent = pod.metadata.labels?.[labels.agent] ?? injected
    if (agent === undefined) return undefined
    const node = extra('node-name') ?? pod.spec?.nodeName ?? ''
    return { agent: objectKey(namespace, agent), pod: name, podUid: uid, node }
  }

  /** Passes a heartbeat on, with the sender's own token: the leader makes sure for itself. */
  async #forward(
    request: IncomingMessage,
    response: ServerResponse,
    authorization: string,
    body: Buffer,
  ): Promise<void> {
    const identity = this.#context.leader()
    const address = identity === undefined ? undefined : addressOf(identity)
    // One step only: two that each take the other for the leader would send it round for ever.
    if (address === undefined || request.headers[forwardedHeader] !== undefined) {
      this.#count.inc({ result: 'no_leader' })
      return answer(response, 503, 'There is no leader now that could be told.')
    }
    const certificate = this.#options.certificate?.()
    const { host, port } = split(address)
    const status = await new Promise<number>((resolve, reject) => {
      const options = {
        host,
        port,
        method: 'POST',
        path: '/v1/heartbeat',
        headers: { authorization, 'content-type': 'application/json', [forwardedHeader]: '1' },
        timeout: 10_000,
      }
      const send = certificate === undefined ? requestPlain : requestSecure
      const passed = send(
        // The certificate is for the name of the Service; the leader is reached at its own address.
        certificate === undefined ? options : { ...options, ca: certificate.ca, checkServerIdentity: () => undefined },
        (answered) => {
          answered.resume()
          resolve(answered.statusCode ?? 502)
        },
      )
      passed.on('timeout', () => passed.destroy(new Error('The leader did not answer in time.')))
      passed.on('error', reject)
      passed.end(body)
    }).catch((error: unknown) => {
      if (!isNormal(error)) this.#context.logger.debug({ error: errorText(error) }, 'The leader could not be told.')
      return 503
    })
    this.#count.inc({ result: status === 200 ? 'forwarded' : 'no_leader' })
    if (status === 200) this.#taken(response)
    else answer(response, status, 'The leader did not take it.')
  }
}

/** Where a leader's server is: its identity ends in `@host:port`. */
function addressOf(identity: string): string | undefined {
  return /@(\S+:\d+)$/.exec(identity)?.[1]
}

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length
    if (length > mostBytes) return undefined
    parts.push(part)
  }
  const body = Buffer.concat(parts)
  return request.headers['content-encoding'] === 'gzip' ? gunzipSync(body, { maxOutputLength: mostBytes }) : body
}

function answer(response: ServerResponse, status: number, problem: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify({ error: problem })}\n`)
}

function split(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':')
  const host = address.slice(0, at).replace(/^\[|\]$/g, '')
  return { host: host === '' ? '0.0.0.0' : host, port: Number(address.slice(at + 1)) }
}
