// The text of a single value as templates, labels and text codecs show it: strings as they are, containers as JSON.

import { Timestamp } from '../event/timestamp.ts'
import { Bytes, Float, Regex, type Value } from '../event/value.ts'
import { floatText, writeJson } from '../formats/json.ts'

/** Text of a value; null is `<null>`. */
export function valueText(value: Value): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
      return floatText(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    default:
      if (value === null) return '<null>'
      if (value instanceof Timestamp || value instanceof Bytes) return value.toString()
      if (value instanceof Float) return floatText(value.value)
      if (value instanceof Regex) return value.source
      return writeJson(value)
  }
}
