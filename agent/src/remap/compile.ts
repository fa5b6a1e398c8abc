// The code generator: one plain JavaScript function for each program. Values flow in local variables; failures are values that
// are tested where they can occur and leave by `return` or `break`, never by an exception. Constants are hoisted.
//
// The root of the event is changed in place only while `own` says that nothing else holds it. A program that can fail after it
// has written starts without owning it, so that the first write copies it and a failure leaves the event as it came.

import type { PathSegment } from '../event/path.ts'
import { written } from '../event/path.ts'
import {
  Bytes,
  copyObject,
  Float,
  getField,
  isInheritedName,
  isObject,
  mergeObjects,
  setField,
  type Value,
  type ValueObject,
} from '../event/value.ts'
import { type Closure, type ErrorPlace, isFailure, type Parameter, RemapError, type Result } from './function.ts'
import { type Metering, mayBeLarge, meteringOf } from './growth.ts'
import { isOfKind, type Kind, kinds } from './kind.ts'
import { bytesOfJoint, bytesOfTurn, type Meter, overLimit, tooMuch } from './meter.ts'
import { removeFromMetric, type TagMode, writeToMetric } from './metric-target.ts'
import * as operations from './operations.ts'
import { ownedObject, removedBelow, unnest } from './paths.ts'
import { textOfKind } from './text.ts'
import type { Place, Slot, Typed } from './typed.ts'

/** What a run reads and leaves behind. */
export interface Frame {
  root: Value
  metadata: ValueObject
  /** Whether the root may be changed in place. */
  own: boolean
  /** How tags are shown where the event is a metric. */
  tagMode: TagMode
}

export interface GeneratedProgram {
  /** Runs the program on the frame; gives the value of the last expression, or how the run ended. */
  readonly run: (frame: Frame) => Result
  /** The event may have been written to in place when the run fails, unless it starts without owning the root. */
  readonly needsCopy: boolean
  readonly writesEvent: boolean
  /** Fields of the root that may change; undefined if the root may be replaced or any of its fields change. */
  readonly changes: readonly string[] | undefined
  readonly writesMetadata: boolean
  /** The generated source, for tests and curiosity. */
  readonly code: string
}

/** A call in the program: how its failures begin, and where it is. */
interface CallPlace {
  readonly prefix: string
  readonly place: ErrorPlace
}

type Fail = (error: string, counts: boolean) => string

const helpers = {
  E: RemapError,
  Float,
  Bytes,
  copyObject,
  getField,
  setField,
  isObject,
  mergeObjects,
  written,
  ownedObject,
  removedBelow,
  unnest,
  writeToMetric,
  removeFromMetric,
  isOfKind,
  ...operations,
  framed: ({ prefix, place }: CallPlace, error: RemapError): RemapError =>
    new RemapError(prefix + error.message, 'error', error.given, null, error.sort, error.place ?? place),
  mismatch: ({ prefix, place }: CallPlace, expected: string, value: Value): RemapError =>
    new RemapError(`${prefix}expected ${expected}, got ${textOfKind(value)}`, 'error', null, null, 'mismatch', place),
  /** The failure of an operator. */
  placed: (place: ErrorPlace, error: RemapError): RemapError =>
    new RemapError(error.message, 'error', error.given, null, error.sort, error.place ?? place),
  pureClosure: (closure: Closure): Closure => Object.assign(closure, { pure: true as const }),
  aborted: (message: Value): RemapError =>
    message === null ? new RemapError('aborted', 'abort') : new RemapError(String(message), 'abort', String(message)),
  tooMuch,
  placedBudget: overLimit,
  leaving: (error: RemapError): RemapError =>
    error.outcome === 'return' ? new RemapError('return cannot be used inside closures', 'fatal') : error,
}

export function generate(
  body: readonly Typed[],
  placeOf: (span: readonly [number, number], name: string) => ErrorPlace,
  options: { readonly keepResult: boolean; readonly target: 'log' | 'metric'; readonly meter?: Meter | undefined },
): GeneratedProgram {
  return new Generator(body, placeOf, options.target === 'metric', options.meter).program(body, options.keepResult)
}

class Generator {
  readonly #constants: unknown[] = []
  readonly #constantNames = new Map<unknown, string>()
  readonly #placeOf: (span: readonly [number, number], name: string) => ErrorPlace
  /** What is counted, if anything is. */
  readonly #metering: Metering
  readonly #meter: Meter | undefined
  /** Whether the kinds of the checker hold at run time: effects in closures are not seen by it. */
  readonly #trusted: boolean
  #lines: string[] = []
  /** What does not depend on the event: made once, not in each run. */
  readonly #onceLines: string[] = []
  #names = 0
  readonly #slots = new Set<Slot>()
  readonly #parameters = new Set<Slot>()
  #inClosure = false
  /** Something in the closure was counted without a look at what is left: each turn looks. */
  #mayBeOver = false
  #branches = 0
  #rootReplaced = false
  #wroteOriginal = false
  #needsCopy = false
  readonly #isMetric: boolean
  #writesEvent = false
  /** Undefined: any. */
  #changes: Set<string> | undefined = new Set()
  #writesMetadata = false

