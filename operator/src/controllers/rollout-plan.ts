// Decides the next step of a rollout: a revision is tried on few agents, then on more, then on all, or it is rolled back. Pure: the
// same observation gives the same decision, and time is an argument.

import { bucketOf, type LoadFailure, takesCandidate } from '@penstock/agent/bundle'
import { counted } from '@penstock/agent/program'
import { type AgentSpec, agentDefaults } from '../api/agent.ts'
import { maxAside, mayHalve } from '../fleet/aside.ts'
import { isAnySteady, isEvidence, isSettled, isWithout, type Judgement, judge, maxWaitMs } from './rollout-judge.ts'

export interface RolloutPolicy {
  /** Null: all agents receive a revision at once, with the same rules for a rollback. */
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
  /**
   * The changed pipelines that it does not yet run in the candidate's version; if undefined, its revision decides about all of
   * them.
   */
  readonly lacks?: ReadonlySet<string> | undefined
  /** Ids of the pipelines of its revision that it could not activate. */
  readonly failed: ReadonlySet<string>
  /** The first error message for each of these. */
  readonly failures: readonly LoadFailure[]
  /** Why it waits or hangs, as it reports itself. */
  readonly reason: string | undefined
  /** It takes too long to load its content. */
  readonly stuck: boolean
  /** Since when it has continuously reported, in the candidate's current step, that it waits; in milliseconds since the epoch. */
  readonly waitingSince: number | undefined
  /** It has been silent until the rollout no longer waits for it. */
  readonly stale: boolean
  /** Whether its container exited since the start of the candidate's current step. */
  readonly crashed: boolean
  /** Ids of the pipelines that read logs on this node. */
  readonly reads?: ReadonlySet<string> | undefined
  /** It runs a later candidate with additional changes. Only failures that name a pipeline of this candidate count. */
  readonly isLater?: boolean | undefined
  /** It ended a moment ago, and has not reported since. */
  readonly isAway?: boolean | undefined
  /** The same, perhaps because of changes that have just been rolled back or set aside. */
  readonly isAwayByChange?: boolean | undefined
  /** It ended repeatedly before the trial began. Its ends count only if no other agent has the candidate. */
  readonly isUnsteady?: boolean | undefined
  /** When its last report arrived. */
  readonly heardAt?: number | undefined
  /** Since when its process has reported; undefined: it has not reported yet. */
  readonly runsSince?: number | undefined
  /** It started so recently that it may not have opened all its files. */
  readonly isFresh?: boolean | undefined
}

/** New Pipelines count as active after this time, because an agent may never finish loading them. */
const maxArrivalMs = 300_000

/** If live agents have not loaded a change after this time, the change gives way to waiting ones. */
const maxLoadMs = 300_000
/** The same for changes that have already given way once. */
const maxReloadMs = 60_000

/** The pod of a chosen node that is deleted usually has a successor within this time. */
const maxMissingMs = 90_000

/** The time at which a change joined the trial, and since when all agents of the first step have run it. */
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
  /** When its current step began. */
  readonly stepped?: number | undefined
  /** Changes that joined its first step later, by the id of their pipeline. */
  readonly joined?: ReadonlyMap<string, Joined>
  /** The group of set-aside changes that it tries. */
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
  /** Ids of the changed pipelines that lose events more than twice as often under the candidate. */
  readonly worse: ReadonlySet<string>
  /** For each of these, the component with the most errors, its node and its last error, if known. */
  readonly lossCauses?: ReadonlyMap<string, string> | undefined
  /** Ids of pipelines that all agents recently received without a trial, and that may still be faulty. */
  readonly added?: ReadonlySet<string>
  /** Whether pipelines are only added or removed between the stable and the desired revision. */
  readonly isArrival?: boolean
  /** The same for the stable revision and the candidate. */
  readonly triesArrivals?: boolean
  /** Which changes could continue in place of the candidate: new ones, or only those that were set aside. */
  readonly waits?: 'new' | 'aside' | undefined
  /** Whether changes that leave the candidate may begin a separate trial beside it. */
  readonly maySplit?: boolean | undefined
  /** The candidate that this one is based on. Agents receive this one only after they have loaded its base. */
  readonly base?: { readonly percent: number; readonly salt: string; readonly isLoaded: boolean } | undefined
  readonly nodes: readonly AgentNode[]
  /** Number of pods that the workload is to have: some may be missing while they are replaced. */
  readonly wantedPods?: number | undefined
  /** Whether there may be agents of which nothing is known yet: all pods are being replaced, or unknown pods have not reported yet. */
  readonly isUnheard?: boolean | undefined
  /** How long no chosen node has had a pod; undefined: one has. */
  readonly missingMs?: number | undefined
  /** The salt of the trial in which the changes of this turn were suspected: they are tried on the same agents. */
  readonly salt?: string | undefined
  /** Whether it is in doubt that the changes of this turn ended the agents. */
  readonly isDoubted?: boolean | undefined
}

