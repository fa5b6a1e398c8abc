// Rendered problems, in particular with invisible characters.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfigObject } from './load.ts'
import { renderProblem, renderProblems } from './render.ts'

test.each([
  ['a space that does not break', '\u00a0type', '\\u00a0type'],
  ['a character without width', 'search\u200b', 'search\\u200b'],
  ['a mark of bytes', '\ufeffkind', '\\ufeffkind'],
  ['a wide space', 'a\u3000b', 'a\\u3000b'],
])('%s in a name is shown by its code, with what to do', (_, name, shown) => {
  const text = renderProblem({ severity: 'error', path: `spec.${name}`, message: `unknown field \`${name}\`` })
  expect(text).toContain(`error: unknown field \`${shown}\`\n  --> spec.${shown}\n`)
  expect(text).toContain('is an invisible character')
})

test('letters of other languages stay unchanged', () => {
  const message = 'unknown field `zähler 数 عدد`'
  expect(renderProblem({ severity: 'error', path: '', message })).toBe(`error: ${message}`)
})

test('the diagnostic of a program names the option that holds it; that of a file, the file', () => {
  const shown = (options: object) => {
    const transforms = { parse: { type: 'remap', inputs: ['in'], ...options } }
    const loaded = loadConfigObject({ ...around, transforms })
    return loaded.ok ? '' : renderProblems(loaded.problems)
  }
  expect(shown({ source: '.a = 1\n.b = to_int(.c)' })).toContain('┌─ transforms.parse.source:2:6\n')
  const folder = mkdtempSync(join(tmpdir(), 'penstock-render-'))
  try {
    const file = join(folder, 'parse.remap')
    writeFileSync(file, '.b = to_int(.c)')
    expect(shown({ file })).toContain(`┌─ ${file}:1:6\n`)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

const around = {
  sources: { in: { type: 'stdin' } },
  sinks: { out: { type: 'blackhole', inputs: ['parse'] } },
}
