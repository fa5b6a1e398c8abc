// The changes by programs to events whose fields have not been read yet: the members of the message replace the event, are merged with
// its fields or go into one field; then root fields are set, moved, removed or computed.

import type { EventMetadata, LogEvent } from '../event/log.ts'
import type { Value, ValueObject } from '../event/value.ts'

/** How a text that is a JSON object is parsed. */
export interface ByteParsing {
  /** The field with the text. */
  readonly field: string
  /** Whether fields without a same-named member in the text are kept. */
  readonly merges: boolean
  /** The field for the object; undefined: its members become members of the event. */
  readonly under: string | undefined
}

/** How a program changes a field, for every event. */
export type ByteEdit =
  | { readonly is: 'constant'; readonly value: Value }
  | { readonly is: 'removed' }
  /** The previous value of a field; null if it did not exist. */
  | { readonly is: 'moved'; readonly from: string }

/** A part of a program that runs once for all events with the same values of a few fields. */
export interface ByteUnit {
  /** Root fields that it reads, with their values from before any change. */
  readonly reads: readonly string[]
  /** Root fields that it may change. */
  readonly writes: readonly string[]
  /**
   * Runs on the fields that it reads. Fields that it only writes may have any value. @returns how the program ends;
   * undefined if it continues
   */
  run(fields: ValueObject, metadata: EventMetadata): object | undefined
  /** The fields after the last run. */
  readonly after: ValueObject
}

/** A program whose effect is known without running it for each event. */
export interface ByteEdits {
  readonly parsing: ByteParsing | undefined
  /** By field. No unit reads or writes these fields, and no edit moves a field that a unit writes. */
  readonly edits: ReadonlyMap<string, ByteEdit>
  /**
   * In execution order. No two units write the same field, or a field that another one reads. The program continues unless a unit
   * ends it.
   */
  readonly units: readonly ByteUnit[]
  /** The input of the units: the program reduced to its parsing; the object itself if it only parses. */
  readonly bare: ByteEdits
  /** Runs the program on an event for which it cannot fail. */
  apply(event: LogEvent): void
}

/** The value of a root field that comes neither from the message nor from the source. */
export type Member =
  | ByteEdit
  /**
   * The value of a column of the batch. If the column leaves the field, the value `under` it, or that of the message or source.
   */
  | { readonly is: 'computed'; readonly column: number; readonly under: ByteEdit | undefined }

/**
 * Where the values of a new column come from: a unit, with an older column below it; or an older column, with null for missing
 * values.
 */
export type ColumnSource =
  | { readonly unit: number; readonly field: string; readonly over: number | undefined }
  | { readonly copied: number }

type Members = ReadonlyMap<string, Member>

/** Which root fields are written, and how. */
export interface FieldSelection {
  /** The only fields written; undefined: all. */
  readonly only: ReadonlySet<string> | undefined
  /** Exceptions from them. */
  readonly except: readonly string[]
  /**
   * Converts the times in a value; returns the value itself if it contains none. Undefined: times are written unchanged.
   */
  readonly converted: ((value: Value) => Value) | undefined
}

export const allFields: FieldSelection = { only: undefined, except: [], converted: undefined }

interface FormParts {
  readonly parsing: ByteParsing | undefined
  readonly members: Members
  readonly columnCount: number
  readonly newColumns: readonly ColumnSource[]
  readonly edits: readonly ByteEdits[]
  readonly only?: ReadonlySet<string> | undefined
}

const removed: ByteEdit = { is: 'removed' }
const nothing: ByteEdit = { is: 'constant', value: null }

export class Form {
  /** Undefined if the message is not parsed. */
  readonly parsing: ByteParsing | undefined
  readonly members: Members
  /** Number of columns in a batch of this form, and how many of them the last program has added. */
  readonly columnCount: number
  readonly newColumns: readonly ColumnSource[]
  /** The programs, in execution order. */
  readonly edits: readonly ByteEdits[]
  /** The only relevant fields; undefined: all. A form with this restriction is only for writing. */
  readonly only: ReadonlySet<string> | undefined
  readonly #next = new WeakMap<ByteEdits, Form>()
  readonly #less = new WeakMap<readonly string[], Form>()
  readonly #selected = new WeakMap<FieldSelection, Form>()
  #bare: Form | undefined

