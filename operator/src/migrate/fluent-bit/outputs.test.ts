// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
// The events that arrive at sinks, for outputs that do not write the plain record.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const input = '[INPUT]\n    Name tail\n    Tag app.web\n    Path /srv/app.log\n'
const other = '[INPUT]\n    Name tail\n    Tag app.*\n    Path /srv/*/x.log\n'

test('options of TLS keep their meaning', async () => {
  const tls = 'tls On\n    tls.vhost logs.example\n    tls.key_file /k\n    tls.crt_file /c\n    tls.key_passwd ${PASS}'
  const text = `${input}[OUTPUT]\n    Name http\n    Match *\n    Host h\n    Format json\n    ${tls}\n`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.tls).toEqual({
    server_name: 'logs.example',
    key_file: '/k',
    crt_file: '/c',
    key_pass: 'SECRET[env.PASS]',
  })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  {
    about: 'the remote write of its own metrics is replaced',
    name: 'prometheus_remote_write',
    exporter: 'internal_metrics',
    sinks: ['http'],
    gaps: [],
  },
  { about: 'the exporter of its own metrics is replaced', exporter: 'internal_metrics', sinks: ['http'], gaps: [] },
  {
    about: 'an exporter of other records is a gap',
    exporter: '*',
    sinks: ['http', 'blackhole'],
    gaps: ['output prometheus_exporter'],
  },
])('$about', ({ exporter, sinks, gaps: expected, name = 'prometheus_exporter' }) => {
  const own = '[INPUT]\n    Name fluentbit_metrics\n    Tag internal_metrics\n'
  const outputs = `[OUTPUT]\n    Name ${name}\n    Match ${exporter}\n[OUTPUT]\n    Name http\n    Match app.*\n    Host h\n    Format json\n`
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: `${input}${own}${outputs}` }])
  const types = resource.spec.sinks.map(({ type }: { type: string }) => type)
  expect(types.toSorted()).toEqual(sinks.toSorted())
  expect(resource.spec.sources).toHaveLength(1)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(expected)
})

test('of several filters that join lines, the source takes the rules of the first; the others are gaps', () => {
  const joining = (parser: string) => `[FILTER]\n    Name multiline\n    Match *\n    ${parser}\n`
  const filters = ['mode partial_message', 'multiline.parser ruby', 'multiline.parser ruby', 'multiline.parser own']
  const own =
    '[MULTILINE_PARSER]\n    Name own\n    Type regex\n    Rule "start_state" "/^a/" "c"\n    Rule "c" "/^b/" "c"\n'
  const text = `${own}${input}${filters.map(joining).join('')}[OUTPUT]\n    Name stdout\n    Format json_lines\n    Match *\n`
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(resource.spec.sources[0].config.multiline).toMatchObject({ start_pattern: '^.+:\\d+:in\\s' })
  expect(gaps).toMatchObject([{ subject: 'multiline', line: 22, reason: expect.stringContaining('joins lines once') }])
})

const javaTrace = (key: string) => `[FILTER]\n    Name multiline\n    Match *\n    multiline.parser ruby\n    ${key}\n`

test.each([
  { about: 'the line', key: 'multiline.key_content log', gaps: [] },
  { about: 'the line by default', key: 'mode parser', gaps: [] },
  { about: 'the line under its own name', line: 'Key text', key: 'multiline.key_content text', gaps: [] },
  {
    about: 'the line under a new name',
    before: '[FILTER]\n    Name modify\n    Match *\n    Rename log text\n',
    key: 'multiline.key_content text',
    gaps: [],
  },
  { about: 'another field', key: 'multiline.key_content text', gaps: ['multiline.key_content text'] },
  {
    about: 'a field of a parsed line',
    line: 'Parser json',
    key: 'multiline.key_content log',
    gaps: ['multiline.key_content log'],
  },
  {
    about: 'the line of a pod',
    path: '/var/log/containers/*.log',
    line: 'Parser cri',
    key: 'multiline.key_content message',
    gaps: [],
  },
  {
    about: 'a field that the record of a pod does not have',
    path: '/var/log/containers/*.log',
    line: 'Parser cri',
    key: 'multiline.key_content log',
    gaps: ['multiline.key_content log'],
  },
])(
  'a source joins what the filter multiline joins: $about',
  ({ path = '/srv/a.log', line = 'Tag x', before = '', key, gaps: expected }) => {
    const from = `[INPUT]\n    Name tail\n    Path ${path}\n    ${line}\n`
    const text = `${from}${before}${javaTrace(key)}[OUTPUT]\n    Name null\n    Match *\n`
    const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(expected)
    const [source] = resource.spec.sources
    expect((source.config.multiline ?? source.multiline) !== undefined).toBe(expected.length === 0)
  },
)

