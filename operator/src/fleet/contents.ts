// The content of the stable revision and the candidate, Pipeline by Pipeline, while Pipelines come, go and change. A candidate is tried
// on some agents because it changes what runs. A new or deleted Pipeline is no such change: it waits for no rollout of others. Pure.

import type { Fragment } from '../render/fragment.ts'

export type Content = ReadonlyMap<string, Fragment>

export interface Contents {
  readonly stable: Content
  /** Undefined: nothing is tried. */
  readonly candidate: Content | undefined
  /** Ids of the Pipelines that all agents get without a trial. */
  readonly added: readonly string[]
}

export interface Trial {
  readonly content: Content
  /** Whether all agents have it: later additions then come with it. */
  readonly isEverywhere: boolean
  /** Whether further changes may join it. */
  readonly mayJoin: boolean
}

/** Ids of the Pipelines that run, and are to run with another content. */
export function changesOf(desired: Content, stable: Content): string[] {
  return [...desired].flatMap(([id, { hash }]) => {
    const runs = stable.get(id)
    return runs === undefined || runs.hash === hash ? [] : [id]
  })
}

/** The contents with all additions and removals, and the current progress of the rollout. */
export function contentsOf(desired: Content, stable: Content, trial: Trial | undefined): Contents {
  if (trial === undefined) {
    if (changesOf(desired, stable).length === 0) return { stable, candidate: undefined, added: [] }
    const { content, added } = withArrivals(desired, stable)
    return { stable: content, candidate: undefined, added }
  }
  const { content, isEverywhere, mayJoin } = trial
  const base = isEverywhere ? { content: stable, added: [] } : withArrivals(desired, stable)
  const candidate = new Map<string, Fragment>()
  for (const [id, wanted] of desired) {
    const tried = content.get(id)
    const runs = stable.get(id)
    const isSame = tried?.hash === wanted.hash || runs?.hash === wanted.hash
    // Another change waits: its Pipeline stays unchanged in this trial, even if all agents got it as new a moment ago.
    const before = tried ?? runs
    const isNew = runs === undefined && !(isEverywhere && tried !== undefined)
    candidate.set(id, before === undefined || isNew || isSame || mayJoin ? wanted : before)
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

/** Whether two contents are the same for agents, byte by byte. */
export function isSameContent(left: Content, right: Content): boolean {
  if (left.size !== right.size) return false
  for (const [id, { hash, entry }] of left) {
    const other = right.get(id)
    if (other === undefined || other.hash !== hash || other.entry !== entry) return false
  }
  return true
}

/** Whether what an agent runs has all that is tried. Others may have come or gone since. */
export function hasTried(runs: Content | undefined, candidate: Content, changed: ReadonlySet<string>): boolean {
  if (runs === undefined) return false
  for (const id of changed) if (runs.get(id)?.hash !== candidate.get(id)?.hash) return false
  return true
}