  private constructor({ parsing, members, columnCount, newColumns, edits, only }: FormParts) {
    this.parsing = parsing
    this.members = members
    this.columnCount = columnCount
    this.newColumns = newColumns
    this.edits = edits
    this.only = only
  }

  /** Events as the source creates them. */
  static readonly asRead = new Form({
    parsing: undefined,
    members: new Map(),
    columnCount: 0,
    newColumns: [],
    edits: [],
  })

  /** Whether the objects in messages are parsed. */
  get parses(): boolean {
    return this.parsing !== undefined
  }

  /** Whether message members become event members. */
  get spreads(): boolean {
    return this.parsing !== undefined && this.parsing.under === undefined
  }

  /** Whether fields of the source are event fields. */
  get hasOrigin(): boolean {
    return !this.spreads || this.parsing?.merges === true
  }

  /** The form after another program; undefined if it cannot be represented. */
  after(edits: ByteEdits): Form | undefined {
    const known = this.#next.get(edits)
    if (known !== undefined) return known
    const next = this.#after(edits)
    if (next !== undefined) this.#next.set(edits, next)
    return next
  }

  /** The form without some fields. It is kept as long as the list of their names. */
  without(names: readonly string[]): Form {
    let form = this.#less.get(names)
    if (form === undefined) {
      const members: Members = new Map([...this.members, ...names.map((name) => [name, removed] as const)])
      form = new Form({ ...this, members })
      this.#less.set(names, form)
    }
    return form
  }

  /** The form with only some fields. */
  selected(selection: FieldSelection): Form {
    const { only, except, converted } = selection
    if (only === undefined && except.length === 0 && converted === undefined) return this
    let form = this.#selected.get(selection)
    if (form === undefined) {
      const members: Members = new Map([...this.members, ...except.map((name) => [name, removed] as const)])
      form = new Form({ ...this, members, only })
      this.#selected.set(selection, form)
    }
    return form
  }

  /** The form with other members, including columns that a batch of this form does not have. */
  withMembers(members: ReadonlyMap<string, Member>, columnCount: number): Form {
    return new Form({ ...this, members, columnCount })
  }

  /** Only the message members that no program has set or removed. */
  get bare(): Form {
    this.#bare ??= new Form({
      parsing: { field: 'message', merges: false, under: undefined },
      members: new Map([...this.members.keys()].map((name) => [name, removed])),
      columnCount: 0,
      newColumns: [],
      edits: [],
    })
    return this.#bare
  }

  #after(edits: ByteEdits): Form | undefined {
    const { parsing = this.parsing, units } = edits
    // A field set before parsing may be replaced by a message member, or be the parsed text.
    if (edits.parsing !== undefined && (edits.parsing.field !== 'message' || this.parses || this.members.size > 0)) {
      return undefined
    }
    const members = new Map(this.members)
    const newColumns: ColumnSource[] = []
    for (const [name, edit] of edits.edits) {
      const before = edit.is === 'moved' ? this.members.get(edit.from) : undefined
      if (before?.is !== 'computed') members.set(name, before === undefined ? edit : orNull(before))
      else {
        const under = before.under === undefined ? edit : orNull(before.under)
        members.set(name, { is: 'computed', column: this.columnCount + newColumns.length, under })
        newColumns.push({ copied: before.column })
      }
    }
    for (const [unit, { writes }] of units.entries()) {
      for (const field of writes) {
        const before = this.members.get(field)
        const [under, over] = before?.is === 'computed' ? [before.under, before.column] : [before, undefined]
        members.set(field, { is: 'computed', column: this.columnCount + newColumns.length, under })
        newColumns.push({ unit, field, over })
      }
    }
    const columnCount = this.columnCount + newColumns.length
    return new Form({ parsing, members, columnCount, newColumns, edits: [...this.edits, edits] })
  }
}

/** The edit, with null for a removed field. */
function orNull(edit: ByteEdit): ByteEdit {
  return edit.is === 'removed' ? nothing : edit
}
