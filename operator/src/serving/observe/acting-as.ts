// Callers of the operator that act as another user, as `kubectl --as` does: the API server takes the headers of its own impersonation
// for itself, so commands send the same in one header of ours. The rights are those that the API server asks for.

import type { ReviewedAction, Reviews, User } from '../../kube/reviews.ts'
import { longestActingAs } from './relay.ts'

/** The user that a caller acts as. */
export interface ActingAs {
  readonly username: string
  readonly groups: readonly string[]
}

const maxGroups = 100
const account = /^system:serviceaccount:([^:]+):([^:]+)$/
const everyone = 'system:authenticated'
const strangers = 'system:unauthenticated'
const nobody = 'system:anonymous'

/** The value of the header. */
export function actingAsText({ username, groups }: ActingAs): string {
  return Buffer.from(JSON.stringify({ username, groups })).toString('base64url')
}

/**
 * Undefined: it is no such value. One text says one thing: another form of it, a second header or a member that is not known here may
 * mean more or less than what is read.
 */
export function actingAsIn(text: string): ActingAs | undefined {
  if (text.length > longestActingAs) return undefined
  let said: Partial<ActingAs> | null
  try {
    said = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<ActingAs> | null
  } catch {
    return undefined // not of a command
  }
  const { username, groups } = said ?? {}
  if (!isName(username) || !Array.isArray(groups) || groups.length > maxGroups || !groups.every(isName))
    return undefined
  const acting = { username, groups }
  return actingAsText(acting) === text ? acting : undefined
}

/** A header of the API server could carry it. */
const isName = (value: unknown): value is string => typeof value === 'string' && /^[^\p{Cc}\p{Cs}]+$/u.test(value)

/** The user that reviews then ask about, as the API server completes it. */
export function userActing({ username, groups }: ActingAs): User {
  const [, namespace] = account.exec(username) ?? []
  const own =
    namespace !== undefined && groups.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
      : groups
  // An unauthenticated user does not become an authenticated one as well: that would add rights to those that are named.
  if (own.includes(strangers)) return { username, groups: own }
  const all = username === nobody ? strangers : everyone
  return { username, groups: own.includes(all) ? own : [...own, all] }
}

interface Wanted {
  readonly resource: string
  readonly name: string
  readonly namespace?: string
}

/** The users and groups that the caller must have the right to act as, each once. */
export function wantedOf({ username, groups }: ActingAs): readonly Wanted[] {
  const [, namespace, name] = account.exec(username) ?? []
  return [
    namespace === undefined || name === undefined
      ? { resource: 'users', name: username }
      : { resource: 'serviceaccounts', name, namespace },
    ...[...new Set(groups)].map((group) => ({ resource: 'groups', name: group })),
  ]
}

/**
 * The first thing that the caller may not act as, as a text; undefined if it may act as all of it.
 * @param isRolesOnly rights are only known by namespace: users and groups have none
 */
export async function refusedActing(
  caller: User,
  wanted: readonly Wanted[],
  reviews: Reviews,
  isRolesOnly: boolean,
): Promise<string | undefined> {
  for (const each of wanted) {
    const what = `${each.resource} "${each.name}"${each.namespace === undefined ? '' : ` in namespace ${each.namespace}`}`
    if (isRolesOnly && each.namespace === undefined)
      return `${what}: this operator has rights in its namespaces only, and takes --as for ServiceAccounts of these`
    const attempt: ReviewedAction = { resourceAttributes: { group: '', verb: 'impersonate', ...each } }
    if (!(await reviews.mayDo(caller, attempt))) return what
  }
  return undefined
}
