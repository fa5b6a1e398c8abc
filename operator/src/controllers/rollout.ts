// Status of Pipelines, Sinks and Agents from the agents' reports: Programmed, Flowing and Reachable, and the figures. Measured, never
// assumed: a Pipeline is programmed when every agent that must run it has reported that it does.

import { errorText } from '@penstock/agent/errors'
import { type Agent, takes } from '../api/agent.ts'
import { conditionOf, type Finding, type Reason } from '../api/conditions.ts'
import { agentKind, clusterPipelineKind, clusterSinkKind, type Kind, pipelineKind, sinkKind } from '../api/kinds.ts'
import { keyOf, objectKey } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { Sink } from '../api/sink.ts'
import type { Artifact } from '../compile/artifact.ts'
import { authoritiesIn } from '../compile/egress-ports.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { type Delivered, type Delivery, isStalled, type Report } from '../fleet/delivery.ts'
import { causeOf, type FailingComponent, flowWindowMs, isAbout, rounded, steady, steadyLag } from '../fleet/flow.ts'
import { HeldTexts } from '../fleet/held-texts.ts'
import { ownSinksFinding, type Reach, type Refusal, reachesOf } from '../fleet/reach.ts'
import { addTraffic, noTraffic, readingOf, type Traffic, trafficOf } from '../fleet/traffic.ts'
import {
  extentOf,
  mayHold,
  type Share,
  type Standing,
  Standstill,
  shareText,
  standingOf,
  type Turnout,
  turnoutOf,
} from '../fleet/turnout.ts'
import type { Cache } from '../kube/cache.ts'
import { monotonicNow } from '../kube/clock.ts'
import { namespaceType, podType } from '../kube/types.ts'
import { labels } from '../workloads/names.ts'
import { isLost, type PodObject } from './agent/pods.ts'
import { internalError } from './internal-error.ts'
import { fragmentsIn, shortRevision, wantedIn } from './revisions.ts'
import { policyOf } from './rollout-plan.ts'
import { waitText } from './waits.ts'

/** Reports come in bursts: what they say is summed up at most so often. */
const everyMs = 1000
/** Without any report, silence itself is news. */
const lookMs = 10_000
const maxFailures = 5
const maxDestinations = 3
/** How long events may be on their way before their absence at the destination means something. */
const onTheWayMs = 20_000
/** A buffer is filling up from here on. */
const fullFrom = 0.75
/** Reading is lagging from the first on, until it is less behind than the second. */
const laggingFrom = 60
const laggingUntil = 30

const nothingRead = 'No events were read.'
const nothingFound =
  'No events were read, and no agent has found a log of a pod that it selects. Compare its selectors with the labels of the pods, or ask: kubectl penstock why POD.'

export function rolloutPart(delivery: Delivery): OperatorPart {
  return {
    name: 'rollout',
    leaderOnly: true,
    async start(context) {
      return new RolloutStatus(context, delivery).start()
    },
  }
}

/** How the pods of one Agent stand to what is delivered. */
interface AgentView {
  readonly key: string
  readonly delivered: Delivered
  readonly isSidecar: boolean
  readonly isPaused: boolean
  /** Number of pods that must run it. */
  readonly desired: number
  readonly live: readonly Report[]
  /** Number of pods that have said nothing for a while. */
  readonly stale: number
  /** How its pods stand; what serves is what Pipelines are measured by. */
  readonly turnout: Turnout
  /** Whether its pods have been the same for a while. */
  readonly isSettled: boolean
  /** Pods that serve. */
  readonly serving: ReadonlySet<Report>
  /** Pods by the revision that they run. */
  readonly byRevision: ReadonlyMap<string, readonly Report[]>
  /** Reports that name a failed pipeline, by its id. */
  readonly failing: ReadonlyMap<string, readonly Report[]>
  /** What live pods said last, summed up by pipeline: most pods say nothing of most pipelines. */
  readonly traffic: ReadonlyMap<string, Traffic>
  /** Pipelines of which some node has files to read; undefined: not every pod has said. */
  readonly reading: ReadonlySet<string> | undefined
}

/** Whether the status covers its present generation. */
function isReported({ metadata, status }: Agent | Pipeline): boolean {
  return (
    status?.observedGeneration === metadata.generation && conditionOf(status?.conditions, 'Programmed') !== undefined
  )
}

