// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The collector of the logging-operator: which lines flows get from it, and in which form; and the ways of events between flows.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const head = (kind: string, name: string) =>
  `---\napiVersion: logging.banzaicloud.io/v1beta1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: ops }\n`
const flow = (filters = '[]', name = 'all', more = '') =>
  `${head('ClusterFlow', name)}spec:\n  filters: ${filters}\n${more}  globalOutputRefs: [out]\n`
const out = `${head('ClusterOutput', 'out')}spec: { http: { endpoint: 'http://out/', format: { type: json } } }\n`
const convert = (text: string) => converted(convertFluentd, [{ file: 'l.yaml', text }])
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)

const line = (message: string, pod = 'web-1') => ({
  message,
  stream: 'stderr',
  timestamp: '2026-11-24T10:11:12.5Z',
  orchestrator: {
    pod_name: pod,
    pod_namespace: 'shop',
    container_name: 'web',
    container_id: 'containerd://abc',
    pod_annotations: { note: 'x' },
  },
})

const parser = `customParsers: |
    [PARSER]
        Name   other
        Format regex
        Regex  ^(?<x>y)$
    [PARSER]
        Name      own
        Format    regex
        Regex     ^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>[^ ]*) (?<log>.*)$
        Time_Keep On
`

test.each<[about: string, settings: string, event: object, expected: Readonly<Record<string, unknown>> | undefined]>([
  [
    'without settings, the line is in `message`',
    'tls: {}',
    line('{"a":1}'),
    { 'message == "{\\"a\\":1}" && .logtag': 'F' },
  ],
  [
    'members of a line below a name, without the line',
    `inputTail: { Parser: own }\n  ${parser}  filterKubernetes: { Merge_Log_Key: parsed, Keep_Log: "Off", Annotations: "Off" }`,
    line('{"a":1}'),
    { 'log == null && .kubernetes.annotations == null && .parsed.a': 1, time: '2026-11-24T10:11:12.500Z' },
  ],
  ['members of a line, by default', 'inputTail: { Parser: docker }', line('{"a":1}'), { a: 1, log: '{"a":1}' }],
  ['parsers for several lines', 'inputTail: { multiline.parser: [cri] }', line('x'), { log: 'x', _p: 'F' }],
  ['a name for the line', 'enableDockerParserCompatibilityForCRI: true', line('x'), { log: 'x', logtag: 'F' }],
  [
    'files that are left out',
    'inputTail: { Exclude_Path: "/var/log/containers/noise-*.log,/var/log/containers/web-*_shop_*.log" }',
    line('x'),
    undefined,
  ],
  [
    'rules with a condition',
    'filterModify: [ { rules: [ { Set: { key: cluster, value: prod one } }, { Remove: { key: logtag } } ], conditions: [ { Key_value_equals: { key: stream, value: stderr } } ] } ]',
    line('x'),
    { 'logtag == null && .cluster': 'prod one' },
  ],
  ['records that are dropped', 'filterGrep: { Exclude: ["message noise"] }', line('a noise'), undefined],
])('the collector of a Logging: %s', async (_, settings, event, expected) => {
  const text = `${head('FluentbitAgent', 'agent')}spec:\n  ${settings}\n${flow()}${out}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, event, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a parser of a flow reads the field with the line', async () => {
  const logging = `${head('Logging', 'l')}spec:\n  fluentbit: { inputTail: { Parser: docker, Read_From_Head: true } }\n`
  const filters =
    '[ { parser: { reserve_data: true, remove_key_name_field: true, parse: { type: regexp, expression: "/^(?<a>.*)$/" } } } ]'
  const { document, resource } = convert(`${logging}${flow(filters)}${out}`)
  expect(resource.spec.sources[0].config.read_from).toBe('beginning')
  withTest(document, resource, line('x'), { 'log == null && .a': 'x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['inputTail: { multiline.parser: [cri, java] }', 'fluentbit: multiline.parser java'],
  ['inputTail: { Tag: x.* }', 'fluentbit: Tag'],
  ['inputTail: { Path: /var/log/syslog }', 'fluentbit: Path'],
  ['inputTail: { Parser: unknown }', 'fluentbit: Parser unknown'],
  ['customConfigSecret: s', 'fluentbit: customConfigSecret'],
  ['filterAws: {}', 'filterAws'],
  ['filterKubernetes: { Use_Journal: "On" }', 'kubernetes: use_journal'],
])('a collector with %s is a gap', async (settings, subject) => {
  const { document, gaps } = convert(`${head('FluentbitAgent', 'agent')}spec:\n  ${settings}\n${flow()}${out}`)
  expect(missing(gaps)).toMatchObject([{ subject, file: 'l.yaml', line: 6 }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('different collectors are a gap, and those that differ in their pods are not', () => {
  const agent = (name: string, more: string) =>
    `${head('FluentbitAgent', name)}spec:\n  nodeSelector: { a: ${name} }\n${more}`
  const both = agent('one', '  inputTail: { Parser: cri }\n')
  const same = convert(`${both}${agent('two', '  inputTail: { Parser: cri }\n')}${flow()}${out}`)
  expect(missing(same.gaps)).toEqual([])
  const { gaps } = convert(`${both}${agent('two', '  inputTail: { Parser: docker }\n')}${flow()}${out}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'fluentbit', line: 12 }])
})

