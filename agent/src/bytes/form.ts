// The changes by programs to events whose fields nothing has read: the members of the message in place of the event, beside its fields
// or under one of them, and fields of the root that are then set, moved, removed or computed.

import { joinedKey } from '../event/joined-key.ts'
import type { EventMetadata, LogEvent } from '../event/log.ts'
import type { Value, ValueObject } from '../event/value.ts'

/** The treatment of a text that is a JSON object. */
export interface ByteParsing {
  /** The field with the text. */
  readonly field: string
  /** Whether the fields from before stay, where the text has no member of that name. */
  readonly merges: boolean
  /** The field that holds the object; undefined: its members become those of the event. */
  readonly under: string | undefined
}

/** The result of a program for a field, for every event. */
export type ByteEdit =
  | { readonly is: 'constant'; readonly value: Value }
  | { readonly is: 'removed' }
  /** The value that another field, or the same, had before; null if there was none. */
  | { readonly is: 'moved'; readonly from: string }

/** A part of a program that runs once for events whose values of a few fields are the same. */
export interface ByteUnit {
  /** Fields of the root that decide, as they are before any is changed. */
  readonly reads: readonly string[]
  /** Fields of the root that it may change. */
  readonly writes: readonly string[]
  /**
   * Runs it on the fields that it reads. Those that it only writes may have any value.
   * @returns how the program ends; undefined if it continues
   */
  run(fields: ValueObject, metadata: EventMetadata): object | undefined
  /** The fields after the last run. */
  readonly after: ValueObject
}

/** A program whose result is known without a run for each event. */
export interface ByteEdits {
  readonly parsing: ByteParsing | undefined
  /** By field. No unit reads or writes it, and it moves none that a unit writes. */
  readonly edits: ReadonlyMap<string, ByteEdit>
  /**
   * In their order; no two write the same field, or a field that another one reads. The program continues unless one of them ends it.
   */
  readonly units: readonly ByteUnit[]
  /** The input of the units: the same program after it has only parsed the text; itself, if it does nothing else. */
  readonly bare: ByteEdits
  /** Runs the program on an event for which it does not fail. */
  apply(event: LogEvent): void
}

/** The value of a root field that comes neither from the message nor from the source. */
export type Member =
  | ByteEdit
  /**
   * The value of a column of the batch; if the column leaves the field, the value `under` it, or the field of the message or the
   * source.
   */
  | { readonly is: 'computed'; readonly column: number; readonly under: ByteEdit | undefined }

/** The source of a new column's values: a unit, over those of an older column; or an older column, with null for missing values. */
export type ColumnSource =
  | { readonly unit: number; readonly field: string; readonly over: number | undefined }
  | { readonly copied: number }

type Members = ReadonlyMap<string, Member>

/** Fields of the root that are written, and how. */
export interface FieldSelection {
  /** Those that are; undefined: all. */
  readonly only: ReadonlySet<string> | undefined
  /** Those of them that are not. */
  readonly except: readonly string[]
  /** Gives a value with its times in another form, or itself if it has none; undefined: times are written as they are. */
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
  /** Columns that a batch of this form has, and the last ones of them, which the last program has added. */
  readonly columnCount: number
  readonly newColumns: readonly ColumnSource[]
  /** The programs, in their order. */
  readonly edits: readonly ByteEdits[]
  /** The only fields that count; undefined: all. Such a form is for writing. */
  readonly only: ReadonlySet<string> | undefined
  readonly #next = new WeakMap<ByteEdits, Form>()
  readonly #less = new Map<string, Form>()
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

  /** Events as a source makes them. */
  static readonly asRead = new Form({
    parsing: undefined,
    members: new Map(),
    columnCount: 0,
    newColumns: [],
    edits: [],
  })

  /** Whether the objects in messages are read. */
  get parses(): boolean {
    return this.parsing !== undefined
  }

  /** Whether the members of the message are members of the event. */
  get spreads(): boolean {
    return this.parsing !== undefined && this.parsing.under === undefined
  }

  /** Whether fields of the source are fields of the event. */
  get hasOrigin(): boolean {
    return !this.spreads || this.parsing?.merges === true
  }

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
      const members: Members = new Map([...this.members, ...names.map((name) => [name, removed] as const)])
      form = new Form({ ...this, members })
      this.#less.set(key, form)
    }
    return form
  }

  /** The form with some fields alone. */
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

  /** The form with other members, of which columns are computed that a batch of this form does not have. */
  withMembers(members: ReadonlyMap<string, Member>, columnCount: number): Form {
    return new Form({ ...this, members, columnCount })
  }

  /** The members of the message alone that no program has set or removed. */
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
    // Fields set before a text is parsed may be replaced by its members, or be the text.
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

/** A field that was moved: null where it was removed. */
function orNull(edit: ByteEdit): ByteEdit {
  return edit.is === 'removed' ? nothing : edit
}
