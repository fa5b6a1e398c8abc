// Computes an upper bound for the steps of a backtracking engine, for a pattern and a text length. The bound is computed on
// the positions of the pattern, where it reads one character, and on their possible successors. If two successors can read
// the same character, the engine may have to try both.

import { anchored, type CharacterSet, longest, nullable, type RegexNode, type RegexTree } from './regex-syntax.ts'

/** Patterns with more positions are not analysed. */
const maxPositions = 600

/** A repeat of at most this many positions is analysed unrolled. */
const maxUnrolled = 40

/** Number of ways to reach positions without reading a character. */
type Reach = Map<number, number>

interface Part {
  first: Reach
  /** Positions that can end the part; `free` are those without a following assertion. */
  last: Reach
  free: Set<number>
  /** Number of ways to match the empty text. */
  empty: number
  /** Whether the empty text matches without an assertion. */
  emptyFree: boolean
}

/** Non-ASCII characters of each kind that the usual classes include completely or not at all; the letters fold to ASCII. */
const others = [0xa0, 0xfeff, 0x663, 0xe9, 0x345, 0x300, 0x203f, 0xd7, 0x212a, 0x17f, 0x200d, 0x1f600]

class TooManyPositions extends Error {}

/** Bounds the steps of a backtracking engine by the text length. Infinity: exponential, or unknown. */
export function backtrackingCost(tree: RegexTree): (length: number) => number {
  try {
    return new Analysis(tree).cost()
  } catch (error) {
    if (error instanceof TooManyPositions) return () => Number.POSITIVE_INFINITY
    throw error
  }
}

class Analysis {
  readonly #tree: RegexTree
  readonly #sets: CharacterSet[] = []
  /** The outermost loop of each position, and the maximum text that this loop reads. */
  readonly #loops: number[] = []
  readonly #spans: number[] = [] // by loop
  readonly #follow: Reach[] = []
  readonly #members = new Map<CharacterSet, Uint8Array>()
  #loop = -1

  constructor(tree: RegexTree) {
    this.#tree = tree
  }

  cost(): (length: number) => number {
    const whole = this.#part(this.#tree.root)
    const count = this.#sets.length
    const members = this.#sets.map((set) => this.#membersOf(set))
    // The end counts as a position, unless a match can always end there.
    const end = count
    const follow = this.#follow.map((reach) => [...reach])
    for (const [position, ways] of whole.last) {
      if (!whole.free.has(position)) (follow[position] as [number, number][]).push([end, ways])
    }
    // From these positions on, a match cannot fail.
    const settled = new Uint8Array(count)
    let from = count - 1
    while (from >= 0) {
      const loop = this.#loops[from] as number
      let to = from
      while (loop >= 0 && to > 0 && this.#loops[to - 1] === loop) to--
      let all = true
      for (let at = to; at <= from; at++) {
        if (!whole.free.has(at)) all = false
        for (const [next] of follow[at] as [number, number][]) {
          if (next > from && (next === end || settled[next] === 0)) all = false
        }
      }
      if (all) settled.fill(1, to, from + 1)
      from = to - 1
    }
    const symbols = 128 + others.length
    const clash = (left: number, right: number): boolean => {
      if (left === end || right === end) return true
      const a = members[left] as Uint8Array
      const b = members[right] as Uint8Array
      for (let symbol = 0; symbol < symbols; symbol++) if (a[symbol] === 1 && b[symbol] === 1) return true
      return false
    }
    // How a loop affects later ones: whether it reads each text in only one way, and which exits may be tried repeatedly.
    interface Exits {
      readonly single: boolean
      readonly once: readonly number[]
      readonly often: readonly (readonly [number, number])[]
    }
    const exits = new Map<number, Exits>()
    const insides = new Map<number, number[]>()
    this.#loops.forEach((loop, position) => {
      if (loop < 0) return
      const list = insides.get(loop)
      if (list === undefined) insides.set(loop, [position])
      else list.push(position)
    })
    for (const [loop, inside] of insides) {
      let single = true
      const once = new Set<number>()
      const often: [number, number][] = []
      for (const position of inside) {
        const next = follow[position] as [number, number][]
        for (const [to, ways] of next) {
          const within = to !== end && this.#loops[to] === loop
          const contested = ways > 1 || next.some(([other]) => other !== to && clash(other, to))
          if (!contested) {
            if (!within) once.add(to)
          } else if (!within) {
            often.push([to, ways])
          } else if (
            ways > 1 ||
            next.some(([other]) => other !== to && other !== end && this.#loops[other] === loop && clash(other, to))
          ) {
            single = false
          }
        }
      }
      exits.set(loop, { single, once: [...once], often })
    }
    const sum = (cost: Float64Array, reach: readonly (readonly [number, number])[]): number => {
      let max = 0
      let always = 0
      for (const [to, ways] of reach) if (to === end) always += ways
      if (reach.length === 1) return always + (reach[0]?.[0] === end ? 0 : times(reach[0] as [number, number], cost))
      for (let symbol = 0; symbol < symbols; symbol++) {
        let here = 0
        for (const next of reach) {
          if (next[0] !== end && (members[next[0]] as Uint8Array)[symbol] === 1) here += times(next, cost)
        }
        if (here > max) max = here
      }
      return always + max
    }
    const start = [...whole.first]
    const once = anchored(this.#tree.root)
    const empty = whole.emptyFree ? 0 : whole.empty
    return (length) => {
      const cost = new Float64Array(count + 1)
      cost[end] = 1
      for (let at = count - 1; at >= 0; at--) {
        if (settled[at] === 1) {
          cost[at] = 1
          continue
        }
        const loop = this.#loops[at] as number
        if (loop < 0) {
          cost[at] = 1 + sum(cost, follow[at] as [number, number][])
          continue
        }
        if (at + 1 < count && this.#loops[at + 1] === loop) {
          cost[at] = cost[at + 1] as number
          continue
        }
        const { single, once: leaving, often } = exits.get(loop) as Exits
        if (!single) return Number.POSITIVE_INFINITY
        const span = Math.min(length, this.#spans[loop] as number)
        let each = 1
        for (const next of often) each += times(next, cost)
        let last = 0
        for (const to of leaving) last = Math.max(last, cost[to] as number)
        cost[at] = span * each + last
      }
      const attempt = 1 + empty + sum(cost, start)
      return once ? attempt : attempt * (length + 1)
    }
  }

  #membersOf(set: CharacterSet): Uint8Array {
    let members = this.#members.get(set)
    if (members === undefined) {
      members = new Uint8Array(128 + others.length)
      members.set(set.ascii)
      const usual = set.source.replace(/\\[pP]\{(?:Alphabetic|M|Nd|Pc|Join_Control|White_Space)\}/g, '')
      const odd = /[^\0-\x7f]|\\(?:[pPcu]|x[89a-f]|0[1-7])/i.test(usual.replace(/\\u\{[0-7]?[0-9a-f]\}/gi, ''))
      for (let other = 0; other < others.length; other++) {
        if (odd || set.has(others[other] as number)) members[128 + other] = 1
      }
      this.#members.set(set, members)
    }
    return members
  }

  #part(node: RegexNode): Part {
    switch (node.kind) {
      case 'set': {
        const position = this.#sets.length
        if (position >= maxPositions) throw new TooManyPositions()
        this.#sets.push(node.set)
        this.#loops.push(this.#loop)
        this.#follow.push(new Map())
        return {
          first: new Map([[position, 1]]),
          last: new Map([[position, 1]]),
          free: new Set([position]),
          empty: 0,
          emptyFree: false,
        }
      }
      case 'assertion':
        return { first: new Map(), last: new Map(), free: new Set(), empty: 1, emptyFree: false }
      case 'group':
        return this.#part(node.body)
      case 'sequence': {
        const whole: Part = { first: new Map(), last: new Map(), free: new Set(), empty: 1, emptyFree: true }
        for (const item of node.items) this.#append(whole, this.#part(item))
        return whole
      }
      case 'choice': {
        const whole: Part = { first: new Map(), last: new Map(), free: new Set(), empty: 0, emptyFree: false }
        for (const option of node.options) {
          const part = this.#part(option)
          add(whole.first, part.first, 1)
          add(whole.last, part.last, 1)
          for (const position of part.free) whole.free.add(position)
          whole.empty += part.empty
          if (part.emptyFree) whole.emptyFree = true
        }
        return whole
      }
      case 'repeat':
        return this.#repeat(node)
    }
  }

