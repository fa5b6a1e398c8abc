// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Filters and matches that join lines: the sources that have their rules.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import type { Gap } from '../draft.ts'
import { convertFluentd } from './convert.ts'

const source = (parse: string, path: string) =>
  `<source>\n  @type tail\n  path ${path}\n  tag k.*\n  <parse>\n    @type ${parse}\n  </parse>\n</source>\n`
const pods = source('cri', '/var/log/containers/*.log')
const concat = (tag: string, start: string) =>
  `<filter ${tag}>\n  @type concat\n  key message\n  multiline_start_regexp ${start}\n  use_first_timestamp\n</filter>\n`
const end = '<match **>\n  @type stdout\n</match>\n'
const convert = (text: string) => converted(convertFluentd, [{ file: 'fluent.conf', text }])
const missing = (gaps: readonly Gap[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)
const starts = (sources: readonly { multiline?: { custom: { start: string } } }[]) =>
  sources.map(({ multiline }) => multiline?.custom.start)

test('rules for some of the tags have a source for each, and one for the rest', async () => {
  const text = `${pods}${concat('k.var.log.containers.api-**', '/^a/')}${concat('k.var.log.containers.job-**', '/^b/')}${end}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(gaps.map(({ line }) => line)).toEqual([9, 15])
  expect(starts(resource.spec.sources)).toEqual(['^a', '^b', undefined])
  const conditions = resource.spec.transforms.flatMap(
    ({ config: { condition } }: { config: { condition?: string } }) =>
      condition === undefined ? [] : [condition.split('\n').at(-1)],
  )
  expect(conditions).toEqual([
    expect.stringMatching(/^\(is_object.*api-.*\)$/),
    expect.stringMatching(/^!\(.*api-.*\) && \(is_object.*job-.*\)$/),
    expect.stringMatching(/^!\(.*api-.*\) && !\(.*job-.*\)$/),
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a label that all events reach may contain the rules', () => {
  const label = `<label @L>\n${concat('**', '/^a/')}${end}</label>\n`
  const { resource, gaps } = convert(`${pods}<match **>\n  @type relabel\n  @label @L\n</match>\n${label}`)
  expect(missing(gaps)).toEqual([])
  expect(starts(resource.spec.sources)).toEqual(['^a'])
})

test('a match before the rules takes its events away from them', () => {
  const { resource, gaps } = convert(
    `${pods}<match k.var.log.containers.sys-**>\n  @type null\n</match>\n${concat('**', '/^a/')}${end}`,
  )
  expect(missing(gaps)).toEqual([])
  expect(starts(resource.spec.sources)).toEqual(['^a', undefined])
})

test.each([
  ['a source that parses its lines', source('json', '/srv/*.log'), concat('**', '/^a/')],
  [
    'rules behind a new tag',
    pods,
    `<match k.**>\n  @type rewrite_tag_filter\n  <rule>\n    key stream\n    pattern /(.+)/\n    tag s.$1\n  </rule>\n</match>\n${concat('s.**', '/^a/')}`,
  ],
])('%s gives a gap', (_, start, rules) => {
  const { resource, gaps } = convert(`${start}${rules}${end}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'concat' }])
  expect(starts(resource.spec.sources)).toEqual([undefined])
})

test('rules for a field that the parser does not find have no effect', () => {
  const { gaps } = convert(`${source('nginx', '/srv/*.log')}${concat('**', '/^a/')}${end}`)
  expect(missing(gaps)).toEqual([])
})

const before = (type: string, lines: string, tag = 'k.**') => `<filter ${tag}>\n  @type ${type}\n${lines}\n</filter>\n`
const traces = '<match k.**>\n  @type detect_exceptions\n  remove_tag_prefix k\n  message message\n</match>\n'

test.each([
  ['drops lines', 'grep', '<exclude>\n  key message\n  pattern /ready/\n</exclude>', 'grep'],
  ['drops lines in a group', 'grep', '<or>\n  <regexp>\n    key level\n    pattern /x/\n  </regexp>\n</or>', 'grep'],
  ['parses the line', 'parser', 'key_name message\nreserve_data true\n<parse>\n  @type json\n</parse>', 'parser'],
  [
    'changes the line',
    'record_transformer',
    'enable_ruby\n<record>\n  message ${record["message"].strip}\n</record>',
    'record_transformer',
  ],
  [
    'reads the line',
    'record_transformer',
    'enable_ruby\n<record>\n  size ${record["message"].size}\n</record>',
    'record_transformer',
  ],
  ['reads the record', 'record_modifier', '<record>\n  all ${record.to_json}\n</record>', 'record_modifier'],
  ['removes the line', 'record_transformer', 'remove_keys message', 'record_transformer'],
  ['merges lines that are JSON', 'kubernetes_metadata', 'merge_json_log true', 'kubernetes_metadata'],
])('a filter before the rules that %s is a gap of each', (_, type, lines, name) => {
  for (const [rules, subject] of [
    [concat('k.**', '/^a/'), 'concat'],
    [traces, 'detect_exceptions'],
  ] as const) {
    const { resource, gaps } = convert(`${pods}${before(type, lines)}${rules}${end}`)
    const own = missing(gaps).filter((gap) => gap.subject === `${subject}: after ${name}`)
    expect(own).toMatchObject([{ reason: expect.stringContaining(`\`${name}\` (line 9)`) }])
    expect(resource.spec.sources[0].multiline).toBeDefined()
  }
})

