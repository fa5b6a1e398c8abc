// Agents that share a bundle elect a leader by a Lease. An agent trusts only its own clock and the changes that it observes. It
// stops leading well before another can start: if a renewal is not confirmed in time, its term is over, whatever the API server
// says.

import { type Clock, pause, systemClock } from '../clock.ts'
import { errorText, PenstockError } from '../errors.ts'
import { claimed, holderOf, type Lease, leasePath, leaseTimes, released } from '../kube/lease.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Leadership } from '../topology/singleton.ts'

/** Reads and writes the Lease. */
export interface LeaseApi {
  json(
    path: string,
    signal: AbortSignal,
    body?: unknown,
    method?: 'PUT',
  ): Promise<{ readonly status: number; readonly body: unknown }>
  /** Called after a failure: the next request must use a new connection. */
  disconnect(): Promise<void>
}

export interface ElectionOptions {
  readonly namespace: string
  readonly name: string
  /** This agent's identity, unique for each process. */
  readonly identity: string
  /** Called for the first request. */
  open(): Promise<LeaseApi>
  readonly logger: Logger
  readonly metrics: Metrics
  readonly clock?: Clock
  readonly leaseMs?: number
  readonly renewDeadlineMs?: number
  readonly retryMs?: number
}

/** The last observed claim of another agent, and when it last changed. */
interface Seen {
  readonly what: string
  readonly at: number
}

/** A source that starts within this time after the start of a term continues a source of the predecessor. */
const takeOverMs = 60_000

interface Term {
  readonly over: AbortController
  /** When the claim was last confirmed: the time before the confirming request. */
  confirmedAt: number
  /** The content written then; the next renewal overwrites it. */
  lease: Lease | undefined
  cancelFence: () => void
}

export class Election implements Leadership {
  readonly #options: Required<ElectionOptions>
  readonly #log: Logger
  #api: Promise<LeaseApi> | undefined
  #members = 0
  #running: Promise<void> | undefined
  #leaving = false
  #closed = false
  /** Ends the pause between two attempts. */
  #wake = new AbortController()
  #term: Term | undefined
  #seen: Seen | undefined
  /** Uid of the known Lease. */
  #uid: string | undefined
  #leader: string | undefined
  #failing = false
  #precededUntil: number | undefined
  #ledSince = Number.NEGATIVE_INFINITY
  /** Whether a claim of this agent was confirmed since `#precededUntil` was set. */
  #served = false
  readonly #waiting = new Set<() => void>()

  constructor(options: ElectionOptions) {
    this.#options = { ...leaseTimes, clock: systemClock, ...options }
    const { namespace, name, identity, logger, metrics } = this.#options
    this.#log = logger.child({ lease: `${namespace}/${name}`, identity })
    metrics.computed('singleton_leader', {}, () => (this.leads ? 1 : 0))
    metrics.counter('singleton_lease_failures_total').add(0)
  }

  get leads(): boolean {
    const { clock, renewDeadlineMs } = this.#options
    return this.#term !== undefined && clock.now() - this.#term.confirmedAt < renewDeadlineMs
  }

  get precededUntil(): number | undefined {
    // A source that starts later in the term does not continue a predecessor's source.
    const isTakenOver = this.#options.clock.now() - this.#ledSince < takeOverMs
    return isTakenOver ? this.#precededUntil : undefined
  }

