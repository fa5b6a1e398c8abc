// Runs the streamed bundle, or else the mounted one, pipeline by pipeline: unchanged pipelines continue. A pipeline that cannot be built
// keeps its old version and is reported; the others are not affected. Only one load runs at a time; changes that arrive meanwhile are
// loaded together.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProgramLog, Registry } from '../component.ts'
import type { Config } from '../config/config.ts'
import { errorText, PenstockError } from '../errors.ts'
import { protectFolder } from '../given-file.ts'
import { ChangingHosts } from '../net/egress.ts'
import { factText } from '../telemetry/facts.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { BundleParts } from '../topology/build.ts'
import type { DeadLetterTarget } from '../topology/dead-letters.ts'
import { FairShare } from '../topology/fair-share.ts'
import { reloadPart } from '../topology/reload.ts'
import type { Topology } from '../topology/run.ts'
import type { Leadership } from '../topology/singleton.ts'
import { version } from '../version.ts'
import { deliveryIn, type FolderState, type Loaded, look, type Secrets, valuesIn, watchFolders } from './folder.ts'
import { type Bundle, pipelineOf } from './format.ts'
import { digestOf, keysOf, loadPart, type PipelinePart, partsOf, secretsOf } from './part.ts'
import { type ProgramLine, ProgramLines } from './program-lines.ts'
import { redactorOf } from './redaction.ts'
import type { Sidecar } from './sidecar.ts'
import type { BundleStream } from './stream.ts'

export interface RunnerOptions {
  readonly bundleDir: string
  readonly secretsDir: string
  readonly dataDir: string
  readonly node: string
  /** The components that pipelines may use; all components of the agent if not given. */
  readonly components?: Registry | undefined
  /** Addresses that namespaced pipelines may never connect to; the bundle cannot allow them. */
  readonly denied: readonly string[]
  /** Creates the hub that log sources share, when the first of them is built. */
  openHub(): Promise<object>
  /** Requests the bundle if the mounted one demands it. */
  readonly stream?: BundleStream | undefined
  /** In a sidecar: the pipelines to run, and the location of their files. */
  readonly sidecar?: Sidecar | undefined
  /** Whether sources stay idle. */
  readonly draining?: boolean
  /** How long a pipeline waits for a secret value missing in the folder. */
  readonly lateMs?: number
  /** Decides which of the agents that share the bundle runs singleton sources. */
  readonly leadership?: Leadership | undefined
  readonly logger: Logger
  readonly metrics: Metrics
}

/** Why a pipeline does not run its newest version. */
export interface LoadFailure {
  readonly pipeline: string
  readonly component: string | undefined
  readonly reason: string
  readonly message: string
}

export interface RunnerState {
  /** The active revision; undefined before the first. */
  readonly revision: string | undefined
  readonly candidate: boolean
  readonly secretsEpoch: string | undefined
  readonly delivery: 'Mounted' | 'Stream'
  /** `Loaded`: the whole bundle is running, except for `failures`. */
  readonly state: 'Loaded' | 'Waiting' | 'Loading' | 'Stuck'
  readonly reason: string | undefined
  readonly failures: readonly LoadFailure[]
}

interface Running {
  readonly part: PipelinePart
  readonly digest: string
  readonly components: readonly string[]
}

const stuckMs = 30_000
const unhealthyMs = 120_000
const retryMs = 60_000
/**
 * The kubelet updates a mounted value folder within about a minute; after this time, pipelines with missing values
 * fail.
 */
const defaultLateMs = 100_000
/** Weight of a pipeline whose policy sets none. */
const defaultShare = 100

