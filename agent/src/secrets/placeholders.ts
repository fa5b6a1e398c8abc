// Replaces `SECRET[backend.key]` in the values of a configuration. This happens after parsing, so a secret may contain any character.
// `SECRET[backend.key|uri]` encodes the secret for use in an address.

export interface Placeholder {
  readonly backend: string
  readonly key: string
}

/** Replaces a secret in checks that do not read secrets. */
export const secretStandIn = 'secret'

const pattern = /SECRET\[(\w+)\.([\w.\-/]+)(\|uri)?\]/g

/** The placeholders in a text. */
export function placeholdersOf(text: string): Placeholder[] {
  return [...text.matchAll(pattern)].map(([, backend = '', key = '']) => ({ backend, key }))
}

/** Replaces the placeholders in a text. A placeholder without a secret stays unchanged. */
export function withSecrets(text: string, secret: (backend: string, key: string) => string | undefined): string {
  return text.replace(pattern, (whole, backend: string, key: string, filter: string | undefined) => {
    const value = secret(backend, key)
    if (value === undefined) return whole
    return filter === undefined ? value : encodeURIComponent(value)
  })
}

/** Applies a change to every text in a value. Returns a copy, or the value itself if nothing changed. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => mapTexts(item, change))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const members = Object.entries(value).map(([name, member]) => [name, mapTexts(member, change)] as const)
  const changed = members.some(([name, member]) => member !== (value as Record<string, unknown>)[name])
  return changed ? Object.fromEntries(members) : value
}
