// Callers that impersonate another user, as with `kubectl --as`: the API server interprets the usual headers for itself, so commands
// send the same information in a header of ours. The required rights are those of the API server.

import type { ReviewedAction, Reviews, User } from '../../kube/reviews.ts'
import { maxActingAsBytes } from './relay.ts'

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
 * Undefined if the value is invalid. The check is strict, because another form, a second header or an unknown member may have a
 * meaning that this code does not know.
 */
export function actingAsIn(text: string): ActingAs | undefined {
  if (text.length > maxActingAsBytes) return undefined
  let decoded: Partial<ActingAs> | null
  try {
    decoded = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<ActingAs> | null
  } catch {
    return undefined // not of a command
  }
  const { username, groups } = decoded ?? {}
  if (!isName(username) || !Array.isArray(groups) || groups.length > maxGroups || !groups.every(isName))
    return undefined
  const acting = { username, groups }
  return actingAsText(acting) === text ? acting : undefined
}

/** Whether a header of the API server could contain it. */
const isName = (value: unknown): value is string => typeof value === 'string' && /^[^\p{Cc}\p{Cs}]+$/u.test(value)

/** The user for the following reviews, completed like in the API server. */
export function userActing({ username, groups }: ActingAs): User {
  const [, namespace] = account.exec(username) ?? []
  const own =
    namespace !== undefined && groups.length === 0
      ? ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
      : groups
  // An unauthenticated user does not also become an authenticated one, because that would add rights.
  if (own.includes(strangers)) return { username, groups: own }
  const all = username === nobody ? strangers : everyone
  return { username, groups: own.includes(all) ? own : [...own, all] }
}

interface Wanted {
  readonly resource: string
  readonly name: string
  readonly namespace?: string
}

/** The users and groups that the caller must have the right to impersonate, each once. */
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
 * The first identity that the caller may not impersonate, as a text; undefined if it may impersonate all. @param
 * isRolesOnly rights are only known by namespace, and users and groups have none
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
      return `${what}: this operator only has rights in its namespaces, and accepts --as for ServiceAccounts of these`
    const attempt: ReviewedAction = { resourceAttributes: { group: '', verb: 'impersonate', ...each } }
    if (!(await reviews.mayDo(caller, attempt))) return what
  }
  return undefined
}
