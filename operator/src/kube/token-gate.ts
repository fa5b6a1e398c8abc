// Handles tokens of unknown senders: caches the results of their reviews, and limits the number of reviews that they cause. Everyone
// who can connect to a server can send tokens, and each review uses up requests to the API server that this process needs for its work.
// So the gate inspects a token before the review, limits each address, and never lets unknown senders delay known ones. While the API
// server does not answer reviews, the gate sends few of them, and callers may accept tokens that were accepted before.

import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { doubledMs } from '@penstock/agent/program'
import { KubeError } from './client.ts'

export interface Rate {
  readonly perSecond: number
  readonly burst: number
}

export interface TokenGateOptions<T> {
  /** Undefined for an untrusted token. */
  review(token: string): Promise<T | undefined>
  /** Reviews of unknown tokens, by address and in total. */
  readonly perSource: Rate
  readonly total: Rate
  /** Returns how long the review of this owner's token counts, at each use; by default a minute. */
  keepMs?(owner: T): number | undefined
  /** Whether an owner that was accepted within the last hour stays accepted while reviews fail; by default never. */
  trustsKnown?(owner: T): boolean
  readonly now?: () => number
}

/** The API server does not answer reviews, so it is unknown whether a token is trusted. */
export class ReviewError extends Error {
  /** When the sender may try again. */
  readonly retryAfterMs: number

  constructor(retryAfterMs: number, cause: unknown) {
    super('The API server does not answer reviews of tokens at the moment.', { cause })
    this.name = 'ReviewError'
    this.retryAfterMs = retryAfterMs
  }
}

/** The token is unknown, and the limit currently allows no review for it. */
export const busy = Symbol('busy')

/** How long a review counts if nothing else is known, and a refusal always. */
const minKeepMs = 60_000
/** Senders authenticated within this time do not count as strangers. */
const knownMs = 3_600_000
const maxGood = 10_000
const maxBad = 2_000
const maxSources = 4_096
/** Longer than any token that an API server issues or accepts. */
const maxTokenBytes = 16 * 1024

interface Answer<T> {
  readonly at: number
  readonly value: T
}

export class TokenGate<T> {
  readonly #options: TokenGateOptions<T>
  readonly #now: () => number
  /** By hash. */
  readonly #good = new Map<string, Answer<T>>()
  readonly #bad = new Map<string, number>()
  readonly #asked = new Map<string, Promise<T | undefined>>()
  readonly #sources: Allowances
  readonly #friends: Allowances
  readonly #total: Allowance
  /** Failed reviews of senders with other evidence, and of all others, whose tokens must not affect the first ones. */
  readonly #failures = { friends: new Failures(), strangers: new Failures() }

