// The effects of a program that are known without running it for each event. Such a program parses the message, changes root fields
// independently of the event, and computes others from a few fields. Unrelated statements are kept apart, so that each part depends
// on as few fields as possible.

import type { ByteEdit, ByteParsing } from '../bytes/form.ts'
import type { Value } from '../event/value.ts'
import { isPlainKey } from '../formats/json-splice.ts'
import { fieldOf, onlyName, unfold } from './parsed-message.ts'
import type { Program } from './program.ts'
import { effectsOf, isObstacle, type Obstacle, type StatementEffects } from './statement-effects.ts'
import type { Slot, Typed } from './typed.ts'

/** Maximum number of fields that a program may change. */
const maxWrites = 32
/** Maximum number of computed fields: the kernel's columns, minus some for other programs. */
const maxComputed = 12

export interface ByteProgram {
  readonly parsing: ByteParsing | undefined
  /** The effects that do not depend on the event, by field. */
  readonly edits: ReadonlyMap<string, ByteEdit>
  readonly units: readonly ProgramUnit[]
}

/** Statements that depend on each other. */
export interface ProgramUnit {
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  /** The program of only these statements. */
  readonly program: Program
}

/** Returns the known effects of a program; or the first statement that needs objects. */
export function byteProgramOf(program: Program): ByteProgram | Obstacle {
  if (program.isMetered) return { at: 0, text: 'may need more than the budget of a program' }
  if (program.usesNetwork) return { at: 0, text: 'uses the network' }
  const { parsing, rest, variables } = unfold(program.statements)
  const items: Item[] = []
  for (const [index, statement] of rest.entries()) {
    // A read without effect, such as the event as the last statement of many programs.
    if (statement.op === 'read' || statement.op === 'constant') continue
    const effects = effectsOf(statement)
    if (isObstacle(effects)) return effects
    // The object is part of the event by now.
    if (!variables.isDisjointFrom(effects.variables)) {
      return { at: statement.span[0], text: 'uses a variable that holds the parsed message' }
    }
    items.push({ index, statement, effects })
  }
  const edits = new Map<string, ByteEdit>()
  const units: ProgramUnit[] = []
  for (const part of partsOf(items)) {
    const own = editsOf(part.statements)
    if (own !== undefined) for (const [name, edit] of own) edits.set(name, edit)
    else units.push({ reads: [...part.reads], writes: [...part.writes], program: program.part(part.statements) })
  }
  const computed = units.reduce((sum, { writes }) => sum + writes.length, 0)
  const [last] = rest.slice(-1)
  const at = last?.span[0] ?? 0
  if (computed > maxComputed) return { at, text: `exceeds the limit of ${maxComputed} computed fields` }
  if (edits.size + computed > maxWrites) return { at, text: `exceeds the limit of ${maxWrites} changed fields` }
  return { parsing, edits, units }
}

interface Item {
  /** Its index among the statements. */
  readonly index: number
  readonly statement: Typed
  readonly effects: StatementEffects
}

/** Dependent statements, in order. */
class Part {
  readonly items: readonly Item[]
  readonly reads: ReadonlySet<string>
  readonly writes: ReadonlySet<string>
  readonly #variables: ReadonlySet<Slot>
  readonly #mayEnd: boolean

  constructor(items: readonly Item[]) {
    this.items = items.toSorted((left, right) => left.index - right.index)
    this.reads = new Set(items.flatMap(({ effects }) => [...effects.reads]))
    this.writes = new Set(items.flatMap(({ effects }) => [...effects.writes]))
    this.#variables = new Set(items.flatMap(({ effects }) => [...effects.variables]))
    this.#mayEnd = items.some(({ effects }) => effects.mayEnd)
  }

  get statements(): readonly Typed[] {
    return this.items.map(({ statement }) => statement)
  }

  get #first(): number {
    return this.items[0]?.index ?? 0
  }

  get #last(): number {
    return this.items.at(-1)?.index ?? 0
  }

  /**
   * Whether two parts must be joined: one writes what the other reads or writes, they share a variable, or both may end the program
   * in an order that is not known.
   */
  belongsTo(other: Part): boolean {
    return (
      !this.writes.isDisjointFrom(other.writes) ||
      !this.writes.isDisjointFrom(other.reads) ||
      !this.reads.isDisjointFrom(other.writes) ||
      !this.#variables.isDisjointFrom(other.#variables) ||
      (this.#mayEnd && other.#mayEnd && this.#first <= other.#last && other.#first <= this.#last)
    )
  }

  /**
   * The statement at which it may explicitly end the program; or else its first statement, because any statement may fail if a text
   * becomes too long.
   */
  get place(): number {
    return this.#mayEnd ? this.#last : this.#first
  }
}

/** Independent parts, in the order in which they may end the program. */
function partsOf(items: readonly Item[]): readonly Part[] {
  let parts: readonly Part[] = []
  for (const item of items) {
    let next = new Part([item])
    // Joined statements may span other parts.
    for (;;) {
      const near = parts.filter((part) => part.belongsTo(next))
      if (near.length === 0) break
      parts = parts.filter((part) => !near.includes(part))
      next = new Part([...near.flatMap((part) => part.items), ...next.items])
    }
    parts = [...parts, next]
  }
  return parts.toSorted((left, right) => left.place - right.place)
}

/** The effects of statements on fields, if they do not depend on the event; otherwise undefined. */
function editsOf(statements: readonly Typed[]): ReadonlyMap<string, ByteEdit> | undefined {
  const made = new Edits()
  return statements.every((statement) => made.take(statement)) ? made.edits : undefined
}

class Edits {
  readonly edits = new Map<string, ByteEdit>()
  readonly #variables = new Map<Slot, ByteEdit>()

  /** Adds a statement; false if its effect on the event is unknown. */
  take(statement: Typed): boolean {
    if (statement.op === 'del') return this.#removed(statement) !== undefined
    if (statement.op !== 'assign') return false
    const value = this.#valueOf(statement.value)
    if (value === undefined) return false
    const { to } = statement
    if (to.root === 'variable' && to.segments.length === 0) this.#variables.set(to.slot, value)
    else {
      const name = to.root === 'event' ? onlyName(to.segments) : undefined
      if (name === undefined) return false
      this.edits.set(name, value)
    }
    return true
  }

  /** A value that is never absent. */
  #valueOf(typed: Typed): ByteEdit | undefined {
    const { op, constant } = typed
    if (constant !== undefined && (op === 'constant' || op === 'object' || op === 'array')) return constantOf(constant)
    if (op === 'del') return this.#removed(typed)
    if (op !== 'read') return undefined
    const { place } = typed
    if (place.root === 'variable' && place.segments.length === 0) return this.#variables.get(place.slot)
    return this.#fieldOf(typed)
  }

  #removed({ at, compact }: Extract<Typed, { op: 'del' }>): ByteEdit | undefined {
    const value = compact === undefined ? this.#fieldOf(at) : undefined
    const name = fieldOf(at)
    if (value !== undefined && name !== undefined) this.edits.set(name, { is: 'removed' })
    return value
  }

  /** The current value of a field; null if it does not exist. */
  #fieldOf(typed: Typed): ByteEdit | undefined {
    const name = fieldOf(typed)
    if (name === undefined || !isPlainKey(name)) return undefined
    const edit = this.edits.get(name) ?? { is: 'moved', from: name }
    return edit.is === 'removed' ? constantOf(null) : edit
  }
}

function constantOf(value: Value): ByteEdit {
  return { is: 'constant', value }
}
