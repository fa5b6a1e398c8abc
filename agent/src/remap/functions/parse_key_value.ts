// Function `parse_key_value`.

import { parseKeyValue } from '../../formats/key-value.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { delimiters } from '../parameters.ts'

export const parseKeyValueFunction = defineFunction({
  name: 'parse_key_value',
  category: 'Parse',
  summary: 'Reads key-value text. Every value stays text.',
  description: 'A key that stands alone is true, a key that is repeated makes an array.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    ...delimiters,
    {
      name: 'whitespace',
      kind: kinds.string,
      required: false,
      default: 'lenient',
      enum: ['lenient', 'strict'],
      description: 'Whether blanks may stand around the delimiter of key and value.',
    },
    {
      name: 'accept_standalone_key',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether a key may stand alone.',
    },
  ],
  returns: kinds.objectEach(kinds.string.or(kinds.boolean).or(kinds.arrayEach(kinds.string))),
  fallible: 'always',
  errors: ['The text has another form.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_key_value!("a=1 b=\\"two words\\" flag")',
      result: '{ "a": "1", "b": "two words", "flag": true }',
    },
    {
      source: 'parse_key_value!(s\'Cc Cc=tom to="a\\\\tb" Cc="bob" Cc x="y"z\')',
      result: '{ "Cc": ["tom", "bob"], "to": "a\\\\tb", "x": "\\"y\\"z" }',
    },
    { source: 'parse_key_value!("a:1|b:2", ":", "|")', result: '{ "a": "1", "b": "2" }' },
    {
      source: 'parse_key_value!("a=1 flag", accept_standalone_key: false)',
      result: 'fails: function call error for "parse_key_value" at (0:58): could not parse whole line successfully',
    },
  ],
  compile:
    () =>
    (text: string, keyValueDelimiter: string, fieldDelimiter: string, whitespace: string, standaloneKeys: boolean) =>
      parseKeyValue(text, { keyValueDelimiter, fieldDelimiter, lenient: whitespace === 'lenient', standaloneKeys }) ??
      failure('could not parse whole line successfully'),
})
