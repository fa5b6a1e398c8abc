// Placeholders for a missing source or sink, because a Pipeline needs both.

import type { Draft } from './draft.ts'

/** A source that reads nothing. Each use needs its own object, because YAML would write a repeated one as an alias. */
export const readsNothing = () => ({ type: 'file', config: { include: ['/var/empty/nothing'] } })

/** The gap of a missing source or sink, and the comment of its placeholder. */
interface Missing {
  readonly subject: string
  readonly reason: string
  readonly comment: string
}

export interface Ends {
  readonly source: Missing
  readonly sink: Missing
}

type Place = { readonly file: string; readonly line: number }

/** Adds placeholders for a missing source and a missing sink, each with a gap at `place`. */
export function complete(draft: Draft, place: Place, { source, sink }: Ends): void {
  completeSource(draft, place, source)
  completeSink(draft, place, sink)
}

/** Adds a source that reads nothing, with the name `nothing`, if there is no other source. */
export function completeSource(draft: Draft, place: Place, { subject, reason, comment }: Missing): void {
  if (draft.count('sources') > 0) return
  draft.gaps.push({ file: place.file, line: place.line, subject, reason, nearest: 'Replace the source `nothing`.' })
  draft.add('sources', 'nothing', { ...readsNothing(), comments: [`GAP: ${comment}`] })
}

/** Adds a sink that discards all events, or those of `inputs`, if there is no other sink. */
export function completeSink(
  draft: Draft,
  place: Place,
  { subject, reason, comment }: Missing,
  inputs: readonly string[] = ['*'],
): void {
  if (draft.count('sinks') > 0) return
  draft.gaps.push({ file: place.file, line: place.line, subject, reason, nearest: 'Replace the sink `discarded`.' })
  draft.add('sinks', 'discarded', { type: 'blackhole', inputs, comments: [`GAP: ${comment}`] })
}
