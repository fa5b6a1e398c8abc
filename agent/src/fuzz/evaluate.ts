// A simple evaluator of checked programs, as a reference for the generated code. It walks the tree, copies all values that it changes,
// computes integers as bigints, and relies on no static kinds. It shares only the tree and the compiled functions with the compiler.

import type { PathSegment } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import {
  Bytes,
  Float,
  float,
  integer,
  isFloat,
  isInteger,
  isObject,
  Regex,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { ByteOffsets } from '../remap/diagnostics.ts'
import { RemapError, type Result } from '../remap/function.ts'
import { isOfKind, kinds } from '../remap/kind.ts'
import { textOfKind } from '../remap/text.ts'
import type { Place, Slot, Typed } from '../remap/typed.ts'

/** The outcome of a run, and the final state if it succeeded. */
export interface Evaluated {
  readonly result: Result
  readonly event: Value
  readonly metadata: Value
}

/** The program needs more steps than the evaluator allows. */
export class TooManySteps extends Error {}

/** An expression that returned no value, with the reason. */
class Leave {
  readonly error: RemapError

  constructor(error: RemapError) {
    this.error = error
  }
}

function fail(reason: string): never {
  throw new Leave(new RemapError(reason))
}

export function evaluate(
  source: string,
  body: readonly Typed[],
  event: Value,
  metadata: Value,
  maxSteps: number,
): Evaluated {
  return new Evaluator(source, event, metadata, maxSteps).run(body)
}

class Evaluator {
  readonly #bytes: ByteOffsets
  readonly #variables = new Map<Slot, Value>()
  #event: Value
  #metadata: Value
  #steps: number

  constructor(source: string, event: Value, metadata: Value, maxSteps: number) {
    this.#bytes = new ByteOffsets(source)
    this.#event = event
    this.#metadata = metadata
    this.#steps = maxSteps
  }

  run(body: readonly Typed[]): Evaluated {
    let result: Result = null
    try {
      for (const typed of body) result = this.#value(typed)
    } catch (problem) {
      if (!(problem instanceof Leave)) throw problem
      result = problem.error.outcome === 'return' ? problem.error.value : problem.error
    }
    return { result, event: this.#event, metadata: this.#metadata }
  }

  #value(typed: Typed): Value {
    if (--this.#steps < 0) throw new TooManySteps()
    return this.#node(typed)
  }

  #node(typed: Typed): Value {
    switch (typed.op) {
      case 'constant':
        return typed.value
      case 'read':
        return read(this.#root(typed.place), typed.place.segments) ?? null
      case 'below':
        return read(this.#value(typed.base), typed.segments) ?? null
      case 'block': {
        let value: Value = null
        for (const inner of typed.body) value = this.#value(inner)
        return value
      }
      case 'array':
        return typed.items.map((item) => this.#value(item))
      case 'object': {
        const fields = new Map<string, Value>()
        for (const [name, field] of typed.fields) fields.set(name, this.#value(field))
        return objectOf(fields)
      }
      case 'if':
        if (this.#value(typed.predicate) === true) return this.#value(typed.consequent)
        return typed.alternative === undefined ? null : this.#value(typed.alternative)
      case 'binary':
        return this.#binary(typed)
      case 'not':
        return this.#value(typed.operand) !== true
      case 'assign': {
        const value = this.#value(typed.value)
        this.#write(typed.to, value)
        return value
      }
      case 'assign-or-error': {
        const value = this.#attempt(typed.value)
        if (value instanceof RemapError) {
          this.#write(typed.to, typed.default)
          this.#write(typed.error, value.message)
          return value.message
        }
        this.#write(typed.to, value)
        this.#write(typed.error, null)
        return value
      }
      case 'call':
        return this.#call(typed)
      case 'del': {
        const compact = typed.compact === undefined ? false : this.#value(typed.compact) === true
        if (typed.at.op !== 'read') return this.#value(typed.at)
        const { place } = typed.at
        const root = this.#root(place)
        const value = read(root, place.segments)
        this.#setRoot(place, removed(root, place.segments, compact))
        return value ?? null
      }
      case 'exists':
        if (typed.at.op === 'read') return read(this.#root(typed.at.place), typed.at.place.segments) !== undefined
        if (typed.at.op === 'below') return read(this.#value(typed.at.base), typed.at.segments) !== undefined
        return true
      case 'unnest':
        return this.#unnest(typed)
      case 'abort': {
        const message = typed.message === undefined ? null : textOf(this.#value(typed.message))
        throw new Leave(new RemapError(message ?? 'aborted', 'abort', message))
      }
      case 'return':
        throw new Leave(new RemapError('', 'return', null, this.#value(typed.value)))
    }
  }

  /** The value, or the failure, which `??` and `ok, err =` can catch. */
  #attempt(typed: Typed): Result {
    try {
      return this.#value(typed)
    } catch (problem) {
      if (problem instanceof Leave && problem.error.outcome === 'error') return problem.error
      throw problem
    }
  }

  #root(place: Place): Value {
    if (place.root === 'event') return this.#event
    if (place.root === 'metadata') return this.#metadata
    return place.root === 'variable' ? (this.#variables.get(place.slot) ?? null) : null
  }

  #setRoot(place: Place, value: Value): void {
    if (place.root === 'event') this.#event = value
    else if (place.root === 'metadata') this.#metadata = value
    else if (place.root === 'variable') this.#variables.set(place.slot, value)
  }

  #write(place: Place, value: Value): void {
    this.#setRoot(place, write(this.#root(place), place.segments, value))
  }

  #binary(typed: Extract<Typed, { op: 'binary' }>): Value {
    const { operator } = typed
    if (operator === '??') {
      const value = this.#attempt(typed.left)
      return value instanceof RemapError ? this.#value(typed.right) : value
    }
    const left = this.#value(typed.left)
    if (operator === '||') return left === null || left === false ? this.#value(typed.right) : left
    if (operator === '&&') {
      if (left === null || left === false) return false
      const right = this.#value(typed.right)
      if (left === true && (right === null || typeof right === 'boolean')) return right === true
      return fail(`can't apply an AND to types ${textOfKind(left)} and ${textOfKind(right)}`)
    }
    const right = this.#value(typed.right)
    switch (operator) {
      case '+':
        return add(left, right)
      case '-':
        return subtract(left, right)
      case '*':
        return multiply(left, right)
      case '/':
        return divide(left, right)
      case '==':
        return equal(left, right)
      case '!=':
        return !equal(left, right)
      case '|':
        return merge(left, right)
    }
    const sign = compare(left, right, operator)
    if (operator === '<') return sign < 0
    if (operator === '<=') return sign <= 0
    return operator === '>' ? sign > 0 : sign >= 0
  }

  #framed(typed: Typed, name: string, error: RemapError): RemapError {
    const [start, end] = this.#bytes.span(typed.span)
    const message = `function call error for "${name}" at (${start}:${end}): ${error.message}`
    return new RemapError(message, 'error', error.given)
  }

  #call(typed: Extract<Typed, { op: 'call' }>): Value {
    const { declaration, closure } = typed
    const framed = (error: RemapError): Leave => new Leave(this.#framed(typed, declaration.name, error))
    const values: unknown[] = declaration.parameters.map((parameter) => parameter.default)
    for (const index of typed.order) {
      const parameter = declaration.parameters[index]
      // The type is known without the value, so the argument does not run.
      if (parameter === undefined || parameter.query === true || declaration.typeOfArguments === true) continue
      let value = this.#attempt(typed.args[index] as Typed)
      if (value instanceof RemapError) throw framed(value)
      if (parameter.ownCheck !== true && !isOfKind(value, parameter.kind)) {
        throw framed(new RemapError(`expected ${parameter.kind}, got ${textOfKind(value)}`))
      }
      const anything = parameter.kind.contains(kinds.any.without(kinds.undefined))
      if (value instanceof Bytes && parameter.bytes !== true && !anything) value = value.toString()
      values[index] = value
    }
    if (closure !== undefined) {
      values.push((...parameters: Value[]): Result => {
        closure.parameters.forEach((slot, index) => {
          if (slot !== undefined) this.#variables.set(slot, parameters[index] as Value)
        })
        try {
          return this.#value(closure.body)
        } catch (problem) {
          if (problem instanceof Leave) return problem.error
          throw problem
        }
      })
    }
    const result = typed.run(...values)
    if (!(result instanceof RemapError)) return result
    if (result.outcome === 'return') {
      throw new Leave(new RemapError('return cannot be used inside closures', 'fatal'))
    }
    throw result.outcome === 'error' ? framed(result) : new Leave(result)
  }

  #unnest(typed: Extract<Typed, { op: 'unnest' }>): Value {
    const { at } = typed
    let root: Value
    let segments: readonly PathSegment[] = []
    if (at.op === 'read') {
      root = this.#root(at.place)
      segments = at.place.segments
    } else if (at.op === 'below') {
      root = this.#value(at.base)
      segments = at.segments
    } else root = this.#value(at)
    const items = read(root, segments) ?? null
    if (!Array.isArray(items)) {
      const reason = new RemapError(`expected array, got ${textOfKind(items)}`)
      throw new Leave(this.#framed(typed, 'unnest', reason))
    }
    const around = removed(root, segments, true)
    return items.map((item) => write(around, segments, item))
  }
}

function textOf(value: Value): string {
  return value instanceof Bytes ? value.toString() : String(value)
}

function objectOf(fields: Iterable<readonly [string, Value]>): ValueObject {
  const object: ValueObject = {}
  for (const [name, value] of fields) {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  }
  return object
}

function fieldsOf(object: Value | undefined): Map<string, Value> {
  const fields = new Map<string, Value>()
  if (!isObject(object)) return fields
  for (const name of Object.keys(object)) {
    const value = object[name]
    if (value !== undefined) fields.set(name, value)
  }
  return fields
}

function read(value: Value | undefined, segments: readonly PathSegment[]): Value | undefined {
  let at = value
  for (const segment of segments) {
    if (typeof segment === 'string') at = fieldsOf(at).get(segment)
    else at = Array.isArray(at) ? at[segment < 0 ? at.length + segment : segment] : undefined
  }
  return at
}

function write(target: Value | undefined, segments: readonly PathSegment[], value: Value): Value {
  const [first, ...rest] = segments
  if (first === undefined) return value
  if (typeof first === 'string') {
    const fields = fieldsOf(target)
    return objectOf(fields.set(first, write(fields.get(first), rest, value)))
  }
  const items = Array.isArray(target) ? [...target] : []
  while (first < 0 && items.length + first < 0) items.unshift(null)
  const index = first < 0 ? items.length + first : first
  while (items.length < index) items.push(null)
  items[index] = write(items[index], rest, value)
  return items
}

function isEmpty(value: Value): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && fieldsOf(value).size === 0
}

function removed(target: Value, segments: readonly PathSegment[], compact: boolean): Value {
  const [first, ...rest] = segments
  if (first === undefined) return Array.isArray(target) ? [] : isObject(target) ? {} : null
  const child = read(target, [first])
  if (child === undefined || read(child, rest) === undefined) return target
  const left = rest.length === 0 ? undefined : removed(child, rest, compact)
  const gone = left === undefined || (compact && isEmpty(left))
  if (typeof first === 'string') {
    const fields = fieldsOf(target)
    if (gone) fields.delete(first)
    else fields.set(first, left)
    return objectOf(fields)
  }
  const items = [...(target as Value[])]
  const index = first < 0 ? items.length + first : first
  if (gone) items.splice(index, 1)
  else items[index] = left
  return items
}

function merge(left: Value, right: Value): Value {
  return objectOf(new Map([...fieldsOf(left), ...fieldsOf(right)]))
}

function numberOf(value: Value): number | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value)
  return value instanceof Float ? value.value : undefined
}

function isText(value: Value): value is string | Bytes {
  return typeof value === 'string' || value instanceof Bytes
}

function bytesOf(value: string | Bytes): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value.bytes
}

/** A string from bytes; UTF-8 becomes text. */
function textFrom(bytes: Buffer): Value {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : new Bytes(bytes)
}

function wrapped(value: bigint): Value {
  return integer(BigInt.asIntN(64, value))
}

function floatResult(value: number): Value {
  return Number.isNaN(value) ? fail('operation would produce NaN') : float(value)
}

function add(left: Value, right: Value): Value {
  if (isInteger(left) && isInteger(right)) return wrapped(BigInt(left) + BigInt(right))
  const a = numberOf(left)
  const b = numberOf(right)
  if (a !== undefined && b !== undefined) return floatResult(a + b)
  if (isText(left) && isText(right)) return textFrom(Buffer.concat([bytesOf(left), bytesOf(right)]))
  if (isText(left) && right === null) return left
  if (left === null && isText(right)) return right
  return fail(`can't add type ${textOfKind(right)} to ${textOfKind(left)}`)
}

function subtract(left: Value, right: Value): Value {
  if (isInteger(left) && isInteger(right)) return wrapped(BigInt(left) - BigInt(right))
  const a = numberOf(left)
  const b = numberOf(right)
  if (a !== undefined && b !== undefined) return floatResult(a - b)
  return fail(`can't subtract type ${textOfKind(right)} from ${textOfKind(left)}`)
}

function multiply(left: Value, right: Value): Value {
  if (isInteger(left) && isInteger(right)) return wrapped(BigInt(left) * BigInt(right))
  const a = numberOf(left)
  const b = numberOf(right)
  if (a !== undefined && b !== undefined) return floatResult(a * b)
  if (isText(left) && isInteger(right)) return repeated(left, right)
  if (isInteger(left) && isText(right)) return repeated(right, left)
  return fail(`can't multiply type ${textOfKind(left)} by ${textOfKind(right)}`)
}

function repeated(text: string | Bytes, count: number | bigint): Value {
  const bytes = bytesOf(text)
  if (count <= 0 || bytes.length === 0) return ''
  // Not cached: it would need memory, and the semantics do not depend on it.
  if (bytes.length * Number(count) > 0x10_0000) throw new TooManySteps()
  return textFrom(Buffer.concat(Array.from({ length: Number(count) }, () => bytes)))
}

function divide(left: Value, right: Value): Value {
  const divisor = numberOf(right)
  if (divisor === 0) return fail("can't divide by zero")
  const dividend = numberOf(left)
  if (dividend !== undefined && divisor !== undefined) return floatResult(dividend / divisor)
  return fail(`can't divide type ${textOfKind(left)} by ${textOfKind(right)}`)
}

/** Numbers are equal if they are equal as floats; other values if type and content are equal. */
function equal(left: Value, right: Value): boolean {
  const a = numberOf(left)
  const b = numberOf(right)
  return a !== undefined && b !== undefined ? a === b : same(left, right)
}

function same(left: Value, right: Value): boolean {
  if (isInteger(left)) return isInteger(right) && BigInt(left) === BigInt(right)
  if (isFloat(left)) return isFloat(right) && numberOf(left) === numberOf(right)
  if (isText(left)) return isText(right) && bytesOf(left).equals(bytesOf(right))
  if (left instanceof Timestamp) return right instanceof Timestamp && left.toNanoseconds() === right.toNanoseconds()
  if (left instanceof Regex) return right instanceof Regex && left.source === right.source
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, index) => same(item, right[index] as Value))
    )
  }
  if (!isObject(left)) return left === right
  if (!isObject(right)) return false
  const mine = fieldsOf(left)
  const others = fieldsOf(right)
  return (
    mine.size === others.size &&
    [...mine].every(([name, value]) => others.has(name) && same(value, others.get(name) as Value))
  )
}

function compare(left: Value, right: Value, operator: string): number {
  if (isInteger(left) && isInteger(right)) return left < right ? -1 : left > right ? 1 : 0
  const a = numberOf(left)
  const b = numberOf(right)
  if (a !== undefined && b !== undefined) return a < b ? -1 : a > b ? 1 : 0
  if (isText(left)) {
    if (!isText(right)) return fail(`expected string, got ${textOfKind(right)}`)
    return Buffer.compare(bytesOf(left), bytesOf(right))
  }
  if (left instanceof Timestamp) {
    if (!(right instanceof Timestamp)) return fail(`expected timestamp, got ${textOfKind(right)}`)
    return left.toNanoseconds() < right.toNanoseconds() ? -1 : left.equals(right) ? 0 : 1
  }
  return operator === '>'
    ? fail(`can't calculate remainder of type ${textOfKind(left)} and ${textOfKind(right)}`)
    : fail(`can't compare ${textOfKind(left)} >= ${textOfKind(right)}`)
}