const own = (lines: string) => `[FILTER]\n    Match *\n    ${lines.replaceAll(';', '\n    ')}\n`
const lateRules =
  '[MULTILINE_PARSER]\n    Name late\n    Type regex\n    Rule "start_state" "/^\\d/" "c"\n    Rule "c" "/^(?!\\d).*/" "c"\n'

test.each([
  ['Name grep;Exclude log readiness', 'gap'],
  ["Name grep;Exclude $kubernetes['namespace_name'] ^dev", 'none'],
  ['Name parser;Key_Name log;Parser json;Reserve_Data On', 'gap'],
  ['Name parser;Key_Name other;Parser json;Reserve_Data On', 'none'],
  ['Name lua;script a.lua;call f', 'gap'],
  ['Name throttle;Rate 5', 'gap'],
  ['Name modify;Set log x', 'gap'],
  ['Name modify;Copy log raw', 'gap'],
  ['Name modify;Remove_regex ^lo', 'gap'],
  ['Name modify;Condition Key_Value_Matches log ^a;Set a b', 'gap'],
  ['Name modify;Condition Key_exists kubernetes;Set a b;Rename x y', 'none'],
  ['Name record_modifier;Record cluster prod;Remove_key stream', 'none'],
  ['Name record_modifier;Record log prod', 'gap'],
  ['Name record_modifier;Allowlist_key stream', 'gap'],
  ['Name nest;Operation nest;Wildcard l*;Nest_under a', 'gap'],
  ['Name nest;Operation lift;Nested_under kubernetes', 'none'],
  ['Name rewrite_tag;Rule $log ^a new true', 'gap'],
  ["Name rewrite_tag;Rule $kubernetes['pod_name'] ^a new true", 'none'],
  ['Name kubernetes;Labels On', 'none'],
  ['Name kubernetes;Merge_Log On', 'gap'],
  ['Name kubernetes;Merge_Log On', 'info', 'java'],
])('a source joins lines before all filters: %s is %s', (before, expected, rules = 'late') => {
  const from = '[INPUT]\n    Name tail\n    Tag kube.*\n    Path /var/log/containers/*.log\n    multiline.parser cri\n'
  const json = '[PARSER]\n    Name json\n    Format json\n'
  const joining = own(`Name multiline;multiline.key_content log;multiline.parser ${rules}`)
  const rowsOf = (filters: string) => {
    const text = `${from}${filters}${json}${lateRules}[OUTPUT]\n    Name null\n    Match *\n`
    const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
    return gaps.filter(({ subject }) => subject === 'multiline: order')
  }
  const [row, ...others] = rowsOf(`${own(before)}${joining}`)
  expect(others).toEqual([])
  expect(row === undefined ? 'none' : row.isReplaced === true ? 'info' : 'gap').toBe(expected)
  expect(rowsOf(`${joining}${own(before)}`)).toEqual([])
})

test('the row names the filters in front of the filter multiline, and processors of the input', () => {
  const from =
    'pipeline:\n  inputs:\n    - name: tail\n      path: /a.log\n      tag: t\n      processors:\n        logs:\n          - name: sql\n            query: "SELECT * FROM STREAM WHERE log = \'a\';"\n'
  const rest =
    '  filters:\n    - name: grep\n      match: t\n      exclude: log b\n    - name: multiline\n      match: t\n      multiline.parser: ruby\n  outputs:\n    - name: "null"\n      match: t\n'
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.yaml', text: `${from}${rest}` }])
  expect(gaps.filter(({ subject }) => subject === 'multiline: order')).toMatchObject([
    { line: 14, reason: expect.stringContaining('after `sql` (line 8), `grep` (line 11)') },
  ])
})

