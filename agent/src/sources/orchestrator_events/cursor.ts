// How far the events of the cluster have been delivered. The position holds an API version to continue from. In case the API server no
// longer knows that version, it also holds the time of the newest event and the uids and versions of the events around that time.
// Versions are only compared for equality. The file is replaced as a whole, and moves past an event only when all events before it
// have been answered.

import { readFileSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { errorText } from '../../errors.ts'
import { type BatchStatus, Finalizer } from '../../event/finalizer.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'

/** Delay from a change to its write, which limits how many events a crash duplicates. */
const writeAfterMs = 500
/** How often the file records that the source is watching, even without events. */
const aliveEveryMs = 10_000
/** Events come from many clocks, and some arrive late: an event this much older than the newest may still be new. */
export const marginMs = 60_000
/** Maximum number of remembered events around the newest; beyond it, reading the list again may repeat some. */
const maxKnown = 10_000

/** The remembered parts of an event. */
export interface SeenEvent {
  readonly uid: string
  readonly version: string
  readonly ms: number
}

interface Pending {
  readonly seen: readonly SeenEvent[]
  /** Where a watch continues after this event; undefined within a list, which has no order. */
  version: string | undefined
  answered: boolean
}

interface Saved {
  readonly version: string | undefined
  readonly uid: string | undefined
  readonly ms: number
  readonly known: readonly (readonly [string, string, number])[]
}

/** The position in the events of the cluster or of one namespace. */
export class Cursor {
  readonly #moved: () => void
  /** Version up to which all events are delivered. */
  #version: string | undefined
  #uid: string | undefined
  #ms: number
  readonly #delivered: Map<string, SeenEvent>
  /** Events passed on but not yet delivered. */
  #pending: Pending[] = []
  /** Versions in flight, by uid. */
  readonly #handedOn = new Map<string, string>()
  /** The time of a delivered event counts only when all events before it are delivered too. */
  #newestMs: number
  #generation = 0
  lost = false
  /** Called when a batch failed and must be read again. */
  onLost: () => void = () => {}

  constructor(saved: Partial<Saved>, moved: () => void) {
    this.#moved = moved
    this.#version = saved.version
    this.#uid = saved.uid
    this.#ms = saved.ms ?? Number.NEGATIVE_INFINITY
    this.#newestMs = this.#ms
    this.#delivered = new Map((saved.known ?? []).map(([uid, version, ms]) => [uid, { uid, version, ms }]))
  }

  /** Where a watch continues: after all events passed on. */
  get reach(): string | undefined {
    return this.#pending.findLast(({ version }) => version !== undefined)?.version ?? this.#version
  }

  /** List events whose last occurrence is before this time are not new. */
  get floorMs(): number {
    return this.#ms - marginMs
  }

  get inFlight(): number {
    return this.#pending.length
  }

  /** Whether exactly this state of an event has been passed on. */
  has({ uid, version }: SeenEvent): boolean {
    return (this.#handedOn.get(uid) ?? this.#delivered.get(uid)?.version) === version
  }

  /** Returns the finalizer for the events passed on. */
  handOn(seen: readonly SeenEvent[], version: string | undefined): Finalizer {
    const pending: Pending = { seen, version, answered: false }
    const generation = this.#generation
    this.#pending.push(pending)
    for (const one of seen) this.#handedOn.set(one.uid, one.version)
    return new Finalizer((status: BatchStatus) => {
      if (generation !== this.#generation) return
      if (status === 'errored') {
        this.lost = true
        this.onLost()
        this.#moved()
        return
      }
      pending.answered = true
      for (const one of seen) {
        if (this.#handedOn.get(one.uid) === one.version) this.#handedOn.delete(one.uid)
        this.#delivered.delete(one.uid)
        this.#delivered.set(one.uid, one)
      }
      this.#advance()
    })
  }

  /** There are no events to pass on up to a version. */
  skip(version: string): void {
    const last = this.#pending.at(-1)
    if (last?.seen.length === 0) last.version = version
    else this.#pending.push({ seen: [], version, answered: true })
    this.#advance()
  }

  /** Starts again after the last delivered event, so events in flight are passed on again. */
  rewind(): void {
    this.#generation++
    this.#pending = []
    this.#handedOn.clear()
    this.lost = false
  }

  /** Continues from a time, or a margin before it, because no version is known. */
  beginAt(ms: number): void {
    this.rewind()
    this.#version = undefined
    this.#ms = ms
    this.#newestMs = ms
  }

  #advance(): void {
    let moved = 0
    for (const { answered, seen, version } of this.#pending) {
      if (!answered) break
      moved++
      for (const { uid, ms } of seen) {
        this.#uid = uid
        // A time in the future would make all other events old.
        this.#newestMs = Math.max(this.#newestMs, Math.min(ms, Date.now()))
      }
      if (version === undefined) continue
      this.#version = version
      this.#ms = this.#newestMs
    }
    if (moved === 0) return
    this.#pending.splice(0, moved)
    if (this.#delivered.size > maxKnown) {
      const surplus = this.#delivered.size - maxKnown
      for (const uid of [...this.#delivered.keys()].slice(0, surplus)) this.#delivered.delete(uid)
    }
    this.#moved()
  }

  save(): Saved {
    for (const [uid, { ms }] of this.#delivered) if (ms < this.floorMs) this.#delivered.delete(uid)
    return {
      version: this.#version,
      uid: this.#uid,
      ms: this.#ms,
      known: [...this.#delivered.values()].map(({ uid, version, ms }) => [uid, version, ms]),
    }
  }
}

interface Document {
  readonly version: '1'
  /** When the events were last watched. */
  readonly at: number
  readonly cursors: Readonly<Record<string, Saved>>
}

/** Positions of ended sources that still wait for answers: a replacement source continues with them. */
const opened = new Map<string, Cursors>()

export class Cursors {
  readonly #path: string
  readonly #events: ComponentEvents
  readonly #cursors = new Map<string, Cursor>()
  readonly #saved: Document | undefined
  #users = 0
  #timer: NodeJS.Timeout | undefined
  #alive: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #at: number | undefined
  #none: (() => void)[] = []

  static open(directory: string, events: ComponentEvents): Cursors {
    const path = join(directory, 'cursor.json')
    let cursors = opened.get(path)
    if (cursors === undefined) {
      cursors = new Cursors(path, events)
      opened.set(path, cursors)
    }
    cursors.#users++
    cursors.#alive ??= setInterval(() => cursors.#soon(), aliveEveryMs).unref()
    return cursors
  }

  private constructor(path: string, events: ComponentEvents) {
    this.#path = path
    this.#events = events
    this.#saved = read(path)
    this.#at = this.#saved?.at
  }

  /** When this cursor last watched the events. */
  get at(): number | undefined {
    return this.#at
  }

  /** The position of a stream; `isKnown` is false for a new one. */
  cursor(stream: string): { readonly cursor: Cursor; readonly isKnown: boolean } {
    const open = this.#cursors.get(stream)
    if (open !== undefined) return { cursor: open, isKnown: true }
    const saved = Object.hasOwn(this.#saved?.cursors ?? {}, stream) ? this.#saved?.cursors[stream] : undefined
    const cursor = new Cursor(saved ?? {}, () => this.#soon())
    this.#cursors.set(stream, cursor)
    return { cursor, isKnown: saved !== undefined && (saved.version !== undefined || typeof saved.ms === 'number') }
  }

  /** Waits for the outstanding answers, and writes the position. */
  async close(): Promise<void> {
    if (this.#users === 1) {
      clearInterval(this.#alive)
      this.#alive = undefined
    }
    while (this.#inFlight) await new Promise<void>((resolve) => this.#none.push(resolve))
    this.#users--
    if (this.#users > 0) return
    clearInterval(this.#alive)
    this.#alive = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#write()
    if (this.#users === 0) opened.delete(this.#path)
  }

  get #inFlight(): boolean {
    return [...this.#cursors.values()].some(({ inFlight, lost }) => inFlight > 0 && !lost)
  }

  /** Called when events have been answered. */
  settle(): void {
    if (this.#inFlight) return
    for (const resolve of this.#none.splice(0)) resolve()
  }

  #soon(): void {
    this.settle()
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      void this.#write()
    }, writeAfterMs)
  }

  #write(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        await this.#replace()
      } catch (error) {
        this.#events.error({
          type: 'writer_failed',
          stage: 'processing',
          message: 'Could not write the position in the events; after a restart some events may be delivered twice.',
          fields: { file: this.#path, error: errorText(error) },
        })
      }
    })
    return this.#writing
  }

  async #replace(): Promise<void> {
    this.#at = Date.now()
    const cursors = [...this.#cursors].map(([stream, cursor]) => [stream, cursor.save()] as const)
    const document: Document = { version: '1', at: this.#at, cursors: Object.fromEntries(cursors) }
    const file = await open(`${this.#path}.new`, 'w', 0o600)
    try {
      await file.writeFile(JSON.stringify(document))
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(`${this.#path}.new`, this.#path)
  }
}

/** The written state; undefined if there is no complete file. */
function read(path: string): Document | undefined {
  try {
    const document = JSON.parse(readFileSync(path, 'utf8')) as Document
    const isWhole =
      typeof document.at === 'number' &&
      Object.values(document.cursors).every(
        ({ known, version }) => Array.isArray(known) && ['string', 'undefined'].includes(typeof version),
      )
    return isWhole ? document : undefined
  } catch {
    return undefined // the first start, or a truncated file
  }
}
