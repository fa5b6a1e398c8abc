// Pipelines, and the Sources and Sinks that they share: resolves the references of a Pipeline, compiles it, keeps the last good version
// if the newest is rejected, and reports the result in its status. It reads caches, decides, and writes only status.

import { createHash } from 'node:crypto'
import { canonicalJson, sameJson } from '@penstock/agent/bundle'
import { compileSelector, type LabelTest } from '@penstock/agent/kube'
import type { Agent } from '../api/agent.ts'
import { type Condition, conditionOf, type Finding, type Reason } from '../api/conditions.ts'
import { agentKind, clusterPipelineKind, kindOf, type ResourceKind } from '../api/kinds.ts'
import { type KubeObject, keyOf } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { SourceResource } from '../api/source.ts'
import { policyGracePeriod } from '../api/tenant-policy.ts'
import { type CompileResult, rulesDigest } from '../compile/job.ts'
import type { CompilePool } from '../compile/pool.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import type { Cache } from '../kube/cache.ts'
import type { Priority } from '../kube/work-queue.ts'
import type { ApiAddresses } from '../policy/api-addresses.ts'
import { type Author, Authors, reviewAgainMs } from '../policy/authors.ts'
import { Gatherer, objectOf, referencesOf, secretsOf } from '../policy/gather.ts'
import { unwatchedMs } from './agent-secrets.ts'
import type { Artifacts } from './artifacts.ts'
import { Controller, type ControllerMetrics } from './controller.ts'
import { failedFinding, isInternal } from './internal-error.ts'
import { KeptQuarantine } from './kept-quarantine.ts'
import { LastGood } from './last-good.ts'
import { FirstCompile, namespaceOf, type Peers } from './pipeline/first-compile.ts'
import { idOf, PipelineJudge, type Verdicts } from './pipeline/judge.ts'
import { SharedObjects } from './pipeline/shared-objects.ts'
import { PolicyGrace, withEnd } from './policy-grace.ts'
import { fieldDurationMs } from './rollout-plan.ts'

export interface PipelinePartOptions {
  readonly artifacts: Artifacts
  readonly metrics: ControllerMetrics
  /** Shared with admission. */
  readonly pool: CompilePool
  /** Addresses of the API server, which no tenant may use. */
  readonly apiAddresses: ApiAddresses
}

export function pipelinePart(options: PipelinePartOptions): OperatorPart {
  return {
    name: 'pipeline',
    leaderOnly: true,
    async start(context) {
      const kube = context.kube.as('pipeline')
      const { logger, settings, signal } = context
      options.pool.remember(await KeptQuarantine.load(kube, settings.namespace, logger, signal))
      const controller = new PipelineController(context, options)
      await controller.start()
      return controller
    },
  }
}

interface Known {
  /** SHA-256 of everything that a result depends on. */
  readonly key: string
  readonly result: CompileResult
}

export class PipelineController implements AsyncDisposable {
  readonly #context: OperatorContext
  /** Labels of the watched namespaces; all if undefined. */
  readonly #watchedLabels: LabelTest | undefined
  readonly #options: PipelinePartOptions
  readonly #controller: Controller
  readonly #pool: CompilePool
  readonly #lastGood: LastGood
  readonly #gathered: Gatherer
  readonly #agents: Cache<Agent>
  readonly #authors: Authors | undefined
  readonly #known = new Map<string, Known>()
  /** ClusterPipelines that must not run because of their author. */
  readonly #unauthorised = new Set<string>()
  readonly #grace = new PolicyGrace()
  readonly #judge: PipelineJudge
  readonly #shared: SharedObjects
  /** The last known quota usage of each Pipeline. */
  readonly #claims = new Map<string, { readonly text: string; readonly onDisk: boolean }>()
  readonly #subscriptions: Disposable[] = []
  /** Undefined once every Pipeline that existed at the start has been compiled. */
  #first: FirstCompile | undefined
  /** Whether the caches are reporting their initial objects. */
  #starting = false
  /** Pipelines from the start that have not been published yet. */
  #awaiting: Set<string> | undefined
  #policyTimer: NodeJS.Timeout | undefined

