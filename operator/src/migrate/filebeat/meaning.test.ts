// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Options of Filebeat that change events in ways that are easy to miss: failures, lists, metadata, nulls, times, and the order of steps.

import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const stream = 'filebeat.inputs:\n- type: filestream\n  paths: [/srv/app.log]\n'
const log = 'filebeat.inputs:\n- type: log\n  paths: [/srv/app.log]\n'
const json = `${stream}  parsers: [{ ndjson: { target: "" } }]\n`
const discard = 'output.discard: {}\n'
const year = new Date().getUTCFullYear()
const time = '2026-11-24T10:11:12.5Z'
const line = (message: string) => ({ message, file: '/srv/app.log', timestamp: time })
const processors = (...steps: readonly string[]) => `processors:\n${steps.map((step) => `- ${step}\n`).join('')}`

interface Case {
  readonly name: string
  readonly text: string
  readonly message: string
  /** Undefined if no event comes out. */
  readonly expected: Readonly<Record<string, unknown>> | undefined
}

const lines: readonly Case[] = [
  {
    name: 'filters read nothing of a line of JSON without a key for its text',
    text: `${stream}  exclude_lines: [healthz]\n  parsers: [{ ndjson: { target: "" } }]\n`,
    message: '{"path":"/healthz"}',
    expected: { path: '/healthz' },
  },
  {
    name: 'filters read a line that is not JSON',
    text: `${stream}  exclude_lines: [healthz]\n  parsers: [{ ndjson: { target: "" } }]\n`,
    message: 'GET /healthz',
    expected: undefined,
  },
  {
    name: 'the parser for JSON keeps the text at its key as the message',
    text: `${stream}  parsers: [{ ndjson: { target: app, message_key: msg } }]\n`,
    message: '{"msg":"hello","n":1}',
    expected: { message: 'hello', app: { msg: 'hello', n: 1 } },
  },
  {
    name: 'the older input for JSON leaves no message',
    text: `${log}  json: { message_key: msg }\n`,
    message: '{"msg":"hello","n":1}',
    expected: { message: null, json: { msg: 'hello', n: 1 } },
  },
  {
    name: 'a line that is not JSON gets an error on request',
    text: `${stream}  parsers: [{ ndjson: { target: "", add_error_key: true } }]\n`,
    message: 'text',
    expected: { message: 'text', error: { message: 'Error decoding JSON', type: 'json' } },
  },
  {
    name: 'a condition finds a field whose name has a dot',
    text: `${json}${processors('drop_event.when.equals: { log.level: debug }')}`,
    message: '{"log.level":"debug"}',
    expected: undefined,
  },
  {
    name: 'nulls of JSON are left out',
    text: json,
    message: '{"a":null,"b":{"c":null,"d":""}}',
    expected: { a: null, b: { d: '' } },
  },
  {
    name: 'nulls of JSON stay on request',
    text: `${json}  keep_null: true\n`,
    message: '{"b":{"c":null}}',
    expected: { b: { c: null } },
  },
  {
    name: 'messages are cut at a number of bytes',
    text: `${stream}  message_max_bytes: 5\n`,
    message: 'hello world',
    expected: { message: 'hello', log: { file: { path: '/srv/app.log' }, flags: ['truncated'] } },
  },
  {
    name: 'a parser drops lines that match none of its patterns',
    text: `${stream}  parsers: [{ include_message.patterns: ["^ERR", "^WARN"] }]\n`,
    message: 'INFO x',
    expected: undefined,
  },
  {
    name: 'a parser keeps lines that match one of its patterns',
    text: `${stream}  parsers: [{ include_message.patterns: ["^ERR", "^WARN"] }]\n`,
    message: 'WARN x',
    expected: { message: 'WARN x' },
  },
  {
    name: 'a parser reads syslog',
    text: `${stream}  parsers: [{ syslog: { format: rfc3164, timezone: UTC } }]\n`,
    message: '<34>Oct 11 22:14:15 web su[230]: failed',
    expected: { message: 'failed', 'log.syslog.hostname': 'web', 'log.syslog.procid': '230' },
  },
  {
    name: 'a line that is not syslog gets an error',
    text: `${stream}  parsers: [{ syslog: ~ }]\n`,
    message: '',
    expected: { 'error.message': 'Error parsing syslog message' },
  },
]

