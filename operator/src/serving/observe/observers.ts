// `/v1/tap` and `/v1/top`: users who observe running Pipelines. A token authenticates each user; the API server decides whether they
// may create `pipelines/tap`, or get `pipelines`. Responses are lines of JSON while they listen, bounded in rate, size and time; a
// reader that is too slow misses events, and delays no other.

import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { conditionOf } from '../../api/conditions.ts'
import { clusterPipelineKind, pipelineKind, type ResourceKind } from '../../api/kinds.ts'
import { group, objectKey } from '../../api/object.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { Artifact } from '../../compile/artifact.ts'
import { namespacesOf, type OperatorContext } from '../../context.ts'
import type { FleetState, Report } from '../../fleet/state.ts'
import type { Cache } from '../../kube/cache.ts'
import { KubeError } from '../../kube/client.ts'
import { monotonicNow } from '../../kube/clock.ts'
import type { User } from '../../kube/reviews.ts'
import { Allowances, busy, ReviewError, TokenGate } from '../../kube/token-gate.ts'
import { type ActingAs, actingAsIn, refusedActing, userActing, wantedOf } from './acting-as.ts'
import type { Inquiries } from './inquiries.ts'
import { actingAsHeader, tokenHeader } from './relay.ts'
import { TapLook } from './tap-look.ts'
import { TopLook } from './top-look.ts'

export const observedPaths: readonly string[] = ['/v1/tap', '/v1/top']

/** Reviews of unknown tokens, by address and in total: they must not use up the operator's requests to the API server. */
const strangers = { perSource: { perSecond: 1, burst: 10 }, total: { perSecond: 10, burst: 40 } }
/**
 * Reviews of rights, by user and in total: every request needs one, and one for each group of an impersonated user. The
 * operator's own work needs most of its 50 requests a second to the API server.
 */
const questions = { perUser: { perSecond: 5, burst: 250 }, total: { perSecond: 20, burst: 1000 } }
/** Maximum number of concurrent requests, of one holder (a user, or all service accounts of a namespace) and in total. */
const maxLooks = { perHolder: 8, total: 64 }
/** A reader with this many unread bytes misses further events. */
const maxUnread = 1 << 20
/** Interval of messages that keep proxies from closing an idle connection. */
const quietMs = 10_000
const limits = { forMs: { defaultMs: 600_000, max: 3_600_000 }, tapMs: 1000, topMs: { min: 1000, defaultMs: 2000 } }
const maxEvents = 1000
const tooMany = 'Too many requests at once; try again in a few seconds.'

/**
 * The holder to which the limit applies: a user, or the namespace of a service account. With the right to create service accounts
 * in a namespace, a tenant can have any number of them.
 */
function holderOf({ username = '' }: User): string {
  const namespace = /^system:serviceaccount:([^:]+):/.exec(username)?.[1]
  return namespace === undefined ? username : `Namespace ${namespace}`
}

/** An error with its HTTP status. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Rights are never assumed, not even those of a moment ago. */
const unreviewed = new Refusal(
  503,
  'The API server does not answer the reviews of tokens and rights at the moment, so this operator cannot authorize you; try again in a few seconds.',
)

/** An agent's pod that runs a Pipeline, as far as known. */
export interface Runner {
  readonly agent: string
  readonly report: Report
}

export interface Reader {
  /** Writes a line, unless the reader is too slow; then false. */
  line(text: string): boolean
  notify(message: string): void
  /** Ends when the reader has disconnected, or the time is over. */
  readonly signal: AbortSignal
}

export class Observers {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  readonly #inquiries: Inquiries
  readonly #pipelines: Cache<Pipeline>
  readonly #clusterPipelines: Cache<Pipeline> | undefined
  readonly #gate: TokenGate<User>
  readonly #relayed = new Allowances(strangers.perSource)
  readonly #users = new Allowances(questions.perUser)
  readonly #allUsers = new Allowances(questions.total)
  /** Open requests by holder: a user, or the namespace of a service account. */
  readonly #looking = new Map<string, number>()
  /** When all initial Pipelines were compiled, which only happens in a leading process. */
  #completeAt = Number.POSITIVE_INFINITY

