// Function `validate_json_schema`.

import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const known = new Set(['date-time', 'date', 'time', 'email', 'hostname', 'ipv4', 'ipv6', 'uri', 'uuid', 'regex'])

export const validateJsonSchema = defineFunction({
  name: 'validate_json_schema',
  category: 'Type',
  summary: 'Tells whether a JSON text satisfies the schema in a file.',
  description: 'The file is read once for each call in a program. Of formats only their names are checked.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'schema_definition', kind: kinds.string, description: 'Path of the file.' },
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
    const compiled = new Map<string, ValidateFunction | string>()
    return (text: string, path: string, ignoreFormats: boolean): Result => {
      const key = `${ignoreFormats} ${path}`
      let validate = compiled.get(key)
      if (validate === undefined) {
        validate = load(path, ignoreFormats)
        compiled.set(key, validate)
      }
      if (typeof validate === 'string') return failure(validate)
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch (error) {
        return failure(`unable to parse json: ${(error as Error).message}`)
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
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const reason = missing ? 'No such file or directory (os error 2)' : (error as Error).message
    return `JSON schema not found: Failed to open schema definition file '${path}': ${reason}`
  }
  try {
    const ajv = new Ajv({ strict: false, logger: false, validateFormats: !ignoreFormats })
    for (const format of known) ajv.addFormat(format, true)
    return ajv.compile(JSON.parse(text) as object)
  } catch (error) {
    return `JSON schema '${path}' is not valid: ${(error as Error).message}`
  }
}
