// Function `validate_json_schema`.

import { createRequire } from 'node:module'
import type { Ajv, Options, ValidateFunction } from 'ajv'
import { BoundedMap } from '../../bounded-map.ts'
import { compileBounded } from '../../formats/regex-linear.ts'
import { GivenFileError, parseSecretJson, readGivenText } from '../../given-file.ts'
import { isTable } from '../../schema/walk.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const require = createRequire(import.meta.url)

// Loaded by programs that use them: one module for each schema draft, and one for the formats.
const drafts: Readonly<Record<string, string>> = {
  'https://json-schema.org/draft/2020-12/schema': 'ajv/dist/2020.js',
  'https://json-schema.org/draft/2019-09/schema': 'ajv/dist/2019.js',
}
const standardDraft = 'https://json-schema.org/draft/2020-12/schema'
const formats = [
  'date',
  'date-time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'json-pointer',
  'regex',
  'relative-json-pointer',
  'time',
  'uri',
  'uri-reference',
  'uri-template',
  'uuid',
] as const
/** Limits for paths from data; each validator has its own instance of the library. */
const limits = {
  maxEntries: 64,
  maxBytes: 32 << 20,
  sizeOf: (validator: Validator) => (typeof validator === 'string' ? 2 * validator.length : 300_000),
}
type Validator = Judge | string

/** Validates a text: the schema, and the number of references that one text may follow. */
interface Judge {
  readonly validate: ValidateFunction
  readonly turns: Turns
}

/** A self-referencing schema may follow references without end, or exponentially often in the depth of a text. */
class Turns {
  left = 0

  take(): true {
    if (--this.left < 0) throw new TooLong()
    return true
  }
}

class TooLong extends Error {}

const maxSchemaBytes = 1 << 20
/** Maximum number and nesting depth of a schema's tables and lists. */
const maxSchemaParts = 20_000
const maxSchemaDepth = 128
/** Maximum number of followed references per text. */
const maxTurns = 1_000_000
const tooLong = `JSON schema validation failed: the text needs more than ${maxTurns} references of the schema, or is nested too deep`

/** Formats of the drafts that are not checked. */
const unchecked = ['idn-email', 'idn-hostname', 'iri', 'iri-reference']

export const validateJsonSchema = defineFunction({
  name: 'validate_json_schema',
  category: 'Type',
  summary: 'Returns whether a JSON text satisfies the schema in a file.',
  description:
    'The file is read once for each call in a program. If paths differ between events, the last few files are cached. The draft of a schema is that of `$schema`, else 2020-12. A schema has at most 1 MiB. Its references must be internal, because remote schemas are not fetched. Its patterns must run in bounded time, so back-references are rejected, and a pattern with far look-arounds does not match texts that are too long to check.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'schema_definition', kind: kinds.string, meaning: 'file', description: 'Path of the file.' },
    {
      name: 'ignore_unknown_formats',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Whether to accept unknown formats.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: [
    'The text is not JSON.',
    'The schema is missing or invalid.',
    'A format is unknown.',
    'Validating the text needs too many references.',
  ],
  pure: false,
  examples: [
    { source: 'validate_json_schema("{}", "no-such-file.json") ?? false', result: 'false' },
    {
      source: 'validate_json_schema("1", "no-such-file.json", ignore_unknown_formats: true) ?? false',
      result: 'false',
    },
    {
      source: 'valid, err = validate_json_schema("{}", "no-such-file.json")\n[valid, is_string(err)]',
      result: '[false, true]',
    },
  ],
  compile() {
    const compiled = new BoundedMap<Validator>(limits)
    return (text: string, path: string, ignoreFormats: boolean): Result => {
      const key = `${ignoreFormats} ${path}`
      let judge = compiled.get(key)
      if (judge === undefined) {
        judge = load(path, ignoreFormats)
        compiled.set(key, judge)
      }
      if (typeof judge === 'string') return failure(judge)
      if (text === '') return failure('Empty JSON value')
      let value: unknown
      try {
        value = JSON.parse(text.replace(/^\ufeff/, '') || 'null')
      } catch (error) {
        return failure(`Invalid JSON: ${(error as Error).message}`)
      }
      const { validate, turns } = judge
      turns.left = maxTurns
      try {
        if (validate(value)) return true
      } catch (error) {
        // The library is recursive.
        if (error instanceof TooLong || error instanceof RangeError) return failure(tooLong)
        throw error
      }
      const [first] = validate.errors ?? []
      return failure(`JSON schema validation failed: ${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}`)
    }
  },
})

function load(path: string, ignoreFormats: boolean): Validator {
  let text: string
  try {
    text = readGivenText({ option: 'schema_definition', path, maxBytes: maxSchemaBytes })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    const reason = error.code === 'ENOENT' ? 'No such file or directory (os error 2)' : error.reason
    return `JSON schema not found: Failed to open schema definition file '${path}': ${reason}`
  }
  try {
    const schema = parseSecretJson(text)
    checkSize(schema)
    const unknown = ignoreFormats ? undefined : unknownFormat(schema)
    if (unknown !== undefined) throw new TypeError(`the format '${unknown}' is not known`)
    const turns = new Turns()
    const validate = validatorOf(schema, turns).compile(counted(withoutOldDraft(schema)) as Schema | boolean)
    return { validate, turns }
  } catch (error) {
    return `JSON schema '${path}' is not valid: ${(error as Error).message}`
  }
}

type Schema = Readonly<Record<string, unknown>>

function isSchema(schema: unknown): schema is Schema {
  return isTable(schema)
}

/** Removes the trailing `#`, which has no meaning. */
function draftOf(schema: unknown): string {
  const draft = isSchema(schema) ? schema['$schema'] : undefined
  return typeof draft === 'string' ? draft.replace(/#$/, '') : standardDraft
}

function validatorOf(schema: unknown, turns: Turns): Ajv {
  const loaded = require(drafts[draftOf(schema)] ?? 'ajv') as { default: new (options: Options) => Ajv }
  const ajv = new loaded.default({ strict: false, logger: false, code: { regExp: linear } })
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  ;(addFormats as unknown as (ajv: Ajv, options: object) => void)(ajv, { formats: [...formats] })
  for (const format of unchecked) ajv.addFormat(format, true)
  ajv.addKeyword({ keyword: turnKeyword, before: '$ref', errors: false, validate: () => turns.take() })
  // The library compares every pair of items.
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    validate: (wanted: boolean, items: readonly unknown[]) =>
      !wanted || items.length < 2 || new Set(items.map(identityOf)).size === items.length,
  })
  return ajv
}

