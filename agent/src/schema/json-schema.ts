// JSON Schema (draft 2020-12) of a whole configuration, for editors. It contains only standard keywords, and lists each alias.

import { type Options, objectSchema } from './options.ts'
import { aliasesOf, type Schema } from './walk.ts'

/** A component with all of its options. */
export interface SchemaComponent {
  readonly type: string
  readonly kind: 'source' | 'transform' | 'sink'
  readonly summary: string
  readonly aliases?: readonly string[]
  readonly options: Options
}

type Json = Record<string, unknown>

/** @param tests the options of an entry in `tests` */
export function configurationSchema(components: readonly SchemaComponent[], globals: Options, tests: Options): Json {
  const definitions: Json = {}
  for (const component of components) definitions[definitionName(component)] = componentSchema(component)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Penstock agent configuration',
    type: 'object',
    properties: {
      ...(standard(objectSchema(globals))['properties'] as Json),
      sources: componentTable('source', components),
      transforms: componentTable('transform', components),
      sinks: componentTable('sink', components),
      tests: {
        type: 'array',
        description: 'Unit tests of the transforms.',
        items: standard(objectSchema(tests)),
      },
    },
    additionalProperties: false,
    $defs: definitions,
  }
}

function definitionName({ kind, type }: SchemaComponent): string {
  return `${kind}_${type}`
}

/** The schema of a table of components by id. The `type` of a component selects its schema. */
function componentTable(kind: SchemaComponent['kind'], components: readonly SchemaComponent[]): Json {
  const own = components.filter((component) => component.kind === kind)
  return {
    type: 'object',
    description: `The ${kind}s by their id.`,
    propertyNames: { pattern: '^[^.]+$' },
    additionalProperties: {
      type: 'object',
      required: ['type'],
      properties: { type: { enum: own.flatMap(typeNames) } },
      allOf: own.map((component) => ({
        if: { properties: { type: { enum: typeNames(component) } }, required: ['type'] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { $ref: `#/$defs/${definitionName(component)}` },
      })),
    },
  }
}

function typeNames(component: SchemaComponent): string[] {
  return [component.type, ...(component.aliases ?? [])]
}

function componentSchema(component: SchemaComponent): Json {
  const schema = standard(objectSchema(component.options))
  const isSource = component.kind === 'source'
  const inputs = {
    type: 'array',
    items: { type: 'string' },
    minItems: 1,
    description: 'Ids of the components that it reads; `*` matches any text.',
  }
  return {
    ...schema,
    description: component.summary,
    properties: {
      type: { enum: typeNames(component), description: component.summary },
      ...(isSource ? {} : { inputs }),
      ...(schema['properties'] as Json),
    },
    required: ['type', ...(isSource ? [] : ['inputs']), ...((schema['required'] as string[] | undefined) ?? [])],
  }
}

const kept = new Set([
  'type',
  'description',
  'default',
  'examples',
  'deprecated',
  'enum',
  'const',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'required',
])

/** Converts a schema to standard keywords. */
function standard(schema: Schema): Json {
  const result: Json = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (kept.has(keyword)) result[keyword] = value
    else if (keyword === 'oneOf' || keyword === 'anyOf') result['anyOf'] = (value as Schema[]).map(standard)
    else if (keyword === 'items') result['items'] = standard(value as Schema)
    else if (keyword === 'additionalProperties') {
      result[keyword] = typeof value === 'object' && value !== null ? standard(value as Schema) : value
    } else if (keyword === 'properties') result['properties'] = members(value as Readonly<Record<string, Schema>>)
  }
  if (schema['const'] === undefined) allowPlaceholder(result)
  const aliased = new Set(
    Object.entries((schema['properties'] ?? {}) as Record<string, Schema>)
      .filter(([, member]) => aliasesOf(member).length > 0)
      .map(([name]) => name),
  )
  const required = ((result['required'] ?? []) as string[]).filter((name) => !aliased.has(name))
  if (required.length === 0) delete result['required']
  else result['required'] = required
  return result
}

/** Allows `${NAME}` instead of any plain value, because editors see the text before variables are replaced. */
function allowPlaceholder(schema: Json): void {
  const { type, enum: words, ...rest } = schema
  if (type === 'integer' || type === 'number' || type === 'boolean') {
    schema['type'] = [type, 'string']
    schema['pattern'] = placeholder
  } else if (Array.isArray(words)) {
    for (const keyword of Object.keys(schema)) delete schema[keyword]
    Object.assign(schema, rest, { anyOf: [{ enum: words }, { type: 'string', pattern: placeholder }] })
  }
}

const placeholder = '\\$'

function members(properties: Readonly<Record<string, Schema>>): Json {
  const result: Json = {}
  for (const [name, member] of Object.entries(properties)) {
    result[name] = standard(member)
    for (const alias of aliasesOf(member)) {
      result[alias] = { ...standard(member), deprecated: true, description: `Alias of \`${name}\`.` }
    }
  }
  return result
}
