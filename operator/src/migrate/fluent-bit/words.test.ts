// Words of options that Fluent Bit takes literally or does not know, and options that the fluent-operator names in its own way.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'
import { sectionsOf } from './resources.ts'

const section = (kind: string, ...lines: string[]) => `[${kind}]\n${lines.map((line) => `    ${line}\n`).join('')}`
const input = section('INPUT', 'Name tail', 'Tag app', 'Path /srv/app.log', 'Parser json')
const end = section('OUTPUT', 'Name stdout', 'Match *', 'Format json_lines', 'Json_Date_Key false')
const convert = (...parts: readonly string[]) =>
  converted(convertFluentBit, [{ file: 'fb.conf', text: parts.join('') }])

test('an asterisk of Remove_wildcard is a part of the name', async () => {
  const filter = section('FILTER', 'Name modify', 'Match *', 'Remove_wildcard tmp*')
  const { document, resource, gaps } = convert(input, filter, end)
  expect(gaps).toMatchObject([
    { line: 9, subject: 'modify: remove_wildcard tmp*', reason: expect.stringContaining('asterisk'), isReplaced: true },
  ])
  withTest(document, resource, { message: '{"tmp*1":1,"tmp1":2}' }, { '"tmp*1" == null && .tmp1': 2 })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('rules of modify with other counts of words are reported', async () => {
  const rules = ['Set a one two', 'Rename b c', 'Remove d', 'Remove e f', 'Add "g h" \'i j\'', 'Set k']
  const { document, resource, gaps } = convert(input, section('FILTER', 'Name modify', 'Match *', ...rules), end)
  expect(gaps.map(({ line, subject, isReplaced }) => [line, subject, isReplaced])).toEqual([
    [9, 'modify: set a one two', true],
    [12, 'modify: remove e f', true],
    [14, 'modify: set k', true],
  ])
  withTest(document, resource, { message: '{"b":1}' }, { a: 'one two', '"g h"': 'i j', c: 1 })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('relative paths of files are reported', () => {
  const { resource, gaps } = convert(section('INPUT', 'Name tail', 'Tag app', 'Path logs/*.log,/srv/a.log'), end)
  expect(gaps).toMatchObject([{ line: 1, subject: 'tail: path logs/*.log', isReplaced: true }])
  expect(resource.spec.sources[0].config.include).toEqual(['logs/*.log', '/srv/a.log'])
})

test.each([
  ['Path "/srv/*.log"', ['"/srv/*.log"']],
  ['Path /var/log/containers/*.log\n    Exclude_Path "*_a_*,*_b_*"', ['"*_a_*', '*_b_*"']],
])('quotes of %j are reported', (lines, patterns) => {
  const { gaps } = convert(section('INPUT', 'Name tail', 'Tag kube.*', lines), end)
  const replaced = gaps.filter(({ isReplaced }) => isReplaced)
  expect(replaced.map(({ subject }) => subject)).toEqual(patterns.map((pattern) => `tail: pattern ${pattern}`))
})

test.each([
  [[], 1],
  [['Rate 4'], 0.25],
  [['Rate 0'], 1],
  [['Rate 4', 'Interval_Sec 30'], 30],
  [['Interval_Sec 1', 'Interval_NSec 500000000'], 1.5],
])('the input dummy with %j has the interval %d', (lines, interval) => {
  const { resource, gaps } = convert(section('INPUT', 'Name dummy', 'Tag app', ...lines), end)
  expect(gaps).toEqual([])
  expect(resource.spec.sources[0].config).toMatchObject({ interval })
})

test('nest knows the older name of Add_prefix', async () => {
  const filter = section('FILTER', 'Name nest', 'Match *', 'Operation lift', 'Nested_under a', 'Prefix_with a_')
  const { document, resource, gaps } = convert(input, filter, end)
  expect(gaps).toEqual([])
  withTest(document, resource, { message: '{"a":{"b":1}}' }, { a_b: 1 })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a rule of grep without an expression is a gap', async () => {
  const filter = section('FILTER', 'Name grep', 'Match *', 'Regex (password|token)', 'Exclude true', 'Exclude a ^b')
  const { document, resource, gaps } = convert(input, filter, end)
  expect(gaps.map(({ line, subject, isReplaced }) => [line, subject, isReplaced])).toEqual([
    [9, 'grep: regex (password|token)', undefined],
    [10, 'grep: exclude true', undefined],
  ])
  withTest(document, resource, { message: '{"a":"c"}' }, { a: 'c' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [['File /srv/a.log'], '/srv/a.log', 0],
  [['File a.log'], 'a.log', 1],
  [[], '{{ %tag }}', 1],
  [['Path /srv/'], '/srv/{{ %tag }}', 0],
])('the output file with %j writes to %s', (lines, path, reports) => {
  const { resource, gaps } = convert(input, section('OUTPUT', 'Name file', 'Match *', ...lines))
  expect(resource.spec.sinks[0].config).toMatchObject({ path })
  expect(gaps.filter(({ subject }) => subject === 'file: no Path')).toHaveLength(reports)
})

test.each([
  ['http', 'zstd', 'zstd'],
  ['http', 'snappy', 'snappy'],
  ['es', 'GZIP', 'gzip'],
])('%s compresses with %s', (name, word, compression) => {
  const { resource, gaps } = convert(
    input,
    section('OUTPUT', `Name ${name}`, 'Match *', 'Format json', `Compress ${word}`),
  )
  expect(gaps.filter(({ subject }) => subject.includes('ompress'))).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({ compression })
})

test.each(['es', 'opensearch', 'loki', 'splunk', 'datadog', 'nrlogs'])('%s reports an unknown compression', (name) => {
  const { gaps } = convert(input, section('OUTPUT', `Name ${name}`, 'Match *', 'Compress brotli'))
  expect(gaps).toContainEqual(expect.objectContaining({ line: 9, subject: `${name}: compress brotli` }))
})

test.each([
  [
    'ClusterOutput',
    'es: { tls: { keyPassword: { valueFrom: { secretKeyRef: { name: s, key: k } } } } }',
    'tls.key_passwd',
  ],
  ['ClusterFilter', 'filters: [{ rewriteTag: { emitterStorageType: memory } }]', 'emitter_storage.type'],
])('the option of a %s has the name of Fluent Bit: %s', (kind, spec, key) => {
  const text = `apiVersion: fluentbit.fluent.io/v1alpha2\nkind: ${kind}\nmetadata: { name: x }\nspec:\n  match: "*"\n  ${spec}\n`
  const [found] = sectionsOf([{ file: 'f.yaml', text }], []).sections
  expect(found?.entries.map((entry) => entry.key)).toContain(key)
})
