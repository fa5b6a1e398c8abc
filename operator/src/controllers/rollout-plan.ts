// The path of a new revision: tried on few agents, then on more, then on all, or reverted. Pure: the same observation gives the same
// decision, and time is an argument.

import { bucketOf, type LoadFailure, takesCandidate } from '@penstock/agent/bundle'
import { counted } from '@penstock/agent/program'
import { type AgentSpec, agentDefaults } from '../api/agent.ts'
import { maxAside, mayHalve } from '../fleet/aside.ts'
import { isWithout, type Judgement, judge, maxWaitMs } from './rollout-judge.ts'

export interface RolloutPolicy {
  /** Null: all at once, with the same rollback rules. */
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
 * Parses `1m30s` to milliseconds: durations in resources, already checked by their schema. Flags have another format, with fractions
 * and plain seconds, and are checked when they are parsed.
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
  /** Of the changed pipelines, those that it does not run as the candidate has them; undefined: all or none, by its revision. */
  readonly lacks?: ReadonlySet<string> | undefined
  /** Ids of the pipelines of its revision that it could not put in force. */
  readonly failed: ReadonlySet<string>
  /** The first error message for these. */
  readonly failures: readonly LoadFailure[]
  /** Why it waits or hangs, by its own report. */
  readonly reason: string | undefined
  /** It takes too long to load its content. */
  readonly stuck: boolean
  /** Since when it has continuously reported, in the candidate's current step, that it waits; in milliseconds since the epoch. */
  readonly waitingSince: number | undefined
  /** It has been silent for too long to wait for it. */
  readonly stale: boolean
  /** Whether its container exited since the start of the candidate's current step. */
  readonly crashed: boolean
  /** Ids of the pipelines that read logs on it. */
  readonly reads?: ReadonlySet<string> | undefined
  /** It runs a later candidate, with further changes: only failures that name a pipeline of this one count. */
  readonly isLater?: boolean | undefined
}

/** New Pipelines count as active after this time, because an agent may never finish loading them. */
const maxArrivalMs = 300_000

/** Changes that live agents do not load for this long give way to others that wait. */
const maxLoadMs = 300_000
/** The same of changes that gave way before. */
const maxReloadMs = 60_000

/** When a change joined those that are tried, and since when all agents of the first step have run it. */
export interface Joined {
  readonly at: number
  readonly since: number | undefined
}

export interface TriedRevision {
  readonly rev: string
  readonly percent: number
  readonly salt: string
  readonly also?: readonly string[] | undefined
  /** 0 for the canaries. */
  readonly step: number
  /** Since when all agents of the current step have run it, in milliseconds since the epoch; undefined before. */
  readonly since: number | undefined
  /** When it was first tried. */
  readonly begun?: number | undefined
  /** When its present step began. */
  readonly stepped?: number | undefined
  /** Changes that joined its first step later, by the id of their pipeline. */
  readonly joined?: ReadonlyMap<string, Joined>
  /** The group of changes that were set aside which it tries. */
  readonly turn?: { readonly group: string; readonly isBlocked: boolean } | undefined
}

export interface Observation {
  readonly now: number
  readonly policy: RolloutPolicy
  readonly stable: string | undefined
  readonly candidate: TriedRevision | undefined
  /** The desired revision. */
  readonly desired: string
  /** Ids of the pipelines that differ between the candidate and the stable revision. */
  readonly changed: ReadonlySet<string>
  /** Ids of the pipelines that a rollout which begins now would change. */
  readonly starts?: ReadonlySet<string> | undefined
  /** The changed ones that lose events more than twice as often under the candidate. */
  readonly worse: ReadonlySet<string>
  /** Ids of pipelines that all agents recently received without a trial, and that may still be faulty. */
  readonly added?: ReadonlySet<string>
  /** Whether pipelines are only added or removed between the stable and the desired revision. */
  readonly isArrival?: boolean
  /** The same for the stable revision and the candidate. */
  readonly triesArrivals?: boolean
  /** Whether changes that the candidate does not try would go on in its place: new ones, or any that are set aside. */
  readonly waits?: 'new' | 'aside' | undefined
  /** Whether changes that leave the candidate may begin a trial beside it. */
  readonly maySplit?: boolean | undefined
  /** The candidate that this one is based on: it goes to no agents that have not loaded that one. */
  readonly base?: { readonly percent: number; readonly salt: string; readonly isLoaded: boolean } | undefined
  readonly nodes: readonly AgentNode[]
}