test.each([
  ['adds fields', 'record_transformer', '<record>\n  cluster a\n  pod ${record["kubernetes"]["pod_name"]}\n</record>'],
  ['adds metadata', 'kubernetes_metadata', 'skip_master_url true\nskip_namespace_metadata true'],
  ['chooses containers', 'grep', '<exclude>\n  key $.kubernetes.namespace_name\n  pattern /^kube-/\n</exclude>'],
  ['renames the line', 'record_transformer', 'remove_keys log\n<record>\n  message ${record["log"]}\n</record>'],
])('a filter before the rules that %s is not a gap', (_, type, lines) => {
  const { gaps } = convert(`${pods}${before(type, lines)}${concat('k.**', '/^a/')}${end}`)
  expect(missing(gaps)).toEqual([])
})

test('a filter for other tags, or behind the rules, is not a gap', () => {
  const grep = '<exclude>\n  key message\n  pattern /ready/\n</exclude>'
  const rules = concat('k.var.log.containers.job-**', '/^a/')
  const other = before('grep', grep, 'k.var.log.containers.api-**')
  expect(missing(convert(`${pods}${other}${rules}${end}`).gaps)).toEqual([])
  expect(missing(convert(`${pods}${rules}${before('grep', grep)}${end}`).gaps)).toEqual([])
})

test('a filter before the label of the rules is a gap', () => {
  const grep = before('grep', '<exclude>\n  key message\n  pattern /ready/\n</exclude>')
  const label = `<label @L>\n${concat('**', '/^a/')}${end}</label>\n`
  const { gaps } = convert(`${pods}${grep}<match **>\n  @type relabel\n  @label @L\n</match>\n${label}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'concat: after grep' }])
})

test.each([
  ['', 2000, 60_000],
  ['5', 5000, 5000],
  ['0.5s', 500, 500],
  ['1m', 60_000, 60_000],
  ['0', 3_600_000, 3_600_000],
])('the time to wait `%s` is the timeout of the source', (time, ofTraces, ofConcat) => {
  const timeout = (text: string, option: string) => {
    const given = time === '' ? text : text.replace(/(@type (?:concat|detect_exceptions)\n)/, `$1  ${option} ${time}\n`)
    return convert(`${pods}${given}${end}`).resource.spec.sources[0].multiline.custom.timeoutMs
  }
  expect(timeout(traces, 'multiline_flush_interval')).toBe(ofTraces)
  expect(timeout(concat('k.**', '/^a/'), 'flush_interval')).toBe(ofConcat)
})

test('limits of detect_exceptions are reported', () => {
  const { gaps } = convert(`${pods}${traces.replace('</match>', '  max_lines 9\n  max_bytes 5\n</match>')}${end}`)
  const subjects = gaps.map(({ subject }) => subject)
  expect(subjects).toEqual(expect.arrayContaining(['detect_exceptions: max_lines', 'detect_exceptions: max_bytes']))
})

test('lines of containers with another time key keep their time', () => {
  const given = source('json\n    time_key @timestamp', '/var/log/containers/*.log')
  const { resource, gaps } = convert(`${given}${end}`)
  expect(gaps.map(({ subject }) => subject)).toEqual(['tail: time_key @timestamp'])
  expect(resource.spec.transforms[0].config.source).toContain('"time": format_timestamp(')
})

test('a joined event with the time of another line is reported', () => {
  const { gaps } = convert(`${pods}${concat('**', '/^a/').replace('  use_first_timestamp\n', '')}${end}`)
  expect(gaps).toMatchObject([{ subject: 'concat: use_first_timestamp', line: 9, isReplaced: true }])
})

test.each([
  ['@type json', []],
  ['@type regexp\n    expression /^(?<time>.+) (?<stream>stdout|stderr) [^ ]* (?<log>.*)$/', ['concat: separator']],
])('lines of the format %s that are joined without a line feed', (parse, subjects) => {
  const source = `<source>\n  @type tail\n  path /var/log/containers/*.log\n  tag k.*\n  <parse>\n    ${parse}\n  </parse>\n</source>\n`
  const rules = concat('k.**', '/^a/').replace('key message', 'key log\n  separator ""')
  expect(convert(`${source}${rules}${end}`).gaps.map(({ subject }) => subject)).toEqual(subjects)
})

test.each([
  ['partial_key logtag\n  partial_value P', { 'logtag == null && .message': 'x' }],
  ['use_partial_cri_logtag true', { 'logtag == null && .message': 'x' }],
  ['use_partial_cri_logtag true\n  keep_partial_key true', { message: 'x', logtag: 'F' }],
])('a filter that joins parts with %s removes their mark', async (lines, expected) => {
  const parts = `<filter k.**>\n  @type concat\n  key message\n  ${lines}\n</filter>\n`
  const { document, resource, gaps } = convert(`${pods}${parts}${end}`)
  expect(missing(gaps)).toEqual([])
  const event = {
    message: 'x',
    stream: 'stdout',
    timestamp: '2026-11-24T10:11:12Z',
    orchestrator: { pod_name: 'web-1' },
  }
  withTest(document, resource, event, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
