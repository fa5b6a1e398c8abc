// The server for agents' reports and bundle requests. It runs on every replica: a token review authenticates the caller, and reports
// are forwarded to the leader, which alone stores them. Pod and node come from the token, never from the body. Any client that can
// connect may send tokens: malformed ones cost no review, and others are limited (kube/token-gate.ts).

import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import {
  type HeartbeatAnswer,
  type HeartbeatBody,
  holdMs,
  type InquiriesAnswer,
  type InquiriesBody,
  type ReadersAnswer,
  type ReadersBody,
  readersPath,
  type StreamBody,
} from '@penstock/agent/bundle'
import { errorText } from '@penstock/agent/errors'
import { version } from '@penstock/agent/program'
import { Counter } from 'prom-client'
import { group, type KubeObject, objectKey } from '../api/object.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { LeftoverAnswers } from '../fleet/leftovers.ts'
import type { FleetState } from '../fleet/state.ts'
import type { Cache } from '../kube/cache.ts'
import { isNormal } from '../kube/client.ts'
import { podType } from '../kube/resource-types.ts'
import type { User } from '../kube/reviews.ts'
import { Allowances, busy, claimsOf, ReviewError, TokenGate } from '../kube/token-gate.ts'
import type { ApiAddresses } from '../policy/api-addresses.ts'
import { labels, tokenAudience } from '../workloads/names.ts'
import { Bodies, type BodyLimits, type CountedBody } from './bodies.ts'
import { type OperatorCertificate, secureServer } from './certificates.ts'
import { type Asked, Inquiries } from './observe/inquiries.ts'
import { Observers, observedPaths } from './observe/observers.ts'
import { forwardedHeader, relay, versionHeader } from './observe/relay.ts'
import { Strangers } from './strangers.ts'
import { maxHeldMs, Streams } from './streams.ts'

export interface HeartbeatServerOptions {
  /** Without one, only a loopback address is served. */
  readonly certificate?: OperatorCertificate
  /** Sent to agents, which deny tenants' connections to these addresses. */
  readonly apiAddresses?: ApiAddresses
  /** Maximum number of connections of clients that are not authenticated. */
  readonly maxStrangers?: number
  /** Limits for the bodies of agents outside of the operator's namespace. */
  readonly tenantBodies?: BodyLimits
}

/** The owner of a token. */
interface Sender {
  readonly asked: Asked
  /** Name of the ServiceAccount. */
  readonly account: string
}

type Pod = KubeObject & {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: { readonly podIPs?: readonly { readonly ip?: string }[] }
}

/** Reviews for unknown pods, such as those with a sidecar, by address and in total; a known pod has its own limit. */
const strangers = { perSource: { perSecond: 0.5, burst: 10 }, total: { perSecond: 10, burst: 60 } }
/** Maximum size of a report, or of an agent's answer to an observer. */
const maxBytes = 4 * 1024 * 1024
/** Maximum size of a request for a bundle, which names up to 5,000 Pipelines; and of each other request. */
const maxStreamBytes = 1024 * 1024
const maxOtherBytes = 64 * 1024
/** Limits for the bodies of agents in the operator's namespace, and of all others, which tenants may control. */
const ownBodies: BodyLimits = { perNamespace: 64 * 1024 * 1024, total: 64 * 1024 * 1024 }
const tenantBodies: BodyLimits = { perNamespace: 8 * 1024 * 1024, total: 32 * 1024 * 1024 }
/**
 * Requests of one pod; each started 64 KiB count as one. Agents send a few per second while their bundle changes constantly. Tenants
 * control the pods of sidecars, and parsing blocks the thread on which all controllers run.
 */
const perPod = { perSecond: 20, burst: 200 }
const countedBytes = 64 * 1024
/** How long the leader may take to respond to a relayed request. */
const relayMs = 10_000
/**
 * How long the review of an agent's token stays valid while its pod exists. Deleting the pod revokes the token, and the caches show the
 * deletion. Otherwise, a thousand agents would use a third of the operator's requests for reviews.
 */
const keepRunningMs = 600_000
/**
 * Maximum number of connections that wait to be accepted, because all agents of a large cluster connect at once after a
 * restart. The kernel may have a lower limit.
 */
