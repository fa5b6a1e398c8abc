// Typical files in `testdata`: chart values, ConfigMaps and resources, also with Windows line endings and truncated in the middle. The agent
// is recognized from the text, all gaps have line numbers, and the Pipeline passes lint.

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { lint } from '../testing/conversions.ts'
import { agentFor } from './agents.ts'
import { Draft } from './draft.ts'
import { secretsIn } from './inner.ts'

const folder = new URL('./testdata/', import.meta.url)
/** The agent, a description, and the name of the file. */
const cases = readdirSync(folder).map((name) => {
  const [agent = '', about = '', file = ''] = name.split('--')
  return { agent, about, file, text: readFileSync(new URL(name, folder), 'utf8') }
})

function convert(agent: string | undefined, file: string, text: string) {
  const found = agentFor([{ file, text }], agent)
  if (found === undefined) throw new Error('No agent knows the file.')
  const draft = new Draft()
  for (const each of found.files) for (const [name, key] of secretsIn(each)) draft.secrets.set(name, key)
  draft.gaps.push(...found.gaps)
  found.agent.convert(found.files, () => [], draft)
  return {
    agent: found.agent.name,
    gaps: draft.gaps,
    text: draft.document({ name: 'converted' }).toString({ lineWidth: 0 }),
  }
}

const withoutPlaces = (text: string) => text.replace(/\([^()\n]*:\d+\)/g, '').replaceAll('\r', '')

test.each(cases)('$agent: $about', async ({ agent, file, text }) => {
  const made = convert(undefined, file, text)
  expect(made.agent).toBe(agent)
  const lines = text.split('\n').length
  for (const { line, reason, nearest, subject, file: of } of made.gaps) {
    expect(of.startsWith(file)).toBe(true)
    expect(line).toBeGreaterThan(0)
    expect(line).toBeLessThanOrEqual(lines)
    expect([reason, nearest, subject]).not.toContain('')
  }
  expect(await lint(made.text)).toEqual([])
  const windows = convert(undefined, file, text.replaceAll('\n', '\r\n'))
  expect(windows.gaps.map(({ line }) => line)).toEqual(made.gaps.map(({ line }) => line))
  if (!file.endsWith('.toml')) expect(withoutPlaces(windows.text)).toBe(withoutPlaces(made.text))
})

test.each(cases)('$agent: $about, truncated', async ({ agent, file, text }) => {
  const made = convert(agent, file, text.slice(0, text.length * 0.6))
  expect(made.gaps.length).toBeGreaterThan(0)
  expect(await lint(made.text)).toEqual([])
})
