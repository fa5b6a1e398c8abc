// Bundles for agents that request them. A request is held until something is newer than the agent's content: another revision, another
// secret value, or a pod on its node that a pipeline reads. A node agent only receives the content for its node. Only the leader
// answers. It renders a part when it sends it, a few at a time; a waiting agent costs a connection and some names.

import type { ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip as gzipWithCallback } from 'node:zlib'
import {
  bundleSchema,
  candidateFor,
  maxBusy,
  type StreamBody,
  type StreamHead,
  sameJson,
  sha256,
} from '@penstock/agent/bundle'
import { Counter, Gauge } from 'prom-client'
import type { OperatorContext } from '../context.ts'
import { NodePods, type PodOnNode, podPlace } from '../fleet/node-pods.ts'
import type { FleetState, Offered, OfferedRevision } from '../fleet/state.ts'
import type { Cache } from '../kube/cache.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import { textOf } from '../render/bundle.ts'
import type { Fragment } from '../render/fragment.ts'
import { concerned, markOf } from '../render/interest.ts'
import { minAgentVersion } from '../render/manifest.ts'
import type { Asked } from './observe/inquiries.ts'

const gzip = promisify(gzipWithCallback)

/** Number of pods whose last content is remembered; the pods with the oldest requests are forgotten first. */
const maxGiven = 10_000

/** Maximum time for which a request is held, even if the agent asks for more. */
export const maxHeldMs = 60_000
/** Maximum number of held requests; further ones are answered at once, and return later. */
const maxHeld = 5000
/** Number of responses built and sent concurrently: to agents of nodes, and to all others. */
const maxSending = 8
/** Maximum number of responses to the pods of one namespace, except agents of nodes. Tenants control these pods, which may read slowly on purpose. */
const maxSendingPerNamespace = 2
/** A client that does not read a response within this time is disconnected. */
const sendMs = 15_000
/** Work on waiting requests is split into turns of this length. */
const turnMs = 10
/** Responses a second that only name another revision, which thousands of agents would otherwise cause at every change of one Pipeline. */
const maxNamedPerSecond = 300
/** Responses for many agents are built once. */
const maxKeptBytes = 4 * 1024 * 1024

/** The identity and the content of an agent. */
interface Request {
  readonly asked: Asked
  readonly account: string
  readonly have: StreamBody['have']
  readonly busy: readonly string[]
}

/** The part of a revision for an agent. */
interface Part {
  readonly offered: Offered
  readonly revision: OfferedRevision
  readonly candidate: boolean
  readonly fragments: readonly Fragment[]
  readonly mark: string
}

interface Held {
  readonly request: Request
  readonly wake: (part: Part | undefined) => void
}

export class Streams implements Disposable {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  /** By uid of the pod. */
  readonly #held = new Map<string, Held>()
  /** Held requests that must be checked. */
  readonly #due = new Set<Held>()
  #turn: NodeJS.Immediate | undefined
  readonly #slots = new Slots(maxSending, maxSending)
  readonly #otherSlots = new Slots(maxSending, maxSendingPerNamespace)
  /** Ids of the pipelines last sent to each pod, by uid of the pod. */
  readonly #given = new Map<string, ReadonlySet<string>>()
  /** When the last response to a pod was one that only named another revision, by uid of the pod. */
  readonly #namedAt = new Map<string, number>()
  /** Requests whose only news is another revision name, which can wait. */
  readonly #postponed = new Set<Held>()
  #postponing: NodeJS.Timeout | undefined
  readonly #namedPerSecond: number
  readonly #kept = new Map<string, Promise<Buffer>>()
  #keptBytes = 0
  readonly #wholeMarks = new WeakMap<OfferedRevision, string>()
  #pods: NodePods | undefined
  #namespaces: Cache | undefined
  readonly #subscriptions: Disposable[] = []
  readonly #answers: Counter
  readonly #bytes: Counter

