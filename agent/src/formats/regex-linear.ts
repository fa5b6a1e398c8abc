// Regular expressions that cannot stall: patterns that could take the built-in engine too long are matched in linear time.
// `compileBounded` estimates how many steps the built-in engine could need. Patterns below a limit run on it; the others run here, with
// the same backtracking search that remembers failed states, or, if the text is too long for that memory, with all states at once. Both
// return the same match as the built-in engine.
// Hand-written, because `re2` is native code, which the images do not contain, and its WebAssembly port is unmaintained. `re2js` is
// JavaScript and takes 25 times as long: 8 µs for an access log line instead of 0.3 µs.

import { BoundedMap } from '../bounded-map.ts'
import { backtrackingCost } from './regex-cost.ts'
import { anchored, nullable, parseRegex, type RegexNode, type RegexTree } from './regex-syntax.ts'

/** Maximum steps of the built-in engine for one search: some milliseconds. */
const maxSteps = 4_000_000

/** If a pattern needs at most this many steps per character, it runs on the built-in engine for any text length. */
const maxStepsPerCharacter = 1000

/** One step of the built-in engine is faster than one instruction here, and a character may need all instructions. */
const stepsPerInstruction = 4

/** Limit for the size of programs, because nested repeats could otherwise fill the memory. */
const maxInstructions = 50_000

/** Maximum steps of the built-in engine for all far look-arounds of one search: less than a second. */
const maxLookingSteps = 100_000_000

/** Maximum bits of memory for one search; beyond it, all states run at once. */
const maxMemoryBits = 1 << 28

/**
 * Compiles a pattern in JavaScript syntax. Throws a SyntaxError if it is invalid, or if no search for it has bounded time. If a
 * pattern has look-arounds that read far, it does not match texts that are too long for reading them at each position.
 */
export function compileBounded(source: string, flags: string): RegExp {
  const native = new RegExp(source, flags)
  const plan = planOf(source, flags)
  if (plan === undefined) {
    const shown = source.length > 60 ? `${source.slice(0, 60)}…` : source
    throw new SyntaxError(`the pattern /${shown}/ has back-references: no search for them ends in bounded time`)
  }
  return plan.longest === Number.POSITIVE_INFINITY ? native : new BoundedRegExp(source, flags)
}

/** A pattern to match data with. */
export type Pattern = Pick<RegExp, 'exec'>

/**
 * An internal pattern for matching data, bounded like a user's pattern. Its bounds are computed on first use, because
 * computing them for all such patterns would take a third of the language's load time.
 */
export function bounded({ source, flags }: RegExp): Pattern {
  let compiled: RegExp | undefined
  return {
    exec(text) {
      compiled ??= compileBounded(source, flags)
      return compiled.exec(text)
    },
  }
}

interface Plan {
  readonly tree: RegexTree
  /** The built-in engine runs on texts up to this length. */
  readonly longest: number
  /** Longer texts are not searched. */
  readonly end: number
  program: Program | undefined
  /** Estimated size, including the program. */
  readonly bytes: number
}

const planBytes = 1000
const bytesOfCharacter = 100
const bytesOfSet = 5000
const bytesOfInstruction = 60

// Patterns can come from data. A tree takes some hundred bytes per pattern character, plus the expanded program.
const plans = new BoundedMap<Plan | 'none'>({
  maxEntries: 1000,
  maxBytes: 16 << 20,
  sizeOf: (plan) => (plan === 'none' ? 0 : plan.bytes),
})

function planOf(source: string, flags: string): Plan | undefined {
  const kind = flags.replace(/[dgy]/g, '')
  const key = `${kind}/${source}`
  const known = plans.get(key)
  if (known !== undefined) return known === 'none' ? undefined : known
  const tree = parseRegex(source, kind)
  let plan: Plan | undefined
  if (tree !== undefined) {
    const size = instructions(tree.root)
    const looking = lookingCost(tree)
    const cost = backtrackingCost(tree)
    const longest =
      looking === undefined
        ? maxNativeLength(cost, Math.min(size, maxInstructions))
        : longestThat((length) => cost(length) * looking(length) <= maxSteps)
    const end =
      looking === undefined
        ? Number.POSITIVE_INFINITY
        : longestThat((length) => length * farLooks(tree.root) * looking(length) <= maxLookingSteps)
    if (longest !== Number.POSITIVE_INFINITY && size > maxInstructions) {
      throw new SyntaxError('Compiled regex exceeds size limit of 10485760 bytes.')
    }
    const bytes = planBytes + source.length * bytesOfCharacter + tree.sets.length * bytesOfSet
    const runs = longest !== Number.POSITIVE_INFINITY
    plan = { tree, longest, end, program: undefined, bytes: runs ? bytes + size * bytesOfInstruction : bytes }
  }
  plans.set(key, plan ?? 'none')
  return plan
}

