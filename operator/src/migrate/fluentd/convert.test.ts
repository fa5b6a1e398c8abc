// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Converted Fluentd configurations: the output for an event, gaps, and the reading of files.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertFluentd } from './convert.ts'
import { readFluentd } from './syntax.ts'
import { matchOf } from './tags.ts'

const convert = (text: string) => converted(convertFluentd, [{ file: 'fluent.conf', text }])

const pods = `<source>
  @type tail
  path /var/log/containers/*.log
  tag kubernetes.*
  <parse>
    @type cri
  </parse>
</source>
`
const files =
  '<source>\n  @type tail\n  path /srv/app.log\n  tag app.log\n  <parse>\n    @type json\n  </parse>\n</source>\n'
const filter = (type: string, ...lines: string[]) =>
  `<filter **>\n  @type ${type}\n${lines.map((line) => `  ${line}\n`).join('')}</filter>\n`
const end = '<match **>\n  @type null\n</match>\n'

const time = '2026-11-24T10:11:12.5Z'
const line = (message: string) => ({
  message,
  stream: 'stdout',
  timestamp: time,
  orchestrator: {
    pod_name: 'web-1',
    pod_namespace: 'shop',
    container_name: 'web',
    container_id: 'containerd://abc',
    pod_labels: { 'app.kubernetes.io/name': 'web' },
  },
})

