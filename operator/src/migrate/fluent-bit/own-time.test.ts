// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
// Fields named `timestamp`: those of records, and those with the time that outputs add. Options of inputs, filters and outputs that are
// rare, or that have the same value as the default.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const section = (kind: string, lines: string) => `[${kind}]\n${lines.replace(/^(?=.)/gm, '    ')}\n`
const input = section('INPUT', 'Name tail\nTag app\nPath /srv/app.log\nParser json')
const output = section('OUTPUT', 'Name http\nMatch *\nHost h\nFormat json\nJson_Date_Key false')
const convert = (...parts: readonly string[]) =>
  converted(convertFluentBit, [{ file: 'fb.conf', text: parts.join('') }])
const time = '2026-11-24T10:11:12.25Z'

test.each<[about: string, filter: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  ['set', 'Name modify\nSet timestamp x', {}, { log_timestamp: 'x' }],
  ['rename', 'Name modify\nRename time timestamp', { time: 'x' }, { log_timestamp: 'x' }],
  ['rename to another name', 'Name modify\nRename timestamp at', { timestamp: 'x' }, { at: 'x' }],
  [
    'remove',
    'Name modify\nRemove timestamp\nCondition Key_exists timestamp\nSet a b',
    { timestamp: 'x' },
    { 'log_timestamp == null && .a': 'b' },
  ],
  [
    'records',
    'Name record_modifier\nRecord timestamp x\nRemove_key a',
    { a: 1 },
    { 'a == null && .log_timestamp': 'x' },
  ],
  ['expressions', 'Name grep\nRegex $timestamp ^2026', { timestamp: '2026-01' }, { log_timestamp: '2026-01' }],
  [
    'nested fields',
    'Name nest\nOperation nest\nWildcard timestamp\nNest_under meta',
    { timestamp: 'x' },
    { meta: { timestamp: 'x' } },
  ],
  [
    'nested fields with a beginning',
    'Name nest\nOperation nest\nWildcard time*\nNest_under meta\nAdd_prefix a_',
    { timestamp: 'x', times: 2 },
    { meta: { a_timestamp: 'x', a_times: 2 } },
  ],
  ['lifted members', 'Name nest\nOperation lift\nNested_under a', { a: { timestamp: 'x' } }, { log_timestamp: 'x' }],
  [
    'lifted members with another name',
    'Name nest\nOperation lift\nNested_under a\nAdd_prefix time',
    { a: { stamp: 'x' } },
    { log_timestamp: 'x' },
  ],
  [
    'fields with a beginning that are removed',
    'Name modify\nRemove_wildcard time\nSet a b\nRename timestamp none',
    { timestamp: 'x', times: 2 },
    { 'log_timestamp == null && .times == null && .none == null && .a': 'b' },
  ],
  [
    'fields with a beginning that stay',
    'Name record_modifier\nAllowlist_key time*\nRemove_key timestamps',
    { timestamp: 'x', a: 1 },
    { 'a == null && .log_timestamp': 'x' },
  ],
  ['members', 'Name modify\nSet a.timestamp x', {}, { '"a.timestamp"': 'x' }],
])(
  'a field `timestamp` of the record is separate from the time of the event: %s',
  async (_, lines, record, expected) => {
    const filter = section('FILTER', lines.replace('\n', '\nMatch *\n'))
    const { document, resource, gaps, all } = convert(input, filter, output)
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    expect(all.filter(({ reason }) => reason.includes('log_timestamp')).length).toBeGreaterThan(0)
    withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, { ...expected, timestamp: time })
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)

test.each<[about: string, part: string, value: unknown]>([
  ['labels', 'Labels at=$timestamp', { labels: { at: '{{ log_timestamp }}' } }],
  ['keys of labels', 'Label_Keys $timestamp, $a', { labels: { log_timestamp: '{{ log_timestamp }}' } }],
  ['removed keys', 'Labels timestamp=x\nRemove_Keys timestamp', { labels: { timestamp: 'x' } }],
])('an output names the field `timestamp` of the record: %s', (_, lines, sink) => {
  const { resource, all } = convert(input, section('OUTPUT', `Name loki\nMatch *\n${lines}`))
  expect(resource.spec.sinks[0].config).toMatchObject(sink as object)
  expect(all.some(({ reason }) => reason.includes('log_timestamp'))).toBe(true)
})

