import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compileFiles } from '../../compile/config.ts'
import { lint as lintAndTest } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertFluentBit } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-fluent-bit-'))
afterAll(() => rmSync(folder, { recursive: true }))

function convert(text: string, file = 'fluent-bit.conf', others: Readonly<Record<string, string>> = {}) {
  const draft = new Draft()
  const included = (path: string) => (others[path] === undefined ? [] : [{ file: path, text: others[path] }])
  convertFluentBit([{ file, text }], included, draft)
  const document = draft.document({ name: 'converted' })
  return { document, gaps: draft.gaps, resource: document.toJSON() }
}

let written = 0
function lint(text: string): string[] {
  const file = join(folder, `${++written}.yaml`)
  const names = [...text.matchAll(/SECRET\[env\.(\w+)\]/g)].map(([, name]) => `    ${name}: x`)
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: converted-environment, namespace: penstock-system }\nstringData:\n${[...new Set(names)].join('\n')}\n`
  writeFileSync(file, names.length === 0 ? text : `${text}${secret}`)
  return compileFiles([file], { ownMachine: false }).problems.map(
    ({ path, message, help, rendered }) => `${path}: ${message} ${help ?? ''} ${rendered ?? ''}`,
  )
}

const tail = '[INPUT]\n    Name tail\n    Tag app\n    Path /srv/app.log\n'
const filter = (name: string, ...lines: string[]) =>
  `[FILTER]\n    Name ${name}\n    Match *\n${lines.map((line) => `    ${line}\n`).join('')}`
const output = '[OUTPUT]\n    Name null\n    Match *\n'

const records: { name: string; filters: string; record: object; assert?: string }[] = [
  {
    name: 'grep keeps',
    filters: filter('grep', 'Regex log ^warn'),
    record: { log: 'info\nwarn x' },
    assert: '.log == "info\\nwarn x"',
  },
  { name: 'grep drops', filters: filter('grep', 'Regex log ^warn'), record: { log: 'a warn' } },
  { name: 'grep drops a missing field', filters: filter('grep', 'Regex level .*'), record: { log: 'x' } },
  {
    name: 'grep excludes by a look-ahead',
    filters: filter('grep', "Exclude $kubernetes['pod_name'] ^web-(?!1)"),
    record: { kubernetes: { pod_name: 'web-2' } },
  },
  {
    name: 'grep decides at the first Regex that matches',
    filters: filter('grep', 'Regex log ^warn', 'Regex a ^2', 'Exclude log .'),
    record: { log: 'warn', a: '1' },
    assert: '.log == "warn" && .a == "1"',
  },
  {
    name: 'grep checks Exclude before Regex',
    filters: filter('grep', 'Exclude a ^1', 'Regex log ^warn'),
    record: { log: 'warn', a: '1' },
  },
  {
    name: 'grep with or',
    filters: filter('grep', 'Logical_Op or', 'Exclude a ^1', 'Exclude b ^2'),
    record: { a: '0', b: '2' },
  },
  {
    name: 'grep with and',
    filters: filter('grep', 'Logical_Op and', 'Exclude a ^1', 'Exclude b ^2'),
    record: { a: '0', b: '2' },
    assert: '.a == "0"',
  },
  {
    name: 'modify',
    filters: filter(
      'modify',
      'Rename log message',
      'Add log again',
      'Add message no',
      'Set env prod',
      'Remove_wildcard tmp',
      'Copy env e2',
    ),
    record: { log: 'x', tmp1: 1 },
    assert: '.message == "x" && .log == "again" && .env == "prod" && .e2 == "prod" && !exists(.tmp1)',
  },
  {
    name: 'modify with the older name of a rule',
    filters: filter('modify', 'Add_If_Not_Present a b', 'Add_If_Not_Present log no'),
    record: { log: 'x' },
    assert: '.a == "b" && .log == "x"',
  },
  {
    name: 'modify does not rename over a field',
    filters: filter('modify', 'Rename a b'),
    record: { a: '1', b: '2' },
    assert: '.a == "1" && .b == "2"',
  },
  {
    name: 'grep with an accessor without its sign',
    filters: filter('grep', "Regex kubernetes['labels']['app'] ^web"),
    record: { kubernetes: { labels: { app: 'web-1' } } },
    assert: '.kubernetes.labels.app == "web-1"',
  },
  {
    name: 'modify and record_modifier with words in quotes',
    filters:
      filter(
        'modify',
        "Condition Key_Value_Matches \"the log\" 'a b|c\\'d'",
        'Rename "the log" log',
        'Set note "say \\"hi\\" now"',
        "Set 'one field' 1",
        'Set empty ""',
      ) + filter('record_modifier', 'Record said "\\"hi\\" x"'),
    record: { 'the log': "c'd" },
    assert:
      '.log == "c\'d" && .note == "say \\"hi\\" now" && ."one field" == "1" && .empty == "" && .said == "\\"hi\\" x"',
  },
  {
    name: 'modify under a condition on a boolean',
    filters: filter(
      'modify',
      'Condition Key_Value_Matches ok ^tr',
      'Condition Key_Value_Does_Not_Match n .*',
      'Set hit yes',
    ),
    record: { log: 'y', ok: true, n: 1 },
    assert: '.hit == "yes"',
  },
  {
    name: 'modify under a condition',
    filters: filter('modify', 'Condition Key_Value_Matches log ^x', 'Set hit yes'),
    record: { log: 'y' },
    assert: '!exists(.hit)',
  },
  {
    name: 'nest',
    filters: filter('nest', 'Operation nest', 'Wildcard k_*', 'Nest_under k', 'Remove_prefix k_'),
    record: { k_a: 1, b: 2 },
    assert: '.k == {"a": 1} && .b == 2 && !exists(.k_a)',
  },
  {
    name: 'lift',
    filters: filter('nest', 'Operation lift', 'Nested_under k', 'Add_prefix p_'),
    record: { k: { a: 1 }, b: 2 },
    assert: '.p_a == 1 && .b == 2 && !exists(.k)',
  },
  {
    name: 'record_modifier',
    filters: filter('record_modifier', 'Record cluster a b', 'Remove_key secret'),
    record: { log: 'x', secret: 1 },
    assert: '.cluster == "a b" && !exists(.secret)',
  },
  {
    name: 'record_modifier with a list of fields',
    filters: filter('record_modifier', 'Allowlist_key log'),
    record: { log: 'x', other: 1 },
    assert: '.log == "x" && !exists(.other)',
  },
  {
    name: 'record_modifier with names that end in a star, in any case',
    filters: filter('record_modifier', 'Remove_key tmp_*', 'Remove_key Secret'),
    record: { log: 'x', TMP_a: 1, tmp_: 2, tmp: 3, secret: 4, secrets: 5 },
    assert: '. == { "log": "x", "tmp": 3, "secrets": 5, "timestamp": .timestamp }',
  },
  {
    name: 'record_modifier with a list of names that end in a star, in any case',
    filters: filter('record_modifier', 'Allowlist_key LOG', 'Allowlist_key k8s*'),
    record: { log: 'x', K8S_pod: 1, other: 2 },
    assert: '. == { "log": "x", "K8S_pod": 1, "timestamp": .timestamp }',
  },
  ...[
    { record: { pass_a: '***', pass_b: 'x' }, isMet: true },
    { record: { pass_a: '***' }, isMet: false },
    { record: { other: 'x' }, isMet: false },
  ].map(({ record, isMet }) => ({
    name: `modify if matching keys do not have matching values: ${JSON.stringify(record)}`,
    filters: filter('modify', 'Condition Matching_keys_do_not_have_matching_values ^pass ^\\*+$', 'Set hit yes'),
    record,
    assert: isMet ? '.hit == "yes"' : '!exists(.hit)',
  })),
  {
    name: 'type_converter',
    filters: filter(
      'type_converter',
      'int_key i i_s string',
      'uint_key i i_f float',
      'float_key f f_s string',
      'float_key f f_i int',
      'str_key s s_i int',
      'str_key s s_f float',
      'str_key w w_i int',
      'str_key i not string',
    ),
    record: { i: 42, f: 1.5, s: ' 12.5abc', w: 'word' },
    assert:
      '.i_s == "42" && .i_f == 42.0 && .f_s == "1.500000" && .f_i == 1 && .s_i == 12 && .s_f == 12.5 && .w_i == 0 && !exists(.not)',
  },
  {
    name: 'merge of a JSON line',
    filters: filter('kubernetes', 'Merge_Log On', 'Keep_Log Off'),
    record: { log: '{"a":1,"timestamp":"x"}' },
    assert: '.a == 1 && .log_timestamp == "x" && !exists(.log)',
  },
  {
    name: 'merge of a JSON line, under the older name of the option',
    filters: filter('kubernetes', 'Merge_JSON_Log On', 'Merge_Log_Key m'),
    record: { log: '{"a":1}' },
    assert: '.m == { "a": 1 } && exists(.log)',
  },
  {
    name: 'merge of a line that is not JSON',
    filters: filter('kubernetes', 'Merge_Log On', 'Keep_Log Off'),
    record: { log: 'plain' },
    assert: '.log == "plain"',
  },
  {
    name: 'merge under a field',
    filters: filter('kubernetes', 'Merge_Log On', 'Merge_Log_Key app'),
    record: { log: '{"a":1}' },
    assert: '.app == {"a": 1} && exists(.log)',
  },
  {
    name: 'parser of JSON',
    filters: filter('parser', 'Key_Name log', 'Parser json'),
    record: { log: '{"a":1}', b: 2 },
    assert: '.a == 1 && !exists(.log) && !exists(.b)',
  },
  {
    name: 'parser that keeps the rest',
    filters: filter('parser', 'Key_Name log', 'Parser json', 'Reserve_Data On', 'Preserve_Key On'),
    record: { log: '{"a":1}', b: 2 },
    assert: '.a == 1 && .b == 2 && exists(.log)',
  },
  {
    name: 'parser that does not match',
    filters: filter('parser', 'Key_Name log', 'Parser json'),
    record: { log: 'x', b: 2 },
    assert: '.log == "x" && .b == 2',
  },
  {
    name: 'parser of a regular expression',
    filters: `[PARSER]\n    Name web\n    Format regex\n    Regex ^(?<code>\\d+) (?<path>\\S*) \\[(?<time>[^\\]]+)\\]$\n    Time_Key time\n    Time_Format %d/%b/%Y:%H:%M:%S %z\n    Types code:integer\n${filter('parser', 'Key_Name log', 'Parser web')}`,
    record: { log: '200 /a [10/Oct/2025:13:55:36 +0200]' },
    assert: '.code == 200 && .path == "/a" && .timestamp == t\'2025-10-10T11:55:36Z\' && !exists(.time)',
  },
]

test.each(records)('the transforms produce the record of Fluent Bit: $name', ({ filters, record, assert }) => {
  const { document, resource, gaps } = convert(`${tail}${filters}${output}`)
  const made: { name: string; inputs: string[] }[] = resource.spec.transforms
  const at = made.at(-1)?.name
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'record',
        insertAt: made[1]?.name,
        input: { log: record },
        expect: [assert === undefined ? { at, count: 0 } : { at, assert }],
      },
    ],
  )
  expect(lint(String(document))).toEqual([])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
})

test('pods have the names that Fluent Bit gives them, and a path selects pods', () => {
  const { document, resource, gaps } = convert(
    `[INPUT]\n    Name tail\n    Tag kube.*\n    Path /var/log/containers/web*_shop_*.log\n    multiline.parser docker, cri\n[FILTER]\n    Name kubernetes\n    Match kube.*\n    K8S-Logging.Exclude On\n[OUTPUT]\n    Name null\n    Match *\n`,
  )
  expect(gaps).toEqual([])
  const names: string[] = resource.spec.transforms.map(({ name }: { name: string }) => name)
  const [first] = names
  const pod = (name: string, annotations: object) => ({
    log: {
      message: 'hello',
      stream: 'stdout',
      timestamp: '2026-01-01T00:00:00Z',
      orchestrator: {
        pod_name: name,
        pod_namespace: 'shop',
        container_name: 'c',
        container_id: 'containerd://abc',
        pod_labels: { app: 'web' },
        pod_annotations: annotations,
        pod_node_name: 'n1',
      },
    },
  })
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'a',
        insertAt: first,
        input: pod('web-1', {}),
        expect: [
          {
            at: names.at(-1),
            assert:
              '.log == "hello" && .kubernetes.pod_name == "web-1" && .kubernetes.namespace_name == "shop" && .kubernetes.docker_id == "abc" && .kubernetes.labels.app == "web" && .kubernetes.host == "n1" && .stream == "stdout" && !exists(.orchestrator) && !exists(.message)',
          },
        ],
      },
      { name: 'b', insertAt: first, input: pod('db-1', {}), expect: [{ at: names.at(-1), count: 0 }] },
      {
        name: 'c',
        insertAt: first,
        input: pod('web-1', { 'fluentbit.io/exclude': 'true' }),
        expect: [{ at: names.at(-1), count: 0 }],
      },
    ],
  )
  expect(lint(String(document))).toEqual([])
})

test('a Lua filter is a gap with its line, and a comment contains its text', () => {
  const { document, gaps } = convert(`${tail}${filter('lua', 'script a.lua', 'call f')}${output}`, 'f.conf', {
    'a.lua': 'function f(t, ts, r)\n  return 1, ts, r\nend',
  })
  expect(gaps).toEqual([
    {
      file: 'f.conf',
      line: 5,
      subject: 'filter lua',
      reason: 'Penstock does not run Lua',
      nearest: 'Rewrite the program as a remap transform; the comment contains its text.',
      isAbsent: true,
    },
  ])
  expect(String(document)).toContain('# function f(t, ts, r)')
  expect(lint(String(document))).toEqual([])
})

test('without the file of a Lua filter, the gap names it', () => {
  const { document, gaps } = convert(`${tail}${filter('lua', 'script /x/a.lua', 'call f')}${output}`)
  expect(gaps).toMatchObject([{ subject: 'filter lua', nearest: expect.stringContaining('`/x/a.lua` was not given') }])
  expect(String(document)).not.toContain('Its program')
})

test.each([
  ['an input', '[INPUT]\n    Name systemd\n    Tag host\n', output, 'input systemd', 1],
  ['an output', tail, '[OUTPUT]\n    Name kafka\n    Match *\n', 'output kafka', 5],
  ['an option', tail, '[OUTPUT]\n    Name loki\n    Match *\n    Label_Map_Path /a.json\n', 'loki: label_map_path', 8],
  ['an unknown plugin', tail, '[OUTPUT]\n    Name pigeon\n    Match *\n', 'output pigeon', 5],
  [
    'a pattern that matches some of several unknown tags',
    `${tail}${filter('rewrite_tag', 'Rule $log ^. got.$log[0] false')}`,
    '[OUTPUT]\n    Name null\n    Match got.a*\n[OUTPUT]\n    Name null\n    Match *\n',
    'Match got.a*',
    9,
  ],
  [
    'a variable in a filter',
    `${tail}${filter('record_modifier', 'Record node $'.concat('{NODE}'))}`,
    output,
    '$'.concat('{NODE}'),
    8,
  ],
])(
  '%s without a counterpart is a gap with line and nearest equivalent, and the output passes lint',
  (_, first, last, subject, line) => {
    const { document, gaps } = convert(`${first}${last}`)
    expect(gaps.map((gap) => [gap.subject, gap.line])).toContainEqual([subject, line])
    expect(gaps.every((gap) => gap.nearest.length > 0 && gap.reason.length > 0 && gap.line > 0)).toBe(true)
    expect(lint(String(document))).toEqual([])
  },
)

const wholes: { name: string; text: string; file?: string; sink: object; spec?: object }[] = [
  {
    name: 'loki',
    text: `[OUTPUT]\n    Name loki\n    Match *\n    Host loki\n    Labels job=fb, $kubernetes['namespace_name']\n    Remove_keys kubernetes,stream\n    Http_User u\n    Http_Passwd $\{PASS}\n    tls On\n    tls.verify Off\n`,
    sink: {
      type: 'log_aggregator',
      config: {
        endpoint: 'https://loki:3100',
        labels: { job: 'fb', kubernetes_namespace_name: '{{ kubernetes.namespace_name }}' },
        out_of_order_action: 'accept',
        encoding: { codec: 'json', except_fields: ['kubernetes', 'stream'] },
        auth: { strategy: 'basic', user: 'u', password: 'SECRET[env.PASS]' },
        tls: { verify_certificate: false, verify_hostname: false },
      },
    },
  },
  {
    name: 'es',
    text: '[OUTPUT]\n    Name es\n    Match *\n    Host es\n    Logstash_Format On\n    Logstash_Prefix k8s\n    Suppress_Type_Name On\n    Retry_Limit 5\n    Replace_Dots On\n',
    sink: {
      type: 'search_engine',
      config: {
        endpoints: ['http://es:9200'],
        bulk: { action: 'create', index: 'k8s-%Y.%m.%d' },
        encoding: { except_fields: ['timestamp'] },
        request: { retry_attempts: 5 },
      },
    },
  },
  {
    name: 'http',
    text: '[OUTPUT]\n    Name http\n    Match *\n    Host h\n    Port 8080\n    URI /in\n    Format json_lines\n    Header X-A b\n    Json_date_format iso8601\n',
    sink: {
      type: 'http',
      config: {
        uri: 'http://h:8080/in',
        encoding: { codec: 'json', except_fields: ['timestamp'] },
        framing: { method: 'newline_delimited' },
        request: { headers: { 'X-A': 'b' } },
      },
    },
  },
  {
    name: 'splunk',
    text: '[OUTPUT]\n    Name splunk\n    Match *\n    Host s\n    tls On\n    Splunk_Token abc\n    Event_Index main\n',
    sink: {
      type: 'http',
      config: {
        uri: 'https://s:8088/services/collector/event',
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        request: { headers: { Authorization: 'Splunk abc' } },
      },
    },
  },
  {
    name: 'datadog',
    text: '[OUTPUT]\n    Name datadog\n    Match *\n    Host http-intake.logs.datadoghq.eu\n    tls on\n    apikey k\n    dd_service web\n    dd_source x\n',
    sink: {
      type: 'monitor_a_logs',
      config: { default_api_key: 'k', endpoint: 'https://http-intake.logs.datadoghq.eu' },
    },
  },
  {
    name: 'nrlogs',
    text: '[OUTPUT]\n    Name nrlogs\n    Match *\n    license_key k\n',
    sink: { type: 'observability_d', config: { api: 'logs', license_key: 'k' } },
  },
  {
    name: 'newrelic',
    text: '[OUTPUT]\n    Name newrelic\n    Match *\n    licenseKey k\n    endpoint https://log-api.eu.newrelic.com/log/v1\n',
    sink: {
      type: 'observability_d',
      config: {
        api: 'logs',
        license_key: 'k',
        override_uri: 'https://log-api.eu.newrelic.com/log/v1',
        compression: 'gzip',
      },
    },
  },
  {
    name: 'kafka-rest',
    text: '[OUTPUT]\n    Name kafka-rest\n    Match *\n    Host proxy\n    Topic logs\n    Partition 3\n    Message_Key web\n',
    sink: {
      type: 'http',
      config: {
        uri: 'http://proxy:8082/topics/logs',
        payload_prefix: '{"records":',
        payload_suffix: '}',
        encoding: { codec: 'json' },
        request: { headers: { 'content-type': 'application/vnd.kafka.json.v2+json' } },
      },
    },
  },
  {
    name: 'azure',
    text: '[OUTPUT]\n    Name azure\n    Match *\n    Customer_ID c\n    Shared_Key c2hhcmVk\n    Log_Type web\n    Retry_Limit 4\n',
    sink: {
      type: 'cloud_monitor_logs',
      config: {
        customer_id: 'c',
        shared_key: 'c2hhcmVk',
        log_type: 'web',
        time_generated_key: '@timestamp',
        request: { retry_attempts: 4 },
      },
    },
  },
  {
    name: 'stdout',
    text: '[OUTPUT]\n    Name stdout\n    Match *\n    Format json_lines\n',
    sink: { type: 'console', config: { encoding: { codec: 'json', except_fields: ['timestamp'] } } },
  },
  {
    name: 'file',
    text: '[OUTPUT]\n    Name file\n    Match *\n    Path /out\n    File a.log\n    Format plain\n',
    sink: { type: 'file', config: { path: '/out/a.log', encoding: { codec: 'json', except_fields: ['timestamp'] } } },
  },
]

test.each(wholes)('the output $name becomes a sink that passes lint, without a gap', ({ text, sink }) => {
  const { document, resource, gaps } = convert(`${tail}${text}`)
  expect(resource.spec.sinks).toMatchObject([sink])
  expect(gaps).toEqual([])
  expect(lint(String(document))).toEqual([])
})

test.each([
  ['cri', '    Parser cri\n', '.message == "x" && .logtag == "F" && !exists(.log)', []],
  ['docker', '    Parser docker\n', '.log == "x" && .stream == "stderr" && !exists(.logtag)', []],
  ['none', '', '.log == "x"', ['tail: no parser of the runtime']],
  ['another', '    Parser syslog-rfc3164\n', '.log == "x"', ['tail: parser syslog-rfc3164']],
  ['JSON', '    Parser json\n', '.log == "x" && .stream == "stderr" && exists(.time)', ['tail: parser json']],
  [
    'java',
    '    multiline.parser cri, java\n',
    '.log == "x" && ._p == "F"',
    ['multiline.parser java', 'multiline.parser java'],
  ],
])('pod logs have the fields of the parser: %s', (_, line, assert, subjects) => {
  const input = `[INPUT]\n    Name tail\n    Tag kube.*\n    Path /var/log/containers/*.log\n${line}`
  const { document, resource, gaps } = convert(`${input}${output}`)
  const at = resource.spec.transforms[0].name
  const record = { message: 'x', stream: 'stderr', timestamp: '2026-01-01T00:00:00Z' }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: at, input: { log: record }, expect: [{ at, assert }] }])
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(lint(String(document))).toEqual([])
})

test('an invalid pattern gives a gap and a step that passes events unchanged, with its program in the comment', () => {
  const text = `${tail}${filter('grep', 'Regex log ^(a')}${output}`
  const { document, gaps, resource } = convert(text)
  expect(gaps).toMatchObject([{ line: 5, subject: 'filter grep', reason: expect.stringContaining('is not valid') }])
  expect(resource.spec.transforms.at(-1)).toMatchObject({ type: 'remap', config: { source: '.' } })
  expect(String(document)).toContain('# (is_string(.log) && is_object(parse_grok(string(.log) ?? "", s\'^(a\')')
  expect(lint(String(document))).toEqual([])
})

test('rules of a multiline parser with look-ahead are a gap with the reason', () => {
  const rules =
    '[MULTILINE_PARSER]\n    Name own\n    Type regex\n    Rule "start_state" "/^(?=a)/" "cont"\n    Rule "cont" "/^ /" "cont"\n'
  const { document, gaps } = convert(`${rules}${tail}    multiline.parser own\n${output}`)
  expect(gaps).toMatchObject([
    { line: 1, subject: 'multiline_parser own', reason: expect.stringContaining('A pattern is not valid') },
  ])
  expect(lint(String(document))).toEqual([])
})

test.each([
  [
    'a rule that excludes lines that begin like the first one',
    ['"start_state" "/^\\d+ (a|b)/" "cont"', '"cont" "/^(?!\\d+ (a|b)).*/" "cont"'],
    { start: '(?m)^\\d+ (a|b)', condition: '(?m)^(?:\\d+ (a|b))', mode: 'halt_before', timeoutMs: 4000 },
    1,
  ],
  [
    'rules that are the same in all states',
    ['"start_state" "/^E/" "one"', '"one, two" "/^ at/" "two"', '"one, two" "/^Caused/" "one"'],
    { start: '(?m)^E', condition: '(?:(?m)^ at)|(?:(?m)^Caused)', mode: 'continue_through', timeoutMs: 4000 },
    1,
  ],
  [
    'rules of only one state',
    ['"start_state" "/^E/" "one"', '"one" "/^ at/" "two"', '"two" "/^Caused/" "one"'],
    { start: '(?m)^E', condition: '(?:(?m)^ at)|(?:(?m)^Caused)', mode: 'continue_through', timeoutMs: 4000 },
    2,
  ],
])('a machine of %s becomes two patterns', (_, rules, custom, reports) => {
  const parser = `[MULTILINE_PARSER]\n    Name own\n    Type regex\n${rules.map((rule) => `    Rule ${rule}\n`).join('')}`
  const pods = '[INPUT]\n    Name tail\n    Tag t\n    Path /var/log/containers/*.log\n    multiline.parser cri, own\n'
  const { document, resource, gaps } = convert(`${parser}${pods}${output}`)
  expect(resource.spec.sources[0].multiline).toEqual({ custom })
  expect(gaps.map(({ isReplaced }) => isReplaced)).toEqual(Array(reports).fill(true))
  expect(lint(String(document))).toEqual([])
})

