// Function `parse_ruby_hash`.

import { parseRubyHash } from '../../formats/ruby-hash.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseRubyHashFunction = defineFunction({
  name: 'parse_ruby_hash',
  category: 'Parse',
  summary: 'Parses the text form of a Ruby hash. Numbers become floats.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.objectEach(
    kinds.string.or(kinds.float).or(kinds.boolean).or(kinds.null).or(kinds.array).or(kinds.object),
  ),
  fallible: 'always',
  errors: ['The text has another format.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source: 'parse_ruby_hash!("{ \\"a\\" => nil, :b => 0.75, c: [:d] }")',
      result: '{ "a": null, "b": 0.75, "c": ["d"] }',
    },
    { source: 'parse_ruby_hash!(s\'{ :list => [1, "x"] }\')', result: '{ "list": [1, "x"] }' },
    { source: 'parse_ruby_hash("no hash") ?? {}', result: '{  }' },
  ],
  compile: () => (text: string) => parseRubyHash(text) ?? failure('could not parse the text as a hash'),
})