export class RolloutStatus implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #delivery: Delivery
  readonly #agents: Cache<Agent>
  readonly #namespaces: Cache
  readonly #pods: Cache<PodObject>
  readonly #pipelines: Cache<Pipeline>
  readonly #clusterPipelines: Cache<Pipeline>
  readonly #sinks: readonly { readonly kind: Kind; readonly cache: Cache }[]
  readonly #subscriptions: Disposable[] = []
  #timer: NodeJS.Timeout | undefined
  #look: NodeJS.Timeout | undefined
  #startedAt = 0
  /** Since when no agent has found a log for a Pipeline. */
  readonly #unreadSince = new Map<string, number>()
  /** Pipelines whose figures began in this process. */
  readonly #begun = new Set<string>()
  readonly #standstill = new Standstill()
  readonly #texts = new HeldTexts()

  constructor(context: OperatorContext, delivery: Delivery) {
    this.#context = context
    this.#delivery = delivery
    const { caches } = context
    this.#agents = caches.cache<Agent>(agentKind)
    this.#namespaces = caches.cache(namespaceType, { metadataOnly: true })
    this.#pods = caches.cache<PodObject>(podType, { labelSelector: labels.agent })
    this.#pipelines = caches.cache<Pipeline>(pipelineKind)
    this.#clusterPipelines = caches.cache<Pipeline>(clusterPipelineKind)
    this.#sinks = [
      { kind: sinkKind, cache: caches.cache(sinkKind) },
      { kind: clusterSinkKind, cache: caches.cache(clusterSinkKind) },
    ]
  }

  async start(): Promise<this> {
    await this.#context.caches.synced(this.#context.signal)
    this.#startedAt = monotonicNow()
    this.#subscriptions.push(
      this.#delivery.onChange(() => this.#soon()),
      this.#context.artifacts.subscribe(() => this.#soon()),
      this.#pods.subscribe(() => this.#soon()),
      this.#agents.subscribe(() => this.#soon()),
    )
    this.#look = setInterval(() => this.#soon(), lookMs)
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer)
    clearInterval(this.#look)
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      try {
        this.#sumUp(monotonicNow())
      } catch (error) {
        this.#context.logger.error({ error: errorText(error) }, 'The reports of agents could not be summed up.')
      }
    }, everyMs)
  }

  #sumUp(now: number): void {
    if (!this.#context.artifacts.complete) return
    const views: AgentView[] = []
    for (const [key, delivered] of this.#delivery.agents()) views.push(this.#view(key, delivered, now))
    // After a start, agents take up to a period of their heartbeats to report. The status of an earlier process stays
    // until then: missing reports are no change of the object. Of pods with a sidecar nobody knows how many there are.
    const isHearing = now - this.#startedAt < this.#delivery.hearingMs
    const unheard = (view: AgentView) => isHearing && (view.isSidecar || view.live.length + view.stale < view.desired)
    for (const view of views) this.#reportAgent(view, unheard(view))
    const reaches = this.#reachesOf(views)
    for (const artifact of this.#context.artifacts.values()) {
      const object = this.#objectOf(artifact)
      if (object === undefined) continue
      const concerned = views.filter(
        ({ delivered: { selected, evicted, record } }) =>
          // One that was taken back before it ran anywhere is selected no more.
          selected.has(artifact.id) || evicted.has(artifact.id) || record.rolledBack[artifact.id] !== undefined,
      )
      const isUnknown = concerned.length === 0 ? isHearing : concerned.some(unheard)
      if (isUnknown && isReported(object)) continue
      try {
        this.#reportPipeline(artifact, object, concerned, reaches, now)
      } catch (error) {
        this.#failed(object, error)
      }
    }
    this.#reportSinks(reaches, now)
    this.#standstill.keep(new Map(this.#delivery.agents()))
    const isThere = (id: string) => this.#context.artifacts.get(id) !== undefined
    this.#delivery.keepFlows({ has: isThere })
    for (const id of this.#unreadSince.keys()) if (!isThere(id)) this.#unreadSince.delete(id)
    for (const id of this.#begun) if (!isThere(id)) this.#begun.delete(id)
    this.#texts.keep((key) => isThere(key.split(' ')[0] as string) || reaches.has(key))
  }

  /** Whether nothing that an earlier process has found out stands any more: this one has heard for as long as figures are about. */
  #isWhole(id: string, now: number): boolean {
    return this.#begun.has(id) || now - this.#startedAt > flowWindowMs + 2 * this.#delivery.hearingMs
  }

  #objectOf({ namespace, name }: Artifact): Pipeline | undefined {
    return namespace === undefined ? this.#clusterPipelines.get(undefined, name) : this.#pipelines.get(namespace, name)
  }

  #view(key: string, delivered: Delivered, now: number): AgentView {
    const [namespace, name] = key.split('/') as [string, string]
    let desired = 0
    let lost = 0
    const standings: Standing[] = []
    const serving = new Set<Report>()
    const ending = new Set<string>()
    const inForce = wantedIn(delivered)
    for (const pod of this.#pods.values()) {
      const { labels: own, namespace: where, deletionTimestamp, uid = '' } = pod.metadata
      if (where !== namespace || own?.[labels.agent] !== name) continue
      const hasEnded = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
      if (deletionTimestamp !== undefined || hasEnded) {
        ending.add(uid)
        continue
      }
      desired++
      // Who was lost before this process started has never spoken to it.
      if (this.#delivery.report(key, uid) !== undefined) continue
      const isSilent = isLost(pod, undefined, this.#delivery, now)
      if (isSilent) lost++
      standings.push(standingOf(undefined, isSilent, inForce, now))
    }
    const reports = [...this.#delivery.reports(key)]
    for (const report of reports) {
      if (ending.has(report.podUid)) continue
      const standing = standingOf(report, this.#delivery.isStale(report, now), inForce, now)
      standings.push(standing)
      if (standing === 'serving') serving.add(report)
    }
    const turnout = turnoutOf(standings)
    const live = reports.filter((report) => !this.#delivery.isStale(report, now))
    const byRevision = Map.groupBy(live, (report) => report.revision ?? '')
    const failing = new Map<string, Report[]>()
    for (const report of live) {
      for (const id of report.failed) {
        if (delivered.selected.has(id)) failing.set(id, [...(failing.get(id) ?? []), report])
      }
    }
    const spec = this.#agents.get(namespace, name)?.spec
    return {
      key,
      delivered,
      isSidecar: spec?.mode === 'Sidecar',
      isPaused: policyOf(spec?.rollout).paused,
      desired: Math.max(desired, live.length),
      live,
      stale: reports.length - live.length + lost,
      turnout,
      isSettled: this.#standstill.isSettled(key, turnout, now),
      serving,
      byRevision,
      failing,
      traffic: trafficOf(live),
      reading: live.length === 0 || live.length < desired ? undefined : readingOf(live),
    }
  }

  /** What was thrown about one Pipeline is said of that one. Reports have texts of agents, which hold no secret values. */
  #failed(object: Pipeline, error: unknown): void {
    const { namespace, generation = 0 } = object.metadata
    this.#context.logger.error(
      { error: errorText(error), pipeline: keyOf(object) },
      'The reports about a Pipeline could not be summed up.',
    )
    const kind = namespace === undefined ? clusterPipelineKind : pipelineKind
    const before = this.#context.status.reported(kind, object, 'rollout')
    const kept = before?.findings.filter(({ type }) => type !== 'Programmed') ?? []
    this.#context.status.report(kind, object, 'rollout', {
      generation,
      findings: [internalError('Programmed', error), ...kept],
      ...(before?.fields === undefined ? {} : { fields: before.fields }),
    })
  }

  // --- Agent ---

  #reportAgent({ key, delivered, desired, live, stale, byRevision, failing }: AgentView, unheard: boolean): void {
    const agent = this.#agents.get(...(key.split('/') as [string, string]))
    if (agent === undefined || (unheard && isReported(agent))) return
    const { stable, candidate } = delivered
    const newest = candidate ?? stable
    if (newest === undefined) return
    const current = byRevision.get(newest.rev)?.length ?? 0
    const failed = new Set([...failing.values()].flat().map((report) => report.podUid)).size
    const total = fragmentsIn(delivered, newest).size
    const sidecar = agent.spec.mode === 'Sidecar'
    const streamed = live.filter((report) => report.isStreamed).length
    const nodes = { desired, ready: live.length, current, failed, stale, ...(streamed === 0 ? {} : { streamed }) }
    const programmed = [...fragmentsIn(delivered, newest).keys()].filter((id) => !failing.has(id)).length
    const finding = (status: Finding['status'], reason: Reason, message: string): Finding => ({
      type: 'Programmed',
      status,
      reason,
      message,
    })
    const revision = shortRevision(newest.rev)
    const [firstFailing] = failing
    const [rolledBack] = Object.entries(delivered.record.rolledBack)
    const programmedNow =
      firstFailing !== undefined
        ? finding(
            'False',
            'NodesFailed',
            `${failed} of ${desired} agents: ${failureText(firstFailing[1], firstFailing[0])}`,
          )
        : delivered.record.undone?.to !== undefined
          ? finding('False', 'Undone', undoneText(key, delivered))
          : rolledBack !== undefined && candidate === undefined
            ? finding('False', 'RolledBack', `${rolledBack[0]} was taken back: ${rolledBack[1].why}.`)
            : current >= desired && (desired > 0 || sidecar)
              ? finding('True', 'Programmed', `${current} of ${desired} agents run revision ${revision}.`)
              : finding(
                  'False',
                  candidate === undefined && current === 0 ? 'Pending' : 'RollingOut',
                  `${current} of ${desired} agents run revision ${revision}. ${delivered.why}`.trim(),
                )
    this.#context.status.report(agentKind, agent, 'rollout', {
      generation: agent.metadata.generation ?? 0,
      findings: [programmedNow],
      fields: {
        revision,
        stableRevision: stable === undefined ? undefined : shortRevision(stable.rev),
        pipelines: {
          selected: delivered.selected.size + delivered.evicted.size,
          accepted: delivered.selected.size,
          programmed: current === 0 && desired > 0 ? 0 : Math.min(programmed, total),
        },
        ...(sidecar
          ? { sidecars: { pods: desired, current, stale, ...(streamed === 0 ? {} : { streamed }) } }
          : { nodes }),
        history: delivered.record.history.map(({ revision: rev, at, result }) => ({
          revision: shortRevision(rev),
          at,
          result,
        })),
        summary: { nodes: `${current}/${desired}` },
      },
    })
  }

  // --- Pipeline ---

  #reportPipeline(
    artifact: Artifact,
    object: Pipeline,
    concerned: readonly AgentView[],
    reaches: ReadonlyMap<string, Reach>,
    now: number,
  ): void {
    const { id } = artifact
    const found = concerned.map((view) => this.#pipelineOn(artifact, view))
    const kind = artifact.namespace === undefined ? clusterPipelineKind : pipelineKind
    const share = shareOf(concerned, found)
    const isHeld =
      concerned.some(({ isSettled }) => !isSettled) &&
      !concerned.some(({ failing }) => failing.has(id)) &&
      mayHold(object.status, found, extentOf(share), object.metadata.generation)
    const agents = (isHeld ? object.status?.agents : undefined) ?? found
    const programmed = this.#programmed(artifact, object, concerned, share, isHeld)
    const traffic = trafficOn(concerned, id)
    const lag = lagOf(id, object, concerned, traffic)
    const flowing = this.#flowing(id, object, traffic, lag, now)
    const isUnread = this.#isUnread(artifact, concerned, now)
    const reachable = this.#ownSinks(id, object, reaches)
    const findings = [
      programmed,
      isUnread && flowing.message === nothingRead ? { ...flowing, message: nothingFound } : flowing,
      ...(reachable === undefined
        ? []
        : [this.#texts.finding(`${id} Reachable`, object.status?.conditions, reachable, now)]),
    ]
    const current = agents.reduce((sum, agent) => sum + (agent.current ?? 0), 0)
    const desired = agents.reduce((sum, agent) => sum + (agent.desired ?? 0), 0)
    const isRunning = current > 0 && programmed.status === 'True'
    const running = isRunning ? artifact.generation : object.status?.programmedGeneration
    const { summary, ...figures } = this.#figures(id, object, traffic, lag, now)
    this.#context.status.report(kind, object, 'rollout', {
      generation: object.metadata.generation ?? artifact.generation,
      findings,
      fields: {
        ...(running === undefined ? {} : { programmedGeneration: running }),
        agents,
        ...figures,
        summary: {
          agents: `${current}/${desired}`,
          ...summary,
          ...(agents[0]?.revision === undefined ? {} : { revision: agents[0].revision }),
        },
      },
    })
  }

  /** The figures of a Pipeline. Those that stand there go on standing as long as they are about the same. */
  #figures(id: string, { status }: Pipeline, traffic: Readonly<Traffic>, lag: Lag, now: number) {
    const flow = this.#delivery.flow(id)
    flow?.hold(now, traffic.bufferedBytes)
    const before = status?.flow
    if (before === undefined) this.#begun.add(id)
    const isWhole = this.#isWhole(id, now)
    const components = this.#failing(flow?.failing(now) ?? [], status, isWhole)
    const shown = {
      ...(components.length === 0 ? {} : { components }),
      ...(before === undefined || isWhole ? {} : { flow: { ...before, lagSeconds: lag.seconds } }),
    }
    if (!isWhole && before !== undefined) {
      const { inPerSecond, outPerSecond, dropped } = status?.summary ?? {}
      return { ...shown, summary: defined({ inPerSecond, outPerSecond, dropped }) }
    }
    const sums = flow?.figures(now)
    if (sums === undefined || sums.eventsIn + sums.eventsOut + sums.dropped + sums.errors + lag.seconds === 0) {
      return { ...shown, summary: {} }
    }
    const eventsIn = steady(sums.eventsIn, before?.eventsIn)
    const eventsOut = steady(sums.eventsOut, before?.eventsOut)
    const dropped = steady(sums.dropped, before?.dropped)
    const seconds = (flow?.knownMs(now) ?? flowWindowMs) / 1000
    return {
      ...shown,
      flow: {
        window: '5m',
        eventsIn,
        eventsOut,
        dropped,
        errors: steady(sums.errors, before?.errors),
        lagSeconds: lag.seconds,
        buffered: steady(sums.buffered, before?.buffered),
      },
      summary: {
        inPerSecond: String(rounded(eventsIn / seconds)),
        outPerSecond: String(rounded(eventsOut / seconds)),
        dropped: String(dropped),
      },
    }
  }

  /** Components with errors. A repeated error is reported once. */
  #failing(failing: readonly FailingComponent[], status: Pipeline['status'], isWhole: boolean) {
    const reported = new Map((status?.components ?? []).map((component) => [component.name, component]))
    const found = failing.map(({ name, kind, errors, last }) => {
      const before = reported.get(name)
      reported.delete(name)
      const same = before?.lastError?.reason === last?.reason && before?.lastError?.message === last?.message
      if (before !== undefined && same && !isWhole) return before
      const lastError = same ? before?.lastError : last
      return {
        name,
        kind,
        errors: steady(errors, before?.errors),
        ...(lastError === undefined
          ? {}
          : {
              lastError: {
                reason: lastError.reason,
                message: lastError.message,
                at: lastError.at,
                node: lastError.node,
              },
            }),
      }
    })
    return isWhole ? found : [...found, ...reported.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
  }

  #pipelineOn({ id, hash }: Artifact, { key, delivered, turnout, serving, byRevision, failing }: AgentView) {
    const failed = failing.get(id) ?? []
    let current = 0
    for (const [rev, reports] of byRevision) {
      if (delivered.revisions.get(rev)?.fragments.get(id)?.hash !== hash) continue
      for (const report of reports) if (serving.has(report)) current++
      for (const report of failed) if (report.revision === rev && serving.has(report)) current--
    }
    // Its own content: that of the whole bundle changes with every Pipeline.
    const own = delivered.selected.get(id)
    const failures = failed.slice(0, maxFailures).map((report) => {
      const failure = report.failures.find((each) => each.pipeline === id)
      return { node: report.node, reason: failure?.reason ?? 'Failed', message: failureText([report], id) }
    })
    return {
      name: key,
      ...(own === undefined ? {} : { revision: shortRevision(own.hash.replace('sha256:', '')) }),
      desired: turnout.serving + turnout.starting + turnout.lost,
      current,
      failed: failed.length,
      stale: turnout.lost,
      ...(failures.length === 0 ? {} : { failures }),
    }
  }

  #programmed(
    artifact: Artifact,
    object: Pipeline,
    views: readonly AgentView[],
    share: Share,
    isHeld: boolean,
  ): Finding {
    const { id } = artifact
    const finding = (status: Finding['status'], reason: Reason, message: string): Finding => ({
      type: 'Programmed',
      status,
      reason,
      message,
    })
    for (const { key, delivered, failing } of views) {
      const back = delivered.record.rolledBack[id]
      if (back !== undefined) return finding('False', 'RolledBack', `Taken back on Agent ${key}: ${back.why}.`)
      if (delivered.record.undone?.to !== undefined) {
        const runs = fragmentsIn(delivered, delivered.stable).get(id)?.hash === artifact.hash
        if (!runs) return finding('False', 'Undone', undoneText(key, delivered))
      }
      const evicted = delivered.evicted.get(id)
      if (evicted !== undefined) return finding('False', 'BundleTooLarge', evicted)
      const failed = failing.get(id)
      if (failed !== undefined) {
        return finding('False', 'NodesFailed', `${failed.length} agents of ${key}: ${failureText(failed, id)}`)
      }
    }
    if (views.length === 0) {
      const refused = this.#refusedFor(artifact)
      const why =
        refused === undefined ? '' : ` Agent ${refused.agent}, which selects it, is not accepted: ${refused.why}`
      return finding('False', 'Pending', `No Agent has taken it up yet.${why}`)
    }
    const known = conditionOf(object.status?.conditions, 'Programmed')
    if (isHeld && known !== undefined) return finding(known.status, known.reason as Reason, known.message)
    const message = shareText(share)
    const extent = extentOf(share)
    const waits = views.flatMap(({ key, delivered, isPaused }) => waitText(key, delivered, isPaused, artifact) ?? [])
    const withWaits = [message, ...waits].join(' ')
    if (extent === 'somewhere') return finding('False', 'RollingOut', withWaits)
    if (extent === 'nowhere' || extent === 'unheard') return finding('False', 'Pending', withWaits)
    if (extent === 'podless' && artifact.mode !== 'Sidecar')
      return finding('False', 'Pending', 'The Agents that select it have no pods yet.')
    const older = artifact.generation < (object.metadata.generation ?? artifact.generation)
    return older
      ? finding(
          'True',
          'PreviousGeneration',
          `${message} It is generation ${artifact.generation}; the newest is not accepted.`,
        )
      : finding('True', 'Programmed', message)
  }

  /** An Agent that would run a Pipeline, were it accepted. */
  #refusedFor(artifact: Artifact): { readonly agent: string; readonly why: string } | undefined {
    const home = artifact.namespace === undefined ? undefined : this.#namespaces.get(undefined, artifact.namespace)
    for (const agent of this.#agents.values()) {
      const accepted = conditionOf(agent.status?.conditions, 'Accepted')
      if (accepted?.status === 'False' && takes(agent, artifact, home?.metadata.labels, this.#context.settings))
        return { agent: keyOf(agent), why: accepted.message }
    }
    return undefined
  }

  /** From the last report of each agent; losses and silence from recent reports only. */
  #flowing(id: string, object: Pipeline, traffic: Readonly<Traffic>, lag: Lag, now: number): Finding {
    const found = this.#withCause(id, object, this.#flowingNow(id, object, traffic, lag, now), now)
    if (found.status !== 'Unknown') return found
    const known = conditionOf(object.status?.conditions, 'Flowing')
    if (known === undefined || known.observedGeneration !== object.metadata.generation || this.#isWhole(id, now))
      return found
    // What an earlier process has seen is more than what this one has not seen yet.
    return { type: 'Flowing', status: known.status, reason: known.reason as Reason, message: known.message }
  }

  /** Names the component that something is wrong in, and what that says. */
  #withCause(id: string, object: Pipeline, found: Finding, now: number): Finding {
    const { conditions } = object.status ?? {}
    const failing = this.#delivery.flow(id)?.failing(now) ?? []
    const cause = causeOf(found.reason, failing)
    const message = cause === undefined ? found.message : `${found.message} ${cause}`
    return this.#texts.finding(`${id} Flowing`, conditions, { ...found, message }, now)
  }

  #flowingNow(id: string, object: Pipeline, traffic: Readonly<Traffic>, lag: Lag, now: number): Finding {
    const { eventsIn, eventsOut, filtered, dropped, lostBytes } = traffic
    const finding = (status: Finding['status'], reason: Reason, message: string): Finding => ({
      type: 'Flowing',
      status,
      reason,
      message,
    })
    if (dropped > 0 && eventsOut === 0 && dropped + filtered >= eventsIn) {
      return finding('False', 'AllEventsDropped', 'All events that were read were discarded.')
    }
    const flow = this.#delivery.flow(id)
    if (dropped > 0 || (flow?.recent(now).dropped ?? 0) > 0) {
      return finding('False', 'SomeEventsDropped', 'Some events that were read were discarded.')
    }
    if (lostBytes > 0) {
      const lost = `${lostBytes} bytes of log files were given up before they were read.`
      return finding('False', 'SomeEventsDropped', `${lost} See the metric log_bytes_lost_total for files and reasons.`)
    }
    const hasDelivered = eventsOut > 0 || (flow?.figures(now).eventsOut ?? 0) > 0
    const silent = isStalled(traffic)
    const known = conditionOf(object.status?.conditions, 'Flowing')
    // Events just read may still be on their way, or in a batch: only errors, or time, show that they are stuck. The condition then stays until
    // something is delivered, because minutes may pass between failing attempts.
    const isLate = traffic.silentMs >= onTheWayMs && !hasDelivered
    const isStuck = traffic.sinkErrors > 0 || isLate || known?.reason === 'NoEventsDelivered'
    if (silent && isStuck) return finding('False', 'NoEventsDelivered', 'Events were read, and none was delivered.')
    if (traffic.bufferUse >= fullFrom) return finding('False', 'BufferFillingUp', 'A buffer is filling up.')
    if (lag.seconds >= (known?.reason === 'Lagging' ? laggingUntil : laggingFrom)) {
      return finding('False', 'Lagging', laggingText(object, lag))
    }
    // Where events come, or are sent, now and then, a report without any is no news.
    if (hasDelivered) return finding('True', 'Flowing', 'Events are delivered.')
    if (silent) return finding('Unknown', 'NoData', 'Events were read, and none has been delivered yet.')
    if (eventsIn === 0 && (flow?.figures(now).eventsIn ?? 0) === 0) return finding('Unknown', 'NoData', nothingRead)
    return finding('True', 'Flowing', 'All events that are read are taken away by filters or programs.')
  }

  /**
   * Whether agents have found no log for a Pipeline of pods for some minutes. While one of them is away, what was found out before stands:
   * pods of an agent that are replaced are no news of a Pipeline.
   */
  #isUnread({ id, hub, sources }: Artifact, views: readonly AgentView[], now: number): boolean {
    const readsPods = hub.subscriptions.length > 0 && Object.keys(sources).length === 0
    if (!readsPods || views.some(({ reading }) => reading?.has(id) === true)) {
      this.#unreadSince.delete(id)
      return false
    }
    let since = this.#unreadSince.get(id)
    if (since === undefined && views.length > 0 && views.every(({ reading }) => reading !== undefined)) {
      since = now
      this.#unreadSince.set(id, since)
    }
    return since !== undefined && now - since >= flowWindowMs
  }

  // --- Sink ---

  #reportSinks(reaches: ReadonlyMap<string, Reach>, now: number): void {
    for (const { kind, cache } of this.#sinks) {
      for (const object of cache.values()) {
        const key = `${kind.kind}/${keyOf(object)}`
        const found = reaches.get(key)?.finding((refusal) => this.#destinationsOf(refusal))
        if (found === undefined) continue // nothing new: what was said stays
        const finding = this.#texts.finding(key, (object as Sink).status?.conditions, found, now)
        const generation = object.metadata.generation ?? 0
        this.#context.status.report(kind, object, 'rollout', { generation, findings: [finding] })
      }
    }
  }

  /** Of the sinks that a Pipeline has itself. A finding for this generation stays until there is another one. */
  #ownSinks(
    id: string,
    { metadata, spec, status }: Pipeline,
    reaches: ReadonlyMap<string, Reach>,
  ): Finding | undefined {
    const findings = new Map<string, Finding>()
    for (const { name, ref } of spec.sinks) {
      if (ref !== undefined) continue
      const finding = reaches.get(`${id}/${name}`)?.finding((refusal) => this.#destinationsOf(refusal))
      if (finding !== undefined) findings.set(name, finding)
    }
    const found = ownSinksFinding(findings)
    const known = conditionOf(status?.conditions, 'Reachable')
    if (found !== undefined || known?.observedGeneration !== metadata.generation) return found
    return known && { type: 'Reachable', status: known.status, reason: known.reason as Reason, message: known.message }
  }

  /** Hosts and ports that the options of a sink name; an address in a Secret is not shown. */
  #destinationsOf({ pipeline, component }: Refusal): string[] {
    const options = this.#context.artifacts.get(pipeline)?.sinks[`${pipeline}/${component}`]
    if (options === undefined) return []
    const named = authoritiesIn('sink', options).map(({ host, port }) =>
      port === undefined ? host : `${host}:${port}`,
    )
    return [...new Set(named)].slice(0, maxDestinations)
  }

  /** The Sink that each component was made from, by pipeline and component. */
  #sinkOf(pipelineId: string): ReadonlyMap<string, string> {
    const [namespace, name] = pipelineId.split('/') as [string, string]
    const pipeline =
      namespace === '_cluster' ? this.#clusterPipelines.get(undefined, name) : this.#pipelines.get(namespace, name)
    const sinks = new Map<string, string>()
    for (const { name: component, ref } of pipeline?.spec.sinks ?? []) {
      if (ref === undefined) continue
      const where = ref.kind === 'ClusterSink' ? ref.name : objectKey(namespace, ref.name)
      sinks.set(component, `${ref.kind}/${where}`)
    }
    return sinks
  }

  #reachesOf(views: readonly AgentView[]): Map<string, Reach> {
    const sinks = new Map<string, ReadonlyMap<string, string>>()
    const targetOf = (pipeline: string, component: string) => {
      let known = sinks.get(pipeline)
      if (known === undefined) {
        known = this.#sinkOf(pipeline)
        sinks.set(pipeline, known)
      }
      return known.get(component) ?? `${pipeline}/${component}`
    }
    return reachesOf(
      views.flatMap(({ live }) => live),
      targetOf,
    )
  }
}

