// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// The rules by which Filebeat evaluates conditions, format strings and lists of processors, shown by the event that comes out.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const log = 'filebeat.inputs:\n- type: log\n  paths: [/srv/app.log]\n'
const json = `${log}  json.keys_under_root: true\n`
const discard = 'output.discard: {}\n'
const line = (message: string) => ({ message, file: '/srv/app.log', timestamp: '2026-02-04T05:06:07.089Z' })
const processors = (...steps: readonly string[]) => `processors:\n${steps.map((step) => `- ${step}\n`).join('')}`
/** A tag for events that meet a condition. */
const tagged = (condition: string) => `${json}${processors(`add_tags: { tags: [met], when: ${condition} }`)}`

interface Case {
  readonly name: string
  readonly text: string
  readonly message: string
  /** Undefined if no event comes out. */
  readonly expected: Readonly<Record<string, unknown>> | undefined
}

async function run({ text, message, expected }: Case): Promise<void> {
  const { document, resource, gaps } = convert(/^output/m.test(text) ? text : text + discard)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, line(message), expected)
  expect(await lint(document.toString())).toEqual([])
}

test.each<Case>([
  {
    name: 'an empty target of tags is the list `tags`',
    text: `${json}${processors('add_tags: { tags: [met], target: "" }')}`,
    message: '{"a":1}',
    expected: { tags: ['met'] },
  },
  {
    name: 'empty items of a list are left out',
    text: `${json}${processors('extract_array: { field: a, mappings: { x: 0, y: 1, z: 2, v: 3 }, omit_empty: true }')}`,
    message: '{"a":["",{},0,"k"]}',
    expected: { x: null, y: null, z: 0, v: 'k' },
  },
  {
    name: 'a range contains numbers',
    text: tagged('{ range: { status: { gte: 500, lt: 600 } } }'),
    message: '{"status":503}',
    expected: { tags: ['met'] },
  },
  {
    name: 'a range contains no text with digits',
    text: tagged('{ range.status.gte: 500 }'),
    message: '{"status":"503"}',
    expected: { tags: null },
  },
  {
    name: 'only the first kind of a condition counts',
    text: tagged('{ contains.b: y, equals.a: x }'),
    message: '{"a":"x","b":"z"}',
    expected: { tags: ['met'] },
  },
  {
    name: 'a single condition is a list with one item',
    text: tagged('{ or: { equals.a: x } }'),
    message: '{"a":"x"}',
    expected: { tags: ['met'] },
  },
  {
    name: 'an empty text is contained in the empty text only',
    text: tagged('{ contains.a: "" }'),
    message: '{"a":"x"}',
    expected: { tags: null },
  },
  { name: 'an empty field', text: tagged('{ is_empty: a }'), message: '{"a":""}', expected: { tags: ['met'] } },
  { name: 'a missing field is not empty', text: tagged('{ is_empty: a }'), message: '{}', expected: { tags: null } },
])('a condition: $name', run)

const format = (text: string) => `${json}output.console.codec.format.string: '${text}'\n`
test.each<Case>([
  {
    name: 'names in several brackets',
    text: format('%{[a][b]}/%{ [a.b]}'),
    message: '{"a":{"b":"x"}}',
    expected: { message: 'x/x' },
  },
  {
    name: 'a missing field, without which an event is dropped',
    text: format('%{[a]} %{[b]:x}'),
    message: '{"b":"y"}',
    expected: undefined,
  },
  { name: 'the default of a missing field', text: format('%{[a]:none}'), message: '{}', expected: { message: 'none' } },
  {
    name: 'the default of an empty field',
    text: format('%{[a]:none}'),
    message: '{"a":""}',
    expected: { message: 'none' },
  },
  {
    name: 'the value false, which is not empty',
    text: format('%{[a]:none}'),
    message: '{"a":false}',
    expected: { message: 'false' },
  },
  {
    name: 'the default of an object',
    text: format('%{[a]:none}'),
    message: '{"a":{"b":1}}',
    expected: { message: 'none' },
  },
  {
    name: 'the time of the event',
    text: format('%{[@timestamp]} x'),
    message: '{}',
    expected: { message: '2026-02-04T05:06:07.089Z x' },
  },
  {
    name: 'letters of dates',
    text: format('%{+yyyy-M-d yy.MM.dd YYYY xxxx.ww MMM MMMM EEE EEEE D DDD H:m:s hh a SSS}'),
    message: '{}',
    expected: {
      message: '2026-2-4 26.02.04 2026 2026.06 Feb February Wed Wednesday 35 035 5:6:7 05 AM 089',
    },
  },
])('a format string: $name', run)

