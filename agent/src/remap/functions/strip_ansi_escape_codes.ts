// Function `strip_ansi_escape_codes`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  /\x1b\[[0-?]*[ -/]*(?:[@-~]|$)|\x1b[PX^_\]][\s\S]*?(?:\x07|\x1b\\|$)|\x1b[ -/]*(?:[0-~]|$)|[\x00-\x09\x0b-\x1f]/g

export const stripAnsiEscapeCodes = defineFunction({
  name: 'strip_ansi_escape_codes',
  category: 'String',
  summary: 'Removes terminal escape sequences, and control characters other than line ends.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'strip_ansi_escape_codes("\\u{1b}[1mX\\u{1b}[0m")', result: '"X"' },
    { source: 'strip_ansi_escape_codes("\\u{1b}[31;1mred\\u{1b}[39m text")', result: '"red text"' },
    { source: 'strip_ansi_escape_codes("a\\tb\\u{1b}[=3lc\\u{1b}[31")', result: '"abc"' },
    { source: 'strip_ansi_escape_codes("plain")', result: '"plain"' },
  ],
  compile: () => (value: string) => value.replace(sequences, ''),
})
