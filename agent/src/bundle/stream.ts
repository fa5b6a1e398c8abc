// The bundle from the operator, which holds a request until it has something newer than this agent's content. The response is a whole
// revision, or the part of it for this node. The agent accepts it only if every byte matches its digests. The last bundle stays active
// while the operator is unavailable; after a long absence, the agent switches to the mounted folders.

import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzip as gunzipWithCallback } from 'node:zlib'
import { errorText, PenstockError } from '../errors.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { doubledMs, jittered } from '../timing/backoff.ts'
import { version } from '../version.ts'
import { type Loaded, olderThan, type Secrets } from './folder.ts'
import {
  bundleSchema,
  checkedBundle,
  maxBundleBytes,
  maxBusy,
  type StreamBody,
  type StreamHead,
  sha256,
} from './format.ts'
import { type OperatorAddress, OperatorClient } from './operator-client.ts'

const gunzip = promisify(gunzipWithCallback)

export interface StreamOptions extends OperatorAddress {
  readonly logger: Logger
  readonly metrics: Metrics
  /** Pipelines with lines to read or events to deliver. */
  readonly busy: () => readonly string[]
  /** How long the start waits for the operator's bundle before it uses the mounted one. */
  readonly startMs?: number
  /**
   * How long the operator may be unavailable before the agent uses the mounted folders, which the kubelet has updated by
   * then.
   */
  readonly awayMs?: number
}

/** How long the operator may hold a request, randomised so that agents do not all return at the same time. */
const holdMs = { min: 30_000, max: 50_000 }
const defaultStartMs = 5_000
/** Additional time for the transfer and the operator's work. */
const answerMs = 20_000
const retryMs = { min: 500, max: 10_000 }
/** Wait after an early response without news: the operator holds as many requests as it can. */
const crowdedMs = 10_000
/** Prevents a busy loop if an operator answers immediately each time. */
const minMs = 250
const defaultAwayMs = 180_000
/** Compressed size. */
const maxAnswerBytes = 64 * 1024 * 1024

export class BundleStream {
  readonly #options: StreamOptions
  readonly #client: OperatorClient
  #following: { readonly ending: AbortController; readonly ended: Promise<void> } | undefined
  #current: (Loaded & { readonly mark: string }) | undefined
  #settled = Promise.withResolvers<void>()
  #isSettled = false
  #failing = false
  /** Called when `current` changes. */
  onChange = () => {}

  constructor(options: StreamOptions) {
    this.#options = options
    this.#client = new OperatorClient(options)
  }

  /** The desired bundle; undefined if none was received, or if the operator has been unavailable for too long. */
  get current(): Loaded | undefined {
    return this.#current
  }

  /** Whether the agent requests its bundle from the operator. */
  get follows(): boolean {
    return this.#following !== undefined
  }