const conditions: readonly Case[] = [
  {
    name: 'a tag contains the text',
    text: `${stream}  tags: [nginx-access]\n${processors('drop_event.when.contains.tags: access')}`,
    message: 'x',
    expected: undefined,
  },
  {
    name: 'a label is found although its name has dots',
    text: `${json}${processors('drop_event.when.equals: { kubernetes.labels.app.kubernetes.io/name: web }')}`,
    message: '{"kubernetes":{"labels":{"app":"x"}}}',
    expected: { kubernetes: { labels: { app: 'x' } } },
  },
  {
    name: 'no tag matches the expression',
    text: `${stream}  tags: [nginx-access]\n${processors('drop_event.when.regexp.tags: "^access"')}`,
    message: 'x',
    expected: { message: 'x' },
  },
  {
    name: 'an expression for the empty text does not match a missing field',
    text: `${stream}${processors('drop_event.when.regexp.absent: "^.*$"')}`,
    message: 'x',
    expected: { message: 'x' },
  },
  {
    name: 'a number is not a text',
    text: `${json}${processors('drop_event.when.contains.n: "1"')}`,
    message: '{"n":1}',
    expected: { n: 1 },
  },
  {
    name: 'a text that is not a number is outside of a range',
    text: `${json}${processors('drop_event.when.range.n.lt: 3')}`,
    message: '{"n":"few"}',
    expected: { n: 'few' },
  },
  ...(
    [
      ['loopback', '127.0.0.1', true],
      ['unspecified', '0.0.0.0', true],
      ['public', '203.0.113.7', true],
      ['public', '10.1.2.3', false],
      ['unicast', '10.1.2.3', true],
      ['unicast', '224.0.0.1', false],
      ['unicast', 'text', false],
      ['link_local_multicast', 'ff12::1', true],
      ['[203.0.113.0/24, private]', '192.168.1.1', true],
    ] as const
  ).map(([network, ip, isIn]) => ({
    name: `${ip} ${isIn ? 'is' : 'is not'} in the network ${network}`,
    text: `${json}${processors(`drop_event.when.network.ip: ${network}`)}`,
    message: JSON.stringify({ ip }),
    expected: isIn ? undefined : { ip },
  })),
]

const rename = (options: string) =>
  `${json}${processors(`rename: { fields: [{ from: a, to: b }, { from: c, to: d }]${options} }`)}`
