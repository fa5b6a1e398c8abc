// Decides whether agents fail because of the tried changes, and because of which of them. Pure.

import { takesCandidate } from '@penstock/agent/bundle'
import { counted, countedOf } from '@penstock/agent/program'
import type { AgentNode, Observation, TriedRevision } from './rollout-plan.ts'

/** An agent that has reported for this long that it waits for parts of the candidate will not receive them. */
export const maxWaitMs = 120_000

export interface Judgement {
  readonly culprits: ReadonlySet<string>
  readonly why: string
  /** Whether each culprit is known to be harmful; otherwise at least one of them is. */
  readonly isNamed: boolean
  /** Whether the cause may also be new Pipelines: other agents run them unharmed, but perhaps without the lines that end this one. */
  readonly isDoubtful: boolean
  readonly reasons: ReadonlyMap<string, string>
}

const innocent: Judgement = { culprits: new Set(), why: '', isNamed: true, isDoubtful: false, reasons: new Map() }

/** Whether an agent lacks the candidate's version of one of these pipelines; without `ids`, of any changed pipeline. */
export function isWithout(node: AgentNode, candidate: TriedRevision, ids?: ReadonlySet<string>): boolean {
  if (node.revision === candidate.rev) return false
  if (node.lacks === undefined || ids === undefined) return true
  for (const id of ids) if (node.lacks.has(id)) return true
  return false
}

/** Whether a live agent has the candidate that did not end repeatedly before the trial. */
export function isAnySteady(nodes: readonly AgentNode[], candidate: TriedRevision): boolean {
  return nodes.some(({ isUnsteady, stale, node }) => isUnsteady !== true && !stale && takesCandidate(candidate, node))
}

/**
 * Whether the state of a chosen agent is evidence about the candidate. An agent that ended repeatedly before the trial would also end
 * without the candidate, so it only counts if no steady agent has the candidate.
 */
export function isEvidence({ isUnsteady }: AgentNode, isSteadyChosen: boolean): boolean {
  return isUnsteady !== true || !isSteadyChosen
}

/** The changes because of which more agents fail than the policy allows. */
export function judge(seen: Observation, candidate: TriedRevision): Judgement {
  const { now, policy, changed, worse, added, nodes } = seen
  const chosen = nodes.filter(({ node, isLater }) => isLater === true || takesCandidate(candidate, node))
  const suspects = new Set([...changed, ...(added ?? [])])
  const onlyWaits = (node: AgentNode) =>
    node.waitingSince !== undefined && !node.stale && isWithout(node, candidate) && now - node.waitingSince >= maxWaitMs
  const fails = (node: AgentNode) =>
    [...node.failed].filter((id) => suspects.has(id) && !isWithout(node, candidate, new Set([id])))
  const isSteadyChosen = isAnySteady(nodes, candidate)
  const isEnded = (node: AgentNode) => node.crashed && isEvidence(node, isSteadyChosen)
  const isAny = (node: AgentNode) => node.isLater !== true && (isEnded(node) || node.stuck || onlyWaits(node))
  const failing = chosen.filter((node) => isAny(node) || fails(node).length > 0)
  const tooMany = (failing.length * 100) / Math.max(1, chosen.length) > policy.maxFailedPercent
  if (!tooMany && worse.size === 0) return innocent
  const named = new Set([...worse, ...(tooMany ? failing.filter((node) => !isAny(node)).flatMap(fails) : [])])
  const isNamed = named.size > 0
  const culprits = new Set(named)
  // It is unknown which change made an agent end, hang or wait, so all changes that it was loading are suspects.
  const harmless = isNamed ? new Set<string>() : harmlessOf(seen, candidate, failing)
  const isDoubtful = harmless.size > 0
  if (!isNamed) {
    const possible = suspects.difference(harmless)
    for (const node of failing) for (const id of suspectsOf(node, possible, changed)) culprits.add(id)
  }
  const first = failing.find((node) => isAny(node) !== isNamed)
  if (first === undefined) {
    return { culprits, why: losesMore, isNamed, isDoubtful, reasons: lossesIn(seen) }
  }
  const detail = first.reason === undefined || first.reason === '' ? '' : `: ${brief(first.reason)}`
  const what = isEnded(first)
    ? `the agent on ${first.node} ended`
    : first.stuck
      ? `the agent on ${first.node} takes too long to load it${detail}`
      : onlyWaits(first)
        ? `the agent on ${first.node} has waited for more than ${counted(maxWaitMs / 60_000, 'minute')} and cannot load it${detail}`
        : `the agent on ${first.node} could not activate it`
  const count = countedOf(failing.length, chosen.length, 'agent', 'failed', 'failed')
  const reasons = new Map<string, string>()
  for (const { node, failures } of failing) {
    for (const failure of failures) {
      const { pipeline, component, message } = failure
      if (!culprits.has(pipeline) || reasons.has(pipeline)) continue
      const place = component === undefined ? '' : `${component}: `
      reasons.set(pipeline, `${count}: the agent on ${node} could not activate it: ${place}${brief(message)}`)
    }
  }
  for (const [id, reason] of lossesIn(seen)) if (!reasons.has(id)) reasons.set(id, reason)
  return { culprits, why: `${count}: ${what}`, isNamed, isDoubtful, reasons }
}

const losesMore = 'events fail or are lost more than twice as often as under the previous version'

/** For each Pipeline that loses events, the component and the node with the last error. */
function lossesIn({ worse, lossCauses }: Observation): Map<string, string> {
  const reasons = new Map<string, string>()
  for (const id of worse) {
    const cause = lossCauses?.get(id)
    if (cause !== undefined) reasons.set(id, `${losesMore}: ${brief(cause)}`)
  }
  return reasons
}

/**
 * The added Pipelines that are probably not the cause: at least as many agents without the candidate run without a failure: the failing agents share the
 * candidate, so the cause is in it. If a failing agent reads logs for the Pipeline, or this is unknown, only agents that do so count.
 */
function harmlessOf(
  { stable, changed, added, nodes }: Observation,
  candidate: TriedRevision,
  failing: readonly AgentNode[],
): Set<string> {
  const healthy = nodes.filter(
    (node) =>
      !takesCandidate(candidate, node.node) && node.isLater !== true && node.revision === stable && isUnharmed(node),
  )
  const isHarmless = (id: string) => {
    const isRead = failing.some(({ reads }) => reads === undefined || reads.has(id))
    const proofs = isRead ? healthy.filter(({ reads }) => reads?.has(id)) : healthy
    return !changed.has(id) && proofs.length >= failing.length
  }
  return new Set([...(added ?? [])].filter(isHarmless))
}

/** Whether an agent neither ended nor hangs, and has run for long enough to say something about its content. */
export const isSettled = ({ crashed, stuck, isAway, isFresh }: AgentNode) =>
  !crashed && !stuck && isAway !== true && isFresh !== true

const isUnharmed = (node: AgentNode) => isSettled(node) && !node.stale && node.waitingSince === undefined

/** Any change may have ended an agent. An agent that hangs or waits already runs the changes that it does not lack. */
function suspectsOf(node: AgentNode, suspects: ReadonlySet<string>, changed: ReadonlySet<string>): Iterable<string> {
  const { crashed, lacks } = node
  if (crashed || lacks === undefined || lacks.size === 0) return suspects
  return [...suspects].filter((id) => lacks.has(id) || !changed.has(id))
}

/** Maximum length of an agent's message, because the annotation contains the messages of all Pipelines. */
const maxReported = 256

/** The message of an agent, shortened to end another sentence. */
const brief = (text: string) => text.slice(0, maxReported).replace(/\.$/, '')
