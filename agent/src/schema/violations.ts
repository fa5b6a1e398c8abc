// Finds all violations of a schema by a value, not only the first. It supports only the keywords that options.ts writes.
// It interprets the schema, because each schema checks few values, and generating code would take longer than it saves. A test compares
// its findings with those of ajv.

import { isTable, type Schema, variantsOf } from './walk.ts'

/** Has the same fields as an error of ajv. */
export interface Violation {
  readonly keyword: string
  /** JSON pointer to the value. */
  readonly instancePath: string
  /** JSON pointer to the keyword, after a `#`. */
  readonly schemaPath: string
  readonly params: Readonly<Record<string, unknown>>
  /** The value of the keyword. */
  readonly schema: unknown
  readonly parentSchema: Schema
  readonly data: unknown
}

/** All violations; none means that the value is valid. */
export function violationsOf(schema: Schema, value: unknown): Violation[] {
  const found: Violation[] = []
  check(schema, value, '', '#', found)
  return found
}

function check(schema: Schema, data: unknown, at: string, schemaAt: string, found: Violation[]): void {
  const violated = (keyword: string, params: Readonly<Record<string, unknown>>): void => {
    const schemaPath = `${schemaAt}/${keyword}`
    found.push({
      keyword,
      instancePath: at,
      schemaPath,
      params,
      schema: schema[keyword],
      parentSchema: schema,
      data,
    })
  }

  const { type, enum: words, const: constant } = schema
  const variants = variantsOf(schema)
  const wrongType = type !== undefined && !isOfType(data, type)
  if (wrongType && variants === undefined) violated('type', { type })
  if (Number.isFinite(data)) {
    for (const [keyword, comparison, holds] of bounds) {
      const limit = schema[keyword] as number | undefined
      if (limit !== undefined && !holds(data as number, limit)) violated(keyword, { comparison, limit })
    }
  }
  if (typeof data === 'string' && schema['format'] === 'url' && !isUrl(data)) violated('format', { format: 'url' })
  if (constant !== undefined && data !== constant) violated('const', { allowedValue: constant })
  if (Array.isArray(words) && !words.includes(data)) violated('enum', { allowedValues: words })

  if (variants !== undefined) {
    const before = found.length
    let matching = 0
    const keyword = schema['oneOf'] === undefined ? 'anyOf' : 'oneOf'
    for (const [index, variant] of variants.entries()) {
      const count = found.length
      check(variant, data, at, `${schemaAt}/${keyword}/${index}`, found)
      if (found.length === count) matching++
    }
    if (matching > 0) found.length = before
    else violated(keyword, {})
    if (wrongType) violated('type', { type })
  }

  if (Array.isArray(data)) {
    const { minItems, items } = schema
    if (typeof minItems === 'number' && data.length < minItems) violated('minItems', { limit: minItems })
    if (isTable(items)) {
      for (const [index, item] of data.entries()) check(items, item, `${at}/${index}`, `${schemaAt}/items`, found)
    }
  } else if (isTable(data)) {
    for (const name of (schema['required'] ?? []) as readonly string[]) {
      if (data[name] === undefined) violated('required', { missingProperty: name })
    }
    const members = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>
    const others = schema['additionalProperties']
    if (others !== undefined) {
      for (const [name, value] of Object.entries(data)) {
        if (Object.hasOwn(members, name)) continue
        if (others === false) violated('additionalProperties', { additionalProperty: name })
        else check(others as Schema, value, below(at, name), `${schemaAt}/additionalProperties`, found)
      }
    }
    for (const [name, member] of Object.entries(members)) {
      if (data[name] === undefined) continue
      check(member, data[name], below(at, name), `${schemaAt}/properties/${name}`, found)
    }
  }
}

const bounds: readonly (readonly [string, string, (data: number, limit: number) => boolean])[] = [
  ['maximum', '<=', (data, limit) => data <= limit],
  ['minimum', '>=', (data, limit) => data >= limit],
  ['exclusiveMaximum', '<', (data, limit) => data < limit],
  ['exclusiveMinimum', '>', (data, limit) => data > limit],
]

function isOfType(data: unknown, type: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(data)
    case 'object':
      return isTable(data)
    case 'integer':
      return Number.isInteger(data)
    case 'number':
      return Number.isFinite(data) // YAML and TOML can also contain infinity and NaN
    default:
      return typeof data === type
  }
}

function below(at: string, name: string): string {
  return `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}
