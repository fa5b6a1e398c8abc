// Status of Pipelines, Sinks and Agents from the agents' reports: Programmed, Flowing and Reachable, and the figures. It is measured,
// never assumed: a Pipeline is programmed when every agent that should run it has reported that it does.

import { errorText } from '@penstock/agent/errors'
import { counted } from '@penstock/agent/program'
import { type Agent, takes } from '../api/agent.ts'
import { conditionOf, type Finding, type Reason } from '../api/conditions.ts'
import { agentKind, clusterPipelineKind, pipelineKind, type ResourceKind } from '../api/kinds.ts'
import { keyOf } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { OperatorContext, OperatorPart } from '../context.ts'
import { causeOf, type FailingComponent, flowWindowMs, rounded, steady } from '../fleet/flow.ts'
import { HeldTexts } from '../fleet/held-texts.ts'
import type { Reach } from '../fleet/reach.ts'
import type { Delivered, FleetState, Report } from '../fleet/state.ts'
import { readingOf, type Traffic, trafficOf } from '../fleet/traffic.ts'
import {
  extentOf,
  isWholeAgain,
  mayHold,
  type ServingState,
  type Share,
  Standstill,
  servingStateOf,
  shareText,
  turnoutOf,
} from '../fleet/turnout.ts'
import type { Cache } from '../kube/cache.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import { labels } from '../workloads/names.ts'
import { type AgentPod, isLost } from './agent/pods.ts'
import { internalError } from './internal-error.ts'
import { fragmentsIn, shortRevision, wantedIn } from './revisions.ts'
import { agentStatus } from './rollout/agent-status.ts'
import { flowingNow, type Work } from './rollout/flowing.ts'
import { SinkReach } from './rollout/sink-reach.ts'
import { runningAny, stoppedStatus } from './rollout/stopped.ts'
import { isManaged, unseenAgents } from './rollout/unseen.ts'
import {
  type AgentView,
  failureText,
  type Lag,
  lagOf,
  runningOn,
  shareOf,
  trafficOn,
  undoneText,
} from './rollout/view.ts'
import { policyOf } from './rollout-plan.ts'
import { Spacing } from './spacing.ts'
import { waitText } from './waits.ts'

/** Without any reports, missing ones must be noticed too. */
const lookMs = 10_000
/** Reports arrive in bursts: they are summed up at most this often, and in at most a tenth of the time. */
const spacing = { minMs: 1000, maxMs: lookMs, factor: 9 }
const maxFailures = 5

export function rolloutPart(fleet: FleetState): OperatorPart {
  return {
    name: 'rollout',
    leaderOnly: true,
    async start(context) {
      return new RolloutStatus(context, fleet).start()
    },
  }
}

/** Whether the status covers its current generation. */
function isReported({ metadata, status }: Agent | Pipeline): boolean {
  const known = conditionOf(status?.conditions, 'Programmed')
  if (known === undefined || known.observedGeneration !== metadata.generation) return false
  // This is the status before any agent has reported.
  return known.status !== 'Unknown' || known.reason !== 'Pending'
}

export class RolloutStatus implements AsyncDisposable {
  readonly #context: OperatorContext
  readonly #fleet: FleetState
  readonly #agents: Cache<Agent>
  readonly #namespaces: Cache
  readonly #pods: Cache<AgentPod>
  readonly #pipelines: Cache<Pipeline>
  readonly #clusterPipelines: Cache<Pipeline>
  readonly #subscriptions: Disposable[] = []
  #timer: NodeJS.Timeout | undefined
  #look: NodeJS.Timeout | undefined
  readonly #spacing = new Spacing(spacing)
  #startedAt = 0
  /** Since when no agent has found a log for a Pipeline. */
  readonly #unreadSince = new Map<string, number>()
  /** Pipelines whose figures began in this process. */
  readonly #begun = new Set<string>()
  readonly #standstill = new Standstill()
  readonly #texts = new HeldTexts()
  readonly #reach: SinkReach

  constructor(context: OperatorContext, fleet: FleetState) {
    this.#context = context
    this.#fleet = fleet
    const { caches } = context
    this.#agents = caches.cache<Agent>(agentKind)
    this.#namespaces = caches.cache(namespaceType, { metadataOnly: true })
    this.#pods = caches.cache<AgentPod>(podType, { labelSelector: labels.agent })
    this.#pipelines = caches.cache<Pipeline>(pipelineKind)
    this.#clusterPipelines = caches.cache<Pipeline>(clusterPipelineKind)
    this.#reach = new SinkReach(context, this.#texts)
  }