test('lines of a tag that a filter sets are not joined: a gap', () => {
  const rewrite = own('Name rewrite_tag;Rule $log ^a new.x false')
  const late = '[FILTER]\n    Name multiline\n    Match new.*\n    multiline.parser ruby\n'
  const text = `${input}${rewrite}${late}[OUTPUT]\n    Name null\n    Match *\n`
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'multiline', line: 9, reason: expect.stringContaining('sets') }])
})

test.each([
  ['http', 'URI api', 'uri', 'http://h:80/api'],
  ['http', 'URI /api', 'uri', 'http://h:80/api'],
  ['es', 'Path pre', 'endpoints', ['http://h:9200/pre']],
  ['opensearch', 'Path pre', 'endpoints', ['http://h:9200/pre']],
  ['loki', 'Uri a/push', 'path', '/a/push'],
  ['kafka-rest', 'URL_Path pre', 'uri', 'http://h:8082/pre/topics/fluent-bit'],
])('Fluent Bit puts a slash before a path: %s %s', (name, line, option, expected) => {
  const text = `${input}[OUTPUT]\n    Name ${name}\n    Match *\n    Host h\n    ${line}\n`
  const { resource } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(resource.spec.sinks[0].config[option]).toEqual(expected)
})

const docker = (regex: string) =>
  `[INPUT]\n    Name tail\n    Path /var/log/containers/*.log\n    Parser docker\n    Docker_Mode On\n    Docker_Mode_Flush 5\n    Docker_Mode_Parser first\n[PARSER]\n    Name first\n    Format regex\n    Regex ${regex}\n[OUTPUT]\n    Name null\n    Match *\n`

test.each([
  ['(?<log>(?<="log":")\\S(?!\\.).*?)(?<!\\\\)".*(?<stream>(?<="stream":").*?)"', '(?m)^[\\S\\t](?:[^\\.]|$)'],
  ['(?<log>(?<="log":")\\d{4}-\\d{2}(?!\\.).*?)(?<!\\\\)".*', '(?m)^\\d{4}-\\d{2}(?:[^\\.]|$)'],
  ['/^{"log":"(?<log>\\[[A-Z]+\\].*)","stream"/', '(?m)^\\[[A-Z]+\\]'],
])('the first lines in the format of Docker: %s', async (regex, start) => {
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: docker(regex) }])
  expect(gaps).toEqual([])
  const custom = { start, condition: start, mode: 'halt_before', timeoutMs: 5000 }
  expect(resource.spec.sources).toMatchObject([{ multiline: { custom } }])
  expect(await lint(String(document))).toEqual([])
})

test.each(['^(?<log>.*)$', '(?<log>(?<="log":")(?=x).*?)(?<!\\\\)"'])('other first lines are a gap: %s', (regex) => {
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: docker(regex) }])
  expect(gaps).toMatchObject([{ subject: 'docker_mode_parser first', line: 7 }])
})

