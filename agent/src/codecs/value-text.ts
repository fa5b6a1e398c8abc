// The text of a value for templates, labels and text codecs: strings are unchanged, lists and objects become JSON.

import { isObject, type Value } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { plainText } from '../formats/key-value.ts'

/** The text of a value as an identifier or a key; undefined for null, lists and objects. */
export function scalarText(value: Value): string | undefined {
  if (typeof value === 'string') return value
  return value === null || Array.isArray(value) || isObject(value) ? undefined : plainText(value)
}

/** The text of a value. Null becomes `<null>`. */
export function valueText(value: Value): string {
  if (typeof value === 'string') return value
  if (value === null) return '<null>'
  return Array.isArray(value) || isObject(value) ? writeJson(value) : plainText(value)
}
