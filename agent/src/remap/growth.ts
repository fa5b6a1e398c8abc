// Estimates from a program's text how much larger than the event a program without loops can make its values. It bounds the
// size of each field and variable, with the event and every constant counting as one. A program below a limit needs no meter.

import { type Kind, kinds } from './kind.ts'
import type { Place, Slot, Typed } from './typed.ts'

/** Growth factor up to which a program runs without a meter. */
const unmeteredGrowth = 256

const grown = kinds.string.or(kinds.array).or(kinds.object)

const collections = kinds.array.or(kinds.object)

function isCollection({ kind }: Typed): boolean {
  return kind.isNever || kind.overlaps(collections)
}

/** Whether values of a kind may have more than a few bytes. */
export function mayBeLarge(kind: Kind): boolean {
  return kind.isNever || kind.overlaps(grown)
}

export interface Metering {
  /** Whether calls and operators count the size of their results. */
  readonly metered: boolean
  /**
   * Whether values may share parts so often that the total exceeds the sum of all results: values that leave the program are
   * then weighed.
   */
  readonly weighed: boolean
}

export function meteringOf(body: readonly Typed[]): Metering {
  const growth = new Growth()
  for (const typed of body) growth.of(typed)
  const weighed = growth.largest > unmeteredGrowth
  return { metered: weighed || growth.dependsOnData, weighed }
}

class Growth {
  largest = 1
  /** Whether there is a loop, or a result as large as the product of its arguments. */
  dependsOnData = false
  #inClosure = false
  readonly #variables = new Map<Slot, number>()
  readonly #fields = new Map<string, number>()

  of(typed: Typed): number {
    const size = this.#size(typed)
    if (size > this.largest) this.largest = size
    return mayBeLarge(typed.kind) ? size : 0
  }

  #all(nodes: readonly (Typed | undefined)[]): number {
    let sum = 0
    for (const node of nodes) if (node !== undefined) sum += this.of(node)
    return sum
  }

  #size(typed: Typed): number {
    switch (typed.op) {
      case 'constant':
        return 1
      case 'read':
        return this.#read(typed.place)
      case 'below':
        return this.of(typed.base)
      case 'block': {
        let last = 0
        for (const node of typed.body) last = this.of(node)
        return last
      }
      case 'array':
        return this.#holding(typed.items, Math.max(1, this.#all(typed.items)))
      case 'object': {
        const values = typed.fields.map(([, value]) => value)
        return this.#holding(values, Math.max(1, this.#all(values)))
      }
      case 'if': {
        this.of(typed.predicate)
        return this.#all([typed.consequent, typed.alternative])
      }
      case 'binary': {
        const sum = this.#all([typed.left, typed.right])
        if (typed.operator === '*' && mayBeLarge(typed.kind)) this.dependsOnData = true
        return sum
      }
      case 'not':
        return this.of(typed.operand)
      case 'assign':
        return this.#write(typed.to, this.#held(typed.to, typed.value))
      case 'assign-or-error': {
        const size = this.#write(typed.to, this.#held(typed.to, typed.value))
        this.#write(typed.error, 1)
        return size
      }
      case 'call': {
        const { declaration, closure } = typed
        const sum = this.#holding(isCollection(typed) ? typed.args : [], this.#all(typed.args))
        if (declaration.growth === 'product') this.dependsOnData = true
        if (closure !== undefined) {
          this.dependsOnData = true
          const outside = this.#inClosure
          this.#inClosure = true
          this.of(closure.body)
          this.#inClosure = outside
        }
        return declaration.growth === 'none' ? sum : 2 * sum
      }
      case 'unnest':
        this.dependsOnData = true
        return this.of(typed.at)
      case 'del':
      case 'exists':
        return this.of(typed.at)
      case 'abort':
        return typed.message === undefined ? 0 : this.of(typed.message)
      case 'return':
        return this.of(typed.value)
    }
  }

  /** A collection that contains collections: in a loop it may come to contain itself many times. */
  #holding(members: readonly (Typed | undefined)[], size: number): number {
    const holds = this.#inClosure && members.some((member) => member !== undefined && isCollection(member))
    return holds ? Number.POSITIVE_INFINITY : size
  }

  #read(place: Place): number {
    if (place.root === 'none') return 0
    if (place.root === 'variable') return this.#variables.get(place.slot) ?? 1
    const [first] = place.segments
    if (first !== undefined) return this.#fields.get(fieldKey(place.root, first)) ?? 1
    return 1 + [...this.#fields.values()].reduce((sum, size) => sum + size, 0)
  }

  /** The size of a value written to a place. */
  #held(place: Place, value: Typed): number {
    const size = this.of(value)
    return place.segments.length > 0 ? this.#holding([value], size) : size
  }

  /** Existing content may stay, for example if a branch is not taken, so sizes never decrease. */
  #write(place: Place, size: number): number {
    if (place.root === 'none') return size
    if (place.root === 'variable') {
      const before = this.#variables.get(place.slot) ?? 0
      this.#variables.set(place.slot, place.segments.length === 0 ? Math.max(before, size) : before + size)
      return size
    }
    const key = fieldKey(place.root, place.segments[0])
    const before = this.#fields.get(key) ?? 0
    this.#fields.set(key, place.segments.length <= 1 ? Math.max(before, size) : before + size)
    const whole = this.#read({ root: place.root, segments: [] })
    if (whole > this.largest) this.largest = whole
    return size
  }
}

function fieldKey(root: 'event' | 'metadata', first: string | number | undefined): string {
  return `${root} ${typeof first} ${first}`
}
