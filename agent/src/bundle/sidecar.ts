// The agent as a sidecar: it reads files of one volume, and delivers everything written there before it stops. Pipelines do not
// know the pod; the admission webhook sets the file paths with flags.

import { normalize } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { PenstockError } from '../errors.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { PipelinePart } from './part.ts'

export interface SidecarFlags {
  /** Path of the pod's volume with the log files. */
  readonly volume: string
  /** Globs for sources without their own. */
  readonly paths: readonly string[]
  /** Names of the pipelines to run; undefined: all. */
  readonly pipelines: readonly string[] | undefined
  readonly drainSeconds: number
}

/** New files are found, and new lines are read, within this time. */
const quietMs = 1500

export class Sidecar {
  readonly #flags: SidecarFlags
  readonly #root: string

  constructor(flags: SidecarFlags) {
    this.#flags = flags
    this.#root = `${flags.volume.replace(/\/+$/, '')}/`
  }

  /** The volume with the log files. */
  get volume(): string {
    return this.#root
  }

  /** Whether the pod requests a pipeline. */
  wants(id: string): boolean {
    return this.#flags.pipelines?.includes(id.slice(id.indexOf('/') + 1)) ?? true
  }

  /** Adapts a pipeline to the sidecar. Throws if one of its sources reads outside the volume. */
  adapt(part: PipelinePart): PipelinePart {
    const sources = Object.fromEntries(
      Object.entries(part.sources).map(([id, options]) => {
        const source = options as Readonly<Record<string, unknown>>
        if (source['type'] !== 'file') return [id, source]
        const named = source['include']
        const include = Array.isArray(named) && named.length > 0 ? named.map(String) : this.#flags.paths
        const outside = include.find((path) => !normalize(path).startsWith(this.#root))
        if (outside !== undefined) {
          throw new PenstockError(
            'PEN_CONFIG_INVALID',
            `Source "${id}": \`include\` must stay inside the pod's log volume ${this.#root}; found "${outside}".`,
          )
        }
        if (include.length === 0) {
          throw new PenstockError(
            'PEN_CONFIG_INVALID',
            `Source "${id}" has no \`include\`, and the pod has no annotation penstock.dev/log-paths.`,
          )
        }
        return [id, { ...source, include }]
      }),
    )
    return { ...part, sources }
  }

  /** Waits, within the limit, until no more lines arrive, because the pod's containers have ended. */
  async drain(metrics: Metrics, isLoaded: () => boolean): Promise<void> {
    const end = performance.now() + this.#flags.drainSeconds * 1000
    const received = () => metrics.sum('component_received_events_total', { component_kind: 'source' })
    let last = received()
    let since = performance.now()
    while (performance.now() < end) {
      await wait(100)
      const now = received()
      if (now !== last || !isLoaded()) {
        last = now
        since = performance.now()
      }
      if (performance.now() - since >= quietMs) return
    }
  }
}