function undoneText(key: string, { record: { undone } }: Delivered): string {
  const [namespace, name] = key.split('/')
  return `Agent ${key} was returned to revision ${shortRevision(undone?.to ?? '')} and stays there until its Pipelines change from ${shortRevision(undone?.from ?? '')}, or until \`penstock rollout resume ${name} -n ${namespace}\`.`
}

/** How many pods of all Agents of a Pipeline run it. */
function shareOf(views: readonly AgentView[], found: readonly { readonly current: number }[]): Share {
  const share = { current: 0, serving: 0, starting: 0, lost: 0 }
  for (const { current } of found) share.current += current
  for (const { turnout } of views) {
    share.serving += turnout.serving
    share.starting += turnout.starting
    share.lost += turnout.lost
  }
  return share
}

/** Of a Pipeline, on all its Agents. */
function trafficOn(views: readonly AgentView[], id: string): Traffic {
  const sum = noTraffic()
  for (const { traffic } of views) {
    const part = traffic.get(id)
    if (part !== undefined) addTraffic(sum, part)
  }
  return sum
}

/** How far reading of a Pipeline is behind. It keeps the value in the status if the new one is about the same. */
interface Lag {
  readonly seconds: number
  readonly node: string
}

function lagOf(id: string, { status }: Pipeline, views: readonly AgentView[], traffic: Readonly<Traffic>): Lag {
  const before = status?.flow?.lagSeconds
  const { lagSeconds: seconds, lagNode: node } = traffic
  // The status does not alternate between nodes that are about equally far behind.
  const known = /^Reading on node (\S+) is /.exec(conditionOf(status?.conditions, 'Flowing')?.message ?? '')?.[1]
  const reported = views.some(({ live }) =>
    live.some((report) => report.node === known && isAbout(report.pipelines[id]?.lagSeconds ?? 0, seconds)),
  )
  return { seconds: steadyLag(seconds, before), node: reported && known !== undefined ? known : node }
}

function laggingText({ spec }: Pipeline, { seconds, node }: Lag): string {
  const { perContainer, pipeline } = spec.limits ?? {}
  const isLimited = [perContainer, pipeline].some((limit) => limit !== undefined && limit.onLimit !== 'Drop')
  const why = isLimited ? '; limits of the Pipeline or a slow sink hold it up' : '; a slow sink holds it up'
  return `Reading on node ${node} is ${seconds} s behind what is written${why}, or the agent has too little CPU.`
}

function failureText(reports: readonly Report[], pipeline: string): string {
  for (const { failures, node } of reports) {
    const failure = failures.find((each) => each.pipeline === pipeline)
    if (failure === undefined) continue
    const place = failure.component === undefined ? '' : `${failure.component}: `
    return `${node}: ${place}${failure.message}`
  }
  return `${reports[0]?.node ?? 'an agent'} could not put it in force`
}

/** Without members that are undefined. */
function defined<T extends object>(members: T): Partial<{ [Name in keyof T]: NonNullable<T[Name]> }> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as ReturnType<
    typeof defined<T>
  >
}
