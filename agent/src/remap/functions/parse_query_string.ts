// Function `parse_query_string`.

import { getField, setField, type ValueObject } from '../../event/value.ts'
import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseQueryString = defineFunction({
  name: 'parse_query_string',
  category: 'Parse',
  summary: 'Parses the query of a URL. A repeated key gives an array.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The query, with or without `?`.' }],
  returns: kinds.objectEach(kinds.string.or(kinds.array)),
  fallible: 'never',
  pure: true,
  fresh: true,
  examples: [
    { source: 'parse_query_string("?a=1&b=x%20y&a=2")', result: '{ "a": ["1", "2"], "b": "x y" }' },
    { source: 'parse_query_string("flag")', result: '{ "flag": "" }' },
    { source: 'parse_query_string("a=b+c")', result: '{ "a": "b c" }' },
  ],
  compile: () => (text: string) => {
    const fields: ValueObject = {}
    for (const [name, value] of new URLSearchParams(inAscii(text))) {
      const old = getField(fields, name)
      setField(fields, name, old === undefined ? value : Array.isArray(old) ? [...old, value] : [old, value])
    }
    return fields
  },
})

/** Node loses a byte of a non-ASCII character next to an escape. */
function inAscii(text: string): string {
  return text.replace(/[^\0-\x7f]+/g, (part) => encodeURIComponent(part.toWellFormed()))
}
