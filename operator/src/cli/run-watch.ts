// `penstock run --watch`: runs again after each change of its files, until Ctrl-C or the end of `--for`. After problems with the files, it waits for the next
// change.

import { errorText, PenstockError } from '@penstock/agent/errors'
import { watchFiles } from '@penstock/agent/output'

/** Editors write a file in several steps. */
const quietMs = 200

/**
 * @param files files to watch, listed again for each run @param once runs until the run ends, or the signal aborts
 * @param limitMs milliseconds until all of it ends; undefined: at a signal only
 */
export async function runAtChanges(
  files: () => readonly string[],
  once: (over: AbortSignal) => Promise<number>,
  limitMs?: number,
): Promise<number> {
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of endings) process.on(signal, stop)
  const limit = limitMs === undefined ? undefined : setTimeout(stop, limitMs)
  // A watch alone does not keep the process alive.
  const staying = setInterval(() => {}, 2 ** 30)
  try {
    while (true) {
      const changed = new AbortController()
      // Before the files are read, so that later changes are noticed.
      const unwatch = watchFiles(files(), { method: 'recommended', pollSecs: 1, quietMs }, () => changed.abort())
      try {
        const code = await reported(once(AbortSignal.any([changed.signal, stopping.signal])))
        if (!stopping.signal.aborted && !changed.signal.aborted) {
          console.error('Waiting for a change of the files; press Ctrl-C to exit.')
          await aborted(AbortSignal.any([changed.signal, stopping.signal]))
        }
        if (stopping.signal.aborted) return code
      } finally {
        unwatch()
      }
      console.error('\nThe files have changed.\n')
    }
  } finally {
    clearInterval(staying)
    clearTimeout(limit)
    for (const signal of endings) process.off(signal, stop)
  }
}

/** A problem with the files ends the run, but not the watch. */
async function reported(run: Promise<number>): Promise<number> {
  try {
    return await run
  } catch (error) {
    if (!(error instanceof PenstockError)) throw error
    console.error(errorText(error))
    return 78
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
}