test('the name of a file with a default is an expression', async () => {
  const { document, resource, gaps } = convert(`${json}output.file: { path: /out, filename: '%{[app]:none}' }\n`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config.path).toBe('{{ %path }}.ndjson')
  expect(await lint(document.toString())).toEqual([])
})

const stream = 'filebeat.inputs:\n- type: filestream\n  paths: [/srv/app.log]\n'
const reader = (options: string) => `${log}  json: { ${options} }\n`
const parser = (options: string) => `${stream}  parsers: [{ ndjson: { ${options} } }]\n`
test.each<Case>([
  {
    name: 'a line that is not JSON is at the key of the message, and not in the message',
    text: reader('message_key: log, add_error_key: true, keys_under_root: true, overwrite_keys: true'),
    message: 'text',
    expected: { message: null, 'log.file.path': null, log: 'text', 'error.message': 'Error decoding JSON' },
  },
  {
    name: 'without a key, a line that is not JSON stays the message',
    text: reader('add_error_key: true'),
    message: 'text',
    expected: { message: 'text', 'json.error.type': 'json' },
  },
  {
    name: 'a parser keeps a line that is not JSON, and writes it to the key',
    text: parser('target: app, message_key: msg, add_error_key: true'),
    message: 'text',
    expected: { message: 'text', 'app.msg': 'text', 'app.error.message': 'Error decoding JSON' },
  },
  {
    name: 'an empty text at the key is not an error',
    text: reader('message_key: msg, add_error_key: true'),
    message: '{"msg":"","a":1}',
    expected: { json: { msg: '', a: 1 } },
  },
  {
    name: 'a value at the key that is not a text becomes empty in the older input',
    text: reader('message_key: msg, add_error_key: true'),
    message: '{"msg":5}',
    expected: { json: { msg: '', error: { message: "Value of key 'msg' is not a string", type: 'json' } } },
  },
  {
    name: 'an error replaces a member with its name',
    text: reader('message_key: msg, add_error_key: true, keys_under_root: true'),
    message: '{"error":"x"}',
    expected: { msg: '', error: { message: "Key 'msg' not found", type: 'json' } },
  },
  {
    name: 'a key with dots, although names are divided',
    text: `${reader('message_key: log.text, keys_under_root: true, expand_keys: true')}  exclude_lines: [hidden]\n`,
    message: '{"log.text":"hidden"}',
    expected: undefined,
  },
  {
    name: 'names with dots below a target are found by a path',
    text: reader('add_error_key: true') + processors('drop_event.when.equals: { json.log.level: debug }'),
    message: '{"log.level":"debug"}',
    expected: undefined,
  },
  {
    name: 'texts in texts are decoded only if they are objects or lists',
    text: `${log}${processors('decode_json_fields: { fields: [message], target: j, max_depth: 3, process_array: true }')}`,
    message: JSON.stringify({ a: '7', b: 'true', c: '{"d":1}', e: ' [1]', f: '"x"', g: '{x}' }),
    expected: { j: { a: '7', b: 'true', c: { d: 1 }, e: [1], f: '"x"', g: '{x}' } },
  },
  {
    name: 'nulls in lists stay, and those in objects of lists do not',
    text: reader('keys_under_root: true'),
    message: '{"a":[1, null,{"b":null,"c":[null]}],"d":{"e":null}}',
    expected: { a: [1, null, { c: [null] }], d: {} },
  },
  {
    name: 'a type that is not a text does not replace the type',
    text: reader('keys_under_root: true, overwrite_keys: true, add_error_key: true'),
    message: '{"type":5,"a":1}',
    expected: { type: null, a: 1, 'error.type': 'json' },
  },
  {
    name: 'a time that is not valid is an error',
    text: reader('keys_under_root: true, overwrite_keys: true, add_error_key: true'),
    message: '{"@timestamp":"yesterday"}',
    expected: { 'error.message': '@timestamp not overwritten (parse error on yesterday)' },
  },
  {
    name: 'a time with an offset without a colon',
    text: reader('keys_under_root: true, overwrite_keys: true'),
    message: '{"@timestamp":"2026-01-02T03:04:05.678+0200"}',
    expected: { timestamp: '2026-01-02T01:04:05.678Z' },
  },
])('JSON: $name', run)