  #repeat(node: RegexNode & { kind: 'repeat' }): Part {
    const { body, min, max } = node
    const whole: Part = { first: new Map(), last: new Map(), free: new Set(), empty: 1, emptyFree: true }
    if (max === 0) return whole
    const span = longest(node)
    // A repeated single character is a loop of one position; other small repeats are treated as unrolled.
    const small = max <= 8 && (max === 1 || (size(body) > 1 && size(body) * max <= maxUnrolled))
    if (small) {
      for (let time = 0; time < max; time++) {
        const part = this.#part(body)
        if (time >= min) {
          part.empty += 1
          part.emptyFree = true
        }
        this.#append(whole, part)
      }
      return whole
    }
    const outermost = this.#loop < 0
    if (outermost) this.#loop = this.#spans.push(span) - 1
    const part = this.#part(body)
    if (outermost) this.#loop = -1
    for (const [position, ways] of part.last) add(this.#follow[position] as Reach, part.first, ways)
    const copies = Math.min(Number.isFinite(max) ? max : min + 1, 60)
    const empty = nullable(body) ? (1 + part.empty) ** copies : min === 0 ? 1 : 0
    return { ...part, empty, emptyFree: min === 0 || part.emptyFree }
  }

  #append(whole: Part, part: Part): void {
    for (const [position, ways] of whole.last) add(this.#follow[position] as Reach, part.first, ways)
    if (whole.empty > 0) add(whole.first, part.first, whole.empty)
    if (part.empty > 0) {
      const last = new Map(part.last)
      add(last, whole.last, part.empty)
      const free = new Set(part.free)
      if (part.emptyFree) for (const position of whole.free) free.add(position)
      whole.last = last
      whole.free = free
    } else {
      whole.last = part.last
      whole.free = part.free
    }
    whole.empty *= part.empty
    whole.emptyFree &&= part.emptyFree
  }
}

function times([to, ways]: readonly [number, number], cost: Float64Array): number {
  return ways * (cost[to] as number)
}

function add(to: Reach, from: Reach, ways: number): void {
  for (const [position, count] of from) to.set(position, (to.get(position) ?? 0) + count * ways)
}

function size(node: RegexNode): number {
  switch (node.kind) {
    case 'set':
      return 1
    case 'assertion':
      return 0
    case 'sequence':
      return node.items.reduce((sum, item) => sum + size(item), 0)
    case 'choice':
      return node.options.reduce((sum, option) => sum + size(option), 0)
    case 'group':
      return size(node.body)
    case 'repeat':
      return size(node.body) * (node.max <= 8 ? Math.max(node.max, 1) : 1)
  }
}