const shaped: readonly {
  readonly name: string
  readonly text: string
  readonly assert: string
  readonly from?: string
  readonly record?: string
  readonly reported?: readonly string[]
}[] = [
  {
    name: 'loki with keys and values',
    text: 'Name loki\n    Line_Format key_value\n    Remove_Keys gone',
    assert: '.message == "log=\\"a b\\" n=1"',
  },
  {
    name: 'loki with removed keys, which include the fields of labels',
    text: 'Name loki\n    Line_Format key_value\n    Labels app=$gone\n    Remove_Keys n',
    assert: '.message == "log=\\"a b\\""',
  },
  {
    name: 'loki without removed keys, so that the line repeats labels',
    text: 'Name loki\n    Line_Format key_value\n    Labels app=$gone\n    Label_Keys $n',
    assert: '.message == "gone=\\"x\\" log=\\"a b\\" n=1"',
  },
  {
    name: 'loki with keys and values of objects and arrays',
    record: '{"k":{"labels":{"app":"x y","n":[1,"a"],"deep":{"z":[{"q":1}]}},"none":null},"l":["a",{"b":true}]}',
    text: 'Name loki\n    Line_Format key_value',
    assert:
      '.message == s\'k="map[labels:"map[app:"x y" deep:{"z":[{"q":1}]} n:[1,"a"]]" none:null]" l="["a" "map[b:true]"]"\'',
  },
  {
    name: 'loki with the only key, an object',
    record: '{"k":{"a":"x"}}',
    text: 'Name loki\n    Line_Format key_value\n    Drop_Single_Key On',
    assert: '.message == s\'"map[a:"x"]"\'',
  },
  {
    name: 'loki with the members of an object as metadata',
    text: 'Name loki\n    Structured_Metadata_Map_Keys $none,$pod\n    Structured_Metadata s=$log',
    assert: '%metadata_maps == {}',
  },
  {
    name: 'loki with the only key',
    text: 'Name loki\n    Drop_Single_Key On\n    Remove_Keys gone, n',
    assert: '.message == "\\"a b\\""',
  },
  {
    name: 'loki with the only key unchanged',
    text: 'Name loki\n    Drop_Single_Key raw\n    Remove_Keys gone, n',
    assert: '.message == "a b"',
  },
  {
    name: 'loki with several keys, with the option for a single key',
    text: 'Name loki\n    Drop_Single_Key On',
    assert: '.message == "{\\"gone\\":\\"x\\",\\"log\\":\\"a b\\",\\"n\\":1}"',
  },
  {
    name: 'loki with the host as a label',
    text: 'Name loki\n    Labels host=${HOSTNAME}\n    Tenant_Id_Key log',
    assert: '%hostname == get_hostname!() && %tenant == "a b"',
  },
  {
    name: 'loki with a tenant for records without one',
    text: 'Name loki\n    Tenant_Id ops\n    Tenant_Id_Key $none',
    assert: '%tenant == "ops"',
  },
  {
    name: 'loki with a tenant for records with a number',
    text: 'Name loki\n    Tenant_Id ops\n    Tenant_Id_Key n',
    assert: '%tenant == "ops"',
  },
  {
    name: "Grafana's plugin with JSON",
    text: 'Name grafana-loki\n    Url http://loki:3100/loki/api/v1/push\n    LabelKeys gone',
    assert: '.message == "{\\"log\\":\\"a b\\",\\"n\\":1}"',
  },
  {
    name: "Grafana's plugin with keys and values, under the older name",
    text: 'Name loki\n    Url http://loki:3100/loki/api/v1/push\n    LineFormat key_value\n    RemoveKeys gone',
    assert: '.message == "log=\\"a b\\" n=1"',
  },
  {
    name: "Grafana's plugin with the only key",
    text: 'Name grafana-loki\n    Url http://loki:3100/loki/api/v1/push\n    RemoveKeys gone, n',
    assert: '.message == "a b"',
  },
  {
    name: "Grafana's plugin with the only key in JSON",
    text: 'Name grafana-loki\n    Url http://loki:3100\n    RemoveKeys gone, n\n    DropSingleKey false',
    assert: '.message == "{\\"log\\":\\"a b\\"}"',
  },
  {
    name: 'logdna with the record as a line',
    text: 'Name logdna\n    api_key k\n    tags a,b\n    app web\n    file /x',
    assert:
      '.message == "{\\"gone\\":\\"x\\",\\"log\\":\\"a b\\",\\"n\\":1}" && .app == "web" && .file == "/x" && !exists(.log)',
    reported: ['logdna: env'],
  },
  {
    name: 'chronicle with one field',
    text: 'Name chronicle\n    customer_id c8c65bfa-5f2c-42d4-9189-64bb7b939f2c\n    log_type T\n    log_key log\n    region UK',
    assert: '.message == "a b"',
  },
  {
    name: 'an index from a field',
    text: 'Name es\n    Index other\n    Target_Index logs-$gone',
    assert: '%index == "logs-x"',
  },
  {
    name: 'the other index for records without the field',
    text: 'Name opensearch\n    Index other-$n\n    Target_Index logs-$none',
    assert: '%index == "other-1"',
  },
  { name: 'a tag', text: 'Name es\n    Include_Tag_Key On\n    Tag_Key t', assert: '.t == "app.web"' },
  {
    name: 'a tag from the path',
    from: other,
    text: 'Name es\n    Include_Tag_Key On',
    assert: '."flb-key" == "app.srv.a.x.log"',
  },
  {
    name: 'tags of several inputs',
    from: other + input,
    text: 'Name datadog\n    apikey k\n    Include_Tag_Key On',
    assert: '.tagkey == "app.srv.a.x.log" && .message == "a b"',
  },
  {
    name: 'an index with the time of the request',
    text: 'Name es\n    Logstash_Format On\n    Logstash_DateFormat %Y\n    Current_Time_Index On',
    assert: '%index_date == format_timestamp!(now(), "%Y")',
  },
  {
    name: 'splunk with the value of a key and fields',
    text: 'Name splunk\n    Splunk_Token t\n    Event_Key $log\n    Event_Field number $n\n    Event_Field none $none',
    assert: '.event == "a b" && .fields == { "number": 1 }',
  },
  {
    name: 'splunk with an origin from fields, the tag and keys',
    text: 'Name splunk\n    Splunk_Token t\n    Event_Host $none\n    Event_Source $TAG/$gone\n    Event_Sourcetype _json\n    Event_Sourcetype_Key $none\n    Event_Index main\n    Event_Index_Key $gone',
    assert:
      '!exists(.host) && .source == "app.web/x" && .sourcetype == "_json" && .index == "x" && .event == {"gone":"x","log":"a b","n":1}',
  },
  {
    name: 'splunk with a number as the text of the event',
    text: 'Name splunk\n    Splunk_Token t\n    Event_Key $n',
    assert: '.event == "1"',
  },
  {
    name: 'splunk with the whole record for a missing key',
    text: 'Name splunk\n    Splunk_Token t\n    Event_Key $none',
    assert: '.event == {"gone":"x","log":"a b","n":1}',
  },
  {
    name: 'opensearch with an index from fields',
    text: 'Name opensearch\n    Index logs-$gone.$TAG[1]',
    assert: '%index == "logs-x.web"',
  },
  {
    name: 'kafka-rest with the tag',
    text: 'Name kafka-rest\n    Include_Tag_Key On\n    Time_Key at',
    assert: '.value."_flb-key" == "app.web" && exists(.value.at) && .value.n == 1',
  },
  { name: 'a file with the tag', text: 'Name file\n    Path /out\n    Format plain', assert: '%tag == "app.web"' },
  {
    name: 'a file with the time before the record',
    text: 'Name file\n    Path /out\n    File x',
    assert: 'match!(.message, r\'^app\\.web: \\[\\d+\\.\\d{9}, \\{"gone":"x","log":"a b","n":1\\}\\]$\')',
  },
  {
    name: 'a file with members',
    text: 'Name file\n    Path /out\n    File x\n    Format ltsv\n    Label_Delimiter comma',
    assert: 'match!(.message, r\'^"time",\\d+\\.\\d{6}\\t"gone","x"\\t"log","a b"\\t"n",1$\')',
  },
  {
    name: 'a file with members and a delimiter that Fluent Bit does not know',
    text: 'Name file\n    Path /out\n    File x\n    Format ltsv\n    Label_Delimiter =\n    Delimiter |',
    assert: 'match!(.message, r\'^"time":\\d+\\.\\d{6}\\t"gone":"x"\\t\')',
  },
  {
    name: 'a file with values',
    text: 'Name file\n    Path /out\n    File x\n    Format csv',
    assert: 'match!(.message, r\'^\\d+\\.\\d{9},"x","a b",1$\')',
  },
  {
    name: 'a file with a template',
    text: 'Name file\n    Path /out\n    File x\n    Format template\n    Template {time} {n}: {log} {none}',
    assert: "match!(.message, r'^\\d+\\.\\d{6} 1: a b \\{none\\}$')",
  },
]