  constructor(
    body: readonly Typed[],
    placeOf: (span: readonly [number, number], name: string) => ErrorPlace,
    isMetric: boolean,
    meter: Meter | undefined,
  ) {
    this.#placeOf = placeOf
    this.#metering = meter === undefined ? { metered: false, weighed: false } : meteringOf(body)
    this.#meter = this.#metering.metered ? meter : undefined
    this.#isMetric = isMetric
    // What a metric refuses to take differs from what the checker thinks was written.
    this.#trusted = !isMetric && !body.some((typed) => some(typed, isUnseen))
  }

  program(body: readonly Typed[], keepResult: boolean): GeneratedProgram {
    const fail: Fail = (error, counts) => {
      if (counts && this.#wroteOriginal) this.#needsCopy = true
      return `return ${error};`
    }
    let result = 'null'
    body.forEach((typed, index) => {
      const last = index === body.length - 1
      result = this.#expr(typed, fail, last && keepResult)
    })
    if (keepResult && body.length > 0) {
      const last = this.#temp(result)
      this.#leave(body)
      this.#emit(`return ${last};`)
    } else {
      this.#leave(body)
      this.#emit('return null;')
    }
    const slots = [...this.#slots].filter((slot) => !this.#parameters.has(slot)).map((slot) => variable(slot))
    const code = [
      '"use strict";',
      `const { ${Object.keys(helpers).join(', ')} } = h;`,
      ...this.#constants.map((_, index) => `const k${index} = k[${index}];`),
      ...(this.#meter === undefined ? [] : ['const M = h.meter;']),
      ...this.#onceLines,
      'return function run(S) {',
      ...(this.#meter === undefined ? [] : [this.#meterStart()]),
      'let root = S.root, meta = S.metadata, own = S.own;',
      ...(slots.length === 0 ? [] : [`let ${slots.map((name) => `${name} = null`).join(', ')};`]),
      ...this.#lines,
      '}',
    ].join('\n')
    const run = new Function('h', 'k', code)(
      { ...helpers, meter: this.#meter },
      this.#constants,
    ) as GeneratedProgram['run']
    return {
      run,
      needsCopy: this.#needsCopy,
      writesEvent: this.#writesEvent,
      changes: this.#changes === undefined ? undefined : [...this.#changes],
      writesMetadata: this.#writesMetadata,
      code,
    }
  }

  #leave(body: readonly { readonly span: readonly [number, number] }[]): void {
    if (this.#metering.weighed && body.length > 0) {
      const span = [body[0]?.span[0] ?? 0, body.at(-1)?.span[1] ?? 0] as const
      this.#limit('M.exceeds(root) || M.exceeds(meta)', span, 'program')
    }
    this.#emit('S.root = root; S.metadata = meta; S.own = own;')
  }

  /** Ends the run where a test of the meter holds: nothing in the program catches that. */
  #limit(test: string, span: readonly [number, number], name: string): void {
    if (this.#wroteOriginal) this.#needsCopy = true
    this.#emit(`if (${test}) return M.over(${this.#hoist(this.#placeOf(span, name))});`)
  }

  #emit(line: string): void {
    this.#lines.push(line)
  }

  #name(): string {
    return `t${this.#names++}`
  }

  #temp(expression: string): string {
    // Variables are written to later on: what was read of them needs a name of its own.
    if (/^(?:[tk]\d+|null|true|false)$/.test(expression)) return expression
    const name = this.#name()
    this.#emit(`const ${name} = ${expression};`)
    return name
  }

  #hoist(value: unknown): string {
    const known = this.#constantNames.get(value)
    if (known !== undefined) return known
    const name = `k${this.#constants.length}`
    this.#constants.push(value)
    this.#constantNames.set(value, name)
    return name
  }

