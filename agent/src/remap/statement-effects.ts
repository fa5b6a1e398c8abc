// The reads and writes of a statement that are known before it runs.

import type { PathSegment } from '../event/path.ts'
import { isPlainKey } from '../formats/json-splice.ts'
import { type Place, type Slot, type Typed, visit } from './typed.ts'

/** Why a program needs event objects: its source position, and a predicate for a sentence. */
export interface Obstacle {
  readonly at: number
  readonly text: string
}

/** Fields are root fields. */
export interface StatementEffects {
  readonly reads: ReadonlySet<string>
  readonly writes: ReadonlySet<string>
  /** Variables that it reads or writes. */
  readonly variables: ReadonlySet<Slot>
  /** Whether it may end the program. */
  readonly mayEnd: boolean
}

/** The effects of a statement, if they depend only on event fields that it names; otherwise the obstacle. */
export function effectsOf(statement: Typed): StatementEffects | Obstacle {
  return new Look(statement).result()
}

export function isObstacle(found: object): found is Obstacle {
  return 'text' in found
}

class Look {
  readonly #statement: Typed
  readonly #reads = new Set<string>()
  readonly #writes = new Set<string>()
  readonly #variables = new Set<Slot>()
  #mayEnd = false
  #obstacle: Obstacle | undefined

  constructor(statement: Typed) {
    this.#statement = statement
  }

  result(): StatementEffects | Obstacle {
    const statement = this.#statement
    if (statement.op === 'del' && statement.compact === undefined && this.#isField(statement.at)) {
      // Its value is not used here.
      this.#write(statement.at.place, statement.span[0])
    } else visit(statement, (typed) => this.#see(typed))
    return (
      this.#obstacle ?? {
        reads: this.#reads,
        writes: this.#writes,
        variables: this.#variables,
        mayEnd: this.#mayEnd,
      }
    )
  }

  #isField(at: Typed): at is Extract<Typed, { op: 'read' }> {
    return at.op === 'read' && at.place.root === 'event' && at.place.segments.length === 1
  }

  #see(typed: Typed): void {
    const at = typed.span[0]
    switch (typed.op) {
      case 'read':
        this.#read(typed.place, at)
        break
      case 'assign':
        this.#write(typed.to, at)
        break
      case 'assign-or-error':
        this.#write(typed.to, at)
        this.#write(typed.error, at)
        break
      case 'del':
        if (typed.at.op === 'read') this.#write(typed.at.place, at)
        break
      case 'call': {
        const { declaration } = typed
        if (!declaration.pure)
          this.#stop(at, `calls \`${declaration.name}\`, which does not depend on its arguments alone`)
        if (typed.canFail) this.#mayEnd = true
        break
      }
      case 'unnest':
        this.#stop(at, 'creates several events from one')
        break
      case 'return':
        this.#stop(at, 'ends the program with `return`')
        break
      case 'abort':
        this.#mayEnd = true
        break
      default:
    }
  }

  #read(place: Place, at: number): void {
    if (place.root === 'variable') this.#variables.add(place.slot)
    if (place.root !== 'event') return
    const [first] = place.segments
    if (typeof first === 'string') this.#reads.add(first)
    else this.#stop(at, 'reads the event as a whole')
  }

  #write(place: Place, at: number): void {
    if (place.root === 'none') return
    if (place.root === 'variable') {
      this.#variables.add(place.slot)
      return
    }
    if (place.root === 'metadata') {
      this.#stop(at, 'changes metadata')
      return
    }
    const [first, ...below] = place.segments
    if (!this.#isName(first)) {
      this.#stop(at, first === undefined ? 'replaces the event' : 'sets a field with non-ASCII characters in its name')
      return
    }
    this.#writes.add(first)
    // Sibling fields are unchanged.
    if (below.length > 0) this.#reads.add(first)
  }

  #isName(segment: PathSegment | undefined): segment is string {
    return typeof segment === 'string' && isPlainKey(segment)
  }

  #stop(at: number, text: string): void {
    this.#obstacle ??= { at, text }
  }
}
