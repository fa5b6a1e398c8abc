// A source that one of several agents runs at a time. It exists in all of them, and is built again for each term in which this agent
// leads. Its output after the term is discarded, because the new leader reads it as well.

import type { Source, SourceOutput } from '../component.ts'
import { finalizeBatch } from '../event/batch.ts'

/** Says which of several agents runs what one alone may run. */
export interface Leadership {
  /** Takes part in the choice until it is disposed of. */
  join(): Disposable
  /** Resolves when this agent leads, with what aborts at the end of the term; with undefined when `signal` aborts before. */
  term(signal: AbortSignal): Promise<AbortSignal | undefined>
  /** Whether it leads now: by the clock, so it is right before a timer fires, for example after the process was suspended. */
  readonly leads: boolean
  /**
   * At the beginning of a term: until when, in milliseconds of its own clock, another or an earlier process was last known to lead; undefined if
   * none did.
   */
  readonly precededUntil: number | undefined
}

/** The source for one term: with what stops it, and what it hands its batches on to. */
type Build = (stopping: AbortSignal, output: SourceOutput) => Source | Promise<Source>

interface Built {
  readonly source: Source
  readonly stop: AbortController
}

export async function singletonSource(
  build: Build,
  output: SourceOutput,
  stopping: AbortSignal,
  leadership: Leadership,
): Promise<Source> {
  const guarded: SourceOutput = {
    get takesBytes() {
      return output.takesBytes === true
    },
    send(batch, origin) {
      if (leadership.leads) return output.send(batch, origin)
      finalizeBatch(batch, 'errored') // not delivered: no position moves past it
      return undefined
    },
  }
  const make = async (): Promise<Built> => {
    const stop = new AbortController()
    return { stop, source: await build(AbortSignal.any([stopping, stop.signal]), guarded) }
  }
  const settling: Promise<void>[] = []
  // The first is built at once, so that its problems are reported before it leads.
  const first = await make()
  let next: Built | undefined = first

  /** Runs it for a term; whether it was the end of the term that ended it. */
  const serve = async ({ source, stop }: Built, term: AbortSignal): Promise<boolean> => {
    const end = () => stop.abort(term.reason)
    if (term.aborted) end()
    term.addEventListener('abort', end)
    try {
      await source.run()
    } finally {
      term.removeEventListener('abort', end)
    }
    if (source.settle !== undefined) settling.push(source.settle())
    return stop.signal.aborted
  }

  return {
    async run() {
      using _ = leadership.join()
      for (;;) {
        const term = await leadership.term(stopping)
        if (term === undefined) return
        const built = next ?? (await make())
        next = undefined
        if (!(await serve(built, term)) || stopping.aborted) return
      }
    },
    async settle() {
      await Promise.all(settling)
    },
    ...(first.source.healthcheck === undefined
      ? {}
      : {
          healthcheck: (signal: AbortSignal) =>
            (first.source.healthcheck as NonNullable<Source['healthcheck']>)(signal),
        }),
  }
}
