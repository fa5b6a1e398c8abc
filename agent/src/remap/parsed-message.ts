// Recognises the common ways in which programs first put the members of a JSON text into the event. It describes events whose
// text is a JSON object. Parsing those cannot fail, so branches and defaults for other texts never run.

import type { ByteParsing } from '../bytes/form.ts'
import { isPlainKey } from '../formats/json-splice.ts'
import type { FunctionDeclaration } from './function.ts'
import { isNull } from './functions/is_null.ts'
import { isObject } from './functions/is_object.ts'
import { merge } from './functions/merge.ts'
import { objectGuard } from './functions/object.ts'
import { parseJsonFunction } from './functions/parse_json.ts'
import { type Place, type Slot, type Typed, visit } from './typed.ts'

/** The program for events whose text is an object. */
export interface Unfolded {
  /** Undefined if no text is parsed into the event. */
  readonly parsing: ByteParsing | undefined
  /** The remaining statements. */
  readonly rest: readonly Typed[]
  /** Variables set before them. */
  readonly variables: ReadonlySet<Slot>
}

/** Extracts the parsing from the beginning of a program, with the variables and branches that it needs. */
export function unfold(statements: readonly Typed[]): Unfolded {
  return new Unfolding().of(statements)
}

class Unfolding {
  #field: string | undefined
  #parsing: ByteParsing | undefined
  /** Variables that contain the object, and variables that are null because parsing succeeded. */
  readonly #objects = new Set<Slot>()
  readonly #nulls = new Set<Slot>()
  readonly #variables = new Set<Slot>()
  readonly #rest: Typed[] = []

