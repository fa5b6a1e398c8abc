// The minimal configuration of a component: its required options, each with an example value. It passes validation.

import { meaningOf } from './meaning.ts'
import { isRequired, type Option, type Options } from './options.ts'
import { membersOf, type Schema, variantsOf } from './walk.ts'

export function skeleton(options: Options): Record<string, unknown> {
  const table: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(options)) {
    if (isRequired(member)) table[name] = exampleOf(member)
  }
  return table
}

/** An example of a value that an option accepts. */
export function exampleOf(schema: Schema): unknown {
  const given = (schema['examples'] as readonly unknown[] | undefined)?.[0]
  if (given !== undefined) return given
  if (schema['default'] !== undefined) return schema['default']
  if (schema['const'] !== undefined) return schema['const']
  const words = schema['enum'] as readonly unknown[] | undefined
  if (words !== undefined) return words.includes('json') ? 'json' : words[0]
  const variants = variantsOf(schema)
  if (variants?.[0] !== undefined) return exampleOf(variants[0])
  switch (schema['type']) {
    case 'string':
      return exampleText(schema)
    case 'integer':
    case 'number':
      return Math.max(1, Number(schema['minimum'] ?? 1))
    case 'boolean':
      return true
    case 'array':
      return [exampleOf((schema['items'] ?? {}) as Schema)]
    default:
      return exampleTable(schema)
  }
}

function exampleText(schema: Schema): string {
  const meaning = meaningOf(schema)
  if (schema['format'] === 'url') return 'http://localhost:8080'
  if (schema['format'] === 'field-path') return 'message'
  if (meaning.program === 'condition') return 'true'
  if (meaning.program === 'program') return '.'
  if (meaning.secret === true) return 'a secret'
  return meaning.file === undefined ? 'text' : '/path'
}

function exampleTable(schema: Schema): Record<string, unknown> {
  const others = schema['additionalProperties']
  if (typeof others === 'object' && others !== null) return { name: exampleOf(others as Schema) }
  return skeleton(membersOf(schema) as Readonly<Record<string, Option<unknown>>>)
}
