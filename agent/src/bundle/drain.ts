// `--drain`: the sinks of the bundle deliver the events that a former agent left in its buffers; no source runs. This empties the
// volume of an aggregator pod that will not return.

import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { inspectBuffer } from '../buffers/disk/inspect.ts'
import { bufferFolder, bufferRoot, foldersIn } from '../buffers/folder.ts'
import { PenstockError } from '../errors.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Topology } from '../topology/run.ts'
import type { BundleRunner } from './runner.ts'

const lookMs = 200

/**
 * Resolves when the sinks have delivered all buffered events: with undefined, or with an error that names the buffers without
 * a sink in the bundle.
 */
export async function drained(
  topology: Topology,
  runner: Pick<BundleRunner, 'state'>,
  dataDir: string,
  logger: Logger,
): Promise<PenstockError | undefined> {
  const waiting = () => {
    let events = 0
    for (const { buffer } of topology.sinks.values()) events += buffer.events
    return events
  }
  let isLogged = false
  for (;;) {
    const { state, failures } = runner.state
    if (state === 'Loaded' && failures.length === 0) {
      const events = waiting()
      if (events === 0) break
      if (!isLogged) logger.info({ events }, 'Delivering the events in the buffers.')
      isLogged = true
    }
    await wait(lookMs)
  }
  const known = new Set([...topology.sinks.keys()].map((id) => basename(bufferFolder(dataDir, id))))
  const left = foldersIn(bufferRoot(dataDir)).filter(
    (name) => !known.has(name) && inspectBuffer(join(bufferRoot(dataDir), name)).lag_events > 0,
  )
  if (left.length === 0) return undefined
  const names = left.map(decodeURIComponent).sort().join(', ')
  return new PenstockError(
    'PEN_UNAVAILABLE',
    `Some buffers belong to sinks of removed Pipelines: ${names}. Apply their Pipelines again, or remove the volume.`,
  )
}
