// Determines which pods of an Agent count for the status of its Pipelines. Pods start and get lost all the time, which says nothing
// about a Pipeline, so these pods are counted separately from serving ones. Pure, except for the memory of `Standstill`.

import { countedOf } from '@penstock/agent/program'
import { type Condition, conditionOf } from '../api/conditions.ts'
import type { Report } from './state.ts'

/**
 * `serving`: it runs the content of the Agent. `starting`: it has started recently and has not loaded the active content yet. `lost`:
 * it has been silent for too long.
 */
export type ServingState = 'serving' | 'starting' | 'lost'

/** An agent that still runs no active revision this long after its start counts as serving. */
export const startingMs = 120_000

/** @param inForce revisions that the Agent runs */
export function servingStateOf(
  report: Pick<Report, 'revision' | 'hasServed' | 'heardSince'> | undefined,
  isLost: boolean,
  inForce: readonly string[],
  now: number,
): ServingState {
  if (isLost) return 'lost'
  if (report === undefined) return 'starting'
  const hasServed = report.hasServed || (report.revision !== undefined && inForce.includes(report.revision))
  return hasServed || now - report.heardSince >= startingMs ? 'serving' : 'starting'
}

/** The number of an Agent's pods in each state. */
export interface Turnout {
  readonly serving: number
  readonly starting: number
  readonly lost: number
}

export function turnoutOf(states: Iterable<ServingState>): Turnout {
  const counts = { serving: 0, starting: 0, lost: 0 }
  for (const state of states) counts[state]++
  return counts
}

/** The numbers of pods of several Agents, and how many of the pods run a Pipeline. */
export interface Share extends Turnout {
  readonly current: number
  /** Pods that run an earlier version of it. */
  readonly earlier: number
}

/**
 * Where the newest version of a Pipeline is active. `before`: no pod runs it, but some run an earlier version. `unheard`: there are pods, but
 * none of them serves.
 */
export type Extent = 'everywhere' | 'somewhere' | 'before' | 'nowhere' | 'unheard' | 'podless'

export function extentOf({ current, earlier, serving, starting, lost }: Share): Extent {
  if (serving > 0) {
    if (current > 0) return current >= serving ? 'everywhere' : 'somewhere'
    return earlier > 0 ? 'before' : 'nowhere'
  }
  return starting + lost > 0 ? 'unheard' : 'podless'
}

export function shareText({ current, earlier, serving, starting, lost }: Share): string {
  const beside = [
    ...(earlier > 0 ? [`${earlier} ${earlier === 1 ? 'runs' : 'run'} an earlier version`] : []),
    ...(starting > 0 ? [`${starting} ${starting === 1 ? 'starts' : 'start'}`] : []),
    ...(lost > 0 ? [`${lost} ${lost === 1 ? 'is' : 'are'} silent`] : []),
  ]
  const text = `${countedOf(current, serving + starting + lost, 'agent', 'runs', 'run')} it`
  return beside.length === 0 ? `${text}.` : `${text}; ${beside.join(', ')}.`
}

/** The entry about an Agent in a status. */
/** Whether all pods run a Pipeline, and its status still counts fewer: then there is nothing to wait for. */
export function isWholeAgain(
  { current, serving, starting, lost }: Share,
  shown: readonly { readonly current?: number | undefined; readonly desired?: number | undefined }[] | undefined,
): boolean {
  if (starting + lost > 0 || current < serving) return false
  return shown?.some((agent) => (agent.current ?? 0) < (agent.desired ?? 0)) === true
}

interface Counted {
  readonly name: string
  readonly revision?: string | undefined
}

/**
 * Whether the numbers in the status of a Pipeline may stay unchanged while pods come and go. They may if this content was active for
 * these Agents, and no serving pod contradicts that.
 */
export function mayHold(
  before:
    | { readonly conditions?: readonly Condition[] | undefined; readonly agents?: readonly Counted[] | undefined }
    | undefined,
  agents: readonly Counted[],
  extent: Extent,
  generation: number | undefined,
): boolean {
  if (extent === 'somewhere' || extent === 'before' || extent === 'nowhere') return false
  const known = conditionOf(before?.conditions, 'Programmed')
  if (known?.status !== 'True' || known.observedGeneration !== generation) return false
  const revisions = new Map(before?.agents?.map(({ name, revision }) => [name, revision]))
  return revisions.size === agents.length && agents.every(({ name, revision }) => revisions.get(name) === revision)
}

/** The pods of an Agent are settled if their numbers have not changed for this long. */
export const settledMs = 300_000
/** If pods come and go continuously, the numbers are updated after `heldMs`, during `followMs`. */
const heldMs = 1_800_000
const followMs = 120_000

interface Known {
  readonly turnout: Turnout
  readonly since: number
  /** The latest time for the next update of the numbers. */
  readonly until: number
}

/**
 * Remembers since when the pods of each Agent are settled. A new process starts with the numbers of its predecessor.
 */
export class Standstill {
  readonly #known = new Map<string, Known>()

  isSettled(agent: string, turnout: Turnout, now: number): boolean {
    const known = this.#known.get(agent)
    const next = follow(known, turnout, now)
    if (next !== known) this.#known.set(agent, next)
    return isFree(next, now)
  }

  /** Forgets Agents that no longer exist. */
  keep(agents: { has(agent: string): boolean }): void {
    for (const agent of this.#known.keys()) if (!agents.has(agent)) this.#known.delete(agent)
  }
}

function isFree({ since, until }: Known, now: number): boolean {
  return now - since >= settledMs || now >= until
}

function follow(known: Known | undefined, turnout: Turnout, now: number): Known {
  if (known === undefined) return { turnout, since: now, until: now + heldMs }
  const { serving, starting, lost } = known.turnout
  if (serving === turnout.serving && starting === turnout.starting && lost === turnout.lost) return known
  const isOver = isFree(known, now) && now >= known.until + followMs
  const wasStill = now - known.since >= settledMs
  return { turnout, since: now, until: isOver || wasStill ? now + heldMs : known.until }
}
