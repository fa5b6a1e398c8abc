// A client that watches the figures of Pipelines: agents report totals since their start, and two such reports of one pod
// give its rates. Sums over pods are exact: a silent pod does not count, and is shown as missing.

import type { Figures, FiguresAnswer, FiguresInquiry } from '@penstock/agent/bundle'
import type { LogPosition } from '@penstock/agent/schema'
import { tableOf } from '@penstock/agent/schema'
import type { Artifact } from '../../compile/artifact.ts'
import { countOf } from '../../fleet/heartbeat.ts'
import type { FleetState } from '../../fleet/state.ts'
import type { Asked, Look } from './inquiries.ts'
import type { Runner } from './observers.ts'

/** The current figures of one Pipeline. */
export interface TopRow {
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  /** Pods of agents that should run it; `silent`: those on the node of the requested pod that no longer report. */
  readonly agents: { readonly asked: number; readonly answered: number; readonly silent?: number }
  readonly inPerSecond: number
  readonly outPerSecond: number
  readonly droppedPerSecond: number
  readonly errorsPerSecond: number
  readonly bufferedEvents: number
  readonly bufferedBytes: number
  /** Age of the events being read; absent while none is read. */
  readonly lagSeconds?: number
  /** Its agent's read position in the logs of the requested pod. */
  readonly positions?: readonly LogPosition[]
}

export interface TopLine {
  readonly kind: 'figures'
  readonly at: string
  /**
   * Whether all existing agents have answered, and all have had time to report since this operator became the leader.
   */
  readonly complete: boolean
  readonly pipelines: readonly TopRow[]
}

interface PodReport {
  readonly at: number
  readonly pipelines: ReadonlyMap<string, Figures>
}

/** Maximum number of silent pods that are named individually. */
const maxNamed = 50
const maxMs = 3_600_000
const maxPositions = 200
const rates = ['eventsIn', 'eventsOut', 'dropped', 'errors'] as const
const nothing: Figures = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0, bufferedEvents: 0, bufferedBytes: 0 }

export interface TopOptions {
  readonly id: string
  readonly intervalMs: number
  /**
   * A pod, by its uid and node: only the agents on that node receive the request and report their positions in its logs.
   */
  readonly pod?: { readonly uid: string; readonly node: string } | undefined
}

/** The operator's knowledge of the agents. */
export interface Known {
  readonly fleet: FleetState
  chosen(): readonly Artifact[]
  /** Pods of a Pipeline that report, and those that no longer report. */
  runners(id: string): { readonly live: readonly Runner[]; readonly silent: readonly Runner[] }
  /** Whether there may be agents that have not reported since this operator became the leader. */
  isHearing(): boolean
}

export class TopLook implements Look {
  readonly id: string
  readonly #intervalMs: number
  readonly #pod: TopOptions['pod']
  readonly #known: Known
  /** The last two reports of each pod, newest first. */
  readonly #reports = new Map<string, readonly [PodReport, PodReport | undefined]>()

  constructor({ id, intervalMs, pod }: TopOptions, known: Known) {
    this.id = id
    this.#intervalMs = intervalMs
    this.#pod = pod
    this.#known = known
  }

