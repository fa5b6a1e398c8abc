// Programs whose result is known from the keys of a JSON text: they parse a field of the event, put the members of the text in place of
// the event or into it, and then set or remove fields of the root. Such a program runs only for those who ask for the fields.

import type { ByteEdits, ByteGuard } from '../bytes/form.ts'
import { PenstockError } from '../errors.ts'
import type { Body } from '../event/body.ts'
import { type Deferral, DeferredEvent } from '../event/deferred.ts'
import type { EventMetadata, LogEvent } from '../event/log.ts'
import { getField, type Value, type ValueObject } from '../event/value.ts'
import { isPlainKey, JsonSplicer, maxEdits, type SpliceEdits } from '../formats/json-splice.ts'
import { isFailure } from './function.ts'
import { fieldOf, onlyName, unfold } from './parsed-message.ts'
import type { Program } from './program.ts'
import { readsOf } from './reads.ts'
import { type Slot, type Typed, visit } from './typed.ts'

/** After so many events it is seen whether it was worth it to defer them, and if not, so many events are not deferred. */
const looked = 1024
const rested = 65_536
/**
 * Of those looked at, how many may have been for nothing: texts that are not taken, events whose fields were asked for, and texts with the
 * keys of others, for which generated code is faster.
 */
const maxVain = looked / 2

export interface SplicedProgram extends SpliceEdits {
  /** The field with the text; undefined if the program parses none. */
  readonly field: string | undefined
  /** Statements that abort the program for some events. */
  readonly guards: readonly Guard[]
}

/** `if … { abort }` */
export interface Guard {
  readonly fields: readonly string[]
  /** Of this statement alone. */
  readonly program: Program
}

/** What a program does to the members of a text, or to those of the event; undefined if it does anything else. */
export function splicedProgram(program: Program): SplicedProgram | undefined {
  if (program.isMetered) return undefined // a run may end because it used too much
  const { parsing, rest, variables } = unfold(program.statements)
  if (rest.length > maxEdits) return undefined
  const members = new Map<string, Value | undefined>()
  const guards: Guard[] = []
  for (const statement of rest) {
    const fields = guardFields(statement, variables)
    if (fields !== undefined) {
      // What the program has set itself, the guard would not see.
      if (fields.some((field) => members.has(field))) return undefined
      guards.push({ fields, program: program.part([statement]) })
      continue
    }
    const edit = editOf(statement)
    if (edit === undefined || !isPlainKey(edit.name)) return undefined
    members.set(edit.name, edit.value)
  }
  return { field: parsing?.field, merges: parsing?.merges ?? false, members, guards }
}

/** The fields that decide whether a statement aborts the program, which is all it does; undefined if it does anything else. */
function guardFields(statement: Typed, variables: ReadonlySet<Slot>): readonly string[] | undefined {
  if (statement.op !== 'if' || statement.alternative !== undefined) return undefined
  const { consequent } = statement
  const [only, ...more] = consequent.op === 'block' ? consequent.body : [consequent]
  if (only?.op !== 'abort' || more.length > 0) return undefined
  let isMore = false
  visit(statement, (typed) => {
    const { op } = typed
    if (op === 'assign' || op === 'assign-or-error' || op === 'del' || op === 'unnest') isMore = true
    if (op === 'read' && typed.place.root === 'variable' && variables.has(typed.place.slot)) isMore = true
  })
  const reads = readsOf({ statements: [statement], isMetered: false, usesNetwork: false })
  return reads.ok && !isMore ? reads.fields : undefined
}

/** What keeps events of a program objects: where it stands in the source, and what it is, as the predicate of a sentence. */
export interface Obstacle {
  readonly at: number
  readonly text: string
}

/** The first statement by which the result of a program is not known without a run; undefined if there is none. */
export function obstacleOf(program: Program): Obstacle | undefined {
  const spliced = splicedProgram(program)
  if (spliced !== undefined) {
    const { field = 'message' } = spliced
    return field === 'message' ? undefined : { at: 0, text: `parses \`.${field}\`, and not \`.message\`` }
  }
  if (program.isMetered) return { at: 0, text: 'may need more than the budget of a program' }
  const { rest, variables } = unfold(program.statements)
  const changed = new Set<string>()
  for (const [index, statement] of rest.entries()) {
    const at = statement.span[0]
    const edit = editOf(statement)
    if (edit !== undefined && isPlainKey(edit.name) && index < maxEdits) {
      changed.add(edit.name)
      continue
    }
    const fields = guardFields(statement, variables)
    if (fields !== undefined && !fields.some((field) => changed.has(field)) && index < maxEdits) continue
    if (edit !== undefined)
      return { at, text: `has more than ${maxEdits} changes, or a name with other characters than ASCII` }
    return { at, text: textOf(statement) }
  }
  return { at: 0, text: 'computes' }
}