const backlog = 4096

export function heartbeatPart(fleet: FleetState, options: HeartbeatServerOptions = {}): OperatorPart {
  return {
    name: 'heartbeat',
    leaderOnly: false,
    async start(context) {
      const server = new HeartbeatServer(context, fleet, options)
      await server.listen()
      return server
    },
  }
}

class HeartbeatServer implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  readonly #options: HeartbeatServerOptions
  readonly #inquiries = new Inquiries()
  readonly #observers: Observers
  readonly #leftovers: LeftoverAnswers
  readonly #streams: Streams
  #server: Server | undefined
  readonly #pods: Cache<Pod>
  readonly #gate = new TokenGate<Sender>({
    ...strangers,
    review: (token) => this.#review(token),
    keepMs: (sender) => (this.#isRunning(sender) ? keepRunningMs : undefined),
    // Deleting the pod revokes its token, and the caches show the deletion even while reviews fail.
    trustsKnown: (sender) => this.#isRunning(sender),
  })
  readonly #readers: TokenGate<User>
  readonly #allowances = new Allowances(perPod)
  readonly #strangers: Strangers
  readonly #ownBodies = new Bodies(ownBodies)
  readonly #tenantBodies: Bodies
  readonly #count: Counter
  /** Subscription that waits for the first certificate. */
  #waiting: Disposable | undefined

  constructor(context: OperatorContext, fleet: FleetState, options: HeartbeatServerOptions) {
    this.#context = context
    this.#fleet = fleet
    this.#options = options
    this.#strangers = new Strangers(options.maxStrangers)
    this.#tenantBodies = new Bodies(options.tenantBodies ?? tenantBodies)
    this.#observers = new Observers(context, fleet, this.#inquiries)
    this.#leftovers = new LeftoverAnswers(context.kube.as('heartbeat'), fleet, context.settings)
    this.#streams = new Streams(context, fleet)
    this.#pods = context.caches.cache<Pod>(podType, { labelSelector: labels.agent })
    this.#readers = new TokenGate({ ...strangers, review: (token) => context.reviews.userOf(token) })
    this.#count = new Counter({
      name: 'penstock_heartbeats_total',
      help: "Agents' heartbeats, by result.",
      labelNames: ['result'],
      registers: [context.metrics],
    })
  }

  /** Listens as soon as there is a certificate, which the leader creates first. */
  async listen(): Promise<void> {
    const { heartbeatAddress } = this.#context.settings
    if (heartbeatAddress === '') return
    const { host } = split(heartbeatAddress)
    const local = host === '127.0.0.1' || host === '::1' || host === 'localhost'
    if (this.#options.certificate?.current() !== undefined || local) return this.#open()
    this.#context.logger.info('Agents can report as soon as there is a certificate.')
    this.#waiting = this.#options.certificate?.subscribe(() => {
      this.#waiting?.[Symbol.dispose]()
      this.#open().catch((error: unknown) => {
        this.#context.logger.error({ error: errorText(error) }, 'The server for heartbeats cannot listen.')
      })
    })
  }

  async #open(): Promise<void> {
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch((error: unknown) => {
        if (error instanceof InvalidBody) {
          this.#count.inc({ result: 'refused' })
          return refuse(response, 400, error.message)
        }
        if (error instanceof ReviewError) {
          // The reviews report their failures.
          this.#count.inc({ result: 'unreviewed' })
          return postpone(response, 503, error.message, error.retryAfterMs)
        }
        this.#count.inc({ result: 'failed' })
        this.#context.logger.warn({ error: errorText(error) }, 'Could not process a heartbeat.')
        if (!response.headersSent) answer(response, 500, 'The operator could not process the heartbeat; see its log.')
      })
    }
    const { certificate } = this.#options
    const server = certificate?.current() === undefined ? createPlain(listener) : secureServer(certificate, listener)
    server.requestTimeout = 20_000
    server.headersTimeout = 10_000
    this.#strangers.follow(server)
    this.#server = server
    const { host, port } = split(this.#context.settings.heartbeatAddress)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, backlog }, resolve)
    })
    this.#context.logger.info({ address: this.address }, 'Agents may report.')
  }

  get address(): string {
    if (this.#server === undefined) return ''
    const { address, port } = this.#server.address() as AddressInfo
    return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waiting?.[Symbol.dispose]()
    this.#streams[Symbol.dispose]()
    const server = this.#server
    if (server === undefined) return
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pathname = URL.parse(request.url ?? '/', 'http://operator')?.pathname ?? ''
    if (request.method === 'GET' && observedPaths.includes(pathname)) return this.#observe(request, response)
    const route = request.method === 'POST' ? routeOf(pathname) : undefined
    if (route === undefined) {
      return refuse(
        response,
        404,
        'This server only has POST /v1/heartbeat, /v1/bundle, /v1/inquiries and /v1/readers, GET /v1/tap and /v1/top.',
      )
    }
    const token = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    const sender = token === undefined ? undefined : await this.#senderOf(token, request.socket)
    if (sender === busy)
      return this.#postpone(response, 'Too many unknown tokens come from this address; try again in a few seconds.')
    if (sender === undefined) {
      this.#count.inc({ result: 'refused' })
      return refuse(response, 401, `A token for the audience ${tokenAudience} is needed, bound to a pod of an Agent.`)
    }
    this.#strangers.know(request.socket)
    const { asked } = sender
    const [namespace = ''] = asked.agent.split('/')
    const bodies = namespace === this.#context.settings.namespace ? this.#ownBodies : this.#tenantBodies
    const body = await bodies.read(request, namespace, route.maxBytes)
    if (body === 'size') return refuse(response, 413, `A request to ${pathname} has at most ${route.maxBytes} bytes.`)
    if (body === 'invalid') throw new InvalidBody('The body is not compressed with gzip, although its header says so.')
    if (body === 'busy')
      return this.#postpone(
        response,
        `Pods of namespace ${namespace} send too much at once; try again in a few seconds.`,
      )
    using received = body
    // Answers to `tap` and `top` have no limit here: the user determines their size.
    const cost = 1 + Math.floor(received.length / countedBytes)
    if (!route.isObserved && !this.#allowances.take(asked.podUid, undefined, cost))
      return this.#postpone(response, 'This pod sends too much; try again in a few seconds.')
    await this.#answer(route, request, response, sender, received)
  }

  async #observe(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader(versionHeader, version)
    if (this.#context.isLeader()) return this.#observers.serve(request, response)
    // Unknown senders whose requests reach the leader through other replicas are limited here, because the leader
    // only sees this replica's address.
    if (!this.#observers.admits(request))
      return answer(response, 429, 'Too many requests at once; try again in a few seconds.')
    await this.#relay(request, response, undefined, 3 * relayMs)
  }

  #postpone(response: ServerResponse, problem: string): void {
    this.#count.inc({ result: 'busy' })
    postpone(response, 429, problem, 5000)
  }

  async #answer(
    { kind, idleMs, id }: Route,
    request: IncomingMessage,
    response: ServerResponse,
    { asked, account }: Sender,
    body: CountedBody,
  ): Promise<void> {
    if (kind === 'readers')
      return give(response, { allowed: await this.#mayRead(asked, jsonOf<ReadersBody>(body)) } satisfies ReadersAnswer)
    if (!this.#context.isLeader()) {
      const status = await this.#relay(request, response, body, idleMs)
      if (kind === 'heartbeat') this.#count.inc({ result: status === 200 ? 'forwarded' : 'no_leader' })
      return
    }
    switch (kind) {
      case 'bundle':
        return this.#streams.serve(asked, account, jsonOf<StreamBody>(body), response)
      case 'inquiries':
        return this.#inquire(response, asked, jsonOf<InquiriesBody>(body))
      case 'answer':
        if (this.#inquiries.take(id, asked, body.take())) return give(response, {})
        return answer(response, 410, 'No observer is connected any more.')
      case 'heartbeat':
        return this.#hear(response, asked, jsonOf<HeartbeatBody>(body))
    }
  }

  async #hear(response: ServerResponse, { agent, ...from }: Asked, heartbeat: Partial<HeartbeatBody>): Promise<void> {
    if (heartbeat.schema !== 1) {
      this.#count.inc({ result: 'refused' })
      return answer(
        response,
        400,
        `The heartbeat is invalid: the schema is ${JSON.stringify(heartbeat.schema)}, not 1.`,
      )
    }
    this.#fleet.hear(agent, from, heartbeat as HeartbeatBody, this.#fleet.now())
    this.#count.inc({ result: 'taken' })
    const { heartbeatPeriodMs: periodMs } = this.#context.settings
    const gone = await this.#leftovers.gone(agent, heartbeat.leftovers)
    const denied = this.#options.apiAddresses?.current() ?? []
    give(response, { periodMs, denied, ...(gone.length === 0 ? {} : { gone }) } satisfies HeartbeatAnswer)
  }

  /** Handles an agent that requests inquiries. */
  async #inquire(response: ServerResponse, sender: Asked, { serving }: Partial<InquiriesBody>): Promise<void> {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    const inquiries = await this.#inquiries.next(sender, new Set(Array.isArray(serving) ? serving : []), gone.signal)
    if (gone.signal.aborted) return
    if (inquiries === undefined) return answer(response, 429, 'Too many agents wait here; try again in a minute.')
    give(response, { inquiries } satisfies InquiriesAnswer)
  }

  /** Whether the owner of a token may read the metrics of an agent that cannot check this itself. */
  async #mayRead({ agent, podUid }: Asked, { token }: Partial<ReadersBody>): Promise<boolean> {
    if (typeof token !== 'string') return false
    const { reviews } = this.#context
    // Unknown callers send their tokens to the agent, so each agent has a limit for such checks.
    const user = await this.#readers.of(token, podUid)
    if (user === busy) return false
    const [namespace] = agent.split('/')
    const wish = { group, resource: 'metrics', verb: 'get', namespace }
    if (user === undefined) return false
    // Agents of tenants ask here too, in clusters whose readers have a right to the path.
    const path = { nonResourceAttributes: { path: '/metrics', verb: 'get' } }
    if (!this.#context.settings.rolesOnly && (await reviews.mayDo(user, path))) return true
    return reviews.mayDo(user, { resourceAttributes: wish })
  }

  async #senderOf(token: string, socket: Socket): Promise<Sender | undefined | typeof busy> {
    const address = socket.remoteAddress ?? ''
    const claims = claimsOf(token, tokenAudience, Date.now())
    if (claims === undefined) return undefined
    // A token of a known pod, from that pod's address, is not delayed by senders who only claim to be it.
    const pod = this.#podOf(claims.namespace, claims.pod, claims.podUid)
    const isThere = pod?.status?.podIPs?.some(({ ip }) => ip === address.replace(/^::ffff:/, '')) === true
    if (isThere) this.#strangers.know(socket)
    return this.#gate.of(token, address, pod !== undefined ? `${isThere ? 'at' : 'of'} ${claims.podUid}` : undefined)
  }

  /** The pod with this name and uid; undefined if the caches do not contain it, as for pods with a sidecar. */
  #podOf(namespace: string | undefined, name: string, uid: string): Pod | undefined {
    const pod = this.#pods.get(namespace, name)
    return pod?.metadata.uid === uid ? pod : undefined
  }

  #isRunning({ asked: { agent, pod, podUid } }: Sender): boolean {
    const [namespace] = agent.split('/')
    const known = this.#podOf(namespace, pod, podUid)
    return known !== undefined && known.metadata.deletionTimestamp === undefined
  }

  async #review(token: string): Promise<Sender | undefined> {
    const { kube, reviews } = this.#context
    const user = await reviews.userOf(token, tokenAudience)
    const extra = (name: string) => user?.extra?.[`authentication.kubernetes.io/${name}`]?.[0]
    const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user?.username ?? '') ?? []
    const name = extra('pod-name')
    const uid = extra('pod-uid')
    if (namespace === undefined || account === undefined || name === undefined || uid === undefined) return undefined
    // Pods of workloads are already known; those with a sidecar are looked up.
    const client = kube.as('heartbeat')
    const pod =
      this.#podOf(namespace, name, uid) ?? (await client.get<Pod>(podType, namespace, name, { urgent: 'connection' }))
    if (pod === undefined || pod.metadata.uid !== uid) return undefined
    const injected = pod.metadata.annotations?.['penstock.dev/injected']?.split('.')[0]
    const agent = pod.metadata.labels?.[labels.agent] ?? injected
    if (agent === undefined) return undefined
    const node = extra('node-name') ?? pod.spec?.nodeName ?? ''
    return { asked: { agent: objectKey(namespace, agent), pod: name, podUid: uid, node }, account }
  }

  /** Forwards a request to the leader; returns the status of its response. */
  async #relay(
    request: IncomingMessage,
    response: ServerResponse,
    body: CountedBody | undefined,
    idleMs: number,
  ): Promise<number> {
    const identity = this.#context.leader()
    const address = identity === undefined ? undefined : addressOf(identity)
    // Only one hop: two replicas that each consider the other the leader would forward it forever.
    if (address === undefined || request.headers[forwardedHeader] !== undefined) {
      answer(response, 503, 'There is no leader at the moment.')
      return 503
    }
    try {
      const leader = { ...split(address), ca: this.#options.certificate?.current()?.ca }
      return await relay(request, response, leader, body, idleMs)
    } catch (error) {
      if (!isNormal(error)) this.#context.logger.debug({ error: errorText(error) }, 'The leader could not be reached.')
      if (!response.headersSent) answer(response, 503, 'The leader did not accept the request.')
      return 503
    }
  }
}

