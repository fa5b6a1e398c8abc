// Function `parse_key_value`.

import { parseKeyValue } from '../../formats/key-value.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { delimiters } from '../parameters.ts'

export const parseKeyValueFunction = defineFunction({
  name: 'parse_key_value',
  category: 'Parse',
  summary: 'Parses key-value text. All values stay text.',
  description: 'A key without a value is true, and a repeated key gives an array.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    ...delimiters,
    {
      name: 'whitespace',
      kind: kinds.string,
      required: false,
      default: 'lenient',
      enum: ['lenient', 'strict'],
      description: 'Whether blanks may surround the delimiter of key and value.',
    },
    {
      name: 'accept_standalone_key',
      kind: kinds.boolean,
      required: false,
      default: true,
      description: 'Whether a key may have no value.',
    },
  ],
  returns: kinds.objectEach(kinds.string.or(kinds.boolean).or(kinds.arrayEach(kinds.string))),
  fallible: 'always',
  errors: ['The text has another format.'],
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
