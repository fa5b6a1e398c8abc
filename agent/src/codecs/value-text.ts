// The text of a single value as templates, labels and text codecs show it: strings as they are, containers as JSON.

import { isObject, type Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { plainText } from '../formats/key-value.ts'

/** Text of a single value as an identifier or a key; undefined for null, lists and objects. */
export function scalarText(value: Value): string | undefined {
  if (typeof value === 'string') return value
  return value === null || Array.isArray(value) || isObject(value) ? undefined : plainText(value)
}

/** Text of a value; null is `<null>`. */
export function valueText(value: Value): string {
  if (typeof value === 'string') return value
  if (value === null) return '<null>'
  return Array.isArray(value) || isObject(value) ? writeJson(value) : plainText(value)
}