/** Address of a leader's server: its identity ends in `@host:port`. */
function addressOf(identity: string): string | undefined {
  return /@(\S+:\d+)$/.exec(identity)?.[1]
}

/** A request that only agents send. */
interface Route {
  readonly kind: 'heartbeat' | 'bundle' | 'readers' | 'inquiries' | 'answer'
  readonly maxBytes: number
  /** How long the leader may be silent before it responds to a relayed request. */
  readonly idleMs: number
  /** Whether an observer waits for it. */
  readonly isObserved: boolean
  /** The inquiry that it answers; otherwise empty. */
  readonly id: string
}

function routeOf(path: string): Route | undefined {
  const [, id] = /^\/v1\/inquiries\/([\w-]+)$/.exec(path) ?? []
  if (id !== undefined) return { kind: 'answer', maxBytes, idleMs: holdMs + relayMs, isObserved: true, id }
  switch (path) {
    case '/v1/heartbeat':
      return { kind: 'heartbeat', maxBytes, idleMs: relayMs, isObserved: false, id: '' }
    case '/v1/bundle':
      return { kind: 'bundle', maxBytes: maxStreamBytes, idleMs: maxHeldMs + relayMs, isObserved: false, id: '' }
    case '/v1/inquiries':
      return { kind: 'inquiries', maxBytes: maxOtherBytes, idleMs: holdMs + relayMs, isObserved: true, id: '' }
    case readersPath:
      return { kind: 'readers', maxBytes: maxOtherBytes, idleMs: relayMs, isObserved: false, id: '' }
    default:
      return undefined
  }
}