export type Decision =
  | { readonly action: 'none'; readonly waitMs?: number; readonly why: string }
  /** The desired revision becomes active on all agents. */
  | { readonly action: 'promote' }
  /** The desired revision becomes the candidate. */
  | { readonly action: 'start'; readonly percent: number; readonly salt: string }
  /** `leaves`: changes that joined late; they are tried again afterwards. */
  | { readonly action: 'step'; readonly percent: number; readonly leaves?: ReadonlySet<string> }
  /**
   * Everybody who was chosen runs the candidate: from now on it is watched. `joined`: these changes that joined it, and `only`: no others.
   */
  | { readonly action: 'watch'; readonly waitMs: number; readonly joined?: readonly string[]; readonly only?: true }
  /** The candidate is promoted, because something newer waits. */
  | { readonly action: 'settle' }
  /** The candidate is no longer desired. */
  | { readonly action: 'drop' }
  /** Changes make room for others: `halved` if agents fail by one of them, otherwise because they do not go on. */
  | {
      readonly action: 'aside'
      readonly ids: ReadonlySet<string>
      readonly halved: boolean
      readonly why: string
    }
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
  const { culprits, why } = judged
  if (culprits.size > 0 && seen.policy.autoRollback) return takeBack(seen, candidate, judged)
  const room = makeRoom(seen, candidate, judged)
  if (room !== undefined) return room
  if (desired !== candidate.rev) {
    if (isAtOnce(seen)) return begin(seen)
    // Everybody has it, and going back to what was before it would be a step backwards. No change waits for new Pipelines.
    const isOut = isArrived(seen) || waitingFor(seen, candidate) === 0
    if (candidate.percent >= 100 && isOut) return { action: 'settle' }
  }
  if (culprits.size > 0) return { action: 'none', why }
  const isOld = candidate.begun !== undefined && seen.now - candidate.begun >= maxArrivalMs
  if (isOld && candidate.percent >= 100 && isArrived(seen)) return { action: 'settle' }
  return advance(seen, candidate)
}

/** Only what did the harm is taken back. Where nothing shows which change that was, they are tried again in halves. */
function takeBack(seen: Observation, candidate: TriedRevision, judged: Judgement): Decision {
  const { culprits, why, isNamed, reasons } = judged
  // On agents that run several candidates, an earlier one may be the cause: a trial without the others shows it.
  const isUncertain = seen.base !== undefined && culprits.size <= maxAside
  if (!isNamed && (isUncertain || mayHalve(culprits.size, candidate.turn?.group)))
    return { action: 'aside', ids: culprits, halved: true, why }
  return { action: 'abort', culprits, why, ...(reasons.size === 0 ? {} : { reasons }) }
}

/** Changes by which a candidate does not go on make room for others, which are tried or wait. */
function makeRoom(seen: Observation, candidate: TriedRevision, judged: Judgement): Decision | undefined {
  const { changed, policy, waits } = seen
  if (policy.paused) return undefined
  const failing = new Set([...judged.culprits].filter((id) => changed.has(id)))
  const ids = failing.size > 0 ? failing : lateOf(seen, candidate)
  if (ids.size === 0) return undefined
  const why = failing.size > 0 ? judged.why : `agents have not loaded it for ${counted(maxLoadMs / 60_000, 'minute')}`
  // One of them may hold up the others. Those of a later step have been loaded before.
  const isOneOf = failing.size > 0 ? !judged.isNamed : candidate.step === 0
  if (isOneOf && !isMarked(candidate) && mayHalve(ids.size, candidate.turn?.group))
    return { action: 'aside', ids, halved: true, why }
  const hasOthers = waits !== undefined || changed.size > ids.size
  return hasOthers ? { action: 'aside', ids, halved: false, why } : undefined
}