const plainRecord = '{"log":"a b","n":1,"gone":"x"}'

test.each(shaped)('$name', async ({ text, assert, from = input, record = plainRecord, reported = [] }) => {
  const file = { file: 'fluent-bit.conf', text: `${from}[OUTPUT]\n    Match *\n    ${text}\n` }
  const { document, resource, gaps } = converted(convertFluentBit, [file])
  const at = resource.spec.sinks[0].inputs[0]
  const [first] = resource.spec.transforms
  // The record enters as a JSON line, after the transform that builds the record.
  const source = `${first.config.source}\n. = merge(object!(parse_json!(.log)), { "timestamp": now() })`
  document.setIn(['spec', 'transforms', 0, 'config', 'source'], source)
  const log = { message: record, file: '/srv/a/x.log' }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: first.name, input: { log }, expect: [{ at, assert }] }])
  expect(gaps.map(({ subject }) => subject)).toEqual(reported)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [
    "Labels env=${ENV}, app=$pod['app'], text=a-$log\n    Remove_Keys pod, $n",
    {
      labels: { env: 'SECRET[env.ENV]', app: '{{ pod.app }}', text: 'a-$log' },
      encoding: { codec: 'json', except_fields: ['pod', 'n'] },
    },
  ],
  [
    "Labels $app\n    Structured_Metadata trace=$trace_id\n    Remove_Keys stream, pod['labels']\n    Header X-Team a b",
    {
      encoding: { codec: 'json', except_fields: ['stream', 'pod.labels', 'app', 'trace_id'] },
      request: { headers: { 'X-Team': 'a b' } },
    },
  ],
  [
    'Structured_Metadata_Map_Keys $pod\n    Structured_Metadata a=b',
    { structured_metadata: { '*': '{{ %metadata_maps }}', a: 'b' }, encoding: { codec: 'json' } },
  ],
])('labels and metadata of loki: %s', async (text, config) => {
  const file = { file: 'fb.conf', text: `${input}[OUTPUT]\n    Name loki\n    Match *\n    ${text}\n` }
  const { document, resource, gaps } = converted(convertFluentBit, [file])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ config }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('headers of datadog', () => {
  const text = 'Name datadog\n    Match *\n    apikey k\n    Header X-A b c\n    Retry_Limit 2'
  const { resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: `${input}[OUTPUT]\n    ${text}\n` }])
  expect(resource.spec.sinks[0].config.request).toEqual({ retry_attempts: 2, headers: { 'X-A': 'b c' } })
  expect(gaps).toEqual([])
})