test('an output sends events to the flow with a label, which reads nothing itself', async () => {
  const special = flow(
    '[ { record_transformer: { records: [ { via: special } ] } } ]',
    'special',
    '  flowLabel: "@special"\n  includeLabelInRouter: false\n',
  )
  const first = flow('[ { record_transformer: { records: [ { team: a } ] } } ]').replace('[out]', '[to]')
  const to = `${head('ClusterOutput', 'to')}spec: { relabel: { label: "@special" } }\n`
  const { document, resource, gaps } = convert(`${first}${special}${to}${out}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ name: 'ops-all' }])
  withTest(document, resource, line('x'), { team: 'a', via: 'special' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a flow with a label has a source unless it says otherwise', () => {
  const { resource } = convert(`${flow('[]', 'all', '  flowLabel: "@all"\n')}${out}`)
  expect(resource.spec.sources).toMatchObject([{ name: 'ops-all' }])
  expect(resource.spec.sinks).toMatchObject([{ type: 'http' }])
})

test('lines that a parser does not read go to the output for errors', async () => {
  const logging = `${head('Logging', 'l')}spec: { errorOutputRef: errors }\n`
  const errors = `${head('ClusterOutput', 'errors')}spec: { http: { endpoint: 'http://errors/' } }\n`
  const filters = '[ { parser: { key_name: message, reserve_data: true, parse: { type: json } } } ]'
  const { document, resource, gaps } = convert(`${logging}${flow(filters)}${out}${errors}`)
  expect(missing(gaps)).toEqual([])
  const sinks = resource.spec.sinks.filter(({ name }: { readonly name: string }) => name === 'errors')
  withTest(document, { spec: { ...resource.spec, sinks } }, line('no JSON'), { message: 'no JSON' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an output for errors that the files do not contain is a gap, and so is a configuration in place of the resources', () => {
  const logging = `${head('Logging', 'l')}spec:\n  errorOutputRef: errors\n  flowConfigOverride: "<source>"\n`
  const { gaps } = convert(`${logging}${flow()}${out}`)
  expect(missing(gaps)).toMatchObject([
    { subject: 'Logging: flowConfigOverride', line: 7 },
    { subject: 'ClusterOutput errors', line: 6 },
  ])
})

test('a flow of a namespace that the operator does not watch is reported', () => {
  const logging = `${head('Logging', 'l')}spec: { watchNamespaces: [other] }\n`
  const { gaps } = convert(`${logging}${flow().replace('ClusterFlow', 'Flow')}${out}`)
  expect(missing(gaps)).toMatchObject([{ subject: 'Flow all', line: 7 }])
})

test('an output with a data stream', async () => {
  const stream = `${head('ClusterOutput', 'out')}spec: { opensearch: { host: h, data_stream_enable: true, data_stream_name: logs-x } }\n`
  const { document, resource, gaps } = convert(`${flow()}${stream}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([
    { type: 'search_engine', config: { bulk: { action: 'create', index: 'logs-x' } } },
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a filter behind new tags joins lines, because it is for all tags', () => {
  const filters =
    '[ { tag_normaliser: {} }, { concat: { key: message, multiline_start_regexp: "/^a/", use_first_timestamp: true } } ]'
  const tagged = out
    .replace('endpoint:', 'content_type: "${tag}", endpoint:')
    .replace('http://out/', 'http://out/${tag}')
  const { resource, gaps } = convert(`${flow(filters)}${tagged}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ multiline: { custom: { start: '^a' } } }])
})

test.each(['', 'logging:\n', 'kind: HelmRelease\nspec:\n  values:\n    logging:\n'])(
  'values of a chart below "%s"',
  async (before) => {
    const values = `fluentbit: { inputTail: { Parser: docker } }
globalFilters: [ { record_transformer: { records: [ { team: a } ] } } ]
clusterFlows:
  - name: all
    spec: { match: [ { select: {} } ], filters: [ { parser: { reserve_data: true, parse: { type: json } } } ], globalOutputRefs: [out] }
clusterOutputs:
  - name: out
    spec: { http: { endpoint: 'http://out/' } }
`
    const indent = ' '.repeat(before === '' ? 0 : before === 'logging:\n' ? 2 : 6)
    const { document, resource, gaps } = convert(`${before}${values.replace(/^(?=.)/gm, indent)}`)
    expect(missing(gaps)).toEqual([])
    expect(resource.spec.sinks).toMatchObject([{ name: 'out', type: 'http' }])
    withTest(document, resource, line('{"a":1}'), { a: 1, team: 'a' })
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)
