// Delivers requests. Order from the outside in: rate limit, concurrency, retry, timeout, the call. A request that waits for its next
// attempt keeps its slot; the rate limit counts requests, not attempts. Every event of every request ends exactly once: delivered, or
// counted as discarded.

import { type Clock, pause } from '../clock.ts'
import type { TakeRejected } from '../component.ts'
import type { ComponentEvents, ErrorType } from '../telemetry/component-events.ts'
import type { AttemptResult, ConcurrencyLimit } from './concurrency.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Request } from './request.ts'
import { RetryBackoff, type RetryOptions } from './retry.ts'

export interface Failure {
  readonly type: ErrorType
  /** The tag `error_code`. */
  readonly code?: string | undefined
  /** Facts for the log; never secrets or event content. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/** The result of one attempt. */
export type Attempt =
  | { readonly outcome: 'delivered' }
  /** Another attempt may succeed. */
  | { readonly outcome: 'retry'; readonly failure: Failure; readonly retryAfterMs?: number | undefined }
  /** Another attempt would fail in the same way, except if the credentials were rejected, because they may be rotated. */
  | { readonly outcome: 'rejected'; readonly failure: Failure; readonly unauthorized?: boolean }
  /** The destination does not accept a request of this size, or not all events together. Two halves are sent instead. */
  | { readonly outcome: 'too_large'; readonly failure: Failure }
  /** The destination answered for each event. The three lists of positions are ascending, and together contain all events. */
  | {
      readonly outcome: 'partial'
      readonly delivered: readonly number[]
      readonly rejected: readonly number[]
      readonly retry: readonly number[]
      /** The reason for sending events again, and for rejected events if there is no `rejection`. */
      readonly failure: Failure
      /** The reason for rejected events. */
      readonly rejection?: Failure | undefined
    }

/** Makes one attempt. If it rejects, this counts as a failed connection. It must end soon after the signal aborts. */
export type Call = (request: Request, signal: AbortSignal) => Promise<Attempt>

export interface DeliveryOptions {
  readonly rateLimit: RateLimit
  readonly concurrency: ConcurrencyLimit
  readonly retry: RetryOptions
  /** Time in milliseconds for which requests are retried if the destination rejects their credentials. */
  readonly authGraceMs?: number | undefined
  /** Maximum size of a body before compression. Larger requests are halved before they are sent. */
  readonly maxBodyBytes?: number | undefined
  /** Whether a request is too large by another measure. Such a request is also halved. */
  readonly tooLarge?: ((request: Request) => boolean) | undefined
  /** Receives the events that will not be delivered. `written` returns the first few of them as text. */
  readonly rejected?: TakeRejected | undefined
}

/** Maximum wait before credentials are tried again, because they may have been rotated. */
const maxAuthWaitMs = 15_000

/** The reason for discarding the events of a request that is abandoned. */
const givenUp = 'Service call failed. No retries or retries exhausted.'

export class Delivery {
  readonly #options: DeliveryOptions
  readonly #call: Call
  readonly #events: ComponentEvents
  readonly #abandoning: AbortSignal
  readonly #clock: Clock
  readonly #queue: Request[] = []
  #active = 0
  #waiters: (() => void)[] = []
  #drainers: (() => void)[] = []
  #cancelTimer: (() => void) | undefined
  /** When credentials were first and last rejected in the current grace time. */
  #refused: { readonly first: number; last: number } | undefined

  constructor(options: DeliveryOptions, call: Call, events: ComponentEvents, abandoning: AbortSignal, clock: Clock) {
    this.#options = options
    this.#call = call
    this.#events = events
    this.#abandoning = abandoning
    this.#clock = clock
    abandoning.addEventListener('abort', this.#abandon, { once: true })
  }

  /** Takes ownership of a request. */
  submit(request: Request): void {
    if (this.#abandoning.aborted) {
      this.#discardAbandoned(request)
      return
    }
    this.#queue.push(request)
    this.#pump()
  }

  /** True while a request waits for a slot. */
  get full(): boolean {
    return this.#queue.length > 0
  }

  /** Resolves when no request waits for a slot. */
  ready(): Promise<void> {
    return this.full ? new Promise((resolve) => this.#waiters.push(resolve)) : Promise.resolve()
  }

  /** Resolves when every request has ended. */
  drained(): Promise<void> {
    return this.#idle ? Promise.resolve() : new Promise((resolve) => this.#drainers.push(resolve))
  }

  /** Resolves when every request has ended; none may be submitted after it. */
  async close(): Promise<void> {
    await this.drained()
    this.#abandoning.removeEventListener('abort', this.#abandon)
  }

  get #idle(): boolean {
    return this.#active === 0 && this.#queue.length === 0
  }

  readonly #pump = (): void => {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    const { rateLimit, concurrency } = this.#options
    while (this.#queue.length > 0 && this.#active < concurrency.limit) {
      const now = this.#clock.now()
      const wait = rateLimit.wait(now)
      if (wait > 0) {
        this.#cancelTimer = this.#clock.after(wait, this.#pump)
        return
      }
      rateLimit.take(now)
      this.#active++
      const request = this.#queue.shift() as Request
      // `#run` never rejects. `#active` counts the running requests, and `drained` waits for them.
      void this.#run(request).then(this.#ended)
    }
    if (this.#queue.length === 0 && this.#waiters.length > 0) {
      const waiters = this.#waiters
      this.#waiters = []
      for (const wake of waiters) wake()
    }
  }

