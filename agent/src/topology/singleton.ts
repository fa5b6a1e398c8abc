// A source that only one of several agents runs at a time. Every agent has it, and builds it again for each term in which it leads.
// Output after the term is discarded, because the new leader reads the same data.

import type { Source, SourceOutput } from '../component.ts'
import { finalizeBatch } from '../event/batch.ts'

/** Decides which of several agents runs singleton sources. */
export interface Leadership {
  /** Takes part in the election until disposed. */
  join(): Disposable
  /**
   * Resolves when this agent becomes leader, with a signal that aborts at the end of the term; with undefined if `signal`
   * aborts first.
   */
  term(signal: AbortSignal): Promise<AbortSignal | undefined>
  /**
   * Whether it leads at this moment, by the clock. This is correct even before a timer fires, for example after the process
   * was suspended.
   */
  readonly leads: boolean
  /**
   * At the beginning of a term: when, in milliseconds of its own clock, another or an earlier process was last known to lead; undefined if
   * none was.
   */
  readonly precededUntil: number | undefined
}

/** Builds the source for one term, with its stop signal and its output. */
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
      finalizeBatch(batch, 'errored') // not delivered, so no position moves past it
      return undefined
    },
  }
  const make = async (): Promise<Built> => {
    const stop = new AbortController()
    return { stop, source: await build(AbortSignal.any([stopping, stop.signal]), guarded) }
  }
  const settling: Promise<void>[] = []
  // Builds the first source at once, so that its problems are reported before it leads.
  const first = await make()
  let next: Built | undefined = first

  /** Runs it for a term; true if the end of the term ended it. */
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