  #literal(value: Value): string {
    if (value === null || typeof value === 'boolean') return String(value)
    if (typeof value === 'string')
      return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
    if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? `(${value})` : String(value)
    return this.#hoist(value)
  }

  /** Emits what the expression needs and gives a JavaScript expression for its value, to be used once and at once. */
  #expr(typed: Typed, fail: Fail, wanted: boolean): string {
    const folded = this.#folded(typed)
    if (folded !== undefined) return this.#literal(folded)
    switch (typed.op) {
      case 'constant':
        return this.#literal(typed.value)
      case 'read':
        return wanted ? this.#read(typed, true) : 'null'
      case 'below': {
        const base = this.#expr(typed.base, fail, true)
        return `(${this.#below(base, typed.base.kind, typed.segments)} ?? null)`
      }
      case 'block':
        return this.#sequence(typed.body, fail, wanted)
      case 'array':
        this.#literalMade(typed.items.length)
        return `[${this.#operands(typed.items, fail).join(', ')}]`
      case 'object': {
        this.#literalMade(typed.fields.length)
        const values = this.#operands(
          typed.fields.map(([, value]) => value),
          fail,
        )
        const members = typed.fields.map(([name], index) =>
          name === '__proto__' ? `["__proto__"]: ${values[index]}` : `${JSON.stringify(name)}: ${values[index]}`,
        )
        return `({ ${members.join(', ')} })`
      }
      case 'if':
        return this.#if(typed, fail, wanted)
      case 'binary':
        return this.#binary(typed, fail)
      case 'not':
        return `!${this.#expr(typed.operand, fail, true)}`
      case 'assign': {
        const fresh = !wanted && this.#isFresh(typed.value)
        const value = this.#expr(typed.value, fail, true)
        const name = wanted || typed.to.segments.length > 0 ? this.#temp(value) : value
        this.#write(typed.to, name, typed.rootKind, fresh)
        return wanted ? name : 'null'
      }
      case 'assign-or-error':
        return this.#assignOrError(typed, fail, wanted)
      case 'call':
        return this.#call(typed, fail)
      case 'del':
        return this.#del(typed, fail, wanted)
      case 'exists': {
        if (typed.at.op === 'read') return `(${this.#read(typed.at, false)} !== undefined)`
        if (typed.at.op === 'below') {
          const base = this.#expr(typed.at.base, fail, true)
          return `(${this.#below(base, typed.at.base.kind, typed.at.segments)} !== undefined)`
        }
        return 'true'
      }
      case 'unnest':
        return this.#unnest(typed, fail)
      case 'abort': {
        const message = typed.message === undefined ? 'null' : this.#expr(typed.message, fail, true)
        if (this.#wroteOriginal) this.#needsCopy = true
        this.#emit(`return aborted(${message});`)
        return 'null'
      }
      case 'return': {
        const value = this.#expr(typed.value, fail, true)
        if (this.#inClosure) this.#emit(`return new E('', 'return', null, ${value});`)
        else {
          const name = this.#temp(value)
          this.#leave([typed])
          this.#emit(`return ${name};`)
        }
        return 'null'
      }
    }
  }

  #meterStart(): string {
    const { turns, bytes } = (this.#meter as Meter).budget
    return `M.turns = ${turns}; M.bytes = ${bytes}; if (M.weights !== undefined) M.weights = undefined;`
  }

  /**
   * What precedes a test of the meter. Outside of loops nothing is counted while little was: every value is bounded then by the
   * growth of the program, by the event and by that little, as in a program without a meter.
   */
  #unlessLittle(): string {
    const { budget } = this.#meter as Meter
    if (this.#inClosure || this.#metering.weighed) return ''
    return `M.bytes < ${budget.bytes - Math.min(littleBytes, budget.bytes >> 2)} && `
  }

  /** Counts what a call works on, where it is long enough to count. */
  #limitUse(values: readonly string[], span: readonly [number, number], name: string): void {
    const tests = values.map(
      (value) =>
        `(typeof ${value} === 'string' ? ${value}.length >= ${bytesOfTurn} : typeof ${value} === 'object') && M.uses(${value})`,
    )
    this.#limit(tests.join(' || '), span, name)
  }

  /** Counts what a call gave, which is no failure. */
  #limitMade(value: string, unless: string, span: readonly [number, number], name: string): void {
    this.#limit(
      `${unless}(typeof ${value} === 'string' ? (M.bytes -= ${value}.length) < 0 : M.made(${value}))`,
      span,
      name,
    )
  }

  /** Counts a literal that is made in each turn of a loop. */
  #literalMade(members: number): void {
    if (this.#meter === undefined || !this.#inClosure) return
    this.#mayBeOver = true
    this.#emit(`M.bytes -= ${32 + 24 * members};`)
  }

  /** The value if it is worked out from literals alone. */
  #folded(typed: Typed): Value | undefined {
    if (typed.constant !== undefined && isLiteral(typed)) return typed.constant
    if (typed.op !== 'call' || !typed.declaration.pure || typed.closure !== undefined) return undefined
    if (typed.declaration.parameters.some((parameter) => parameter.query === true)) return undefined
    const values: (Value | undefined)[] = []
    for (const [index, parameter] of typed.declaration.parameters.entries()) {
      const argument = typed.args[index]
      if (argument === undefined) {
        values.push(parameter.default)
        continue
      }
      const value = this.#folded(argument)
      if (value === undefined || !isOfKind(value, parameter.kind)) return undefined
      values.push(value instanceof Bytes && !takesBytes(parameter) ? value.toString() : value)
    }
    const result = typed.run(...(values as Value[]))
    // Constants that are made of constants could grow without end while a program is compiled.
    return isFailure(result) || slotsOf(result) > maxFoldedSlots ? undefined : result
  }

  /** Operands in order; those before an operand with effects are kept in variables of their own. */
  #operands(nodes: readonly Typed[], fail: Fail): string[] {
    const lastEffect = nodes.findLastIndex((node) => some(node, hasStatements))
    return nodes.map((node, index) => {
      const value = this.#expr(node, fail, true)
      return index < lastEffect ? this.#temp(value) : value
    })
  }

  #sequence(body: readonly Typed[], fail: Fail, wanted: boolean): string {
    let result = 'null'
    body.forEach((typed, index) => {
      result = this.#expr(typed, fail, wanted && index === body.length - 1)
    })
    return result
  }

  #kind(kind: Kind): Kind {
    return this.#trusted ? kind : kinds.any
  }

  #property(object: string, name: string): string {
    if (isInheritedName(name)) return `getField(${object}, ${JSON.stringify(name)})`
    return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? `${object}.${name}` : `${object}[${JSON.stringify(name)}]`
  }

  /** Reads below a value; gives undefined where there is nothing. */
  #below(base: string, kind: Kind, segments: readonly PathSegment[]): string {
    let at = base
    let known = this.#kind(kind)
    for (const segment of segments) {
      const exact = !known.isNever && known.is(typeof segment === 'string' ? kinds.object : kinds.array)
      if (typeof segment === 'string') {
        if (!exact || isInheritedName(segment)) at = this.#temp(at)
        const read = this.#property(at, segment)
        at = exact ? read : `(isObject(${at}) ? ${read} : undefined)`
      } else {
        at = this.#temp(at)
        const index = segment < 0 ? `${at}.length - ${-segment}` : segment
        at = exact ? `${at}[${index}]` : `(Array.isArray(${at}) ? ${at}[${index}] : undefined)`
      }
      known = this.#trusted ? known.at([segment]) : kinds.any
    }
    return at
  }

  #read(typed: Extract<Typed, { op: 'read' }>, defined: boolean): string {
    const { place, rootKind } = typed
    if (place.root === 'variable') {
      this.#slots.add(place.slot)
      const name = variable(place.slot)
      if (place.segments.length === 0) return name
      const value = this.#below(name, rootKind, place.segments)
      return defined ? `(${value} ?? null)` : value
    }
    const root = place.root === 'event' ? 'root' : 'meta'
    if (place.segments.length === 0) {
      if (place.root === 'event') this.#emit('own = false;')
      return this.#temp(root)
    }
    const value = this.#below(root, place.root === 'event' ? rootKind : kinds.object, place.segments)
    return defined ? `(${value} ?? null)` : value
  }

  #isFresh(typed: Typed): boolean {
    if (this.#folded(typed) !== undefined) return false
    return typed.op === 'object' || (typed.op === 'call' && typed.declaration.fresh === true)
  }

  /** Notes which field of the root a write changes. */
  #changing(first: PathSegment | undefined): void {
    if (typeof first === 'string' && !isInheritedName(first)) this.#changes?.add(first)
    else this.#changes = undefined
  }

  #written(): void {
    this.#writesEvent = true
    if (!this.#rootReplaced) this.#wroteOriginal = true
  }

  #ownRoot(kind: Kind): void {
    const known = this.#kind(kind)
    if (!known.isNever && known.is(kinds.object)) this.#emit('if (!own) { root = copyObject(root); own = true; }')
    else this.#emit('root = ownedObject(root, own); own = true;')
  }

  /** Counts the copies that a write below a path makes in each turn of a loop. */
  #countCopies(target: string, segments: readonly PathSegment[]): void {
    if (this.#meter === undefined || !this.#inClosure || segments.length === 0) return
    this.#mayBeOver = true
    this.#emit(`M.writes(${target}, ${this.#hoist(segments)});`)
  }

  #write(place: Place, value: string, rootKind: Kind, fresh: boolean): void {
    const { segments } = place
    switch (place.root) {
      case 'none':
        if (!/^[\w$]+$/.test(value)) this.#emit(`${value};`)
        return
      case 'variable': {
        this.#slots.add(place.slot)
        const name = variable(place.slot)
        this.#countCopies(name, segments)
        this.#emit(
          segments.length === 0
            ? `${name} = ${value};`
            : `${name} = written(${name}, ${this.#hoist(segments)}, 0, ${value});`,
        )
        return
      }
      case 'metadata':
        this.#writesMetadata = true
        this.#countCopies('meta', segments)
        this.#emit(
          segments.length === 0 ? `meta = ${value};` : `meta = written(meta, ${this.#hoist(segments)}, 0, ${value});`,
        )
        return
      case 'event': {
        if (this.#isMetric) {
          this.#writesEvent = true
          this.#emit(`writeToMetric(root, ${this.#hoist(segments)}, ${value}, S.tagMode);`)
          return
        }
        const first = segments[0]
        this.#changing(first)
        if (first === undefined) {
          this.#writesEvent = true
          this.#emit(`root = ${value}; own = ${fresh};`)
          if (!this.#inClosure && this.#branches === 0) this.#rootReplaced = true
          return
        }
        this.#written()
        this.#countCopies('root', segments)
        if (typeof first === 'number') {
          this.#emit(`root = written(root, ${this.#hoist(segments)}, 0, ${value}); own = false;`)
          return
        }
        this.#ownRoot(rootKind)
        const read = this.#property('root', first)
        const below = segments.length === 1 ? value : `written(${read}, ${this.#hoist(segments)}, 1, ${value})`
        this.#emit(
          isInheritedName(first) ? `setField(root, ${JSON.stringify(first)}, ${below});` : `${read} = ${below};`,
        )
      }
    }
  }

  #if(typed: Extract<Typed, { op: 'if' }>, fail: Fail, wanted: boolean): string {
    const predicate = this.#expr(typed.predicate, fail, true)
    const result = wanted ? this.#name() : 'null'
    if (wanted) this.#emit(`let ${result} = null;`)
    this.#emit(this.#trusted ? `if (${predicate}) {` : `if (${predicate} === true) {`)
    this.#branch(typed.consequent, fail, wanted, result)
    if (typed.alternative !== undefined) {
      this.#emit('} else {')
      this.#branch(typed.alternative, fail, wanted, result)
    }
    this.#emit('}')
    return result
  }

  #branch(typed: Typed, fail: Fail, wanted: boolean, result: string): void {
    this.#branches++
    const value = this.#expr(typed, fail, wanted)
    if (wanted && !typed.kind.isNever) this.#emit(`${result} = ${value};`)
    this.#branches--
  }

  /** Lines that `body` emits, apart from the others. */
  #apart(body: () => string): { value: string; lines: string[] } {
    const outer = this.#lines
    this.#lines = []
    const value = body()
    const lines = this.#lines
    this.#lines = outer
    return { value, lines }
  }

  #binary(typed: Extract<Typed, { op: 'binary' }>, fail: Fail): string {
    const { operator, left, right } = typed
    switch (operator) {
      case '??':
        return this.#coalesce(left, right, fail)
      case '||': {
        const value = this.#temp(this.#expr(left, fail, true))
        const result = this.#name()
        this.#emit(`let ${result} = ${value};`)
        this.#emit(`if (${value} === null || ${value} === false) {`)
        this.#branch(right, fail, true, result)
        this.#emit('}')
        return result
      }
      case '&&':
        return this.#and(typed, fail)
    }
    let [a, b] = this.#operands([left, right], fail) as [string, string]
    if (this.#meter !== undefined && this.#inClosure && (mayBeLarge(left.kind) || mayBeLarge(right.kind))) {
      a = this.#temp(a)
      b = this.#temp(b)
      // Comparisons go as deep as their operands.
      if (operator === '==' || operator === '!=') this.#limitUse([a, b], typed.span, operator)
    }
    switch (operator) {
      case '==':
        return this.#equality(left, right, a, b)
      case '!=':
        return `!${this.#equality(left, right, a, b)}`
      case '|': {
        if (this.#meter === undefined) return `mergeObjects(${a}, ${b})`
        const merged = this.#temp(`mergeObjects(${a}, ${b})`)
        this.#limitMade(merged, this.#unlessLittle(), typed.span, '|')
        return merged
      }
    }
    const names = {
      '+': 'add',
      '-': 'subtract',
      '*': 'multiply',
      '/': 'divide',
      '<': 'less',
      '<=': 'lessOrEqual',
      '>': 'greater',
      '>=': 'greaterOrEqual',
    } as const
    const comparison = operator.startsWith('<') || operator.startsWith('>')
    if (comparison && !typed.fallible && this.#trusted) return `${names[operator]}(${a}, ${b})`
    const repeats = this.#meter !== undefined && operator === '*' && mayBeLarge(typed.kind)
    const joins = this.#meter !== undefined && operator === '+' && mayBeLarge(typed.kind)
    if (repeats || joins) {
      a = this.#temp(a)
      b = this.#temp(b)
    }
    if (repeats) this.#limit(`M.repeats(${a}, ${b})`, typed.span, operator)
    const result = this.#name()
    this.#emit(`const ${result} = ${names[operator]}(${a}, ${b});`)
    if (joins) this.#limitJoined([left, a], [right, b], result, typed.span)
    // Sums of floats may be NaN although the checker calls them infallible.
    const counts = typed.fallible || typed.kind.overlaps(kinds.float) || operator === '*'
    const place = this.#hoist(this.#placeOf(typed.span, operator))
    this.#emit(`if (${result} instanceof E) { ${fail(`placed(${place}, ${result})`, counts)} }`)
    return result
  }

  /** Counts what `+` gave. */
  #limitJoined(
    [left, a]: readonly [Typed, string],
    [right, b]: readonly [Typed, string],
    result: string,
    span: readonly [number, number],
  ): void {
    const fixed = [this.#textLength(left), this.#textLength(right)].filter((length) => length !== undefined)
    const shorter = fixed.length > 0 ? Math.min(...fixed) : `(${a}.length < ${b}.length ? ${a}.length : ${b}.length)`
    const texts = `typeof ${a} === 'string' && typeof ${b} === 'string'`
    this.#limit(
      `${this.#unlessLittle()}(${texts} ? (M.bytes -= ${bytesOfJoint} + ${shorter}) < 0 : M.joined(${a}, ${b}, ${result}))`,
      span,
      '+',
    )
  }

  /** Length of a text that is written in the program. */
  #textLength(typed: Typed): number | undefined {
    const value = this.#folded(typed)
    return typeof value === 'string' ? value.length : undefined
  }

  #equality(left: Typed, right: Typed, a: string, b: string): string {
    const value = this.#folded(right) ?? undefined
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return `(${a} === ${b})`
    const other = this.#folded(left)
    if (other === null || typeof other === 'string' || typeof other === 'boolean') return `(${a} === ${b})`
    return `equals(${a}, ${b})`
  }

  #and(typed: Extract<Typed, { op: 'binary' }>, fail: Fail): string {
    const { left, right } = typed
    const booleans = this.#trusted && left.kind.is(kinds.boolean) && right.kind.is(kinds.boolean)
    const a = this.#expr(left, fail, true)
    this.#branches++
    const second = this.#apart(() => this.#expr(right, fail, true))
    this.#branches--
    if (booleans && second.lines.length === 0) return `(${a} && ${second.value})`
    const name = this.#temp(a)
    const result = this.#name()
    this.#emit(`let ${result} = false;`)
    this.#emit(`if (${name} !== null && ${name} !== false) {`)
    this.#lines.push(...second.lines)
    if (right.kind.isNever) {
      this.#emit('}')
      return result
    }
    const b = this.#temp(second.value)
    this.#emit(`if (${name} === true && (${b} === null || typeof ${b} === 'boolean')) ${result} = ${b} === true;`)
    this.#emit(`else { ${fail(`invalidAnd(${name}, ${b})`, typed.fallible)} }`)
    this.#emit('}')
    return result
  }

  #coalesce(left: Typed, right: Typed, fail: Fail): string {
    const result = this.#name()
    const done = `L${this.#names++}`
    const failed = `L${this.#names++}`
    this.#emit(`let ${result} = null;`)
    this.#emit(`${done}: { ${failed}: {`)
    this.#branch(left, () => `break ${failed};`, true, result)
    this.#emit(`break ${done}; }`)
    this.#branch(right, fail, true, result)
    this.#emit('}')
    return result
  }

  #assignOrError(typed: Extract<Typed, { op: 'assign-or-error' }>, _fail: Fail, wanted: boolean): string {
    const error = this.#name()
    const done = `L${this.#names++}`
    const failed = `L${this.#names++}`
    const result = wanted ? this.#name() : 'null'
    this.#emit(`let ${error} = null;`)
    if (wanted) this.#emit(`let ${result} = null;`)
    this.#emit(`${done}: { ${failed}: {`)
    this.#branches++
    const value = this.#temp(this.#expr(typed.value, (problem) => `${error} = ${problem}; break ${failed};`, true))
    const fresh = !wanted && this.#isFresh(typed.value)
    this.#write(typed.to, value, typed.rootKind, fresh)
    this.#write(typed.error, 'null', typed.error.root === 'event' ? kinds.any : typed.rootKind, false)
    if (wanted) this.#emit(`${result} = ${value};`)
    this.#emit(`break ${done}; }`)
    this.#write(typed.to, this.#literal(typed.default), typed.rootKind, false)
    const message = this.#temp(`${error}.message`)
    this.#write(typed.error, message, kinds.any, false)
    if (wanted) this.#emit(`${result} = ${message};`)
    this.#emit('}')
    this.#branches--
    return result
  }

  #call(typed: Extract<Typed, { op: 'call' }>, fail: Fail): string {
    const { declaration, closure } = typed
    const prefix = this.#hoist(this.#callPlace(typed.span, declaration.name))
    const failIn: Fail = (error, counts) => fail(`framed(${prefix}, ${error})`, counts)
    const values: string[] = declaration.parameters.map((parameter) =>
      parameter.default === undefined ? 'undefined' : this.#literal(parameter.default),
    )
    const lastEffect = typed.order.findLastIndex((index) => {
      const argument = typed.args[index]
      return argument !== undefined && (some(argument, hasStatements) || this.#needsTest(typed, index))
    })
    typed.order.forEach((index, position) => {
      const argument = typed.args[index] as Typed
      const parameter = declaration.parameters[index] as (typeof declaration.parameters)[number]
      if (parameter.query === true) {
        values[index] = 'undefined'
        return
      }
      // The type is known without the value.
      if (declaration.typeOfArguments === true) {
        values[index] = 'undefined'
        return
      }
      let value = this.#expr(argument, failIn, true)
      if (position < lastEffect) value = this.#temp(value)
      values[index] = this.#argument(argument, parameter, value, prefix, fail)
    })
    if (closure !== undefined) values.push(this.#closure(closure, typed.span, declaration.name))
    if (
      declaration.looksAtTypeOnly !== true &&
      this.#meter !== undefined &&
      (this.#inClosure || this.#metering.weighed)
    ) {
      for (const index of typed.order) {
        const argument = typed.args[index]
        if (argument === undefined || argument.constant !== undefined || !mayBeLarge(argument.kind)) continue
        if (values[index] === 'undefined') continue
        const value = this.#temp(values[index] as string)
        values[index] = value
        this.#limitUse([value], typed.span, declaration.name)
      }
    }
    if (declaration.name === 'set_secret' || declaration.name === 'remove_secret') this.#writesMetadata = true
    const result = this.#name()
    this.#emit(`const ${result} = ${this.#hoist(typed.run)}(${values.join(', ')});`)
    let leave = closure === undefined ? '' : `if (${result}.outcome !== 'error') return leaving(${result}); `
    if (declaration.growth === 'product') {
      if (this.#wroteOriginal) this.#needsCopy = true
      const place = this.#hoist(this.#placeOf(typed.span, declaration.name))
      leave = `if (${result} === tooMuch) return placedBudget(${place}); ${leave}`
      if (this.#meter !== undefined) leave += `if ((M.bytes -= ${result}.made) < 0) return M.over(${place}); `
    }
    if (closure !== undefined && this.#wroteOriginal && some(closure.body, (node) => node.op === 'return')) {
      this.#needsCopy = true
    }
    const counts = typed.canFail || declaration.failsUnannounced === true
    this.#emit(`if (${result} instanceof E) { ${leave}${fail(`framed(${prefix}, ${result})`, counts)} }`)
    if (this.#meter !== undefined && declaration.looksAtTypeOnly !== true && mayBeLarge(typed.kind)) {
      const unless = declaration.growth === 'product' ? '' : this.#unlessLittle()
      this.#limitMade(result, unless, typed.span, declaration.name)
    }
    return result
  }

  #callPlace(span: readonly [number, number], name: string): CallPlace {
    const place = this.#placeOf(span, name)
    return { prefix: `function call error for "${name}" at (${place.start}:${place.end}): `, place }
  }

  #needsTest(typed: Extract<Typed, { op: 'call' }>, index: number): boolean {
    const argument = typed.args[index] as Typed
    const parameter = typed.declaration.parameters[index]
    return parameter !== undefined && !(this.#trusted && argument.kind.within(parameter.kind))
  }

  /** Tests the kind of an argument where the checker does not know it, and gives the text of bytes that are not UTF-8. */
  #argument(argument: Typed, parameter: Parameter, value: string, prefix: string, fail: Fail): string {
    const { kind } = parameter
    if (takesEverything(parameter)) return value
    const folded = this.#folded(argument)
    if (folded !== undefined && isOfKind(folded, kind)) {
      return folded instanceof Bytes && !takesBytes(parameter) ? this.#literal(folded.toString()) : value
    }
    const known =
      parameter.ownCheck === true || (this.#trusted && (argument.kind.isNever || argument.kind.within(kind)))
    const textual =
      !takesBytes(parameter) && kind.contains(kinds.string) && (!this.#trusted || argument.kind.overlaps(kinds.string))
    if (known && !textual) return value
    const name = this.#name()
    this.#emit(`let ${name} = ${value};`)
    const expected = JSON.stringify(kind.toString())
    const test = `isOfKind(${name}, ${this.#hoist(kind)})`
    const reject = `{ ${fail(`mismatch(${prefix}, ${expected}, ${name})`, true)} }`
    if (kind.is(kinds.string)) {
      const bytes = takesBytes(parameter) ? '' : `${name} = ${name}.toString(); `
      this.#emit(
        `if (typeof ${name} !== 'string') { if (${name} instanceof Bytes) { ${bytes}} else ${known ? '{}' : reject} }`,
      )
      return name
    }
    if (!known) this.#emit(`if (!${test}) ${reject}`)
    if (textual) this.#emit(`if (${name} instanceof Bytes) ${name} = ${name}.toString();`)
    return name
  }

  #closure(
    closure: { parameters: readonly (Slot | undefined)[]; body: Typed },
    span: readonly [number, number],
    functionName: string,
  ): string {
    // The block runs many times: what one run writes, a later one may have to undo.
    if (some(closure.body, writesEvent)) this.#written()
    const wasInClosure = this.#inClosure
    this.#inClosure = true
    const parameters = closure.parameters.map((slot) => {
      if (slot === undefined) return this.#name()
      this.#slots.add(slot)
      this.#parameters.add(slot)
      return variable(slot)
    })
    const overOutside = this.#mayBeOver
    this.#mayBeOver = false
    const body = this.#apart(() => {
      const fail: Fail = (error, counts) => {
        if (counts && this.#wroteOriginal) this.#needsCopy = true
        return `return ${error};`
      }
      return this.#expr(closure.body, fail, true)
    })
    const turn = this.#apart(() => {
      const test = this.#mayBeOver ? '--M.turns < 0 || M.bytes < 0' : '--M.turns < 0'
      if (this.#meter !== undefined) this.#limit(test, span, functionName)
      return ''
    })
    this.#mayBeOver ||= overOutside
    this.#inClosure = wasInClosure
    const name = this.#name()
    const code = [`(${parameters.join(', ')}) => {`, ...turn.lines, ...body.lines, `return ${body.value}; }`]
    if (dependsOnParameters(closure.body, closure.parameters)) {
      this.#onceLines.push(`const ${name} = pureClosure(${code.join('\n')});`)
    } else this.#emit(`const ${name} = ${code.join('\n')};`)
    return name
  }

  #del(typed: Extract<Typed, { op: 'del' }>, fail: Fail, wanted: boolean): string {
    const { at } = typed
    const compact = typed.compact === undefined ? 'false' : this.#temp(this.#expr(typed.compact, fail, true))
    if (at.op !== 'read') return this.#expr(at, fail, true)
    const { place } = at
    const { segments } = place
    if (place.root === 'event' && this.#isMetric) {
      this.#writesEvent = true
      const value = this.#temp(this.#read(at, true))
      this.#emit(`removeFromMetric(root, ${this.#hoist(segments)});`)
      return value
    }
    if (place.root === 'event') {
      const first = segments[0]
      this.#changing(first)
      if (first === undefined) {
        const value = this.#temp('root')
        this.#writesEvent = true
        this.#emit('root = Array.isArray(root) ? [] : isObject(root) ? {} : null; own = true;')
        if (!this.#inClosure && this.#branches === 0) this.#rootReplaced = true
        return value
      }
      const known = this.#kind(at.rootKind)
      const simple = segments.length === 1 && typeof first === 'string' && known.is(kinds.object)
      this.#written()
      if (simple) {
        const read = this.#property('root', first as string)
        const value = this.#temp(read)
        this.#emit(`if (${value} !== undefined) {`)
        this.#ownRoot(at.rootKind)
        this.#emit(
          isInheritedName(first as string)
            ? `setField(root, ${JSON.stringify(first)}, undefined); }`
            : `${read} = undefined; }`,
        )
        return wanted ? `(${value} ?? null)` : 'null'
      }
    }
    const value = this.#temp(this.#read(at, true))
    const path = this.#hoist(segments)
    const removed = place.root === 'event' ? 'root' : place.root === 'metadata' ? 'meta' : variable(place.slot)
    this.#countCopies(removed, segments)
    if (place.root === 'event') this.#emit(`root = removedBelow(root, ${path}, ${compact}); own = false;`)
    else if (place.root === 'metadata') {
      this.#writesMetadata = true
      this.#emit(`meta = removedBelow(meta, ${path}, ${compact});`)
    } else {
      const name = variable(place.slot)
      this.#emit(`${name} = removedBelow(${name}, ${path}, ${compact});`)
    }
    return value
  }

  #unnest(typed: Extract<Typed, { op: 'unnest' }>, fail: Fail): string {
    const { at } = typed
    let base: string
    let segments: readonly PathSegment[] = []
    if (at.op === 'read') {
      segments = at.place.segments
      base = this.#read({ ...at, place: { ...at.place, segments: [] } }, true)
    } else if (at.op === 'below') {
      segments = at.segments
      base = this.#expr(at.base, fail, true)
    } else base = this.#expr(at, fail, true)
    if (this.#meter !== undefined) {
      base = this.#temp(base)
      this.#limit(`M.unnests(${base}, ${this.#hoist(segments)})`, typed.span, 'unnest')
    }
    const result = this.#name()
    this.#emit(`const ${result} = unnest(${base}, ${this.#hoist(segments)});`)
    const prefix = this.#hoist(this.#callPlace(typed.span, 'unnest'))
    this.#emit(`if (${result} instanceof E) { ${fail(`framed(${prefix}, ${result})`, true)} }`)
    return result
  }
}

