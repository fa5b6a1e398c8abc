// The kinds at one point of a program: of its variables, the event and the metadata. Branches work on copies, which are
// merged where they join.

import type { Value } from '../../event/value.ts'
import type { Kind } from '../kind.ts'
import { equals } from '../operations.ts'
import type { Slot } from '../typed.ts'

export interface Local {
  readonly slot: Slot
  readonly kind: Kind
  readonly constant: Value | undefined
}

/** The kinds at one point of the program. */
export interface State {
  locals: Map<string, Local>
  event: Kind
  metadata: Kind
}

export function copyOf(state: State): State {
  return { locals: new Map(state.locals), event: state.event, metadata: state.metadata }
}

/** Merges the kinds of two branches. */
export function mergeInto(state: State, other: State): void {
  for (const [name, local] of state.locals) {
    const there = other.locals.get(name)
    if (there === undefined || there === local || there.slot !== local.slot) continue
    const same = local.constant !== undefined && there.constant !== undefined && equals(local.constant, there.constant)
    state.locals.set(name, {
      slot: local.slot,
      kind: local.kind.or(there.kind),
      constant: same ? local.constant : undefined,
    })
  }
  state.event = state.event.or(other.event)
  state.metadata = state.metadata.or(other.metadata)
}

/** Leaves a block: changes of outer variables stay, and the block's own variables are removed. */
export function leaveBlock(state: State, outer: ReadonlyMap<string, Local>): void {
  const inner = state.locals
  state.locals = new Map()
  for (const [name, local] of outer) {
    const changed = inner.get(name)
    state.locals.set(name, changed !== undefined && changed.slot === local.slot ? changed : local)
  }
}