  constructor(context: OperatorContext, fleet: FleetState, namedPerSecond = maxNamedPerSecond) {
    this.#context = context
    this.#fleet = fleet
    this.#namedPerSecond = namedPerSecond
    const registers = [context.metrics]
    this.#answers = new Counter({
      name: 'penstock_streams_total',
      help: "Agents' requests for their bundle, by response: bundle, revision (the same bundle under another one), nothing, or refused.",
      labelNames: ['given'],
      registers,
    })
    this.#bytes = new Counter({
      name: 'penstock_streamed_bytes_total',
      help: 'Compressed bytes of bundles sent to agents.',
      registers,
    })
    const held = this.#held
    new Gauge({
      name: 'penstock_streams_waiting',
      help: 'Agents that wait for newer content.',
      registers,
      collect() {
        this.set(held.size)
      },
    })
    this.#subscriptions.push(
      fleet.onOffer((agent) => {
        // Parts from the earlier offer may contain deleted values.
        this.#kept.clear()
        this.#keptBytes = 0
        if (fleet.offered(agent)?.mode === 'Node') this.#followPods()
        this.#lookAt(({ asked }) => asked.agent === agent)
      }),
    )
  }

  [Symbol.dispose](): void {
    clearImmediate(this.#turn)
    clearTimeout(this.#postponing)
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    for (const { wake } of [...this.#held.values()]) wake(undefined)
  }

  /** Answers a request when there is news, or its time is over. */
  async serve(asked: Asked, account: string, body: Partial<StreamBody>, response: ServerResponse): Promise<void> {
    const { have, busy, waitMs } = requestOf(body)
    const offered = this.#fleet.offered(asked.agent)
    const request = { asked, account, have, busy: knownOf(busy, offered) }
    if (offered !== undefined && !isOwn(offered, account)) {
      this.#answers.inc({ given: 'refused' })
      const text = `The pod runs as ServiceAccount ${account}; bundles of Agent ${asked.agent} are for ${offered.account}.`
      response.writeHead(403, { 'content-type': 'application/json' }).end(`${JSON.stringify({ error: text })}\n`)
      return
    }
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    const part = await this.#next(request, waitMs, gone.signal)
    if (gone.signal.aborted) return
    if (part === undefined) {
      this.#answers.inc({ given: 'nothing' })
      response.writeHead(204).end()
      return
    }
    const slots = part.offered.mode === 'Node' ? this.#slots : this.#otherSlots
    using _ = await slots.take(asked.agent.slice(0, asked.agent.indexOf('/')))
    if (gone.signal.aborted) return
    const isKnown = have?.mark === part.mark
    const file = isKnown ? await gzip(JSON.stringify(headOf(part))) : await this.#file(asked.agent, part)
    this.#answers.inc({ given: isKnown ? 'revision' : 'bundle' })
    this.#bytes.inc(file.length)
    this.#noteGiven(asked.podUid, part.fragments)
    if (isKnown) remember(this.#namedAt, asked.podUid, performance.now())
    await sent(response, file)
  }

  async #next(request: Request, waitMs: number, gone: AbortSignal): Promise<Part | undefined> {
    const { podUid } = request.asked
    // The agent connects again: its previous request was lost.
    this.#held.get(podUid)?.wake(undefined)
    const now = this.#partFor(request)
    const mayHold = !gone.aborted && waitMs > 0 && this.#held.size < maxHeld
    if (!mayHold || (now !== undefined && this.#isTimeFor(request, now))) return now
    return new Promise((resolve) => {
      const held: Held = {
        request,
        wake: (part) => {
          clearTimeout(late)
          gone.removeEventListener('abort', end)
          this.#due.delete(held)
          this.#postponed.delete(held)
          if (this.#held.get(podUid) === held) this.#held.delete(podUid)
          resolve(part)
        },
      }
      const end = () => held.wake(undefined)
      const late = setTimeout(end, waitMs)
      gone.addEventListener('abort', end)
      this.#held.set(podUid, held)
      if (now !== undefined) this.#postpone(held)
    })
  }

  /** Whether to respond to an agent now. Different content never waits. */
  #isTimeFor({ asked, have }: Request, { mark }: Part): boolean {
    const last = have?.mark === mark ? this.#namedAt.get(asked.podUid) : undefined
    return last === undefined || performance.now() - last >= this.#spacingMs
  }

  get #spacingMs(): number {
    return (Math.max(1, this.#held.size) * 1000) / this.#namedPerSecond
  }

  #postpone(held: Held): void {
    this.#postponed.add(held)
    this.#postponing ??= setTimeout(() => {
      this.#postponing = undefined
      for (const each of this.#postponed) this.#due.add(each)
      this.#postponed.clear()
      this.#turn ??= setImmediate(() => this.#work())
    }, this.#spacingMs)
  }

  /** Content newer than the agent's; undefined if there is none, or it is not known yet. */
  #partFor({ asked, account, have, busy }: Request): Part | undefined {
    const offered = this.#fleet.offered(asked.agent)
    if (offered === undefined || asked.node === '' || !isOwn(offered, account)) return undefined
    const tried = candidateFor(offered, asked.node)
    const candidate = tried !== undefined
    const revision = tried ?? offered.stable
    if (revision === undefined) return undefined
    const { fragments } = revision
    let part: Fragment[]
    let mark: string
    if (offered.mode === 'Node') {
      // Before all pods are known, the content would be incomplete.
      if (this.#pods?.synced !== true || this.#namespaces?.synced !== true) return undefined
      const labels = (namespace: string) => this.#namespaces?.get(undefined, namespace)?.metadata.labels
      const pods = this.#pods.on(asked.node)
      const near = (those: OfferedRevision) => concerned(those.fragments, pods, labels)
      const given = this.#givenTo(asked.podUid, have, busy, offered, near)
      const chosen = new Set(near(revision))
      for (const id of busy) {
        const fragment = given?.has(id) === true ? fragments.get(id) : undefined
        if (fragment !== undefined) chosen.add(fragment)
      }
      part = [...chosen]
      mark = markOf(part, offered.digests)
    } else {
      part = [...fragments.values()]
      mark = this.#wholeMarks.get(revision) ?? markOf(part, offered.digests)
      this.#wholeMarks.set(revision, mark)
    }
    if (have?.rev === revision.rev && have.candidate === candidate && have.mark === mark) return undefined
    return { offered, revision, candidate, fragments: part, mark }
  }

  #noteGiven(pod: string, fragments: readonly Fragment[]): void {
    remember(this.#given, pod, new Set(fragments.map(({ id }) => id)))
  }

  /**
   * The pipelines sent to a pod, because an agent's own report is only a claim. After a restart, the operator recognises the
   * content by its mark. The mark covers content and secret values, so no agent can forge one for a pipeline that it did not
   * receive.
   */
  #givenTo(
    pod: string,
    have: StreamBody['have'],
    busy: readonly string[],
    { stable, candidate, later = [], digests }: Offered,
    near: (revision: OfferedRevision) => Fragment[],
  ): ReadonlySet<string> | undefined {
    const known = this.#given.get(pod)
    if (known !== undefined || have === undefined || busy.length === 0) return known
    for (const revision of [stable, candidate, ...later]) {
      if (revision === undefined) continue
      const claimed = new Set(near(revision))
      for (const id of busy) {
        const fragment = revision.fragments.get(id)
        if (fragment !== undefined) claimed.add(fragment)
      }
      const fragments = [...claimed]
      if (markOf(fragments, digests) === have.mark) this.#noteGiven(pod, fragments)
    }
    return this.#given.get(pod)
  }

  /** The compressed response with a whole bundle. */
  async #file(agent: string, part: Part): Promise<Buffer> {
    const key = `${agent} ${part.revision.rev} ${part.candidate} ${part.mark}`
    const known = this.#kept.get(key)
    if (known !== undefined) return known
    const made = fileOf(part)
    this.#kept.set(key, made)
    try {
      const { length } = await made
      if (this.#kept.get(key) === made) this.#keptBytes += length
      if (this.#keptBytes > maxKeptBytes) {
        this.#kept.clear()
        this.#keptBytes = 0
      }
    } catch (error) {
      this.#kept.delete(key)
      throw error
    }
    return made
  }

  /** Called when the first Node Agent appears: watches the pods on each node. */
  #followPods(): void {
    if (this.#pods !== undefined) return
    const { caches, signal, logger } = this.#context
    this.#namespaces = caches.cache(namespaceType, { metadataOnly: true })
    const pods = new NodePods(
      caches.cache<PodOnNode>(podType, { shape: podPlace }),
      (node) => this.#lookAt(({ asked }) => asked.node === node),
      this.#fleet.now,
    )
    this.#pods = pods
    this.#subscriptions.push(
      pods,
      this.#namespaces.subscribe(({ object, previous }) => {
        if (!sameJson(object.metadata.labels ?? {}, previous?.metadata.labels ?? {})) this.#lookAt(() => true)
      }),
    )
    caches.synced(signal).then(
      () => this.#lookAt(() => true),
      (error: unknown) => {
        if (!signal.aborted) logger.error({ error }, 'Could not determine the pods on each node.')
      },
    )
  }

  #lookAt(concerns: (request: Request) => boolean): void {
    for (const held of this.#held.values()) if (concerns(held.request)) this.#due.add(held)
    if (this.#due.size > 0) this.#turn ??= setImmediate(() => this.#work())
  }

  #work(): void {
    this.#turn = undefined
    const started = performance.now()
    for (const held of this.#due) {
      this.#due.delete(held)
      const part = this.#partFor(held.request)
      if (part !== undefined) {
        if (this.#isTimeFor(held.request, part)) held.wake(part)
        else this.#postpone(held)
      }
      if (performance.now() - started > turnMs) break
    }
    if (this.#due.size > 0) this.#turn = setImmediate(() => this.#work())
  }
}

function remember<T>(known: Map<string, T>, pod: string, value: T): void {
  known.delete(pod)
  known.set(pod, value)
  if (known.size > maxGiven) known.delete(known.keys().next().value as string)
}

/** The known ids among these, as the revisions have them, because thousands of waiting agents name the same ones. */
function knownOf(ids: readonly string[], offered: Offered | undefined): readonly string[] {
  if (offered === undefined) return ids
  const { stable, candidate, later = [] } = offered
  const revisions = [stable, candidate, ...later]
  return ids.flatMap((id) => revisions.find((each) => each?.fragments.has(id) === true)?.fragments.get(id)?.id ?? [])
}

/** Whether a pod with this account belongs to the workload, and does not only have its label. */
function isOwn({ account: own }: Offered, account: string): boolean {
  return own === undefined || own === account
}

function headOf({ offered, revision, candidate, mark }: Part): StreamHead {
  const { secretsEpoch } = offered
  return { schema: bundleSchema, rev: revision.rev, candidate, secretsEpoch, minAgentVersion, mark }
}

function fileOf(part: Part): Promise<Buffer> {
  const { offered, fragments } = part
  const text = textOf(fragments)
  const secrets: Record<string, { value: string; sha256: string }> = {}
  for (const { key } of fragments.flatMap(({ secretRefs }) => secretRefs)) {
    const value = offered.values.get(key)
    const digest = offered.digests[key]
    if (value !== undefined && digest !== undefined) secrets[key] = { value: value.toString('base64'), sha256: digest }
  }
  const head: StreamHead = { ...headOf(part), sha256: sha256(text), secrets }
  return gzip(Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), text]), { level: 3 })
}