/** A list below `then`; its last processor removes the message. */
const list = (...steps: readonly string[]) =>
  `${log}processors:\n- if.has_fields: [message]\n  then:\n${[...steps, 'drop_fields.fields: [message]'].map((step) => `  - ${step}\n`).join('')}`
const failing = [
  'dissect: { tokenizer: "%{a}=%{b}" }',
  'dissect: { tokenizer: "%{a}", field: other }',
  'decode_json_fields: { fields: [message] }',
  'decode_json_fields: { fields: [message], target: "" }',
  'timestamp: { field: message, layouts: [UNIX] }',
  'timestamp: { field: other, layouts: [UNIX] }',
  'rename.fields: [{ from: other, to: a }]',
  'copy_fields.fields: [{ from: message, to: log }]',
  'convert.fields: [{ from: message, type: integer }]',
  'convert.fields: [{ from: message, to: a }, { from: message, type: integer }]',
  'drop_fields.fields: [other]',
  'replace.fields: [{ field: other, pattern: a, replacement: b }]',
  'urldecode.fields: [{ from: other }]',
  'decode_base64_field.field: { from: other, to: a }',
  'decode_csv_fields.fields: { other: a }',
  'extract_array: { field: other, mappings: { a: 0 } }',
  'decode_xml.field: message',
  'decode_duration.field: message',
  'truncate_fields: { fields: [other], max_bytes: 3 }',
  'append: { target_field: a, fields: [other] }',
  'move_fields: { from: other, fields: [a], to: b }',
  'registered_domain: { field: message, target_field: a }',
  'syslog: ~',
  '{ if.has_fields: [message], then: [{ drop_fields.fields: [other] }] }',
]
test.each(failing)('below then, a failure skips the rest of the list: %s', async (step) => {
  await run({ name: step, text: list(step), message: 'x y', expected: { message: 'x y' } })
})

test.each([
  'dissect: { tokenizer: "%{a}=%{b}", ignore_failure: true }',
  'timestamp: { field: other, layouts: [UNIX], ignore_missing: true }',
  'rename: { fields: [{ from: other, to: a }], ignore_missing: true }',
  'rename: { fields: [{ from: message, to: log }], fail_on_error: false }',
  'convert: { fields: [{ from: other, type: integer }], ignore_missing: true }',
  'convert: { fields: [{ from: message, type: integer }], fail_on_error: false }',
  'drop_fields: { fields: [other], ignore_missing: true }',
  'decode_base64_field: { field: { from: other, to: a }, fail_on_error: false }',
  'add_fields.fields.a: b',
  'decode_json_fields: { fields: [other] }',
  'drop_fields: { fields: [other], when.has_fields: [other] }',
])('below then, the list continues: %s', async (step) => {
  await run({ name: step, text: list(step), message: 'x y', expected: { message: null } })
})

