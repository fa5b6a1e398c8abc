// Function `encode_logfmt`.

import type { Value, ValueObject } from '../../event/value.ts'
import { writeLogfmt } from '../../formats/logfmt.ts'
import { fieldOrder } from '../elements.ts'
import { defineFunction, isFailure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { fieldsOrdering } from '../parameters.ts'

export const encodeLogfmt = defineFunction({
  name: 'encode_logfmt',
  category: 'Codec',
  summary: 'The logfmt text of an object.',
  parameters: [{ name: 'value', kind: kinds.object, description: 'The object.' }, fieldsOrdering],
  returns: kinds.string,
  fallible: (call) => call.given('fields_ordering'),
  errors: ['An item of `fields_ordering` is not a string.'],
  pure: true,
  examples: [
    {
      source: 'encode_logfmt({"lvl": "info", "msg": "hello there", "n": 5})',
      result: '"lvl=info msg=\\"hello there\\" n=5"',
    },
    { source: 'encode_logfmt!({"n": 5, "lvl": "info"}, fields_ordering: ["lvl"])', result: '"lvl=info n=5"' },
    { source: 'encode_logfmt({"a": {"b": true}})', result: '"a.b"' },
  ],
  compile:
    () =>
    (value: ValueObject, first: Value[]): Result => {
      const names = fieldOrder(first)
      return isFailure(names) ? names : writeLogfmt(value, names)
    },
})
