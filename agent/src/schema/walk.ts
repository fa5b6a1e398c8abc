// Navigates a schema: its members, its variants, and the variant that a value belongs to.

/** JSON Schema of an option. */
export type Schema = Readonly<Record<string, unknown>>

/** A path as text: `a.b[0]."c d"`. */
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

/** The members of a table; empty if the value is not a table. */
export const tableOf = (value: unknown): Record<string, unknown> => (isTable(value) ? value : {})

/** The items of a list; empty if the value is not a list. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

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

/** Index of the variant that best matches the value's shape, tag and members; -1 if none matches. */
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

/** How well a value matches a variant: 0 for no match, and more for each known member. */
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

// --- One traversal of options, for all rules that check them ---

/** A visited value: its path as the author wrote it, its path with the names of the declaration, and its possible schemas. */
export interface WalkedValue {
  readonly path: readonly (string | number)[]
  readonly canonical: readonly (string | number)[]
  readonly value: unknown
  /** Schemas that may apply to the value; none for an unknown option. */
  readonly schemas: readonly Schema[]
}

/**
 * Visits options and everything inside them, including unknown options. `visit` returns false to skip the nested values. `isOpaque`
 * recognises placeholders, for example of a secret, which match every schema.
 */
export function walkOptions(
  schema: Schema,
  options: unknown,
  visit: (place: WalkedValue) => boolean | undefined,
  isOpaque: (value: unknown) => boolean = () => false,
): void {
  const step = (place: WalkedValue): void => {
    if (visit(place) === false) return
    const { path, canonical, value, schemas } = place
    const go = (key: string | number, name: string | number, below: readonly Schema[], inner: unknown) => {
      const possible = below.flatMap((each) => (isOpaque(inner) ? allVariants(each) : variantsFor(each, inner)))
      step({ path: [...path, key], canonical: [...canonical, name], value: inner, schemas: possible })
    }
    if (Array.isArray(value)) {
      const items = schemas.flatMap((each) => (isTable(each['items']) ? [each['items'] as Schema] : []))
      for (const [index, item] of value.entries()) go(index, index, items, item)
    } else if (isTable(value) && !isOpaque(value)) {
      for (const [key, inner] of Object.entries(value)) {
        const found = schemas.flatMap((each) => memberNamed(each, key) ?? [])
        const below = found.map((each) => each.schema)
        go(key, found[0]?.name ?? key, below, inner)
      }
    }
  }
  step({ path: [], canonical: [], value: options, schemas: variantsFor(schema, options) })
}

function allVariants(schema: Schema): readonly Schema[] {
  return variantsOf(schema)?.flatMap(allVariants) ?? [schema]
}

/** A member by its name or an alias, or the schema of a map's values. */
export function memberNamed(
  schema: Schema,
  name: string,
): { readonly name: string; readonly schema: Schema } | undefined {
  const members = membersOf(schema)
  if (Object.hasOwn(members, name)) return { name, schema: members[name] as Schema }
  const aliased = Object.entries(members).find(([, member]) => aliasesOf(member).includes(name))
  if (aliased !== undefined) return { name: aliased[0], schema: aliased[1] }
  const others = schema['additionalProperties']
  return isTable(others) ? { name, schema: others } : undefined
}

/** The schemas that may apply to a value. If the value matches none, returns all. */
export function variantsFor(schema: Schema, value: unknown): readonly Schema[] {
  const variants = variantsOf(schema)
  if (variants === undefined) return [schema]
  const matching = variants.filter((variant) => mayBe(variant, value))
  return (matching.length === 0 ? variants : matching).flatMap((variant) => variantsFor(variant, value))
}

function mayBe(variant: Schema, value: unknown): boolean {
  if (!isTable(value)) return resemblance(variant, value) > 0
  if (variantsOf(variant) !== undefined) return true
  return (
    variant['type'] === 'object' &&
    Object.entries(membersOf(variant)).every(
      ([name, member]) =>
        member['const'] === undefined || typeof value[name] !== 'string' || member['const'] === value[name],
    )
  )
}

/** Every declared member of a table with its value, which the author may have set by any alias. */
export function declaredMembers(
  schema: Schema,
  table: Readonly<Record<string, unknown>>,
): { readonly name: string; readonly schema: Schema; readonly value: unknown }[] {
  return Object.entries(membersOf(schema)).map(([name, member]) => {
    const written = [name, ...aliasesOf(member)].find((each) => table[each] !== undefined && table[each] !== null)
    return { name, schema: member, value: written === undefined ? undefined : table[written] }
  })
}

/** Whether a pattern matches a path of a declaration. `*` matches any member; indexes of lists are ignored. */
export function matchesPath(canonical: readonly (string | number)[], pattern: readonly string[]): boolean {
  const names = canonical.filter((key) => typeof key === 'string')
  return names.length === pattern.length && pattern.every((each, index) => each === '*' || each === names[index])
}

/** All interpretations of a pattern with the names of the declaration; none if the option does not exist. */
export function canonicalPatterns(schema: Schema, pattern: readonly string[]): (readonly string[])[] {
  const [first, ...rest] = pattern
  if (first === undefined) return [[]]
  const variants = variantsOf(schema)
  if (variants !== undefined) return variants.flatMap((variant) => canonicalPatterns(variant, pattern))
  if (isTable(schema['items'])) return canonicalPatterns(schema['items'], pattern)
  if (first !== '*') {
    const member = memberNamed(schema, first)
    if (member === undefined) return []
    return canonicalPatterns(member.schema, rest).map((each) => [member.name, ...each])
  }
  const others = schema['additionalProperties']
  const below = [...Object.values(membersOf(schema)), ...(isTable(others) ? [others] : [])]
  return below.flatMap((member) => canonicalPatterns(member, rest)).map((each) => ['*', ...each])
}
