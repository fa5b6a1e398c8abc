// The effects of a program on the event, collected while its code is generated. A failed run must leave the event unchanged: a program
// that can fail after a write starts without owning the root, so its first write copies it.

import type { PathSegment } from '../../event/path.ts'
import { isInheritedName } from '../../event/value.ts'

export class Effects {
  /** Whether the code at this place is in a closure, and in how many branches: it may run often, or never. */
  inClosure = false
  branches = 0
  rootReplaced = false
  wroteOriginal = false
  needsCopy = false
  writesEvent = false
  /** Fields of the root that may change; undefined if any may. */
  changes: Set<string> | undefined = new Set()
  writesMetadata = false

  /** Notes which field of the root a write changes. */
  changing(first: PathSegment | undefined): void {
    if (typeof first === 'string' && !isInheritedName(first)) this.changes?.add(first)
    else this.changes = undefined
  }

  /** The code writes below the root. */
  written(): void {
    this.writesEvent = true
    if (!this.rootReplaced) this.wroteOriginal = true
  }

  /** The code gives the event another root. */
  replaced(): void {
    this.writesEvent = true
    if (!this.inClosure && this.branches === 0) this.rootReplaced = true
  }

  /** The run may end here with a failure. */
  mayEnd(): void {
    if (this.wroteOriginal) this.needsCopy = true
  }

  /** The statement that ends the run, or the call of a closure, with an error. */
  readonly leave = (error: string, counts: boolean): string => {
    if (counts) this.mayEnd()
    return `return ${error};`
  }
}
