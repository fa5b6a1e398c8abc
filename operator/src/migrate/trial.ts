// A trial: the binary of the old agent converts recorded lines to events. Its configuration between the sources and the compared sink is
// unchanged. Sources read files and the sink prints, so the trial accesses nothing else.

import { type Included, type NamedText, nameLike } from './draft.ts'

/** The recorded lines in the formats that sources read. */
export interface Sample {
  /** A file with the lines as recorded. */
  readonly lines: string
  /** A file with the lines in the format of a container runtime. */
  readonly podLog: () => Promise<string>
  /** A file with the events that the new source of pods creates, one JSON object per line. */
  readonly podEvents: (source: string) => Promise<string>
}

export interface Trial {
  /** Files to write into `folder`. */
  readonly files: readonly NamedText[]
  /** Arguments of the binary. */
  readonly words: readonly string[]
  /** Components left out of the trial, as text for people. */
  readonly leftOut: readonly string[]
}

export interface TrialRequest {
  readonly files: readonly NamedText[]
  readonly included: Included
  readonly sample: Sample
  /** The name of the new sink. */
  readonly sink: string
  /** An empty folder. */
  readonly folder: string
}

export type MakeTrial = (request: TrialRequest) => Promise<Trial>

/** The old sink with the name of a new one. The number at the end of the name counts old sinks with the same name. */
export function sinkNamed<Old>(olds: readonly Old[], nameOf: (old: Old) => string, sink: string): Old | undefined {
  const seen = new Map<string, number>()
  return olds.find((old) => {
    const base = nameLike(nameOf(old))
    const number = (seen.get(base) ?? 0) + 1
    seen.set(base, number)
    return sink === (number === 1 ? base : `${base}-${number}`)
  })
}
