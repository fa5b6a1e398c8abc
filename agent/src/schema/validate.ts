// Checks options against their declaration and fills in defaults. One pass resolves aliases, variants and defaults; then the options are
// checked against the schema. No other code checks or completes them again.

import { explained, type Invalid } from './messages.ts'
import { type Options, objectSchema, type Parsed } from './options.ts'
import { violationsOf } from './violations.ts'
import { aliasesOf, chosenVariant, isTable, membersOf, type Schema, variantsOf } from './walk.ts'

export type Checked<O extends Options> =
  | { readonly ok: true; readonly value: Parsed<O> }
  | { readonly ok: false; readonly problems: readonly Invalid[] }

const schemas = new WeakMap<Options, Schema>()

/** Parses the options that the user wrote. Does not change the input. */
export function parseOptions<O extends Options>(members: O, input: unknown): Checked<O> {
  let schema = schemas.get(members)
  if (schema === undefined) {
    schema = objectSchema(members)
    schemas.set(members, schema)
  }
  const value = filled(schema, input ?? {})
  const violations = violationsOf(schema, value)
  if (violations.length === 0) return { ok: true, value: value as Parsed<O> }
  return { ok: false, problems: explained(violations, schema) }
}

/** A copy of the value with aliases resolved and defaults filled in at every depth of the schema. */
function filled(schema: Schema, value: unknown): unknown {
  const variants = variantsOf(schema)
  if (variants !== undefined) {
    const chosen = variants[chosenVariant(variants, value)]
    return chosen === undefined ? value : filled(chosen, value)
  }
  if (Array.isArray(value)) {
    const items = schema['items'] as Schema | undefined
    return schema['type'] !== 'array' || items === undefined ? value : value.map((item) => filled(items, item))
  }
  if (schema['type'] !== 'object' || !isTable(value)) return value
  const table: Record<string, unknown> = Object.fromEntries(Object.entries(value))
  const members = membersOf(schema)
  for (const [name, member] of Object.entries(members)) {
    for (const alias of aliasesOf(member)) {
      if (Object.hasOwn(table, alias) && table[name] === undefined) {
        table[name] = table[alias]
        delete table[alias]
      }
    }
    // An option without a value, such as `batch:`, counts as omitted.
    if (table[name] === null && (member['type'] !== undefined || variantsOf(member) !== undefined)) delete table[name]
    if (table[name] === undefined && member['default'] !== undefined) table[name] = structuredClone(member['default'])
    if (table[name] !== undefined) table[name] = filled(member, table[name])
  }
  const others = schema['additionalProperties']
  if (isTable(others)) {
    for (const name of Object.keys(table)) {
      if (!Object.hasOwn(members, name)) table[name] = filled(others, table[name])
    }
  }
  return table
}
