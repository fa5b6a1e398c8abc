// The effects of a program on the event, collected during code generation. A failed run must leave the event unchanged: a program that
// can fail after a write starts without owning the root, so its first write copies it.

import type { PathSegment } from '../../event/path.ts'
import { isInheritedName } from '../../event/value.ts'

export class Effects {
  /** Whether the current code is in a closure, and in how many branches: it may run many times, or never. */
  inClosure = false
  branches = 0
  rootReplaced = false
  wroteOriginal = false
  needsCopy = false
  writesEvent = false
  /** Root fields that may change; undefined if any may. */
  changes: Set<string> | undefined = new Set()
  writesMetadata = false

  /** Records the root field that a write changes. */
  changing(first: PathSegment | undefined): void {
    if (typeof first === 'string' && !isInheritedName(first)) this.changes?.add(first)
    else this.changes = undefined
  }

  /** Records a write below the root. */
  written(): void {
    this.writesEvent = true
    if (!this.rootReplaced) this.wroteOriginal = true
  }

  /** Records a replacement of the root. */
  replaced(): void {
    this.writesEvent = true
    if (!this.inClosure && this.branches === 0) this.rootReplaced = true
  }

  /** Records a possible end with a failure. */
  mayEnd(): void {
    if (this.wroteOriginal) this.needsCopy = true
  }

  /** The statement that ends the run, or the current closure call, with an error. */
  readonly leave = (error: string, counts: boolean): string => {
    if (counts) this.mayEnd()
    return `return ${error};`
  }
}