const maxFoldedSlots = 65_536

/** Of what a program makes: too little to count what comes of it outside of loops. */
const littleBytes = 65_536

function slotsOf(value: Value): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 0
}

function takesEverything({ kind }: Parameter): boolean {
  return kind.contains(kinds.any.without(kinds.undefined))
}

/** Whether strings that are not UTF-8 reach the function as they are. */
function takesBytes(parameter: Parameter): boolean {
  return parameter.bytes === true || takesEverything(parameter)
}

function variable(slot: Slot): string {
  return `v${slot.id}`
}

/** Whether a test holds for a node or anything in it. */
function some(typed: Typed, test: (typed: Typed, inClosure: boolean) => boolean, inClosure = false): boolean {
  if (test(typed, inClosure)) return true
  const below = (node: Typed | undefined, closure = inClosure): boolean =>
    node !== undefined && some(node, test, closure)
  switch (typed.op) {
    case 'block':
      return typed.body.some((node) => below(node))
    case 'array':
      return typed.items.some((node) => below(node))
    case 'object':
      return typed.fields.some(([, node]) => below(node))
    case 'if':
      return below(typed.predicate) || below(typed.consequent) || below(typed.alternative)
    case 'binary':
      return below(typed.left, inClosure || typed.operator === '??') || below(typed.right)
    case 'not':
      return below(typed.operand)
    case 'below':
      return below(typed.base)
    case 'assign-or-error':
      return below(typed.value, true)
    case 'assign':
    case 'return':
      return below(typed.value)
    case 'call':
      return typed.args.some((node) => below(node)) || below(typed.closure?.body, true)
    case 'del':
      return below(typed.at) || below(typed.compact)
    case 'exists':
    case 'unnest':
      return below(typed.at)
    case 'abort':
      return below(typed.message)
    default:
      return false
  }
}