const isMarked = ({ turn }: TriedRevision) => turn?.isBlocked === true

/** Changes that agents have had for too long without loading them. In a later step, few such agents are passed over instead. */
function lateOf(seen: Observation, candidate: TriedRevision): Set<string> {
  const { now, changed } = seen
  const most = isMarked(candidate) && seen.waits === 'new' ? maxReloadMs : maxLoadMs
  const isLong = (at: number | undefined) => at !== undefined && now - at >= most
  const late = new Set<string>()
  if (seen.triesArrivals === true) return late
  if (candidate.step > 0) {
    if (isLong(candidate.stepped) && waitingFor(seen, candidate) > 0) for (const id of changed) late.add(id)
    return late
  }
  for (const { ids, at } of clocksOf(seen, candidate))
    if (isLong(at) && waitingFor(seen, candidate, ids) > 0) for (const id of ids) late.add(id)
  return late
}

/** Whether nothing but arrivals is tried, and no agent has yet to show by waiting whether it can load them. */
function isArrived({ triesArrivals, nodes }: Observation): boolean {
  return triesArrivals === true && !nodes.some(({ waitingSince, stale }) => waitingSince !== undefined && !stale)
}

/** Whether all agents receive a revision at once: the canary is for changes of running Pipelines. */
function isAtOnce({ policy, nodes }: Observation): boolean {
  return policy.canary === null || policy.canary.percent >= 100 || nodes.length <= 1
}

interface TrialClock {
  readonly ids: ReadonlySet<string>
  readonly at: number | undefined
  readonly since: number | undefined
  /** Whether it is that of changes that joined later. */
  readonly isJoined: boolean
}

/** The changes of a candidate's first step, by when they began and since when they have been watched. */
function clocksOf({ changed }: Pick<Observation, 'changed'>, candidate: TriedRevision): TrialClock[] {
  const { joined = new Map<string, Joined>(), begun, since } = candidate
  const first = new Set([...changed].filter((id) => !joined.has(id)))
  const later = [...joined].filter(([id]) => changed.has(id))
  const clocks: TrialClock[] = later.map(([id, clock]) => ({ ids: new Set([id]), isJoined: true, ...clock }))
  if (first.size > 0 || clocks.length === 0) clocks.unshift({ ids: first, isJoined: false, at: begun, since })
  return clocks
}

/** Whether a change may join a candidate on its first agents, where each has a bake of its own: until one of them has passed it. */
export function mayJoin(
  candidate: TriedRevision,
  { canary, paused }: RolloutPolicy,
  changed: ReadonlySet<string>,
  now: number,
): boolean {
  if (candidate.step > 0 || candidate.percent >= 100 || candidate.begun === undefined || canary === null) return false
  if (candidate.turn !== undefined) return false
  const isOver = ({ since }: TrialClock) => since !== undefined && now - since >= canary.bakeMs
  return paused || !clocksOf({ changed }, candidate).some(isOver)
}

/**
 * Whether the next changes may be tried beside these: they have passed the bake of one of them at least, so that an agent which fails from
 * then on fails by the newer ones.
 */
export function mayFollow(
  candidate: TriedRevision,
  { canary }: RolloutPolicy,
  changed: ReadonlySet<string>,
  now: number,
) {
  if (canary === null || candidate.percent >= 100) return false
  if (candidate.step > 0) return true
  if (candidate.turn !== undefined) return false
  return clocksOf({ changed }, candidate).some(({ since }) => since !== undefined && now - since >= canary.bakeMs)
}