function maxNativeLength(cost: (length: number) => number, size: number): number {
  const each = Math.max(maxStepsPerCharacter, stepsPerInstruction * size)
  const fits = (length: number): boolean => cost(length) <= Math.max(maxSteps, each * length)
  return fits(farLength) ? Number.POSITIVE_INFINITY : longestThat(fits)
}

/** The steps of all far look-arounds at one position for a text length; undefined without them. */
function lookingCost(tree: RegexTree): ((length: number) => number) | undefined {
  if (tree.looks.length === 0) return undefined
  const costs = tree.looks.map((look) => backtrackingCost(look.tree))
  return (length) => costs.reduce((sum, cost) => sum + cost(length), 1)
}

const farLength = 1_000_000

function longestThat(fits: (length: number) => boolean): number {
  let from = 0
  let to = farLength
  while (from < to) {
    const middle = (from + to + 1) >>> 1
    if (fits(middle)) from = middle
    else to = middle - 1
  }
  return from
}

/** Lets tests force a strategy. */
export interface Limits {
  /** The built-in engine runs on texts up to this length; -1: never. */
  readonly longest?: number
  /** Above this many bits of memory, all states run at once. */
  readonly memoryBits?: number
}

/** A pattern that runs on the built-in engine only for short texts, or never. */
export class BoundedRegExp extends RegExp {
  readonly #native: RegExp
  readonly #plan: Plan
  #machine: Machine | undefined

  readonly #longest: number
  readonly #memoryBits: number

  constructor(pattern: string | RegExp, flags?: string, limits: Limits = {}) {
    super(pattern, flags)
    this.#native = new RegExp(this.source, this.flags)
    const plan = planOf(this.source, this.flags)
    if (plan === undefined) throw new SyntaxError(`${this.source} cannot run in linear time`)
    this.#plan = plan
    this.#longest = limits.longest ?? plan.longest
    this.#memoryBits = limits.memoryBits ?? maxMemoryBits
  }