test('a user of splunk replaces the token', () => {
  const text = 'Name splunk\n    Match *\n    HTTP_User u\n    HTTP_Passwd p\n    Splunk_Token t\n    Channel c'
  const { resource } = converted(convertFluentBit, [{ file: 'fb.conf', text: `${input}[OUTPUT]\n    ${text}\n` }])
  const [{ config }] = resource.spec.sinks
  expect(config.auth).toEqual({ strategy: 'basic', user: 'u', password: 'p' })
  expect(config.request.headers).toEqual({ 'X-Splunk-Request-Channel': 'c' })
})

test('the members that logdna promotes stay in the record, or leave the line', async () => {
  const record = '{"log":"x","level":"warn","app":"own","meta":{"a":1}}'
  const run = async (option: string, line: string) => {
    const text = `${input}    Parser json\n[OUTPUT]\n    Name logdna\n    Match *\n    api_key k\n    ${option}\n`
    const { document, resource } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
    const at = resource.spec.sinks[0].inputs[0]
    const insertAt = resource.spec.transforms[0].name
    const assert = `.message == ${JSON.stringify(line)} && .app == "own" && .a == 1 && !exists(.level)`
    document.setIn(
      ['spec', 'tests'],
      [{ name: 'a', insertAt, input: { log: { message: record } }, expect: [{ at, assert }] }],
    )
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  }
  await run('file f', '{"app":"own","level":"warn","log":"x","meta":{"a":1}}')
  await run('exclude_promoted_keys on', '{"log":"x"}')
})