const failed = 'Failed to process fields in'
const failures: readonly Case[] = [
  {
    name: 'one missing field undoes all',
    text: rename(''),
    message: '{"a":1}',
    expected: { a: 1, b: null, 'error.message': `${failed} rename processor: could not fetch value for key: c` },
  },
  {
    name: 'a missing field is ignored on request',
    text: rename(', ignore_missing: true'),
    message: '{"a":1}',
    expected: { a: null, b: 1, error: null },
  },
  {
    name: 'an existing target undoes all',
    text: rename(', ignore_missing: true'),
    message: '{"a":1,"c":2,"d":3}',
    expected: { a: 1, c: 2, d: 3, b: null, 'error.message': `${failed} rename processor: failed on c` },
  },
  {
    name: 'a failure stays alone on request',
    text: rename(', fail_on_error: false'),
    message: '{"a":1,"d":3}',
    expected: { a: null, b: 1, d: 3, error: null },
  },
  {
    name: 'a field becomes a member of itself',
    text: `${json}${processors('rename: { fields: [{ from: a, to: a.b }] }')}`,
    message: '{"a":1}',
    expected: { a: { b: 1 } },
  },
  {
    name: 'a value that cannot be converted is not copied',
    text: `${json}${processors('convert: { fields: [{ from: a, to: n, type: integer }], fail_on_error: false }')}`,
    message: '{"a":"x"}',
    expected: { a: 'x', n: null },
  },
  {
    name: 'integers may be hexadecimal, and have at most 32 bits',
    text: `${json}${processors('convert: { fail_on_error: false, fields: [{ from: a, type: integer }, { from: b, type: integer }, { from: c, type: long }, { from: d, type: long }, { from: e, type: integer }, { from: f, type: long }, { from: g, type: long }] }')}`,
    message: '{"a":"0x1F","b":"3000000000","c":"3000000000","d":"-0X10","e":"+7","f":true,"g":2.9}',
    expected: { a: 31, b: '3000000000', c: 3000000000, d: -16, e: 7, f: true, g: 2 },
  },
  {
    name: 'a number is not converted to a boolean, and no boolean to a number',
    text: `${json}${processors('convert: { fail_on_error: false, fields: [{ from: a, type: boolean }, { from: b, type: boolean }, { from: c, type: boolean }, { from: d, type: double }, { from: e, type: float }, { from: f, type: boolean }] }')}`,
    message: '{"a":"T","b":"yes","c":1,"d":true,"e":"2.5","f":"0"}',
    expected: { a: true, b: 'yes', c: 1, d: true, e: 2.5, f: false },
  },
  {
    name: 'one failed conversion undoes all',
    text: `${json}${processors('convert: { fields: [{ from: a, type: long }, { from: b, type: ip }] }')}`,
    message: '{"a":"1","b":"x"}',
    expected: { a: '1', b: 'x' },
  },
  {
    name: 'missing fields do not undo conversions on request',
    text: `${json}${processors('convert: { ignore_missing: true, fields: [{ from: a, type: long }, { from: b, type: ip }] }')}`,
    message: '{"a":"1"}',
    expected: { a: 1, b: null },
  },
  {
    name: 'a text that does not match gets a flag',
    text: `${stream}${processors('dissect: { tokenizer: "%{a}=%{b}" }')}`,
    message: 'x',
    expected: { dissect: null, log: { file: { path: '/srv/app.log' }, flags: ['dissect_parsing_error'] } },
  },
  {
    name: 'a text that is not JSON gets an error on request',
    text: `${stream}${processors('decode_json_fields: { fields: [message], add_error_key: true }')}`,
    message: '{',
    expected: { message: '{', 'error.field': 'message', 'error.data': '{' },
  },
  {
    name: 'without a target, any JSON replaces the text',
    text: `${stream}${processors('decode_json_fields: { fields: [message] }')}`,
    message: '[1, "a"]',
    expected: { message: [1, 'a'] },
  },
]

const dissect = (tokenizer: string, options = '') =>
  `${stream}${processors(`dissect: { tokenizer: '${tokenizer}', target_prefix: ""${options} }`)}`
