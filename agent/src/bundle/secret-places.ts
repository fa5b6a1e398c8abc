// Secret places in a tree of options. The operator writes these places and the agent fills them, both with the code of this file, so
// both recognise exactly the same objects as places.

/** A key that only the operator may write into a tree of options; users' trees must not contain it. */
export const secretMarker = '$secret'

/** A placeholder for a secret value in options. */
export interface SecretPlace {
  /** Key of a value that the pipeline lists in `secrets`. */
  readonly $secret: string
}

type Path = readonly (string | number)[]

/** A place has exactly one member with a text value. Any other object with the marker is plain data. */
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

/** A copy of the tree with each secret place replaced; `undefined` omits the option. */
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