test('outside of then and else, the list continues after a failure', async () => {
  const steps = processors('dissect: { tokenizer: "%{a}=%{b}" }', 'drop_fields.fields: [message]')
  await run({ name: '', text: `${log}${steps}`, message: 'x y', expected: { message: null } })
})

test.each<Case>([
  {
    name: 'an object is merged into the object of the event',
    text: json + processors('add_fields: { target: "", fields: { event: { module: web, n: { a: 1 } }, empty: {} } }'),
    message: '{"event":{"id":7,"n":{"b":2}},"empty":{"c":3}}',
    expected: { event: { id: 7, module: 'web', n: { a: 1, b: 2 } }, empty: { c: 3 } },
  },
  {
    name: 'an object replaces a text',
    text: json + processors('add_fields: { target: "", fields: { event: { module: web } } }'),
    message: '{"event":"x"}',
    expected: { event: { module: 'web' } },
  },
  {
    name: 'fields of an input are merged',
    text: `${json}  fields: { event: { module: web } }\n  fields_under_root: true\n`,
    message: '{"event":{"id":7}}',
    expected: { event: { id: 7, module: 'web' } },
  },
  {
    name: 'labels are texts, and their names are paths',
    text: json + processors('add_labels.labels: { zone: 3, on: true, cost: { center: 4711 }, list: [a, 1.50] }'),
    message: '{}',
    expected: { labels: { zone: '3', on: 'true', cost: { center: '4711' }, list: { '0': 'a', '1': '1.5' } } },
  },
])('added: $name', run)

const hash = (options: string) => `${log}${processors(`fingerprint: { fields: [message], ${options} }`)}`
test.each<Case>([
  { name: 'xxhash', text: hash('method: xxhash'), message: 'x', expected: { fingerprint: '968f30898bf66abf' } },
  {
    name: 'xxhash of a number without a sign',
    text: hash('method: xxhash'),
    message: 'm0',
    expected: { fingerprint: '0f221ad5db24d186' },
  },
  {
    name: 'xxhash in base 32',
    text: hash('method: xxhash, encoding: base32'),
    message: 'x',
    expected: { fingerprint: 'S2HTBCML6ZVL6===' },
  },
  {
    name: 'sha256 in base 32',
    text: hash('encoding: base32'),
    message: 'x',
    expected: { fingerprint: 'LIKJNGM3GSI4UGQ62XOHLYKIBNWHQYJRJEYLICERUCR6QLGDIOKQ====' },
  },
  {
    name: 'sha384 in base 32',
    text: hash('method: SHA384, encoding: base32'),
    message: 'x',
    expected: { fingerprint: 'EK66OITLUHBJ2DRCMM6BVDHJCXFW2DLFKB46JN7ZRBPX4FMAKB5XLY5HOC63E42FUCPVU3RZOLP64===' },
  },
  {
    name: 'md5 in base 32',
    text: hash('method: md5, encoding: base32'),
    message: 'x',
    expected: { fingerprint: 'KGOQ7VR46V5AIOARTYFDOUD2UQ======' },
  },
  {
    name: 'the time of the event',
    text: `${log}${processors('fingerprint: { fields: [message, "@timestamp"], method: sha1 }')}`,
    message: 'x',
    expected: { fingerprint: '8f665bd9f59f434b31fe8ed4baafb395c0b3b6da' },
  },
  {
    name: 'an event without a field is lost',
    text: `${log}${processors('fingerprint: { fields: [message, other] }')}`,
    message: 'x',
    expected: undefined,
  },
  {
    name: 'an event with an object in a field is lost',
    text: `${log}${processors('fingerprint: { fields: [log], ignore_missing: true }')}`,
    message: 'x',
    expected: undefined,
  },
])('a fingerprint: $name', run)