const steps: readonly Case[] = [
  {
    name: 'parts of a fixed length',
    text: dissect('%{code#3}%{kind#2}%{rest}'),
    message: '404abxyz',
    expected: { code: '404', kind: 'ab', rest: 'xyz' },
  },
  {
    name: 'repeated delimiters after a part',
    text: dissect('%{a->}|%{b}'),
    message: 'x|||y',
    expected: { a: 'x', b: 'y' },
  },
  {
    name: 'text after the last delimiter is ignored',
    text: dissect('[%{a}]'),
    message: '[x] y] z',
    expected: { a: 'x' },
  },
  {
    name: 'parts of a name in another order',
    text: dissect('%{+when/2} %{+when/1} %{rest}'),
    message: 'b a x',
    expected: { when: 'a b', rest: 'x' },
  },
  {
    name: 'only one end of a part is trimmed',
    text: dissect('%{a}|%{b}', ', trim_values: right, trim_chars: " _"'),
    message: ' x_ | y ',
    expected: { a: ' x', b: ' y' },
  },
  {
    name: 'a fingerprint of another method and encoding',
    text: `${stream}${processors('fingerprint: { fields: [message], method: sha1, encoding: base64 }')}`,
    message: 'x',
    // The text is |message|x|.
    expected: { fingerprint: 'zPA+jWvqACVzHjNvZDvVmlUfAww=' },
  },
  {
    name: 'a fingerprint of a missing field',
    text: `${stream}${processors('fingerprint: { fields: [message, absent] }')}`,
    message: 'x',
    expected: undefined,
  },
  {
    name: 'seconds with a fraction',
    text: `${json}${processors('timestamp: { field: at, layouts: [UNIX] }')}`,
    message: '{"at":"1571234567.25"}',
    expected: { timestamp: '2019-10-16T14:02:47.250Z' },
  },
  {
    name: 'a text that is not a number of seconds changes no time',
    text: `${json}${processors('timestamp: { field: at, layouts: [UNIX, UNIX_MS] }')}`,
    message: '{"at":"now"}',
    expected: { timestamp: time },
  },
  {
    name: 'a time without a year',
    text: `${json}${processors('timestamp: { field: at, layouts: ["Jan _2 15:04:05"] }')}`,
    message: '{"at":"Oct  9 22:14:15"}',
    expected: { timestamp: `${year}-10-09T22:14:15Z` },
  },
  {
    name: 'a field with the name that the time of the event has here',
    text: `${json}${processors('timestamp: { field: timestamp, layouts: ["2006-01-02"] }', 'drop_fields: { fields: [timestamp] }')}`,
    message: '{"timestamp":"2020-02-03"}',
    expected: { timestamp: '2020-02-03T00:00:00Z', log_timestamp: null },
  },
  {
    name: 'texts are cut at a number of bytes',
    text: `${stream}${processors('truncate_fields: { fields: [message], max_bytes: 2 }')}`,
    message: 'éé',
    expected: { message: 'é', 'log.flags': ['truncated'] },
  },
  {
    name: 'values and fields are added to a list',
    text: `${json}${processors('append: { target_field: all, fields: [a, b], values: ["z", ""], ignore_empty_values: true, allow_duplicate: false }')}`,
    message: '{"all":"x","a":["x","y"],"b":1}',
    expected: { all: ['x', 'y', 1, 'z'] },
  },
  {
    name: 'a missing field leaves the list as it is',
    text: `${json}${processors('append: { target_field: all, fields: [a, b] }')}`,
    message: '{"all":["x"],"a":"y"}',
    expected: { all: ['x'], 'error.message': `${failed} append processor: could not fetch value for key: b` },
  },
  {
    name: 'some fields move out of an object',
    text: `${json}${processors('move_fields: { from: app, fields: [a, b.c], to: my_ }')}`,
    message: '{"app":{"a":1,"b":{"c":2},"d":3}}',
    expected: { my_a: 1, my_b: { c: 2 }, app: { b: {}, d: 3 } },
  },
  {
    name: 'all fields but one move to another object',
    text: `${json}${processors('move_fields: { from: app, exclude: [d], to: other. }')}`,
    message: '{"app":{"a":1,"d":3}}',
    expected: { other: { a: 1 }, app: { d: 3 } },
  },
  {
    name: 'the id of a flow, by the name of its protocol',
    text: `${json}${processors('community_id: ~')}`,
    message:
      '{"source":{"ip":"1.2.3.4","port":1},"destination":{"ip":"1.2.3.5","port":"2"},"network":{"transport":"TCP"}}',
    expected: { 'network.community_id': '1:iYkF+oxBbtUeQHUwAtbPURamv8w=' },
  },
  {
    name: 'the id of a flow, by the number of its protocol in fields of other names',
    text: `${json}${processors('community_id: { target: id, seed: 7, fields: { source_ip: a, destination_ip: b, source_port: c, destination_port: d, iana_number: p } }')}`,
    message: '{"a":"1.2.3.4","b":"1.2.3.5","c":1,"d":2,"p":6}',
    expected: { id: '1:LHDgQ/d83Bbz6znVQVmow+VnE1g=' },
  },
  {
    name: 'a duration',
    text: `${json}${processors('decode_duration: { field: a, format: seconds }', 'decode_duration: { field: b }', 'decode_duration: { field: c }')}`,
    message: '{"a":"1m1.5s","b":"2ms","c":"soon"}',
    expected: { a: 61.5, b: 2.0, c: 'soon' },
  },
  {
    name: 'a compressed field',
    text: `${json}${processors('decode_base64_field: { field: { from: a, to: b } }', 'decompress_gzip_field: { field: { from: b, to: c } }')}`,
    message: `{"a":"${gzipSync('hello').toString('base64')}"}`,
    expected: { c: 'hello', error: null },
  },
  {
    name: 'a field that is not compressed',
    text: `${json}${processors('decompress_gzip_field: { field: { from: a, to: c } }')}`,
    message: '{"a":"x"}',
    expected: { a: 'x', c: null, 'error.message': `${failed} decompress_gzip_field processor: failed on a` },
  },
  {
    name: 'the registered domain of a host',
    text: `${json}${processors('registered_domain: { field: h, target_field: d, target_etld_field: s, target_subdomain_field: "n" }')}`,
    message: '{"h":"a.b.example.co.uk."}',
    expected: { d: 'example.co.uk', s: 'co.uk', n: 'a.b' },
  },
  {
    name: 'a public suffix has no registered domain',
    text: `${json}${processors('registered_domain: { field: h, target_field: d }')}`,
    message: '{"h":"co.uk"}',
    expected: { d: null },
  },
  {
    name: 'a flow without ports has no id',
    text: `${json}${processors('community_id: ~')}`,
    message: '{"source":{"ip":"1.2.3.4"},"destination":{"ip":"1.2.3.5"},"network":{"transport":"tcp"}}',
    expected: { 'network.community_id': null },
  },
  {
    name: 'fields of an input replace those of all inputs, and its processors see both',
    text: `fields: { env: prod, site: fra }\ntags: [all]\n${stream}  fields: { env: test }\n  tags: [own]\n  processors:\n  - add_fields: { when.equals.fields.site: fra, target: "", fields: { seen: true } }\n`,
    message: 'x',
    expected: { fields: { env: 'test', site: 'fra' }, tags: ['all', 'own'], seen: true },
  },
]

