// Compares the findings of violations.ts with those of ajv, for the same values and the schemas of all components.

import { Ajv, type ErrorObject } from 'ajv'
import { expect, test } from 'vitest'
import { optionsOf } from '../config/component-options.ts'
import { globalOptions } from '../config/globals.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { components } from '../registry.ts'
import { Random } from '../testing/random.ts'
import { objectSchema } from './options.ts'
import { type Violation, violationsOf } from './violations.ts'
import { isTable, membersOf, type Schema, variantsOf } from './walk.ts'

const ajv = new Ajv({
  validateSchema: false,
  meta: false,
  allErrors: true,
  strict: false,
  strictNumbers: true,
  verbose: true,
  code: { optimize: false },
  formats: { url: (text) => /^https?:\/\//i.test(text) && URL.canParse(text), template: true, 'field-path': true },
})

const schemas: Readonly<Record<string, Schema>> = {
  globals: objectSchema(globalOptions),
  tests: objectSchema(testOptions),
  ...Object.fromEntries(components.map((each) => [`${each.kind} ${each.type}`, objectSchema(optionsOf(each).members)])),
}

const junk: readonly unknown[] = [
  'x', '', 'http://localhost:1', 'https://', 0, 1, -1, 1.5, 256, 1e300, Number.NaN, Number.POSITIVE_INFINITY, true, false, null, [], [1], ['a'],
  {}, { a: 1 }, { 'a/b~c': { d: [] } }, '__proto__',
] // biome-ignore format: a table of values

/** A value for a schema, with errors at any depth with this probability. */
function valueFor(schema: Schema, random: Random, wild: number, depth = 0): unknown {
  if (random.chance(wild)) return structuredClone(random.pick(junk))
  const variants = variantsOf(schema)
  if (variants !== undefined) return valueFor(random.pick(variants), random, wild, depth)
  if (schema['const'] !== undefined) return schema['const']
  if (Array.isArray(schema['enum'])) return random.pick(schema['enum'])
  switch (schema['type']) {
    case 'string':
      return random.pick(['x', '', 'http://localhost:1', '{{ a }}'])
    case 'integer':
    case 'number':
      return random.pick([1, 1, 2, 10, 0.5, 0, 1e6, -3])
    case 'boolean':
      return random.chance(0.5)
    case 'array':
      return Array.from({ length: random.below(3) }, () => valueFor(schema['items'] as Schema, random, wild, depth + 1))
    default: {
      const table: Record<string, unknown> = {}
      const required = (schema['required'] ?? []) as readonly string[]
      for (const [name, member] of Object.entries(membersOf(schema))) {
        const chance = required.includes(name) ? 0.9 : depth === 0 ? 0.5 : 0.3
        if (random.chance(chance)) table[name] = valueFor(member, random, wild, depth + 1)
      }
      const others = schema['additionalProperties']
      if (isTable(others))
        for (const name of ['a', 'b/c~d', '7']) table[name] = valueFor(others, random, wild, depth + 1)
      if (random.chance(wild)) table[random.pick(['unknown', 'a/b'])] = random.pick(junk)
      return table
    }
  }
}

function essence(errors: readonly (Violation | ErrorObject)[]): unknown[] {
  return errors
    .map(({ keyword, instancePath, schemaPath, params, schema, parentSchema, data }) => {
      return { keyword, instancePath, schemaPath, params, schema, parentSchema, data }
    })
    .map((each) => (each.keyword === 'oneOf' ? { ...each, params: {} } : each)) // without the number of matching variants
}

test.each(Object.keys(schemas))('%s: the findings and their order are those of ajv', (name) => {
  const schema = schemas[name] as Schema
  const validate = ajv.compile(schema)
  let valid = 0
  for (let seed = 0; seed < 300; seed++) {
    const value = valueFor(schema, new Random(seed), [0.001, 0.01, 0.1][seed % 3] as number)
    const found = violationsOf(schema, value)
    expect(validate(value), `seed ${seed}`).toBe(found.length === 0)
    expect(essence(found), `seed ${seed}`).toEqual(essence(validate.errors ?? []))
    if (found.length === 0) valid++
  }
  expect(valid).toBeGreaterThan(0)
  expect(valid).toBeLessThan(300)
})

/** The keywords that violations.ts checks, and those that are only for people or for the compiler. */
const checked = [
  'additionalProperties', 'anyOf', 'const', 'enum', 'exclusiveMaximum', 'exclusiveMinimum', 'format', 'items',
  'maximum', 'minItems', 'minimum', 'oneOf', 'properties', 'required', 'type',
] // biome-ignore format: a list of words
const spoken = ['default', 'deprecated', 'description', 'discriminator', 'examples']

test('no declaration uses an unsupported keyword', () => {
  const unknown = new Set<string>()
  const visit = (schema: Schema): void => {
    for (const keyword of Object.keys(schema)) {
      if (!checked.includes(keyword) && !spoken.includes(keyword) && !keyword.startsWith('x-')) unknown.add(keyword)
    }
    const { items, additionalProperties: others } = schema
    for (const each of [...Object.values(membersOf(schema)), ...(variantsOf(schema) ?? []), items, others]) {
      if (isTable(each)) visit(each)
    }
  }
  for (const schema of Object.values(schemas)) visit(schema)
  expect([...unknown]).toEqual([])
})
