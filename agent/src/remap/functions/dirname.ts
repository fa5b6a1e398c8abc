// Function `dirname`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const dirname = defineFunction({
  name: 'dirname',
  category: 'String',
  summary: 'A file path without its last part; `.` if there is none.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The path.' }],
  returns: kinds.string,
  fallible: 'always',
  pure: true,
  examples: [
    { source: 'dirname!("/usr/local/x")', result: '"/usr/local"' },
    { source: 'dirname!("x")', result: '"."' },
    { source: 'dirname!("/x")', result: '"/"' },
  ],
  compile: () => (value: string) => {
    const path = withoutSlashes(value)
    if (path === '') return value === '' ? '.' : '/'
    const at = path.lastIndexOf('/')
    if (at < 0) return '.'
    const parent = withoutSlashes(path.slice(0, at))
    return parent === '' ? '/' : parent
  },
})

/** The text without slashes at its end. */
function withoutSlashes(text: string): string {
  let end = text.length
  while (text[end - 1] === '/') end--
  return text.slice(0, end)
}
