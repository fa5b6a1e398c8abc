// Function `split_path`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const splitPath = defineFunction({
  name: 'split_path',
  category: 'String',
  summary: 'Splits a file path into its parts.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The path.' }],
  returns: kinds.array,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'split_path("/usr/local/x")', result: '["/", "usr", "local", "x"]' },
    { source: 'split_path("a/b/c.txt")', result: '["a", "b", "c.txt"]' },
    { source: 'split_path("/")', result: '["/"]' },
  ],
  compile: () => (value: string) => {
    const parts = value.split('/').filter((part, index) => part !== '' && (part !== '.' || index === 0))
    return value.startsWith('/') ? ['/', ...parts] : parts
  },
})