export type Decision =
  | { readonly action: 'none'; readonly waitMs?: number; readonly why: string }
  /** The desired revision becomes active on all agents. */
  | { readonly action: 'promote' }
  /** The desired revision becomes the candidate. */
  | { readonly action: 'start'; readonly percent: number; readonly salt: string }
  /** `leaves`: changes that joined late and are tried again afterwards. */
  | { readonly action: 'step'; readonly percent: number; readonly leaves?: ReadonlySet<string> }
  /**
   * All selected agents run the candidate, so its bake time begins. `joined` contains the changes that joined later and are now loaded.
   * With `only`, the bake time begins only for these.
   */
  | { readonly action: 'watch'; readonly waitMs: number; readonly joined?: readonly string[]; readonly only?: true }
  /** The candidate is promoted, because something newer waits. */
  | { readonly action: 'settle' }
  /** The candidate is no longer desired. */
  | { readonly action: 'drop' }
  /** Changes are set aside: `halved` if one of them makes agents fail, otherwise because they make no progress. */
  | {
      readonly action: 'aside'
      readonly ids: ReadonlySet<string>
      readonly halved: boolean
      /** Something else may have ended the agents, so they must first run without these changes. */
      readonly doubt?: true
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
    const { isUnheard = false, isArrival = false } = seen
    if (isUnheard && !isArrival) return unheard
    if (!isArrival && nodes.some(({ isAwayByChange }) => isAwayByChange)) return away
    return nodes.length === 0 && !isUnheard ? { action: 'promote' } : begin(seen)
  }
  const judged = judge(seen, candidate)
  if (desired === stable) return { action: 'drop' }
  const { culprits, why } = judged
  if (culprits.size > 0 && seen.policy.autoRollback) return rollBack(seen, candidate, judged)
  if (seen.isUnheard === true && seen.triesArrivals !== true) return unheard
  const room = makeRoom(seen, candidate, judged)
  if (room !== undefined) return room
  if (desired !== candidate.rev) {
    if (isAtOnce(seen)) return begin(seen)
    // All agents have the candidate, so the next rollout starts from it and not from the version before. Changes do not
    // wait for new Pipelines.
    const isOut = isArrived(seen) || waitingFor(seen, candidate, evidenceOf(seen, candidate)) === 0
    if (candidate.percent >= 100 && isOut) return { action: 'settle' }
  }
  if (culprits.size > 0) return { action: 'none', why }
  const isOld = candidate.begun !== undefined && seen.now - candidate.begun >= maxArrivalMs
  if (isOld && candidate.percent >= 100 && isArrived(seen)) return { action: 'settle' }
  return advance(seen, candidate)
}

/** Nothing is decided by reports that do not exist yet. */
const unheard: Decision = { action: 'none', waitMs: 10_000, why: 'It waits for the reports of agents.' }
/** The end of an agent must not count against changes that are tried afterwards. */
const away: Decision = { action: 'none', waitMs: 1000, why: 'It waits for agents that start again.' }

const unproven: Decision = {
  action: 'none',
  waitMs: 5_000,
  why: 'It waits until agents have run for a while without the changes that were set aside.',
}