const multiline = (options: string) => `${log}  multiline: { pattern: "^ ", match: after, ${options} }\n`
const path = { file: { path: '/srv/app.log' } }
test.each<Case>([
  {
    name: 'joined lines have a flag',
    text: multiline('negate: false'),
    message: 'a\n b',
    expected: { message: 'a\n b', log: { ...path, flags: ['multiline'] } },
  },
  { name: 'a single line has none', text: multiline('negate: false'), message: 'a', expected: { log: path } },
  {
    name: 'lines beyond the limit are cut',
    text: multiline('max_lines: 2'),
    message: 'a\n b\n c',
    expected: { message: 'a\n b', log: { ...path, flags: ['truncated', 'multiline'] } },
  },
  {
    name: 'lines up to the limit are kept',
    text: multiline('max_lines: 3'),
    message: 'a\n b\n c',
    expected: { message: 'a\n b\n c' },
  },
  {
    name: 'lines without line feeds between them',
    text: multiline('skip_newline: true'),
    message: 'a\n b',
    expected: { message: 'a b', log: { ...path, flags: ['multiline'] } },
  },
  { name: 'an empty line is left out', text: log, message: '', expected: undefined },
  { name: 'a line with a space is not empty', text: log, message: ' ', expected: { message: ' ' } },
  { name: 'an empty line that a reader of JSON gets', text: json, message: '', expected: { message: '' } },
])('lines: $name', run)

const toInteger = json + processors('convert.fields: [{ from: a, type: integer }]')
test.each<Case>([
  { name: 'a larger number', text: toInteger, message: '{"a":4294967297}', expected: { a: 1 } },
  { name: 'the sign of the lowest bits', text: toInteger, message: '{"a":2147483648}', expected: { a: -2147483648 } },
  { name: 'a smaller number', text: toInteger, message: '{"a":-2147483649}', expected: { a: 2147483647 } },
  { name: 'a number of 32 bits', text: toInteger, message: '{"a":-5}', expected: { a: -5 } },
  { name: 'a text beyond 32 bits', text: toInteger, message: '{"a":"4294967297"}', expected: { a: '4294967297' } },
  { name: 'hexadecimal digits', text: toInteger, message: '{"a":"-0x1F"}', expected: { a: -31 } },
  { name: 'a prefix without digits', text: toInteger, message: '{"a":"0x"}', expected: { a: '0x' } },
])('to 32 bits: $name', run)

const direction =
  json +
  processors(
    'add_network_direction: { source: s, destination: d, target: way, internal_networks: [private, 100.64.0.0/10] }',
  )
test.each<Case>([
  { name: 'within', text: direction, message: '{"s":"10.0.0.1","d":"100.64.1.1"}', expected: { way: 'internal' } },
  { name: 'out', text: direction, message: '{"s":"10.0.0.1","d":"8.8.8.8"}', expected: { way: 'outbound' } },
  { name: 'in', text: direction, message: '{"s":"2001:db8::1","d":"192.168.0.1"}', expected: { way: 'inbound' } },
  { name: 'beside', text: direction, message: '{"s":"8.8.4.4","d":"8.8.8.8"}', expected: { way: 'external' } },
  { name: 'without an address', text: direction, message: '{"s":"x","d":"8.8.8.8"}', expected: { way: null } },
  {
    name: 'the time zone of a container',
    text: json + processors('add_locale: ~'),
    message: '{}',
    expected: { event: { timezone: '+00:00' } },
  },
  {
    name: 'the path of the file in old versions',
    text: `${log.replace('type', 'input_type')}  document_type: web\n${processors('drop_event.when.not.contains: { source: srv/ }')}`,
    message: 'x',
    expected: { type: 'web', source: '/srv/app.log' },
  },
])('an origin: $name', run)

const ownObject =
  '{ type: container, paths: [/var/log/containers/*.log], fields: { kubernetes: { cluster: c1, namespace: x } }, fields_under_root: true }'