test('texts with braces, quotes and control characters stay texts', () => {
  const { document, resource } = convert(
    `${tail}${filter('record_modifier', 'Record a {{ x }} "q" \\u001f \u001f')}${output}`,
  )
  expect(lint(String(document))).toEqual([])
  expect(resource.spec.transforms.at(-1).config.source).toBe('.a = "\\{\\{ x \\}\\} \\"q\\" \\\\u001f \\u{1f}"')
})

test('empty lines are filtered where Fluent Bit skipped them', () => {
  const { resource } = convert(`${tail}    Skip_Empty_Lines On\n${output}`)
  expect(resource.spec.transforms[0]).toMatchObject({ type: 'filter', config: { condition: '.message != ""' } })
})

test('records with a new tag start again at the first filter, and reach the outputs of that tag', () => {
  const rewrite = filter(
    'rewrite_tag',
    'Rule $log ^E errors false',
    'Rule $log ^W warn.$TAG true',
    'Emitter_Name re',
    'Rule $log ^. others.$1 false',
  )
  const { document, resource, gaps } = convert(
    `${tail}[FILTER]\n    Name record_modifier\n    Match errors\n    Record team ops\n${rewrite.replace('Match *', 'Match app')}${[
      ['Name loki', 'Match errors', 'Host errors'],
      ['Name loki', 'Match warn.*', 'Host warnings'],
      ['Name loki', 'Match app', 'Host app'],
    ]
      .map((lines) => `[OUTPUT]\n${lines.map((line) => `    ${line}\n`).join('')}`)
      .join('')}`,
  )
  expect(gaps).toEqual([])
  const sinkTo = (host: string) =>
    resource.spec.sinks.find(({ config }: { config: { endpoint: string } }) => config.endpoint.includes(host))
  const before = (host: string) => sinkTo(host).inputs[0] as string
  const [errors, warnings, app] = [before('errors'), before('warnings'), before('//app')]
  const entry = resource.spec.transforms[0].name as string
  const cases = (line: string, expected: Readonly<Record<string, number>>) => ({
    name: line,
    insertAt: entry,
    input: { log: { message: line } },
    expect: Object.entries(expected).map(([at, count]) =>
      count === 0 ? { at, count } : { at, assert: `.log == "${line}"` },
    ),
  })
  document.setIn(
    ['spec', 'tests'],
    [
      cases('E1', { [errors]: 1, [warnings]: 0, [app]: 0 }),
      cases('W1', { [errors]: 0, [warnings]: 1, [app]: 1 }),
      cases('I1', { [errors]: 0, [warnings]: 0, [app]: 0 }),
    ],
  )
  expect(lint(String(document))).toEqual([])
  expect(String(document)).toContain('.team = "ops"')
})