/** Choices of canaries that are compared. */
const maxSalts = 32

function begin(seen: Observation): Decision {
  const { policy, desired, base, nodes } = seen
  const salt = base?.salt ?? desired.slice(0, 12)
  const most = base?.percent ?? 100
  const { canary } = policy
  if (canary === null || seen.isArrival === true || isAtOnce(seen)) return { action: 'start', percent: most, salt }
  // A lost agent would try nothing.
  const alive = nodes.filter(({ stale }) => !stale)
  // A percentage that selects no agent would try nothing, and restart forever.
  const least = Math.min(Math.max(1, canary.minNodes), alive.length)
  const choice = (name: string) => {
    const buckets = alive.map(({ node }) => bucketOf(name, node)).sort((left, right) => left - right)
    const enough = least === 0 ? 0 : (buckets[least - 1] as number) + 1
    return { salt: name, percent: Math.min(most, Math.max(canary.percent, enough)) }
  }
  const first = choice(salt)
  if (base !== undefined) return { action: 'start', ...first }
  // Without lines, a change is hardly tried.
  const read = new Set([...(seen.starts ?? [])].filter((id) => alive.some(({ reads }) => reads?.has(id))))
  let best = { ...first, covered: coveredBy(first, read, alive) }
  for (let turn = 1; best.covered < read.size && turn < maxSalts; turn++) {
    const other = choice(`${salt}${turn}`)
    const covered = coveredBy(other, read, alive)
    if (covered > best.covered) best = { ...other, covered }
  }
  return { action: 'start', percent: best.percent, salt: best.salt }
}

/** Number of these pipelines that chosen agents read logs for. */
function coveredBy(
  choice: { readonly percent: number; readonly salt: string },
  ids: ReadonlySet<string>,
  alive: readonly AgentNode[],
): number {
  if (ids.size === 0) return 0
  const covered = new Set<string>()
  for (const { node, reads } of alive)
    if (takesCandidate(choice, node)) for (const id of reads ?? []) if (ids.has(id)) covered.add(id)
  return covered.size
}

/** At least so many agents may be chosen because they read logs for a change. */
const minReaders = 3

/**
 * The agents of a first step that are chosen because none of the others reads logs for one of the changes. At most as many as the
 * percentage chooses, and never more than the next step would; and none while a chosen one is in trouble.
 */
export function readersFor(
  candidate: Pick<TriedRevision, 'percent' | 'salt' | 'also'>,
  changed: ReadonlySet<string>,
  nodes: readonly AgentNode[],
  { canary, step }: RolloutPolicy,
): readonly string[] {
  const also = [...(candidate.also ?? [])]
  const alive = nodes.filter(({ stale }) => !stale)
  const chosen = alive.filter(({ node }) => takesCandidate(candidate, node))
  // Another agent must not receive what may just have ended, hung or failed on one of them.
  if (chosen.some(({ crashed, stuck, failed }) => crashed || stuck || !failed.isDisjointFrom(changed))) return also
  const covered = new Set(chosen.flatMap(({ reads }) => [...(reads ?? [])]))
  const byPercent = chosen.length - also.length
  const room = Math.floor((alive.length * ((canary?.percent ?? 0) + step.percent)) / 100) - byPercent
  const most = Math.min(Math.max(minReaders, byPercent), room)
  for (const id of [...changed].sort()) {
    if (also.length >= most) break
    if (covered.has(id)) continue
    const bucket = ({ node }: AgentNode) => bucketOf(candidate.salt, node)
    const [reader] = alive.filter(({ reads }) => reads?.has(id)).sort((left, right) => bucket(left) - bucket(right))
    if (reader === undefined) continue
    also.push(reader.node)
    for (const each of reader.reads ?? []) covered.add(each)
  }
  return also
}

