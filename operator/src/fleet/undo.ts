// Returns to an earlier revision, which `penstock rollout undo` requests with an annotation. The earlier revision stays
// until the Pipelines differ from those at the time of the request, or until the annotation is removed. Pure.

import type { RolloutRecord } from './state.ts'

/** Annotation of an Agent: the first characters of a revision and the time of the request, so that a repeated request counts as new. */
export const undoAnnotation = 'penstock.dev/undo'

export interface Undone {
  /** The annotation with the request. */
  readonly request: string
  /** The running revision, and the one that would run without the request; undefined if the request is over. */
  readonly to?: string
  readonly from?: string
}

/** Whether all agents have run the revision. Only such a revision can be restored. */
export const isGood = ({ result }: { readonly result: string }): boolean =>
  result === 'RolledOut' || result === 'Undone'

const maxGood = 4
const maxOthers = 3

/**
 * Adds an entry to the history, newest first. Keeps the running revision, the three before it, and some that were
 * rolled back.
 */
export function remembered(history: RolloutRecord['history'], entry: RolloutRecord['history'][number]) {
  const seen = new Set<string>()
  let good = 0
  let others = 0
  return [entry, ...history].filter((each) => {
    if (!isGood(each)) return others++ < maxOthers
    if (seen.has(each.revision)) return false
    seen.add(each.revision)
    return good++ < maxGood
  })
}

/**
 * The revision to return to, from the known state of the request.
 * @param wanted revision that would run without the request
 * @param isKnown whether the content of a revision is available
 */
export function undoneOf(
  { undone, history }: RolloutRecord,
  request: string | undefined,
  wanted: string,
  isKnown: (rev: string) => boolean,
): Undone | undefined {
  if (request === undefined) return undefined
  if (undone?.request === request) {
    // The Pipelines have changed: the request is over, even if the change is reverted later.
    return undone.from === undefined || undone.from === wanted ? undone : { request }
  }
  const [prefix = ''] = request.split(' ')
  const found = history.find((entry) => isGood(entry) && entry.revision.startsWith(prefix) && isKnown(entry.revision))
  return prefix === '' || found === undefined ? { request } : { request, to: found.revision, from: wanted }
}
