// Problems as people read them, with what cannot be seen.

import { expect, test } from 'vitest'
import { renderProblem } from './render.ts'

test.each([
  ['a space that does not break', '\u00a0type', '\\u00a0type'],
  ['a character without width', 'search\u200b', 'search\\u200b'],
  ['a mark of bytes', '\ufeffkind', '\\ufeffkind'],
  ['a wide space', 'a\u3000b', 'a\\u3000b'],
])('%s in a name is shown by its code, with what to do', (_, name, shown) => {
  const text = renderProblem({ severity: 'error', path: `spec.${name}`, message: `unknown field \`${name}\`` })
  expect(text).toContain(`error: unknown field \`${shown}\`\n  --> spec.${shown}\n`)
  expect(text).toContain('is a character that is not seen')
})

test('other letters of any language stay as they are', () => {
  const message = 'unknown field `zähler 数 عدد`'
  expect(renderProblem({ severity: 'error', path: '', message })).toBe(`error: ${message}`)
})