/** Number of chosen agents that are alive and do not run the candidate yet, or these of its changes. */
function waitingFor(seen: Observation, candidate: TriedRevision, ids?: ReadonlySet<string>): number {
  const chosen = seen.nodes.filter(({ node, stale }) => !stale && takesCandidate(candidate, node))
  const waiting = chosen.filter((node) => isWithout(node, candidate, ids)).length
  // Agents have run it in the step before. Few that do not load it hold up nothing that others wait for.
  const isLong = candidate.stepped !== undefined && seen.now - candidate.stepped >= maxLoadMs
  return candidate.step > 0 && isLong && seen.waits !== undefined && waiting * 2 <= chosen.length ? 0 : waiting
}

function advance(seen: Observation, candidate: TriedRevision): Decision {
  const { now, policy } = seen
  if (policy.paused) return { action: 'none', why: 'The rollout is paused.' }
  const alive = seen.nodes.filter(({ stale }) => !stale)
  // All selected agents are lost: others try it.
  if (alive.length > 0 && !alive.some(({ node }) => takesCandidate(candidate, node))) {
    if (seen.base !== undefined) return { action: 'none', why: 'It waits for its agents.' }
    return begin(seen)
  }
  // The first group is observed like a canary; so are all agents if they received it at once.
  const isCanary = (candidate.percent < 100 || seen.triesArrivals === true) && candidate.step === 0
  const bakeMs = policy.canary !== null && (isAtOnce(seen) || isCanary) ? policy.canary.bakeMs : policy.step.bakeMs
  const clocks = clocksOf(seen, candidate).map((clock) => {
    const waiting = waitingFor(
      seen,
      candidate,
      clock.isJoined || (candidate.joined?.size ?? 0) > 0 ? clock.ids : undefined,
    )
    return { ...clock, waiting, leftMs: clock.since === undefined || waiting > 0 ? bakeMs : clock.since + bakeMs - now }
  })
  const loaded = clocks.filter(({ waiting, since }) => waiting === 0 && since === undefined)
  if (loaded.length > 0) {
    const joined = loaded.flatMap(({ isJoined, ids }) => (isJoined ? [...ids] : []))
    const only = loaded.every(({ isJoined }) => isJoined)
    return { action: 'watch', waitMs: bakeMs, ...(joined.length > 0 ? { joined } : {}), ...(only ? { only } : {}) }
  }
  const late = clocks.filter(({ leftMs }) => leftMs > 0)
  if (late.length > 0 && (late.length === clocks.length || !isSlower(late, candidate, seen))) {
    const waiting = Math.max(...late.map((clock) => clock.waiting))
    const waitMs = Math.min(...late.map(({ leftMs }) => leftMs))
    if (waiting > 0) return { action: 'none', why: `It waits for ${counted(waiting, 'agent')} to load it.` }
    return { action: 'none', waitMs, why: 'It is being watched.' }
  }
  const { base } = seen
  const most = base?.percent ?? 100
  if (base !== undefined && (candidate.percent >= most || !base.isLoaded))
    return { action: 'none', why: 'It goes to no agents that have not loaded the changes before it.' }
  if (candidate.percent >= 100) return { action: 'promote' }
  const leaves = new Set(late.flatMap(({ ids }) => [...ids]))
  const percent = Math.min(most, candidate.percent + policy.step.percent)
  return { action: 'step', percent, ...(leaves.size > 0 ? { leaves } : {}) }
}

/** Whether it takes longer to wait for changes that joined late than to try them again, after the others or beside them. */
function isSlower(
  late: readonly (TrialClock & { readonly leftMs: number; readonly waiting: number })[],
  { percent }: TriedRevision,
  { now, policy, maySplit }: Observation,
): boolean {
  const stepsMs = Math.ceil((100 - percent) / policy.step.percent) * policy.step.bakeMs
  return late.some(({ leftMs, waiting, at = now }) => {
    const triedMs = now - at
    if (waiting > 0 && triedMs >= maxWaitMs) return true
    return leftMs > triedMs + (maySplit === true ? triedMs : stepsMs)
  })
}
