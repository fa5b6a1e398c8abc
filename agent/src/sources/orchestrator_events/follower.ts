// Watches the events of one namespace, or of all, from its cursor on, and passes new events on. It reads undelivered events again
// after a pause. If the server refuses a version repeatedly, the follower reads the list again.

import { pause } from '../../clock.ts'
import type { SourceContext } from '../../component.ts'
import { logBatch } from '../../event/batch.ts'
import type { ApiServerClient } from '../../kube/client.ts'
import { type FollowHooks, follow, followReports } from '../../kube/watch.ts'
import { untilAborted } from '../../timing/wait.ts'
import { type Cursor, type Cursors, marginMs, type SeenEvent } from './cursor.ts'
import { type KubeEvent, type Occurrence, readEvent } from './log-event.ts'

/** If the position is older than the predecessor's claim by this much, it is not the predecessor's. */
const staleMs = 30_000
/** After this many failures in a row, the server may be rejecting the version itself. */
const failuresToRelist = 5
const initialBackoffMs = 1000
const maxBackoffMs = 30_000

export interface FollowerOptions {
  readonly extra_field_selector: string | undefined
  readonly extra_label_selector: string | undefined
  readonly ignore_older_secs: number | undefined
  readonly include_object: boolean
  readonly read_from: 'beginning' | 'end'
}

/** One namespace that is followed, between two lists. */
interface Stream {
  readonly cursor: Cursor
  readonly reports: ReturnType<typeof followReports>
  /** Whether the next attempt begins with a list. */
  isRelisting: boolean
  failures: number
  pauseMs: number
  /** Resolves when the pipeline accepts more events. */
  full: Promise<void> | undefined
}

export class EventFollower {
  readonly #client: ApiServerClient
  readonly #options: FollowerOptions
  readonly #context: SourceContext

  constructor(client: ApiServerClient, options: FollowerOptions, context: SourceContext) {
    this.#client = client
    this.#options = options
    this.#context = context
  }

  /** Watches a namespace until the source stops; the empty name means all. */
  async follow(namespace: string, cursors: Cursors): Promise<void> {
    const { events, stopping } = this.#context
    const { cursor, isKnown } = cursors.cursor(namespace)
    this.#begin(cursor, isKnown, cursors.at)
    const followed = {
      name: 'events',
      path: `/apis/events.k8s.io/v1/${namespace === '' ? '' : `namespaces/${namespace}/`}events`,
      labelSelector: this.#options.extra_label_selector,
      fieldSelector: this.#options.extra_field_selector,
    }
    const reports = followReports(events, followed.name)
    const stream: Stream = {
      cursor,
      reports,
      isRelisting: false,
      failures: 0,
      pauseMs: initialBackoffMs,
      full: undefined,
    }
    while (!stopping.aborted) {
      if (cursor.lost) cursor.rewind()
      const again = new AbortController()
      cursor.onLost = () => again.abort()
      const signal = AbortSignal.any([stopping, again.signal])
      stream.failures = 0
      stream.full = undefined
      const from = stream.isRelisting ? undefined : cursor.reach
      const hooks = this.#hooks(stream, signal, () => again.abort())
      await follow<KubeEvent>(this.#client, followed, hooks, { fromCache: false, signal, from })
      if (stopping.aborted || !cursor.lost) continue
      // Undelivered events are read again, after a pause.
      await pause(stream.pauseMs, stopping) // the stop ends the loop
      stream.pauseMs = Math.min(stream.pauseMs * 2, maxBackoffMs)
    }
  }

  /** Sets the start time, unless the cursor has a position. */
  #begin(cursor: Cursor, isKnown: boolean, at: number | undefined): void {
    const preceded = this.#context.precededUntil?.()
    if (preceded !== undefined && (!isKnown || at === undefined || preceded - at > staleMs)) {
      cursor.beginAt(Math.min(preceded, Date.now()))
    } else if (!isKnown) {
      // Many events have times in whole seconds.
      const now = Math.floor(Date.now() / 1000) * 1000
      cursor.beginAt(this.#options.read_from === 'end' ? now + marginMs : Number.NEGATIVE_INFINITY)
    }
  }

  #hooks(stream: Stream, signal: AbortSignal, again: () => void): FollowHooks<KubeEvent> {
    const { cursor, reports } = stream
    return {
      replaced() {},
      removed() {},
      page: (objects) => {
        const { floorMs } = cursor
        const found = this.#occurrences(objects).filter((one) => one.last.ms >= floorMs && this.#isWanted(cursor, one))
        return found.length === 0 ? undefined : this.#handOn(cursor, found, undefined, signal)
      },
      changed: (object) => {
        const [occurrence] = this.#occurrences([object])
        if (occurrence === undefined) return
        stream.failures = 0
        stream.pauseMs = initialBackoffMs
        if (this.#isWanted(cursor, occurrence)) {
          stream.full = this.#handOn(cursor, [occurrence], occurrence.version, signal)
        } else if (!signal.aborted) cursor.skip(occurrence.version)
      },
      room: () => {
        const waiting = stream.full
        stream.full = undefined
        return waiting
      },
      passed: (reached) => {
        stream.failures = 0
        stream.isRelisting = false
        if (!signal.aborted) cursor.skip(reached)
      },
      failed: (error) => {
        reports.failed(error)
        stream.failures++
        // A restored cluster refuses a version from before the backup forever.
        if (stream.failures < failuresToRelist || stream.isRelisting) return
        stream.isRelisting = true
        again()
      },
      listed: reports.listed,
    }
  }

  #occurrences(objects: readonly unknown[]): Occurrence[] {
    const found: Occurrence[] = []
    let bad = 0
    let reason = ''
    for (const object of objects) {
      const occurrence = readEvent(object, this.#context.globals.logSchema, this.#options.include_object)
      if (typeof occurrence === 'string') {
        bad++
        reason = occurrence
      } else found.push(occurrence)
    }
    if (bad > 0) {
      this.#context.events.error({
        type: 'parser_failed',
        stage: 'processing',
        message: 'The Kubernetes API returned objects that are not events; skipping them.',
        fields: { reason },
        count: bad,
      })
    }
    return found
  }

  #isWanted(cursor: Cursor, occurrence: Occurrence): boolean {
    if (cursor.has(seenOf(occurrence))) return false
    const { ignore_older_secs: secs } = this.#options
    return secs === undefined || occurrence.last.ms >= Date.now() - secs * 1000
  }

  /** Passes events on; a returned promise resolves when the pipeline accepts more. */
  #handOn(
    cursor: Cursor,
    found: readonly Occurrence[],
    reached: string | undefined,
    signal: AbortSignal,
  ): Promise<void> | undefined {
    // Events after the stop belong to another agent, or are read again.
    if (signal.aborted) return undefined
    const finalizer = cursor.handOn(found.map(seenOf), reached)
    const batch = logBatch(
      found.map(({ event }) => event),
      finalizer,
    )
    const full = this.#context.output.send(batch)
    return full === undefined ? undefined : untilAborted(full, signal)
  }
}

function seenOf({ uid, version, last }: Occurrence): SeenEvent {
  return { uid, version, ms: last.ms }
}