/** Sends a response and waits until the client has read it. */
function sent(response: ServerResponse, file: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(() => response.destroy(), sendMs)
    response.once('close', () => {
      clearTimeout(late)
      resolve()
    })
    response.writeHead(200, { 'content-type': 'application/gzip', 'content-length': file.length }).end(file)
  })
}

/** An agent's report is untrusted data. */
function requestOf({ have, busy, waitMs }: Partial<StreamBody>): Pick<Request, 'have' | 'busy'> & {
  readonly waitMs: number
} {
  const known =
    typeof have?.rev === 'string' && typeof have.mark === 'string'
      ? { rev: have.rev, candidate: have.candidate === true, mark: have.mark }
      : undefined
  return {
    have: known,
    busy: Array.isArray(busy) ? busy.filter((id) => typeof id === 'string').slice(0, maxBusy) : [],
    waitMs: typeof waitMs === 'number' && waitMs > 0 ? Math.min(waitMs, maxHeldMs) : 0,
  }
}

/** A number of slots, first come, first served, of which each line may have some. */
class Slots {
  #free: number
  readonly #perLine: number
  readonly #taken = new Map<string, number>()
  readonly #waiting: { readonly line: string; readonly start: () => void }[] = []

  constructor(count: number, perLine: number) {
    this.#free = count
    this.#perLine = perLine
  }

  async take(line: string): Promise<Disposable> {
    await new Promise<void>((start) => {
      this.#waiting.push({ line, start })
      this.#next()
    })
    return {
      [Symbol.dispose]: () => {
        const left = (this.#taken.get(line) ?? 0) - 1
        if (left > 0) this.#taken.set(line, left)
        else this.#taken.delete(line)
        this.#free++
        this.#next()
      },
    }
  }

  #next(): void {
    if (this.#free === 0) return
    const at = this.#waiting.findIndex(({ line }) => (this.#taken.get(line) ?? 0) < this.#perLine)
    const [first] = at < 0 ? [] : this.#waiting.splice(at, 1)
    if (first === undefined) return
    this.#free--
    this.#taken.set(first.line, (this.#taken.get(first.line) ?? 0) + 1)
    first.start()
  }
}