  constructor(options: TokenGateOptions<T>) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#sources = new Allowances(options.perSource)
    this.#friends = new Allowances(options.perSource)
    this.#total = new Allowance(options.total, this.#now())
  }

  /**
   * The owner of a token; undefined if the token is not trusted, `busy` if unknown senders have used up their reviews. Rejects with a
   * `ReviewError` while the API server does not answer. @param friend set if other evidence identifies the sender, such as the address
   * of a known pod: it then has its own limit under this name
   */
  async of(token: string, source: string, friend?: string): Promise<T | undefined | typeof busy> {
    if (token.length > maxTokenBytes) return undefined
    const hash = createHash('sha256').update(token).digest('base64')
    const now = this.#now()
    const good = this.#good.get(hash)
    if (good !== undefined && now - good.at < (this.#options.keepMs?.(good.value) ?? minKeepMs)) return good.value
    const bad = this.#bad.get(hash)
    if (bad !== undefined && now - bad < minKeepMs) return undefined
    const failures = this.#failures[friend === undefined ? 'strangers' : 'friends']
    try {
      const asked = this.#asked.get(hash)
      if (asked !== undefined) return await asked
      const waitMs = failures.waitMs(now)
      if (waitMs > 0) throw new ReviewError(waitMs, failures.cause)
      if (!(good !== undefined && now - good.at < knownMs) && !this.#mayAsk(source, friend, now)) return busy
      return await this.#ask(token, hash, failures)
    } catch (error) {
      const isKnown = good !== undefined && this.#now() - good.at < knownMs
      if (isKnown && this.#options.trustsKnown?.(good.value) === true) return good.value
      throw error
    }
  }

  async #ask(token: string, hash: string, failures: Failures): Promise<T | undefined> {
    const review = failures.counted(() => this.#options.review(token), this.#now)
    this.#asked.set(hash, review)
    try {
      const value = await review
      this.#good.delete(hash)
      if (value === undefined) put(this.#bad, hash, this.#now(), maxBad)
      else put(this.#good, hash, { at: this.#now(), value }, maxGood)
      return value
    } finally {
      // A failed review is not a refusal.
      this.#asked.delete(hash)
    }
  }

  #mayAsk(source: string, friend: string | undefined, now: number): boolean {
    if (friend !== undefined) return this.#friends.take(friend, now)
    if (!this.#sources.has(source, now) || !this.#total.has(now)) return false
    this.#total.take()
    return this.#sources.take(source, now)
  }
}

/** After this many failures in a row, reviews are limited. Fewer may be the fault of single tokens. */
const maxFailures = 3
/** While reviews fail: how many run at once, because each may last until its time limit, and the waits after failures. */
const maxAttempts = 4
const failureMs = { min: 500, max: 5_000, retryAfter: 60_000 }

/** Counts failed reviews, and limits further ones until one succeeds: the API server may be overloaded by them. */
class Failures {
  #inRow = 0
  #running = 0
  #until = 0
  cause: unknown

  /** How long the next review must wait. */
  waitMs(now: number): number {
    if (now < this.#until) return this.#until - now
    return this.#inRow >= maxFailures && this.#running >= maxAttempts ? failureMs.min : 0
  }

  async counted<T>(review: () => Promise<T>, now: () => number): Promise<T> {
    this.#running++
    try {
      const value = await review()
      this.#inRow = 0
      this.#until = 0
      return value
    } catch (cause) {
      this.cause = cause
      this.#inRow++
      const { min, max, retryAfter } = failureMs
      const askedMs = Math.min(retryAfter, (cause instanceof KubeError && cause.retryAfterMs) || 0)
      const ownMs = this.#inRow < maxFailures ? 0 : doubledMs(this.#inRow - maxFailures, min, max)
      this.#until = Math.max(this.#until, now() + Math.max(askedMs, ownMs))
      throw new ReviewError(Math.max(min, this.#until - now()), cause)
    } finally {
      this.#running--
    }
  }
}

/** An allowance for each address. */
export class Allowances {
  readonly #rate: Rate
  readonly #allowances = new Map<string, Allowance>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  has(source: string, now = performance.now(), count = 1): boolean {
    const name = networkOf(source)
    const allowance = this.#allowances.get(name) ?? new Allowance(this.#rate, now)
    put(this.#allowances, name, allowance, maxSources)
    return allowance.has(now, count)
  }

  /** @param count cost of the request, limited to the maximum stock */
  take(source: string, now = performance.now(), count = 1): boolean {
    if (!this.has(source, now, count)) return false
    this.#allowances.get(networkOf(source))?.take(count)
    return true
  }
}

/** A rate per second with a stock. Unlike in a queue, rejected senders leave no debt. */
class Allowance {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate, now: number) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = now
  }

  has(now: number, count = 1): boolean {
    this.#left = Math.min(this.#rate.burst, this.#left + ((now - this.#at) / 1000) * this.#rate.perSecond)
    this.#at = now
    return this.#left >= Math.min(count, this.#rate.burst)
  }

  take(count = 1): void {
    this.#left -= Math.min(count, this.#rate.burst)
  }
}

/** Moves an entry to the end, and removes the first one if there are too many. */
function put<V>(map: Map<string, V>, key: string, value: V, max: number): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= max) return
    map.delete(oldest)
  }
}

/** A sender is assumed to own all addresses of an IPv6 /64 network. */
function networkOf(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...right].slice(0, 4).join(':')
}

/** The unverified claims of a ServiceAccount token that is bound to a pod. */
export interface PodClaims {
  readonly namespace: string
  readonly account: string
  readonly pod: string
  readonly podUid: string
}

/**
 * The claims of a token that may be valid: for this audience, not expired, of a ServiceAccount, bound to a pod. This costs no
 * request and grants nothing.
 */
export function claimsOf(token: string, audience: string, nowMs: number): PodClaims | undefined {
  const parts = token.length > maxTokenBytes ? [] : token.split('.')
  if (parts.length !== 3 || parts.some((part) => !/^[\w-]+$/.test(part))) return undefined
  const head = decoded(parts[0])
  const body = decoded(parts[1])
  if (typeof head?.['alg'] !== 'string' || head['alg'].toLowerCase() === 'none' || body === undefined) return undefined
  const { aud, exp, sub, iss } = body
  if (typeof iss !== 'string' || typeof exp !== 'number' || exp * 1000 < nowMs - 60_000) return undefined
  if (!(Array.isArray(aud) ? aud : [aud]).includes(audience)) return undefined
  const { namespace, serviceaccount, pod } = (body['kubernetes.io'] ?? {}) as Readonly<Record<string, unknown>>
  const account = nameIn(serviceaccount)
  const name = nameIn(pod)
  const podUid = (pod as { readonly uid?: unknown } | undefined)?.uid
  if (typeof namespace !== 'string' || account === undefined || name === undefined || typeof podUid !== 'string')
    return undefined
  return sub === `system:serviceaccount:${namespace}:${account}` ? { namespace, account, pod: name, podUid } : undefined
}

function decoded(part: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // no token
  }
}

const nameIn = (bound: unknown): string | undefined => {
  const name = (bound as { readonly name?: unknown } | undefined | null)?.name
  return typeof name === 'string' ? name : undefined
}
