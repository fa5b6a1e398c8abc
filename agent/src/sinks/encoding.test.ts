// Every sink reports the same problems for an unusable `encoding`.

import { expect, test } from 'vitest'
import { optionsOf } from '../config/component-options.ts'
import { loadConfigObject } from '../config/load.ts'
import { components } from '../registry.ts'
import { textCodecs } from '../schema/groups.ts'
import { skeleton } from '../schema/skeleton.ts'
import { membersOf, type Schema } from '../schema/walk.ts'

const generic = 'data did not match any variant of untagged enum EncodingConfig'
const sinks = components.filter(({ kind, options }) => kind === 'sink' && options['encoding'] !== undefined)
const codecsOf = (options: Readonly<Record<string, unknown>>) =>
  membersOf(options['encoding'] as Schema)['codec']?.['enum'] as readonly string[] | undefined

function problemsWith(type: string, encoding: unknown) {
  const declaration = sinks.find((sink) => sink.type === type)
  if (declaration === undefined) throw new Error(`There is no sink ${type}.`)
  const options = { ...skeleton(optionsOf(declaration).members), type, inputs: ['in'], encoding }
  const loaded = loadConfigObject({ sources: { in: { type: 'stdin' } }, sinks: { out: options } })
  const problems = loaded.ok ? loaded.warnings : loaded.problems
  return problems.filter(({ path }) => path.startsWith('sinks.out.encoding'))
}

test.each(sinks.map(({ type }) => type))('%s reports the same sentence, and the details as help', (type) => {
  for (const encoding of ['json', { nothing: 1 }, { except_fields: 'a' }, { timestamp_format: 'never' }]) {
    const problems = problemsWith(type, encoding)
    expect(problems).toHaveLength(1)
    expect(problems[0]?.message).toBe(generic)
    expect(problems[0]?.help).toMatch(/encoding|nothing|except_fields|timestamp_format/)
  }
})

test.each(['log_aggregator', 'logsvc_b_logs', 'siem_unstructured'])('%s rejects binary codecs', (type) => {
  for (const codec of ['avro', 'native']) {
    const avro = codec === 'avro' ? { schema: '{"type":"record","name":"r","fields":[]}' } : undefined
    const [problem] = problemsWith(type, { codec, ...(avro === undefined ? {} : { avro }) })
    expect(problem?.severity).toBe('error')
    expect(problem?.message).toBe(generic)
    expect(problem?.help).toContain(`codec \`${codec}\` writes binary data`)
  }
})

test('sinks accept the codecs that their destination supports', () => {
  const codecs = Object.fromEntries(sinks.map(({ type, options }) => [type, codecsOf(options)?.toSorted()]))
  expect(codecs).toMatchObject({
    log_aggregator: ['json', 'logfmt', 'text'],
    logsvc_b_logs: textCodecs,
    siem_unstructured: textCodecs,
  })
})

test.each([
  ['csv', 1],
  ['json', 0],
  ['text', 0],
])('metric_tag_values with codec %s gives %i warning(s)', (codec, count) => {
  const csv = codec === 'csv' ? { csv: { fields: ['a'] } } : {}
  const problems = problemsWith('console', { codec, metric_tag_values: 'full', ...csv })
  expect(problems).toHaveLength(count)
  for (const problem of problems) {
    expect(problem).toMatchObject({
      severity: 'warning',
      path: 'sinks.out.encoding.metric_tag_values',
      message: '`metric_tag_values` has no effect with codec `csv`',
    })
  }
})
