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
    if (/^\/+$/.test(value)) return '/'
    const path = value.replace(/\/+$/, '')
    const at = path.lastIndexOf('/')
    if (at < 0) return '.'
    const parent = path.slice(0, at).replace(/\/+$/, '')
    return parent === '' ? '/' : parent
  },
})
