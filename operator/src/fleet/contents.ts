// Computes the content of the stable revision and the candidate, Pipeline by Pipeline, while Pipelines are added, removed and changed.
// A candidate is tried on some agents because it changes running Pipelines. New and deleted Pipelines need no trial and do not wait for
// other rollouts. Pure.

import type { Fragment } from '../render/fragment.ts'

export type Content = ReadonlyMap<string, Fragment>

export interface Contents {
  readonly stable: Content
  /** Undefined if nothing is being tried. */
  readonly candidate: Content | undefined
  /** Ids of the Pipelines that all agents receive without a trial. */
  readonly added: readonly string[]
  /** The content that a rollout would try if it began now. */
  readonly start: Content
}

export interface Trial {
  readonly content: Content
  /** Whether all agents have it. Later additions then join it. */
  readonly isEverywhere: boolean
  /** Whether further changes may join it. */
  readonly mayJoin: boolean
  /** Whether a further change may replace the tried version of the same Pipeline; true by default. */
  readonly mayReplace?: boolean
  /** Ids of the Pipelines whose change must be removed from it. */
  readonly leaves?: ReadonlySet<string> | undefined
}

/** Changes that are tried alone. */
export interface Apart {
  /** The hash of each such change, by id of its Pipeline. */
  readonly aside: ReadonlyMap<string, string>
  /** Ids of those that the current or next candidate tries. */
  readonly turn: ReadonlySet<string>
}

const nothingApart: Apart = { aside: new Map(), turn: new Set() }

/** Ids of the running Pipelines whose desired content differs. */
export function changesOf(desired: Content, stable: Content): string[] {
  return [...desired].flatMap(([id, { hash }]) => {
    const runs = stable.get(id)
    return runs === undefined || runs.hash === hash ? [] : [id]
  })
}

/** The contents after all additions and removals, at the current progress of the rollout. */
export function contentsOf(
  desired: Content,
  stable: Content,
  trial: Trial | undefined,
  { aside, turn }: Apart = nothingApart,
): Contents {
  const open = withoutAside(desired, stable, aside)
  const tried = (base: Content) => {
    const content = new Map(base)
    for (const id of turn) {
      const wanted = desired.get(id)
      if (wanted !== undefined) content.set(id, wanted)
    }
    return content
  }
  if (trial === undefined) {
    const isArrival = turn.size === 0 && changesOf(open.desired, open.stable).length === 0
    if (isArrival) return { stable: open.stable, candidate: undefined, added: [], start: open.desired }
    const { content, added } = withArrivals(open.desired, open.stable)
    return { stable: content, candidate: undefined, added, start: turn.size === 0 ? open.desired : tried(content) }
  }
  const next = during(open.desired, open.stable, trial)
  const candidate = tried(next.candidate)
  for (const id of trial.leaves ?? []) {
    const runs = next.stable.get(id)
    if (runs === undefined) candidate.delete(id)
    else candidate.set(id, runs)
  }
  return { ...next, candidate, start: turn.size === 0 ? open.desired : candidate }
}

/** The desired and the stable content without the set-aside changes. */
function withoutAside(desired: Content, stable: Content, aside: Apart['aside']): { desired: Content; stable: Content } {
  if (aside.size === 0) return { desired, stable }
  const open = new Map(desired)
  const runs = new Map(stable)
  for (const [id, hash] of aside) {
    // All agents received it at once, because the Pipeline was new.
    if (runs.get(id)?.hash === hash) runs.delete(id)
    const before = runs.get(id)
    if (before === undefined) open.delete(id)
    else open.set(id, before)
  }
  return { desired: open, stable: runs }
}

/** The contents during a trial of changes that were not set aside. */
function during(desired: Content, stable: Content, { content, isEverywhere, mayJoin, mayReplace = true }: Trial) {
  const base = isEverywhere ? { content: stable, added: [] } : withArrivals(desired, stable)
  const candidate = new Map<string, Fragment>()
  for (const [id, wanted] of desired) {
    const tried = content.get(id)
    const runs = stable.get(id)
    const isSame = tried?.hash === wanted.hash || runs?.hash === wanted.hash
    // A further change waits. Its Pipeline stays unchanged in this trial, even if all agents have just received it as
    // new.
    const before = tried ?? runs
    const isNew = runs === undefined && !(isEverywhere && tried !== undefined)
    const joins = mayJoin && (mayReplace || tried?.hash === runs?.hash)
    candidate.set(id, before === undefined || isNew || isSame || joins ? wanted : before)
  }
  return { stable: base.content, candidate, added: base.added }
}

/** The running content, with new Pipelines and without deleted ones. */
function withArrivals(desired: Content, stable: Content): { readonly content: Content; readonly added: string[] } {
  const content = new Map<string, Fragment>()
  const added: string[] = []
  for (const [id, wanted] of desired) {
    const runs = stable.get(id)
    if (runs === undefined) added.push(id)
    content.set(id, runs === undefined || runs.hash === wanted.hash ? wanted : runs)
  }
  return { content, added }
}

/** Whether two contents are equal for agents, byte by byte. */
export function isSameContent(left: Content, right: Content): boolean {
  if (left.size !== right.size) return false
  for (const [id, { hash, entry }] of left) {
    const other = right.get(id)
    if (other === undefined || other.hash !== hash || other.entry !== entry) return false
  }
  return true
}

/**
 * The tried Pipelines of which an agent does not run the candidate's version. Other Pipelines may have been added or removed
 * since.
 */
export function lacking(runs: Content | undefined, candidate: Content, changed: ReadonlySet<string>): Set<string> {
  const lacks = new Set<string>()
  for (const id of changed) if (runs === undefined || runs.get(id)?.hash !== candidate.get(id)?.hash) lacks.add(id)
  return lacks
}