function textOf(statement: Typed): string {
  if (statement.op === 'if') return 'has a condition other than `if … { abort }` on fields that it has not changed'
  if (statement.op === 'del') return 'removes a field below the root, or asks for it to be compacted'
  if (statement.op !== 'assign') return 'calls a function'
  if (statement.to.root !== 'event') return 'sets a variable or metadata'
  if (statement.to.segments.length === 0) return 'replaces the event by something other than the parsed message'
  return statement.value.constant === undefined ? 'computes a value' : 'sets a field below the root'
}

interface Edit {
  readonly name: string
  readonly value: Value | undefined
}

function editOf(statement: Typed): Edit | undefined {
  if (statement.op === 'del') {
    const name = statement.compact === undefined ? fieldOf(statement.at) : undefined
    return name === undefined ? undefined : { name, value: undefined }
  }
  if (statement.op !== 'assign' || statement.to.root !== 'event') return undefined
  const { op, constant } = statement.value
  if (constant === undefined || (op !== 'constant' && op !== 'object' && op !== 'array')) return undefined
  const name = onlyName(statement.to.segments)
  return name === undefined ? undefined : { name, value: constant }
}

const noMembers: ByteEdits['members'] = new Map()

/** What became of events. */
interface LaneCounts {
  deferred: number
  /** Not looked at, as it was not worth it before: lines of few shapes, or events whose fields are asked for. */
  rested: number
  /** Not taken because of their text. */
  refused: number
}

/** A program whose result is known without a run, for one event at a time and for lines. */
export class Splice implements Deferral<ValueObject>, ByteEdits {
  readonly hides = false
  readonly #program: Program
  readonly field: string | undefined
  readonly merges: boolean
  readonly members: ReadonlyMap<string, Value | undefined>
  readonly guards: readonly ByteGuard[]
  readonly parsing: ByteEdits | undefined
  /** Made for the first event. */
  #splicer: JsonSplicer | undefined
  // Of the events looked at.
  #seen = 0
  #vain = 0
  #resting = 0
  // Events since the last look, by what became of them.
  #counts: LaneCounts = { deferred: 0, rested: 0, refused: 0 }

  constructor(program: Program, spliced: SplicedProgram) {
    this.#program = program
    this.field = spliced.field
    this.merges = spliced.merges
    this.members = spliced.members
    this.guards = spliced.guards.map(({ fields, program: guard }) => ({
      fields,
      endOf({ fields: found, metadata }) {
        const result = guard.run(found, metadata, true)
        return isFailure(result) ? result : undefined
      },
    }))
    const { field, merges } = this
    this.parsing =
      this.guards.length === 0
        ? undefined
        : { field, merges, members: noMembers, guards: [], parsing: undefined, apply: () => {} }
  }

  /** Runs the program on an event for which it does not fail. */
  apply(event: LogEvent): void {
    event.fields = this.#run(event.fields, event.metadata)
    event.changed()
  }

  #run(before: ValueObject, metadata: EventMetadata): ValueObject {
    const program = this.#program
    if (isFailure(program.run(before, metadata, false))) {
      throw new PenstockError('PEN_INTERNAL', 'A program has failed for a text that was read before.')
    }
    return program.frame.root as ValueObject
  }

  /** The event that a run of the program would leave; undefined if it has to run. The event itself stays as it is. */
  defer(event: LogEvent): DeferredEvent<ValueObject> | undefined {
    if (this.field === undefined || this.guards.length > 0) return undefined
    if (this.#resting > 0) {
      this.#resting--
      this.#counts.rested++
      return undefined
    }
    if (++this.#seen === looked) {
      if (this.#vain > maxVain) this.#resting = rested
      this.#seen = 0
      this.#vain = 0
    }
    const { fields } = event
    const text = getField(fields, this.field)
    this.#splicer ??= new JsonSplicer(this)
    const size = typeof text === 'string' ? this.#splicer.sizeOf(text, fields) : -1
    if (size >= 0 && this.#splicer.isRepeated) this.#vain++
    if (size >= 0) {
      this.#counts.deferred++
      return new DeferredEvent(fields, event.metadata, this, size)
    }
    this.#counts.refused++
    this.#vain++
    return undefined
  }

  /** Counts since the last call. */
  takeCounts(): Readonly<LaneCounts> {
    const counts = this.#counts
    this.#counts = { deferred: 0, rested: 0, refused: 0 }
    return counts
  }

  make(before: ValueObject, metadata: EventMetadata): ValueObject {
    this.#vain++
    return this.#run(before, metadata)
  }

  writeJson(before: ValueObject, body: Body): void {
    this.#splicer?.write(getField(before, this.field as string) as string, before, body)
  }
}
