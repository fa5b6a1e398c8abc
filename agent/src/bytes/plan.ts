// The kernel's instructions for writing events of one origin in one form, in addition to the lines: members from outside the message,
// as JSON, and names of members to set or remove.

import { ownBytes } from '../bounded-map.ts'
import { keptJson } from '../event/shared-object.ts'
import { memberSize } from '../event/size.ts'
import type { Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { type Column, enterColumns } from './columns.ts'
import type { ByteEdit, Form } from './form.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable, NameOwner } from './key-table.ts'

/** The parts that differ from line to line. */
export type LinePart = 'message' | 'stream' | 'time'

/** A field of the events that a source creates. */
export type OriginField = { readonly name: string } & ({ readonly part: LinePart } | { readonly value: Value })

/** The origin of the lines that a plan writes. */
export interface PlanOrigin {
  readonly fields: readonly OriginField[]
  readonly keys: KeyTable
  /** The source, for which names are counted. */
  readonly owner: NameOwner
}

/** Estimated bytes of a plan, and of each of its entries, without their JSON. */
const planBytes = 400
const entryBytes = 200

interface Entry {
  readonly key: number
  readonly kind: number
  readonly json: Uint8Array
  readonly size: number
  /** The key of the message member that decides whether it is written; for a column value, the column number. */
  readonly other: number
  /** The column that must leave the field; -1: none. */
  readonly column: number
}

const noJson: Uint8Array = new Uint8Array(0)
const ownJson = (value: Value): Uint8Array => ownBytes(writeJson(value))
const noColumn = -1

export class Plan {
  readonly form: Form
  /** How the object in the message is used, in the kernel's encoding. */
  readonly mode: number
  readonly #keys: KeyTable
  readonly #owner: NameOwner
  readonly #fields: readonly OriginField[]
  readonly #entries: Entry[] = []
  /** The kernel's data about edited message members, by key. */
  readonly #edited: (readonly [key: number, edit: number])[] = []
  /** The only message members written; undefined: all. */
  readonly #only: readonly number[] | undefined
  readonly #literalBytes: number
  // For one order of names: the kernel's list of members, the positions of column values in it, and the literals.
  #rankedFor = -1
  #outside = new Int32Array(0)
  #columnPlaces: number[] = []
  #literals: Uint8Array = noJson
  /** False if the kernel does not support the plan: it rejects a name, or the plan does not fit. */
  readonly isPossible: boolean

  constructor(kernel: Kernel, { keys, owner, fields }: PlanOrigin, form: Form) {
    this.form = form
    this.mode = kernel.at(form.spreads ? 'spread' : form.parses ? 'nested' : 'apart')
    this.#keys = keys
    this.#owner = owner
    this.#fields = fields
    keys.enter(kernel)
    this.#only = form.only && [...form.only].map((name) => this.#find(kernel, name))
    const isKnown = this.#only?.every((key) => key >= 0) !== false
    const added = isKnown && this.#addBase(kernel) && this.#addMembers(kernel)
    this.#literalBytes = this.#entries.reduce((sum, { key, json }) => sum + this.#name(key).length + json.length, 0)
    this.isPossible =
      added &&
      form.columnCount <= kernel.at('maxColumns') &&
      this.#entries.length <= kernel.at('maxOutside') &&
      this.#literalBytes <= kernel.at('maxLiterals')
    if (!this.isPossible) this.#entries.length = 0
  }

  /** Estimated memory. */
  get bytes(): number {
    return planBytes + this.#entries.length * entryBytes + 2 * this.#literalBytes + 8 * (this.#only?.length ?? 0)
  }

  /** The key of a name; negative if the kernel cannot hold it. */
  #find(kernel: Kernel, name: string): number {
    return this.#keys.find(kernel, name, this.#owner)
  }

  /** Adds the fields of the source, and the one with the object, unless a program has changed them. */
  #addBase(kernel: Kernel): boolean {
    const { form } = this
    const names = form.hasOrigin ? this.#fields.map(({ name }) => name) : []
    const under = form.parsing?.under
    if (under !== undefined && !names.includes(under)) names.push(under)
    for (const name of names) {
      if (!this.#isWritten(name)) continue
      const key = form.members.has(name) ? undefined : this.#find(kernel, name)
      if (key !== undefined && (key < 0 || !this.#addField(kernel, name, key, name, noColumn))) return false
    }
    return true
  }

  #isWritten(name: string): boolean {
    return this.form.only?.has(name) !== false
  }

  #addMembers(kernel: Kernel): boolean {
    for (const [name, member] of this.form.members) {
      const key = this.#find(kernel, name)
      if (key < 0) return false
      if (!this.#isWritten(name)) continue
      const isOpen = member.is === 'computed' && member.under === undefined
      this.#edited.push([key, isOpen ? kernel.at('byColumn') + member.column : 1])
      let added = true
      if (member.is !== 'computed') added = this.#addEdit(kernel, name, key, member, noColumn)
      else {
        const { column, under } = member
        this.#add(key, kernel.at('kindColumn'), name.length + 4, { other: column })
        added =
          under === undefined
            ? this.#addField(kernel, name, key, name, column)
            : this.#addEdit(kernel, name, key, under, column)
      }
      if (!added) return false
    }
    return true
  }

  #addEdit(kernel: Kernel, name: string, key: number, edit: ByteEdit, column: number): boolean {
    if (edit.is === 'constant') this.#addLiteral(kernel, name, key, edit.value, { column })
    return edit.is !== 'moved' || this.#addField(kernel, name, key, edit.from, column, true)
  }

  /**
   * Adds a field as the message or source has it. The kernel adds message members with their own names. @param orNull
   * whether the field is null if neither has it
   */
  #addField(kernel: Kernel, name: string, key: number, from: string, column: number, orNull = false): boolean {
    const { form } = this
    if (from === form.parsing?.under) {
      this.#add(key, kernel.at('kindObject'), name.length + 4, { column })
      return true
    }
    let weak = 0
    let other = 0
    if (form.spreads) {
      other = from === name ? key : this.#find(kernel, from)
      if (other < 0) return false
      weak = kernel.at('weak')
      if (orNull) this.#add(key, kernel.at('kindMember'), name.length + 4, { other, column })
    }
    const field = form.hasOrigin ? this.#fields.find((each) => each.name === from) : undefined
    if (field === undefined) {
      if (orNull) this.#addLiteral(kernel, name, key, null, { weak, other, column })
    } else if ('value' in field) this.#addLiteral(kernel, name, key, field.value, { weak, other, column })
    else {
      const kind = kernel.at(kinds[field.part]) + weak
      this.#add(key, kind, name.length + sizes[field.part], { other, column })
    }
    return true
  }

  #addLiteral(kernel: Kernel, name: string, key: number, value: Value, { weak = 0, ...rest }: Conditions): void {
    const json = keptJson(value, ownJson)
    this.#add(key, kernel.at('kindLiteral') + weak, memberSize(name, value), rest, json)
  }

  #add(key: number, kind: number, size: number, { other = 0, column = noColumn }: Conditions, json = noJson): void {
    this.#entries.push({ key, kind, json, size, other, column })
  }

  get count(): number {
    return this.#entries.length
  }

  /** Loads the plan into the kernel, which must have the names, and the columns that the plan refers to. */
  enter(kernel: Kernel, columns: readonly Column[]): void {
    const { content } = kernel
    // Columns of another plan cannot be used.
    if (columns.length !== this.form.columnCount) throw new Error('A plan was used with the columns of another plan.')
    const isEntered = content.plan === this && content.planVersion === this.#keys.version
    if (isEntered && (columns.length === 0 || content.columns === columns)) return
    if (!isEntered) this.#enter(kernel)
    if (columns.length === 0) return
    enterColumns(kernel, columns)
    const { outside } = kernel
    for (const place of this.#columnPlaces) {
      const column = outside[place + 6] as number
      let first = 0
      for (let index = 0; index < column; index++) first += columns[index]?.values.length ?? 0
      outside[place + 2] = first
      outside[place + 3] = longestOf(columns[column] as Column)
    }
  }

  #enter(kernel: Kernel): void {
    const { content, outside, edited, memory } = kernel
    const { version } = this.#keys
    if (this.#rankedFor !== version) {
      this.#rank(kernel)
      this.#rankedFor = version
    }
    content.plan = this
    content.planVersion = version
    edited.fill(this.#only === undefined ? 0 : 1)
    for (const key of this.#only ?? []) edited[key] = 0
    for (const [key, edit] of this.#edited) edited[key] = edit
    outside.set(this.#outside)
    memory.set(this.#literals, kernel.at('literals'))
  }

  /** A name as serialised before a value. */
  #name(key: number): Buffer {
    return Buffer.from(`,"${this.#keys.names[key]}":`)
  }

  /** Sorts the members by name, as the kernel requires. */
  #rank(kernel: Kernel): void {
    const ranked = this.#entries.map((entry) => ({ entry, rank: this.#keys.rank(kernel, entry.key) }))
    ranked.sort((left, right) => left.rank - right.rank)
    const literals = new Uint8Array(this.#literalBytes)
    this.#columnPlaces = []
    const words: number[] = []
    const kindColumn = kernel.at('kindColumn')
    const first = kernel.at('literals')
    let at = first
    for (const { entry, rank } of ranked) {
      const { key, kind, json, size, other, column } = entry
      const name = this.#name(key)
      literals.set(name, at - first)
      at += name.length
      literals.set(json, at - first)
      if (kind === kindColumn) this.#columnPlaces.push(words.length)
      words.push(key, kind, at, json.length, size, rank, other, column)
      at += json.length
    }
    this.#literals = literals
    this.#outside = Int32Array.from(words)
  }
}

/** Size of the longest value. */
function longestOf({ ends }: Column): number {
  let longest = 0
  let start = 0
  for (const end of ends) {
    longest = Math.max(longest, end - start)
    start = end
  }
  return longest
}

/** When an entry is written. */
interface Conditions {
  /** The kind flag of an entry that is written only if the message lacks a member. */
  readonly weak?: number
  readonly other?: number
  readonly column?: number
}

const kinds = { message: 'kindMessage', stream: 'kindStream', time: 'kindTime' } as const

/** Estimated size of a part in an event, without its name; the characters of a message are added. */
const sizes: Readonly<Record<LinePart, number>> = { message: 6, stream: 12, time: 30 }
