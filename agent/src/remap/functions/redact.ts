// Function `redact`.

import { Bytes, fieldNames, isObject, setField, type Value, type ValueObject } from '../../event/value.ts'
import { type CallSite, defineFunction, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { tooMuch } from '../meter.ts'
import { compileRedaction, type Redaction } from '../redaction.ts'

export const redact = defineFunction({
  name: 'redact',
  category: 'String',
  summary: 'Replaces sensitive text in a string, and within arrays and objects.',
  description:
    'A filter is a regular expression, `"us_social_security_number"`, or an object `{"type": "pattern", "patterns": [...]}`. A redactor is `"full"` (writes `[REDACTED]`), an object `{"type": "text", "replacement": "..."}`, or `"sha2"` or `"sha3"`, which may also be objects with `variant` and `encoding`.',
  parameters: [
    { name: 'value', kind: kinds.string.or(kinds.object).or(kinds.array), description: 'The value.' },
    {
      name: 'filters',
      kind: kinds.array,
      static: true,
      description: 'Patterns, and names of kinds of sensitive data.',
    },
    {
      name: 'redactor',
      kind: kinds.string.or(kinds.object),
      required: false,
      static: true,
      description: 'The replacement.',
    },
  ],
  returns: (call) => call.kind('value').undefinedAsNull,
  fallible: 'never',
  growth: 'product',
  pure: true,
  examples: [
    { source: 'redact("number 321-54-9876", filters: ["us_social_security_number"])', result: '"number [REDACTED]"' },
    { source: 'redact({"a": ["my id is 12"]}, filters: [r\'\\d+\'])', result: '{ "a": ["my id is [REDACTED]"] }' },
    {
      source: 'redact("card 12-34", filters: [r\'\\d+\'], redactor: {"type": "text", "replacement": "#"})',
      result: '"card #-#"',
    },
  ],
  compile(call: CallSite) {
    const redaction = compileRedaction(
      call.constant('filters'),
      call.given('redactor') ? call.constant('redactor') : 'full',
    )
    if (typeof redaction === 'string') call.reject(redaction)
    const { maxBytes } = call.runtime
    return (value: Value): Result => redacted(value, redaction, { left: maxBytes }) ?? tooMuch
  },
})

/** Undefined if all texts together would exceed the remaining budget. */
function redacted(value: Value, redaction: Redaction, limit: { left: number }): Value | undefined {
  if (typeof value === 'string' || value instanceof Bytes) {
    const text = redaction(String(value), limit.left)
    limit.left -= text?.length ?? 0
    return text
  }
  if (Array.isArray(value)) {
    const items: Value[] = []
    for (const item of value) {
      const made = redacted(item, redaction, limit)
      if (made === undefined) return undefined
      items.push(made)
    }
    return items
  }
  if (!isObject(value)) return value
  const fields: ValueObject = {}
  for (const name of fieldNames(value)) {
    const made = redacted(value[name] as Value, redaction, limit)
    if (made === undefined) return undefined
    setField(fields, name, made)
  }
  return fields
}