test.each([...lines, ...conditions, ...failures, ...steps])('$name', async ({ text, message, expected }) => {
  const { document, resource, gaps } = convert(text + discard)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, line(message), expected)
  expect(await lint(document.toString())).toEqual([])
})

const pod = {
  message: 'x',
  stream: 'stdout',
  timestamp: time,
  file: '/var/log/pods/shop_web-5d4-x_u/web/0.log',
  orchestrator: {
    pod_name: 'web-5d4-x',
    pod_namespace: 'shop',
    pod_owner: 'ReplicaSet/web-5d4',
    pod_labels: { app: 'web', 'app.kubernetes.io/part-of': 'store', 'pod-template-hash': '5d4' },
    container_name: 'web',
    container_id: 'containerd://abc',
  },
}
const discovery = (options: string) => `filebeat.autodiscover.providers:\n- type: kubernetes\n${options}`
const container = (options = '') =>
  `{ type: container, paths: ["/var/log/containers/*\${data.kubernetes.container.id}.log"]${options} }`
const template = (condition: string, config = container()) =>
  `  - condition: ${condition}\n    config:\n    - ${config}\n`
const templates = (...all: readonly string[]) => `  templates:\n${all.join('')}`

test.each([
  {
    name: 'a provider of one namespace reads its pods',
    text: discovery(`  namespace: shop\n  hints.enabled: true\n`),
    expected: { 'kubernetes.namespace': 'shop' },
  },
  {
    name: 'a provider of another namespace does not',
    text: discovery(`  namespace: other\n  hints.enabled: true\n`),
    expected: undefined,
  },
  {
    name: 'hints do not apply to pods of a template',
    text: discovery(`  hints.enabled: true\n${templates(template('{ equals.kubernetes.labels.app: web }'))}`),
    expected: undefined,
  },
  {
    name: 'hints apply to all other pods',
    text: discovery(`  hints.enabled: true\n${templates(template('{ equals.kubernetes.labels.app: api }'))}`),
    expected: { message: 'x' },
  },
  {
    name: 'values of the pod in fields',
    text: discovery(
      templates(
        template(
          '{ equals.kubernetes.namespace: shop }',
          container(
            ', fields_under_root: true, fields: { a: "${data.kubernetes.labels.app}", b: "${data.kubernetes.labels.app_kubernetes_io/part-of}", c: "x-${data.kubernetes.container.id}-${data.kubernetes.pod.name}" }',
          ),
        ),
      ),
    ),
    expected: { a: 'web', b: 'store', c: 'x-abc-web-5d4-x' },
  },
  {
    name: 'the owner of the pod, and its deployment',
    text: discovery(templates(template('{ equals.kubernetes.deployment.name: web }'))),
    expected: { 'kubernetes.replicaset.name': 'web-5d4', 'kubernetes.deployment.name': 'web' },
  },
])('autodiscovery: $name', async ({ text, expected }) => {
  const { document, resource, gaps } = convert(text + discard)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const [first] = resource.spec.transforms
  const last = resource.spec.transforms.findLast((each: { name: string }) => each.name.startsWith(first.name))
  resource.spec.sinks[0].inputs[0] = last.name
  withTest(document, resource, pod, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  [`  builders: []\n  hints.enabled: true\n`, 'autodiscover: builders'],
  [`  hints: { enabled: true, prefix: co.shop }\n`, 'hints: prefix'],
  [templates(template('{ odd.a: 1 }')), 'condition odd'],
  [templates(template('{ equals.a: 1 }', container(', fields: { a: "${data.host}" }'))), 'fields: a: ${data.host}'],
])('autodiscovery with a gap: %s', (options, subject) => {
  const { gaps, resource } = convert(discovery(options) + discard)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map((gap) => gap.subject)).toEqual([subject])
  // A template whose condition is unknown reads no pod.
  const conditions = resource.spec.transforms.map(({ config }: { config: { condition?: string } }) => config.condition)
  expect(conditions.includes('false')).toBe(subject === 'condition odd')
})

