// Data on the disk of components that no longer run here: buffers of sinks and positions of removed pipelines. That a pipeline is
// missing in the bundle proves little: it may be suspended, excluded in a trial, or return. So the agent asks the operator, which
// knows all pipelines. If the operator reports a pipeline as gone for some time, the agent removes its files and counts undelivered
// events as lost.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspectBuffer } from '../buffers/disk/inspect.ts'
import { Ledger, ledgerName } from '../buffers/disk/ledger.ts'
import { bufferRoot, foldersIn } from '../buffers/folder.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Topology } from '../topology/run.ts'
import { type Leftover, leftoverKey } from './format.ts'
import type { BundleRunner } from './runner.ts'

export interface LeftoverOptions {
  readonly dataDir: string
  readonly topology: Pick<Topology, 'sinks' | 'retiringSink'>
  readonly runner: Pick<BundleRunner, 'state' | 'pipelines'>
  readonly logger: Logger
  readonly metrics: Metrics
  /** How long the operator must report a leftover as gone. */
  readonly graceMs?: number | undefined
}

/** A Pipeline that is applied again within this time still finds its data. */
export const leftoverGraceMs = 600_000
/** Maximum number per heartbeat; later heartbeats contain the others. */
export const maxAsked = 50

export class Leftovers {
  readonly #options: LeftoverOptions
  readonly #graceMs: number
  /** When the operator first reported each as gone. */
  readonly #goneSince = new Map<string, number>()
  #asked: readonly Leftover[] = []
  /** The last key asked about; the next heartbeat continues after it. */
  #last = ''
  /** Pipelines by the uids in the names of their position files. */
  #known: Map<string, string> | undefined

  constructor(options: LeftoverOptions) {
    this.#options = options
    this.#graceMs = options.graceMs ?? leftoverGraceMs
  }

  /** Keys to ask the operator about next. None, unless a complete bundle is active. */
  found(): readonly Leftover[] {
    const present = [...this.#present()].sort(([left], [right]) => (left < right ? -1 : 1))
    const behind = present.findIndex(([key]) => key > this.#last)
    const start = present.length <= maxAsked || behind === -1 ? 0 : behind
    const turn = [...present.slice(start), ...present.slice(0, start)].slice(0, maxAsked)
    this.#last = turn.at(-1)?.[0] ?? ''
    this.#asked = turn.map(([, leftover]) => leftover)
    return this.#asked
  }

  /** Handles the operator's list of gone keys among those last asked about. */
  answered(gone: readonly string[], now = performance.now()): void {
    const asked = new Map(this.#asked.map((leftover) => [leftoverKey(leftover), leftover]))
    const isGone = new Set(gone)
    // A pipeline may have returned during the request.
    const present = this.#present()
    for (const key of [...this.#goneSince.keys()]) {
      // Keys not in this request keep their state.
      if (!present.has(key) || (asked.has(key) && !isGone.has(key))) this.#goneSince.delete(key)
    }
    for (const [key, leftover] of asked) {
      if (!isGone.has(key) || !present.has(key)) continue
      const since = this.#goneSince.get(key) ?? now
      this.#goneSince.set(key, since)
      if (now - since >= this.#graceMs) this.#remove(leftover)
    }
  }

  /** All existing leftovers, by key. */
  #present(): ReadonlyMap<string, Leftover> {
    const { dataDir, topology, runner } = this.#options
    if (runner.state.state !== 'Loaded') return new Map()
    const running = new Map<string, string>()
    for (const { id, part } of runner.pipelines()) running.set(part.pipeline.uid, id)
    const known = this.#learn(running)
    const buffers = foldersIn(bufferRoot(dataDir)).flatMap((name): Leftover[] => {
      const id = decoded(name)
      const isOurs = id !== undefined && id.split('/').length === 3
      return !isOurs || topology.sinks.has(id) || topology.retiringSink(id) !== undefined
        ? []
        : [{ kind: 'buffer', id }]
    })
    const cursors = foldersIn(cursorRoot(dataDir)).flatMap((uid): Leftover[] => {
      const pipeline = known.get(uid)
      return pipeline === undefined || running.has(uid) ? [] : [{ kind: 'cursors', id: uid, pipeline }]
    })
    return new Map([...buffers, ...cursors].map((leftover) => [leftoverKey(leftover), leftover]))
  }

  #remove(leftover: Leftover): void {
    const { dataDir, logger, metrics } = this.#options
    const { kind, id } = leftover
    const path = kind === 'buffer' ? join(bufferRoot(dataDir), encodeURIComponent(id)) : join(cursorRoot(dataDir), id)
    try {
      const events = kind === 'buffer' ? eventsIn(path) : 0
      rmSync(path, { recursive: true, force: true })
      this.#goneSince.delete(leftoverKey(leftover))
      if (kind === 'cursors') {
        logger.info({ pipeline: leftover.pipeline, uid: id }, 'Removed the positions of a removed pipeline.')
        return
      }
      const labels = { component_id: id, component_kind: 'sink', buffer_id: id, stage: '0', intentional: 'false' }
      metrics.counter('buffer_discarded_events_total', labels).add(events)
      const level = events > 0 ? 'warn' : 'info'
      logger[level]({ component_id: id, events }, 'Removed the buffer of a removed sink; its events are discarded.')
    } catch (error) {
      logger.warn({ path, error }, 'Could not delete the data of a removed pipeline; trying again later.')
    }
  }

  /** Records the pipeline of each uid, because position files do not contain it. */
  #learn(running: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
    const { dataDir, logger } = this.#options
    const path = join(dataDir, 'bundle', 'pipelines.json')
    this.#known ??= readKnown(path)
    const known = this.#known
    const before = known.size
    for (const [uid, id] of running) known.set(uid, id)
    if (known.size === before) return known
    const folders = new Set(foldersIn(cursorRoot(dataDir)))
    for (const uid of known.keys()) if (!running.has(uid) && !folders.has(uid)) known.delete(uid)
    try {
      mkdirSync(join(dataDir, 'bundle'), { recursive: true })
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(known)), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch (error) {
      logger.warn({ error, path }, 'Could not store the names of the pipelines; positions of removed ones may stay.')
    }
    return known
  }
}

const cursorRoot = (dataDir: string) => join(dataDir, 'cursors')

function readKnown(path: string): Map<string, string> {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>))
  } catch {
    return new Map() // nothing was stored yet
  }
}

function decoded(name: string): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined // not a folder of the agent
  }
}

/** Number of events without a final status. The ledger of a closed buffer contains it; any other buffer is scanned. */
function eventsIn(path: string): number {
  try {
    const { state, damaged } = Ledger.read(join(path, ledgerName))
    if (state !== undefined && !damaged) return state.nextId - state.readId
  } catch {
    // Without a ledger, the segments are scanned.
  }
  return inspectBuffer(path).lag_events
}