test.each([
  {
    name: 'the record of a pod',
    text: pods,
    event: line('x'),
    expected: { message: 'x', stream: 'stdout', logtag: 'F' },
  },
  {
    name: 'docker',
    text: pods.replace('@type cri', '@type json\n    time_format %Y-%m-%dT%H:%M:%S.%NZ'),
    event: line('x'),
    expected: { log: 'x', stream: 'stdout' },
  },
  {
    name: 'pod metadata',
    text: pods + filter('kubernetes_metadata', 'de_dot true'),
    event: line('x'),
    expected: {
      docker: { container_id: 'abc' },
      'kubernetes.labels': { 'app_kubernetes_io/name': 'web' },
    },
  },
  {
    name: 'values come from the incoming record',
    text:
      files +
      filter(
        'record_transformer',
        'enable_ruby true',
        'remove_keys c',
        '<record>',
        '  a ${record["b"]}',
        '  b ${record["a"]}',
        '  t ${tag}',
        '  p ${tag_parts[1]}-x',
        '  l ${record["lev"] || "info"}',
        '  u ${record["n"]["m"].upcase}',
        '</record>',
      ),
    event: { message: '{"a":1,"b":"two","c":3,"n":{"m":"deep"}}', timestamp: time },
    expected: { a: 'two', b: 1, t: 'app.log', p: 'log-x', l: 'info', u: 'DEEP' },
  },
  {
    name: 'Ruby operators and methods',
    text:
      files +
      filter(
        'record_transformer',
        'enable_ruby true',
        '<record>',
        '  ms ${record["took"] * 1000}',
        '  urgency ${record["level"] == "error" ? "high" : "low"}',
        '  text ${record["msg"].to_s.gsub(/secret=\\S+/, "secret=***")}',
        '  next ${record.key?("user") ? record["user"]["id"].to_i + 1 : nil}',
        '  none ${record.dig("k", "l")&.downcase || "none"}',
        '  part ${tag_parts.last}-${record["path"].split("/").first}',
        '  both ${!record["x"].nil? && record["msg"].include?("a")}',
        '  found ${record["msg"] =~ /^A/i ? 1 : 2}',
        '  size is-${record["n"] > 5 ? "big" : "small"}',
        '</record>',
      ),
    event: {
      message: '{"took":2,"level":"error","msg":"a secret=x b","user":{"id":"6"},"path":"top/low","x":1,"n":6}',
      timestamp: time,
    },
    expected: {
      ms: 2000,
      urgency: 'high',
      text: 'a secret=*** b',
      next: 7,
      none: 'none',
      part: 'log-top',
      both: true,
      found: 1,
      size: 'is-big',
    },
  },
  {
    name: 'the tag of a file in its path',
    text: `${files.replace('tag app.log', 'tag app.*').replace('/srv/app.log', '/srv/*/x.log')}<match app.srv.b.**>\n  @type null\n</match>\n<match app.**>\n  @type stdout\n  <inject>\n    tag_key tag\n  </inject>\n</match>\n`,
    event: { message: '{"a":1}', file: '/srv/a/x.log', timestamp: time },
    expected: undefined,
  },
  {
    name: 'Loki labels are removed from the line, which has keys and values',
    text: `${files}<match **>\n  @type loki\n  url http://loki\n  <label>\n    level\n  </label>\n</match>\n`,
    event: { message: '{"level":"warn","a":"b c","n":1,"q":"x\\"y"}', timestamp: time },
    expected: { message: 'a="b c" n=1 q=x\\"y', level: 'warn' },
  },
  {
    name: 'keys and fields of Splunk',
    text: `${files}<match **>\n  @type splunk_hec\n  hec_host s\n  hec_token t\n  host_key h\n  event_key e\n  <fields>\n    pod\n    ns $.k.n\n  </fields>\n</match>\n`,
    event: { message: '{"h":"web","e":{"a":1},"pod":"p","k":{"n":"shop"}}', timestamp: time },
    expected: { host: 'web', event: { a: 1 }, fields: { pod: 'p', ns: 'shop' } },
  },
  {
    name: 'a field for the time',
    text: files.replace(
      '@type json',
      '@type json\n    time_key at\n    time_type string\n    time_format %Y-%m-%d %H:%M:%S',
    ),
    event: { message: '{"a":1,"at":"2020-01-02 03:04:05"}', timestamp: time },
    expected: { a: 1, timestamp: '2020-01-02T03:04:05Z' },
  },
  {
    name: 'seconds since 1970',
    text: files,
    event: { message: '{"a":1,"time":1577934245.5}', timestamp: time },
    expected: { a: 1, timestamp: '2020-01-02T03:04:05.5Z' },
  },
  {
    name: 'an expression with types',
    text:
      files +
      filter(
        'parser',
        'key_name log',
        'reserve_data true',
        'remove_key_name_field true',
        'inject_key_prefix in_',
        '<parse>',
        '  @type regexp',
        '  expression /^(?<code>\\d+) (?<rest>.*)$/',
        '  types code:integer',
        '</parse>',
      ),
    event: { message: '{"log":"200 OK","a":1}', timestamp: time },
    expected: { a: 1, in_code: 200, in_rest: 'OK' },
  },
  {
    name: 'a strict parser drops lines that do not match',
    text: files + filter('parser', 'key_name log', '<parse>', '  @type json', '</parse>'),
    event: { message: '{"log":"no JSON"}', timestamp: time },
    expected: undefined,
  },
  {
    name: 'a parser without a place for errors drops lines that do not match, too',
    text:
      files +
      filter('parser', 'key_name log', 'emit_invalid_record_to_error false', '<parse>', '  @type json', '</parse>'),
    event: { message: '{"log":"no JSON"}', timestamp: time },
    expected: undefined,
  },
  {
    name: 'a parser that keeps other fields keeps lines that do not match',
    text: files + filter('parser', 'key_name log', 'reserve_data true', '<parse>', '  @type json', '</parse>'),
    event: { message: '{"log":"no JSON","a":1}', timestamp: time },
    expected: { log: 'no JSON', a: 1 },
  },
  {
    name: 'a parser that keeps other fields keeps events without the field',
    text:
      files +
      filter(
        'parser',
        'key_name log',
        'reserve_data true',
        'hash_value_field parsed',
        '<parse>',
        '  @type json',
        '</parse>',
      ),
    event: { message: '{"a":1}', timestamp: time },
    expected: { a: 1, parsed: {} },
  },
  {
    name: 'a parser that reports no errors keeps lines that do not match, too',
    text:
      files +
      filter(
        'parser',
        'key_name log',
        'reserve_data true',
        'emit_invalid_record_to_error false',
        '<parse>',
        '  @type json',
        '</parse>',
      ),
    event: { message: '{"log":"no JSON"}', timestamp: time },
    expected: { log: 'no JSON' },
  },
  {
    name: 'a line that does not match is dropped',
    text: files,
    event: { message: 'no JSON', timestamp: time },
    expected: undefined,
  },
  {
    name: 'a line that does not match is in a field',
    text: files.replace('  <parse>', '  emit_unmatched_lines true\n  <parse>'),
    event: { message: 'no JSON', timestamp: time },
    expected: { unmatched_line: 'no JSON' },
  },
  {
    name: 'a field of record_modifier reads those before it',
    text:
      files +
      filter(
        'record_modifier',
        '<record>',
        '  a ${record["b"].upcase}',
        '  c ${record["a"]}-${record["b"]}',
        '</record>',
      ),
    event: { message: '{"b":"x"}', timestamp: time },
    expected: { a: 'X', b: 'x', c: 'X-x' },
  },
  {
    name: 'a field of record_transformer reads those of the incoming record',
    text:
      files +
      filter('record_transformer', 'enable_ruby true', '<record>', '  a new', '  c ${record["a"]}', '</record>'),
    event: { message: '{"a":"old"}', timestamp: time },
    expected: { a: 'new', c: 'old' },
  },
  {
    name: 'grep reads numbers as texts',
    text:
      files +
      filter(
        'grep',
        '<regexp>',
        '  key code',
        '  pattern /^2/',
        '</regexp>',
        '<exclude>',
        '  key $.n.m',
        '  pattern x',
        '</exclude>',
      ),
    event: { message: '{"code":204,"n":{"m":"y"}}', timestamp: time },
    expected: { code: 204 },
  },
  {
    name: 'grep drops',
    text: files + filter('grep', 'exclude1 code ^2'),
    event: { message: '{"code":204}', timestamp: time },
    expected: undefined,
  },
  {
    name: 'a tag of a pod',
    text: `${pods}<match kubernetes.var.log.containers.**_shop_**>\n  @type stdout\n  <inject>\n    tag_key tag\n  </inject>\n</match>\n`,
    event: line('x'),
    expected: { message: 'x', tag: 'kubernetes.var.log.containers.web-1_shop_web-abc.log' },
  },
  {
    name: 'another tag of a pod',
    text: `${pods}<match kubernetes.var.log.containers.**_cart_**>\n  @type stdout\n</match>\n`,
    event: line('x'),
    expected: undefined,
  },
  {
    name: 'a rule that inverts',
    text: `${files}<match app.**>\n  @type rewrite_tag_filter\n  <rule>\n    key level\n    pattern /debug/\n    invert true\n    tag kept\n  </rule>\n</match>\n<match kept>\n  @type null\n</match>\n`,
    event: { message: '{"level":"debug"}', timestamp: time },
    expected: undefined,
  },
])('an event: $name', async ({ text, event, expected }) => {
  const { document, resource, gaps } = convert(text.includes('<match') ? text : text + end)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['', ['master_url, namespace_id']],
  ['skip_master_url true', ['namespace_id']],
  ['skip_namespace_metadata true', ['master_url']],
  ['skip_master_url true\n  skip_namespace_metadata true', []],
])('fields of the filter for pods that the source does not know are reported: %j', (options, fields) => {
  const { gaps } = convert(pods + filter('kubernetes_metadata', options) + end)
  expect(gaps.map(({ subject }) => subject)).toEqual(fields.map((names) => `kubernetes_metadata: ${names}`))
})

