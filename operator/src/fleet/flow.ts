// Traffic of one Pipeline over the last minutes. Agents report at different times, so the counts of each are spread over its
// reporting interval: constant traffic gives constant figures.

import type { LastError } from '@penstock/agent/bundle'

export interface Sums {
  eventsIn: number
  eventsOut: number
  dropped: number
  errors: number
}

export interface ComponentError extends LastError {
  readonly node: string
}

/** A component and its last problem. */
export interface FailingComponent {
  readonly name: string
  readonly kind: string
  readonly errors: number
  readonly last: ComponentError | undefined
}

/** Reasons of `Flowing` that errors explain, and whether only sink errors count. */
const explained: Readonly<Record<string, { readonly bySinks: boolean }>> = {
  AllEventsDropped: { bySinks: false },
  SomeEventsDropped: { bySinks: false },
  NoEventsDelivered: { bySinks: true },
  BufferFillingUp: { bySinks: true },
}

/**
 * The component with the most errors that explain a reason of `Flowing`, and its last error; undefined if there is
 * none.
 */
export function causeOf(reason: string, failing: readonly FailingComponent[]): string | undefined {
  const why = explained[reason]
  if (why === undefined) return undefined
  let worst: FailingComponent | undefined
  for (const component of failing) {
    if (component.last === undefined || (why.bySinks && component.kind !== 'sink')) continue
    if (worst === undefined || component.errors > worst.errors) worst = component
  }
  return worst?.last && `${worst.kind}s[${worst.name}] on ${worst.last.node}: ${worst.last.message}`
}

const sumNames = ['eventsIn', 'eventsOut', 'dropped', 'errors'] as const
const slotMs = 30_000
const windowSlots = 10
export const flowWindowMs = windowSlots * slotMs
/** Losses of this age still count as current, so that single losses do not change the condition each time. */
const recentSlots = 3

interface Slot extends Sums {
  /** The maximum number of bytes in buffers. */
  buffered: number
}

interface Component {
  kind: string
  readonly slots: Map<number, number>
  last: ComponentError | undefined
}

/** A span of slots. */
interface Span {
  readonly from: number
  /** The end, which is not part of the span. */
  readonly to: number
}

export class Flow {
  readonly #slots = new Map<number, Slot>()
  readonly #components = new Map<string, Component>()
  /** Maximum delay of reports: later counts are incomplete. */
  readonly #lateMs: number
  /** The period covered by agents' counts, as far as known. */
  #first = Number.POSITIVE_INFINITY
  #last = Number.NEGATIVE_INFINITY

  constructor(lateMs: number) {
    this.#lateMs = lateMs
  }

  /** Adds an agent's counts for an interval. */
  add(from: number, to: number, sums: Sums): void {
    const start = Math.max(from, to - flowWindowMs)
    this.#first = Math.min(this.#first, start)
    this.#last = Math.max(this.#last, to)
    const length = to - start
    for (let slot = slotOf(start); slot <= slotOf(to); slot++) {
      const share = length <= 0 ? 1 : (Math.min(to, (slot + 1) * slotMs) - Math.max(start, slot * slotMs)) / length
      if (share <= 0) continue
      const known = this.#slot(slot)
      for (const name of sumNames) known[name] += sums[name] * share
    }
    this.#forget(to)
  }

  /** Records a problem of a component. */
  fail(now: number, name: string, kind: string, errors: number, last: ComponentError | undefined): void {
    let component = this.#components.get(name)
    if (component === undefined) {
      component = { kind, slots: new Map(), last }
      this.#components.set(name, component)
    }
    component.kind = kind
    component.last = last ?? component.last
    const slot = slotOf(now)
    component.slots.set(slot, (component.slots.get(slot) ?? 0) + errors)
  }