  /** Takes part while the caller has sources to run: without members, no requests are sent to the API server. */
  join(): Disposable {
    this.#members++
    if (this.#running === undefined) this.#start()
    return {
      [Symbol.dispose]: () => {
        this.#members--
        if (this.#members === 0 && this.#leaving) this.#wake.abort()
      },
    }
  }

  async term(signal: AbortSignal): Promise<AbortSignal | undefined> {
    while (!signal.aborted) {
      if (this.#term !== undefined && this.leads) return this.#term.over.signal
      const { promise, resolve } = Promise.withResolvers<void>()
      const go = () => resolve()
      this.#waiting.add(go)
      signal.addEventListener('abort', go)
      await promise
      this.#waiting.delete(go)
      signal.removeEventListener('abort', go)
    }
    return undefined
  }

  /** The agent stops: it makes no further claims, and releases its claim when no member is left. */
  leave(): void {
    this.#leaving = true
    if (this.#members === 0) this.#wake.abort()
  }

  /** Ends the election. If members have not stopped, the claim is left to expire. */
  async close(): Promise<void> {
    this.leave()
    this.#closed = true
    this.#wake.abort()
    await this.#running
  }

  #start(): void {
    this.#wake = new AbortController()
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      // Sources that started meanwhile take part again.
      if (this.#members > 0 && !this.#closed) this.#start()
    })
  }

  /** Continues while there are members: a replaced source is missing only for a moment. */
  async #run(): Promise<void> {
    const { clock, retryMs } = this.#options
    while (this.#members > 0 && !this.#closed) {
      await this.#turn()
      await pause(retryMs, this.#wake.signal, clock)
    }
    const { lease } = this.#term ?? {}
    this.#end('No singleton source is left to run.', 'info')
    if (this.#members === 0 && this.#leader === this.#options.identity) await this.#release(lease)
    const api = await this.#api?.catch(() => undefined) // the failure was logged already
    await api?.disconnect()
  }

  async #turn(): Promise<void> {
    try {
      const holder = await this.#attempt()
      if (this.#failing) this.#log.info('The Lease can be read and written again.')
      this.#failing = false
      if (holder !== undefined && holder !== this.#options.identity) {
        this.#end('Another agent has taken the Lease.', 'warn')
        if (holder !== this.#leader) this.#log.info({ leader: holder }, 'Another agent leads.')
        this.#leader = holder
      }
    } catch (error) {
      this.#options.metrics.counter('singleton_lease_failures_total').add(1)
      if (!this.#failing)
        this.#log.warn({ error: errorText(error) }, 'Could not read or write the Lease; trying again.')
      this.#failing = true
      await this.#api?.then((api) => api.disconnect()).catch(() => {}) // the failure is logged above
    }
  }

  /**
   * Takes or renews the claim if it is free or belongs to this agent. Returns its holder; undefined if there is none, or it
   * is unknown.
   */
  async #attempt(): Promise<string | undefined> {
    const { clock, identity } = this.#options
    const before = clock.now()
    const { lease: held } = this.#term ?? {}
    if (held !== undefined) {
      const renewed = await this.#put(this.#claim(held))
      if (renewed !== undefined) return this.#confirm(before, renewed, 'own')
      // Another client has written it, perhaps only a label: the current content decides.
      if (this.#term !== undefined) this.#term.lease = undefined
    }
    const lease = await this.#get()
    const holder = holderOf(lease)
    if (!this.#isFree(lease, before)) return holder
    if (this.#leaving && this.#term === undefined) return undefined
    // An unconfirmed claim of this agent does not show when another agent led.
    if (holder !== identity || this.#served) {
      const renewed = Date.parse(lease?.spec?.renewTime ?? '')
      this.#precededUntil = Number.isNaN(renewed) ? undefined : renewed
      this.#served = false
    }
    const taken = await this.#put(this.#claim(lease))
    if (taken === undefined) return undefined
    const isFirst = lease?.spec?.leaseTransitions === undefined
    const silent = holder === identity ? 'own' : 'silent'
    return this.#confirm(before, taken, holder !== undefined ? silent : isFirst ? 'none' : 'given_up')
  }

  /**
   * Whether the Lease has no holder, or its holder did not renew it for its whole duration, as observed by this agent. A missing or
   * recreated Lease was not released: an agent may still hold the earlier one.
   */
  #isFree(lease: Lease | undefined, before: number): boolean {
    const { clock, identity, leaseMs } = this.#options
    const { uid, resourceVersion } = lease?.metadata ?? {}
    const holder = holderOf(lease)
    const isKnown = uid !== undefined && (this.#uid === undefined || uid === this.#uid)
    if (isKnown) this.#uid = uid
    if (isKnown && (holder === undefined || holder === identity)) return true
    const what = `${uid} ${holder === undefined ? 'nobody' : resourceVersion}`
    if (this.#seen?.what !== what) this.#seen = { what, at: clock.now() }
    if (before - this.#seen.at <= leaseMs) return false
    this.#uid = uid
    return true
  }

  #claim(lease: Lease | undefined): Lease {
    const { identity, leaseMs } = this.#options
    return claimed(lease, this.#options, identity, leaseMs)
  }

  /** @param previous how the previous claim ended */
  #confirm(before: number, lease: Lease, previous: 'none' | 'given_up' | 'silent' | 'own'): string | undefined {
    const { clock, renewDeadlineMs, identity } = this.#options
    const leftMs = renewDeadlineMs - (clock.now() - before)
    if (leftMs <= 0) return undefined // the response came too late
    const isNew = this.#term === undefined
    const term = this.#term ?? { over: new AbortController(), confirmedAt: before, lease, cancelFence: () => {} }
    term.cancelFence()
    term.confirmedAt = before
    term.lease = lease
    this.#uid = lease.metadata.uid
    this.#seen = undefined
    const late = `The Lease was not renewed for ${renewDeadlineMs / 1000} s.`
    term.cancelFence = clock.after(leftMs, () => this.#end(late, 'warn'))
    this.#term = term
    this.#served = true
    if (isNew) {
      this.#ledSince = before
      this.#leader = identity
      this.#log.info({ previous }, 'This agent is now the leader: it runs the singleton sources.')
      for (const resume of this.#waiting) resume()
    }
    return identity
  }

  #end(reason: string, level: 'info' | 'warn'): void {
    const term = this.#term
    if (term === undefined) return
    this.#term = undefined
    term.cancelFence()
    this.#log[level]({ reason }, 'This agent is no longer the leader; it stops the singleton sources.')
    term.over.abort(new PenstockError('PEN_KUBERNETES', reason))
  }

  async #release(held: Lease | undefined): Promise<void> {
    try {
      for (let lease = held, attempt = 0; attempt < 3; lease = undefined, attempt++) {
        lease ??= await this.#get()
        if (lease === undefined || holderOf(lease) !== this.#options.identity) return
        if ((await this.#put(released(lease))) === undefined) continue // another client has written it meanwhile
        this.#leader = undefined
        this.#log.info('The Lease is released.')
        return
      }
    } catch (error) {
      this.#log.warn({ error: errorText(error) }, 'Could not release the Lease; it will expire.')
    }
  }

  /** Undefined if it does not exist. */
  async #get(): Promise<Lease | undefined> {
    const { status, body } = await this.#send()
    if (status === 404) return undefined
    if (status !== 200) throw this.#refused('read', status)
    return body as Lease
  }

  /** Undefined if another client has written it since it was read. */
  async #put(lease: Lease): Promise<Lease | undefined> {
    const { status, body } = await this.#send(lease)
    if (status === 409 || status === 404) return undefined
    if (status !== 200 && status !== 201) throw this.#refused('written', status)
    return body as Lease
  }

  #refused(what: string, status: number): PenstockError {
    const { namespace, name } = this.#options
    const help = status === 403 ? '. The role of the agent must allow get, create and update on it' : ''
    return new PenstockError(
      'PEN_KUBERNETES',
      `Cannot ${what} the Lease ${namespace}/${name}: the API server responded with status ${status}${help}.`,
    )
  }

  /** Sends one request, limited so that another attempt fits within the deadline. */
  async #send(body?: Lease): Promise<{ readonly status: number; readonly body: unknown }> {
    const { clock, renewDeadlineMs, open } = this.#options
    const limit = new AbortController()
    const late = Promise.withResolvers<never>()
    late.promise.catch(() => {}) // only relevant while a request waits for it
    const cancel = clock.after(renewDeadlineMs / 2, () => {
      const error = new PenstockError('PEN_KUBERNETES', 'The API server did not answer in time.')
      limit.abort(error)
      late.reject(error)
    })
    const ask = async () => {
      this.#api ??= open()
      const api = await this.#api.catch((error: unknown) => {
        this.#api = undefined
        throw error
      })
      return body === undefined
        ? api.json(leasePath(this.#options), limit.signal)
        : api.json(leasePath(this.#options), limit.signal, body, 'PUT')
    }
    try {
      return await Promise.race([ask(), late.promise])
    } finally {
      cancel()
    }
  }
}