/** Rolls back only the harmful changes. If these are not known, the suspected changes are tried again in halves. */
function rollBack(seen: Observation, candidate: TriedRevision, judged: Judgement): Decision {
  const { culprits, why, isNamed, isDoubtful, reasons } = judged
  // On agents with several candidates, an earlier candidate may be the cause. A trial without the others shows whether
  // it is.
  const isUncertain = seen.base !== undefined && culprits.size <= maxAside
  // With new Pipelines on the same agents, the change is to blame only if they end without these coincidences: they run for a while without
  // it, and it is tried there again.
  const isFirstEnd = isDoubtful && candidate.turn === undefined && culprits.size <= maxAside
  if (!isNamed && (isUncertain || isFirstEnd || mayHalve(culprits.size, candidate.turn?.group)))
    return { action: 'aside', ids: culprits, halved: true, why, ...(isFirstEnd ? { doubt: true } : {}) }
  return { action: 'abort', culprits, why, ...(reasons.size === 0 ? {} : { reasons }) }
}

/** Sets aside the changes that keep a candidate from progressing, if others are being tried or wait. */
function makeRoom(seen: Observation, candidate: TriedRevision, judged: Judgement): Decision | undefined {
  const { changed, policy, waits } = seen
  if (policy.paused) return undefined
  const failing = new Set([...judged.culprits].filter((id) => changed.has(id)))
  const ids = failing.size > 0 ? failing : lateOf(seen, candidate)
  if (ids.size === 0) return undefined
  const why = failing.size > 0 ? judged.why : `agents have not loaded it for ${counted(maxLoadMs / 60_000, 'minute')}`
  // One of them may delay the others. In a later step, agents have already loaded all of them.
  const isOneOf = failing.size > 0 ? !judged.isNamed : candidate.step === 0
  if (isOneOf && !isMarked(candidate) && mayHalve(ids.size, candidate.turn?.group))
    return { action: 'aside', ids, halved: true, why }
  const hasOthers = waits !== undefined || changed.size > ids.size
  return hasOthers ? { action: 'aside', ids, halved: false, why } : undefined
}

const isMarked = ({ turn }: TriedRevision) => turn?.isBlocked === true

/**
 * The changes that agents have not loaded in time. In a later step, the rollout continues without such agents if they are few.
 */
function lateOf(seen: Observation, candidate: TriedRevision): Set<string> {
  const { now, changed } = seen
  const maxMs = isMarked(candidate) && seen.waits === 'new' ? maxReloadMs : maxLoadMs
  const isLong = (at: number | undefined) => at !== undefined && now - at >= maxMs
  const late = new Set<string>()
  if (seen.triesArrivals === true) return late
  const chosen = evidenceOf(seen, candidate)
  if (candidate.step > 0) {
    if (isLong(candidate.stepped) && waitingFor(seen, candidate, chosen) > 0) for (const id of changed) late.add(id)
    return late
  }
  for (const { ids, at } of clocksOf(seen, candidate))
    if (isLong(at) && waitingFor(seen, candidate, chosen, ids) > 0) for (const id of ids) late.add(id)
  return late
}

/** Whether the candidate contains only new or deleted Pipelines, and no live agent reports that it waits for them. */
function isArrived({ triesArrivals, nodes }: Observation): boolean {
  return triesArrivals === true && !nodes.some(({ waitingSince, stale }) => waitingSince !== undefined && !stale)
}

/** Whether all agents receive a revision at once: the canary is for changes of running Pipelines. */
function isAtOnce({ policy, nodes, wantedPods = 0 }: Observation): boolean {
  return policy.canary === null || policy.canary.percent >= 100 || Math.max(nodes.length, wantedPods) <= 1
}

interface TrialClock {
  readonly ids: ReadonlySet<string>
  readonly at: number | undefined
  readonly since: number | undefined
  /** Whether this is the clock of a change that joined later. */
  readonly isJoined: boolean
}