test('included files are inserted at the include statement, and missing files are gaps', () => {
  const draft = new Draft()
  const others: Readonly<Record<string, string>> = { 'conf.d/*.conf': filter('grep', 'regexp1 a b') }
  const included = (path: string) => (others[path] === undefined ? [] : [{ file: path, text: others[path] }])
  convertFluentd(
    [{ file: 'fluent.conf', text: `${files}@include conf.d/*.conf\n@include gone.conf\n${end}` }],
    included,
    draft,
  )
  const missing = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(missing).toMatchObject([{ subject: '@include gone.conf', line: 10, reason: 'the file cannot be read' }])
  expect(draft.document({ name: 'a' }).toString()).toContain('grep-filter')
})

test('values can span lines, and contain quotes, brackets and comment characters', () => {
  const { parts, remarks } = readFluentd(
    `<match a{b,c}.**> # why
  @type http
  password "#{ENV["PASS"]}" # no comment in it
  text "two
lines \\"quoted\\" # no comment"
  list ["a",
    "b"]
  pattern /a#b/   # a comment
  when #{1 + 1}
  colour '#{no} #fff'
</match>
`,
    'f',
  )
  const [element] = parts
  expect(element).toMatchObject({ name: 'match', argument: 'a{b,c}.**', line: 1 })
  const values = element !== undefined && 'parameters' in element ? element.parameters : []
  expect(Object.fromEntries(values.map(({ key, value }) => [key, value]))).toEqual({
    '@type': 'http',
    password: '${PASS}',
    text: 'two\nlines "quoted" # no comment',
    list: '["a",\n    "b"]',
    pattern: '/a#b/',
    when: '#{1 + 1}',
    colour: '#{no} #fff',
  })
  expect(remarks).toMatchObject([{ subject: '#{1 + 1}', line: 9 }])
})

