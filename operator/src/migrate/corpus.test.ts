// Whole configurations after the shapes of real ones, in `corpus`: a file for each agent. The line before a case says what it is about, the
// name of its file, and what has no counterpart. Each is known by its text, every gap has a place, and the output passes lint.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compileFiles } from '../compile/config.ts'
import { agentFor } from './agents.ts'
import { Draft } from './draft.ts'
import { secretsIn } from './inner.ts'

const output = mkdtempSync(join(tmpdir(), 'penstock-corpus-'))
afterAll(() => rmSync(output, { recursive: true }))

const folder = new URL('./corpus/', import.meta.url)
const cases = readdirSync(folder).flatMap((name) => {
  const parts = readFileSync(new URL(name, folder), 'utf8').split(/^######## (.*)\n/m)
  return parts.flatMap((head, index) => {
    if (index % 2 === 0) return []
    const [about = '', file = '', gaps = ''] = head.split(' | ').map((part) => part.replace(/ \|$/, '').trim())
    const expected = gaps.split('; ').filter((gap) => gap !== '')
    return [{ agent: name.replace('.txt', ''), about, file, expected, text: parts[index + 1] ?? '' }]
  })
})

let written = 0
/** Errors of lint. Keys of Secrets that the output asks for are there. */
function errorsIn(text: string): string[] {
  const keys = [...new Set([...text.matchAll(/SECRET\[env\.(\w+)\]/g)].map(([, name]) => name))]
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: converted-environment, namespace: penstock-system }\nstringData: { ${keys.map((key) => `${key}: x`).join(', ')} }\n`
  const file = join(output, `${++written}.yaml`)
  writeFileSync(file, `${text}${secret}`)
  const { problems } = compileFiles([file], { ownMachine: false })
  return problems.filter(({ severity }) => severity === 'error').map(({ path, message }) => `${path}: ${message}`)
}

test.each(cases)('$agent: $about', ({ agent, file, expected, text }) => {
  const found = agentFor([{ file, text }])
  expect(found?.agent.name).toBe(agent)
  const draft = new Draft()
  for (const [name, key] of secretsIn({ file, text })) draft.secrets.set(name, key)
  found?.agent.convert(found.files, () => [], draft)
  const documents = draft.documents({ name: 'converted' })
  expect(errorsIn(documents.map((document) => document.toString({ lineWidth: 0 })).join('---\n'))).toEqual([])
  const lines = text.split('\n').length
  for (const gap of draft.gaps) {
    expect(gap.file.startsWith(file)).toBe(true)
    expect(gap.line).toBeGreaterThan(0)
    expect(gap.line).toBeLessThanOrEqual(lines)
    expect([gap.reason, gap.nearest, gap.subject]).not.toContain('')
  }
  const missing = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect([...new Set(missing.map(({ subject }) => subject))]).toEqual(expected)
})