/** The changes of a candidate's first step, grouped by the begin of their trial and of their bake time. */
function clocksOf({ changed }: Pick<Observation, 'changed'>, candidate: TriedRevision): TrialClock[] {
  const { joined = new Map<string, Joined>(), begun, since } = candidate
  const first = new Set([...changed].filter((id) => !joined.has(id)))
  const later = [...joined].filter(([id]) => changed.has(id))
  const clocks: TrialClock[] = later.map(([id, clock]) => ({ ids: new Set([id]), isJoined: true, ...clock }))
  if (first.size > 0 || clocks.length === 0) clocks.unshift({ ids: first, isJoined: false, at: begun, since })
  return clocks
}

/**
 * Whether a change may join a candidate in its first step, where each change has its own bake time. This is possible until one of
 * them has completed it.
 */
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
 * Whether the next changes may be tried beside these. At least one of these must have completed its bake time, so that later failures
 * point to the newer changes.
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

/** Maximum number of canary choices to compare. */
const maxSalts = 32

function begin(seen: Observation): Decision {
  const { now, policy, desired, base, nodes } = seen
  const salt = base?.salt ?? seen.salt ?? desired.slice(0, 12)
  const maxPercent = base?.percent ?? 100
  const { canary } = policy
  if (canary === null || seen.isArrival === true || isAtOnce(seen))
    return { action: 'start', percent: maxPercent, salt }
  // A lost agent cannot test a change, and one that ended before it says little about it.
  const all = nodes.filter(({ stale }) => !stale)
  const steady = all.filter(({ isUnsteady }) => isUnsteady !== true)
  const alive = steady.length > 0 ? steady : all
  // A percentage that selects no agent would test nothing, and the trial would restart forever.
  const minNodes = Math.min(Math.max(1, canary.minNodes), alive.length)
  const choice = (name: string) => {
    const buckets = alive.map(({ node }) => bucketOf(name, node)).sort((left, right) => left - right)
    const enough = minNodes === 0 ? 0 : (buckets[minNodes - 1] as number) + 1
    return { salt: name, percent: Math.min(maxPercent, Math.max(canary.percent, enough)) }
  }
  const first = choice(salt)
  // Agents that ended with these changes must first run without them, for as long as they would be observed with them.
  const isUnproven = ({ node, runsSince = now, isAway }: AgentNode) =>
    takesCandidate(first, node) && (isAway === true || now - runsSince < canary.bakeMs)
  if (seen.isDoubted === true && alive.some(isUnproven)) return unproven
  if (base !== undefined || seen.salt !== undefined) return { action: 'start', ...first }
  // An agent without lines for a change hardly tests it.
  const read = new Set([...(seen.starts ?? [])].filter((id) => alive.some(({ reads }) => reads?.has(id))))
  let best = { ...first, covered: coveredBy(first, read, alive) }
  for (let turn = 1; best.covered < read.size && turn < maxSalts; turn++) {
    const other = choice(`${salt}${turn}`)
    const covered = coveredBy(other, read, alive)
    if (covered > best.covered) best = { ...other, covered }
  }
  return { action: 'start', percent: best.percent, salt: best.salt }
}

/** The number of these pipelines for which some chosen agent reads logs. */
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
  const alive = nodes.filter(({ stale, isUnsteady }) => !stale && isUnsteady !== true)
  const chosen = alive.filter(({ node }) => takesCandidate(candidate, node))
  // Another agent must not receive what may just have ended, hung or failed on one of them, even if this process has not heard of it yet.
  const isInTrouble = (node: AgentNode) =>
    !isSettled(node) || node.revision === undefined || !node.failed.isDisjointFrom(changed)
  if (chosen.some(isInTrouble)) return also
  const covered = new Set(chosen.flatMap(({ reads }) => [...(reads ?? [])]))
  const byPercent = chosen.length - also.length
  const room = Math.floor((alive.length * ((canary?.percent ?? 0) + step.percent)) / 100) - byPercent
  const maxReaders = Math.min(Math.max(minReaders, byPercent), room)
  for (const id of [...changed].sort()) {
    if (also.length >= maxReaders) break
    if (covered.has(id)) continue
    const bucket = ({ node }: AgentNode) => bucketOf(candidate.salt, node)
    const [reader] = alive.filter(({ reads }) => reads?.has(id)).sort((left, right) => bucket(left) - bucket(right))
    if (reader === undefined) continue
    also.push(reader.node)
    for (const each of reader.reads ?? []) covered.add(each)
  }
  return also
}

