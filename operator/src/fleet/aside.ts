// Changes that the operator sets aside from a rollout, so that they neither delay other changes nor cause their rollback. It sets changes aside if
// agents fail and the failing change is unknown, or if a rollout makes no progress because of them. Later it tries each group of them alone. Pure.

import type { Content } from './contents.ts'
import type { RolloutRecord } from './state.ts'

export type Aside = NonNullable<RolloutRecord['aside']>

/** The number is limited because the record is stored in an annotation. */
export const maxAside = 200
/** A group that results from this many halvings is rolled back as a whole. */
const maxHalvings = 4

/** The entries whose version is still desired. */
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

export const isDoubted = (aside: Aside | undefined, group: string | undefined): boolean =>
  Object.values(aside ?? {}).some((entry) => entry.group === group && entry.doubt === true)

/** New changes need not wait while agents run without a doubted group, which takes at least this time. */
const minDoubtMs = 60_000

/**
 * The group for the next trial; undefined for the new changes. Groups and new changes alternate. Groups that made no
 * progress before come last.
 * @param hasNew whether there are changes that are not set aside
 */
export function nextGroup(
  { aside, turn }: Pick<RolloutRecord, 'aside' | 'turn'>,
  hasNew: boolean,
  now = Number.POSITIVE_INFINITY,
): string | undefined {
  const isReady = (group: string) => !hasNew || !isDoubted(aside, group) || now - setAsideAt(group) >= minDoubtMs
  const groups = [...new Set(Object.values(aside ?? {}).map(({ group }) => group))].filter(isReady)
  if (hasNew && turn !== undefined) return undefined
  return groups.find((group) => !isBlocked(aside, group)) ?? groups[0]
}

/** After this time at the latest, a group without progress is tried again, whatever else changes. */
const maxBlockedMs = 600_000

/**
 * Whether a group is due for a trial of its own, for which the current trials must end first.
 * @param group the group that is being tried
 */
export function isTurnDue(aside: Aside | undefined, group: string | undefined, now: number): boolean {
  return Object.values(aside ?? {}).some(
    (entry) => entry.group !== group && (entry.blocked !== true || now - setAsideAt(entry.group) >= maxBlockedMs),
  )
}

/**
 * Whether a candidate without progress must give way to a waiting group. A group that made no progress even alone waits until nothing else
 * is being tried. Otherwise such groups would alternate forever.
 */
export const isWaiting = (aside: Aside | undefined, group: string | undefined): boolean =>
  Object.values(aside ?? {}).some((entry) => entry.group !== group && entry.alone !== true)

/** Whether a group may be halved once more to find the harmful change. */
export const mayHalve = (count: number, turn: string | undefined): boolean =>
  count > 1 && count <= maxAside && halvesOf(turn) < maxHalvings

const halvesOf = (group: string | undefined) => (group === undefined ? 0 : group.length - group.indexOf(':') - 1)

/** Maximum length of the reason for a group, because the record is stored in an annotation. */
const maxWhy = 160

/**
 * The name of a new group: the time at which it was set aside, and the salt by which agents were chosen in the trial before. Each halving
 * appends a digit.
 */
const named = (now: number, salt?: string) => `${Math.floor(now).toString(36)}${salt === undefined ? '' : `.${salt}`}:`

/** When a group was set aside, in milliseconds since the epoch. */
export const setAsideAt = (group: string): number => Number.parseInt(group, 36)

/** The salt in the name of a group. */
export const saltOf = (group: string): string | undefined => /\.([^.:]*):/.exec(group)?.[1]

interface HalvedBy {
  readonly why: string
  readonly now: number
  readonly salt?: string | undefined
  readonly doubt?: true | undefined
}

/**
 * Adds these changes as two groups, which are tried before all others.
 * @param ids ordered so that both halves are about equally suspicious
 */
export function halved(
  { aside = {}, turn }: Pick<RolloutRecord, 'aside' | 'turn'>,
  ids: readonly string[],
  hashOf: (id: string) => string | undefined,
  { why, now, salt, doubt }: HalvedBy,
): Aside {
  const group = groupOf(aside, turn).size > 0 ? (turn as string) : named(now, salt)
  const entries = ids.flatMap((id, index) => {
    const hash = hashOf(id)
    const half = `${group}${index * 2 < ids.length ? 0 : 1}`
    const how: Pick<Aside[string], 'doubt'> = doubt === true ? { doubt } : {}
    return hash === undefined ? [] : [[id, { hash, group: half, ...how, why: why.slice(0, maxWhy) }] as const]
  })
  return { ...Object.fromEntries(entries), ...without(aside, new Set(ids)) }
}

/** Adds these changes as one group that made no progress, which is tried after all others. */
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

/** The record without the set-aside entries of these Pipelines. */
export function withoutAside(record: RolloutRecord, ids: ReadonlySet<string>): RolloutRecord {
  const { aside = {}, ...rest } = record
  const left = without(aside, ids)
  return Object.keys(left).length === 0 ? rest : { ...rest, aside: left }
}

function without(aside: Aside, ids: ReadonlySet<string>): Aside {
  return Object.fromEntries(Object.entries(aside).filter(([id]) => !ids.has(id)))
}
