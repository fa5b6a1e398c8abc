// The budget of a program in the generated code: where usage is counted, and where a run ends because the budget is used
// up.

import type { PathSegment } from '../../event/path.ts'
import type { ErrorPlace } from '../function.ts'
import { type Metering, meteringOf } from '../growth.ts'
import { bytesOfJoint, bytesOfTurn, type Meter } from '../meter.ts'
import type { Typed } from '../typed.ts'
import type { Effects } from './effects.ts'
import { textLength } from './folding.ts'
import type { Output } from './output.ts'

/** Created bytes that are too few to count outside loops. */
const littleBytes = 65_536

export class Budget {
  readonly meter: Meter | undefined
  readonly #metering: Metering
  readonly #out: Output
  readonly #effects: Effects
  readonly #placeOf: (span: readonly [number, number], name: string) => ErrorPlace
  /** Whether the closure counted usage without checking the budget, so that each turn must check it. */
  mayBeOver = false

  constructor(
    body: readonly Typed[],
    meter: Meter | undefined,
    out: Output,
    effects: Effects,
    placeOf: (span: readonly [number, number], name: string) => ErrorPlace,
  ) {
    this.#metering = meter === undefined ? { metered: false, weighed: false } : meteringOf(body)
    this.meter = this.#metering.metered ? meter : undefined
    this.#out = out
    this.#effects = effects
    this.#placeOf = placeOf
  }

  /** Whether any usage is counted. */
  get counts(): boolean {
    return this.meter !== undefined
  }

  /** Whether the event is weighed at the end. */
  get weighs(): boolean {
    return this.#metering.weighed
  }

  /** Ends the run if a meter's test is true; the program cannot catch this. */
  limit(test: string, span: readonly [number, number], name: string): void {
    this.#effects.mayEnd()
    this.#out.emit(`if (${test}) return M.over(${this.#out.hoist(this.#placeOf(span, name))});`)
  }

  meterStart(): string {
    const { turns, bytes } = (this.meter as Meter).budget
    return `M.turns = ${turns}; M.bytes = ${bytes}; if (M.weights !== undefined) M.weights = undefined;`
  }

  /**
   * The condition before a meter's test. Outside loops, small amounts are not counted: every value is bounded by the program's growth
   * and the event, as in a program without a meter.
   */
  unlessLittle(): string {
    const { budget } = this.meter as Meter
    if (this.#effects.inClosure || this.weighs) return ''
    return `M.bytes < ${budget.bytes - Math.min(littleBytes, budget.bytes >> 2)} && `
  }

  /** Counts the input of a call if it is long enough. */
  limitUse(values: readonly string[], span: readonly [number, number], name: string): void {
    const tests = values.map(
      (value) =>
        `(typeof ${value} === 'string' ? ${value}.length >= ${bytesOfTurn} : typeof ${value} === 'object') && M.uses(${value})`,
    )
    this.limit(tests.join(' || '), span, name)
  }

  /** Counts the result of a call, which is not a failure. */
  limitMade(value: string, unless: string, span: readonly [number, number], name: string): void {
    this.limit(
      `${unless}(typeof ${value} === 'string' ? (M.bytes -= ${value}.length) < 0 : M.made(${value}))`,
      span,
      name,
    )
  }

  /** Counts a literal created in each turn of a loop. */
  literalMade(members: number): void {
    if (this.meter === undefined || !this.#effects.inClosure) return
    this.mayBeOver = true
    this.#out.emit(`M.bytes -= ${32 + 24 * members};`)
  }

  /** Counts the copies that a write below a path creates in each turn of a loop. */
  countCopies(target: string, segments: readonly PathSegment[]): void {
    if (this.meter === undefined || !this.#effects.inClosure || segments.length === 0) return
    this.mayBeOver = true
    this.#out.emit(`M.writes(${target}, ${this.#out.hoist(segments)});`)
  }

  /** Counts the result of `+`. */
  limitJoined(
    [left, a]: readonly [Typed, string],
    [right, b]: readonly [Typed, string],
    result: string,
    span: readonly [number, number],
  ): void {
    const fixed = [textLength(left), textLength(right)].filter((length) => length !== undefined)
    const shorter = fixed.length > 0 ? Math.min(...fixed) : `(${a}.length < ${b}.length ? ${a}.length : ${b}.length)`
    const texts = `typeof ${a} === 'string' && typeof ${b} === 'string'`
    this.limit(
      `${this.unlessLittle()}(${texts} ? (M.bytes -= ${bytesOfJoint} + ${shorter}) < 0 : M.joined(${a}, ${b}, ${result}))`,
      span,
      '+',
    )
  }
}
