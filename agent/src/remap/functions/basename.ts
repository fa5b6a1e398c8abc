// Function `basename`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const basename = defineFunction({
  name: 'basename',
  category: 'String',
  summary: 'Returns the last part of a file path; null if there is none.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The path.' }],
  returns: kinds.string.or(kinds.null),
  fallible: 'always',
  pure: true,
  examples: [
    { source: 'basename!("/usr/local/bin/x.tar.gz")', result: '"x.tar.gz"' },
    { source: 'basename!("x")', result: '"x"' },
    { source: 'basename!("/")', result: 'null' },
  ],
  compile: () => (value: string) => {
    const parts = value.split('/').filter((part, index) => part !== '' && (part !== '.' || index === 0))
    const last = parts.at(-1)
    return last === undefined || last === '..' || last === '.' ? null : last
  },
})
