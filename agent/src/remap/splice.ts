// Programs whose result is known from the keys of a JSON text: they parse a field of the event, replace the event with the members of
// the text or merge them into it, and then set or remove root fields. Such a program runs only when the fields are read.

import type { ByteEdits, ByteUnit } from '../bytes/form.ts'
import { PenstockError } from '../errors.ts'
import type { Body } from '../event/body.ts'
import { type Deferral, DeferredEvent } from '../event/deferred.ts'
import type { EventMetadata, LogEvent } from '../event/log.ts'
import { getField, type Value, type ValueObject } from '../event/value.ts'
import { JsonSplicer, maxEdits, type SpliceEdits } from '../formats/json-splice.ts'
import { type ByteProgram, byteProgramOf, type ProgramUnit } from './byte-program.ts'
import { isFailure } from './function.ts'
import type { Program } from './program.ts'
import { isObstacle, type Obstacle } from './statement-effects.ts'

/** After this many events the benefit is measured; without a benefit, this many events are not deferred. */
const looked = 1024
const rested = 65_536
/**
 * Maximum number of these events without a benefit: unsuitable texts, events whose fields were read, and texts with keys of other
 * shapes, for which generated code is faster.
 */
const maxVain = looked / 2

/** Why events of a program must be objects; undefined if they need not. */
export function obstacleOf(program: Program): Obstacle | undefined {
  const found = byteProgramOf(program)
  if (isObstacle(found)) return found
  const { field = 'message' } = found.parsing ?? {}
  return field === 'message' ? undefined : { at: 0, text: `parses \`.${field}\`, and not \`.message\`` }
}

/** A program for lines and for single events; undefined if it must run for each event. */
export function spliceOf(program: Program): Splice | undefined {
  const found = byteProgramOf(program)
  return isObstacle(found) ? undefined : new Splice(program, found)
}

/** The edits of a program for single events, if the splicer supports them. */
function spliceEdits({ parsing, edits, units }: ByteProgram): SpliceEdits | undefined {
  if (parsing === undefined || parsing.under !== undefined || units.length > 0 || edits.size > maxEdits)
    return undefined
  const members = new Map<string, Value | undefined>()
  for (const [name, edit] of edits) {
    if (edit.is === 'moved') return undefined
    members.set(name, edit.is === 'constant' ? edit.value : undefined)
  }
  return { merges: parsing.merges, members }
}

const noEdits: ByteEdits['edits'] = new Map()

/** Events that were not spliced, by the reason. */
interface LaneCounts {
  deferred: number
  /** Skipped, because splicing had no benefit before: lines of few shapes, or events whose fields are read. */
  rested: number
  /** Rejected because of their text. */
  refused: number
}

/** A program whose result is known without a run, for single events and for lines. */
export class Splice implements Deferral<ValueObject>, ByteEdits {
  readonly hides = false
  readonly #program: Program
  readonly parsing: ByteEdits['parsing']
  readonly edits: ByteEdits['edits']
  readonly units: readonly ByteUnit[]
  readonly bare: ByteEdits
  readonly #spliced: SpliceEdits | undefined
  /** Created for the first event. */
  #splicer: JsonSplicer | undefined
  // Number of examined events.
  #seen = 0
  #vain = 0
  #resting = 0
  // Events since the last measurement, by what happened to them.
  #counts: LaneCounts = { deferred: 0, rested: 0, refused: 0 }

  constructor(program: Program, byteProgram: ByteProgram) {
    const { parsing, edits, units } = byteProgram
    this.#program = program
    this.parsing = parsing
    this.edits = edits
    this.units = units.map(unitOf)
    this.bare = new BareParsing(parsing)
    this.#spliced = spliceEdits(byteProgram)
  }

  /** Whether it may leave an event unchanged until its fields are read. */
  get defers(): boolean {
    return this.#spliced !== undefined
  }

  /** Runs the program on an event for which it cannot fail. */
  apply(event: LogEvent): void {
    event.fields = this.#run(event.fields, event.metadata)
    event.changed()
  }

  #run(before: ValueObject, metadata: EventMetadata): ValueObject {
    const program = this.#program
    if (isFailure(program.run(before, metadata, false))) {
      throw new PenstockError('PEN_INTERNAL', 'A program failed for a text that was read successfully before.')
    }
    return program.frame.root as ValueObject
  }

  /** The event that a run of the program would give; undefined if it must run. The event itself stays unchanged. */
  defer(event: LogEvent): DeferredEvent<ValueObject> | undefined {
    const spliced = this.#spliced
    const field = this.parsing?.field
    if (spliced === undefined || field === undefined) return undefined
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
    const text = getField(fields, field)
    this.#splicer ??= new JsonSplicer(spliced)
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
    this.#splicer?.write(getField(before, this.parsing?.field as string) as string, before, body)
  }
}

/** A program that only parses; without parsing, it leaves events unchanged. */
class BareParsing implements ByteEdits {
  readonly parsing: ByteEdits['parsing']
  readonly edits = noEdits
  readonly units = []
  readonly bare = this

  constructor(parsing: ByteEdits['parsing']) {
    this.parsing = parsing
  }

  apply(): void {}
}

function unitOf({ reads, writes, program }: ProgramUnit): ByteUnit {
  return {
    reads,
    writes,
    run(fields, metadata) {
      const result = program.run(fields, metadata, true)
      return isFailure(result) ? result : undefined
    },
    get after() {
      return program.frame.root as ValueObject
    },
  }
}
