// Compares the events of a new Pipeline with the events that the old agent made of the same lines, event by event and field by field.

import { canonicalJson, sameJson } from '@penstock/agent/bundle'
import { isTable } from '@penstock/agent/schema'

export type EventFields = Readonly<Record<string, unknown>>

/** A field that differs in the same way in one or more events. */
export interface Difference {
  readonly path: string
  readonly how: 'only old' | 'only new' | 'other value' | 'other type'
  count: number
  /** The values and positions (from 0) of the first such pair of events. */
  readonly old: unknown
  readonly made: unknown
  readonly oldAt: number
  readonly madeAt: number
}

export interface Comparison {
  /** Events of the old agent that have a counterpart. */
  readonly pairs: number
  /** Pairs without a difference. */
  readonly equal: number
  readonly differences: readonly Difference[]
  /** Positions of events without a counterpart, from 0. */
  readonly onlyOld: readonly number[]
  readonly onlyMade: readonly number[]
}

/** The search for a similar event covers this many of the following events. */
const maxDistance = 64

/** A leaf of an event: any value but a non-empty object. Lists are leaves, because their order matters. */
type Leaves = ReadonlyMap<string, unknown>

interface Side {
  readonly leaves: readonly Leaves[]
  readonly texts: readonly string[]
}

/** @param ignored paths such as `.timestamp`, which are ignored together with everything below them */
export function compareEvents(
  old: readonly EventFields[],
  made: readonly EventFields[],
  ignored: readonly string[] = [],
): Comparison {
  const [left, right] = [sideOf(old, ignored), sideOf(made, ignored)]
  const partners = pair(left, right)
  const differences = new Map<string, Difference>()
  let equal = 0
  for (const [oldAt, madeAt] of partners) {
    if (left.texts[oldAt] === right.texts[madeAt]) equal++
    else note(differences, left.leaves[oldAt] as Leaves, right.leaves[madeAt] as Leaves, oldAt, madeAt)
  }
  const taken = new Set(partners.values())
  return {
    pairs: partners.size,
    equal,
    differences: [...differences.values()].toSorted((one, other) => other.count - one.count),
    onlyOld: old.flatMap((_, at) => (partners.has(at) ? [] : [at])),
    onlyMade: made.flatMap((_, at) => (taken.has(at) ? [] : [at])),
  }
}

function sideOf(events: readonly EventFields[], ignored: readonly string[]): Side {
  const leaves = events.map((event) => leavesOf(event, ignored))
  return { leaves, texts: leaves.map((each) => canonicalJson(Object.fromEntries(each))) }
}

function leavesOf(event: EventFields, ignored: readonly string[]): Leaves {
  const found = new Map<string, unknown>()
  const visit = (value: unknown, path: string): void => {
    if (ignored.includes(path)) return
    const members = isTable(value) ? Object.entries(value) : []
    if (members.length === 0) found.set(path, value)
    for (const [name, member] of members) visit(member, `${path}.${nameInPath(name)}`)
  }
  for (const [name, value] of Object.entries(event)) visit(value, `.${nameInPath(name)}`)
  return found
}

const nameInPath = (name: string) => (/^[A-Za-z_@][\w@]*$/.test(name) ? name : JSON.stringify(name))

/** Finds the counterpart of each event: equal events first, then the most similar events near each other. */
function pair(left: Side, right: Side): Map<number, number> {
  const partners = new Map<number, number>()
  const equals = Map.groupBy(right.texts.keys(), (at) => right.texts[at] as string)
  for (const [at, text] of left.texts.entries()) {
    const found = equals.get(text)?.shift()
    if (found !== undefined) partners.set(at, found)
  }
  const taken = new Set(partners.values())
  const rest = [...right.leaves.keys()].filter((at) => !taken.has(at))
  for (const [at, leaves] of left.leaves.entries()) {
    if (partners.has(at)) continue
    let best = -1
    let bestScore = 0
    for (const [index, candidate] of rest.slice(0, maxDistance).entries()) {
      const score = shared(leaves, right.leaves[candidate] as Leaves)
      if (score > bestScore) {
        best = index
        bestScore = score
      }
    }
    if (best < 0) continue
    partners.set(at, rest[best] as number)
    rest.splice(best, 1)
  }
  return partners
}

/** The similarity of two events. Equal values count by length, because long texts are rarely equal by chance. */
function shared(left: Leaves, right: Leaves): number {
  let score = 0
  for (const [path, value] of left) {
    if (right.has(path) && isEqual(value, right.get(path))) score += 1 + String(value).length
  }
  return score
}

function isEqual(left: unknown, right: unknown): boolean {
  if (typeof left !== 'object' || typeof right !== 'object') return left === right
  return sameJson(left, right)
}

function note(differences: Map<string, Difference>, old: Leaves, made: Leaves, oldAt: number, madeAt: number): void {
  const add = (path: string, how: Difference['how']) => {
    const key = `${how} ${path}`
    const known = differences.get(key)
    if (known !== undefined) known.count++
    else differences.set(key, { path, how, count: 1, old: old.get(path), made: made.get(path), oldAt, madeAt })
  }
  for (const [path, value] of old) {
    if (!made.has(path)) add(path, 'only old')
    else if (!isEqual(value, made.get(path)))
      add(path, typeOf(value) === typeOf(made.get(path)) ? 'other value' : 'other type')
  }
  for (const path of made.keys()) if (!old.has(path)) add(path, 'only new')
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'list' : typeof value
}
