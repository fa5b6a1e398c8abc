// The origin of lines that stay bytes: the data that all lines of a file share, and the plans of how to write them.

import type { EventMetadata, LogEvent } from '../event/log.ts'
import type { Form } from './form.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable, NameOwner } from './key-table.ts'
import { type LinePart, type OriginField, Plan } from './plan.ts'
import type { PlanRoom } from './plan-room.ts'

/** The source of lines. */
interface LineOwner extends NameOwner {
  /** Limits the plans; undefined if each is needed only once. */
  readonly plans?: PlanRoom
}

/**
 * The data shared by the lines of a file. It never changes: if the metadata of a file changes, the file gets a new
 * object.
 */
export class LineOrigin {
  readonly fields: readonly OriginField[]
  readonly metadata: EventMetadata
  readonly keys: KeyTable
  readonly owner: LineOwner
  readonly #eventOf: LineOrigin['eventOf']
  readonly #plans = new WeakMap<Form, Plan>()

  /**
   * @param owner the source, for which names and plans are counted
   * @param eventOf creates the event of a line, which must be whole and in the usual format
   */
  constructor(
    fields: readonly OriginField[],
    metadata: EventMetadata,
    keys: KeyTable,
    owner: LineOwner,
    eventOf: (bytes: Buffer, start: number, end: number) => LogEvent,
  ) {
    this.fields = fields
    this.metadata = metadata
    this.keys = keys
    this.owner = owner
    this.#eventOf = eventOf
  }

  has(name: string): boolean {
    return this.fields.some((field) => field.name === name)
  }

  /**
   * The part of a line that a field comes from; undefined if the field is the same for all lines, or does not exist.
   */
  partOf(name: string): LinePart | undefined {
    for (const field of this.fields) if (field.name === name) return 'part' in field ? field.part : undefined
    return undefined
  }

  eventOf(bytes: Buffer, start: number, end: number): LogEvent {
    return this.#eventOf(bytes, start, end)
  }

  plan(kernel: Kernel, form: Form): Plan {
    let plan = this.#plans.get(form)
    if (plan === undefined) {
      plan = new Plan(kernel, this, form)
      this.#plans.set(form, plan)
      const room = this.owner.plans
      if (room !== undefined) this.#keepIn(room, form, plan)
    }
    return plan
  }

  #keepIn(room: PlanRoom, form: Form, plan: Plan): void {
    const plans = new WeakRef(this.#plans)
    const ofForm = new WeakRef(form)
    room.add(plan, plan.bytes, () => {
      const known = ofForm.deref()
      if (known !== undefined) plans.deref()?.delete(known)
    })
  }
}