test.each<[about: string, processor: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'an expression',
    { name: 'content_modifier', action: 'extract', key: 'a', pattern: '^(?<timestamp>\\d+)' },
    { log_timestamp: '12' },
  ],
  [
    'a condition',
    {
      name: 'content_modifier',
      action: 'insert',
      key: 'b',
      value: 'c',
      condition: { op: 'and', rules: [{ field: '$timestamp', op: 'eq', value: 'x' }] },
    },
    { b: 'c' },
  ],
  [
    'a query',
    { name: 'sql', query: "SELECT timestamp, a AS t FROM STREAM WHERE timestamp = 'x';" },
    { log_timestamp: 'x', t: '12 s' },
  ],
])('a processor names the field `timestamp` of the record: %s', async (_, processor, expected) => {
  const text = JSON.stringify({
    pipeline: {
      inputs: [{ name: 'tail', path: '/srv/app.log', parser: 'json', processors: { logs: [processor] } }],
      outputs: [{ name: 'stdout', match: '*', format: 'json_lines', json_date_key: false }],
    },
  })
  const { document, resource, gaps, all } = converted(convertFluentBit, [{ file: 'fb.yaml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(all.some(({ reason }) => reason.includes('log_timestamp'))).toBe(true)
  const message = JSON.stringify({ timestamp: 'x', a: '12 s' })
  withTest(document, resource, { message, timestamp: time }, { ...expected, timestamp: time })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('records of the input dummy may have the field `timestamp`', async () => {
  const dummy = section('INPUT', 'Name dummy\nTag d\nDummy {"timestamp":"x","a":1}')
  const { document, resource, gaps } = convert(dummy, output)
  expect(gaps).toMatchObject([{ subject: 'dummy: timestamp', isReplaced: true }])
  const [line] = resource.spec.sources[0].config.lines
  withTest(document, resource, { message: line, timestamp: time }, { a: 1, log_timestamp: 'x', timestamp: time })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a decoded object of a pod may have the field `timestamp`', async () => {
  const parser = section('PARSER', 'Name own\nFormat json\nDecode_Field json log')
  const pods = section('INPUT', 'Name tail\nTag p\nPath /var/log/containers/*.log\nParser own')
  const { document, resource } = convert(parser, pods, output)
  const expected = { log_timestamp: 'x', timestamp: time }
  withTest(document, resource, { message: '{"timestamp":"x"}', stream: 'stdout', timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each<[about: string, lines: string, value: unknown]>([
  [
    'http',
    'Name http\nHost h\nFormat json\nJson_Date_Key timestamp\nJson_Date_Format iso8601',
    '2026-11-24T10:11:12.250000Z',
  ],
  [
    'stdout',
    'Name stdout\nFormat json_lines\nJson_Date_Key timestamp\nJson_Date_Format epoch',
    Date.parse(time) / 1000 - 0.25,
  ],
  [
    'http with the format of SQL',
    'Name http\nHost h\nFormat json\nJson_Date_Key timestamp\nJson_Date_Format java_sql_timestamp',
    '2026-11-24 10:11:12.250000',
  ],
])('the field for the time may be `timestamp`: %s', async (_, lines, value) => {
  const { document, resource, gaps } = convert(input, section('OUTPUT', `${lines}\nMatch *`))
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config.encoding).toEqual({ codec: 'json' })
  withTest(document, resource, { message: '{"a":1}', timestamp: time }, { [`a == 1 && .timestamp`]: value })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the field for the time of a search engine may be `timestamp`', () => {
  const { resource } = convert(input, section('OUTPUT', 'Name es\nMatch *\nTime_Key timestamp'))
  expect(resource.spec.sinks[0].config).not.toHaveProperty('encoding')
})

test.each<[about: string, parts: readonly string[], subject: string]>([
  [
    'an unknown format of the time',
    [section('OUTPUT', 'Name http\nMatch *\nHost h\nFormat json\nJson_Date_Format x')],
    'json_date_format x',
  ],
  [
    'a path of Windows',
    [section('INPUT', 'Name tail\nTag w\nPath C:\\\\logs\\\\*.log'), output],
    'tail: path C:\\\\logs\\\\*.log',
  ],
  [
    'owners of pods',
    [section('FILTER', 'Name kubernetes\nMatch *\nOwner_References On'), output],
    'kubernetes: owner_references',
  ],
  [
    'the end of the agent',
    [section('INPUT', 'Name tail\nTag e\nPath /e.log\nExit_On_Eof On'), output],
    'tail: exit_on_eof',
  ],
])('%s is a gap', (_, parts, subject) => {
  const { gaps } = convert(input, ...parts)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map((gap) => gap.subject)).toEqual([subject])
})

test.each([
  'Static_Batch_Size 50M\nExit_On_Eof Off\nRead_Newly_Discovered_Files_From_Head On',
  'Watcher_Interval 2s\nTruncate_Long_Lines Off\nFile_Cache_Advise Off',
])('options that match the behaviour of the source are not gaps: %s', (lines) => {
  const { gaps } = convert(section('INPUT', `Name tail\nTag a\nPath /a.log\n${lines}`), output)
  expect(gaps).toEqual([])
})

test.each([
  ['Generic.Encoding ShiftJIS', 'shift_jis'],
  ['Generic.Encoding Win1252', 'windows-1252'],
  ['Unicode.Encoding UTF-16BE', 'utf-16be'],
])('lines in another character set: %s', async (lines, charset) => {
  const { document, resource, gaps } = convert(section('INPUT', `Name tail\nTag a\nPath /a.log\n${lines}`), output)
  expect(gaps).toEqual([])
  expect(resource.spec.sources[0].config.encoding).toEqual({ charset })
  expect(await lint(String(document))).toEqual([])
})

test('a single output without tags receives the records of a single input', () => {
  const { resource, gaps } = convert(input, output.replace(/ *Match.*\n/, ''))
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['http'])
})

test('a search engine gets the key and the time in the format of the output', async () => {
  const { document, resource, gaps } = convert(
    input,
    section(
      'OUTPUT',
      'Name es\nMatch *\nHost h\ntls On\nHTTP_API_Key ${KEY}\nRetry_Limit 3\nTime_Key at\nTime_Key_Format %d.%m.%Y %H:%M:%S',
    ),
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const request = { retry_attempts: 3, headers: { Authorization: 'ApiKey SECRET[env.KEY]' } }
  expect(resource.spec.sinks[0].config.request).toEqual(request)
  withTest(document, resource, { message: '{}', timestamp: time }, { at: '24.11.2026 10:11:12.250Z' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('Merge_Parser parses the line', async () => {
  const parser = section('PARSER', 'Name kv\nFormat logfmt')
  const pods = section('INPUT', 'Name tail\nTag kube.*\nPath /var/log/containers/*.log\nmultiline.parser cri')
  const filter = section('FILTER', 'Name kubernetes\nMatch *\nMerge_Log On\nMerge_Parser kv\nKeep_Log Off')
  const { document, resource, gaps } = convert(pods, filter, output, parser)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(
    document,
    resource,
    { message: 'a=b c=d', timestamp: time, orchestrator: {} },
    { 'log == null && .a': 'b', c: 'd' },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('labels come from the file that the output names', async () => {
  const configuration =
    section('INPUT', 'Name tail\nTag a\nPath /a.log\nParser json') +
    section('OUTPUT', 'Name loki\nMatch *\nHost l\nlabel_map_path /etc/map.json')
  const text = `kind: ConfigMap\ndata:\n  fluent-bit.conf: |\n${configuration.replace(/^(?=.)/gm, '    ')}  map.json: |\n    {"kubernetes": {"pod_name": "pod", "labels": {"app": "app"}}, "stream": "stream"}\n`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'map.yaml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config.labels).toEqual({
    pod: '{{ kubernetes.pod_name }}',
    app: '{{ kubernetes.labels.app }}',
    stream: '{{ stream }}',
  })
  expect(await lint(String(document))).toEqual([])
})

test('a filter as a processor has conditions of its own', async () => {
  const text = `pipeline:
  inputs:
    - name: tail
      path: /a.log
      tag: a
      parser: json
      processors:
        logs:
          - name: modify
            set: team a
            condition: key_does_not_exist team
          - name: modify
            set: bad "true"
            condition: { op: and, rules: [ { field: $level, op: eq, value: error } ] }
  outputs:
    - { name: http, match: a, host: h, format: json, json_date_key: "false" }
`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.yaml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: '{"level":"error"}', timestamp: time }, { team: 'a', bad: 'true' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
