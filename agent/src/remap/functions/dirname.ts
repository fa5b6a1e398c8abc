// Function `dirname`.

import { defineFunction } from '../function.ts'
import { kinds } from '../kind.ts'

export const dirname = defineFunction({
  name: 'dirname',
  category: 'String',
  summary: 'Returns a file path without its last part; `.` if there is only one part.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The path.' }],
  returns: kinds.string,
  fallible: 'always',
  pure: true,
  examples: [
    { source: 'dirname!("/usr/local/x")', result: '"/usr/local"' },
    { source: 'dirname!("x")', result: '"."' },
    { source: 'dirname!("/x")', result: '"/"' },
    { source: 'dirname!("a/./b/.")', result: '"a"' },
  ],
  compile: () => (value: string) => {
    const path = withoutEnd(value)
    const at = path.lastIndexOf('/')
    if (at > 0) return withoutEnd(path.slice(0, at)) || '/'
    return at === 0 && (path !== '/' || value === '/') ? '/' : '.'
  },
})

/** Removes trailing slashes, and single dots between slashes; a path of slashes becomes one slash. */
function withoutEnd(path: string): string {
  let end = path.length
  while (end > 1) {
    if (path[end - 1] === '/') end--
    else if (path[end - 1] === '.' && path[end - 2] === '/') end -= end > 2 ? 2 : 1
    else break
  }
  return path.slice(0, end)
}
