// Changes that are set aside from a rollout, so that they hold up no others and take none of them back: those under suspicion when agents fail and
// nothing shows by which change, and those by which a rollout does not go on. Each group of them is tried by itself afterwards. Pure.

import type { Content } from './contents.ts'
import type { RolloutRecord } from './state.ts'

export type Aside = NonNullable<RolloutRecord['aside']>

/** The record is an annotation. */
export const maxAside = 200
/** A group that has been halved so often is taken back as a whole. */
const maxHalvings = 4

/** The entries that are still about what is to run. */
export function stillAside(aside: Aside | undefined, desired: Content): Aside {
  return Object.fromEntries(Object.entries(aside ?? {}).filter(([id, { hash }]) => desired.get(id)?.hash === hash))
}

/** Ids of the Pipelines of a group. */
export function groupOf(aside: Aside | undefined, group: string | undefined): Set<string> {
  if (group === undefined) return new Set()
  return new Set(Object.entries(aside ?? {}).flatMap(([id, entry]) => (entry.group === group ? [id] : [])))
}

export const isBlocked = (aside: Aside | undefined, group: string): boolean =>
  Object.values(aside ?? {}).some((entry) => entry.group === group && entry.blocked === true)

/**
 * The group for the next trial; undefined: what is new. They take turns, and groups that did not go on before come last.
 * @param hasNew whether there are changes that are not set aside
 */
export function nextGroup({ aside, turn }: Pick<RolloutRecord, 'aside' | 'turn'>, hasNew: boolean): string | undefined {
  const groups = [...new Set(Object.values(aside ?? {}).map(({ group }) => group))]
  if (hasNew && turn !== undefined) return undefined
  return groups.find((group) => !isBlocked(aside, group)) ?? groups[0]
}

/** A group that did not go on is tried again at the latest after this time, whatever else changes. */
const maxBlockedMs = 600_000

/** Whether a group waits for a trial by itself, for which the trials that go on must end. @param group the one that is tried now */
export function isTurnDue(aside: Aside | undefined, group: string | undefined, now: number): boolean {
  const since = (name: string) => Number.parseInt(name, 36)
  return Object.values(aside ?? {}).some(
    (entry) => entry.group !== group && (entry.blocked !== true || now - since(entry.group) >= maxBlockedMs),
  )
}

/**
 * Whether a candidate that does not go on makes room for a group. Groups that did not go on by themselves either wait until nothing else is
 * tried: otherwise they would take turns without end.
 */
export const isWaiting = (aside: Aside | undefined, group: string | undefined): boolean =>
  Object.values(aside ?? {}).some((entry) => entry.group !== group && entry.alone !== true)

/** Whether a group may be halved once more to find the change that does the harm. */
export const mayHalve = (count: number, turn: string | undefined): boolean =>
  count > 1 && count <= maxAside && halvesOf(turn) < maxHalvings

const halvesOf = (group: string | undefined) => (group === undefined ? 0 : group.length - group.indexOf(':') - 1)

/** Of what is said about all of them: the record would grow too much by more. */
const maxWhy = 160

/** The name of a group of its own: when it was set aside, and which halves it is. */
const named = (now: number) => `${now.toString(36)}:`

/**
 * With these changes in two groups, which are tried before all others.
 * @param ids in an order in which the suspicion is about the same in both halves
 */
export function halved(
  { aside = {}, turn }: Pick<RolloutRecord, 'aside' | 'turn'>,
  ids: readonly string[],
  hashOf: (id: string) => string | undefined,
  { why, now }: { readonly why: string; readonly now: number },
): Aside {
  const group = groupOf(aside, turn).size > 0 ? (turn as string) : named(now)
  const entries = ids.flatMap((id, index) => {
    const hash = hashOf(id)
    const half = `${group}${index * 2 < ids.length ? 0 : 1}`
    return hash === undefined ? [] : [[id, { hash, group: half, why: why.slice(0, maxWhy) }] as const]
  })
  return { ...Object.fromEntries(entries), ...without(aside, new Set(ids)) }
}

/** With these changes as a group that did not go on: it is tried after all others. */
export function blockedAside(
  { aside = {}, turn }: Pick<RolloutRecord, 'aside' | 'turn'>,
  ids: ReadonlySet<string>,
  hashOf: (id: string) => string | undefined,
  { why, now }: { readonly why: string; readonly now: number },
): Aside {
  const isAgain = [...groupOf(aside, turn)].some((id) => ids.has(id))
  const group = `${named(now)}${isAgain ? (turn as string).replace(/^.*:/, '') : ''}`
  const entries = [...ids].slice(0, maxAside).flatMap((id) => {
    const hash = hashOf(id)
    const how: Pick<Aside[string], 'blocked' | 'alone'> = { blocked: true, ...(isAgain ? { alone: true } : {}) }
    return hash === undefined ? [] : [[id, { hash, group, ...how, why: why.slice(0, maxWhy) }] as const]
  })
  return { ...without(aside, ids), ...Object.fromEntries(entries) }
}

/** The record without these entries of what is set aside. */
export function withoutAside(record: RolloutRecord, ids: ReadonlySet<string>): RolloutRecord {
  const { aside = {}, ...rest } = record
  const left = without(aside, ids)
  return Object.keys(left).length === 0 ? rest : { ...rest, aside: left }
}

function without(aside: Aside, ids: ReadonlySet<string>): Aside {
  return Object.fromEntries(Object.entries(aside).filter(([id]) => !ids.has(id)))
}
