// What the kernel needs to know to write events of one origin in one form, beside the lines: members that do not come from the message,
// as their JSON, and names whose members are set or removed.

import { memberSize } from '../event/size.ts'
import type { Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import type { Form } from './form.ts'
import type { Kernel } from './kernel.ts'
import type { KeyTable } from './key-table.ts'

/** What each line has of its own. */
export type LinePart = 'message' | 'stream' | 'time'

/** A field of the events that a source makes. */
export type OriginField = { readonly name: string } & ({ readonly part: LinePart } | { readonly value: Value })

interface Entry {
  readonly key: number
  readonly kind: number
  readonly json: Uint8Array
  readonly size: number
}

const noJson = new Uint8Array(0)

export class Plan {
  readonly form: Form
  readonly #keys: KeyTable
  readonly #entries: Entry[] = []
  readonly #edited: number[] = []
  readonly #literalBytes: number
  /** False if the kernel cannot do it: a name that it does not take, or more than it has room for. */
  readonly isPossible: boolean

  constructor(kernel: Kernel, keys: KeyTable, fields: readonly OriginField[], form: Form) {
    this.form = form
    this.#keys = keys
    keys.enter(kernel)
    const added = this.#addFields(kernel, fields) && this.#addMembers(kernel)
    this.#literalBytes = this.#entries.reduce((sum, { json }) => sum + json.length, 0)
    this.isPossible =
      added && this.#entries.length <= kernel.at('maxOutside') && this.#literalBytes <= kernel.at('maxLiterals')
  }

  #addFields(kernel: Kernel, fields: readonly OriginField[]): boolean {
    const { parses, merges, members } = this.form
    if (parses && !merges) return true
    const weak = parses ? kernel.at('weak') : 0
    for (const field of fields) {
      if (members.has(field.name)) continue
      const key = this.#keys.find(kernel, field.name)
      if (key < 0) return false
      if ('value' in field) this.#literal(key, kernel.at('kindLiteral') + weak, field.name, field.value)
      else {
        const kind = kernel.at(kinds[field.part]) + weak
        this.#entries.push({ key, kind, json: noJson, size: field.name.length + sizes[field.part] })
      }
    }
    return true
  }

  #addMembers(kernel: Kernel): boolean {
    for (const [name, value] of this.form.members) {
      const key = this.#keys.find(kernel, name)
      if (key < 0) return false
      this.#edited.push(key)
      if (value !== undefined) this.#literal(key, kernel.at('kindLiteral'), name, value)
    }
    return true
  }

  #literal(key: number, kind: number, name: string, value: Value): void {
    this.#entries.push({ key, kind, json: Buffer.from(writeJson(value)), size: memberSize(name, value) })
  }

  get count(): number {
    return this.#entries.length
  }

  /** Brings the plan into the kernel, which has the names. */
  enter(kernel: Kernel): void {
    const { content, outside, edited, memory } = kernel
    const { version } = this.#keys
    if (content.plan === this && content.planVersion === version) return
    content.plan = this
    content.planVersion = version
    edited.fill(0)
    for (const key of this.#edited) edited[key] = 1
    const ranked = this.#entries.map((entry) => ({ entry, rank: this.#keys.rank(kernel, entry.key) }))
    ranked.sort((left, right) => left.rank - right.rank)
    let at = kernel.at('literals')
    let place = 0
    for (const { entry, rank } of ranked) {
      const { key, kind, json, size } = entry
      memory.set(json, at)
      outside[place] = key
      outside[place + 1] = kind
      outside[place + 2] = at
      outside[place + 3] = json.length
      outside[place + 4] = size
      outside[place + 5] = rank
      place += 6
      at += json.length
    }
  }
}

const kinds = { message: 'kindMessage', stream: 'kindStream', time: 'kindTime' } as const

/** What a part adds to the estimated size of an event, beside its name; the units of a message come to it. */
const sizes: Readonly<Record<LinePart, number>> = { message: 6, stream: 12, time: 30 }