/** Effects on kinds that the checker does not follow: in closures, and in what may fail before it comes to them. */
function isUnseen(typed: Typed, inClosure: boolean): boolean {
  if (typed.op === 'del') return inClosure || (typed.at.op === 'read' && typed.at.place.root === 'variable')
  return inClosure && (typed.op === 'assign' || typed.op === 'assign-or-error')
}

/** Whether what a closure gives depends on its parameters alone, and nothing else comes of running it. */
function dependsOnParameters(body: Typed, parameters: readonly (Slot | undefined)[]): boolean {
  return !some(body, (typed) => {
    switch (typed.op) {
      case 'constant':
      case 'below':
      case 'block':
      case 'array':
      case 'object':
      case 'if':
      case 'binary':
      case 'not':
        return false
      case 'read':
        return typed.place.root !== 'variable' || !parameters.includes(typed.place.slot)
      case 'call':
        return !typed.declaration.pure || typed.closure !== undefined
      default:
        return true
    }
  })
}

/** Whether its evaluation changes what others may read. */
function hasStatements(typed: Typed): boolean {
  return typed.op === 'assign' || typed.op === 'assign-or-error' || typed.op === 'del'
}

function writesEvent(typed: Typed): boolean {
  if (typed.op === 'del') return typed.at.op === 'read' && typed.at.place.root === 'event'
  if (typed.op === 'assign') return typed.to.root === 'event'
  return typed.op === 'assign-or-error' && (typed.to.root === 'event' || typed.error.root === 'event')
}

function isLiteral(typed: Typed): boolean {
  switch (typed.op) {
    case 'constant':
      return true
    case 'array':
      return typed.items.every(isLiteral)
    case 'object':
      return typed.fields.every(([, value]) => isLiteral(value))
    case 'binary':
      return isLiteral(typed.left) && isLiteral(typed.right)
    default:
      return false
  }
}