  constructor(context: OperatorContext, fleet: FleetState, inquiries: Inquiries) {
    this.#context = context
    this.#fleet = fleet
    this.#inquiries = inquiries
    this.#gate = new TokenGate({ ...strangers, review: (token) => context.reviews.userOf(token) })
    const noteComplete = () => {
      if (context.artifacts.complete && this.#completeAt === Number.POSITIVE_INFINITY) this.#completeAt = monotonicNow()
    }
    noteComplete()
    context.artifacts.subscribe(noteComplete)
    this.#pipelines = context.caches.cache<Pipeline>(pipelineKind)
    if (context.settings.watchNamespaces === undefined)
      this.#clusterPipelines = context.caches.cache<Pipeline>(clusterPipelineKind)
  }

  /** Whether a request from this address may currently be forwarded to the leader. */
  admits(request: IncomingMessage): boolean {
    return this.#relayed.take(request.socket.remoteAddress ?? '')
  }

  /** Handles a request; resolves when the response has ended. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = new URL(request.url ?? '/', 'http://operator')
      await (url.pathname === '/v1/tap'
        ? this.#tap(request, response, url.searchParams)
        : this.#top(request, response, url.searchParams))
    } catch (problem) {
      const error = problem instanceof ReviewError || problem instanceof KubeError ? unreviewed : problem
      if (!(error instanceof Refusal)) throw error
      response.writeHead(error.status, { 'content-type': 'application/json' })
      response.end(`${JSON.stringify({ error: error.message })}\n`)
    }
  }

  async #tap(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): Promise<void> {
    const { kind, namespace, name } = subjectOf(query)
    if (name === undefined) throw new Refusal(400, '`name` of a Pipeline is needed.')
    const node = nameIn(query, 'node', dnsSubdomain)
    const component = nameIn(query, 'component', dnsLabel)
    const limit = numberIn(query, 'limit', 1, maxEvents) ?? 100
    const wish = { kind, namespace, name, subresource: 'tap', verb: 'create' }
    const { asker, holder } = await this.#authorise(request, response, wish)
    const artifact = this.#artifact(kind, namespace, name)
    const shown = componentOf(artifact, component)
    const runners = this.#runners(artifact.id).live
    const what = `${kind.kind} ${objectKey(namespace, name)}`
    if (runners.length === 0) throw new Refusal(409, `No agent runs ${what}: \`penstock status\` shows the reason.`)
    if (node !== undefined && !runners.some(({ report }) => report.node === node)) {
      const nodes = [...new Set(runners.map(({ report }) => report.node))].sort()
      const some = `${nodes.slice(0, 10).join(', ')}${nodes.length > 10 ? ', …' : ''}`
      throw new Refusal(404, `No agent on node ${node} runs ${what}; it runs on: ${some}.`)
    }
    this.#context.logger.info(
      { user: asker.username, pipeline: artifact.id, component: shown?.name },
      'Events are shown.',
    )
    await this.#look(holder, response, query, async (reader) => {
      const look = new TapLook(
        { id: randomUUID(), pipeline: artifact.id, component: shown, node, limit, intervalMs: limits.tapMs },
        reader,
        (agent) => this.#fleet.get(agent)?.selected.has(artifact.id) === true,
      )
      using _ = this.#inquiries.open(look)
      const asked = runners.filter(({ report }) => node === undefined || report.node === node).length
      reader.notify(`${what}: ${asked} ${asked === 1 ? 'agent is' : 'agents are'} asked.`)
      await ended(reader.signal)
      look.end()
    })
  }

  async #top(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): Promise<void> {
    const { kind, namespace, name } = subjectOf(query)
    const { min, defaultMs } = limits.topMs
    const intervalMs = numberIn(query, 'interval', min, 60_000) ?? defaultMs
    const uid = nameIn(query, 'pod', dnsSubdomain)
    const node = nameIn(query, 'node', dnsSubdomain)
    if (uid !== undefined && node === undefined) throw new Refusal(400, '`node` of the pod is needed.')
    const pod = uid === undefined || node === undefined ? undefined : { uid, node }
    const { holder } = await this.#authorise(request, response, { kind, namespace, name, verb: 'get' })
    if (name !== undefined) this.#artifact(kind, namespace, name)
    const chosen = (): readonly Artifact[] => {
      const found: Artifact[] = []
      for (const artifact of this.#context.artifacts.values()) {
        if (artifact.kind !== kind.kind || (name !== undefined && artifact.name !== name)) continue
        if (namespace === undefined || artifact.namespace === namespace) found.push(artifact)
      }
      return found.sort((left, right) => (left.id < right.id ? -1 : 1))
    }
    await this.#look(holder, response, query, async (reader) => {
      const look = new TopLook(
        { id: randomUUID(), intervalMs, pod },
        {
          ...{ fleet: this.#fleet, chosen, runners: (id: string) => this.#runners(id) },
          isHearing: () => monotonicNow() - this.#completeAt < this.#fleet.hearingMs,
        },
      )
      using _ = this.#inquiries.open(look)
      const timer = setInterval(() => reader.line(JSON.stringify(look.line())), intervalMs)
      await ended(reader.signal)
      clearInterval(timer)
    })
  }

  /** Keeps a response open until the reader disconnects or the time is over. */
  async #look(
    holder: string,
    response: ServerResponse,
    query: URLSearchParams,
    work: (reader: Reader) => Promise<void>,
  ): Promise<void> {
    const { defaultMs, max } = limits.forMs
    const forMs = numberIn(query, 'for', 1, max) ?? defaultMs
    const own = this.#looking.get(holder) ?? 0
    const all = [...this.#looking.values()].reduce((sum, count) => sum + count, 0)
    if (own >= maxLooks.perHolder)
      throw new Refusal(
        429,
        `${holder} already has ${own} commands that observe Pipelines; try again when one has ended.`,
      )
    if (all >= maxLooks.total)
      throw new Refusal(429, `${all} commands already observe Pipelines; try again when one has ended.`)
    this.#looking.set(holder, own + 1)
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    const over = AbortSignal.timeout(forMs)
    response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    response.flushHeaders()
    let last = Date.now()
    const reader: Reader = {
      line: (text) => {
        if (response.writableLength > maxUnread) return false
        last = Date.now()
        response.write(`${text}\n`)
        return true
      },
      notify: (message) => void reader.line(JSON.stringify({ kind: 'notification', message })),
      signal: AbortSignal.any([gone.signal, over, this.#context.signal]),
    }
    const alive = setInterval(() => {
      if (Date.now() - last >= quietMs) reader.line('{"kind":"alive"}')
    }, quietMs)
    try {
      await work(reader)
      if (over.aborted) reader.notify(`It ends after ${Math.round(forMs / 1000)} s.`)
      else if (!gone.signal.aborted) reader.notify('This operator is stopping; run the command again.')
    } finally {
      clearInterval(alive)
      const left = (this.#looking.get(holder) ?? 1) - 1
      if (left > 0) this.#looking.set(holder, left)
      else this.#looking.delete(holder)
      response.end()
    }
  }

  async #authorise(
    request: IncomingMessage,
    response: ServerResponse,
    { kind, namespace, name, subresource, verb }: Wish & { readonly kind: ResourceKind },
  ): Promise<{ readonly asker: User; readonly holder: string }> {
    const own = request.headers[tokenHeader]
    const token = typeof own === 'string' ? own : /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
    const { reviews } = this.#context
    if (token === undefined) throw new Refusal(401, `A bearer token ${reviews.takes} is needed.`)
    const user = await this.#gate.of(token, request.socket.remoteAddress ?? '')
    if (user === busy) throw new Refusal(429, tooMany)
    if (user === undefined) {
      const problem = this.#context.settings.rolesOnly
        ? `This token is not ${reviews.takes}, or it has expired.`
        : 'The API server does not know this token; it may have expired.'
      throw new Refusal(401, problem)
    }
    const asked = request.headers[actingAsHeader]
    const as = asked === undefined ? undefined : actingAsIn(String(asked))
    if (asked !== undefined && as === undefined)
      throw new Refusal(400, 'This command sends the impersonated user in another format.')
    this.#charge(user, as, namespace)
    const acting = as === undefined ? undefined : await this.#actingAs(user, as)
    if (asked !== undefined) response.setHeader(actingAsHeader, asked)
    const resource = kind.plural
    const attributes = {
      ...{ group, resource, verb, namespace, name },
      ...(subresource === undefined ? {} : { subresource }),
    }
    const asker = acting ?? user
    if (await reviews.mayDo(asker, { resourceAttributes: attributes })) {
      if (acting !== undefined)
        this.#context.logger.info(
          { user: user.username, as: acting.username, groups: acting.groups },
          'A user acts as another one.',
        )
      return { asker, holder: holderOf(user) }
    }
    const full = subresource === undefined ? resource : `${resource}/${subresource}`
    const where = !kind.namespaced ? '' : namespace === undefined ? ' in all namespaces' : ` in namespace ${namespace}`
    throw new Refusal(
      403,
      `${asker.username} may not ${verb} ${full}.${group}${name === undefined ? '' : ` "${name}"`}${where}. A role with the verb "${verb}" on "${full}" of the API group ${group} allows it${kind.namespaced ? `, such as the ClusterRole penstock-${subresource === undefined ? 'view' : 'edit'}` : ''}.`,
    )
  }

  /** The user that the caller impersonates, if it may. */
  async #actingAs(caller: User, as: ActingAs): Promise<User> {
    const { reviews, settings } = this.#context
    const refused = await refusedActing(caller, wantedOf(as), reviews, settings.rolesOnly)
    if (refused !== undefined) throw new Refusal(403, `${caller.username} may not impersonate ${refused}.`)
    return userActing(as)
  }

  /** Charges the reviews of a request to its caller, not to the impersonated user. */
  #charge(caller: User, as: ActingAs | undefined, namespace: string | undefined): void {
    const { settings } = this.#context
    const everywhere = settings.rolesOnly && namespace === undefined ? namespacesOf(settings) : undefined
    const count = (everywhere?.length ?? 1) + (as === undefined ? 0 : wantedOf(as).length)
    const now = monotonicNow()
    // A user name must not share an entry with an address that looks like it.
    const name = createHash('sha256')
      .update(caller.username ?? '')
      .digest('hex')
    if (!this.#users.has(name, now, count) || !this.#allUsers.take('', now, count)) throw new Refusal(429, tooMany)
    this.#users.take(name, now, count)
  }

  #artifact(kind: ResourceKind, namespace: string | undefined, name: string): Artifact {
    const { artifacts } = this.#context
    if (!artifacts.complete) throw new Refusal(503, 'The operator has just started; try again in a few seconds.')
    // The requested kind and name decide which right is needed, not the form of an id.
    const found = artifacts.get(`${namespace ?? '_cluster'}/${name}`)
    if (found !== undefined && found.kind === kind.kind && found.namespace === namespace) return found
    const what = `${kind.kind} ${objectKey(namespace, name)}`
    const object = (kind.namespaced ? this.#pipelines : this.#clusterPipelines)?.get(namespace, name)
    if (object === undefined) throw new Refusal(404, `There is no ${what}.`)
    const { reason, message } = conditionOf(object.status?.conditions, 'Ready') ?? { reason: 'Pending', message: '' }
    throw new Refusal(409, `${what} is not running: ${reason}${message === '' ? '' : `: ${message}`}`)
  }

  /** Pods that run or should run a Pipeline: those that report, and those that no longer report. */
  #runners(id: string): { readonly live: Runner[]; readonly silent: Runner[] } {
    const live: Runner[] = []
    const silent: Runner[] = []
    const now = monotonicNow()
    for (const [agent, { selected }] of this.#fleet.agents()) {
      if (!selected.has(id)) continue
      for (const report of this.#fleet.reports(agent))
        (this.#fleet.isStale(report, now) ? silent : live).push({ agent, report })
    }
    return { live, silent }
  }
}

interface Wish {
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource?: string
  readonly verb: string
}

function subjectOf(query: URLSearchParams): {
  kind: ResourceKind
  namespace: string | undefined
  name: string | undefined
} {
  const asked = textIn(query, 'kind') ?? pipelineKind.kind
  const kind = [pipelineKind, clusterPipelineKind].find((each) => each.kind === asked)
  if (kind === undefined)
    throw new Refusal(400, `\`kind\` is ${pipelineKind.kind} or ${clusterPipelineKind.kind}; found ${quoted(asked)}.`)
  const namespace = nameIn(query, 'namespace', dnsLabel)
  if (!kind.namespaced && namespace !== undefined)
    throw new Refusal(400, `A ${kind.kind} has no namespace; found \`namespace\` ${quoted(namespace)}.`)
  const name = nameIn(query, 'name', dnsSubdomain)
  if (kind.namespaced && name !== undefined && namespace === undefined)
    throw new Refusal(400, '`namespace` of the Pipeline is needed.')
  return { kind, namespace, name }
}

interface Grammar {
  readonly pattern: RegExp
  readonly longest: number
  readonly what: string
}

const dnsLabel: Grammar = { pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, longest: 63, what: 'a DNS label' }
const dnsSubdomain: Grammar = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  longest: 253,
  what: 'a DNS name',
}

function textIn(query: URLSearchParams, name: string): string | undefined {
  const [first, ...further] = query.getAll(name)
  if (further.length > 0) throw new Refusal(400, `\`${name}\` is given ${further.length + 1} times; give it once.`)
  return first === undefined || first === '' ? undefined : first
}

/** A parameter that is used in a rights review, or compared with values that the API server accepted. */
function nameIn(query: URLSearchParams, name: string, { pattern, longest, what }: Grammar): string | undefined {
  const text = textIn(query, name)
  if (text === undefined || (text.length <= longest && pattern.test(text))) return text
  const help = `at most ${longest} of a-z, 0-9 and -${what === dnsSubdomain.what ? ' and .' : ''}`
  throw new Refusal(400, `\`${name}\` is ${what}: ${help}; found ${quoted(text)}.`)
}

/** Text from a request, made safe for a response. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 63)}…` : text)
}

function numberIn(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = textIn(query, name)
  if (text === undefined) return undefined
  const number = Number(text)
  if (Number.isInteger(number) && number >= min && number <= max) return number
  throw new Refusal(400, `\`${name}\` takes a whole number from ${min} to ${max}; found ${quoted(text)}.`)
}

function componentOf(artifact: Artifact, name: string | undefined) {
  if (name === undefined) return undefined
  const kinds = {
    source: [...Object.keys(artifact.sources), ...artifact.hub.subscriptions.map(({ out }) => out)],
    transform: Object.keys(artifact.transforms),
    sink: Object.keys(artifact.sinks),
  } as const
  for (const [kind, ids] of Object.entries(kinds) as ['source' | 'transform' | 'sink', string[]][])
    if (ids.includes(`${artifact.id}/${name}`)) return { name, kind }
  const names = Object.values(kinds).flatMap((ids) => ids.map((id) => id.slice(artifact.id.length + 1)))
  throw new Refusal(404, `It has no component "${name}"; there are: ${names.join(', ')}.`)
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
}