  /** Starts requesting the bundle. */
  start(): void {
    if (this.#following !== undefined) return
    this.#options.metrics.counter('config_stream_failures_total').add(0)
    this.#settled = Promise.withResolvers<void>()
    this.#isSettled = false
    const ending = new AbortController()
    this.#following = { ending, ended: this.#follow(ending.signal) }
  }

  /** Resolves when the operator has answered, or the wait for it is over. */
  settled(): Promise<void> {
    return this.#settled.promise
  }

  /** Stops requesting the bundle and forgets the received one. */
  async stop(): Promise<void> {
    const following = this.#following
    this.#following = undefined
    this.#current = undefined
    following?.ending.abort()
    this.#settle()
    await following?.ended
    await this.#client.close()
  }

  #settle(): void {
    this.#isSettled = true
    this.#settled.resolve()
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { startMs = defaultStartMs, awayMs = defaultAwayMs, logger } = this.#options
    const begun = setTimeout(() => this.#settle(), startMs)
    let failures = 0
    let heardAt = performance.now()
    while (!signal.aborted) {
      const started = performance.now()
      const waitMs = this.#isSettled ? spread(holdMs.min, holdMs.max) : 0.8 * startMs
      let pauseMs = 0
      try {
        const isNew = await this.#ask(waitMs, signal)
        failures = 0
        heardAt = performance.now()
        if (this.#failing) logger.info('The operator sends bundles again.')
        this.#failing = false
        this.#settle()
        const tookMs = heardAt - started
        pauseMs = isNew || tookMs > waitMs / 2 ? minMs - tookMs : spread(crowdedMs, 2 * crowdedMs)
      } catch (error) {
        if (signal.aborted) break
        this.#fail(error)
        if (this.#current !== undefined && performance.now() - heardAt > awayMs) {
          logger.warn('The operator has been unavailable for a long time; using the mounted bundle until it returns.')
          this.#current = undefined
          this.onChange()
        }
        pauseMs = jittered(doubledMs(failures++, retryMs.min, retryMs.max), 'half')
      }
      await sleep(Math.max(0, pauseMs), undefined, { signal, ref: false }).catch(() => {}) // the loop condition checks the signal
    }
    clearTimeout(begun)
  }

  #fail(error: unknown): void {
    const { logger, metrics } = this.#options
    metrics.counter('config_stream_failures_total').add(1)
    if (!this.#failing) {
      logger.warn(
        { error: errorText(error) },
        'Could not request the bundle from the operator; running pipelines continue.',
      )
    }
    this.#failing = true
  }

  /** Sends one request; true if it returned a new bundle. */
  async #ask(waitMs: number, signal: AbortSignal): Promise<boolean> {
    const known = this.#current
    const body: StreamBody = {
      schema: bundleSchema,
      waitMs,
      ...(known === undefined ? {} : { have: { rev: known.rev, candidate: known.candidate, mark: known.mark } }),
      busy: this.#options.busy().slice(0, maxBusy),
    }
    const limit = AbortSignal.any([signal, AbortSignal.timeout(waitMs + answerMs)])
    const { status, body: file } = await this.#client.post('/v1/bundle', body, limit, maxAnswerBytes)
    signal.throwIfAborted()
    if (status === 204) return false
    if (status !== 200) {
      throw new PenstockError('PEN_REQUEST_FAILED', `The operator responded with status ${status}.`)
    }
    const next = await received(file, known)
    signal.throwIfAborted()
    this.#current = next
    this.onChange()
    return true
  }
}

/** Checks a response completely. Its errors are constant texts, because the response contains secrets. */
async function received(file: Buffer, known: (Loaded & { readonly mark: string }) | undefined) {
  const text = await gunzip(file, { maxOutputLength: maxBundleBytes }).catch(() => undefined)
  if (text === undefined) throw wrong('cannot be decompressed; it may be truncated')
  const end = text.indexOf(10)
  const head = parsed<StreamHead>(end === -1 ? text : text.subarray(0, end))
  if (head?.schema !== bundleSchema) throw wrong(`has schema ${head?.schema}; this agent reads ${bundleSchema}`)
  const { rev, candidate, secretsEpoch, minAgentVersion, mark } = head
  if (olderThan(version, minAgentVersion)) {
    throw wrong(`needs an agent of version ${minAgentVersion}; this is ${version}`)
  }
  const about = { rev, candidate, secretsEpoch, mark }
  if (end === -1) {
    if (known?.mark !== mark) throw wrong('has no bundle, and does not refer to the bundle of this agent')
    return { ...known, ...about }
  }
  const content = text.subarray(end + 1)
  if (sha256(content) !== head.sha256) throw wrong(`does not match the digest ${head.sha256}`)
  const bundle = checkedBundle(content)
  const values = new Map<string, Buffer>()
  const digests = new Map<string, string>()
  for (const [key, secret] of Object.entries(head.secrets ?? {})) {
    const value = Buffer.from(secret.value, 'base64')
    if (sha256(value) !== secret.sha256) throw wrong(`has a value of the secret ${key} that does not match its digest`)
    values.set(key, value)
    digests.set(key, secret.sha256)
  }
  const secrets: Secrets = { value: (key) => values.get(key), digest: (key) => digests.get(key) }
  return { ...about, bundle, secrets }
}

function wrong(what: string): PenstockError {
  return new PenstockError('PEN_CONFIG_INVALID', `The operator's bundle ${what}.`)
}

/** The parser's error would contain a part of the text. */
function parsed<T>(text: Buffer): T | undefined {
  try {
    return JSON.parse(text.toString('utf8')) as T
  } catch {
    return undefined
  }
}

function spread(min: number, max: number): number {
  return Math.round(min + Math.random() * (max - min))
}