test.each([
  ['app.web', 'app.web', []],
  ['app.*', undefined, ['http: header_tag X-Tag']],
])('a header with the tag %s', async (tag, header, subjects) => {
  const from = `[INPUT]\n    Name tail\n    Tag ${tag}\n    Path /srv/*.log\n`
  const text = `${from}[OUTPUT]\n    Name http\n    Match *\n    Host h\n    Format json\n    Header_Tag X-Tag\n    Allow_Duplicated_Headers false\n`
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(resource.spec.sinks[0].config.request?.headers?.['X-Tag']).toBe(header)
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['Storage.Type filesystem', 'Name loki', { type: 'disk', max_size: 1_000_000_000 }, ['storage.type']],
  [
    'Storage.Type filesystem',
    'Name loki\n    storage.total_limit_size 2G',
    { type: 'disk', max_size: 2_000_000_000 },
    [],
  ],
  ['Storage.Type filesystem', 'Name null', undefined, []],
  ['Storage.Type memory', 'Name loki', undefined, []],
])('chunks of an input with %s wait in the buffer of the output %j', (line, text, buffer, subjects) => {
  const file = { file: 'fluent-bit.conf', text: `${input}    ${line}\n[OUTPUT]\n    Match *\n    ${text}\n` }
  const { resource, gaps } = converted(convertFluentBit, [file])
  expect(resource.spec.sinks[0].config?.buffer).toEqual(buffer)
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual(subjects.map((each) => [each, true]))
})

test.each([
  [
    'Name grafana-loki\n    Url http://u:${PASS}@loki:3100/other/push\n    Labels {job="fb", env="${ENV}"}\n    TenantID ops\n    BatchWait 2\n    MaxRetries 4',
    {
      endpoint: 'http://loki:3100',
      path: '/other/push',
      auth: { strategy: 'basic', user: 'u', password: 'SECRET[env.PASS]' },
      labels: { job: 'fb', env: 'SECRET[env.ENV]' },
      tenant_id: 'ops',
      batch: { timeout_secs: 2 },
      request: { retry_attempts: 4 },
    },
    [],
  ],
  [
    'Name loki\n    Url https://loki/loki/api/v1/push\n    AutoKubernetesLabels true',
    {
      endpoint: 'https://loki',
      labels: { job: 'fluent-bit', '*': '{{ kubernetes.labels }}', pod_name: '{{ kubernetes.pod_name }}' },
    },
    [],
  ],
  [
    'Name grafana-loki\n    Url http://loki\n    LabelMapPath /labels.json\n    Buffer true',
    { labels: { job: 'fluent-bit' } },
    ['grafana-loki: labelmappath', 'grafana-loki: buffer'],
  ],
])("the address of Grafana's plugin is that of the sink: %s", async (text, config, subjects) => {
  const file = { file: 'fluent-bit.conf', text: `${input}[OUTPUT]\n    Match *\n    ${text}\n` }
  const { document, resource, gaps } = converted(convertFluentBit, [file])
  expect(resource.spec.sinks).toMatchObject([{ type: 'log_aggregator', config }])
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['ecs', ['datadog: provider']],
  ['none', []],
])('the fields of a task become tags of Datadog, which is a gap: provider %s', (provider, subjects) => {
  const text = `${input}[OUTPUT]\n    Name datadog\n    Match *\n    apikey k\n    provider ${provider}\n`
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(subjects)
})

test('events of one namespace', () => {
  const events = '[INPUT]\n    Name kubernetes_events\n    Tag e\n    Kube_Namespace prod\n'
  const text = `${events}[OUTPUT]\n    Name stdout\n    Match *\n    Format json_lines\n`
  const { resource } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(resource.spec.sources[0]).toMatchObject({ type: 'orchestrator_events', config: { namespaces: ['prod'] } })
})

test.each([
  ['Host h\n    Path /p', 'http://h:9200/p'],
  // The id contains `es.io:443` and `abc`.
  ['Cloud_ID demo:ZXMuaW86NDQzJGFiYw==\n    Path /p', 'https://abc.es.io:443/p'],
])('the path follows the address of the search engine: %s', (text, endpoint) => {
  const file = { file: 'fb.conf', text: `${input}[OUTPUT]\n    Name es\n    Match *\n    ${text}\n` }
  const { resource, gaps } = converted(convertFluentBit, [file])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.endpoints).toEqual([endpoint])
})