export class BundleRunner {
  readonly #options: RunnerOptions
  readonly #running = new Map<string, Running>()
  readonly #failures = new Map<string, LoadFailure>()
  /** Sources that failed at run time, by pipeline; cleared by the next version. */
  readonly #broken = new Map<string, LoadFailure>()
  readonly #restricted = new Set<string>()
  readonly #lines = new ProgramLines()
  readonly #shares = new FairShare()
  /** Further addresses that restricted pipelines may not connect to, as last sent by the operator. */
  readonly denied = new ChangingHosts()
  /** State for the topology's components. */
  readonly parts: BundleParts
  #topology: Topology | undefined
  #revision: string | undefined
  #candidate = false
  #secretsEpoch: string | undefined
  /** The active part of the revision; undefined: all of it. */
  #mark: string | undefined
  #delivery: RunnerState['delivery'] = 'Mounted'
  #state: RunnerState['state'] = 'Waiting'
  #reason: string | undefined
  #loadingSince: number | undefined
  /** When values of a bundle first became late. */
  #late:
    | {
        readonly bundle: string
        readonly pipelines: Iterable<string>
        readonly since: number
        readonly timer: NodeJS.Timeout
      }
    | undefined
  #work: Promise<void> = Promise.resolve()
  #waits = false
  #stopped = false
  #unwatch = () => {}
  /** Prevents programs and options from reading secret values by their paths. */
  #protected: Disposable | undefined
  #retry: NodeJS.Timeout | undefined
  /** Called after every attempt to load, and when one takes too long. */
  onAttempt = () => {}

  constructor(options: RunnerOptions) {
    this.#options = options
    const { draining = false } = options
    this.parts = {
      draining,
      leadership: options.leadership,
      hub: undefined,
      isRestricted: (id) => this.#restricted.has(pipelineOf(id)),
      programLog: (id) => this.#programLog(id),
      shares: this.#shares,
      account: (id) => this.#shares.get(pipelineOf(id)),
      deadLetter: (id) => this.#deadLetter(id),
    }
    if (options.stream !== undefined) options.stream.onChange = () => this.request()
    for (const state of ['running', 'failed'] as const) {
      options.metrics.computed('config_pipelines', { state }, () =>
        state === 'running' ? this.#running.size : this.#failures.size,
      )
    }
  }

