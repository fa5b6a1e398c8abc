// The budget of a run: turns of loops, and bytes created. Generated code counts here; a run that exceeds its budget ends with an
// error that the program cannot catch.
// A turn is one run of a closure, or the work on 64 bytes of a call's input. Bytes are those of texts, and of the slots of arrays
// and objects created by calls and operators. Both estimate time and memory and depend only on the event, so an event always ends in
// the same way.

import type { PathSegment } from '../event/path.ts'
import { Bytes, fieldNames, getField, isObject, type Value, type ValueObject } from '../event/value.ts'
import { type ErrorPlace, RemapError } from './function.ts'
import { isText } from './operations.ts'
import type { ProgramBudget } from './rules.ts'

const bytesOfItem = 8
const bytesOfField = 24
/** Size of a concatenation, in addition to both of its texts, which it keeps. */
export const bytesOfJoint = 32
/** Approximate number of bytes processed in the time of a turn. */
export const bytesOfTurn = 64
const turnShift = Math.log2(bytesOfTurn)

export class Meter {
  readonly budget: ProgramBudget
  /** The remaining budget. Generated code sets all three at the start of a run. */
  turns = 0
  bytes = 0
  /** Sizes of collections passed to calls. Values never change, so neither do their sizes. */
  weights: Map<Value, number> | undefined = undefined

  constructor(budget: ProgramBudget) {
    this.budget = budget
  }

  /** Counts the input of a call; true if the budget is exceeded. */
  uses(value: Value): boolean {
    if (typeof value === 'string') this.turns -= value.length >> turnShift
    else if (typeof value === 'object' && value !== null) {
      this.turns -= Math.min(this.weightOf(value) >>> turnShift, 0x3fffffff)
    }
    return this.turns < 0
  }

  /** Counts the result of a call by its own slots; true if the budget is exceeded. */
  made(value: Value): boolean {
    if (typeof value === 'string') this.bytes -= value.length
    else if (Array.isArray(value)) this.bytes -= bytesOfItem * value.length
    else if (isObject(value)) {
      const fields = slotsOf(value)
      this.bytes -= bytesOfField * fields
      // Fields cost far more time than the bytes of a text.
      this.turns -= fields
    } else if (value instanceof Bytes) this.bytes -= value.bytes.length
    return this.bytes < 0 || this.turns < 0
  }

  /** Counts the result of `+` on two texts; true if the budget is exceeded. */
  joined(left: Value, right: Value, result: Value | RemapError): boolean {
    if (typeof result === 'string') {
      this.bytes -= bytesOfJoint + Math.min(lengthOf(left), lengthOf(right))
      return this.bytes < 0
    }
    return !(result instanceof RemapError) && this.made(result)
  }

  /** Counts the result of `*` on a text before it is computed; true if the budget is exceeded. */
  repeats(left: Value, right: Value): boolean {
    const [text, count] = isText(left) ? [left, right] : [right, left]
    if (!isText(text) || (typeof count !== 'number' && typeof count !== 'bigint')) return false
    const bytes = lengthOf(text) * Math.max(0, Number(count))
    this.bytes -= Math.min(bytes, 0x3fffffff)
    return this.bytes < 0
  }

  /** Counts the objects and arrays that a write below a path copies. The next turn checks the budget. */
  writes(target: Value, segments: readonly PathSegment[]): void {
    let at: Value | undefined = target
    for (let index = 0; index < segments.length && typeof at === 'object' && at !== null; index++) {
      const bytes = slotBytes(at)
      this.turns -= bytes >> turnShift
      this.bytes -= bytes
      const segment = segments[index] as PathSegment
      at = typeof segment === 'number' ? (Array.isArray(at) ? at.at(segment) : undefined) : fieldOf(at, segment)
    }
  }

  /** Counts the copies that `unnest` would create; true if the budget is exceeded. */
  unnests(target: Value, segments: readonly PathSegment[]): boolean {
    let items: Value | undefined = target
    let around = 0
    for (const segment of segments) {
      if (typeof items !== 'object' || items === null) return false
      around += slotBytes(items)
      items =
        typeof segment === 'number' ? (Array.isArray(items) ? items.at(segment) : undefined) : fieldOf(items, segment)
    }
    if (!Array.isArray(items)) return false
    // Each of the events is later written in full.
    const bytes = items.length * (around + this.weightOf(target))
    this.bytes -= Math.min(bytes, 0x3fffffff)
    return this.bytes < 0
  }

  /** Whether a value that leaves the program exceeds the limit, counting shared parts repeatedly. */
  exceeds(value: Value): boolean {
    return typeof value === 'object' && value !== null && this.weightOf(value) > this.budget.bytes
  }

  /** The size of a value with its whole content, counting shared parts repeatedly. */
  weightOf(value: Value): number {
    if (typeof value === 'string') return value.length + bytesOfItem
    if (typeof value !== 'object' || value === null) return bytesOfItem
    if (value instanceof Bytes) return value.bytes.length + bytesOfItem
    if (!Array.isArray(value) && !isObject(value)) return bytesOfField
    this.weights ??= new Map()
    const known = this.weights.get(value)
    if (known !== undefined) return known
    let weight = bytesOfItem
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) weight += this.weightOf(value[index] as Value)
    } else {
      for (const name of fieldNames(value)) weight += name.length + bytesOfField + this.weightOf(value[name] as Value)
    }
    weight = Math.min(weight, 0x7fffffff)
    this.weights.set(value, weight)
    return weight
  }

  /** The error of a run that exceeded its budget. */
  over(place: ErrorPlace): RemapError {
    return overBudget(this.budget, place)
  }
}

const raisedBy = '`spec.programBudget` of a TenantPolicy changes the budget'

function overBudget({ turns, bytes }: ProgramBudget, place: ErrorPlace): RemapError {
  const { name, start, end } = place
  const message = `error[E720]: the program is over its budget for one event at "${name}" (${start}:${end}): ${turns} turns of loops, ${bytes} bytes made; ${raisedBy}`
  return new RemapError(message, 'fatal', null, null, 'budget', place)
}

/** The result of a call that would return more than `runtime.maxBytes`; generated code adds the location. */
export const tooMuch = new RemapError('too much', 'fatal', null, null, 'budget')

/** The error for a call that returned `tooMuch`. */
export function overLimit(place: ErrorPlace): RemapError {
  const { name, start, end } = place
  const message = `error[E720]: the result of "${name}" (${start}:${end}) would be larger than a program may make for one event; ${raisedBy}`
  return new RemapError(message, 'fatal', null, null, 'budget', place)
}

function lengthOf(value: Value): number {
  return typeof value === 'string' ? value.length : value instanceof Bytes ? value.bytes.length : 0
}

function fieldOf(value: Value, name: string): Value | undefined {
  return isObject(value) ? getField(value, name) : undefined
}

/** Size of the value itself, without its content. */
function slotBytes(value: Value): number {
  if (Array.isArray(value)) return bytesOfItem * value.length
  if (value instanceof Bytes) return value.bytes.length
  return isObject(value) ? bytesOfField * slotsOf(value) : bytesOfField
}

/** Counts without listing the names: the engine knows the number of fields of a known layout. */
function slotsOf(object: ValueObject): number {
  let slots = 0
  for (const _name in object) slots++
  return slots
}
