// What programs have made of the events of a batch whose fields nobody has asked for: the members of the message in place of the event or
// beside its fields, and members that are then set or removed.

import { joinedKey } from '../event/joined-key.ts'
import type { LogEvent } from '../event/log.ts'
import type { Value } from '../event/value.ts'

/** What keeps some events from being changed, or ends them. */
export interface ByteGuard {
  /** Fields of the root that decide, as they are before any member is set or removed. */
  readonly fields: readonly string[]
  /** How the program ends for an event; undefined if it goes on. The event has those fields alone. */
  endOf(event: LogEvent): object | undefined
}

/** A program whose result is known without a run. */
export interface ByteEdits {
  /** In their order. The program goes on where none of them ends it. */
  readonly guards: readonly ByteGuard[]
  /** What the guards look at: the same program without guards and members. Undefined if there are no guards. */
  readonly parsing: ByteEdits | undefined
  /** The field whose text is parsed as a JSON object; undefined if the program parses nothing. */
  readonly field: string | undefined
  /** Whether the fields from before stay, where the text has no member of that name. */
  readonly merges: boolean
  /** Members that are then set; undefined: that are removed. */
  readonly members: ReadonlyMap<string, Value | undefined>
  /** Runs the program on an event for which it does not fail. */
  apply(event: LogEvent): void
}

export class Form {
  /** Whether the message is parsed. */
  readonly parses: boolean
  readonly merges: boolean
  readonly members: ReadonlyMap<string, Value | undefined>
  /** The programs, in their order. */
  readonly edits: readonly ByteEdits[]
  readonly #next = new WeakMap<ByteEdits, Form>()
  readonly #less = new Map<string, Form>()

  private constructor(parses: boolean, merges: boolean, members: Form['members'], edits: readonly ByteEdits[]) {
    this.parses = parses
    this.merges = merges
    this.members = members
    this.edits = edits
  }

  /** Events as a source makes them. */
  static readonly asRead = new Form(false, false, new Map(), [])

  /** The form after a further program; undefined if there is none. */
  after(edits: ByteEdits): Form | undefined {
    const known = this.#next.get(edits)
    if (known !== undefined) return known
    const next = this.#after(edits)
    if (next !== undefined) this.#next.set(edits, next)
    return next
  }

  /** The form without some fields. The names come from a configuration, not from data. */
  without(names: readonly string[]): Form {
    const key = joinedKey(names)
    let form = this.#less.get(key)
    if (form === undefined) {
      form = new Form(
        this.parses,
        this.merges,
        new Map([...this.members, ...names.map((name) => [name, undefined] as const)]),
        this.edits,
      )
      this.#less.set(key, form)
    }
    return form
  }

  #after(edits: ByteEdits): Form | undefined {
    const all = [...this.edits, edits]
    if (edits.field === undefined) {
      return new Form(this.parses, this.merges, new Map([...this.members, ...edits.members]), all)
    }
    // What is set before a text is parsed may be replaced by its members, or be the text.
    if (edits.field !== 'message' || this.parses || this.members.size > 0) return undefined
    return new Form(true, edits.merges, edits.members, all)
  }
}