test('a rule that matches its own result ends with a gap', () => {
  const loops = filter('rewrite_tag', 'Rule $log ^. app true') + filter('rewrite_tag', 'Rule $log ^. app true')
  const { document, gaps } = convert(`${tail}${loops}${output}`)
  expect(gaps.map(({ reason }) => reason)).toContain('rules would rewrite the tag of a record more than 4 times')
  expect(lint(String(document))).toEqual([])
})

const shaped: readonly { readonly name: string; readonly text: string; readonly assert: string }[] = [
  {
    name: 'kafka-rest: the envelope of the proxy',
    text: 'Name kafka-rest\n    Partition 3\n    Message_Key web',
    assert:
      '. == { "key": "web", "partition": 3, "value": { "log": "x", "n": 1, "@timestamp": "2026-01-01T00:00:00.250Z" } }',
  },
  {
    name: 'kafka-rest: a time with another format and field',
    text: 'Name kafka-rest\n    Time_Key at\n    Time_Key_Format %H:%M:%S',
    assert: '. == { "value": { "log": "x", "n": 1, "at": "00:00:00.250Z" } }',
  },
  {
    name: 'azure: the time is a field',
    text: 'Name azure\n    Customer_ID c\n    Shared_Key c2hhcmVk\n    Time_Key at',
    assert: '. == { "log": "x", "n": 1, "at": t\'2026-01-01T00:00:00.250Z\' }',
  },
]
test.each(shaped)('$name', async ({ text, assert }) => {
  const { document, resource, gaps } = convert(`${tail}[OUTPUT]\n    Match *\n    ${text}\n`)
  const at = resource.spec.sinks[0].inputs[0]
  // Fields in unit tests are texts, but the time of an event is not.
  const last = resource.spec.transforms.length - 1
  const [before] = resource.spec.transforms[last].inputs
  const typed = {
    name: 'typed',
    type: 'remap',
    inputs: [before],
    config: { source: '.timestamp = parse_timestamp!(.timestamp, "%+")' },
  }
  document.addIn(['spec', 'transforms'], typed)
  document.setIn(['spec', 'transforms', last, 'inputs'], ['typed'])
  const log = { log: 'x', n: 1, timestamp: '2026-01-01T00:00:00.25Z' }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: 'typed', input: { log }, expect: [{ at, assert }] }])
  expect(gaps).toEqual([])
  expect(await lintAndTest(String(document))).toEqual([])
})