test.each([
  ['<source>\n  @type tail\n', '`</source>` is missing'],
  ['</source>\n', 'there is no open element with this name'],
  ['path /x\n', 'a parameter is outside of all elements'],
])('invalid text is a gap: %j', (text, reason) => {
  expect(readFluentd(text, 'f').remarks.map((remark) => remark.reason)).toEqual([reason])
})

test.each([
  ['kubernetes.*', '**', 'all'],
  ['kubernetes.*', 'kubernetes.**', 'all'],
  ['kubernetes.*', 'app.** kubernetes.**', 'all'],
  ['kubernetes.*', 'kubernetes.*', 'some'],
  ['kubernetes.*', 'kubernetes.var.log.containers.**_shop_**', 'some'],
  ['kubernetes.*', 'other.**', 'none'],
  ['a.b.c', 'a.**', 'all'],
  ['a', 'a.**', 'all'],
  ['a.b.c', '**.c', 'all'],
  ['a.b.c', 'a.*', 'none'],
  ['a.b.c', 'a.*.c', 'all'],
  ['a.b', 'a.{b,c}', 'all'],
] as const)('events of the tag %s and the pattern %s: %s', (text, pattern, match) => {
  expect(matchOf({ text, isOfPods: true }, pattern)).toBe(match)
})

test('gaps contain the file, the line, the reason and the action to take', () => {
  const { gaps } = convert(`<source>
  @type forward
</source>
<filter **>
  @type lua_like
</filter>
<match **>
  @type http
  endpoint http://a/\${tag_suffix[1]}
  odd_option 1
</match>
<match never>
  @type null
</match>
`)
  expect(gaps.map(({ line, subject, reason }) => `${line} ${subject}: ${reason}`)).toEqual([
    '1 source forward: there is no source that listens for this protocol',
    '4 filter lua_like: the plugin is unknown',
    '10 http: odd_option: the option `odd_option` has no counterpart',
    '7 http: http://a/${tag_suffix[1]}: the address contains parts of tags',
    '12 match never: an earlier match consumes all events that match it, so it receives nothing in Fluentd either',
  ])
})

test.each([
  ['n_lines 2', undefined, ['concat', 'concat: n_lines']],
  ['multiline_end_regexp /;$/', undefined, ['concat']],
  ['multiline_end_regexp /\\n$/', undefined, []],
  [
    'multiline_start_regexp /^a/',
    { start_pattern: '^a', condition_pattern: '^a', mode: 'halt_before', timeout_ms: 60_000 },
    [],
  ],
  [
    'multiline_start_regexp /^a/\n  continuous_line_regexp /^ /',
    { start_pattern: '(?m)^a', condition_pattern: '(?m)^ ', mode: 'continue_through', timeout_ms: 60_000 },
    [],
  ],
])('the source joins lines with %j', async (lines, multiline, subjects) => {
  const lone = files.replace('@type json', '@type none')
  const { document, resource, gaps } = convert(
    `${lone}${filter('concat', 'key message', 'use_first_timestamp true', lines)}${end}`,
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(resource.spec.sources[0].config.multiline).toEqual(multiline)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['java', 'at a.b', true],
  ['python', '  File', true],
  ['all', 'goroutine 1 [running]:', true],
  ['ruby', 'at a.b', false],
])('detect_exceptions for %s uses the rules of the plugin', (name, line, isMet) => {
  const { resource, gaps } = convert(
    `${files.replace('@type json', '@type none')}<match app.log>\n  @type detect_exceptions\n  languages ${name}\n  @label @OUT\n</match>\n<label @OUT>\n  <match **>\n    @type null\n  </match>\n</label>\n`,
  )
  const { condition_pattern: condition } = resource.spec.sources[0].config.multiline
  expect(new RegExp(condition).test(name === 'java' ? `\t${line}` : line)).toBe(isMet)
  expect(gaps).toMatchObject([{ subject: 'detect_exceptions', isReplaced: true }])
})