  readonly #ended = (): void => {
    this.#active--
    this.#pump()
    if (this.#idle && this.#drainers.length > 0) {
      const drainers = this.#drainers
      this.#drainers = []
      for (const wake of drainers) wake()
    }
  }

  async #run(first: Request): Promise<void> {
    const backoff = new RetryBackoff(this.#options.retry)
    let request = first
    for (;;) {
      // A request occupies its slot while it is compressed, so that no later request overtakes it.
      if (request.compressing !== undefined) await request.compressing
      if (this.#abandoning.aborted) return this.#discardAbandoned(request)
      if (request.problem !== undefined) return this.#giveUp(request, compressionFailure(request), 'rejected')
      const attempt = this.#tooLarge(request) ?? (await this.#try(request))
      switch (attempt.outcome) {
        case 'delivered':
          this.#events.sent(request.count, request.bytes)
          request.end('delivered')
          return
        case 'rejected': {
          const isTried = attempt.unauthorized === true && this.#options.retry.attempts > 0
          const grace = isTried ? this.#graceLeftMs() : 0
          if (grace <= 0) return this.#giveUp(request, attempt.failure, 'rejected')
          if (!(await this.#wait(request, backoff, attempt.failure, undefined, Math.min(grace, maxAuthWaitMs)))) return
          break
        }
        case 'too_large': {
          if (request.count === 1) return this.#discardTooLarge(request, attempt.failure)
          const [left, right] = request.halves()
          await this.#run(left)
          return this.#run(right)
        }
        case 'partial': {
          const { delivered, rejected, retry, failure, rejection = failure } = attempt
          const share = request.bytes / request.count
          if (delivered.length > 0) this.#events.sent(delivered.length, Math.round(share * delivered.length))
          if (rejected.length > 0) {
            this.#report(rejection, rejected.length)
            this.#keep(request, rejection, rejected)
          }
          const rest = request.divide(delivered, rejected, retry)
          if (rest === undefined) return
          request = rest
          if (!(await this.#wait(request, backoff, failure, undefined))) return
          break
        }
        case 'retry':
          if (!(await this.#wait(request, backoff, attempt.failure, attempt.retryAfterMs))) return
      }
    }
  }

  #tooLarge(request: Request): Attempt | undefined {
    const { maxBodyBytes, tooLarge } = this.#options
    if ((maxBodyBytes === undefined || request.bodyBytes <= maxBodyBytes) && tooLarge?.(request) !== true) {
      return undefined
    }
    return { outcome: 'too_large', failure: { type: 'request_failed', fields: { body_bytes: request.bodyBytes } } }
  }

  async #try(request: Request): Promise<Attempt> {
    const { concurrency } = this.#options
    const start = this.#clock.now()
    concurrency.sent(this.#active)
    let attempt: Attempt
    try {
      attempt = await this.#call(request, this.#abandoning)
    } catch (error) {
      attempt = { outcome: 'retry', failure: { type: 'connection_failed', fields: { error } } }
    }
    request.resends++
    const before = concurrency.limit
    concurrency.answered(start, this.#clock.now(), loadOf(attempt))
    if (concurrency.limit > before) this.#pump()
    return attempt
  }

  /** Remaining milliseconds for which rejected credentials are tried again; 0 or less if the time is over. */
  #graceLeftMs(): number {
    const { authGraceMs = 0 } = this.#options
    const now = this.#clock.now()
    if (this.#refused === undefined || now - this.#refused.last >= authGraceMs)
      this.#refused = { first: now, last: now }
    else this.#refused.last = now
    return this.#refused.first + authGraceMs - now
  }

  /** Waits for the next attempt. Returns false if there is none, in which case the request has ended. */
  async #wait(
    request: Request,
    backoff: RetryBackoff,
    failure: Failure,
    retryAfterMs: number | undefined,
    maxMs = Number.POSITIVE_INFINITY,
  ): Promise<boolean> {
    if (this.#abandoning.aborted) {
      this.#discardAbandoned(request)
      return false
    }
    const wanted = backoff.next(retryAfterMs)
    if (wanted === undefined) {
      // The user disabled retries. The destination may recover later, so the origin should be able to send the events again.
      this.#giveUp(request, failure, this.#options.retry.attempts === 0 ? 'errored' : 'rejected')
      return false
    }
    const delay = Math.min(wanted, maxMs)
    this.#events.error({
      type: failure.type,
      stage: 'sending',
      ...(failure.code === undefined ? {} : { code: failure.code }),
      message: 'Request failed; trying again.',
      fields: { ...failure.fields, retry: backoff.retries, delay_ms: Math.round(delay) },
      level: 'warn',
    })
    await pause(delay, this.#abandoning, this.#clock)
    return true
  }

  #giveUp(request: Request, failure: Failure, status: 'errored' | 'rejected'): void {
    this.#report(failure, request.count)
    // Keep only lost events. With any other status, the origin may send the events again.
    if (status === 'rejected') this.#keep(request, failure)
    request.end(status)
  }

  #keep(request: Request, failure: Failure, positions?: readonly number[]): void {
    const status = failure.fields?.['status']
    const message = `${failure.code ?? failure.type}${typeof status === 'number' ? `, status ${status}` : ''}`
    const events = positions?.length ?? request.count
    this.#options.rejected?.(events, (max) => request.written(max, positions), message)
  }

  #report(failure: Failure, events: number): void {
    this.#events.error({
      type: failure.type,
      stage: 'sending',
      ...(failure.code === undefined ? {} : { code: failure.code }),
      message: 'Request failed and is not retried; its events are discarded.',
      fields: { ...failure.fields, events },
    })
    this.#events.discarded(events, false, givenUp)
  }