  override exec(text: string): RegExpExecArray | null {
    const input = String(text)
    if (input.length > this.#longest) return this.#search(input)
    this.#native.lastIndex = this.lastIndex
    const match = this.#native.exec(input)
    this.lastIndex = this.#native.lastIndex
    return match
  }

  override test(text: string): boolean {
    const input = String(text)
    if (input.length > this.#longest) return this.#search(input) !== null
    this.#native.lastIndex = this.lastIndex
    const found = this.#native.test(input)
    this.lastIndex = this.#native.lastIndex
    return found
  }

  #search(text: string): RegExpExecArray | null {
    const { tree, end: searched } = this.#plan
    if (text.length > searched) return null
    const moves = this.global || this.sticky
    let from = moves ? Math.max(0, Math.trunc(Number(this.lastIndex)) || 0) : 0
    if (from > text.length) {
      this.lastIndex = 0
      return null
    }
    // A search must not start inside a character.
    if (tree.unicode && from > 0 && isLow(text.charCodeAt(from)) && isHigh(text.charCodeAt(from - 1))) from--
    this.#plan.program ??= compileProgram(tree)
    this.#machine ??= new Machine(this.#plan.program, this.#memoryBits)
    const found = this.#machine.search(text, from, this.sticky, moves)
    // After a failed sticky search, the caller tries later positions, as `split` does.
    this.#machine.release(this.sticky || (moves && found !== undefined))
    if (found === undefined) {
      if (moves) this.lastIndex = 0
      return null
    }
    if (moves) this.lastIndex = found[1] as number
    const match: (string | undefined)[] = []
    for (let group = 0; group < tree.groupCount; group++) {
      const end = found[2 * group + 1] as number
      match.push(end < 0 ? undefined : text.slice(found[2 * group] as number, end))
    }
    for (const { register, pattern, firstGroup } of this.#plan.program.lookCaptures) {
      const place = found[register] as number
      if (place < 0) continue
      pattern.lastIndex = place
      pattern
        .exec(text)
        ?.slice(1)
        .forEach((value, group) => {
          match[firstGroup + group] = value
        })
    }
    const named = <T>(values: readonly T[]): Record<string, T> | undefined => {
      if (tree.names.length === 0) return undefined
      const groups: Record<string, T> = Object.create(null)
      for (const [name, group] of tree.names) groups[name] = values[group] as T
      return groups
    }
    const result = Object.assign(match, {
      index: found[0] as number,
      input: text,
      groups: named(match),
    }) as unknown as RegExpExecArray
    if (this.hasIndices) {
      const pairs = match.map((value, group) =>
        value === undefined ? undefined : [found[2 * group] as number, found[2 * group + 1] as number],
      )
      result.indices = Object.assign(pairs, { groups: named(pairs) }) as unknown as RegExpIndicesArray
    }
    return result
  }
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}

const read = 0 // a character of set `a`
const split = 1 // to `a`, or on failure to `b`
const jump = 2 // to `a`
const save = 3 // stores the position in register `a`
const forget = 4 // clears registers `a` to `b`, excluding `b`
const moved = 5 // fails if register `a` contains the current position
const assert = 6 // assertion `a`
const done = 7

interface Program {
  readonly operations: Uint8Array
  readonly a: Int32Array
  readonly b: Int32Array
  /** For instructions reached from several others: their first bit in the memory, else -1. */
  readonly joins: Int32Array
  /** For each instruction, the registers of the enclosing loops that must not match an empty text. */
  readonly around: readonly (readonly number[])[]
  readonly bits: number
  readonly registers: number
  readonly captures: number
  readonly sets: RegexTree['sets']
  readonly assertions: readonly ((text: string, at: number) => boolean)[]
  readonly anchored: boolean
  /** The ASCII characters with which a match can begin; undefined if a match can be empty. */
  readonly begins: Uint8Array | undefined
  readonly unicode: boolean
  readonly lookCaptures: readonly LookCapture[]
}

function instructions(node: RegexNode): number {
  switch (node.kind) {
    case 'set':
    case 'assertion':
      return 1
    case 'sequence':
      return node.items.reduce((sum, item) => sum + instructions(item), 0)
    case 'choice':
      return node.options.reduce((sum, option) => sum + instructions(option) + 2, 0)
    case 'group':
      return instructions(node.body) + 2
    case 'repeat': {
      const guards = (nullable(node.body) ? 2 : 0) + (node.groups[1] > node.groups[0] ? 1 : 0)
      return (instructions(node.body) + guards + 1) * (Number.isFinite(node.max) ? node.max : node.min + 1) + 1
    }
  }
}

/** Number of far look-arounds in the program of a node. */
function farLooks(node: RegexNode): number {
  switch (node.kind) {
    case 'set':
      return 0
    case 'assertion':
      return node.look === undefined ? 0 : 1
    case 'sequence':
      return node.items.reduce((sum, item) => sum + farLooks(item), 0)
    case 'choice':
      return node.options.reduce((sum, option) => sum + farLooks(option), 0)
    case 'group':
      return farLooks(node.body)
    case 'repeat':
      return farLooks(node.body) * (Number.isFinite(node.max) ? node.max : node.min + 1)
  }
}

/** The captures of a look-around: its groups, matched again at the same position. */
interface LookCapture {
  /** Stores the position. */
  readonly register: number
  readonly pattern: RegExp
  readonly firstGroup: number
}

function compileProgram(tree: RegexTree): Program {
  const lookCaptures: LookCapture[] = []
  const operations: number[] = []
  const a: number[] = []
  const b: number[] = []
  const around: (readonly number[])[] = []
  const assertions: ((text: string, at: number) => boolean)[] = []
  const assertionNumbers = new Map<string, number>()
  const setNumbers = new Map(tree.sets.map((set, index) => [set, index]))
  const captures = tree.groupCount * 2
  let registers = captures
  let loops: readonly number[] = []
  const emit = (operation: number, x = 0, y = 0): number => {
    around.push(loops)
    a.push(x)
    b.push(y)
    return operations.push(operation) - 1
  }
  const fork = (at: number, first: number, second: number, lazy: boolean): void => {
    a[at] = lazy ? second : first
    b[at] = lazy ? first : second
  }
  const compile = (node: RegexNode): void => {
    switch (node.kind) {
      case 'set':
        emit(read, setNumbers.get(node.set) as number)
        return
      case 'assertion': {
        const key = `${node.flags}/${node.source}`
        let number = assertionNumbers.get(key)
        if (number === undefined) {
          number = assertions.push(assertionOf(node.source, node.flags)) - 1
          assertionNumbers.set(key, number)
        }
        const [from, to] = node.look?.groups ?? [0, 0]
        if (to > from) {
          const register = registers++
          lookCaptures.push({ register, pattern: new RegExp(node.source, `${node.flags}y`), firstGroup: from })
          emit(save, register)
        }
        emit(assert, number)
        return
      }
      case 'sequence':
        for (const item of node.items) compile(item)
        return
      case 'group':
        emit(save, 2 * node.index)
        compile(node.body)
        emit(save, 2 * node.index + 1)
        return
      case 'choice': {
        const exits: number[] = []
        node.options.forEach((option, index) => {
          if (index === node.options.length - 1) {
            compile(option)
            return
          }
          const at = emit(split)
          compile(option)
          exits.push(emit(jump))
          fork(at, at + 1, operations.length, false)
        })
        for (const exit of exits) a[exit] = operations.length
        return
      }
      case 'repeat': {
        const { body, min, max, lazy } = node
        const [from, to] = node.groups
        const once = (): void => {
          if (to > from) emit(forget, 2 * from, 2 * to)
          compile(body)
        }
        const empty = nullable(body)
        const optional = (): void => {
          if (!empty) {
            once()
            return
          }
          const register = registers++
          const outer = loops
          emit(save, register)
          loops = [...loops, register]
          once()
          emit(moved, register)
          loops = outer
        }
        const endless = max === Number.POSITIVE_INFINITY
        const tail = endless && min > 0 && !empty
        for (let time = 0; time < (tail ? min - 1 : min); time++) once()
        if (tail) {
          const start = operations.length
          once()
          const at = emit(split)
          fork(at, start, at + 1, lazy)
        } else if (endless) {
          const at = emit(split)
          optional()
          emit(jump, at)
          fork(at, at + 1, operations.length, lazy)
        } else {
          const exits: number[] = []
          for (let time = min; time < max; time++) {
            exits.push(emit(split))
            optional()
          }
          for (const exit of exits) fork(exit, exit + 1, operations.length, lazy)
        }
      }
    }
  }
  compile(tree.root)
  emit(done)
  const sources = new Int32Array(operations.length)
  operations.forEach((operation, at) => {
    if (operation === jump || operation === split) (sources[a[at] as number] as number)++
    if (operation === split) (sources[b[at] as number] as number)++
    else if (operation !== jump && operation !== done) (sources[at + 1] as number)++
  })
  let bits = 0
  const joins = new Int32Array(operations.length).fill(-1)
  joins.forEach((_, at) => {
    if ((sources[at] as number) < 2 && at > 0) return
    joins[at] = bits
    bits += (around[at] as readonly number[]).length + 1
  })
  let begins: Uint8Array | undefined
  if (!nullable(tree.root)) {
    begins = new Uint8Array(128)
    addFirst(tree.root, begins)
  }
  return {
    operations: Uint8Array.from(operations),
    a: Int32Array.from(a),
    b: Int32Array.from(b),
    joins,
    around,
    bits,
    registers,
    captures,
    sets: tree.sets,
    assertions,
    anchored: anchored(tree.root),
    begins,
    unicode: tree.unicode,
    lookCaptures,
  }
}

function addFirst(node: RegexNode, begins: Uint8Array): void {
  if (node.kind === 'set') {
    for (let code = 0; code < 128; code++) if (node.set.ascii[code] === 1) begins[code] = 1
  } else if (node.kind === 'sequence') {
    for (const item of node.items) {
      addFirst(item, begins)
      if (!nullable(item)) return
    }
  } else if (node.kind === 'choice') {
    for (const option of node.options) addFirst(option, begins)
  } else if (node.kind !== 'assertion') {
    addFirst(node.body, begins)
  }
}

function assertionOf(source: string, flags: string): (text: string, at: number) => boolean {
  if (!flags.includes('m')) {
    if (source === '^') return (_, at) => at === 0
    if (source === '$') return (text, at) => at === text.length
  }
  if (source === '(?<![^\\n])') return (text, at) => at === 0 || text.charCodeAt(at - 1) === 10
  if (source === '(?![^\\n])') return (text, at) => at === text.length || text.charCodeAt(at) === 10
  const pattern = new RegExp(source, `${flags}y`)
  return (text, at) => {
    pattern.lastIndex = at
    return pattern.test(text)
  }
}

const smallMemory = () => new Uint32Array(16)

/**
 * Words of memory that a machine may keep between texts. Only one machine may keep more, while its text is still being
 * searched.
 */
const keptWords = 1 << 12
let largeMemory: Machine | undefined

/** Runs a program. A state that failed at a position fails there again, even in the next search of the same text. */
class Machine {
  readonly #program: Program
  readonly #registers: Int32Array
  readonly #memoryBits: number
  #memory = smallMemory()
  #text: string | undefined
  /** Where the last search of the text ended. */
  #end = 0
  readonly #stack: number[] = []

