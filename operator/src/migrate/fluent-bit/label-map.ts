// The file with labels for Loki: an object whose texts are the names of labels, at the places of the fields with their values.

/** Labels as `name=$field['member']`; undefined if the text is not such an object. */
export function labelsIn(text: string): readonly string[] | undefined {
  const root = objectIn(text)
  if (root === undefined) return undefined
  const labels: string[] = []
  let isKnown = true
  const visit = (value: unknown, path: readonly string[]): void => {
    const [first = '', ...rest] = path
    if (typeof value === 'string') labels.push(`${value}=$${first}${rest.map((part) => `['${part}']`).join('')}`)
    else if (typeof value === 'object' && value !== null && !Array.isArray(value))
      for (const [name, member] of Object.entries(value)) visit(member, [...path, name])
    else isKnown = false
  }
  visit(root, [])
  return isKnown && labels.length > 0 ? labels : undefined
}

function objectIn(text: string): object | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined // The caller reports the option.
  }
}