/**
 * The number of agents that do not run the candidate yet, or not these of its changes.
 * @param chosen from `evidenceOf`, which visits all agents; there may be hundreds of changes
 */
function waitingFor(
  seen: Observation,
  candidate: TriedRevision,
  chosen: readonly AgentNode[],
  ids?: ReadonlySet<string>,
): number {
  const waiting = chosen.filter((node) => isWithout(node, candidate, ids)).length
  // Agents of the previous step already run it. If other changes wait, the rollout does not wait for a few agents that
  // fail to load it.
  const isLong = candidate.stepped !== undefined && seen.now - candidate.stepped >= maxLoadMs
  return candidate.step > 0 && isLong && seen.waits !== undefined && waiting * 2 <= chosen.length ? 0 : waiting
}

/**
 * Number of chosen agents that have not reported since their bake time began. An agent that ended just after it loaded the candidate is
 * among them, even if the kubelet has not counted its end yet.
 */
function quietSince(chosen: readonly AgentNode[], clocks: readonly Pick<TrialClock, 'since'>[]): number {
  const since = Math.max(...clocks.map((clock) => clock.since ?? 0))
  return chosen.filter(({ heardAt }) => heardAt !== undefined && heardAt < since).length
}

/** The live chosen agents whose state is evidence about the candidate. */
function evidenceOf({ nodes }: Observation, candidate: TriedRevision): AgentNode[] {
  const isSteadyChosen = isAnySteady(nodes, candidate)
  return nodes.filter((each) => !each.stale && takesCandidate(candidate, each.node) && isEvidence(each, isSteadyChosen))
}

function advance(seen: Observation, candidate: TriedRevision): Decision {
  const { now, policy } = seen
  if (policy.paused) return { action: 'none', why: 'The rollout is paused.' }
  const alive = seen.nodes.filter(({ stale }) => !stale)
  // All chosen agents are lost, so other agents try it.
  if (alive.length > 0 && !alive.some(({ node }) => takesCandidate(candidate, node))) {
    const isReplaced = seen.missingMs !== undefined && seen.missingMs < maxMissingMs
    if (seen.base !== undefined || isReplaced) return { action: 'none', why: 'It waits for its agents.' }
    return begin(seen)
  }
  // The first group is watched like a canary, and so are all agents if they received the revision at once.
  const isCanary = (candidate.percent < 100 || seen.triesArrivals === true) && candidate.step === 0
  const bakeMs = policy.canary !== null && (isAtOnce(seen) || isCanary) ? policy.canary.bakeMs : policy.step.bakeMs
  const chosen = evidenceOf(seen, candidate)
  const clocks = clocksOf(seen, candidate).map((clock) => {
    const waiting = waitingFor(
      seen,
      candidate,
      chosen,
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
  const quiet = quietSince(chosen, clocks)
  if (quiet > 0)
    return { action: 'none', waitMs: 1000, why: `It waits for ${counted(quiet, 'agent')} to report again.` }
  const { base } = seen
  const maxPercent = base?.percent ?? 100
  if (base !== undefined && (candidate.percent >= maxPercent || !base.isLoaded))
    return { action: 'none', why: 'It only goes to agents that have loaded the changes before it.' }
  if (candidate.percent >= 100) return { action: 'promote' }
  const leaves = new Set(late.flatMap(({ ids }) => [...ids]))
  const percent = Math.min(maxPercent, candidate.percent + policy.step.percent)
  return { action: 'step', percent, ...(leaves.size > 0 ? { leaves } : {}) }
}

/**
 * Whether waiting for changes that joined late would take longer than trying them again after the others, or beside them.
 */
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
