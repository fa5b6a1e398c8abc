// Where the values of secrets belong in a tree of options. The operator writes these places and the agent fills them, both by the code
// of this file: an object is a place for one of them exactly when it is one for the other.

/** The name that only the operator may write into a tree of options; users' trees must not hold it as a key. */
export const secretMarker = '$secret'

/** Stands in options where the value of a secret belongs. */
export interface SecretPlace {
  /** Key of a value that the pipeline lists in `secrets`. */
  readonly $secret: string
}

type Path = readonly (string | number)[]

/** A place has exactly one member, which is text. Anything else with the marker is plain data. */
export function isSecretPlace(value: unknown): value is SecretPlace {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const names = Object.keys(value)
  return names.length === 1 && names[0] === secretMarker && typeof (value as SecretPlace).$secret === 'string'
}

/** Keys of all places of a tree. */
export function secretKeys(value: unknown): Set<string> {
  const found = new Set<string>()
  withSecrets(value, (key) => {
    found.add(key)
    return undefined
  })
  return found
}

/** A copy of the tree with something in each secret's place; `undefined` leaves the option out. */
export function withSecrets(
  value: unknown,
  fill: (key: string, path: Path) => string | undefined,
  path: Path = [],
): unknown {
  if (isSecretPlace(value)) return fill(value.$secret, path)
  if (Array.isArray(value)) return value.map((item, index) => withSecrets(item, fill, [...path, index]))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(
    ([name, member]) => [name, withSecrets(member, fill, [...path, name])] as const,
  )
  return Object.fromEntries(members.filter(([, member]) => member !== undefined))
}
