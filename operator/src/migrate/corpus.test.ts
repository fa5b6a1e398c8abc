// Whole configurations after the shapes of real ones, see `testing/corpus.ts`: each is known by its text, every gap has a place, and the
// output passes lint.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compileFiles } from '../compile/config.ts'
import { type CorpusCase, convertedCase, corpus } from '../testing/corpus.ts'
import { oldAgents } from './agents.ts'
import { refusedFilters as bitFilters } from './fluent-bit/filters.ts'
import { refusedInputs as bitInputs } from './fluent-bit/inputs.ts'
import { refusedProcessors as bitProcessors } from './fluent-bit/processors.ts'
import { refusedOutputs as bitOutputs } from './fluent-bit/refused-outputs.ts'
import { refusedFilters as fluentdFilters } from './fluentd/filters.ts'
import { refusedInputs as fluentdInputs } from './fluentd/inputs.ts'
import { refusedOutputs as fluentdOutputs } from './fluentd/outputs.ts'
import type { Refusal } from './page.ts'

const output = mkdtempSync(join(tmpdir(), 'penstock-corpus-'))
afterAll(() => rmSync(output, { recursive: true }))

/** A variable that begins an address is one. */
const secretValue = (name: string) => (/(?:URL|ENDPOINT|ADDRESS)$/.test(name) ? '"http://x"' : 'x')

let written = 0
/** Errors of lint. Keys of Secrets that the output asks for are there. */
function errorsIn(text: string): string[] {
  const keys = [...new Set([...text.matchAll(/SECRET\[env\.(\w+)\]/g)].map(([, name]) => name))]
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: converted-environment, namespace: penstock-system }\nstringData: { ${keys.map((key = '') => `${key}: ${secretValue(key)}`).join(', ')} }\n`
  const file = join(output, `${++written}.yaml`)
  writeFileSync(file, `${text}${secret}`)
  const { problems } = compileFiles([file], { ownMachine: false })
  return problems.filter(({ severity }) => severity === 'error').map(({ path, message }) => `${path}: ${message}`)
}

test.each(corpus)('$agent: $about', (given: CorpusCase) => {
  const { agent, file, expected, text } = given
  const { draft, found } = convertedCase(given)
  expect(found?.agent.name).toBe(agent)
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

/** Plugins without a counterpart here, by agent. */
const refused: Readonly<Record<string, readonly Refusal[]>> = {
  'fluent-bit': [...bitInputs, ...bitFilters, ...bitProcessors, ...bitOutputs],
  fluentd: [...fluentdInputs, ...fluentdFilters, ...fluentdOutputs],
}

/** Whether a gap is that a plugin does not exist here, or is none that is known. */
function isOfPlugin(agent: string, subject: string, reason: string): boolean {
  const [kind = '', name = '', ...rest] = subject.split(' ')
  if (rest.length > 0 || !/^(?:input|output|filter|processor|source|match|store)$/.test(kind)) return false
  return refused[agent]?.some((refusal) => refusal.name === name && refusal.reason === reason) === true
}

test.each(Object.keys(refused))(
  '%s: of the configurations whose plugins exist here, at least 95 percent convert fully',
  (agent) => {
    const own = corpus.filter((given) => given.agent === agent)
    expect(own.length).toBeGreaterThanOrEqual(60)
    expect(new Set(own.map(({ text }) => text)).size).toBe(own.length)
    const gaps = own.map((given) => convertedCase(given).draft.gaps.filter(({ isReplaced }) => isReplaced !== true))
    const existing = gaps.filter((each) => !each.some(({ subject, reason }) => isOfPlugin(agent, subject, reason)))
    const full = existing.filter((each) => each.length === 0)
    const rate = full.length / existing.length
    console.info(
      `${agent}: ${full.length} of ${existing.length} convert fully (${(100 * rate).toFixed(1)} %), of ${own.length} in all`,
    )
    expect(rate).toBeGreaterThanOrEqual(0.95)
  },
)

/** Reasons in the tables of the guide for parts that do not exist here. */
const absent = new Set(
  oldAgents.flatMap(({ tables }) =>
    [...tables().matchAll(/^\| `[^`]+` \| ([^|]+) \| [^|]+ \|$/gm)].map(([, reason = '']) => reason),
  ),
)

/** Shares in full of the configurations whose components exist. Raise them with each mapping that is added. */
test.each([
  { agents: ['vector'], share: 0.89 },
  { agents: ['promtail', 'alloy'], share: 0.86 },
  { agents: ['otel'], share: 0.91 },
  { agents: ['filebeat'], share: 0.97 },
])('of sixty configurations of $agents, those whose components exist convert in full: $share', ({ agents, share }) => {
  const own = corpus.filter(({ agent }) => agents.includes(agent))
  expect(new Set(own.map(({ text }) => text)).size).toBeGreaterThanOrEqual(60)
  const verdicts = own.flatMap((given) => {
    const missing = convertedCase(given).draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
    const isOfComponents = !missing.some(({ reason }) => absent.has(reason))
    return isOfComponents ? [{ about: given.about, isFull: missing.length === 0 }] : []
  })
  const partial = verdicts.filter(({ isFull }) => !isFull).map(({ about }) => about)
  expect(1 - partial.length / verdicts.length, partial.join('\n')).toBeGreaterThanOrEqual(share)
})
