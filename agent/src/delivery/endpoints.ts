// Several endpoints of one destination. Each attempt picks two healthy endpoints with free capacity at random, and uses the less busy
// one. After five consecutive failures an endpoint rests, longer each time; then a single request probes it.

import { type Clock, pause } from '../clock.ts'
import type { ConcurrencyLimit } from './concurrency.ts'
import type { Attempt, Call } from './delivery.ts'

/** The health of the endpoint, as inferred from an attempt. */
export type EndpointHealth = 'healthy' | 'unhealthy' | 'unknown'

export interface EndpointOptions {
  readonly initialMs: number
  readonly maxMs: number
}

interface Endpoint {
  readonly call: Call
  readonly concurrency: ConcurrencyLimit
  inFlight: number
  failures: number
  /** The end of its rest; 0 if the endpoint is open. */
  closedUntil: number
  closedMs: number
  probing: boolean
}

const failuresToClose = 5

export class Endpoints implements ConcurrencyLimit {
  readonly #endpoints: Endpoint[]
  readonly #options: EndpointOptions
  readonly #health: (attempt: Attempt) => EndpointHealth
  readonly #clock: Clock
  readonly #random: () => number
  readonly #active: (count: number) => void
  #waiters: (() => void)[] = []

  /**
   * @param health determines the health of an endpoint from an attempt
   * @param active receives the number of open endpoints whenever it changes
   */
  constructor(
    endpoints: readonly { readonly call: Call; readonly concurrency: ConcurrencyLimit }[],
    options: EndpointOptions,
    health: (attempt: Attempt) => EndpointHealth,
    active: (count: number) => void,
    clock: Clock,
    random: () => number = Math.random,
  ) {
    this.#endpoints = endpoints.map(({ call, concurrency }) => ({
      call,
      concurrency,
      inFlight: 0,
      failures: 0,
      closedUntil: 0,
      closedMs: options.initialMs,
      probing: false,
    }))
    this.#options = options
    this.#health = health
    this.#active = active
    this.#clock = clock
    this.#random = random
    active(endpoints.length)
  }

  /** Maximum number of requests in flight at all endpoints together. */
  get limit(): number {
    let sum = 0
    for (const endpoint of this.#endpoints) sum += endpoint.concurrency.limit
    return sum
  }

  // `call` notifies the limit of the single endpoint instead.
  sent(): void {}
  answered(): void {}

  readonly call: Call = async (request, signal) => {
    const endpoint = await this.#take(signal)
    const start = this.#clock.now()
    endpoint.concurrency.sent(endpoint.inFlight)
    let attempt: Attempt
    try {
      attempt = await endpoint.call(request, signal)
    } catch (error) {
      attempt = { outcome: 'retry', failure: { type: 'connection_failed', fields: { error } } }
    }
    endpoint.inFlight--
    const load = attempt.outcome === 'delivered' ? 'success' : attempt.outcome === 'retry' ? 'back_pressure' : 'other'
    endpoint.concurrency.answered(start, this.#clock.now(), load)
    this.#recordHealth(endpoint, this.#health(attempt))
    for (const wake of this.#waiters.splice(0)) wake()
    return attempt
  }

  async #take(signal: AbortSignal): Promise<Endpoint> {
    for (;;) {
      signal.throwIfAborted()
      const now = this.#clock.now()
      const ready = this.#endpoints.filter((endpoint) => isReady(endpoint, now))
      const first = ready[Math.floor(this.#random() * ready.length)]
      if (first !== undefined) {
        const others = ready.filter((endpoint) => endpoint !== first)
        const second = others[Math.floor(this.#random() * others.length)]
        const chosen = second !== undefined && second.inFlight < first.inFlight ? second : first
        if (chosen.closedUntil > 0) chosen.probing = true
        chosen.inFlight++
        return chosen
      }
      await this.#change(now, signal)
    }
  }

  /** Resolves when an attempt has ended, a closed endpoint may be probed, or the signal aborts. */
  async #change(now: number, signal: AbortSignal): Promise<void> {
    const ended = new AbortController()
    this.#waiters.push(() => ended.abort())
    const opens = this.#endpoints.filter((endpoint) => endpoint.closedUntil > now).map((one) => one.closedUntil - now)
    const stop = () => ended.abort()
    signal.addEventListener('abort', stop)
    await pause(Math.min(60_000, ...opens), ended.signal, this.#clock)
    signal.removeEventListener('abort', stop)
  }

  #recordHealth(endpoint: Endpoint, health: EndpointHealth): void {
    const wasOpen = endpoint.closedUntil === 0
    const probe = endpoint.probing
    endpoint.probing = false
    if (health === 'healthy') {
      endpoint.failures = 0
      endpoint.closedUntil = 0
      endpoint.closedMs = this.#options.initialMs
    } else if (health === 'unhealthy') {
      endpoint.failures++
      if (probe || (wasOpen && endpoint.failures >= failuresToClose)) {
        endpoint.closedUntil = this.#clock.now() + endpoint.closedMs
        endpoint.closedMs = Math.min(endpoint.closedMs * 2, this.#options.maxMs)
      }
    }
    if (wasOpen !== (endpoint.closedUntil === 0)) {
      this.#active(this.#endpoints.filter((one) => one.closedUntil === 0).length)
    }
  }
}

function isReady(endpoint: Endpoint, now: number): boolean {
  if (endpoint.closedUntil > 0) return endpoint.closedUntil <= now && !endpoint.probing
  return endpoint.inFlight < endpoint.concurrency.limit
}
