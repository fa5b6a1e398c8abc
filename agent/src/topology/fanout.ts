// An output of a component and its readers. Fan-out shares the batch: each additional reader costs a share of the finalizer
// and a small object, never a copy of events. It is all synchronous; full readers report back-pressure through `Pressure`.

import { type Batch, finalizeBatch } from '../event/batch.ts'

/** A reader of an output: a transform, or the buffer of a sink. */
export interface Consumer {
  /** Takes the batch over. Must not throw. */
  push(batch: Batch): void
  /** Whether the consumer accepts byte lines and needs no objects. */
  readonly takesBytes?: boolean
}

/** An observer of an output. It must not change or keep events, or throw. */
export interface Observer {
  look(batch: Batch): void
}

/** Collects the promises that the pusher must await after a push through the topology. */
export class Pressure {
  #waits: Promise<void>[] | undefined

  add(wait: Promise<void>): void {
    if (this.#waits === undefined) this.#waits = [wait]
    else this.#waits.push(wait)
  }

  /** Pushes a batch into an output; returns a promise to await, if any. Pushes may be nested. */
  push(outlet: Outlet, batch: Batch): Promise<void> | undefined {
    const outer = this.#waits
    this.#waits = undefined
    outlet.send(batch)
    const waits = this.#waits as Promise<void>[] | undefined
    this.#waits = outer
    if (waits === undefined) return undefined
    return waits.length === 1 ? waits[0] : Promise.all(waits).then(() => undefined)
  }
}

export class Outlet {
  /** `component` or `component.port`. */
  readonly id: string
  consumers: readonly Consumer[] = []
  readonly #observers = new Set<Observer>()

  constructor(id: string) {
    this.id = id
  }

  /** Whether all readers accept byte lines: if one needs objects, lines would cost more. */
  get takesBytes(): boolean {
    const { consumers } = this
    for (let index = 0; index < consumers.length; index++) {
      if ((consumers[index] as Consumer).takesBytes !== true) return false
    }
    return consumers.length > 0
  }

  send(batch: Batch): void {
    if (this.#observers.size > 0) for (const observer of this.#observers) observer.look(batch)
    const consumers = this.consumers
    const last = consumers.length - 1
    if (last > 0) {
      batch.finalizer.retain(last)
      for (let index = 0; index < last; index++) (consumers[index] as Consumer).push(batch.share())
    }
    const consumer = consumers[last]
    // An output without readers discards its events by design.
    if (consumer === undefined) finalizeBatch(batch, 'dropped')
    else consumer.push(batch)
  }

  watch(observer: Observer): void {
    this.#observers.add(observer)
  }

  unwatch(observer: Observer): void {
    this.#observers.delete(observer)
  }
}
