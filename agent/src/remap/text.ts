// Values and kinds as text, for diagnostics, error messages and the command line.

import { Timestamp } from '../event/timestamp.ts'
import { Bytes, Float, Regex, sortedFieldNames, type Value } from '../event/value.ts'
import { floatText } from '../formats/json.ts'
import { kindOf } from './kind.ts'

/** The kind of a value in error messages: `integer`, `[integer, string]`, `{ k: integer }`. */
export function textOfKind(value: Value): string {
  return kindOf(value).toString()
}

/** A value in the syntax of the language. */
export function valueText(value: Value): string {
  switch (typeof value) {
    case 'string':
      return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
    case 'number':
      return floatText(value)
    case 'bigint':
    case 'boolean':
      return String(value)
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`
  if (value instanceof Timestamp) return `t'${value}'`
  if (value instanceof Float) return floatText(value.value)
  if (value instanceof Bytes) return valueText(value.toString())
  if (value instanceof Regex) return `r'${value.source}'`
  const fields = sortedFieldNames(value).map((name) => `${valueText(name)}: ${valueText(value[name] as Value)}`)
  return `{ ${fields.join(', ')} }`
}