  constructor(context: OperatorContext, options: PipelinePartOptions) {
    this.#context = context
    const { watchNamespaceSelector: selector } = context.settings
    if (selector !== undefined) this.#watchedLabels = compileSelector(selector)
    this.#options = options
    this.#pool = options.pool
    this.#gathered = new Gatherer(context, options.apiAddresses)
    this.#agents = context.caches.cache<Agent>(agentKind)
    this.#judge = new PipelineJudge({
      settings: context.settings,
      gathered: this.#gathered,
      agents: this.#agents,
      artifacts: options.artifacts,
      newest: (key) => (this.#unauthorised.has(key) ? undefined : this.#known.get(key)?.result.artifact),
    })
    this.#shared = new SharedObjects(context, this.#gathered, options.pool)
    this.#authors = Authors.following(context, 'pipeline')
    this.#lastGood = new LastGood(context.kube.as('pipeline'), context.settings.namespace, context.logger)
    this.#controller = new Controller({
      name: 'pipeline',
      logger: context.logger,
      metrics: options.metrics,
      signal: context.signal,
      workers: 8,
      // Some workers are reserved for other namespaces, however much one namespace has to compile.
      lines: { of: namespaceOf, maxActive: 6 },
      // One compiles and one prepares: with more, a change by an author waits for their compiles as well.
      maxResyncs: 2,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      failed: (key, error) => this.#failed(key, error),
    })
  }

  async start(): Promise<void> {
    const { caches, signal } = this.#context
    for (const cache of this.#gathered.pipelines.values()) {
      cache.index('reference', (pipeline) => referencesOf(pipeline))
      cache.index('secret', (pipeline) => secretsOf(pipeline))
      cache.index('namespace', (pipeline) => [pipeline.metadata.namespace ?? ''])
    }
    for (const cache of this.#gathered.shared.values()) cache.index('secret', (object) => secretsOf(object))
    await caches.synced(signal)
    for (const artifact of await this.#lastGood.load(signal)) {
      const pipeline = this.#gathered.pipelines.get(artifact.kind)?.get(artifact.namespace, artifact.name)
      if (pipeline?.metadata.uid === artifact.uid && pipeline.spec.suspend !== true)
        this.#options.artifacts.set(artifact)
    }
    this.#first = new FirstCompile([...this.#gathered.pipelines.values()].flatMap((cache) => [...cache.values()]))
    this.#starting = true
    this.#subscribe()
    this.#starting = false
    if (this.#first.isOver) this.#endFirst()
    this.#controller.start(() => this.#everyKey())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#policyTimer)
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
    this.#gathered[Symbol.dispose]()
    await this.#controller[Symbol.asyncDispose]()
  }

  // --- Subscriptions: changes that trigger a Pipeline ---

  #subscribe(): void {
    for (const [kind, cache] of this.#gathered.pipelines) {
      this.#subscriptions.push(
        cache.subscribe(({ type, object, previous }) => {
          if (type === 'changed' && previous !== undefined && isSame(object, previous)) return
          const priority = this.#priorityOf(object)
          this.#controller.add(`${kind} ${keyOf(object)}`, priority)
          // Its verdict waits for them.
          if (this.#starting && priority === 'user') this.#wakeNamespace(object, 'user')
          for (const name of referencesOf(object)) this.#controller.add(name, 'resync')
          for (const name of previous === undefined ? [] : referencesOf(previous)) this.#controller.add(name, 'resync')
          // Another Pipeline may fit into a quota now.
          if (type === 'deleted')
            this.#wakePeers(object, this.#claims.get(`${object.kind} ${keyOf(object)}`)?.onDisk ?? true)
        }),
      )
    }
    for (const [kind, cache] of this.#gathered.shared) {
      this.#subscriptions.push(
        cache.subscribe(({ type, object, previous }) => {
          if (type === 'changed' && previous !== undefined && isSame(object, previous)) return
          const name = `${kind} ${keyOf(object)}`
          const priority = this.#priorityOf(object)
          this.#controller.add(name, priority)
          for (const user of this.#usersOf(name)) this.#controller.add(user, priority)
        }),
      )
    }
    this.#subscriptions.push(
      this.#agents.subscribe(({ type, object, previous }) => {
        if (type !== 'changed' || object.metadata.generation !== previous?.metadata.generation) this.#wakeAll()
      }),
    )
    if (this.#authors !== undefined)
      this.#subscriptions.push(this.#authors.subscribe((name) => this.#controller.add(`ClusterPipeline ${name}`)))
    for (const kind of ['Secret', 'ConfigMap'] as const) {
      const cache = this.#gathered.secrets?.[kind]
      if (cache === undefined) continue
      this.#subscriptions.push(
        cache.subscribe(({ type, object }) => {
          const name = `${kind} ${keyOf(object)}`
          if (type === 'deleted') this.#gathered.forget(name)
          for (const user of this.#readersOf(name)) {
            this.#controller.add(user, this.#starting ? 'resync' : 'user')
            if (type === 'changed') this.#rotated(user, name)
          }
        }),
      )
    }
    this.#gathered.policies.start(() => {
      if (this.#policyTimer !== undefined) return
      this.#policyTimer = setTimeout(() => {
        this.#policyTimer = undefined
        this.#gathered.policies.report(this.#context)
        this.#wakeAll()
      }, 100)
    })
  }

  /** After a start, changes by authors since the last result take precedence over rechecks. */
  #priorityOf({ metadata, status }: KubeObject & { readonly status?: Pipeline['status'] }): Priority {
    const judged = conditionOf(status?.conditions, 'Accepted')?.observedGeneration
    return this.#starting && judged === metadata.generation ? 'resync' : 'user'
  }

  #wakeAll(): void {
    for (const key of this.#everyKey()) this.#controller.add(key, 'resync')
  }

  /** Pipelines that share a quota with this one are checked again. */
  #wakePeers(pipeline: Pipeline, onDisk: boolean): void {
    if (this.#first !== undefined) return
    this.#wakeNamespace(pipeline, 'resync')
    for (const peer of onDisk ? this.#judge.withDiskBuffers() : [])
      this.#controller.add(`${peer.kind} ${keyOf(peer)}`, 'resync')
  }

  #wakeNamespace({ metadata: { namespace } }: Pipeline, priority: Priority): void {
    if (namespace === undefined || !this.#hasQuota(namespace)) return
    for (const peer of this.#gathered.pipelines.get('Pipeline')?.find('namespace', namespace) ?? [])
      this.#controller.add(`${peer.kind} ${keyOf(peer)}`, priority)
  }

  #hasQuota(namespace: string): boolean {
    return this.#gathered.policies.of(namespace)?.spec.quota !== undefined
  }

  /** The Pipelines whose sizes affect a Pipeline. */
  #peersOf({ metadata: { namespace } }: Pipeline, { artifact }: CompileResult): Peers {
    if (artifact === undefined) return 'none'
    if (artifact.diskBufferBytes > 0) return 'all'
    return namespace !== undefined && this.#hasQuota(namespace) ? 'namespace' : 'none'
  }

  /** The quota usage of a Pipeline may have changed, which affects the Pipelines that share its quotas. */
  #claimed(key: string, pipeline: Pipeline): void {
    const { wanted, running } = this.#judge.claimOf(pipeline)
    const text = JSON.stringify([wanted, running])
    const earlier = this.#claims.get(key)
    if (earlier?.text === text) return
    const onDisk = (wanted?.diskBytes ?? 0) > 0 || (running?.diskBytes ?? 0) > 0
    this.#claims.set(key, { text, onDisk })
    this.#wakePeers(pipeline, onDisk || earlier?.onDisk === true)
  }

  *#everyKey(): Iterable<string> {
    yield* this.#keysOf(this.#gathered.pipelines)
    yield* this.#keysOf(this.#gathered.shared)
  }

  *#keysOf(caches: ReadonlyMap<string, Cache>): Iterable<string> {
    for (const [kind, cache] of caches) for (const object of cache.values()) yield `${kind} ${keyOf(object)}`
  }

  /** Pipelines that refer to a shared object, by key. */
  #usersOf(name: string): string[] {
    return [...this.#gathered.pipelines].flatMap(([kind, cache]) =>
      cache.find('reference', name).map((pipeline) => `${kind} ${keyOf(pipeline)}`),
    )
  }

  /** Pipelines and shared objects that use a Secret, by key. */
  #readersOf(name: string): string[] {
    const own = [...this.#gathered.pipelines].flatMap(([kind, cache]) =>
      cache.find('secret', name).map((each) => `${kind} ${keyOf(each)}`),
    )
    const shared = [...this.#gathered.shared].flatMap(([kind, cache]) =>
      cache.find('secret', name).map((each) => `${kind} ${keyOf(each)}`),
    )
    return [...new Set([...own, ...shared, ...shared.flatMap((each) => this.#usersOf(each))])]
  }

  #rotated(user: string, name: string): void {
    const [kind = '', key = ''] = user.split(' ')
    const pipeline = objectOf(this.#gathered.pipelines.get(kind), key)
    if (pipeline !== undefined) this.#context.events.record(pipeline, 'Normal', 'SecretChanged', `${name} has changed.`)
  }

  // --- One key ---

  async #reconcile(key: string, signal: AbortSignal): Promise<number | undefined> {
    const [kindName = '', name = ''] = key.split(' ')
    const kind = kindOf(kindName)
    if (kind === undefined) return undefined
    if (this.#gathered.shared.has(kindName)) return this.#reconcileShared(kind, key, name)
    try {
      return await this.#reconcilePipeline(kind, key, name, signal)
    } finally {
      if (!signal.aborted) this.#compiled(key)
    }
  }

  async #reconcilePipeline(
    kind: ResourceKind,
    key: string,
    name: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const id = idOf(kind.kind, name)
    const pipeline = objectOf(this.#gathered.pipelines.get(kind.kind), name)
    if (pipeline === undefined || !this.#isWatched(pipeline)) {
      for (const known of [this.#known, this.#unauthorised, this.#claims, this.#grace]) known.delete(key)
      this.#options.artifacts.remove(id)
      await this.#lastGood.drop(id, signal)
      this.#settled(key)
      return undefined
    }
    if (pipeline.metadata.deletionTimestamp !== undefined) {
      this.#settled(key)
      return undefined
    }
    const result = await this.#compile(key, pipeline, signal)
    const author = kind === clusterPipelineKind ? await this.#authors?.look(pipeline, signal) : undefined
    if (author?.problem === undefined) this.#unauthorised.delete(key)
    else this.#unauthorised.add(key)
    this.#claimed(key, pipeline)
    if (this.#first?.holds(pipeline, this.#peersOf(pipeline, result)) === true) return undefined
    const judged = this.#judge.verdicts(pipeline, result, author)
    const { verdicts, leftMs } = await this.#underRules(id, key, pipeline, judged, signal)
    let waitMs: number | undefined
    try {
      waitMs = await this.#publish(id, pipeline, result, verdicts, signal)
      this.#claimed(key, pipeline)
    } finally {
      // The author sees the verdict even if the last good version cannot be stored at the moment.
      this.#say(kind, pipeline, result, verdicts, author)
    }
    const usesSecrets = secretsOf(pipeline).length > 0 || (result.artifact?.secretRefs.length ?? 0) > 0
    const waits = [
      waitMs,
      leftMs,
      this.#gathered.secrets === undefined && usesSecrets ? unwatchedMs : undefined,
      author === undefined ? undefined : reviewAgainMs,
    ].filter((each) => each !== undefined)
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  #isWatched({ metadata: { namespace } }: Pipeline): boolean {
    const { watchNamespaces } = this.#context.settings
    if (namespace === undefined) return true
    if (watchNamespaces !== undefined && !watchNamespaces.includes(namespace)) return false
    if (this.#watchedLabels === undefined) return true
    const labels = this.#gathered.namespaces.get(undefined, namespace)?.metadata.labels ?? {}
    return this.#watchedLabels(labels)
  }

  /** Marks an initial Pipeline as compiled. When all are, everything is checked once more, now with quotas. */
  #compiled(key: string): void {
    if (this.#first === undefined) return
    for (const waiting of this.#first.done(key)) this.#controller.add(waiting)
    if (this.#first.isOver) this.#endFirst()
  }

  #endFirst(): void {
    this.#first = undefined
    this.#awaiting = new Set(this.#keysOf(this.#gathered.pipelines))
    this.#gathered.policies.report(this.#context)
    this.#wakeAll()
    this.#checkComplete()
  }

  #settled(key: string): void {
    this.#awaiting?.delete(key)
    this.#checkComplete()
  }

  #checkComplete(): void {
    if (this.#awaiting === undefined || this.#awaiting.size > 0) return
    this.#awaiting = undefined
    this.#options.artifacts.markComplete()
    void this.#sweepLastGood()
  }

  /** The stored data of deleted Pipelines. */
  async #sweepLastGood(): Promise<void> {
    for (const id of this.#lastGood.ids()) {
      if (this.#options.artifacts.get(id) !== undefined) continue
      const [namespace, name] = id.split('/') as [string, string]
      const key = namespace === '_cluster' ? `ClusterPipeline ${name}` : `Pipeline ${id}`
      this.#controller.add(key, 'resync')
    }
  }

  async #compile(key: string, pipeline: Pipeline, signal: AbortSignal): Promise<CompileResult> {
    const job = await this.#gathered.jobOf(pipeline, signal)
    const { uid, generation, labels, annotations } = pipeline.metadata
    const facts = [uid, generation, labels, annotations?.['penstock.dev/retry'], pipeline.spec]
    const others = job.resources.map((object) => [
      object.kind,
      keyOf(object),
      object.metadata.uid,
      object.metadata.labels,
      (object as SourceResource).spec,
    ])
    const digest = createHash('sha256')
      .update(canonicalJson([facts, others, job.policy, job.keys]))
      .digest('base64')
    const known = this.#known.get(key)
    if (known?.key === digest) return known.result
    const result = await this.#pool.compile(job)
    signal.throwIfAborted()
    // The individual problems are for the webhook; a condition has a summary.
    const kept = { ...result, problems: [] }
    this.#known.set(key, { key: digest, result: kept })
    return kept
  }

  /** Activates the newest version, or keeps the last good one; returns the time after which that one must stop. */
  async #publish(
    id: string,
    pipeline: Pipeline,
    result: CompileResult,
    { accepted, resolved }: Verdicts,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { artifacts } = this.#options
    const key = `${pipeline.kind} ${keyOf(pipeline)}`
    try {
      const usable = accepted.status === 'True' || accepted.reason === 'NoMatchingAgent'
      if (pipeline.spec.suspend === true) {
        artifacts.remove(id)
        await this.#lastGood.drop(id, signal)
        return undefined
      }
      if (usable && result.artifact !== undefined) {
        artifacts.set(result.artifact)
        await this.#lastGood.drop(id, signal)
        return undefined
      }
      const last = artifacts.get(id)
      if (last === undefined) return undefined
      if (last.uid !== pipeline.metadata.uid) {
        artifacts.remove(id)
        await this.#lastGood.drop(id, signal)
        return undefined
      }
      // The missing object may return soon; until then the last good version continues.
      if (accepted.status !== 'False' && resolved.status === 'False') {
        const leftMs = this.#graceLeftMs(pipeline)
        if (leftMs <= 0) {
          artifacts.remove(id)
          await this.#lastGood.drop(id, signal)
          this.#context.events.record(
            pipeline,
            'Warning',
            'Stopped',
            `${resolved.message}; the last good version is stopped.`,
          )
          return undefined
        }
        await this.#lastGood.keep(last, signal)
        return leftMs
      }
      await this.#lastGood.keep(last, signal)
      return undefined
    } finally {
      this.#settled(key)
    }
  }

  /** Stops a running Pipeline if its TenantPolicy has forbidden it for long enough; before that, the result states the time. */
  async #underRules(
    id: string,
    key: string,
    pipeline: Pipeline,
    verdicts: Verdicts,
    signal: AbortSignal,
  ): Promise<{ readonly verdicts: Verdicts; readonly leftMs?: number }> {
    const { artifacts } = this.#options
    const { namespace } = pipeline.metadata
    const policy = namespace === undefined ? undefined : this.#gathered.policies.of(namespace)?.spec
    const running = artifacts.get(id)
    const now = Date.now()
    const end = this.#grace.endOf(key, {
      accepted: verdicts.accepted,
      before: conditionOf(conditionsOf(pipeline), 'Accepted'),
      ranUnder: running?.rules,
      rules: rulesDigest(policy),
      graceMs: fieldDurationMs(policy?.gracePeriod ?? policyGracePeriod),
      now,
    })
    if (end === undefined) return { verdicts }
    const accepted = withEnd(verdicts.accepted, end, now)
    if (now < end) return { verdicts: { ...verdicts, accepted }, leftMs: end - now }
    artifacts.remove(id)
    await this.#lastGood.drop(id, signal)
    this.#context.events.record(pipeline, 'Warning', 'Stopped', accepted.message)
    return { verdicts: { ...verdicts, accepted } }
  }

  #graceLeftMs(pipeline: Pipeline): number {
    const known = conditionOf(conditionsOf(pipeline), 'ResolvedRefs')
    const since = known?.status === 'False' ? Date.parse(known.lastTransitionTime) : Date.now()
    return since + this.#context.settings.refGracePeriodMs - Date.now()
  }

  #say(
    kind: ResourceKind,
    pipeline: Pipeline,
    result: CompileResult,
    { accepted, resolved }: Verdicts,
    author: Author | undefined,
  ): void {
    const findings: Finding[] = [
      { type: 'Accepted', ...accepted },
      { type: 'ResolvedRefs', ...resolved },
    ]
    const generation = pipeline.metadata.generation ?? 0
    const fields = { tests: result.tests, ...(author?.name === undefined ? {} : { authorizedBy: author.name }) }
    this.#context.status.report(kind, pipeline, 'compile', { generation, findings, fields })
  }

  /** A reconcile has thrown an unexpected error: the object reports it, and the others continue. */
  #failed(key: string, error: unknown): void {
    const [kindName = '', name = ''] = key.split(' ')
    const kind = kindOf(kindName)
    const object =
      objectOf(this.#gathered.pipelines.get(kindName), name) ?? objectOf(this.#gathered.shared.get(kindName), name)
    if (kind === undefined || object === undefined) return
    const { status } = this.#context
    const before = status.reported(kind, object, 'compile')
    const resolved = before?.findings.find(({ type }) => type === 'ResolvedRefs')
    const known = conditionOf(conditionsOf(object), 'ResolvedRefs')
    const kept: Finding | undefined =
      resolved ??
      (known && { type: 'ResolvedRefs', status: known.status, reason: known.reason as Reason, message: known.message })
    status.report(kind, object, 'compile', {
      generation: object.metadata.generation ?? 0,
      findings: [failedFinding('Accepted', error), ...(kept === undefined ? [] : [kept])],
      ...(before?.fields === undefined ? {} : { fields: before.fields }),
    })
    // Its version is unknown after a start, so agents keep the one that they have, and the others need not wait.
    if (this.#gathered.pipelines.has(kindName)) this.#options.artifacts.setUnknown(idOf(kindName, name))
    this.#settled(key)
  }

  // --- Sources and Sinks ---

  #reconcileShared(kind: ResourceKind, key: string, name: string): number | undefined {
    const object = objectOf(this.#gathered.shared.get(kind.kind), name)
    if (object === undefined) this.#shared.forget(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return undefined
    void this.#shared.report(kind, key, object).catch((error: unknown) => {
      if (this.#context.signal.aborted) return
      this.#context.logger.warn({ error, key }, 'Could not check the references of a shared object; trying again.')
      if (isInternal(error)) this.#failed(key, error)
      this.#controller.queue.retry(key)
    })
    return this.#gathered.secrets === undefined && secretsOf(object).length > 0 ? unwatchedMs : undefined
  }
}

const conditionsOf = (object: {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined
}) => object.status?.conditions

/** Whether the change is not relevant, because only the status changed. */
function isSame(left: KubeObject, right: KubeObject): boolean {
  const facts = ({ metadata: { uid, generation, labels, annotations, deletionTimestamp } }: KubeObject) => [
    uid,
    generation,
    labels ?? {},
    annotations?.['penstock.dev/retry'],
    deletionTimestamp,
  ]
  return sameJson(facts(left), facts(right))
}