  constructor(program: Program, memoryBits: number) {
    this.#program = program
    this.#memoryBits = memoryBits
    this.#registers = new Int32Array(program.registers)
  }

  /** The registers of the first match at or after a position; `keep`: the text may be searched again later. */
  search(text: string, from: number, sticky: boolean, keep: boolean): Int32Array | undefined {
    const { bits, anchored, begins } = this.#program
    const last = sticky ? from : anchored ? 0 : text.length
    if (from > last) return undefined
    if (bits * (text.length + 1) > this.#memoryBits) return this.#together(text, from, last)
    if (!keep || this.#text !== text || from < this.#end) {
      const words = ((bits * (text.length + 1)) >>> 5) + 1
      if (this.#memory.length < words) this.#memory = new Uint32Array(Math.max(words, this.#memory.length * 2))
      else this.#memory.fill(0, 0, words)
      this.#text = keep ? text : undefined
      this.#end = 0
    }
    for (let start = from; start <= last; start = this.#after(text, start)) {
      if (begins !== undefined) {
        if (start === text.length) return undefined
        const code = text.charCodeAt(start)
        if (code < 128 && begins[code] === 0) continue
      }
      if (!this.#attempt(text, start)) continue
      this.#end = this.#registers[1] as number
      // The paths that led to the match did not fail; a later search can only reach their ends.
      for (let bit = this.#end * bits; bit < (this.#end + 1) * bits; bit++) {
        this.#memory[bit >>> 5] = (this.#memory[bit >>> 5] as number) & ~(1 << (bit & 31))
      }
      return this.#registers
    }
    return undefined
  }

  /** Called after each search: a pattern that matched one long text must not keep its memory forever. */
  release(textContinues: boolean): void {
    if (this.#stack.length > keptWords) this.#stack.length = 0
    if (textContinues) {
      if (this.#memory.length <= keptWords && (this.#text?.length ?? 0) <= keptWords) return
      if (largeMemory !== this) largeMemory?.release(false)
      largeMemory = this
      return
    }
    this.#text = undefined
    if (this.#memory.length > keptWords) this.#memory = smallMemory()
    if (largeMemory === this) largeMemory = undefined
  }

  #after(text: string, at: number): number {
    return this.#program.unicode && (text.codePointAt(at) ?? 0) > 0xffff ? at + 2 : at + 1
  }

  /** A backtracking search like that of the built-in engine, which never visits a state twice at the same position. */
  #attempt(text: string, start: number): boolean {
    const { operations, a, b, joins, around, bits, sets, assertions, unicode } = this.#program
    const registers = this.#registers.fill(-1)
    const memory = this.#memory
    const stack = this.#stack
    let top = 0
    let next = 0
    let at = start
    registers[0] = start
    for (;;) {
      let failed = false
      const join = joins[next] as number
      if (join >= 0) {
        let bit = at * bits + join
        const loops = around[next] as readonly number[]
        for (let loop = 0; loop < loops.length; loop++) if (registers[loops[loop] as number] === at) bit++
        const word = bit >>> 5
        const mask = 1 << (bit & 31)
        if (((memory[word] as number) & mask) !== 0) failed = true
        else memory[word] = (memory[word] as number) | mask
      }
      if (!failed) {
        const x = a[next] as number
        switch (operations[next]) {
          case read: {
            if (at < text.length) {
              const set = sets[x] as RegexTree['sets'][number]
              const unit = text.charCodeAt(at)
              if (unit < 128) {
                if (set.ascii[unit] === 1) {
                  at++
                  next++
                  continue
                }
              } else {
                const code = unicode ? (text.codePointAt(at) as number) : unit
                if (set.has(code)) {
                  at += code > 0xffff ? 2 : 1
                  next++
                  continue
                }
              }
            }
            break
          }
          case split:
            stack[top++] = b[next] as number
            stack[top++] = at
            next = x
            continue
          case jump:
            next = x
            continue
          case save:
            stack[top++] = -1 - x
            stack[top++] = registers[x] as number
            registers[x] = at
            next++
            continue
          case forget:
            for (let register = x; register < (b[next] as number); register++) {
              if (registers[register] === -1) continue
              stack[top++] = -1 - register
              stack[top++] = registers[register] as number
              registers[register] = -1
            }
            next++
            continue
          case moved:
            if (registers[x] === at) break
            next++
            continue
          case assert:
            if (!(assertions[x] as (text: string, at: number) => boolean)(text, at)) break
            next++
            continue
          default:
            registers[1] = at
            return true
        }
      }
      for (;;) {
        if (top === 0) return false
        const value = stack[--top] as number
        const target = stack[--top] as number
        if (target < 0) {
          registers[-1 - target] = value
          continue
        }
        next = target
        at = value
        break
      }
    }
  }

  /**
   * A search with all states at once, in order of preference. Slower, but its memory is proportional to the program.
   */
  #together(text: string, from: number, last: number): Int32Array | undefined {
    const { operations, a, b, around, registers, sets, assertions, unicode, begins } = this.#program
    const offsets = new Int32Array(operations.length)
    let size = 0
    around.forEach((loops, index) => {
      offsets[index] = size
      size += loops.length + 1
    })
    const seen = new Int32Array(size).fill(-1)
    let states: number[] = []
    let values: Int32Array[] = []
    let best: Int32Array | undefined
    const pending: number[] = []
    const pendingValues: Int32Array[] = []
    const add = (
      first: number,
      firstValues: Int32Array,
      at: number,
      toStates: number[],
      toValues: Int32Array[],
    ): void => {
      pending.push(first)
      pendingValues.push(firstValues)
      while (pending.length > 0) {
        const state = pending.pop() as number
        let held = pendingValues.pop() as Int32Array
        let key = offsets[state] as number
        for (const loop of around[state] as readonly number[]) if (held[loop] === at) key++
        if (seen[key] === at) continue
        seen[key] = at
        const x = a[state] as number
        switch (operations[state]) {
          case split:
            pending.push(b[state] as number, x)
            pendingValues.push(held, held)
            continue
          case jump:
            pending.push(x)
            pendingValues.push(held)
            continue
          case save:
            held = held.slice()
            held[x] = at
            break
          case forget:
            held = held.slice().fill(-1, x, b[state])
            break
          case moved:
            if (held[x] === at) continue
            break
          case assert:
            if (!(assertions[x] as (text: string, at: number) => boolean)(text, at)) continue
            break
          default:
            toStates.push(state)
            toValues.push(held)
            continue
        }
        pending.push(state + 1)
        pendingValues.push(held)
      }
    }
    for (let at = from; ; ) {
      const unit = at < text.length ? text.charCodeAt(at) : -1
      if (best === undefined && at <= last) {
        if (begins === undefined || (unit >= 0 && (unit > 127 || begins[unit] === 1))) {
          const fresh = new Int32Array(registers).fill(-1)
          fresh[0] = at
          add(0, fresh, at, states, values)
        }
      }
      if (states.length === 0 && (best !== undefined || at >= last)) break
      const code = unit < 128 || !unicode ? unit : (text.codePointAt(at) as number)
      const after = at + (code > 0xffff ? 2 : 1)
      const nextStates: number[] = []
      const nextValues: Int32Array[] = []
      for (let index = 0; index < states.length; index++) {
        const state = states[index] as number
        const held = values[index] as Int32Array
        if (operations[state] === done) {
          best = held.slice()
          best[1] = at
          break
        }
        if (code >= 0 && (sets[a[state] as number] as RegexTree['sets'][number]).has(code)) {
          add(state + 1, held, after, nextStates, nextValues)
        }
      }
      if (code < 0) break
      states = nextStates
      values = nextValues
      at = after
    }
    return best
  }
}
