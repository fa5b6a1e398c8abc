// The code generator: compiles each program to one plain JavaScript function. Values are in local variables. Failures are values,
// tested where they can occur; they leave by `return` or `break`, never by an exception. Constants are hoisted. compile/ contains the
// parts: an expression for each operation, and the text, effects and budget of the program.
// The program changes the root of the event in place only if `own` states that it is the only holder. A program that can fail after a
// write starts without owning the root: its first write copies the root, and a failure leaves the event unchanged.

import type { Value, ValueObject } from '../event/value.ts'
import { expression } from './compile/expression.ts'
import { Generation, variable } from './compile/generation.ts'
import { runtime } from './compile/runtime.ts'
import type { ErrorPlace, Result } from './function.ts'
import type { Meter } from './meter.ts'
import type { TagMode } from './metric-target.ts'
import type { Slot, Typed } from './typed.ts'

/** The input and output of a run. */
export interface Frame {
  root: Value
  metadata: ValueObject
  /** Whether the root may be changed in place. */
  own: boolean
  /** How tags are represented if the event is a metric. */
  tagMode: TagMode
  /** Storage for variables that outlive a run: read before it, written after it. */
  readonly variables?: Map<string, Value>
}

export interface GeneratedProgram {
  /** Runs the program on the frame; returns the value of the last expression, or how the run ended. */
  readonly run: (frame: Frame) => Result
  /** Whether a failed run may have changed the event in place, unless it starts without owning the root. */
  readonly needsCopy: boolean
  readonly writesEvent: boolean
  /** Root fields that may change; undefined if the root may be replaced or any field may change. */
  readonly changes: readonly string[] | undefined
  readonly writesMetadata: boolean
  /** Whether its runs are charged to a budget. */
  readonly counts: boolean
  /** The generated source, for tests and debugging. */
  readonly code: string
}

export function generate(
  body: readonly Typed[],
  placeOf: (span: readonly [number, number], name: string) => ErrorPlace,
  options: {
    readonly keepResult: boolean
    readonly target: 'log' | 'metric'
    readonly meter?: Meter | undefined
    /** Variables that outlive a run. */
    readonly kept?: ReadonlyMap<string, Slot> | undefined
  },
): GeneratedProgram {
  const { keepResult, target, meter, kept } = options
  const g = new Generation(body, { target, meter, placeOf, expression, kept })
  const { out, effects, budget } = g
  let result = 'null'
  body.forEach((typed, index) => {
    result = g.expression(typed, effects.leave, keepResult && index === body.length - 1)
  })
  const given = keepResult && body.length > 0 ? out.temp(result) : 'null'
  g.leave(body)
  out.emit(`return ${given};`)
  const code = programText(g)
  const run = new Function('h', 'k', code)(
    { ...runtime, meter: budget.meter },
    out.constants,
  ) as GeneratedProgram['run']
  const { needsCopy, writesEvent, changes, writesMetadata } = effects
  return {
    run,
    needsCopy,
    writesEvent,
    changes: changes === undefined ? undefined : [...changes],
    writesMetadata,
    counts: budget.counts,
    code,
  }
}

function programText({ out, budget, slots, parameters, kept }: Generation): string {
  const before = new Map([...kept].map(([name, slot]) => [slot, `S.variables.get(${JSON.stringify(name)}) ?? null`]))
  const variables = [...slots]
    .filter((slot) => !parameters.has(slot))
    .map((slot) => `${variable(slot)} = ${before.get(slot) ?? 'null'}`)
  return [
    '"use strict";',
    `const { ${Object.keys(runtime).join(', ')} } = h;`,
    ...out.constants.map((_, index) => `const k${index} = k[${index}];`),
    ...(budget.counts ? ['const M = h.meter;'] : []),
    ...out.onceLines,
    'return function run(S) {',
    ...(budget.counts ? [budget.meterStart()] : []),
    'let root = S.root, meta = S.metadata, own = S.own;',
    ...(variables.length === 0 ? [] : [`let ${variables.join(', ')};`]),
    ...out.lines,
    '}',
  ].join('\n')
}
