// The parts of a batch of lines, and the estimated sizes of its events.

import type { LogEvent } from '../event/log.ts'
import type { ByteLines, LineLikeness } from './byte-lines.ts'
import type { Column } from './columns.ts'
import type { Form } from './form.ts'
import type { Kernel } from './kernel.ts'
import type { Plan } from './plan.ts'

export interface BatchParts {
  readonly lines: ByteLines
  readonly form: Form
  readonly items: Int32Array | undefined
  readonly first: number
  readonly count: number
  readonly objects: readonly LogEvent[]
  readonly columns: readonly Column[]
  /** The size of each event, or their sum. */
  readonly sizes: Int32Array | number
}

/** Groups of events in a batch, by some of their fields. */
export interface EventGroups {
  readonly fields: readonly string[]
  readonly second: string | undefined
  readonly groups: Int32Array | undefined
  /** The parts of lines that determine the groups; undefined if columns matter, too. */
  readonly likeness: LineLikeness | undefined
}

/**
 * Sizes of the events, or their sum if all are lines. The lines must be in the kernel, and read if the form needs it.
 */
export function measure(
  kernel: Kernel,
  plan: Plan,
  { lines, items, first, count, objects, columns }: Omit<BatchParts, 'sizes'>,
): Int32Array | number {
  plan.enter(kernel, columns)
  if (items === undefined) return kernel.call.measure(first, first + count, plan.count, plan.mode)
  kernel.call.measure(0, lines.count, plan.count, plan.mode)
  const sizes = new Int32Array(count)
  for (let index = 0; index < count; index++) {
    const item = items[index] as number
    sizes[index] = item < 0 ? (objects[-1 - item] as LogEvent).size : (kernel.sizes[item] as number)
  }
  return sizes
}

/** Sum for all events. */
export function sumOf(sizes: Int32Array): number {
  let sum = 0
  for (let index = 0; index < sizes.length; index++) sum += sizes[index] as number
  return sum
}