  get state(): RunnerState {
    const failures = [...this.#failures.values(), ...this.#broken.values()]
    return {
      revision: this.#revision,
      candidate: this.#candidate,
      secretsEpoch: this.#secretsEpoch,
      delivery: this.#delivery,
      state: this.#state,
      reason: this.#reason,
      failures,
    }
  }

  /** Why the agent is unhealthy. */
  get trouble(): string | undefined {
    if (this.#loadingSince === undefined || performance.now() - this.#loadingSince < unhealthyMs) return undefined
    return 'Loading a bundle has taken more than two minutes.'
  }

  /** The running pipelines, with the version of each. */
  *pipelines(): Iterable<{ readonly id: string; readonly part: PipelinePart }> {
    for (const [id, { part }] of this.#running) yield { id, part }
  }

  /** Pipelines with existing or unread log files, or with undelivered events in their sinks. */
  busy(): string[] {
    const sinks = this.#topology?.sinks
    return this.#pipelinesWith((id, openFiles) => openFiles > 0 || (sinks?.get(id)?.buffer.events ?? 0) > 0)
  }

  /** Pipelines whose sources have found files. */
  reading(): string[] {
    const sources = this.#topology?.sources
    return this.#pipelinesWith((id, openFiles) => openFiles > 0 && sources?.has(id) === true)
  }

  /** Pipelines with a component that meets the condition. */
  #pipelinesWith(test: (id: string, openFiles: number) => boolean): string[] {
    const open = this.#options.metrics.byComponent(['open_files'])
    const isFound = (id: string) => test(id, open.get(id)?.open_files ?? 0)
    return [...this.#running].flatMap(([id, { components }]) => (components.some(isFound) ? [id] : []))
  }

  /** The last log lines of a restricted pipeline's programs. */
  lines(pipeline: string): readonly ProgramLine[] {
    return this.#lines.of(pipeline)
  }

  /** Loads the current bundle, or the last one loaded before a restart, and then watches the folders. */
  async start(topology: Topology): Promise<void> {
    this.#topology = topology
    const { bundleDir, secretsDir } = this.#options
    this.#protected = protectFolder(secretsDir)
    this.#unwatch = watchFolders([bundleDir, secretsDir], () => this.request())
    this.request()
    await this.#work
    if (this.#revision === undefined) await this.#loadKept()
    this.#retry = setInterval(() => {
      if (this.#failures.size > 0 || this.#state === 'Waiting') this.request()
    }, retryMs)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#unwatch()
    this.#protected?.[Symbol.dispose]()
    clearInterval(this.#retry)
    clearTimeout(this.#late?.timer)
    await this.#options.stream?.stop()
    await this.#work
  }

  /** A source failed at run time. */
  sourceFailed(id: string, error: unknown): void {
    const pipeline = pipelineOf(id)
    const message = this.#restricted.has(pipeline) ? factText(error) : errorText(error)
    this.#broken.set(pipeline, { pipeline, component: nameOf(id), reason: 'SourceFailed', message })
    this.onAttempt()
  }

  /** Schedules a check for a new bundle. */
  request(): void {
    if (this.#waits || this.#stopped) return
    this.#waits = true
    this.#work = this.#work.then(async () => {
      this.#waits = false
      if (this.#stopped) return
      try {
        await this.#load()
      } catch (error) {
        this.#count('failed')
        this.#options.logger.error({ error }, 'Could not load the bundle.')
      }
    })
  }

  async #load(): Promise<void> {
    const { logger } = this.#options
    const seen = await this.#look()
    if (this.#stopped) return
    if (seen.state === 'waiting') {
      if (this.#reason !== seen.reason) {
        logger.info({ revision: seen.rev, reason: seen.reason }, 'Waiting for a complete bundle.')
      }
      this.#state = 'Waiting'
      this.#reason = seen.reason
      this.onAttempt()
      return
    }
    const { loaded } = seen
    const same =
      loaded.rev === this.#revision && loaded.secretsEpoch === this.#secretsEpoch && loaded.mark === this.#mark
    if (same && this.#failures.size === 0) {
      const isNews = this.#state !== 'Loaded' || this.#candidate !== loaded.candidate
      this.#settle(loaded)
      if (isNews) this.onAttempt()
      return
    }
    const late = this.#lateOf(loaded)
    await this.#apply(loaded, late)
    if (late.size === 0 && this.#revision === loaded.rev) this.#keep(loaded)
  }

  /** Pipelines that wait for a value. Their wait is limited: afterwards the value counts as missing. */
  #lateOf({ rev, secretsEpoch, late }: Loaded): ReadonlyMap<string, string> {
    const bundle = `${rev} ${secretsEpoch}`
    if (late === undefined || late.size === 0 || this.#late?.bundle !== bundle) {
      clearTimeout(this.#late?.timer)
      this.#late = undefined
    }
    if (late === undefined || late.size === 0) return new Map()
    const lateMs = this.#options.lateMs ?? defaultLateMs
    this.#late ??= {
      bundle,
      pipelines: late.keys().toArray(),
      since: performance.now(),
      timer: setTimeout(() => this.request(), lateMs + 5), // a timer may fire slightly early
    }
    return performance.now() - this.#late.since < lateMs ? late : new Map()
  }

  /** The bundle from the operator, or the mounted one if the operator sends none or is unavailable. */
  async #look(): Promise<FolderState> {
    const { bundleDir, secretsDir, node, stream } = this.#options
    if (stream !== undefined) {
      const delivery = deliveryIn(bundleDir)
      if (delivery === 'Stream') stream.start()
      if (delivery === 'Mounted') await stream.stop()
      else if (stream.follows) await stream.settled()
      const loaded = stream.current
      if (loaded !== undefined) return { state: 'ready', loaded }
    }
    return look(bundleDir, secretsDir, node, version)
  }

  /** @param late pipelines that stay unchanged for now, with the reason: the revision is not active until they are loaded too */
  async #apply(loaded: Loaded, late: ReadonlyMap<string, string> = new Map()): Promise<void> {
    const { logger, metrics } = this.#options
    const before = this.#reason
    this.#state = 'Loading'
    this.#reason = undefined
    this.#loadingSince = performance.now()
    const stuck = setTimeout(() => {
      this.#state = 'Stuck'
      this.#reason = `Loading revision ${loaded.rev.slice(0, 12)} takes more than ${stuckMs / 1000} s.`
      logger.error({ revision: loaded.rev }, 'Loading a bundle takes too long.')
      this.onAttempt()
    }, stuckMs)
    try {
      const { sidecar } = this.#options
      const parts = partsOf(loaded.bundle)
      for (const id of [...parts.keys()]) if (sidecar?.wants(id) === false) parts.delete(id)
      for (const id of [...this.#running.keys()]) if (!parts.has(id)) await this.#remove(id)
      for (const id of [...this.#failures.keys()]) if (!parts.has(id)) this.#failures.delete(id)
      for (const part of parts.values()) {
        if (this.#stopped) return
        if (!late.has(part.id)) await this.#put(part, loaded.secrets)
      }
    } finally {
      clearTimeout(stuck)
      this.#loadingSince = undefined
    }
    const [reason] = late.values()
    if (reason !== undefined) {
      if (before !== reason) {
        logger.info({ revision: loaded.rev, reason, pipelines: late.size }, 'Waiting for secret values.')
      }
      this.#state = 'Waiting'
      this.#reason = reason
      this.onAttempt()
      return
    }
    metrics.gauge('config_revision_info', { revision: this.#revision ?? '' }).set(0)
    metrics.gauge('config_revision_info', { revision: loaded.rev }).set(1)
    this.#settle(loaded)
    this.#count(this.#failures.size === 0 ? 'succeeded' : 'partly_failed')
    logger.info(
      {
        revision: loaded.rev,
        candidate: loaded.candidate,
        delivery: this.#delivery,
        pipelines: this.#running.size,
        failed: this.#failures.size,
      },
      'The bundle is active.',
    )
    this.onAttempt()
  }

  #settle(loaded: Loaded): void {
    this.#revision = loaded.rev
    this.#candidate = loaded.candidate
    this.#secretsEpoch = loaded.secretsEpoch
    this.#mark = loaded.mark
    this.#delivery = loaded.mark === undefined ? 'Mounted' : 'Stream'
    for (const delivery of ['Mounted', 'Stream'] as const) {
      const labels = { delivery: delivery.toLowerCase() }
      this.#options.metrics.gauge('config_delivery_info', labels).set(delivery === this.#delivery ? 1 : 0)
    }
    this.#state = 'Loaded'
    this.#reason = undefined
  }

  #count(result: 'succeeded' | 'partly_failed' | 'failed'): void {
    const { metrics } = this.#options
    metrics.counter('config_reloads_total', { result }).add(1)
    metrics.gauge('config_last_reload_success').set(result === 'succeeded' ? 1 : 0)
  }

  async #put(part: PipelinePart, all: Secrets): Promise<void> {
    const { id } = part
    const secrets = secretsOf(part, all)
    const digest = digestOf(part, secrets)
    const running = this.#running.get(id)
    if (running?.digest === digest) {
      this.#failures.delete(id)
      return
    }
    const failure = await this.#build(part, secrets, digest, running)
    if (failure === undefined) {
      this.#failures.delete(id)
      this.#broken.delete(id)
      return
    }
    const known = this.#failures.get(id)
    this.#failures.set(id, failure)
    if (known?.message !== failure.message) {
      const { message: error, ...where } = failure
      this.#options.logger.error({ ...where, error }, 'Could not activate a pipeline; its old version stays.')
    }
  }

  async #build(
    part: PipelinePart,
    secrets: Secrets,
    digest: string,
    running: Running | undefined,
  ): Promise<LoadFailure | undefined> {
    const { id } = part
    const topology = this.#topology as Topology
    const { dataDir, denied } = this.#options
    const failed = (component: string | undefined, reason: string, message: string): LoadFailure => ({
      pipeline: id,
      component,
      reason,
      message: withoutSecrets(message, part, secrets),
    })
    // If a tenant's component uses secrets, its error is reduced to its class, because the message may quote input in
    // any encoding.
    const hides = part.pipeline.restricted === true && keysOf(part).size > 0
    const textFor = (error: unknown) => (hides ? factText(error) : errorText(error))
    const listed = new Set((part.pipeline.secrets ?? []).map(({ key }) => key))
    for (const key of keysOf(part)) {
      if (!listed.has(key)) {
        const message = `The operator does not list the secret ${key} for this pipeline.`
        return failed(undefined, 'SecretNotListed', message)
      }
      if (secrets.value(key) === undefined) return failed(undefined, 'SecretMissing', `The secret ${key} is missing.`)
    }
    const wasRestricted = this.#restricted.has(id)
    try {
      if (part.subscriptions.length > 0 && this.#options.draining !== true)
        this.parts.hub ??= await this.#options.openHub()
      const adapted = this.#options.sidecar?.adapt(part) ?? part
      const loaded = loadPart(adapted, secrets, {
        dataDir,
        denied,
        changing: this.denied,
        env: process.env,
        confinedTo: this.#options.sidecar?.volume,
        components: this.#options.components,
      })
      if (!loaded.ok) {
        const [problem] = loaded.problems
        const component = problem?.path.split('.')[1]
        return failed(
          component === undefined ? undefined : nameOf(component),
          'InvalidConfig',
          `${problem?.path}: ${problem?.message}`,
        )
      }
      const { config } = loaded
      this.#shares.open(id, part.pipeline.cpuShare ?? defaultShare)
      if (part.pipeline.restricted === true) this.#restricted.add(id)
      else this.#restricted.delete(id)
      const result = await reloadPart(topology, config, running?.components ?? [])
      if (result.outcome === 'rejected') {
        if (!wasRestricted) this.#restricted.delete(id)
        const error = 'error' in result ? result.error : undefined
        const component = error instanceof PenstockError ? error.component : undefined
        return failed(
          component === undefined ? undefined : nameOf(component),
          reasonOf(error, result.reason),
          error === undefined ? result.reason : textFor(error),
        )
      }
      this.#running.set(id, { part, digest, components: idsOf(config) })
      return undefined
    } catch (error) {
      return failed(undefined, reasonOf(error, 'internal'), textFor(error))
    }
  }

  async #remove(id: string): Promise<void> {
    const topology = this.#topology as Topology
    const running = this.#running.get(id) as Running
    const empty: Config = { ...topology.config, sources: new Map(), transforms: new Map(), sinks: new Map() }
    await reloadPart(topology, empty, running.components)
    for (const kept of [this.#running, this.#failures, this.#broken, this.#lines]) kept.delete(id)
    this.#restricted.delete(id)
    this.#shares.close(id)
  }

  /** The target for events that a sink's destination rejects. Events rejected by the dead letter sink itself have none. */
  #deadLetter(id: string): DeadLetterTarget | undefined {
    const letter = this.#running.get(pipelineOf(id))?.part.pipeline.deadLetter
    const topology = this.#topology
    if (letter === undefined || letter.sink === id || topology === undefined || topology.stopping) return undefined
    const sink = topology.sinks.get(letter.sink)
    return sink === undefined ? undefined : { sink, perSecond: letter.perSecond }
  }

  #programLog(component: string): ProgramLog | undefined {
    const pipeline = pipelineOf(component)
    if (!this.#restricted.has(pipeline)) return undefined
    return this.#lines.log(pipeline, nameOf(component))
  }

  // --- Data kept for a restart ---

  get #keptPath(): string {
    return join(this.#options.dataDir, 'bundle', 'last.json')
  }

  /** Stores the bundle, which contains no secret values. */
  #keep(loaded: Loaded): void {
    const path = this.#keptPath
    const digests: Record<string, string> = {}
    for (const { secrets = [] } of Object.values(loaded.bundle.pipelines)) {
      for (const { key } of secrets) digests[key] = loaded.secrets.digest(key) ?? ''
    }
    try {
      mkdirSync(join(this.#options.dataDir, 'bundle'), { recursive: true })
      const kept = { rev: loaded.rev, secretsEpoch: loaded.secretsEpoch, digests, bundle: loaded.bundle }
      writeFileSync(`${path}.new`, JSON.stringify(kept), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch (error) {
      this.#options.logger.warn({ error, path }, 'Could not store the bundle for a restart.')
    }
  }

  async #loadKept(): Promise<void> {
    const { secretsDir, logger } = this.#options
    let kept: { rev: string; secretsEpoch: string; digests: Record<string, string>; bundle: Bundle }
    try {
      kept = JSON.parse(readFileSync(this.#keptPath, 'utf8')) as typeof kept
    } catch {
      return // nothing was stored: the first start
    }
    const reason = this.#reason
    const digests = new Map(Object.entries(kept.digests))
    // A value that does not match its digest makes only its own pipelines fail.
    const { values } = valuesIn(secretsDir, kept.bundle, digests)
    const secrets: Secrets = { value: (key) => values.get(key), digest: (key) => digests.get(key) }
    if (this.#late !== undefined) {
      await this.#keepRunning(kept.bundle, secrets)
      return
    }
    logger.warn({ revision: kept.rev, reason }, 'Cannot use the mounted bundle; using the last valid one.')
    await this.#apply({ ...kept, candidate: false, secrets })
    this.#state = 'Waiting'
    this.#reason = reason
  }

  /**
   * After a restart: pipelines that wait for values of their new version run their old version, if its values are
   * available.
   */
  async #keepRunning(bundle: Bundle, secrets: Secrets): Promise<void> {
    const parts = partsOf(bundle)
    for (const id of this.#late?.pipelines ?? []) {
      const part = parts.get(id)
      if (part === undefined || this.#running.has(id)) continue
      if (this.#options.sidecar?.wants(part.id) === false) continue
      const own = secretsOf(part, secrets)
      if ([...keysOf(part)].every((key) => own.value(key) !== undefined)) await this.#put(part, secrets)
    }
  }
}

function idsOf(config: Config): string[] {
  return [...config.sources.keys(), ...config.transforms.keys(), ...config.sinks.keys()]
}

/** The component's name as written by the user: the last part of its id. */
export function nameOf(component: string): string {
  return component.slice(component.lastIndexOf('/') + 1)
}

/** Prepares a text for a heartbeat: removes secrets first, and then limits the length. */
function withoutSecrets(text: string, part: PipelinePart, secrets: Secrets): string {
  const redact = redactorOf([...keysOf(part)].flatMap((key) => secrets.value(key) ?? []))
  return redact(text).slice(0, 1024)
}

function reasonOf(error: unknown, otherwise: string): string {
  const code = error instanceof PenstockError ? error.code : undefined
  if (code === 'PEN_DATA_DIR' || code === 'PEN_IO') return 'BufferUnwritable'
  if (code === 'PEN_KUBERNETES') return 'KubernetesUnreachable'
  if (code === 'PEN_CONFIG_INVALID') return 'InvalidConfig'
  if (code?.startsWith('PEN_TLS') === true) return 'TLSInvalid'
  if (code === 'PEN_AUTH') return 'CredentialsInvalid'
  return otherwise === 'unhealthy' ? 'Unhealthy' : 'BuildFailed'
}