  of(statements: readonly Typed[]): Unfolded {
    for (const statement of statements) this.#add(statement)
    if (this.#parsing === undefined) return { parsing: undefined, rest: statements, variables: new Set() }
    return { parsing: this.#parsing, rest: this.#rest, variables: this.#variables }
  }

  #add(statement: Typed): void {
    if (this.#rest.length === 0 && this.#parsing === undefined && this.#parse(statement)) return
    const branch = this.#branchOf(statement)
    if (branch !== undefined) for (const inner of branch) this.#add(inner)
    else {
      this.#rest.push(statement)
      this.#forgetChanged(statement)
    }
  }

  /** Variables that a statement may change have unknown values afterwards. */
  #forgetChanged(statement: Typed): void {
    visit(statement, (typed) => {
      const places: Place[] = []
      if (typed.op === 'assign' || typed.op === 'assign-or-error') places.push(typed.to)
      if (typed.op === 'assign-or-error') places.push(typed.error)
      if (typed.op === 'del' && typed.at.op === 'read') places.push(typed.at.place)
      for (const place of places) {
        if (place.root !== 'variable') continue
        this.#objects.delete(place.slot)
        this.#nulls.delete(place.slot)
      }
    })
  }

  /** Whether a statement only copies the object to a variable or into the event. */
  #parse(statement: Typed): boolean {
    if (statement.op !== 'assign' && statement.op !== 'assign-or-error') return false
    const { to, value } = statement
    const error = statement.op === 'assign-or-error' ? statement.error : undefined
    if (error !== undefined && !isVariable(error) && error.root !== 'none') return false
    if (isVariable(to)) {
      if (!this.#isObject(value)) return false
      this.#nulls.delete(to.slot)
      this.#objects.add(to.slot)
      this.#variables.add(to.slot)
    } else if (to.root === 'event' && to.segments.length === 0) {
      const merged = this.#mergedInto(value)
      if (!this.#isObject(merged ?? value)) return false
      this.#parsing = { field: this.#field as string, merges: merged !== undefined, under: undefined }
    } else {
      const name = to.root === 'event' ? onlyName(to.segments) : undefined
      if (name === undefined || !isPlainKey(name) || !this.#isObject(value)) return false
      this.#parsing = { field: this.#field as string, merges: true, under: name }
    }
    if (error?.root === 'variable') {
      this.#objects.delete(error.slot)
      this.#nulls.add(error.slot)
      this.#variables.add(error.slot)
    }
    return true
  }

  /** The value merged into the event: `merge(., …)` or `. | …`. */
  #mergedInto(typed: Typed): Typed | undefined {
    if (typed.op === 'binary' && typed.operator === '|') return isRoot(typed.left) ? typed.right : undefined
    const args = argumentsOf(merge, typed)
    return args !== undefined && isRoot(args[0]) && args[2] === undefined ? args[1] : undefined
  }

  /** Whether it returns the object of the text. */
  #isObject(typed: Typed): boolean {
    if (typed.op === 'read') return isVariable(typed.place) && this.#objects.has(typed.place.slot)
    if (typed.op === 'binary') return typed.operator === '??' && this.#isObject(typed.left)
    const guarded = argumentsOf(objectGuard, typed)?.[0]
    if (guarded !== undefined) return this.#isObject(guarded)
    const args = argumentsOf(parseJsonFunction, typed)
    if (args?.[0] === undefined || args.slice(1).some((arg) => arg !== undefined)) return false
    const field = fieldOf(args[0])
    if (field === undefined || (this.#field !== undefined && field !== this.#field)) return false
    this.#field = field
    return true
  }

  /** The statements that an `if` is equivalent to; undefined if that depends on the event. */
  #branchOf(statement: Typed): readonly Typed[] | undefined {
    if (statement.op !== 'if') return undefined
    const holds = this.#holds(statement.predicate)
    if (holds === undefined) return undefined
    const branch = holds ? statement.consequent : statement.alternative
    if (branch === undefined) return []
    return branch.op === 'block' ? branch.body : [branch]
  }

  /** Whether a condition holds; undefined if that depends on the event. */
  #holds(typed: Typed): boolean | undefined {
    if (typed.op === 'not') return negated(this.#holds(typed.operand))
    if (typed.op === 'call') {
      const object = argumentsOf(isObject, typed)?.[0]
      if (object !== undefined) return this.#isObjectOrNull(object)
      const none = argumentsOf(isNull, typed)?.[0]
      return none === undefined ? undefined : negated(this.#isObjectOrNull(none))
    }
    if (typed.op !== 'binary') return undefined
    const { operator, left, right } = typed
    if (operator === '&&' || operator === '||') {
      const [one, other] = [this.#holds(left), this.#holds(right)]
      if (one === undefined || other === undefined) return undefined
      return operator === '&&' ? one && other : one || other
    }
    if ((operator !== '==' && operator !== '!=') || right.constant !== null) return undefined
    const object = this.#isObjectOrNull(left)
    return operator === '==' ? negated(object) : object
  }

  /** Whether a variable contains the object, or null; undefined for other variables. */
  #isObjectOrNull(typed: Typed): boolean | undefined {
    if (typed.op !== 'read' || !isVariable(typed.place)) return undefined
    const { slot } = typed.place
    return this.#objects.has(slot) ? true : this.#nulls.has(slot) ? false : undefined
  }
}

function negated(truth: boolean | undefined): boolean | undefined {
  return truth === undefined ? undefined : !truth
}

/** The arguments of a call of this function. */
function argumentsOf(declaration: FunctionDeclaration, typed: Typed | undefined) {
  return typed?.op === 'call' && typed.declaration === declaration ? typed.args : undefined
}

function isVariable(place: Place): place is Extract<Place, { root: 'variable' }> {
  return place.root === 'variable' && place.segments.length === 0
}

function isRoot(typed: Typed | undefined): boolean {
  return typed?.op === 'read' && typed.place.root === 'event' && typed.place.segments.length === 0
}

/** The root field that an expression refers to. */
export function fieldOf(typed: Typed): string | undefined {
  return typed.op === 'read' && typed.place.root === 'event' ? onlyName(typed.place.segments) : undefined
}

/** The name of a root field. */
export function onlyName(segments: readonly unknown[]): string | undefined {
  const [name] = segments
  return segments.length === 1 && typeof name === 'string' ? name : undefined
}
