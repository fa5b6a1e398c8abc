// The state shared by the parts of the code generator for one program.

import type { ErrorPlace } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import type { Meter } from '../meter.ts'
import { type Slot, some, type Typed } from '../typed.ts'
import { Budget } from './budget.ts'
import { Effects } from './effects.ts'
import { Output } from './output.ts'
import { isUnseen } from './search.ts'

/** A node of one operation. */
export type Node<Op extends Typed['op']> = Extract<Typed, { op: Op }>

/** Returns the statement for a failure. @param counts whether the checker knows that this location may fail */
export type Fail = (error: string, counts: boolean) => string

/**
 * Emits preparatory code and returns a JavaScript expression for the value, which must be used immediately and only
 * once.
 */
export type ExpressionEmitter = (g: Generation, typed: Typed, fail: Fail, wanted: boolean) => string

export interface GenerationOptions {
  readonly target: 'log' | 'metric'
  readonly meter?: Meter | undefined
  readonly placeOf: (span: readonly [number, number], name: string) => ErrorPlace
  readonly expression: ExpressionEmitter
  /** Variables in the frame that outlive a run. */
  readonly kept?: ReadonlyMap<string, Slot> | undefined
}

export class Generation {
  readonly out = new Output()
  readonly effects = new Effects()
  readonly budget: Budget
  readonly placeOf: (span: readonly [number, number], name: string) => ErrorPlace
  readonly isMetric: boolean
  /** Whether the checker's kinds hold at run time: it does not see the effects of closures. */
  readonly trusted: boolean
  readonly slots = new Set<Slot>()
  readonly parameters = new Set<Slot>()
  readonly kept: ReadonlyMap<string, Slot>
  readonly #expression: ExpressionEmitter

  constructor(body: readonly Typed[], { target, meter, placeOf, expression, kept }: GenerationOptions) {
    this.budget = new Budget(body, meter, this.out, this.effects, placeOf)
    this.placeOf = placeOf
    this.isMetric = target === 'metric'
    // Metrics reject some writes, so their content may differ from the checker's assumption.
    this.trusted = !this.isMetric && !body.some((typed) => some(typed, isUnseen))
    this.#expression = expression
    this.kept = kept ?? new Map()
  }

  expression(typed: Typed, fail: Fail, wanted: boolean): string {
    return this.#expression(this, typed, fail, wanted)
  }

  /** Emits the end of a successful run. */
  leave(body: readonly { readonly span: readonly [number, number] }[]): void {
    if (this.budget.weighs && body.length > 0) {
      const span = [body[0]?.span[0] ?? 0, body.at(-1)?.span[1] ?? 0] as const
      this.budget.limit('M.exceeds(root) || M.exceeds(meta)', span, 'program')
    }
    this.out.emit('S.root = root; S.metadata = meta; S.own = own;')
    for (const [name, slot] of this.kept) {
      this.slots.add(slot)
      this.out.emit(`S.variables.set(${JSON.stringify(name)}, ${variable(slot)});`)
    }
  }

  /** The kind of a value, if the checker knows it for certain. */
  known(kind: Kind): Kind {
    return this.trusted ? kind : kinds.any
  }
}

/** The name of a program variable in the generated code. */
export function variable(slot: Slot): string {
  return `v${slot.id}`
}