  async start(): Promise<this> {
    await this.#context.caches.synced(this.#context.signal)
    this.#startedAt = this.#fleet.now()
    this.#subscriptions.push(
      this.#fleet.onChange(() => this.#soon()),
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
      this.#spacing
        .measured(() => this.#sumUp(this.#fleet.now()))
        .catch((error: unknown) => {
          this.#context.logger.error({ error: errorText(error) }, 'Could not sum up the reports of agents.')
        })
    }, this.#spacing.waitMs)
  }

  #sumUp(now: number): void {
    if (!this.#context.artifacts.complete) return
    const views: AgentView[] = []
    for (const [key, delivered] of this.#fleet.agents()) views.push(this.#view(key, delivered, now))
    // After a start, agents take up to one heartbeat period to report. Until then the status of an earlier process
    // stays, because missing reports do not mean a change of the object. The number of pods with a sidecar is unknown.
    const isHearing = now - this.#startedAt < this.#fleet.hearingMs
    const unheard = (view: AgentView) => isHearing && (view.isSidecar || view.live.length + view.stale < view.desired)
    for (const view of views) this.#reportAgent(view, unheard(view))
    const unseen = unseenAgents(this.#agents.values(), this.#fleet, this.#context.status)
    const reaches = this.#reach.reachesOf(views.flatMap(({ live }) => live))
    for (const artifact of this.#context.artifacts.values()) {
      const object = this.#objectOf(artifact)
      // For an object that replaced another with the same name, the compiler reports first.
      if (object === undefined || object.metadata.uid !== artifact.uid) continue
      const concerned = views.filter(({ delivered }) => isConcerned(delivered, artifact.id))
      const isUnknown =
        (concerned.length === 0 ? isHearing : concerned.some(unheard)) ||
        unseen.some((agent) => this.#takes(agent, artifact))
      if (isUnknown && isReported(object)) continue
      try {
        this.#reportPipeline(artifact, object, concerned, reaches, now)
      } catch (error) {
        this.#failed(object, error)
      }
    }
    this.#reportStopped(views, views.some(unheard) || unseen.some(isManaged))
    this.#reach.report(reaches, now, this.#isEarly(now))
    this.#standstill.keep(new Map(this.#fleet.agents()))
    const isThere = (id: string) => this.#context.artifacts.get(id) !== undefined
    this.#fleet.keepFlows({ has: isThere })
    for (const id of this.#unreadSince.keys()) if (!isThere(id)) this.#unreadSince.delete(id)
    for (const id of this.#begun) if (!isThere(id)) this.#begun.delete(id)
    this.#texts.keep((key) => isThere(key.split(' ')[0] as string) || reaches.has(key))
    this.#reach.keep((key) => isThere(key) || reaches.has(key))
  }

  /**
   * Whether results of an earlier process no longer count, because this process has received reports for the whole window of the
   * figures.
   */
  #isWhole(id: string, now: number): boolean {
    return this.#begun.has(id) || now - this.#startedAt > flowWindowMs + 2 * this.#fleet.hearingMs
  }

  #takes(agent: Agent, artifact: Artifact): boolean {
    const home = artifact.namespace === undefined ? undefined : this.#namespaces.get(undefined, artifact.namespace)
    return takes(agent, artifact, home?.metadata.labels, this.#context.settings)
  }

  /** Whether agents may still have to report, since the start of this process, what they reported to an earlier one. */
  #isEarly(now: number): boolean {
    return now - this.#startedAt < 2 * this.#fleet.hearingMs
  }

  #objectOf({ namespace, name }: Artifact): Pipeline | undefined {
    return namespace === undefined ? this.#clusterPipelines.get(undefined, name) : this.#pipelines.get(namespace, name)
  }

  #view(key: string, delivered: Delivered, now: number): AgentView {
    const [namespace, name] = key.split('/') as [string, string]
    let desired = 0
    let lost = 0
    const states: ServingState[] = []
    const serving = new Set<Report>()
    const servingBy = new Map<string, number>()
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
      // A pod that was already lost when this process started has never reported to it.
      if (this.#fleet.report(key, uid) !== undefined) continue
      const isSilent = isLost(pod, undefined, this.#fleet, now)
      if (isSilent) lost++
      states.push(servingStateOf(undefined, isSilent, inForce, now))
    }
    const reports = [...this.#fleet.reports(key)]
    for (const report of reports) {
      if (ending.has(report.podUid)) continue
      const state = servingStateOf(report, this.#fleet.isStale(report, now), inForce, now)
      states.push(state)
      if (state !== 'serving') continue
      serving.add(report)
      const { revision = '' } = report
      servingBy.set(revision, (servingBy.get(revision) ?? 0) + 1)
    }
    const turnout = turnoutOf(states)
    const live = reports.filter((report) => !this.#fleet.isStale(report, now))
    const byRevision = Map.groupBy(live, (report) => report.revision ?? '')
    const failing = new Map<string, Report[]>()
    for (const report of live) {
      for (const id of report.failed) {
        if (isConcerned(delivered, id)) failing.set(id, [...(failing.get(id) ?? []), report])
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
      servingBy,
      byRevision,
      failing,
      traffic: trafficOf(live),
      reading: live.length === 0 || live.length < desired ? undefined : readingOf(live),
    }
  }

  /**
   * An error about one Pipeline is reported on that Pipeline. Reports contain texts from agents, which include no secret
   * values.
   */
  #failed(object: Pipeline, error: unknown): void {
    const { namespace, generation = 0 } = object.metadata
    this.#context.logger.error(
      { error: errorText(error), pipeline: keyOf(object) },
      'Could not sum up the reports about a Pipeline.',
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

  #reportAgent(view: AgentView, unheard: boolean): void {
    const agent = this.#agents.get(...(view.key.split('/') as [string, string]))
    if (agent === undefined || (unheard && isReported(agent))) return
    const status = agentStatus(view, this.#context.reviews.problem)
    if (status === undefined) return
    this.#context.status.report(agentKind, agent, 'rollout', {
      generation: agent.metadata.generation ?? 0,
      ...status,
    })
  }

  // --- Pipeline ---

  /** Pipelines that were rejected and may not run: their status must not keep statements about agents. */
  #reportStopped(views: readonly AgentView[], isUnheard: boolean): void {
    const { artifacts, status } = this.#context
    for (const [kind, cache] of [
      [pipelineKind, this.#pipelines],
      [clusterPipelineKind, this.#clusterPipelines],
    ] as const) {
      for (const object of cache.values()) {
        const { namespace = '_cluster', name, generation, deletionTimestamp } = object.metadata
        const id = `${namespace}/${name}`
        if (deletionTimestamp !== undefined || artifacts.get(id) !== undefined || artifacts.unknown.has(id)) continue
        if (isUnheard && isReported(object)) continue
        if (status.reported(kind, object, 'compile')?.generation !== generation) continue
        const before = status.reported(kind, object, 'rollout')
        try {
          const stopped = stoppedStatus(object, before, isUnheard ? undefined : runningAny(id, views))
          if (stopped !== undefined) status.report(kind, object, 'rollout', stopped)
        } catch (error) {
          this.#failed(object, error)
        }
      }
    }
  }

  /** The generation that the compiler has checked: a newer one is not known yet. */
  #judgedGeneration(kind: ResourceKind, object: Pipeline, artifact: Artifact): number {
    return Math.max(artifact.generation, this.#context.status.reported(kind, object, 'compile')?.generation ?? 0)
  }

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
    const generation = this.#judgedGeneration(kind, object, artifact)
    const share = shareOf(concerned, found)
    const isHeld =
      !isWholeAgain(share, object.status?.agents) &&
      concerned.some(({ isSettled }) => !isSettled) &&
      !concerned.some(({ failing }) => failing.has(id)) &&
      mayHold(object.status, found, extentOf(share), generation)
    const programmed = this.#programmed(artifact, object, concerned, share, { isHeld, generation })
    // Numbers are written together with their condition.
    const agents = (isHeld && programmed.status === 'True' ? object.status?.agents : undefined) ?? found
    const traffic = trafficOn(concerned, id)
    const lag = lagOf(id, object, concerned, traffic)
    const isUnread = this.#isUnread(artifact, concerned, now)
    const reachable = this.#reach.ofPipeline(id, object, reaches, this.#isEarly(now))
    const findings = [
      programmed,
      this.#flowing(id, object, { traffic, lag, isUnread }, now),
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
      generation,
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

  /** The figures of a Pipeline. Written figures stay while the new ones are about the same. */
  #figures(id: string, { status }: Pipeline, traffic: Readonly<Traffic>, lag: Lag, now: number) {
    const flow = this.#fleet.flow(id)
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

  #pipelineOn(artifact: Artifact, view: AgentView) {
    const { id, hash } = artifact
    const { key, turnout, failing } = view
    const failed = failing.get(id) ?? []
    const { current, earlier } = runningOn(artifact, view)
    const failures = failed.slice(0, maxFailures).map((report) => {
      const failure = report.failures.find((each) => each.pipeline === id)
      return { node: report.node, reason: failure?.reason ?? 'Failed', message: failureText([report], id) }
    })
    return {
      name: key,
      // Its own content: that of the whole bundle changes with every Pipeline.
      revision: shortRevision(hash.replace('sha256:', '')),
      desired: turnout.serving + turnout.starting + turnout.lost,
      current,
      ...(earlier === 0 ? {} : { earlier }),
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
    { isHeld, generation }: { readonly isHeld: boolean; readonly generation: number },
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
      if (back !== undefined) return finding('False', 'RolledBack', `Rolled back on Agent ${key}: ${back.why}.`)
      if (delivered.withheld?.has(id) === true)
        return finding(
          'False',
          'RolledBack',
          `Rolled back on Agent ${key}; so many Pipelines were rolled back since then that the reason is no longer stored.`,
        )
      if (delivered.record.undone?.to !== undefined) {
        const runs = fragmentsIn(delivered, delivered.stable).get(id)?.hash === artifact.hash
        if (!runs) return finding('False', 'Undone', undoneText(key, delivered))
      }
      const evicted = delivered.evicted.get(id)
      if (evicted !== undefined) return finding('False', 'BundleTooLarge', evicted)
      const failed = failing.get(id)
      if (failed !== undefined) {
        return finding(
          'False',
          'NodesFailed',
          `${counted(failed.length, 'agent')} of ${key}: ${failureText(failed, id)}`,
        )
      }
    }
    if (views.length === 0) {
      const refused = this.#refusedFor(artifact)
      const why =
        refused === undefined ? '' : ` Agent ${refused.agent}, which selects it, is not accepted: ${refused.why}`
      return finding('False', 'Pending', `No Agent has received it yet.${why}`)
    }
    const known = conditionOf(object.status?.conditions, 'Programmed')
    if (isHeld && known !== undefined) return finding(known.status, known.reason as Reason, known.message)
    const message = shareText(share)
    const extent = extentOf(share)
    const waits = views.flatMap(({ key, delivered, isPaused }) => waitText(key, delivered, isPaused, artifact) ?? [])
    const withWaits = [message, ...waits].join(' ')
    if (extent === 'somewhere' || extent === 'before') return finding('False', 'RollingOut', withWaits)
    if (extent === 'nowhere' || extent === 'unheard') return finding('False', 'Pending', withWaits)
    if (extent === 'podless' && artifact.mode !== 'Sidecar')
      return finding('False', 'Pending', 'The Agents that select it have no pods yet.')
    return artifact.generation < generation
      ? finding(
          'True',
          'PreviousGeneration',
          `${message} It is generation ${artifact.generation}; the newest is not accepted.`,
        )
      : finding('True', 'Programmed', message)
  }

  /** An Agent that would run a Pipeline if it were accepted. */
  #refusedFor(artifact: Artifact): { readonly agent: string; readonly why: string } | undefined {
    for (const agent of this.#agents.values()) {
      const accepted = conditionOf(agent.status?.conditions, 'Accepted')
      if (accepted?.status === 'False' && this.#takes(agent, artifact))
        return { agent: keyOf(agent), why: accepted.message }
    }
    return undefined
  }

  /** From the last report of each agent; losses and silence from recent reports only. */
  #flowing(id: string, object: Pipeline, work: Work, now: number): Finding {
    const found = this.#withCause(id, object, flowingNow(this.#fleet.flow(id), object, work, now), now)
    if (found.status !== 'Unknown') return found
    const known = conditionOf(object.status?.conditions, 'Flowing')
    if (known === undefined || known.observedGeneration !== object.metadata.generation || this.#isWhole(id, now))
      return found
    // Results of an earlier process take precedence over missing reports.
    return { type: 'Flowing', status: known.status, reason: known.reason as Reason, message: known.message }
  }

  /** Names the component with a problem, and its message. */
  #withCause(id: string, object: Pipeline, found: Finding, now: number): Finding {
    const { conditions } = object.status ?? {}
    const failing = this.#fleet.flow(id)?.failing(now) ?? []
    const cause = causeOf(found.reason, failing)
    const message = cause === undefined ? found.message : `${found.message} ${cause}`
    return this.#texts.finding(`${id} Flowing`, conditions, { ...found, message }, now)
  }

  /**
   * Whether agents have found no log for a pod Pipeline for some minutes. While one of them is missing, the earlier result stays,
   * because replaced agent pods do not change a Pipeline's status.
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
}

/**
 * Whether an Agent affects the status of a Pipeline: it no longer selects a Pipeline that was rolled back before it ran
 * anywhere.
 */
function isConcerned({ selected, evicted, withheld, record }: Delivered, id: string): boolean {
  return selected.has(id) || evicted.has(id) || record.rolledBack[id] !== undefined || withheld?.has(id) === true
}

/** Removes undefined members. */
function defined<T extends object>(members: T): Partial<{ [Name in keyof T]: NonNullable<T[Name]> }> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as ReturnType<
    typeof defined<T>
  >
}