test.each([
  [
    'discovery is merged into objects that the event has',
    `filebeat.autodiscover.providers: [{ type: kubernetes, templates: [{ config: [${ownObject}] }] }]\n`,
    'shop',
  ],
  [
    'the processor is left out if the event has the object',
    `filebeat.inputs: [${ownObject}]\n${processors('add_kubernetes_metadata: ~')}`,
    'x',
  ],
])('the metadata of %s', async (_, text, namespace) => {
  const { document, resource } = convert(text + discard)
  const expected = { 'kubernetes.cluster': 'c1', 'kubernetes.namespace': namespace }
  withTest(document, resource, { message: 'x', orchestrator: { pod_namespace: 'shop' } }, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['resource: pod', []],
  ['resource: service', ['autodiscover: resource']],
])('a provider with %s', (options, subjects) => {
  const { gaps } = convert(
    `filebeat.autodiscover.providers: [{ type: kubernetes, hints.enabled: true, ${options} }]\n${discard}`,
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(subjects)
})

test.each([
  ['rename.fields: [{ from: host.os.name, to: node }]', 'rename: host.os.name'],
  ['copy_fields: { fields: [{ from: agent.id, to: node }], ignore_missing: true }', 'copy_fields: agent.id'],
  ['fingerprint: { fields: [message, log.offset] }', 'fingerprint: log.offset'],
  ['dissect: { tokenizer: "%{a}-%{b}", field: cloud.region }', 'dissect: cloud.region'],
])('a processor that reads a field of Filebeat is a gap: %s', (step, subject) => {
  expect(convert(log + processors(step) + discard).gaps.map((gap) => gap.subject)).toEqual([subject])
})

test.each([
  ['', processors('rename.fields: [{ from: host.name, to: node }]'), { node: 'n1', host: {} }],
  ['name: web-1\n', processors('add_tags: { tags: [own], when.equals.agent.name: web-1 }'), { tags: ['own'] }],
  ['', `output.console.codec.format.string: '%{[host][name]} %{[message]}'\n`, { message: 'n1 x' }],
  ['', processors('drop_fields.fields: [host.name]'), { host: null }],
])('a field with the name of the machine has that of the node: %s%s', async (name, text, expected) => {
  const pods = `${name}filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]\n`
  const { document, resource, gaps } = convert(pods + text + (/^output/m.test(text) ? '' : discard))
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: 'x', orchestrator: { pod_node_name: 'n1' } }, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['modules.path: "${path.config}/modules.d/*.yml"', 'filebeat.config.modules', true],
  ['inputs.path: "${path.config}/inputs.d/*.yml"', 'filebeat.config', undefined],
])('files that are not given: %s', (options, subject, isReplaced) => {
  const { gaps } = convert(`filebeat.config:\n  ${options}\n${log}${discard}`)
  expect(gaps.map((gap) => [gap.subject, gap.isReplaced])).toEqual([[subject, isReplaced]])
})

test('another prefix of annotations', async () => {
  const provider =
    '{ type: kubernetes, prefix: org.shop, use_kubeadm: false, hints.enabled: true, hints.default_config.enabled: false }'
  const { document, resource } = convert(`filebeat.autodiscover.providers: [${provider}]\n${discard}`)
  const annotations = { 'org.shop.logs/enabled': 'true' }
  withTest(document, resource, { message: 'x', orchestrator: { pod_annotations: annotations } }, { message: 'x' })
  expect(await lint(document.toString())).toEqual([])
})

test('options of old and of new versions have no gap', () => {
  const text = `xpack.monitoring.enabled: true\n${log}  ignore_inactive: since_last_start\n  force_close_files: true\noutput.elasticsearch: { hosts: [es], index: a, template.settings: { index.codec: best }, ilm.enabled: false }\n`
  const { gaps, resource } = convert(text)
  expect(gaps.map((gap) => [gap.subject, gap.isReplaced])).toEqual([
    ['log: ignore_inactive', true],
    ['xpack', true],
  ])
  expect(resource.spec.sources[0].config.read_from).toBe('end')
})

const timed = (options: string) => `${json}${processors(`timestamp: { field: t, target_field: x, ${options} }`)}`
const at = (time: string) => ({ x: new Date(time).toISOString() })
test.each([
  {
    name: 'an offset',
    options: 'timezone: "+02:00", layouts: ["2006-01-02 15:04"]',
    t: '2026-03-04 05:06',
    ...at('2026-03-04T03:06Z'),
  },
  {
    name: 'an offset beside that of the text',
    options: 'timezone: "-0330", layouts: ["2006-01-02 15:04 -0700"]',
    t: '2026-03-04 05:06 +0100',
    ...at('2026-03-04T04:06Z'),
  },
  {
    name: 'the machine',
    options: 'timezone: Local, layouts: ["2006-01-02 15:04"]',
    t: '2026-03-04 05:06',
    ...at('2026-03-04T05:06Z'),
  },
  {
    name: 'an abbreviation',
    options: 'timezone: EST, layouts: ["2006-01-02 15:04"]',
    t: '2026-07-04 05:06',
    ...at('2026-07-04T10:06Z'),
  },
  {
    name: 'the name in the text',
    options: 'layouts: ["2006-01-02 15:04 MST"]',
    t: '2026-03-04 05:06 UTC',
    ...at('2026-03-04T05:06Z'),
  },
  {
    name: 'the name in the text, in its location',
    options: 'timezone: Europe/Berlin, layouts: ["Mon Jan _2 15:04:05 MST 2006"]',
    t: 'Wed Mar  4 05:06:07 CET 2026',
    ...at('2026-03-04T04:06:07Z'),
  },
])('a time zone: $name', async ({ options, t, x }) => {
  const { document, resource, gaps } = convert(timed(options) + discard)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  resource.spec.transforms.push({ name: 'text', type: 'remap', inputs: [resource.spec.sinks[0].inputs[0]] })
  document.addIn(
    ['spec', 'transforms'],
    document.createNode({
      name: 'text',
      type: 'remap',
      inputs: resource.spec.sinks[0].inputs,
      config: { source: '.x = format_timestamp!(.x, "%Y-%m-%dT%H:%M:%S%.3fZ")' },
    }),
  )
  document.setIn(['spec', 'sinks', 0, 'inputs'], ['text'])
  resource.spec.sinks[0].inputs = ['text']
  withTest(document, resource, line(JSON.stringify({ t })), { x })
  expect(await lint(document.toString())).toEqual([])
})

test.each<Case>(
  [
    ['02.01.2006 15:04:05', '04.03.2026 05:06:07', ''],
    ['02.01.2006 15:04:05.000', '04.03.2026 05:06:07.089', '.089'],
    ['2006.01.02 15:04:05,000', '2026.03.04 05:06:07,089', '.089'],
    ['2006.01.02 15:04:05', '2026.03.04 05:06:07.089', '.089'],
  ].map(([layout = '', t = '', fraction = '']) => ({
    name: `${layout} of ${t}`,
    text: `${json}${processors(`timestamp: { field: t, layouts: ['${layout}'] }`)}`,
    message: JSON.stringify({ t }),
    expected: { timestamp: `2026-03-04T05:06:07${fraction}Z` },
  })),
)('a layout with dots: $name', run)

test.each([
  ['${ES_HOST}:${ES_PORT}', 'SECRET[env.ES_ADDRESS]'],
  ['https://es:${ES_PORT}', 'SECRET[env.ES_ADDRESS]'],
  ['${ES_HOST}', 'http://SECRET[env.ES_HOST]:9200'],
])('the address of %s', (host, expected) => {
  const { gaps, resource } = convert(`${log}output.elasticsearch: { hosts: ["${host}"], index: a }\n`)
  expect(gaps.every(({ isReplaced }) => isReplaced === true)).toBe(true)
  expect(resource.spec.sinks[0].config.endpoints).toEqual([expected])
})

test('several certificate authorities as texts are one', () => {
  const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`
  const listed = JSON.stringify([pem('a'), pem('b')])
  const { gaps, resource } = convert(
    `${log}output.elasticsearch: { hosts: [es], index: a, ssl.certificate_authorities: ${listed} }\n`,
  )
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.tls).toEqual({ ca_file: `${pem('a')}${pem('b')}`.trim() })
})

test.each([
  ['shop', { fields: { stage: 'a' }, tags: ['added'] }],
  ['other', { fields: null, tags: null }],
])('an appender adds to the inputs of pods in the namespace shop: %s', async (namespace, expected) => {
  const appender =
    '{ type: config, condition.equals: { kubernetes.namespace: shop }, config: { fields: { stage: a }, processors: [{ add_tags: { tags: [added] } }] } }'
  const { document, resource, gaps } = convert(
    `filebeat.autodiscover.providers: [{ type: kubernetes, hints.enabled: true, appenders: [${appender}] }]\n${discard}`,
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: 'x', orchestrator: { pod_namespace: namespace } }, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['{ rollover_alias: shop }', 'shop'],
  ['{ enabled: auto, rollover_alias: Shop }', 'shop'],
  ['{ enabled: false, rollover_alias: shop }', 'own'],
  ['{ enabled: true }', 'own'],
])('the alias of the index life cycle %s', (lifeCycle, index) => {
  const { resource } = convert(`setup.ilm: ${lifeCycle}\n${log}output.elasticsearch: { hosts: [es], index: own }\n`)
  expect(resource.spec.sinks[0].config.bulk.index).toBe(index)
})

test.each([
  ['equals.kubernetes.annotations.org_shop/log: "on"', { pod_annotations: { 'org.shop/log': 'on' } }],
  ['contains.kubernetes.container.image: nginx', { container_image: 'docker.io/nginx:1' }],
  ['equals.kubernetes.container.runtime: containerd', { container_id: 'containerd://abc' }],
  ['equals.kubernetes.container.id: abc', { container_id: 'containerd://abc' }],
])('a template chooses pods by what only discovery knows: %s', async (condition, pod) => {
  const config = '[{ type: container, paths: ["/var/log/containers/*.log"] }]'
  const provider = `{ type: kubernetes, templates: [{ condition: { ${condition} }, config: ${config} }] }`
  for (const isMet of [true, false]) {
    const { document, resource, gaps } = convert(`filebeat.autodiscover.providers: [${provider}]\n${discard}`)
    const event = { message: 'x', orchestrator: { pod_name: 'a', container_name: 'b', ...(isMet ? pod : {}) } }
    const expected = { message: 'x', kubernetes: { pod: { name: 'a' }, container: { name: 'b' } } }
    withTest(document, resource, event, isMet ? expected : undefined)
    expect(await lint(document.toString())).toEqual([])
    expect(gaps).toEqual([])
  }
})

test.each<Case>([
  {
    name: 'all members of an object get a prefix',
    text: json + processors('move_fields: { from: a, to: x.b_, exclude: [d] }'),
    message: '{"a":{"c":1,"d":2},"x":{"y":3}}',
    expected: { a: { d: 2 }, x: { y: 3, b_c: 1 } },
  },
  {
    name: 'escaped signs of a text',
    text: json + processors(`add_fields: { target: "", fields: { a: 'x$$y$}z$' } }`),
    message: '{}',
    expected: { a: 'x$y}z$' },
  },
])('other steps: $name', run)

test('the metadata of containers is that of pods', async () => {
  const text = `filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]\nprocessors: [{ add_docker_metadata: { host: "unix:///var/run/docker.sock" } }]\n${discard}`
  const { document, resource, gaps } = convert(text)
  expect(gaps).toEqual([])
  const orchestrator = { container_id: 'containerd://abc', container_image: 'web:1' }
  withTest(document, resource, { message: 'x', orchestrator }, { container: { id: 'abc', image: { name: 'web:1' } } })
  expect(await lint(document.toString())).toEqual([])
})

test.each(['convert: { fields: [] }', 'registered_domain: { field: host }'])(
  'a step without work has no program: %s',
  (step) => {
    expect(convert(log + processors(step) + discard).gaps).toEqual([])
  },
)
