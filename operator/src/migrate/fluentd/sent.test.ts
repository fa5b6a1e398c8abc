// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The events that outputs of Fluentd send: fields that the plugin adds only to records without them, times from fields, and the sink's
// options for each request.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const source =
  '<source>\n  @type tail\n  path /srv/app.log\n  tag team.app\n  <parse>\n    @type json\n  </parse>\n</source>\n'
const time = '2026-11-24T10:11:12.25Z'
const given = (lines: string) => ({
  file: 'fluent.conf',
  text: `${source}<match **>\n${lines.replace(/^(?=.)/gm, '  ')}\n</match>\n`,
})
const missing = <One extends { isReplaced?: true }>(gaps: readonly One[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true)

const search = '@type elasticsearch\nhost es\n'
const datadog = '@type datadog\napi_key k\nservice web\ndd_tags env:prod\n'

test.each<[about: string, lines: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'a record without a time gets one',
    `${search}logstash_format true`,
    { a: 1 },
    { '"@timestamp" == .timestamp && .a': 1 },
  ],
  [
    'the time of a record stays, and is that of the event',
    `${search}logstash_format true`,
    { '@timestamp': '2026-01-02T03:04:05.678Z' },
    { '"@timestamp"': '2026-01-02T03:04:05.678Z', timestamp: '2026-01-02T03:04:05.678Z' },
  ],
  [
    'a field that is not a time stays, and the event keeps its own time',
    `${search}logstash_format true`,
    { '@timestamp': 'soon' },
    { '"@timestamp"': 'soon', timestamp: time },
  ],
  [
    'a field has the time',
    `${search}logstash_format true\ntime_key at`,
    { at: '2026-01-02 03:04:05.5 +0100' },
    { at: '2026-01-02 03:04:05.5 +0100', timestamp: '2026-01-02T02:04:05.5Z' },
  ],
  [
    'a field has the time in a format of its own',
    `${search}include_timestamp true\ntime_key at\ntime_key_format %d.%m.%Y %H:%M %z`,
    { at: '02.01.2026 03:04 +0000' },
    { timestamp: '2026-01-02T03:04:00Z' },
  ],
  [
    'a number of seconds is a time',
    `${search}logstash_format true\ntime_key at`,
    { at: 1.5 },
    { timestamp: '1970-01-01T00:00:01.5Z' },
  ],
  [
    'the field stays without `@timestamp`',
    `${search}logstash_format true\ntime_key at\ntime_key_exclude_timestamp true`,
    { at: 1.5 },
    { '"@timestamp" == null && .at': 1.5 },
  ],
  [
    'the index is that of a field, in lower case, and the field is gone',
    `${search}target_index_key idx\nindex_name Rest`,
    { idx: 'Team-A', a: 1 },
    { 'idx == null && .a == 1 && %index': 'team-a' },
  ],
  [
    'without the field, the index has its prefix and date',
    `${search}target_index_key $.k.idx\nlogstash_format true\nlogstash_prefix Team`,
    { k: {} },
    { 'k == {} && %index': 'team-2026.11.24' },
  ],
  [
    'fields for the service',
    datadog,
    { log: 'x', service: 'own' },
    {
      log: 'x',
      service: 'own',
      ddtags: 'env:prod',
      'hostname == get_hostname!() && ."@timestamp"': '2026-11-24T10:11:12.250Z',
    },
  ],
  [
    'tags for the pod',
    `${datadog}dd_hostname h\ninclude_tag_key true`,
    { kubernetes: { pod_name: 'p', namespace_name: 'n' }, docker: { container_id: 'c' } },
    { ddtags: 'env:prod,container_id:c,kube_namespace:n,pod_name:p', hostname: 'h', tag: 'team.app', service: 'web' },
  ],
  [
    'one field as the event',
    '@type splunk_hec\nhec_host s\nhec_token t\napp_name x\n<format>\n  @type single_value\n  message_key log\n  add_newline false\n</format>',
    { log: 'x', a: 1 },
    { event: 'x' },
  ],
  [
    'the host of an event',
    '@type splunk_hec\nhec_host s\nhec_token t',
    { a: 1 },
    { event: { a: 1 }, 'host == get_hostname!() && .event.a': 1 },
  ],
])('%s', async (_, lines, record, expected) => {
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each<[about: string, lines: string, record: object, index: string, kept: Readonly<Record<string, unknown>>]>([
  [
    'a field that is not there is an empty text',
    `${search}index_name App-\${$.k.team}-\${env}`,
    { k: {}, env: 'Prod' },
    'app-{{ %chunk_team }}-{{ %chunk_env }}',
    { '%chunk_team == "" && %chunk_env': 'prod' },
  ],
  [
    'a part that the tag does not have is an empty text',
    `${search}index_name x-\${tag[5]}-\${tag[0]}`,
    {},
    'x--team',
    { a: null },
  ],
])('%s in the name of an index', async (_, lines, record, index, kept) => {
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks[0].config.bulk.index).toBe(index)
  const expected = Object.fromEntries(
    Object.entries(kept).map(([name, value]) => [name.startsWith('%') ? `a == null && ${name}` : name, value]),
  )
  withTest(document, resource, { message: JSON.stringify({ ...record, x: 1 }), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a number does not become a label of Loki', async () => {
  const lines = '@type loki\nurl http://loki\n<label>\n  a\n  b $.k.b\n</label>'
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: '{"a":1,"k":{"b":"x"}}', timestamp: time }, { 'a == null && .k.b': 'x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an address and a login in a cloud come from variables, or from the id itself', async () => {
  const id = Buffer.from('eu.aws.es.io$abc$def').toString('base64')
  const of = (lines: string) => converted(convertFluentd, [given(`@type elasticsearch\n${lines}`)])
  expect(of(`cloud_id prod:${id}\ncloud_auth u:p`).resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['https://abc.eu.aws.es.io:443'],
    auth: { strategy: 'basic', user: 'u', password: 'p' },
  })
  const named = of(`cloud_id "#{ENV['CLOUD_ID']}"\ncloud_auth "#{ENV['CLOUD_AUTH']}"\napi_key k`)
  expect(missing(named.gaps)).toEqual([])
  expect(named.resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['SECRET[env.CLOUD_ID]'],
    auth: { user: 'SECRET[env.CLOUD_AUTH_USER]', password: 'SECRET[env.CLOUD_AUTH_PASSWORD]' },
    request: { headers: { Authorization: 'ApiKey k' } },
  })
  expect(missing(of('cloud_id prod:eA==').gaps)).toMatchObject([{ subject: 'elasticsearch: cloud_id' }])
})

test('fractions of a second in a field of an output have a fixed number of digits', async () => {
  const inject = '<inject>\n  time_key at\n  time_type string\n  time_format %H:%M:%S.%L\n</inject>'
  const { document, resource } = filtered('', '@type json', `@type http\nendpoint http://h/\n${inject}`)
  withTest(document, resource, { message: '{}', timestamp: '2026-11-24T10:11:12Z' }, { at: '10:11:12.000' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('without logstash_format, a record for a search engine gets no time', async () => {
  const { document, resource, gaps } = converted(convertFluentd, [given(`${search}index_name Logs-%Y.%m`)])
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    bulk: { index: 'logs-%Y.%m' },
    encoding: { except_fields: ['timestamp'] },
  })
  withTest(document, resource, { message: '{"a":1}', timestamp: time }, { '"@timestamp" == null && .a': 1 })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [
    'headers, the tenant and the compression of Loki',
    '@type loki\nurl http://loki:3100\ntenant ${$.kubernetes.namespace_name}\ncompress gzip\ncustom_headers {"X-Team":"a"}',
    { tenant_id: '{{ %chunk_namespace_name }}', compression: 'gzip', request: { headers: { 'X-Team': 'a' } } },
  ],
  [
    'a content type',
    '@type http\nendpoint http://h/\ncontent_type application/json\nheaders {"X-A":"b"}',
    { request: { headers: { 'X-A': 'b', 'Content-Type': 'application/json' } } },
  ],
  [
    'the address of a service without TLS',
    '@type datadog\napi_key k\nhost proxy\nport 8080\nuse_ssl false',
    { endpoint: 'http://proxy:8080', compression: 'gzip' },
  ],
  [
    'a variable in the name of an index',
    `${search}logstash_format true\nlogstash_prefix "#{ENV['TEAM']}"`,
    { bulk: { index: 'SECRET[env.TEAM]-%Y.%m.%d' } },
  ],
])('%s', async (_, lines, config) => {
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject(config)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a pattern selects events by the groups of a rule', async () => {
  const rule = '<rule>\n  key a\n  pattern ^(.+)$\n  tag ns.$1\n</rule>'
  const matches =
    '<match ns.gone ns.off>\n  @type null\n</match>\n<match ns.*>\n  @type elasticsearch\n  host es\n  index_name x-${tag[1]}\n</match>\n'
  const text = `${given(`@type rewrite_tag_filter\n${rule}`).text.replace('<match **>', '<match team.**>')}${matches}`
  for (const [value, at, isThere] of [
    ['web', 1, true],
    ['off', 1, false],
    ['off', 0, true],
  ] as const) {
    const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
    expect(missing(gaps)).toEqual([])
    expect(resource.spec.sinks[1].config.bulk.index).toBe('x-{{ %chunk_tag_1 }}')
    resource.spec.sinks = [resource.spec.sinks[at]]
    withTest(document, resource, { message: `{"a":"${value}"}`, timestamp: time }, isThere ? { a: value } : undefined)
    expect(await lint(document.toString({ lineWidth: 0 })), value).toEqual([])
  }
})

test.each<[about: string, lines: string, facts: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'labels of the pod',
    'skip_pod_labels true',
    { pod_labels: { a: 'b' }, namespace_labels: { c: 'd' } },
    { kubernetes: { namespace_labels: { c: 'd' } } },
  ],
  [
    'labels of the namespace',
    'skip_namespace_labels true',
    { pod_labels: { a: 'b' }, namespace_labels: { c: 'd' } },
    { kubernetes: { labels: { a: 'b' } } },
  ],
])('metadata without %s', async (_, lines, facts, expected) => {
  const text = `<source>\n  @type tail\n  path /var/log/containers/*.log\n  tag k.*\n  <parse>\n    @type cri\n  </parse>\n</source>\n<filter **>\n  @type kubernetes_metadata\n  ${lines}\n</filter>\n<match **>\n  @type null\n</match>\n`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: 'x', timestamp: time, orchestrator: facts }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('another separator of joined lines is reported', () => {
  const { gaps } = filtered(
    '@type concat\nkey message\nmultiline_start_regexp /^a/\nseparator ""\nuse_first_timestamp',
    '@type none',
  )
  expect(gaps).toMatchObject([{ subject: 'concat: separator', isReplaced: true }])
})

test.each([
  ['@type http\nendpoint http://h/\n<auth>\n  method digest\n  username a\n  password b\n</auth>', 'http: auth digest'],
  [`${search}utc_index false`, 'elasticsearch: utc_index'],
  [`${search}target_type_key t`, 'elasticsearch: target_type_key'],
  [`${datadog}delete_extracted_tag_attributes true`, 'datadog: delete_extracted_tag_attributes'],
  ['@type loki\nurl http://loki\ntenant ${tag_suffix[1]}', 'loki: tenant ${tag_suffix[1]}'],
])('%s is a gap', (lines, subject) => {
  const { gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toMatchObject([{ subject }])
})

test.each<[about: string, rules: string, record: object, team: string | undefined]>([
  ['an empty value matches no rule', '<rule>\n  key a\n  pattern .*\n  tag x\n</rule>', {}, undefined],
  [
    'an empty value matches an inverted rule',
    '<rule>\n  key a\n  pattern /^x/\n  invert true\n  tag x\n</rule>',
    {},
    'x',
  ],
  [
    'a tag without its prefix',
    'remove_tag_prefix team\n<rule>\n  key a\n  pattern /./\n  tag x.${tag}\n</rule>',
    { a: 'b' },
    'x.app',
  ],
])('rewrite_tag_filter: %s', async (_, rules, record, tag) => {
  const { document, resource } = converted(convertFluentd, [
    {
      file: 'fluent.conf',
      text: `${given(`@type rewrite_tag_filter\n${rules}`).text.replace('<match **>', '<match team.**>')}<match x.**>\n  @type null\n  <inject>\n    tag_key tag\n  </inject>\n</match>\n`,
    },
  ])
  const expected = tag === undefined ? undefined : { tag }
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const filtered = (filter: string, parse = '@type json', end = '@type http\nendpoint http://h/') =>
  converted(convertFluentd, [
    {
      file: 'fluent.conf',
      text: `${source.replace('@type json', parse.replaceAll('\n', '\n    '))}${filter === '' ? '' : `<filter **>\n${filter}\n</filter>\n`}<match **>\n${end}\n</match>\n`,
    },
  ])

test.each<[about: string, filter: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'values',
    '@type record_transformer\n<record>\n  timestamp ${time}\n</record>',
    {},
    { log_timestamp: '2026-11-24 10:11:12 +0000' },
  ],
  [
    'Ruby',
    '@type record_transformer\nenable_ruby\n<record>\n  a ${record["timestamp"].upcase}\n</record>',
    { timestamp: 'x' },
    { a: 'X', log_timestamp: 'x' },
  ],
  [
    'names',
    '@type record_transformer\n<record>\n  a ${record["timestamp"]}\n</record>\nremove_keys timestamp',
    { timestamp: 'x' },
    { 'log_timestamp == null && .a': 'x' },
  ],
  [
    'expressions',
    '@type grep\n<regexp>\n  key $.timestamp\n  pattern /^2/\n</regexp>',
    { timestamp: '2026' },
    { log_timestamp: '2026' },
  ],
  [
    'members',
    '@type parser\nkey_name j\nreserve_data true\nhash_value_field m\n<parse>\n  @type json\n</parse>',
    { j: '{"timestamp":"x"}' },
    { m: { timestamp: 'x' } },
  ],
])(
  'a field `timestamp` of the record is separate from the time of the event: %s',
  async (_, filter, record, expected) => {
    const { document, resource, gaps, all } = filtered(filter)
    expect(missing(gaps)).toEqual([])
    expect(all.length).toBeGreaterThan(0)
    withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, { ...expected, timestamp: time })
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)

test.each<[about: string, parse: string, line: string, expected: Readonly<Record<string, unknown>>]>([
  [
    'a text',
    '@type json\ntime_key timestamp\ntime_type string',
    '{"timestamp":"2026-01-02T03:04:05Z","a":1}',
    { a: 1, 'log_timestamp == null && .timestamp != null && .a': 1, timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'a text that stays',
    '@type json\ntime_key timestamp\ntime_type string\nkeep_time_key true',
    '{"timestamp":"2026-01-02T03:04:05Z"}',
    { log_timestamp: '2026-01-02T03:04:05Z', timestamp: '2026-01-02T03:04:05Z' },
  ],
  ['a number', '@type json\ntime_key timestamp', '{"timestamp":1.5}', { timestamp: '1970-01-01T00:00:01.5Z' }],
  [
    'grok',
    '@type grok\ngrok_pattern %{TIMESTAMP_ISO8601:timestamp} %{WORD:a}\ntime_key timestamp',
    '2026-01-02T03:04:05Z x',
    { a: 'x', timestamp: '2026-01-02T03:04:05Z' },
  ],
])('the time of a line may have the name `timestamp`: %s', async (_, parse, line, expected) => {
  const { document, resource, gaps } = filtered('', parse)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: line, timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the time that an output adds may have the name `timestamp`', async () => {
  const inject = '<inject>\n  time_key timestamp\n  time_type string\n</inject>'
  const { document, resource, gaps } = filtered('', '@type json', `@type http\nendpoint http://h/\n${inject}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks[0].config.encoding).toEqual({ codec: 'json' })
  withTest(
    document,
    resource,
    { message: '{}', timestamp: time },
    { 'a == null && .timestamp': '2026-11-24T10:11:12+00:00' },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  const other = filtered('', '@type json', `@type elasticsearch\nhost es\n${inject}`)
  expect(missing(other.gaps)).toMatchObject([{ subject: 'inject: time_key timestamp' }])
})

test.each<[about: string, lines: string, config: object]>([
  [
    'headers from tags, and a proxy',
    '@type http\nendpoint http://h/\nheaders {"X-A":"b"}\nheaders_from_placeholders {"X-Tag":"${tag}-${k}"}\nproxy http://p:3128',
    { request: { headers: { 'X-A': 'b', 'X-Tag': 'team.app-{{ %chunk_k }}' } }, proxy: { https: 'http://p:3128' } },
  ],
  [
    'options of another plugin for requests',
    '@type http\nendpoint_url https://h/\nserializer json\ncustom_headers {"X-A":"b"}\nusername u\npassword p\nssl_no_verify true\ncompress_request true',
    {
      request: { headers: { 'X-A': 'b' } },
      auth: { strategy: 'basic', user: 'u', password: 'p' },
      tls: { verify_certificate: false },
      compression: 'gzip',
    },
  ],
  [
    'options of requests for events',
    '@type splunk_hec\nhec_host s\nhec_token t\nhec_endpoint /services/own\ngzip_compression true\ncustom_headers {"X-A":"b"}',
    {
      uri: 'https://s:8088/services/own',
      compression: 'gzip',
      request: { headers: { Authorization: 'Splunk t', 'X-A': 'b' } },
    },
  ],
])('a sink with %s', async (_, lines, config) => {
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject(config)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('forms, and headers with unknown parts of tags, are gaps', () => {
  const { gaps } = converted(convertFluentd, [
    given('@type http\nendpoint_url http://h/\nheaders_from_placeholders {"X-Tag":"${tag_suffix[1]}"}'),
  ])
  expect(missing(gaps).map(({ subject }) => subject)).toEqual([
    'http: serializer',
    'http: headers_from_placeholders X-Tag',
  ])
})

test('a match for events that an output sends again is not missing', () => {
  const ends = '<match **>\n  @type elasticsearch\n  host h\n  retry_tag again\n</match>\n'
  const text = `${source}<match again>\n  @type elasticsearch\n  host h\n</match>\n${ends}`
  const { gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'match again', isReplaced: true }])
})

test.each([
  ['unixtime', 1795515072],
  ['unixtime_millis', 1795515072250],
  ['unixtime_micros', 1795515072250000],
])('the time of an event as %s', async (type, expected) => {
  const lines = `@type stdout\n<inject>\n  time_key at\n  time_type ${type}\n</inject>`
  const { document, resource, gaps } = converted(convertFluentd, [given(lines)])
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: '{"a":1}', timestamp: time }, { at: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
