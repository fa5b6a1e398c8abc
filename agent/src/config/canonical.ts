// Digests of configuration values. Equal values have equal digests, whatever their syntax and the order of their keys.

import { createHash } from 'node:crypto'

/** JSON with keys in code point order. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
    .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`)
  return `{${members.join(',')}}`
}

/** Whether two JSON values have the same canonical text, without creating it; members that are undefined do not exist. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false
    return left.every((each, index) => sameJson(each, right[index]))
  }
  const [members, others] = [left as Members, right as Members]
  for (const key of Object.keys(members)) if (!sameJson(members[key], ownOf(others, key))) return false
  return Object.keys(others).every((key) => others[key] === undefined || ownOf(members, key) !== undefined)
}

type Members = Readonly<Record<string, unknown>>

/** Not a member of the prototype, such as `constructor`. */
const ownOf = (members: Members, key: string) => (Object.hasOwn(members, key) ? members[key] : undefined)

export function fingerprint(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('base64url')
}