  #discardTooLarge(request: Request, failure: Failure): void {
    this.#events.error({
      type: failure.type,
      stage: 'sending',
      ...(failure.code === undefined ? {} : { code: failure.code }),
      message: 'An event is larger than the destination accepts; it is discarded.',
      fields: { ...failure.fields, body_bytes: request.bodyBytes },
    })
    this.#events.discarded(1, false, 'The event is larger than the destination accepts.')
    this.#keep(request, { ...failure, code: failure.code ?? 'too_large' })
    request.end('rejected')
  }

  #discardAbandoned(request: Request): void {
    this.#events.discarded(request.count, false, 'The time limit for a graceful stop is over.')
    request.end('errored')
  }

  readonly #abandon = (): void => {
    for (const request of this.#queue.splice(0)) this.#discardAbandoned(request)
    this.#pump()
    if (this.#idle) {
      for (const wake of this.#drainers.splice(0)) wake()
    }
  }
}

/** The failure of a request whose body could not be compressed. A retry would fail in the same way. */
export function compressionFailure({ bodyBytes, problem }: Request): Failure {
  return { type: 'encoder_failed', fields: { error: problem, body_bytes: bodyBytes } }
}

function loadOf(attempt: Attempt): AttemptResult {
  switch (attempt.outcome) {
    case 'delivered':
      return 'success'
    case 'partial':
      return attempt.retry.length > 0 ? 'back_pressure' : 'success'
    case 'retry':
      return 'back_pressure'
    default:
      return 'other'
  }
}

/** Adds a timeout to a call. After it, the attempt is aborted and can be retried. */
export function withTimeout(call: Call, timeoutMs: number, clock: Clock): Call {
  return async (request, abandoning) => {
    const controller = new AbortController()
    let timedOut = false
    const cancel = clock.after(timeoutMs, () => {
      timedOut = true
      controller.abort(new Error('The request timed out.'))
    })
    const abandon = () => controller.abort(abandoning.reason)
    abandoning.addEventListener('abort', abandon)
    try {
      if (abandoning.aborted) abandon()
      return await call(request, controller.signal)
    } catch (error) {
      if (!timedOut) throw error
      return { outcome: 'retry', failure: { type: 'timed_out', fields: { timeout_ms: timeoutMs } } }
    } finally {
      cancel()
      abandoning.removeEventListener('abort', abandon)
    }
  }
}