interface Sent {
  readonly name: string
  readonly text: string
  readonly sink: object
  /** The last program before the sink. */
  readonly program?: string
}

const search = (options: string) => `output.elasticsearch: { hosts: [es], ${options} }\n`
test.each<Sent>([
  {
    name: 'metadata of an event chooses the index',
    text: `${stream}${processors('add_fields: { target: "@metadata", fields: { team: shop } }')}${search('index: "%{[@metadata.team]}-logs"')}`,
    sink: { bulk: { action: 'create', index: '{{ %index }}' } },
    program:
      'if exists(%metadata.team) { %index = downcase((to_string(%metadata.team) ?? "") + "-logs") }\n."@timestamp" = .timestamp',
  },
  {
    name: 'metadata of an event is the id of the document',
    text: `${stream}${processors('fingerprint: { fields: [message], target_field: "@metadata._id" }')}${search('index: a')}`,
    sink: { bulk: { action: 'create', index: 'a' }, id_key: '%metadata._id' },
  },
  {
    name: 'the id of a document from JSON',
    text: `${stream}  parsers: [{ ndjson: { target: "", document_id: id, overwrite_keys: true } }]\n${search('index: a')}`,
    sink: { bulk: { action: 'create', index: '{{ %index }}' }, id_key: '%metadata._id' },
    program:
      '%index = "a"\n."@timestamp" = .timestamp\ndel(.timestamp)\nif exists(.log_timestamp) { .timestamp = del(.log_timestamp) }',
  },
  {
    name: 'the name and the version of the Beat',
    text: `${stream}${search('index: "%{[@metadata.beat]}-%{[@metadata.version]}-x"')}`,
    sink: { bulk: { action: 'create', index: 'filebeat-8-x' } },
  },
  {
    name: 'variables, and their defaults',
    text: `${stream}${processors('drop_event.when.equals.message: "${TEXT:x}"')}${search('index: "${A:app}-${B}", pipeline: "${P:p}-${Q}"')}`,
    sink: { bulk: { action: 'create', index: 'app-SECRET[env.B]' }, pipeline: 'p-SECRET[env.Q]' },
  },
  {
    name: 'variables beside fields',
    text: `${stream}${search('index: "${A:app}-%{[x]}-${B}"')}`,
    sink: { bulk: { action: 'create', index: '{{ %index }}' } },
    program:
      'if exists(.x) { %index = downcase("app-" + (to_string(.x) ?? "") + "-" + (get_env_var("B") ?? "")) }\n."@timestamp" = .timestamp',
  },
  {
    name: 'no proxy',
    text: `${stream}${search('index: a, proxy_disable: true')}`,
    sink: { bulk: { action: 'create', index: 'a' }, proxy: { enabled: false } },
  },
  {
    name: 'a queue on disk',
    text: `queue.disk.max_size: 10GB\n${stream}${search('index: a')}`,
    sink: {
      bulk: { action: 'create', index: 'a' },
      buffer: { type: 'disk', max_size: 10_000_000_000, when_full: 'block' },
    },
  },
  {
    name: 'a format of lines',
    text: `${stream}output.console.codec.format.string: '%{[level]:INFO} %{[message]}'\n`,
    sink: { encoding: { codec: 'text' } },
    program: '.message = replace((to_string(.level) ?? ""), r\'^$\', "INFO") + " " + (to_string(.message) ?? "")',
  },
])('an output: $name', async ({ text, sink, program }) => {
  const { document, resource, gaps } = convert(text)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const { endpoints: _, encoding, ...config } = resource.spec.sinks[0].config
  expect('encoding' in sink ? { ...config, encoding } : config).toEqual(sink)
  if (program !== undefined) expect(resource.spec.transforms.at(-1).config.source).toBe(program)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['drop_event.when.equals.agent.type: x', 'condition equals: agent.type'],
  ['drop_event.when.has_fields: [log.offset]', 'condition has_fields: log.offset'],
  ['drop_event.when.network.ip: [private, nowhere]', 'condition network'],
  ['fingerprint: { fields: [message], method: crc }', 'fingerprint: method crc'],
  ['fingerprint: { fields: [message], encoding: base58 }', 'fingerprint: encoding base58'],
  ['dissect: { tokenizer: "%{*a}=%{&a}" }', 'dissect: %{*a}'],
  ['drop_event.when.contains.message: "${TEXT}"', 'condition contains: message'],
])('%s is a gap', (step, subject) => {
  expect(convert(`${stream}${processors(step)}${discard}`).gaps.map((gap) => gap.subject)).toEqual([subject])
})

test.each([
  [`${log}  json.message_key: log\n  multiline.pattern: "^ "\n`, 'multiline after json'],
  [`${stream}  parsers: [{ ndjson: {} }, { multiline: { pattern: "^ " } }]\n`, 'multiline after ndjson'],
  [`${stream}  parsers: [{ ndjson: { odd: 1 } }]\n`, 'parser ndjson: odd'],
  [`${stream}  line_terminator: strange\n`, 'filestream: line_terminator strange'],
  [stream.replace('/srv/app.log', '"${DIR}/app.log"'), 'filestream: ${DIR}'],
])('an input with a gap: %s', (text, subject) => {
  const missing = convert(text + discard).gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(missing.map((gap) => gap.subject)).toEqual([subject])
})

test('a namespaced Pipeline names the node without reading the host or the environment', async () => {
  const text = `filebeat.inputs:\n- ${container(', fields: { node: "${NODE_NAME}", env: "${ENV}" }')}\n${discard}`
  const { document, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }], 'shop')
  expect(gaps.map(({ subject }) => subject)).toEqual(['fields: env: ${ENV}'])
  expect(await lint(document.toString())).toEqual([])
})
