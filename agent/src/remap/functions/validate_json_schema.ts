// Function `validate_json_schema`.

import { createRequire } from 'node:module'
import type { Ajv, Options, ValidateFunction } from 'ajv'
import { BoundedMap } from '../../bounded-map.ts'
import { GivenFileError, parseSecretJson, readGivenText } from '../../given-file.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const require = createRequire(import.meta.url)

// Loaded by programs that use them: one module for each draft of the schemas, one for the formats.
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
/** Of paths that come from data; a validator brings its own instance of the library. */
const limits = {
  maxEntries: 64,
  maxBytes: 32 << 20,
  sizeOf: (validator: Validator) => (typeof validator === 'string' ? 2 * validator.length : 300_000),
}
type Validator = ValidateFunction | string

/** Formats of the drafts whose texts are not looked at. */
const unchecked = ['idn-email', 'idn-hostname', 'iri', 'iri-reference']

export const validateJsonSchema = defineFunction({
  name: 'validate_json_schema',
  category: 'Type',
  summary: 'Returns whether a JSON text satisfies the schema in a file.',
  description:
    'The file is read once for each call in a program; of paths that change from event to event, the last ones are remembered. Schemas are of the draft that `$schema` names, else of 2020-12.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'schema_definition', kind: kinds.string, meaning: 'file', description: 'Path of the file.' },
    {
      name: 'ignore_unknown_formats',
      kind: kinds.boolean,
      required: false,
      default: false,
      description: 'Accept formats that are not known.',
    },
  ],
  returns: kinds.boolean,
  fallible: 'always',
  errors: ['The text is not JSON.', 'The schema is missing or not valid.', 'A format is not known.'],
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
      let validate = compiled.get(key)
      if (validate === undefined) {
        validate = load(path, ignoreFormats)
        compiled.set(key, validate)
      }
      if (typeof validate === 'string') return failure(validate)
      if (text === '') return failure('Empty JSON value')
      let value: unknown
      try {
        value = JSON.parse(text.replace(/^\ufeff/, '') || 'null')
      } catch (error) {
        return failure(`Invalid JSON: ${(error as Error).message}`)
      }
      if (validate(value)) return true
      const [first] = validate.errors ?? []
      return failure(`JSON schema validation failed: ${first?.instancePath || '/'} ${first?.message ?? 'is not valid'}`)
    }
  },
})

function load(path: string, ignoreFormats: boolean): ValidateFunction | string {
  let text: string
  try {
    text = readGivenText({ option: 'schema_definition', path })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    const reason = error.code === 'ENOENT' ? 'No such file or directory (os error 2)' : error.reason
    return `JSON schema not found: Failed to open schema definition file '${path}': ${reason}`
  }
  try {
    const schema = parseSecretJson(text)
    const unknown = ignoreFormats ? undefined : unknownFormat(schema)
    if (unknown !== undefined) throw new TypeError(`the format '${unknown}' is not known`)
    return validatorOf(schema).compile(withoutOldDraft(schema))
  } catch (error) {
    return `JSON schema '${path}' is not valid: ${(error as Error).message}`
  }
}

type Schema = Readonly<Record<string, unknown>>

function isSchema(schema: unknown): schema is Schema {
  return typeof schema === 'object' && schema !== null && !Array.isArray(schema)
}

/** Without the trailing `#`, which says nothing. */
function draftOf(schema: unknown): string {
  const draft = isSchema(schema) ? schema['$schema'] : undefined
  return typeof draft === 'string' ? draft.replace(/#$/, '') : standardDraft
}

function validatorOf(schema: unknown): Ajv {
  const loaded = require(drafts[draftOf(schema)] ?? 'ajv') as { default: new (options: Options) => Ajv }
  const ajv = new loaded.default({ strict: false, logger: false })
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats')
  ;(addFormats as unknown as (ajv: Ajv, options: object) => void)(ajv, { formats: [...formats] })
  for (const format of unchecked) ajv.addFormat(format, true)
  return ajv
}

/** Drafts before 2019 are read as draft 7, which has the last of their forms. */
function withoutOldDraft(schema: unknown): Schema | boolean {
  if (!isSchema(schema)) return schema as boolean
  const { $schema: draft, ...rest } = schema
  return draft === undefined || drafts[draftOf(schema)] !== undefined ? schema : rest
}

/** The first format in a schema that no draft has. */
function unknownFormat(schema: unknown): string | undefined {
  if (Array.isArray(schema)) return schema.map(unknownFormat).find((format) => format !== undefined)
  if (!isSchema(schema)) return undefined
  for (const [keyword, inner] of Object.entries(schema)) {
    if (keyword === 'format' && typeof inner === 'string') {
      if (!(formats as readonly string[]).includes(inner) && !unchecked.includes(inner)) return inner
    } else if (!['const', 'default', 'enum', 'examples'].includes(keyword)) {
      const found = unknownFormat(inner)
      if (found !== undefined) return found
    }
  }
  return undefined
}
