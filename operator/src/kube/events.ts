// Kubernetes Events about objects: at most one for each generation of an object and reason in five minutes, and few for an object that
// changes often. Writing them never delays a reconcile.

import { createHash } from 'node:crypto'
import { errorText } from '@penstock/agent/errors'
import { printable } from '@penstock/agent/program'
import type { Logger } from '@penstock/agent/telemetry'
import type { KubeObject } from '../api/object.ts'
import { isNormal, type KubeClient } from './client.ts'
import { eventType } from './resource-types.ts'

export interface EventWriterOptions {
  readonly kube: KubeClient
  readonly logger: Logger
  /** Name of this process. */
  readonly instance: string
  readonly signal: AbortSignal
  readonly mayWrite: () => boolean
}

const everyMs = 300_000
/** Events of one reason about an object in this time, whatever its author changes. */
const maxGenerations = 10
/** Where the API server expects Events about cluster-scoped objects, and `kubectl describe` looks for them. */
const clusterNamespace = 'default'
/** Maximum length of a note that the API server accepts. */
const noteLength = 1024

interface Last {
  /** When it was written. */
  readonly at: number
  readonly generation: number
  /** When the first of some that followed each other was written, and their number. */
  readonly since: number
  readonly count: number
}

export class EventWriter {
  readonly #options: EventWriterOptions
  /** The last Event for an object and reason. */
  readonly #last = new Map<string, Last>()
  readonly #writing = new Set<Promise<void>>()

  constructor(options: EventWriterOptions) {
    this.#options = options
  }

  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string, action = 'Reconcile'): void {
    if (!this.#options.mayWrite() || this.#options.signal.aborted) return
    const { namespace, name, uid, resourceVersion, generation = 0 } = object.metadata
    const key = `${uid ?? `${object.kind}/${namespace}/${name}`}/${reason}`
    const now = performance.now()
    const last = this.#last.get(key)
    if (last !== undefined && last.generation === generation && now - last.at < everyMs) return
    const { since, count } = last !== undefined && now - last.since < everyMs ? last : { since: now, count: 0 }
    if (count >= maxGenerations) return
    this.#last.set(key, { at: now, generation, since, count: count + 1 })
    if (this.#last.size > 10_000) this.#forgetOld(now)
    const time = new Date()
    const where = namespace ?? clusterNamespace
    const digest = createHash('sha256').update(`${key}/${generation}/${time.getTime()}`).digest('hex').slice(0, 16)
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: `${name.slice(0, 200)}.${digest}`, namespace: where },
      eventTime: time.toISOString().replace('Z', '000Z'),
      reportingController: 'penstock.dev/operator',
      reportingInstance: this.#options.instance.slice(0, 128),
      action,
      reason,
      type,
      note: printable(message).slice(0, noteLength),
      regarding: { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid, resourceVersion },
    }
    const writing = this.#options.kube
      .create(eventType, event, { signal: this.#options.signal })
      .then(() => {})
      .catch((error: unknown) => {
        if (isNormal(error) || this.#options.signal.aborted) return
        this.#options.logger.warn({ error: errorText(error), reason }, 'An Event could not be written.')
      })
      .finally(() => this.#writing.delete(writing))
    this.#writing.add(writing)
  }

  /** Resolves when all recorded Events have been written. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing)
  }

  #forgetOld(now: number): void {
    for (const [key, { at }] of this.#last) if (now - at > everyMs) this.#last.delete(key)
  }
}