/** The body of a request does not match its header or its path. */
class InvalidBody extends Error {}

/** The object in a body, which is no longer in memory afterwards. */
function jsonOf<T extends object>(body: CountedBody): Partial<T> {
  let value: unknown
  try {
    value = JSON.parse(body.take().toString('utf8'))
  } catch (error) {
    throw new InvalidBody(`The body is not JSON: ${errorText(error)}`)
  }
  body[Symbol.dispose]()
  if (typeof value !== 'object' || value === null) throw new InvalidBody('The body is not a JSON object.')
  return value
}

function give(response: ServerResponse, content: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(content)}\n`)
}

function answer(response: ServerResponse, status: number, problem: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify({ error: problem })}\n`)
}

function split(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':')
  const host = address.slice(0, at).replace(/^\[|\]$/g, '')
  return { host: host === '' ? '0.0.0.0' : host, port: Number(address.slice(at + 1)) }
}

/** Rejects a request that may succeed later. */
function postpone(response: ServerResponse, status: number, problem: string, retryAfterMs: number): void {
  response.setHeader('retry-after', String(Math.ceil(retryAfterMs / 1000)))
  refuse(response, status, problem)
}

/** Rejects a request and closes its connection, so that rejected clients hold no connections. */
function refuse(response: ServerResponse, status: number, problem: string): void {
  response.setHeader('connection', 'close')
  answer(response, status, problem)
}