  /** Records the number of bytes currently in buffers. */
  hold(now: number, bytes: number): void {
    if (bytes === 0 && this.#slots.size === 0) return
    const slot = this.#slot(slotOf(now))
    slot.buffered = Math.max(slot.buffered, bytes)
  }

  /** The last five minutes that all agents have reported; all reports if there are fewer. */
  figures(now: number): Readonly<Slot> {
    return this.#sum(this.#window(now))
  }

  /** The window of the figures in milliseconds: five minutes, or less at the beginning. */
  knownMs(now: number): number {
    if (!this.#isYoung(now) || this.#last <= this.#first) return flowWindowMs
    return Math.min(flowWindowMs, Math.max(1000, this.#last - this.#first))
  }

  /** Recent reports. */
  recent(now: number): Readonly<Sums> {
    return this.#sum({ from: slotOf(now) - recentSlots + 1, to: slotOf(now) + 1 })
  }

  /** The components with problems in this window, by name. */
  failing(now: number): FailingComponent[] {
    this.#forget(now)
    const window = this.#window(now)
    return [...this.#components]
      .map(([name, { kind, slots, last }]) => {
        let errors = 0
        for (const [slot, count] of slots) if (slot >= window.from && slot < window.to) errors += count
        return { name, kind, errors, last }
      })
      .sort((left, right) => (left.name < right.name ? -1 : 1))
  }

  #window(now: number): Span {
    const complete = slotOf(now - this.#lateMs)
    const to = this.#isYoung(now) ? slotOf(now) + 1 : complete
    return { from: to - windowSlots, to }
  }

  /** Whether less than the window is known. */
  #isYoung(now: number): boolean {
    return slotOf(this.#first) > slotOf(now - this.#lateMs) - windowSlots
  }

  #sum({ from, to }: Span): Slot {
    const total = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0, buffered: 0 }
    for (const [slot, sums] of this.#slots) {
      if (slot < from || slot >= to) continue
      for (const name of sumNames) total[name] += sums[name]
      total.buffered = Math.max(total.buffered, sums.buffered)
    }
    for (const name of sumNames) total[name] = Math.round(total[name])
    return total
  }

  #slot(slot: number): Slot {
    let known = this.#slots.get(slot)
    if (known === undefined) {
      known = { eventsIn: 0, eventsOut: 0, dropped: 0, errors: 0, buffered: 0 }
      this.#slots.set(slot, known)
    }
    return known
  }

  #forget(now: number): void {
    const oldest = slotOf(now - this.#lateMs) - windowSlots
    for (const slot of this.#slots.keys()) if (slot < oldest) this.#slots.delete(slot)
    if (this.#slots.size === 0) {
      this.#first = Number.POSITIVE_INFINITY
      this.#last = Number.NEGATIVE_INFINITY
    }
    for (const [name, { slots }] of this.#components) {
      for (const slot of slots.keys()) if (slot < oldest) slots.delete(slot)
      if (slots.size === 0) this.#components.delete(name)
    }
  }
}

const slotOf = (at: number) => Math.floor(at / slotMs)

/** Two significant digits. */
export function rounded(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(2))
}

/**
 * Two significant digits; written figures stay while they are about as accurate as the new ones, so constant traffic causes
 * no writes.
 */
export function steady(value: number, before: unknown): number {
  const known = Number(before)
  if (before !== undefined && Number.isFinite(known) && known > 0 && value > 0) {
    const unit = 10 ** (Math.floor(Math.log10(known)) - 1)
    if (Math.abs(value - known) <= unit * 0.75) return known
  }
  return rounded(value)
}

/** Minimum reported lag: a smaller one is just the time between two reads. */
const minLagSeconds = 5

/** Lag in seconds with at most two digits; the reported value stays as long as it is about right. */
export function steadyLag(seconds: number, before: number | undefined): number {
  if (before !== undefined && isAbout(seconds, before)) return before
  return seconds < minLagSeconds ? 0 : rounded(Math.round(seconds))
}

/** Whether two numbers of seconds differ by less than a quarter. */
export function isAbout(seconds: number, other: number): boolean {
  return other > 0 && Math.abs(seconds - other) <= other / 4
}