  inquiry({ agent, node }: Asked): FiguresInquiry | undefined {
    if (this.#pod !== undefined && this.#pod.node !== node) return undefined
    const selected = this.#known.fleet.get(agent)?.selected
    const ids = this.#known.chosen().flatMap(({ id }) => (selected?.has(id) === true ? [id] : []))
    if (ids.length === 0) return undefined
    const pipelines = ids.length > maxNamed ? {} : { pipelines: ids }
    const pod = this.#pod === undefined ? {} : { pod: this.#pod.uid }
    return { kind: 'figures', id: this.id, ...pipelines, ...pod, intervalMs: this.#intervalMs, forMs: maxMs }
  }

  take({ agent, podUid }: Asked, body: Buffer): void {
    // An agent only reports for the pipelines of its Agent.
    const selected = this.#known.fleet.get(agent)?.selected
    const pipelines = new Map<string, Figures>()
    for (const [id, figures] of Object.entries(figuresIn(body)))
      if (selected?.has(id)) pipelines.set(id, cleaned(figures))
    this.#reports.set(podUid, [{ at: performance.now(), pipelines }, this.#reports.get(podUid)?.[0]])
  }

  line(): TopLine {
    const oldest = performance.now() - 3 * this.#intervalMs
    let complete = true
    const pipelines = this.#known.chosen().map(({ id, kind, namespace, name }): TopRow => {
      const { live, silent } = this.#known.runners(id)
      const isAsked = ({ report }: Runner) => this.#pod === undefined || report.node === this.#pod.node
      const runners = live.filter(isAsked)
      const sums = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0 }
      let answered = 0
      let bufferedEvents = 0
      let bufferedBytes = 0
      let lagSeconds: number | undefined
      const positions: LogPosition[] = []
      for (const { report } of runners) {
        const [now, before] = this.#reports.get(report.podUid) ?? []
        if (now === undefined || now.at < oldest) continue
        const figures = now.pipelines.get(id) ?? nothing
        positions.push(...(figures.positions ?? []))
        // The position is known at once, rates with the next report.
        if (this.#pod !== undefined) answered++
        if (before === undefined) continue
        if (this.#pod === undefined) answered++
        const earlier = before.pipelines.get(id) ?? nothing
        const seconds = (now.at - before.at) / 1000
        // A restarted agent begins at zero.
        for (const rate of rates) sums[rate] += Math.max(0, figures[rate] - earlier[rate]) / seconds
        bufferedEvents += figures.bufferedEvents
        bufferedBytes += figures.bufferedBytes
        if (figures.lagSeconds !== undefined) lagSeconds = Math.max(lagSeconds ?? 0, figures.lagSeconds)
      }
      complete &&= answered === runners.length
      if (this.#pod !== undefined && runners.length === 0) complete &&= !this.#known.isHearing()
      return {
        kind,
        ...(namespace === undefined ? {} : { namespace }),
        name,
        agents: {
          ...{ asked: runners.length, answered },
          ...(this.#pod === undefined ? {} : { silent: silent.filter(isAsked).length }),
        },
        inPerSecond: tenths(sums.eventsIn),
        outPerSecond: tenths(sums.eventsOut),
        droppedPerSecond: tenths(sums.dropped),
        errorsPerSecond: tenths(sums.errors),
        bufferedEvents,
        bufferedBytes,
        ...(lagSeconds === undefined ? {} : { lagSeconds: tenths(lagSeconds) }),
        ...(this.#pod === undefined ? {} : { positions }),
      }
    })
    return { kind: 'figures', at: new Date().toISOString(), complete, pipelines }
  }
}

const tenths = (value: number): number => Math.round(value * 10) / 10

function figuresIn(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    const { pipelines } = JSON.parse(body.toString('utf8')) as Partial<FiguresAnswer>
    return typeof pipelines === 'object' && pipelines !== null ? pipelines : {}
  } catch {
    return {} // an agent's data is untrusted
  }
}

function cleaned(reported: unknown): Figures {
  const table = tableOf(reported)
  const count = (name: string) => countOf(table[name])
  return {
    eventsIn: count('eventsIn'),
    eventsOut: count('eventsOut'),
    dropped: count('dropped'),
    errors: count('errors'),
    bufferedEvents: count('bufferedEvents'),
    bufferedBytes: count('bufferedBytes'),
    ...(table['lagSeconds'] === undefined ? {} : { lagSeconds: count('lagSeconds') }),
    ...(Array.isArray(table['positions'])
      ? { positions: table['positions'].slice(0, maxPositions).map(position) }
      : {}),
  }
}

function position(reported: unknown): LogPosition {
  const table = tableOf(reported)
  const text = (name: string) => String(table[name] ?? '').slice(0, 1024)
  const count = (name: string) => countOf(table[name])
  return {
    ...{ container: text('container'), file: text('file') },
    ...{ size: count('size'), read: count('read'), delivered: count('delivered') },
    ...{ lagSeconds: tenths(count('lagSeconds')), dropped: count('dropped') },
    ...(table['compressed'] === undefined ? {} : { compressed: compressedIn(tableOf(table['compressed'])) }),
  }
}

function compressedIn({ lines }: Readonly<Record<string, unknown>>): NonNullable<LogPosition['compressed']> {
  return lines === undefined ? {} : { lines: countOf(lines) }
}
