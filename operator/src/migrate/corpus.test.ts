// Complete configurations modelled on real ones (see `testing/corpus.ts`): the agent is recognized from the text, all gaps have a file and a
// line, and the output passes lint.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type CorpusCase, convertedCase, corpus, lintErrors } from '../testing/corpus.ts'
import { oddOption, withOddOptions } from '../testing/odd-options.ts'
import { existsHere } from './absence.ts'
import type { Gap } from './draft.ts'

const output = mkdtempSync(join(tmpdir(), 'penstock-corpus-'))
afterAll(() => rmSync(output, { recursive: true }))

test.each(corpus)('$agent: $about', (given: CorpusCase) => {
  const { agent, file, expected, text } = given
  const { draft, found } = convertedCase(given)
  expect(found?.agent.name).toBe(agent)
  const documents = [...draft.agents({ name: 'converted' }), ...draft.documents({ name: 'converted' })]
  const printed = documents.map((document) => document.toString({ lineWidth: 0 })).join('---\n')
  expect(lintErrors(printed, output)).toEqual([])
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

const groups = [
  { agents: ['vector'], share: 0.95 },
  { agents: ['fluent-bit'], share: 0.95 },
  { agents: ['fluentd'], share: 0.95 },
  { agents: ['filebeat'], share: 0.95 },
  { agents: ['promtail', 'alloy'], share: 0.95 },
  { agents: ['otel'], share: 0.95 },
]
test.each(groups)(
  'of 60 configurations of $agents, those whose parts exist here convert completely: $share',
  (group) => {
    const own = corpus.filter(({ agent }) => group.agents.includes(agent))
    expect(own.length).toBeGreaterThanOrEqual(60)
    expect(new Set(own.map(({ text }) => text)).size).toBe(own.length)
    const verdicts = own.flatMap((given) => {
      const { gaps } = convertedCase(given).draft
      return existsHere(gaps)
        ? [{ about: given.about, isFull: gaps.every(({ isReplaced }) => isReplaced === true) }]
        : []
    })
    const partial = verdicts.filter(({ isFull }) => !isFull).map(({ about }) => about)
    console.info(`${group.agents}: ${verdicts.length - partial.length} of ${verdicts.length}, of ${own.length} in all`)
    expect(1 - partial.length / verdicts.length, partial.join('\n')).toBeGreaterThanOrEqual(group.share)
  },
)

/** Whether the whole part with the option is a gap, or nothing refers to the part. */
const isOfPart = ({ isAbsent, reason, subject }: Gap) =>
  isAbsent === true ||
  subject.startsWith('label ') ||
  /is unknown|are not valid|has no counterpart|no component|receives nothing|no input/.test(reason)

test.each([...new Set(corpus.map(({ agent }) => agent))])(
  '%s: an unknown option is a gap with file, line, reason and nearest equivalent',
  (agent) => {
    let count = 0
    const silent: string[] = []
    for (const given of corpus.filter((each) => each.agent === agent)) {
      for (const text of withOddOptions(given)) {
        count++
        const lines = text.split('\n')
        const line = lines.findIndex((each) => each.includes(oddOption)) + 1
        const { gaps } = convertedCase({ ...given, text }).draft
        const row = gaps.find(({ subject, reason }) => `${subject} ${reason}`.includes(oddOption))
        const isReported = row !== undefined && row.line === line && row.isReplaced !== true
        const isNamed = row?.file.startsWith(given.file) === true && row.reason !== '' && row.nearest !== ''
        if (isReported && isNamed) continue
        if (row === undefined && gaps.some((gap) => Math.abs(gap.line - line) <= 14 && isOfPart(gap))) continue
        silent.push(`${given.about}: ${lines.slice(Math.max(0, line - 3), line).join(' | ')}`)
      }
    }
    expect(count).toBeGreaterThan(50)
    expect(silent).toEqual([])
  },
)
