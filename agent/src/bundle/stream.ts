// The bundle as the operator serves it: the operator holds a request until something is newer than this agent's content. The answer is
// a whole revision, or the part of it for this node. The agent accepts it only if every byte matches its digests. The last bundle stays
// in use while the operator is away; after a long absence, the agent follows the mounted folders instead.

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
  /** Pipelines that have something to read or to deliver. */
  readonly busy: () => readonly string[]
  /** How long the mounted bundle waits for the operator's at the start. */
  readonly startMs?: number
  /** How long an operator may be away before the mounted folders are followed; a kubelet shows its last state by then. */
  readonly awayMs?: number
}

/** How long the operator may hold a request: spread, so that agents do not all come back at once. */
const holdMs = { least: 30_000, most: 50_000 }
const defaultStartMs = 5_000
/** For what comes on top of holding: the way there and back, and the operator's work. */
const answerMs = 20_000
const retryMs = { least: 500, most: 10_000 }
/** After an answer that came long before it had to and brought nothing: the operator holds as many requests as it can. */
const crowdedMs = 10_000
/** An operator that answers at once, again and again, is not asked in a circle. */
const minMs = 250
const defaultAwayMs = 180_000
/** Compressed. */
const maxAnswerBytes = 64 * 1024 * 1024

export class BundleStream {
  readonly #options: StreamOptions
  readonly #client: OperatorClient
  #following: { readonly ending: AbortController; readonly ended: Promise<void> } | undefined
  #current: (Loaded & { readonly mark: string }) | undefined
  #settled = Promise.withResolvers<void>()
  #isSettled = false
  #failing = false
  /** Called when `current` has become another. */
  onChange = () => {}

  constructor(options: StreamOptions) {
    this.#options = options
    this.#client = new OperatorClient(options)
  }

  /** The desired bundle; undefined: nothing was received, or the operator has been away for too long. */
  get current(): Loaded | undefined {
    return this.#current
  }

  /** Whether the agent requests its bundle from the operator. */
  get follows(): boolean {
    return this.#following !== undefined
  }

  /** Follows the operator from now on. */
  start(): void {
    if (this.#following !== undefined) return
    this.#options.metrics.counter('config_stream_failures_total').add(0)
    this.#settled = Promise.withResolvers<void>()
    this.#isSettled = false
    const ending = new AbortController()
    this.#following = { ending, ended: this.#follow(ending.signal) }
  }

  /** Resolves when the operator has answered, or could have done so. */
  settled(): Promise<void> {
    return this.#settled.promise
  }

  /** Follows no more and forgets what was received. */
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
      const waitMs = this.#isSettled ? spread(holdMs.least, holdMs.most) : 0.8 * startMs
      let pauseMs = 0
      try {
        const isNew = await this.#ask(waitMs, signal)
        failures = 0
        heardAt = performance.now()
        if (this.#failing) logger.info('The operator gives bundles again.')
        this.#failing = false
        this.#settle()
        const tookMs = heardAt - started
        pauseMs = isNew || tookMs > waitMs / 2 ? minMs - tookMs : spread(crowdedMs, 2 * crowdedMs)
      } catch (error) {
        if (signal.aborted) break
        this.#fail(error)
        if (this.#current !== undefined && performance.now() - heardAt > awayMs) {
          logger.warn('The operator has been away for long; the mounted bundle is followed until it is back.')
          this.#current = undefined
          this.onChange()
        }
        pauseMs = jittered(doubledMs(failures++, retryMs.least, retryMs.most), 'half')
      }
      await sleep(Math.max(0, pauseMs), undefined, { signal, ref: false }).catch(() => {}) // the signal ends the loop
    }
    clearTimeout(begun)
  }

  #fail(error: unknown): void {
    const { logger, metrics } = this.#options
    metrics.counter('config_stream_failures_total').add(1)
    if (!this.#failing) {
      logger.warn({ error: errorText(error) }, 'The operator could not be asked for the bundle; what runs goes on.')
    }
    this.#failing = true
  }

  /** One request; whether it has brought something new. */
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

/** Checks an answer completely. Its errors are fixed texts, because the answer contains secrets. */
async function received(file: Buffer, known: (Loaded & { readonly mark: string }) | undefined) {
  const text = await gunzip(file, { maxOutputLength: maxBundleBytes }).catch(() => undefined)
  if (text === undefined) throw wrong('cannot be decompressed; it may have been cut off')
  const end = text.indexOf(10)
  const head = parsed<StreamHead>(end === -1 ? text : text.subarray(0, end))
  if (head?.schema !== bundleSchema) throw wrong(`has schema ${head?.schema}; this agent reads ${bundleSchema}`)
  const { rev, candidate, secretsEpoch, minAgentVersion, mark } = head
  if (olderThan(version, minAgentVersion)) {
    throw wrong(`needs an agent of version ${minAgentVersion}; this is ${version}`)
  }
  const about = { rev, candidate, secretsEpoch, mark }
  if (end === -1) {
    if (known?.mark !== mark) throw wrong('has no bundle, and this agent has another one than it is about')
    return { ...known, ...about }
  }
  const content = text.subarray(end + 1)
  if (sha256(content) !== head.sha256) throw wrong(`has another digest than ${head.sha256}`)
  const bundle = checkedBundle(content)
  const values = new Map<string, Buffer>()
  const digests = new Map<string, string>()
  for (const [key, secret] of Object.entries(head.secrets ?? {})) {
    const value = Buffer.from(secret.value, 'base64')
    if (sha256(value) !== secret.sha256) throw wrong(`has another value of the secret ${key} than its digest says`)
    values.set(key, value)
    digests.set(key, secret.sha256)
  }
  const secrets: Secrets = { value: (key) => values.get(key), digest: (key) => digests.get(key) }
  return { ...about, bundle, secrets }
}

function wrong(what: string): PenstockError {
  return new PenstockError('PEN_CONFIG_INVALID', `The operator's bundle ${what}.`)
}

/** The error of the parser would show a piece of the text. */
function parsed<T>(text: Buffer): T | undefined {
  try {
    return JSON.parse(text.toString('utf8')) as T
  } catch {
    return undefined
  }
}

function spread(least: number, most: number): number {
  return Math.round(least + Math.random() * (most - least))
}