test('sample records become lines of demo_logs, with the fields of the record', async () => {
  const dummy =
    '[INPUT]\n    Name dummy\n    Tag t\n    Dummy {"message": "m", "n": {"a": 1}}\n    Rate 5\n    Samples 7\n'
  const { document, resource, gaps } = convert(`${dummy}${output}`)
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toEqual([
    {
      name: 'dummy-input',
      type: 'demo_logs',
      config: { format: 'shuffle', lines: ['{"message":"m","n":{"a":1}}'], interval: 0.2, count: 7 },
    },
  ])
  const at = resource.spec.transforms[0].name
  const log = { message: '{"message":"m","n":{"a":1}}', host: 'h', timestamp: '2026-01-01T00:00:00Z' }
  const assert = '. == { "message": "m", "n": { "a": 1 }, "timestamp": "2026-01-01T00:00:00Z" }'
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: at, input: { log }, expect: [{ at, assert }] }])
  expect(await lintAndTest(String(document))).toEqual([])
})

test('a file with queries that cannot be read is a gap', () => {
  const { gaps } = convert(`[SERVICE]\n    Flush 1\n    Streams_File streams.conf\n${tail}${output}`)
  expect(gaps.map(({ line, subject }) => [line, subject])).toEqual([[3, 'streams.conf']])
})
