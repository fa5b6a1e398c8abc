// The path of a new revision: tried on few agents, then on more, then on all, or reverted. Pure: the same observation gives the same
// decision, and time is an argument.

import { bucketOf, type LoadFailure, takesCandidate } from '@penstock/agent/bundle'
import { counted, countedOf } from '@penstock/agent/program'
import { type AgentSpec, agentDefaults } from '../api/agent.ts'

export interface RolloutPolicy {
  /** Null: all at once, with the same rule for taking back. */
  readonly canary: { readonly percent: number; readonly minNodes: number; readonly bakeMs: number } | null
  readonly step: { readonly percent: number; readonly bakeMs: number }
  readonly maxFailedPercent: number
  readonly autoRollback: boolean
  readonly paused: boolean
}

const { rollout: defaults } = agentDefaults

export function policyOf(rollout: AgentSpec['rollout']): RolloutPolicy {
  const { canary, step, ...rest } = rollout ?? {}
  const {
    maxFailedPercent = defaults.maxFailedPercent,
    autoRollback = defaults.autoRollback,
    paused = defaults.paused,
  } = rest
  return {
    canary:
      canary === null
        ? null
        : {
            percent: canary?.percent ?? defaults.canary.percent,
            minNodes: canary?.minNodes ?? defaults.canary.minNodes,
            bakeMs: fieldDurationMs(canary?.bake ?? defaults.canary.bake),
          },
    step: {
      percent: step?.percent ?? defaults.step.percent,
      bakeMs: fieldDurationMs(step?.bake ?? defaults.step.bake),
    },
    maxFailedPercent,
    autoRollback,
    paused,
  }
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * `1m30s` in milliseconds: durations of resources, which their schema has checked. Flags take another form, with fractions and plain
 * seconds, and are checked as they are read.
 */
export function fieldDurationMs(text: string): number {
  let ms = 0
  for (const [, digits, unit] of text.matchAll(/(\d+)(ms|s|m|h)/g)) ms += Number(digits) * (units[unit as string] ?? 0)
  return ms
}

/** An agent's pod as the rollout sees it. */
export interface AgentNode {
  readonly node: string
  /** Undefined: it has not reported since this operator started. */
  readonly revision: string | undefined
  /** Ids of the pipelines of its revision that it could not put in force. */
  readonly failed: ReadonlySet<string>
  /** The message of the first of these. */
  readonly failures: readonly LoadFailure[]
  /** Why it waits or hangs, as it says. */
  readonly reason: string | undefined
  /** It takes too long to load what it was given. */
  readonly stuck: boolean
  /** Since when it has reported without a break, in the candidate's present step, that it waits; in milliseconds since the epoch. */
  readonly waitingSince: number | undefined
  /** It has been silent for too long to wait for it. */
  readonly stale: boolean
  /** Its container ended since the candidate's present step began. */
  readonly crashed: boolean
}

/** New Pipelines count as in force after this time, because an agent may never finish loading them. */
const maxArrivalMs = 300_000

/** An agent that reports for this long that it waits for parts of the candidate will not get them by waiting. */
export const maxWaitMs = 120_000

export interface TriedRevision {
  readonly rev: string
  readonly percent: number
  readonly salt: string
  /** 0 for the canaries. */
  readonly step: number
  /** Since when all agents of the present step have run it, in milliseconds since the epoch; undefined before. */
  readonly since: number | undefined
  /** When it was first tried. */
  readonly begun?: number | undefined
}

export interface Observation {
  readonly now: number
  readonly policy: RolloutPolicy
  readonly stable: string | undefined
  readonly candidate: TriedRevision | undefined
  /** The desired revision. */
  readonly desired: string
  /** Ids of the pipelines that are not the same in the candidate and the stable revision. */
  readonly changed: ReadonlySet<string>
  /** Of the changed ones, those whose events get lost more than twice as often where the candidate runs. */
  readonly worse: ReadonlySet<string>
  /** Ids of pipelines that all agents got a while ago without a trial: nothing shows that they are innocent. */
  readonly added?: ReadonlySet<string>
  /** Whether pipelines only come or go between the stable revision and the desired one. */
  readonly isArrival?: boolean
  /** The same of the stable revision and the candidate. */
  readonly triesArrivals?: boolean
  readonly nodes: readonly AgentNode[]
}

export type Decision =
  | { readonly action: 'none'; readonly waitMs?: number; readonly why: string }
  /** The desired revision is put in force everywhere. */
  | { readonly action: 'promote' }
  /** The desired revision becomes the candidate. */
  | { readonly action: 'start'; readonly percent: number; readonly salt: string }
  | { readonly action: 'step'; readonly percent: number }
  /** Everybody who was chosen runs the candidate: from now on it is watched. */
  | { readonly action: 'watch'; readonly waitMs: number }
  /** The candidate is promoted, because something newer waits. */
  | { readonly action: 'settle' }
  /** The candidate is no longer wanted. */
  | { readonly action: 'drop' }
  | {
      readonly action: 'abort'
      readonly culprits: ReadonlySet<string>
      readonly why: string
      /** For each culprit, the message of an agent: only the Pipeline's owner may see the text. */
      readonly reasons?: ReadonlyMap<string, string>
    }

export function decide(seen: Observation): Decision {
  const { stable, candidate, desired, nodes } = seen
  // With no content to keep, or no agent to try it on, waiting gives no information.
  if (stable === undefined) return { action: 'promote' }
  if (candidate === undefined) {
    if (desired === stable) return { action: 'none', why: 'Up to date.' }
    return nodes.length === 0 ? { action: 'promote' } : begin(seen)
  }
  const judged = judge(seen, candidate)
  if (desired === stable) return { action: 'drop' }
  if (judged.culprits.size > 0 && seen.policy.autoRollback) {
    const { culprits, why, isWaiting, reasons } = judged
    // The next revision has the culprits too, unless they have changed, and agents would wait for it for as long again.
    if (desired !== candidate.rev && !isWaiting) return begin(seen)
    return { action: 'abort', culprits, why, ...(reasons.size === 0 ? {} : { reasons }) }
  }
  if (desired !== candidate.rev) {
    if (judged.culprits.size > 0 || isAtOnce(seen)) return begin(seen)
    // Everybody has it, and going back to what was before it would be a step backwards. No change waits for new Pipelines.
    const isOut = isArrived(seen) || waitingFor(seen, candidate) === 0
    if (candidate.percent >= 100 && isOut) return { action: 'settle' }
  }
  if (judged.culprits.size > 0) return { action: 'none', why: judged.why }
  const isOld = candidate.begun !== undefined && seen.now - candidate.begun >= maxArrivalMs
  if (isOld && candidate.percent >= 100 && isArrived(seen)) return { action: 'settle' }
  return advance(seen, candidate)
}

/** Whether nothing but arrivals is tried, and no agent has yet to show by waiting whether it can load them. */
function isArrived({ triesArrivals, nodes }: Observation): boolean {
  return triesArrivals === true && !nodes.some(({ waitingSince, stale }) => waitingSince !== undefined && !stale)
}

/** Whether all agents get a revision at once: the canary is for changes of what runs. */
function isAtOnce({ policy, nodes }: Observation): boolean {
  return policy.canary === null || policy.canary.percent >= 100 || nodes.length <= 1
}

/** Whether a change may join a candidate on its first agents: their bake starts again then, once at most. */
export function mayJoin(candidate: TriedRevision, { canary }: RolloutPolicy, now: number): boolean {
  if (candidate.step > 0 || candidate.percent >= 100 || candidate.begun === undefined || canary === null) return false
  return now - candidate.begun < canary.bakeMs
}

function begin(seen: Observation): Decision {
  const { policy, desired, nodes } = seen
  const salt = desired.slice(0, 12)
  const { canary } = policy
  if (canary === null || seen.isArrival === true || isAtOnce(seen)) return { action: 'start', percent: 100, salt }
  // A lost agent would try nothing.
  const alive = nodes.filter(({ stale }) => !stale)
  // A share that chooses nobody would try nothing, and begin again without end.
  const least = Math.min(Math.max(1, canary.minNodes), alive.length)
  const buckets = alive.map(({ node }) => bucketOf(salt, node)).sort((left, right) => left - right)
  const enough = least === 0 ? 0 : (buckets[least - 1] as number) + 1
  return { action: 'start', percent: Math.min(100, Math.max(canary.percent, enough)), salt }
}

interface Judgement {
  readonly culprits: ReadonlySet<string>
  readonly why: string
  readonly isWaiting: boolean
  readonly reasons: ReadonlyMap<string, string>
}

const innocent: Judgement = { culprits: new Set(), why: '', isWaiting: false, reasons: new Map() }

function judge({ now, policy, changed, worse, added, nodes }: Observation, candidate: TriedRevision): Judgement {
  const chosen = nodes.filter(({ node }) => takesCandidate(candidate, node))
  const culprits = new Set<string>()
  const suspects = new Set([...changed, ...(added ?? [])])
  const onlyWaits = ({ waitingSince, stale, revision }: AgentNode) =>
    waitingSince !== undefined && !stale && revision !== candidate.rev && now - waitingSince >= maxWaitMs
  const failing = chosen.filter((node) => {
    const { revision, failed, stuck, crashed } = node
    if (crashed || stuck || onlyWaits(node)) return true
    return revision === candidate.rev && [...failed].some((id) => suspects.has(id))
  })
  if (failing.length === 0 && worse.size === 0) return innocent
  const tooMany = (failing.length * 100) / Math.max(1, chosen.length) > policy.maxFailedPercent
  if (!tooMany && worse.size === 0) return innocent
  const [first] = failing
  for (const id of worse) culprits.add(id)
  if (tooMany) {
    for (const node of failing) {
      // Nothing shows which change made an agent end, hang or wait: all of them are under suspicion.
      const isAny = node.crashed || node.stuck || onlyWaits(node)
      for (const id of isAny ? suspects : node.failed) if (suspects.has(id)) culprits.add(id)
    }
  }
  if (first === undefined) {
    const why = 'events fail or are lost more than twice as often as where the version before runs'
    return { culprits, why, isWaiting: false, reasons: new Map() }
  }
  const said = first.reason === undefined || first.reason === '' ? '' : `: ${brief(first.reason)}`
  const what = first.crashed
    ? `the agent on ${first.node} ended`
    : first.stuck
      ? `the agent on ${first.node} takes too long to load it${said}`
      : onlyWaits(first)
        ? `the agent on ${first.node} has waited for more than ${counted(maxWaitMs / 60_000, 'minute')} and cannot load it${said}`
        : `the agent on ${first.node} could not put it in force`
  const count = countedOf(failing.length, chosen.length, 'agent', 'failed', 'failed')
  const reasons = new Map<string, string>()
  for (const { node, failures } of failing) {
    for (const failure of failures) {
      const { pipeline, component, message } = failure
      if (!culprits.has(pipeline) || reasons.has(pipeline)) continue
      const place = component === undefined ? '' : `${component}: `
      reasons.set(pipeline, `${count}: the agent on ${node} could not put it in force: ${place}${brief(message)}`)
    }
  }
  return { culprits, why: `${count}: ${what}`, isWaiting: tooMany && failing.every(onlyWaits), reasons }
}

/** The part of an agent's message that is kept in an annotation beside those of other Pipelines. */
const maxSaid = 256

/** Words of an agent as the end of a sentence. */
const brief = (text: string) => text.slice(0, maxSaid).replace(/\.$/, '')

/** Number of chosen agents that are alive and do not run the candidate yet. */
function waitingFor({ nodes }: Observation, candidate: TriedRevision): number {
  return nodes.filter((node) => takesCandidate(candidate, node.node) && !node.stale && node.revision !== candidate.rev)
    .length
}

function advance(seen: Observation, candidate: TriedRevision): Decision {
  const { now, policy } = seen
  if (policy.paused) return { action: 'none', why: 'The rollout is paused.' }
  const waiting = waitingFor(seen, candidate)
  if (waiting > 0) return { action: 'none', why: `It waits for ${counted(waiting, 'agent')} to load it.` }
  const alive = seen.nodes.filter(({ stale }) => !stale)
  // All that were chosen are lost: others try it.
  if (alive.length > 0 && !alive.some(({ node }) => takesCandidate(candidate, node))) return begin(seen)
  // The first share is watched as a canary, and so are all where they got it at once.
  const isCanary = (candidate.percent < 100 || seen.triesArrivals === true) && candidate.step === 0
  const bakeMs = policy.canary !== null && (isAtOnce(seen) || isCanary) ? policy.canary.bakeMs : policy.step.bakeMs
  if (candidate.since === undefined) return { action: 'watch', waitMs: bakeMs }
  const leftMs = candidate.since + bakeMs - now
  if (leftMs > 0) return { action: 'none', waitMs: leftMs, why: 'It is being watched.' }
  if (candidate.percent >= 100) return { action: 'promote' }
  return { action: 'step', percent: Math.min(100, candidate.percent + policy.step.percent) }
}
