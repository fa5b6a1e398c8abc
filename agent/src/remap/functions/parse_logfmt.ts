// Function `parse_logfmt`.

import { parseLogfmt } from '../../formats/logfmt.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseLogfmtFunction = defineFunction({
  name: 'parse_logfmt',
  category: 'Parse',
  summary: 'Parses a logfmt line. All values stay text.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The line.' }],
  returns: kinds.objectEach(kinds.string.or(kinds.boolean).or(kinds.arrayEach(kinds.string))),
  fallible: 'always',
  errors: ['The line has another format.'],
  pure: true,
  fresh: true,
  examples: [
    { source: 'parse_logfmt!("lvl=warn n=31 urgent")', result: '{ "lvl": "warn", "n": "31", "urgent": true }' },
    { source: 'parse_logfmt!("msg=\\"two words\\" level=info")', result: '{ "level": "info", "msg": "two words" }' },
    { source: 'parse_logfmt!("n=1").n', result: '"1"' },
  ],
  compile: () => (line: string) => parseLogfmt(line) ?? failure('could not parse whole line successfully'),
})
