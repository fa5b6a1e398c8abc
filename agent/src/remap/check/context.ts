// The state of checking a program, and the entry point for nested expressions. The checkers of assignments, calls and operators
// share it and do not depend on each other.

import type { PathSegment } from '../../event/path.ts'
import type { Expression, Span } from '../ast.ts'
import { notesOf } from '../codes.ts'
import { ByteOffsets, type Diagnostic, type Label } from '../diagnostics.ts'
import type { Runtime } from '../function.ts'
import { type Kind, kinds } from '../kind.ts'
import type { Slot, Typed } from '../typed.ts'
import type { State } from './state.ts'

export interface ProgramCheckOptions {
  /** Initial kind of the event. */
  readonly eventKind: Kind
  /** Whether event and metadata are read-only, as in conditions. */
  readonly readOnly: boolean
  readonly runtime: Runtime
  /** Variables defined before the program starts. */
  readonly variables?: ReadonlyMap<string, Kind> | undefined
}

/** Thrown for an uncompilable expression; the diagnostic has been reported. */
class Uncompilable {}

export const uncompilable = new Uncompilable()

export const fallibleNotes = [
  'see documentation about error handling: `!` ends the program, `??` falls back, `ok, err =` gives the error',
]

/** Checks an expression of any form. */
type Walk = (check: CheckContext, node: Expression, state: State) => Typed

export class CheckContext {
  readonly options: ProgramCheckOptions
  readonly source: string
  readonly bytes: ByteOffsets
  readonly errors: Diagnostic[] = []
  readonly warnings: Diagnostic[] = []
  readonly queries: string[] = []
  readonly assignments: string[] = []
  /** Targets whose right side did not compile, so that their use is not reported again. */
  readonly skipped = new Set<string>()
  /** The fallible expressions of the current root expression that nothing has handled so far. */
  readonly pending: Diagnostic[] = []
  /** The union of the kinds of all `return`s of the program, or of the current closure. */
  returned: Kind = kinds.never
  fallible = false
  abortable = false
  readonly #walk: Walk
  #slots = 0

  constructor(source: string, options: ProgramCheckOptions, walk: Walk) {
    this.source = source
    this.options = options
    this.bytes = new ByteOffsets(source)
    this.#walk = walk
  }

  newSlot(name: string): Slot {
    return { id: this.#slots++, name }
  }

  isReadOnly(root: 'event' | 'metadata', segments: readonly PathSegment[]): boolean {
    if (this.options.readOnly) return true
    return root === 'metadata' && (segments.length === 0 || segments[0] === 'vector')
  }

  /** Records an error and leaves the root expression. */
  report(code: number, message: string, labels: readonly Label[], notes: readonly string[] = []): never {
    return this.fail({ severity: 'error', code, message, labels, notes: [...notes, ...notesOf(code)] })
  }

  fail(error: Diagnostic): never {
    this.errors.push(error)
    throw uncompilable
  }

  fallibleOperand(span: Span, what: string): never {
    return this.report(
      631,
      `unhandled error in ${what}`,
      [
        { primary: true, span, message: 'this expression can fail' },
        { primary: false, span, message: 'handle the error first' },
      ],
      fallibleNotes,
    )
  }

  expression(node: Expression, state: State): Typed {
    const before = this.pending.length
    const typed = bounded(this.#walk(this, node, state))
    if (typed.fallible && this.pending.length === before) {
      const span = node.span
      this.pending.push({
        severity: 'error',
        code: 100,
        message: 'unhandled error',
        labels: [
          { primary: true, span, message: 'expression can result in runtime error' },
          { primary: false, span, message: 'handle the error case to ensure runtime success' },
        ],
        notes: [...fallibleNotes, ...notesOf(100)],
      })
    }
    return typed
  }

  /** Checks a part whose fallible expressions are handled, or reported, by what it belongs to. */
  consuming<T>(part: () => T): T {
    const before = this.pending.length
    try {
      return part()
    } finally {
      this.pending.length = before
    }
  }
}

/** Constants are bounded like their kinds. */
function bounded(typed: Typed): Typed {
  const kind = typed.kind.bounded
  return kind === typed.kind ? typed : { ...typed, kind, constant: undefined }
}
