// Ways through a schema: members, variants, and which variant a value means.

/** JSON Schema of an option. */
export type Schema = Readonly<Record<string, unknown>>

/** Text of a path: `a.b[0]."c d"`. */
export function pathOf(segments: readonly (string | number)[]): string {
  let text = ''
  for (const segment of segments) {
    if (typeof segment === 'number') text += `[${segment}]`
    else {
      const name = /^[\w/@*-]+$/.test(segment) ? segment : JSON.stringify(segment)
      text += text === '' ? name : `.${name}`
    }
  }
  return text
}

export function variantsOf(schema: Schema): readonly Schema[] | undefined {
  return (schema['oneOf'] ?? schema['anyOf']) as Schema[] | undefined
}

export function membersOf(schema: Schema): Readonly<Record<string, Schema>> {
  return (schema['properties'] ?? {}) as Record<string, Schema>
}

export function aliasesOf(schema: Schema): readonly string[] {
  return (schema['x-aliases'] ?? []) as string[]
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The schema of a member or an item. */
export function schemaBelow(schema: Schema, segment: string | number): Schema | undefined {
  const variants = variantsOf(schema)
  if (variants !== undefined) {
    for (const variant of variants) {
      const found = schemaBelow(variant, segment)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (typeof segment === 'number') return schema['items'] as Schema | undefined
  const members = membersOf(schema)
  if (Object.hasOwn(members, segment)) return members[segment]
  const others = schema['additionalProperties']
  return isTable(others) ? others : undefined
}

/** Index of the variant that the value means, by its shape, its tag and its members; -1 if there is none. */
export function chosenVariant(variants: readonly Schema[], value: unknown): number {
  let best = -1
  let bestScore = 0
  for (const [index, variant] of variants.entries()) {
    const score = resemblance(variant, value)
    if (score > bestScore) {
      best = index
      bestScore = score
    }
  }
  return best
}

/** How well a value fits a variant: 0 not at all, more for each member that it knows. */
function resemblance(variant: Schema, value: unknown): number {
  const inner = variantsOf(variant)
  if (inner !== undefined) return Math.max(0, ...inner.map((each) => resemblance(each, value)))
  const type = variant['type']
  if (Array.isArray(value)) return type === 'array' ? 1 : 0
  if (isTable(value)) {
    if (type !== 'object') return 0
    let score = 1
    for (const [name, member] of Object.entries(membersOf(variant))) {
      if (member['const'] !== undefined && member['const'] !== value[name]) return 0
      if (value[name] !== undefined) score++
    }
    return score
  }
  if (typeof value === 'number')
    return type === 'integer' ? (Number.isInteger(value) ? 2 : 1) : type === 'number' ? 2 : 0
  if (typeof value !== type) return 0
  const words = variant['enum'] as readonly unknown[] | undefined
  return words === undefined || words.includes(value) ? 2 : 1
}
