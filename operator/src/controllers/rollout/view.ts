// Compares the pods of an Agent with the delivered content, and combines the views of several Agents for one Pipeline.

import { conditionOf } from '../../api/conditions.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { Artifact } from '../../compile/artifact.ts'
import { isAbout, steadyLag } from '../../fleet/flow.ts'
import type { Delivered, Report } from '../../fleet/state.ts'
import { addTraffic, noTraffic, type Traffic } from '../../fleet/traffic.ts'
import type { Share, Turnout } from '../../fleet/turnout.ts'
import { shortRevision } from '../revisions.ts'

/** The pods of one Agent compared with the delivered content. */
export interface AgentView {
  readonly key: string
  readonly delivered: Delivered
  readonly isSidecar: boolean
  readonly isPaused: boolean
  /** Number of pods that must run it. */
  readonly desired: number
  readonly live: readonly Report[]
  /** Number of pods without a recent report. */
  readonly stale: number
  /** State of its pods. Only serving pods count for Pipelines. */
  readonly turnout: Turnout
  /** Whether its set of pods has not changed for a while. */
  readonly isSettled: boolean
  /** Pods that serve. */
  readonly serving: ReadonlySet<Report>
  /** Number of serving pods, by the revision that they run. */
  readonly servingBy: ReadonlyMap<string, number>
  /** Pods by the revision that they run. */
  readonly byRevision: ReadonlyMap<string, readonly Report[]>
  /** Reports with a failure of a pipeline, by its id. */
  readonly failing: ReadonlyMap<string, readonly Report[]>
  /** Sums of the last reports of live pods, by pipeline. Most pods report only a few pipelines. */
  readonly traffic: ReadonlyMap<string, Traffic>
  /** Pipelines for which a node has found files; undefined until every pod has reported. */
  readonly reading: ReadonlySet<string> | undefined
}

export function undoneText(key: string, { record: { undone } }: Delivered): string {
  const [namespace, name] = key.split('/')
  return `Agent ${key} was returned to revision ${shortRevision(undone?.to ?? '')} and stays there until its Pipelines change from ${shortRevision(undone?.from ?? '')}, or until \`penstock rollout resume ${name} -n ${namespace}\`.`
}

/** Number of an Agent's pods that run this content of a Pipeline, and that run different content. */
export function runningOn(
  { id, hash }: Pick<Artifact, 'id' | 'hash'>,
  { delivered, serving, servingBy, failing }: Pick<AgentView, 'delivered' | 'serving' | 'servingBy' | 'failing'>,
): { current: number; earlier: number } {
  const running = { current: 0, earlier: 0 }
  const hashIn = (revision: string) => delivered.revisions.get(revision)?.fragments.get(id)?.hash
  // There are thousands of pods and Pipelines, but few revisions.
  const add = (revision: string, count: number) => {
    const found = hashIn(revision)
    if (found !== undefined) running[found === hash ? 'current' : 'earlier'] += count
  }
  for (const [revision, count] of servingBy) add(revision, count)
  for (const report of failing.get(id) ?? []) if (serving.has(report)) add(report.revision ?? '', -1)
  return running
}

/** Number of pods of all Agents of a Pipeline that run it. */
export function shareOf(
  views: readonly AgentView[],
  found: readonly { readonly current: number; readonly earlier?: number }[],
): Share {
  const share = { current: 0, earlier: 0, serving: 0, starting: 0, lost: 0 }
  for (const { current, earlier = 0 } of found) {
    share.current += current
    share.earlier += earlier
  }
  for (const { turnout } of views) {
    share.serving += turnout.serving
    share.starting += turnout.starting
    share.lost += turnout.lost
  }
  return share
}

/** The sums for a Pipeline on all of its Agents. */
export function trafficOn(views: readonly AgentView[], id: string): Traffic {
  const sum = noTraffic()
  for (const { traffic } of views) {
    const part = traffic.get(id)
    if (part !== undefined) addTraffic(sum, part)
  }
  return sum
}

/** How far reading of a Pipeline is behind. It keeps the value in the status if the new one is about the same. */
export interface Lag {
  readonly seconds: number
  readonly node: string
}

export function lagOf(id: string, { status }: Pipeline, views: readonly AgentView[], traffic: Readonly<Traffic>): Lag {
  const before = status?.flow?.lagSeconds
  const { lagSeconds: seconds, lagNode: node } = traffic
  // Prevents the status from alternating between nodes with a similar lag.
  const known = /^Reading on node (\S+) is /.exec(conditionOf(status?.conditions, 'Flowing')?.message ?? '')?.[1]
  const reported =
    known !== undefined &&
    views.some(({ live }) =>
      live.some((report) => report.node === known && isAbout(report.pipelines[id]?.lagSeconds ?? 0, seconds)),
    )
  return { seconds: steadyLag(seconds, before), node: reported ? known : node }
}

export function laggingText({ spec }: Pipeline, { seconds, node }: Lag): string {
  const { perContainer, pipeline } = spec.limits ?? {}
  const isLimited = [perContainer, pipeline].some((limit) => limit !== undefined && limit.onLimit !== 'Drop')
  const why = isLimited ? '; limits of the Pipeline or a slow sink delay it' : '; a slow sink holds it up'
  return `Reading on node ${node} is ${seconds} s behind${why}, or the agent has too little CPU.`
}

export function failureText(reports: readonly Report[], pipeline: string): string {
  for (const { failures, node } of reports) {
    const failure = failures.find((each) => each.pipeline === pipeline)
    if (failure === undefined) continue
    const place = failure.component === undefined ? '' : `${failure.component}: `
    return `${node}: ${place}${failure.message}`
  }
  return `${reports[0]?.node ?? 'an agent'} could not activate it`
}
