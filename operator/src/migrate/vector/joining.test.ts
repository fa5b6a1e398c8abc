// The transform `reduce` after a source: the source joins the lines if the transform does nothing else.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const pods = { type: 'kubernetes_logs' }
const lines = { type: 'reduce', inputs: ['k'], merge_strategies: { message: 'concat_newline' } }
const ofPods = {
  ...lines,
  group_by: ['kubernetes.pod_uid', 'kubernetes.container_name', 'stream'],
  expire_after_ms: 2000,
}
const convert = (reduce: object, source: object = pods, more: object = {}) =>
  converted(convertVector, [
    {
      file: 'v.yaml',
      text: stringify({
        sources: { k: source },
        transforms: { r: reduce, ...more },
        sinks: { out: { type: 'console', inputs: ['r', ...Object.keys(more)], encoding: { codec: 'json' } } },
      }),
    },
  ])
const begins = String.raw`^\d{4}-\d{2}`

test.each([
  ['a call that aborts', `match!(.message, r'${begins}')`],
  ['a text for sure', `match(string!(.message), r'${begins}')`],
  ['a default', `match(string(.message) ?? "", r'${begins}')`],
  ['an error that is false', `match(.message, r'${begins}') ?? false`],
  [
    'the form of the documentation',
    `m, err = match(.message, r'${begins}');\nif err != null {\n  false;\n} else {\n  m;\n}`,
  ],
  ['a comment', `# the first line\nmatch!(.message, r'${begins}')\n`],
  ['a program as a table', { type: 'vrl', source: `match!(.message, r'${begins}')` }],
  ['a predicate', { type: 'check_fields', 'message.regex': begins }],
])('the beginning of an event is %s', async (_, starts_when) => {
  const { document, resource, gaps } = convert({ ...ofPods, starts_when })
  expect(resource.spec.sources[0].multiline).toEqual({
    custom: { start: begins, condition: begins, mode: 'halt_before', timeoutMs: 2000 },
  })
  expect(resource.spec.transforms.map(({ name }: { name: string }) => name)).toEqual(['k-fields'])
  expect(gaps).toMatchObject([{ subject: 'r', isReplaced: true, reason: expect.stringContaining('timestamp_end') }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [
    'a line other than a continuation',
    { starts_when: "!match!(.message, r'^\\s')" },
    ['^', '^\\s', 'continue_through'],
  ],
  ['the last line', { ends_when: "match!(.message, r'it\\'s over$')" }, ['^', "it's over$", 'halt_with']],
])('an event is delimited by %s', (_, options, [start, condition, mode]) => {
  const { resource } = convert({ ...ofPods, ...options })
  expect(resource.spec.sources[0].multiline.custom).toMatchObject({ start, condition, mode })
})

test('a source of files has the rules among its options', async () => {
  const { document, resource } = convert(
    { ...lines, group_by: ['file', 'host'], starts_when: `match!(.message, r'${begins}')` },
    { type: 'file', include: ['/srv/*.log'] },
  )
  expect(resource.spec.sources[0].config).toEqual({
    include: ['/srv/*.log'],
    multiline: { start_pattern: begins, condition_pattern: begins, mode: 'halt_before', timeout_ms: 30_000 },
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const starts_when = `match!(.message, r'${begins}')`
test.each([
  ['groups by another field', { ...ofPods, starts_when, group_by: ['request_id'] }],
  ['does not separate containers', { ...ofPods, starts_when, group_by: ['kubernetes.pod_namespace'] }],
  ['joins with spaces', { ...ofPods, starts_when, merge_strategies: { message: 'concat' } }],
  ['collects other fields', { ...ofPods, starts_when, merge_strategies: { message: 'concat_newline', n: 'sum' } }],
  ['tests another field', { ...ofPods, starts_when: `match!(.level, r'${begins}')` }],
  ['has two conditions', { ...ofPods, starts_when, ends_when: starts_when }],
  ['has another option', { ...ofPods, starts_when, end_every_period_ms: 5 }],
  ['has an expression that is not valid', { ...ofPods, starts_when: "match!(.message, r'(')" }],
])('a transform that %s stays a gap', (_, reduce) => {
  const { resource, gaps } = convert(reduce)
  expect(resource.spec.sources[0].multiline).toBeUndefined()
  expect(gaps).toMatchObject([{ subject: 'r: reduce', isAbsent: true }])
})

test('a source that others read, too, does not join lines', () => {
  const { resource } = convert({ ...ofPods, starts_when }, pods, {
    other: { type: 'filter', inputs: ['k'], condition: 'true' },
  })
  expect(resource.spec.sources[0].multiline).toBeUndefined()
})