/** Patterns are applied to untrusted data. */
const linear = Object.assign((pattern: string, flags: string) => compileBounded(pattern, flags), { code: 'linear' })

/** Marks each reference, to count how often validation follows it. */
const turnKeyword = 'x-penstock-turn'

/** @param isByName whether the members are schemas under user-chosen names rather than keywords */
function counted(schema: unknown, isByName = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => counted(each))
  if (!isSchema(schema)) return schema
  const members = Object.entries(schema).map(([keyword, inner]): [string, unknown] =>
    !isByName && data.includes(keyword)
      ? [keyword, inner]
      : [keyword, counted(inner, !isByName && byName.includes(keyword))],
  )
  const refers = !isByName && references.some((keyword) => typeof schema[keyword] === 'string')
  return Object.fromEntries(refers ? [...members, [turnKeyword, true]] : members)
}

const references = ['$ref', '$dynamicRef', '$recursiveRef']
/** Keywords whose values are schemas by name. */
const byName = ['$defs', 'definitions', 'dependencies', 'dependentSchemas', 'patternProperties', 'properties']

/** A text that is equal for equal JSON values. */
function identityOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(identityOf).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${identityOf(member)}`).join()}}`
}

/** Rejects schemas for which the library would generate too much code. */
function checkSize(schema: unknown): void {
  let level: unknown[] = [schema]
  let parts = 0
  for (let depth = 0; level.length > 0; depth++) {
    parts += level.length
    if (depth > maxSchemaDepth) throw new TypeError(`it is nested deeper than ${maxSchemaDepth} levels`)
    if (parts > maxSchemaParts) throw new TypeError(`it has more than ${maxSchemaParts} tables and lists`)
    level = level.flatMap((each) =>
      Object.values(each as object).filter((inner) => typeof inner === 'object' && inner !== null),
    )
  }
}

/** Drafts before 2019 are treated as draft 7, which covers their syntax. */
function withoutOldDraft(schema: unknown): Schema | boolean {
  if (!isSchema(schema)) return schema as boolean
  const { $schema: draft, ...rest } = schema
  return draft === undefined || drafts[draftOf(schema)] !== undefined ? schema : rest
}

/** Keywords whose values are data. */
const data: readonly string[] = ['const', 'default', 'enum', 'examples']

/** The first format in a schema that no draft defines. */
function unknownFormat(schema: unknown): string | undefined {
  if (Array.isArray(schema)) return schema.map(unknownFormat).find((format) => format !== undefined)
  if (!isSchema(schema)) return undefined
  for (const [keyword, inner] of Object.entries(schema)) {
    if (keyword === 'format' && typeof inner === 'string') {
      if (!(formats as readonly string[]).includes(inner) && !unchecked.includes(inner)) return inner
    } else if (!data.includes(keyword)) {
      const found = unknownFormat(inner)
      if (found !== undefined) return found
    }
  }
  return undefined
}
