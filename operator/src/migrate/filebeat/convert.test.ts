// Converted Filebeat configurations: the output for an event, and gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const pods = 'filebeat.inputs:\n- type: container\n  paths: [/var/log/containers/*.log]\n'
const files = 'filebeat.inputs:\n- type: log\n  paths: [/srv/app.log]\n'
const end = 'output.discard:\n  enabled: true\n'
const time = '2026-11-24T10:11:12.5Z'
const line = (message: string) => ({
  message,
  stream: 'stdout',
  timestamp: time,
  file: '/var/log/containers/web-1_shop_web-abc.log',
  orchestrator: {
    pod_name: 'web-1',
    pod_namespace: 'shop',
    container_name: 'web',
    container_id: 'containerd://abc',
    container_image: 'web:1',
    pod_labels: { 'app.kubernetes.io/name': 'web' },
  },
})
const plain = (message: string) => ({ message, file: '/srv/app.log', timestamp: time })

test.each([
  {
    name: 'pod metadata',
    text: `${pods}processors:\n- add_kubernetes_metadata: ~\n`,
    event: line('x'),
    expected: {
      message: 'x',
      stream: 'stdout',
      container: { id: 'abc', image: { name: 'web:1' }, runtime: 'containerd' },
    },
  },
  {
    name: 'files without the metadata of a pod',
    text: `${files}processors:\n- add_kubernetes_metadata: ~\n`,
    event: plain('x'),
    expected: { message: 'x', kubernetes: null, container: null },
  },
  {
    name: 'lines that a pattern drops',
    text: pods.replace('  paths', '  exclude_lines: ["^DBG"]\n  paths'),
    event: line('DBG x'),
    expected: undefined,
  },
  {
    name: 'another stream',
    text: pods.replace('  paths', '  stream: stderr\n  paths'),
    event: line('x'),
    expected: undefined,
  },
  {
    name: 'members over fields',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "", overwrite_keys: true }\n`,
    event: plain('{"message":"inner","a":{"b":1}}'),
    expected: { message: 'inner', a: { b: 1 } },
  },
  {
    name: 'members of objects beside fields, and the time of the line',
    text: files.replace('  paths', '  json: { keys_under_root: true, overwrite_keys: true }\n  paths'),
    event: plain('{"@timestamp":"2020-01-02T03:04:05.678Z","log":{"level":"warn"},"a":1}'),
    expected: {
      timestamp: '2020-01-02T03:04:05.678Z',
      log: { file: { path: '/srv/app.log' }, level: 'warn' },
      a: 1,
    },
  },
  {
    name: 'the time of the event over that of the line',
    text: files.replace('  paths', '  json.keys_under_root: true\n  paths'),
    event: plain('{"@timestamp":"2020-01-02T03:04:05Z","log":{"file":"x","level":"warn"}}'),
    expected: { timestamp: time, log: { file: { path: '/srv/app.log' }, level: 'warn' } },
  },
  {
    name: 'names with dots as objects',
    text: `filebeat.inputs:\n- type: filestream\n  paths: [/srv/app.log]\n  parsers:\n  - ndjson: { expand_keys: true }\n`,
    event: plain('{"log.level":"warn","a.b":1,"a.c":2}'),
    expected: { log: { file: { path: '/srv/app.log' }, level: 'warn' }, a: { b: 1, c: 2 } },
  },
  {
    name: 'a pattern for lines reads the field with the text of the line',
    text: files.replace('  paths', '  json: { message_key: msg }\n  exclude_lines: ["^DBG"]\n  paths'),
    event: plain('{"msg":"DBG x"}'),
    expected: undefined,
  },
  {
    name: 'a pattern for lines reads lines that are not JSON',
    text: files.replace(
      '  paths',
      '  json: { message_key: msg, keys_under_root: true }\n  include_lines: ["^ERR"]\n  paths',
    ),
    event: plain('ERR x'),
    expected: { message: 'ERR x' },
  },
  {
    name: 'a branch that drops an event',
    text: `${files}processors:\n- if: { contains: { message: DBG } }\n  then:\n  - drop_event: {}\n  else:\n  - add_tags: { tags: [kept] }\n`,
    event: plain('DBG x'),
    expected: undefined,
  },
  {
    name: 'a branch that drops no event',
    text: `${files}processors:\n- if: { contains: { message: DBG } }\n  then:\n  - drop_event: {}\n  else:\n  - add_tags: { tags: [kept] }\n`,
    event: plain('x'),
    expected: { message: 'x', tags: ['kept'] },
  },
  {
    name: 'a branch that drops some events',
    text: `${files}processors:\n- if: { contains: { message: DBG } }\n  then:\n  - drop_event.when.contains.message: noise\n`,
    event: plain('DBG x'),
    expected: { message: 'DBG x' },
  },
  {
    name: 'fields whose whole names match',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "" }\n- drop_fields: { fields: ["/^log\\\\.file/", "/^a\\\\.b$/", message] }\n`,
    event: plain('{"a":{"b":1,"c":2}}'),
    expected: { log: {}, a: { c: 2 } },
  },
  {
    name: 'fields over members',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "" }\n`,
    event: plain('{"message":"inner","a":1}'),
    expected: { message: '{"message":"inner","a":1}', a: 1 },
  },
  {
    name: 'parts and types',
    text: `${files}processors:\n- dissect: { tokenizer: "%{level} [%{code}] %{text}", target_prefix: "" }\n- convert:\n    fields:\n    - { from: code, to: status, type: integer }\n    mode: rename\n- lowercase: { fields: [Other], values: [level] }\n`,
    event: plain('ERR [404] not found'),
    expected: { level: 'err', status: 404, text: 'not found' },
  },
  {
    name: 'names and values in another case',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "" }\n- drop_fields: { fields: [message] }\n- lowercase: { fields: [A.B, Gone], values: [v], ignore_missing: true }\n- uppercase: { fields: [x.y], alter_full_field: false }\n`,
    event: plain('{"A":{"B":"Up"},"v":"UP","x":{"y":1}}'),
    expected: { a: { b: 'Up' }, v: 'up', x: { Y: 1 } },
  },
  {
    name: 'texts in texts, a list, and an id',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "", max_depth: 2, document_id: id }\n- drop_fields: { fields: [message] }\n`,
    event: plain('{"a":"{\\"b\\":\\"{}\\"}","l":"[1]","t":"x","id":"7"}'),
    expected: { a: { b: '{}' }, l: '[1]', t: 'x' },
  },
  {
    name: 'texts in texts to depth 3, with lists',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: d, max_depth: 3, process_array: true }\n`,
    event: plain('{"a":"{\\"b\\":\\"{}\\"}","l":"[1]"}'),
    expected: { d: { a: { b: {} }, l: [1] } },
  },
  {
    name: 'an encoded query',
    text: `${files}processors:\n- urldecode: { fields: [{ from: message, to: q }] }\n`,
    event: plain('a+b%2Bc'),
    expected: { q: 'a b+c' },
  },
  {
    name: 'a time',
    text: `${files}processors:\n- dissect: { tokenizer: "%{ts} %{rest}", target_prefix: "" }\n- timestamp: { field: ts, layouts: ["2006-01-02T15:04:05"] }\n`,
    event: plain('2020-01-02T03:04:05 x'),
    expected: { rest: 'x', timestamp: '2020-01-02T03:04:05Z' },
  },
  {
    name: 'a condition that holds',
    text: `${files}processors:\n- drop_event:\n    when:\n      and:\n      - regexp: { message: "^a.*z$" }\n      - not: { contains: { message: keep } }\n`,
    event: plain('a to z'),
    expected: undefined,
  },
  {
    name: 'a condition that does not hold',
    text: `${files}processors:\n- drop_event:\n    when:\n      and:\n      - regexp: { message: "^a.*z$" }\n      - not: { contains: { message: keep } }\n- add_tags: { tags: [x] }\n- add_fields: { target: p, fields: { n: 7, s: "seven" } }\n`,
    event: plain('a keep z'),
    expected: { message: 'a keep z', p: { n: 7, s: 'seven' } },
  },
  {
    name: 'numbers',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "" }\n- drop_event.when.range: { status.gte: 400, status.lt: 500 }\n`,
    event: plain('{"status":404}'),
    expected: undefined,
  },
  {
    name: 'a branch',
    text: `${files}processors:\n- if: { contains: { message: ERR } }\n  then:\n  - add_fields: { target: "", fields: { level: error } }\n  else:\n  - add_fields: { target: "", fields: { level: info } }\n- rename: { fields: [{ from: message, to: event.original }] }\n`,
    event: plain('ERR x'),
    expected: { level: 'error', event: { original: 'ERR x' } },
  },
  {
    name: 'fields and tags of all',
    text: `${files}fields: { team: shop }\nfields_under_root: true\ntags: [a]\n`,
    event: plain('x'),
    expected: { message: 'x', team: 'shop' },
  },
  {
    name: 'parts of one name, and types',
    text: `${files}processors:\n- dissect: { tokenizer: "%{ts} %{+ts} %{code|integer} %{text}", target_prefix: "" }\n`,
    event: plain('2020-01-02 10:11 404 gone'),
    expected: { ts: '2020-01-02 10:11', code: 404, text: 'gone' },
  },
  {
    name: 'a part whose field is there',
    text: `${files}processors:\n- dissect: { tokenizer: "%{message}=%{value}", target_prefix: "" }\n`,
    event: plain('a=b'),
    expected: { message: 'a=b' },
  },
  {
    name: 'columns, and items of a list',
    text: `${files}processors:\n- decode_csv_fields: { fields: { message: csv }, separator: ";", trim_leading_space: true }\n- extract_array: { field: csv, mappings: { a.b: 0, c: 2 } }\n`,
    event: plain('1; x;three'),
    expected: { a: { b: '1' }, c: 'three' },
  },
  {
    name: 'a list that is too short',
    text: `${files}processors:\n- decode_csv_fields: { fields: { message: csv } }\n- extract_array: { field: csv, mappings: { a: 0, b: 2 } }\n`,
    event: plain('1,2'),
    expected: { message: '1,2', a: null, b: null },
  },
  {
    name: 'an XML document with lower-case names',
    text: `${files}processors:\n- decode_xml: { field: message, target_field: xml }\n`,
    event: plain('<Catalog><Book Seq="1"><Author>Gaddis</Author><Year>1985</Year></Book></Catalog>'),
    expected: { xml: { catalog: { book: { author: 'Gaddis', seq: '1', year: '1985' } } } },
  },
  {
    name: 'an XML document that replaces its text',
    text: `${files}processors:\n- decode_xml: { field: message, to_lower: false }\n`,
    event: plain('<A><b>x</b><b c="d">y</b></A>'),
    expected: { message: { A: { b: ['x', { c: 'd', '#text': 'y' }] } } },
  },
  {
    name: 'text that is not XML',
    text: `${files}processors:\n- decode_xml: { field: message, ignore_failure: true }\n`,
    event: plain('<A><b>'),
    expected: { message: '<A><b>' },
  },
  {
    name: 'syslog of RFC 5424',
    text: `${files}processors:\n- syslog: { field: message }\n`,
    event: plain(
      '<165>1 2022-01-11T10:00:00.123Z mymachine.example.com eventslog 1024 ID47 [exampleSDID@32473 iut="3"] An event',
    ),
    expected: {
      message: 'An event',
      timestamp: '2022-01-11T10:00:00.123Z',
      log: {
        file: { path: '/srv/app.log' },
        syslog: {
          appname: 'eventslog',
          facility: { code: 20, name: 'local4' },
          hostname: 'mymachine.example.com',
          msgid: 'ID47',
          priority: 165,
          procid: '1024',
          severity: { code: 5, name: 'Notice' },
          structured_data: { 'exampleSDID@32473': { iut: '3' } },
          version: '1',
        },
      },
    },
  },
  {
    name: 'syslog lines from a file, whose existing fields are kept',
    text: `${files}processors:\n- syslog: { field: message, overwrite_keys: false }\n`,
    event: plain('<34>Oct 11 22:14:15 mymachine su[230]: failed'),
    expected: {
      message: '<34>Oct 11 22:14:15 mymachine su[230]: failed',
      'log.syslog.severity.name': 'Critical',
      'log.syslog.facility.name': 'security/authorization',
      'log.syslog.procid': '230',
    },
  },
  {
    name: 'base64',
    text: `${files}processors:\n- decode_base64_field: { field: { from: message, to: text } }\n`,
    event: plain('aGVsbG8='),
    expected: { message: 'aGVsbG8=', text: 'hello' },
  },
  {
    name: 'a time of another zone',
    text: `${files}processors:\n- timestamp: { field: message, layouts: ["2006-01-02T15:04:05"], timezone: Europe/Rome }\n`,
    event: plain('2024-07-01T12:00:00'),
    expected: { timestamp: '2024-07-01T10:00:00Z' },
  },
])('an event: $name', async ({ text, event, expected }) => {
  const { document, resource, gaps } = convert(text + end)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event, expected)
  expect(await lint(document.toString())).toEqual([])
})

test('gaps contain the file, the line, the reason and the action to take', () => {
  const { gaps } = convert(`filebeat.inputs:
- type: log
  paths: [/a]
  odd_option: 1
- type: tcp
processors:
- script:
    source: x
- drop_event:
    when.odd: { a: 1 }
output.logstash:
  hosts: [a]
`)
  expect(gaps.map(({ line: at, subject, reason }) => `${at} ${subject}: ${reason}`)).toEqual([
    '4 log: odd_option: the option `odd_option` has no counterpart',
    '5 input tcp: there is no source that listens for this protocol',
    '7 processor script: Penstock does not run JavaScript',
    '10 condition odd: the condition has no counterpart',
    '11 output logstash: there is no sink for this protocol',
  ])
})

test('a rule for an index becomes a metadata field, which is not sent', () => {
  const { resource } = convert(
    `${files}output.elasticsearch:\n  hosts: ["http://es:9200"]\n  index: rest\n  indices:\n  - index: errors\n    when.contains: { message: ERR }\n`,
  )
  const [sink] = resource.spec.sinks
  expect(sink.config.bulk.index).toBe('{{ %index }}')
  expect(resource.spec.transforms.at(-1).config.source).toContain('{ %index = "errors" }')
})

test.each([
  { message: 'ERR x', level: undefined, index: 'err-\\d{4}\\.\\d\\d\\.\\d\\d' },
  { message: 'x', level: 'warn', index: 'warn-logs' },
  { message: 'ERR x', level: 'warn', index: 'err-\\d{4}\\.\\d\\d\\.\\d\\d' },
  { message: 'x', level: undefined, index: 'app-\\d{4}\\.\\d\\d' },
])('the first index rule that matches wins: $index', async ({ message, level, index }) => {
  const output = `output.elasticsearch:
  hosts: [es]
  index: "app-%{+yyyy.MM}"
  indices:
  - index: "err-%{+yyyy.MM.dd}"
    when.contains: { message: ERR }
  - index: "%{[level]}-logs"
    when.has_fields: [level]
`
  const { document, resource, gaps } = convert(`${files}${output}`)
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.bulk.index).toBe('{{ %index }}')
  const event = { ...plain(message), ...(level === undefined ? {} : { level }) }
  const at = resource.spec.transforms.at(-1)?.name
  const wanted = [{ at, assert: `match(string!(%index), r'^${index}$')` }]
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt: at, input: { log: event }, expect: wanted }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a cloud id becomes the address of the store', () => {
  const id = Buffer.from('eu-west-1.aws.example.com$abc$def').toString('base64')
  const { resource } = convert(`cloud.id: "shop:${id}"\ncloud.auth: "elastic:secret:word"\n${files}`)
  expect(resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['https://abc.eu-west-1.aws.example.com:443'],
    auth: { strategy: 'basic', user: 'elastic', password: 'secret:word' },
  })
})

test('a Beat refers to its store by name', async () => {
  const beat = `apiVersion: beat.k8s.elastic.co/v1beta1
kind: Beat
metadata: { name: fb, namespace: logs }
spec:
  elasticsearchRef: { name: store }
  config:
    filebeat.inputs:
    - { type: container, paths: [/var/log/containers/*.log] }
`
  const { document, resource } = convert(beat)
  expect(resource.spec.sinks[0]).toMatchObject({
    type: 'search_engine',
    config: {
      endpoints: ['https://store-es-http.logs.svc:9200'],
      auth: { user: 'SECRET[env.ELASTICSEARCH_USERNAME]' },
      tls: {
        ca_file: {
          valueFrom: { secretKeyRef: { name: 'store-es-http-certs-public', namespace: 'logs', key: 'ca.crt' } },
        },
      },
    },
  })
  expect(
    await lint(`${document.toString({ lineWidth: 0 })}---
apiVersion: v1
kind: Secret
metadata: { name: store-es-http-certs-public, namespace: logs }
stringData: { ca.crt: "-----BEGIN CERTIFICATE-----" }
`),
  ).toEqual([])
})

test('options of a Beat take precedence over those of its store', () => {
  const { resource, gaps } = convert(`kind: Beat
metadata: { name: fb, namespace: logs }
spec:
  elasticsearchRef: { name: store, namespace: es }
  config:
    filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]
    output.elasticsearch: { index: a, pipeline: shop, ssl.verification_mode: none, username: me }
`)
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['https://store-es-http.es.svc:9200'],
    pipeline: 'shop',
    auth: { user: 'me', password: 'SECRET[env.ELASTICSEARCH_PASSWORD]' },
    tls: { verify_certificate: false, verify_hostname: false },
  })
})

const secretData = (name: string, text: string) =>
  `kind: Secret\nmetadata: { name: filebeat }\n${name}:\n  filebeat.yml: ${JSON.stringify(text)}\n`
test.each([
  ['the text of a Secret', secretData('stringData', files + end)],
  ['the data of a Secret', secretData('data', Buffer.from(files + end).toString('base64'))],
])('%s', (_, text) => {
  expect(convert(text).resource.spec.sources).toMatchObject([{ type: 'file' }])
})

test('the values of a chart with the name filebeat are not the settings of Filebeat', () => {
  const indented = (files + end).replace(/^(?=.)/gm, '        ')
  const text = `filebeat:\n  daemonset:\n    filebeatConfig:\n      filebeat.yml: |\n${indented}`
  const found = agentFor([{ file: 'values.yaml', text }])
  expect(found?.agent.name).toBe('filebeat')
  const { resource } = converted(convertFilebeat, found?.files ?? [])
  expect(resource.spec.sources).toMatchObject([{ type: 'file' }])
})

test('the text for a missing variable is not its default', () => {
  const { resource } = convert(`${files}output.elasticsearch: { hosts: ["\${STORE:?set the store}"], index: a }\n`)
  expect(resource.spec.sinks[0].config.endpoints).toEqual(['http://SECRET[env.STORE]:9200'])
})

const hinted = (enabled: string) =>
  `filebeat.autodiscover:\n  providers:\n  - type: kubernetes\n    hints: { enabled: true, default_config.enabled: ${enabled} }\n`

test.each([
  { byDefault: 'false', annotations: {}, isRead: false },
  { byDefault: 'false', annotations: { 'co.elastic.logs/enabled': 'true' }, isRead: true },
  { byDefault: 'true', annotations: {}, isRead: true },
  { byDefault: 'true', annotations: { 'co.elastic.logs/enabled': 'false' }, isRead: false },
  {
    byDefault: 'true',
    annotations: { 'co.elastic.logs/enabled': 'false', 'co.elastic.logs.web/enabled': 'true' },
    isRead: true,
  },
])('hints enable a pod by annotation: $byDefault, $annotations', async ({ byDefault, annotations, isRead }) => {
  const { document, resource, gaps } = convert(hinted(byDefault) + end)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const event = line('x')
  const given = { ...event, orchestrator: { ...event.orchestrator, pod_annotations: annotations } }
  withTest(document, resource, given, isRead ? { message: 'x' } : undefined)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  { kind: 'audit', index: 'secure' },
  { kind: 'other', index: 'plain' },
])('an index from a mapping of values: $kind', async ({ kind, index }) => {
  const { document, resource } = convert(
    `${files}  fields: { kind: ${kind} }\noutput.elasticsearch:\n  hosts: ["http://es:9200"]\n  indices:\n  - { index: "%{[fields.kind]}", mappings: { audit: secure }, default: plain }\n`,
  )
  const at = resource.spec.transforms.at(-1)?.name
  const expected = [{ at, assert: `%index == "${index}"` }]
  const insertAt = resource.spec.transforms[0]?.name
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt, input: { log: plain('x') }, expect: expected }])
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  { index: undefined, expected: 'errors' },
  { index: 'nginx', expected: 'nginx' },
  { index: 'nginx-%{+yyyy.MM.dd}', expected: 'nginx-\\d{4}\\.\\d\\d\\.\\d\\d' },
])('the index of an input takes precedence over rules: $index', async ({ index, expected }) => {
  const { document, resource, gaps } = convert(
    `${files}${index === undefined ? '' : `  index: "${index}"\n`}output.elasticsearch:\n  hosts: [es]\n  index: rest\n  indices:\n  - { index: errors, when.contains: { message: ERR } }\n`,
  )
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.bulk.index).toBe('{{ %index }}')
  const [sink] = resource.spec.sinks
  const wanted = [{ at: sink.inputs[0], assert: `match(string!(%index), r'^${expected}$')` }]
  const insertAt = resource.spec.transforms[0]?.name
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt, input: { log: plain('ERR x') }, expect: wanted }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { given: 'Logs-%{+yyyy.MM.dd}', index: 'logs-%Y.%m.%d' },
  { given: 'App-%{[fields.team]:None}-X', index: '{{ %index }}', name: 'app-none-x' },
  { given: 'App-%{[fields.kind]}', index: '{{ %index }}', name: 'app-web' },
])('the name of an index is in lower case, with its defaults: $given', async ({ given, index, name }) => {
  const { document, resource } = convert(
    `${files}  fields: { kind: Web }\noutput.elasticsearch:\n  hosts: [es]\n  index: "${given}"\n`,
  )
  const [sink] = resource.spec.sinks
  expect(sink.config.bulk.index).toBe(index)
  if (name === undefined) return
  const input = { log: { message: 'x', file: '/srv/app.log' } }
  const expected = [{ at: sink.inputs[0], assert: `%index == "${name}"` }]
  const insertAt = resource.spec.transforms[0].name
  document.setIn(['spec', 'tests'], [{ name: 'index', insertAt, input, expect: expected }])
  expect(await lint(String(document))).toEqual([])
})

test('an index of an input with fields of the event is a gap', () => {
  const { gaps } = convert(`${files}  index: "%{[agent.id]}-x"\n${end}`)
  expect(gaps.map(({ subject }) => subject)).toEqual(['log: %{[agent.id]}-x'])
})

test.each([
  ['gbk', { encoding: { charset: 'gbk' } }],
  ['utf-16le-bom', { encoding: { charset: 'utf-16le' } }],
  ['plain', {}],
])('lines of files in %s', async (encoding, config) => {
  const { document, resource, gaps } = convert(`${files}  encoding: ${encoding}\n${end}`)
  expect(gaps).toEqual([])
  const { include: _, read_from: __, max_line_bytes: ___, ...others } = resource.spec.sources[0].config
  expect(others).toEqual(config)
  expect(await lint(String(document))).toEqual([])
})

test('lines of pods in another character set are a gap', () => {
  const { gaps } = convert(`${pods}  encoding: gbk\n${end}`)
  expect(gaps.map(({ subject, line: at }) => [subject, at])).toEqual([['container: encoding gbk', 2]])
})

test('a processor whose condition has no counterpart leaves a comment', () => {
  const { document } = convert(
    `${files}processors:\n- drop_event.when.odd: { a: 1 }\n- if.odd: { a: 1 }\n  then: [{ add_tags: { tags: [x] } }]\n${end}`,
  )
  const text = String(document)
  expect(text).toContain('GAP: the condition of the processor `drop_event` (filebeat.yml:5) has no counterpart.')
  expect(text).toContain('GAP: the condition of the processor `if` (filebeat.yml:6) has no counterpart.')
})

test('only wanted labels of a pod are included', async () => {
  const { document, resource, gaps } = convert(
    `${pods}processors:\n- add_kubernetes_metadata: { include_labels: [app.io/name, tier], exclude_labels: [tier] }\noutput.console: ~\n`,
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const labels = { 'app.io/name': 'web', tier: 'x', other: 'y' }
  const event = { message: 'm', orchestrator: { pod_labels: labels } }
  withTest(document, resource, event, { 'kubernetes.labels': { 'app_io/name': 'web' } })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  {
    text: '',
    expected: {
      'kubernetes.namespace_labels': { 'team_io/name': 'money', env: 'prod' },
      'kubernetes.node': { name: 'n1', labels: { 'topology_io/zone': 'a', arch: 'arm64' } },
    },
  },
  {
    text: ', add_resource_metadata: { namespace: { include_labels: [env] }, node: { enabled: false } }',
    expected: { 'kubernetes.namespace_labels': { env: 'prod' }, 'kubernetes.node': { name: 'n1' } },
  },
  {
    text: ', labels.dedot: false, add_resource_metadata: { namespace.enabled: false, node.exclude_labels: [arch] }',
    expected: {
      'kubernetes.namespace_labels': null,
      'kubernetes.node': { name: 'n1', labels: { 'topology.io/zone': 'a' } },
    },
  },
])('an event gets the labels of its namespace and node as with { host: x$text }', async ({ text, expected }) => {
  const { document, resource, gaps } = convert(
    `${pods}processors:\n- add_kubernetes_metadata: { host: x${text} }\noutput.console: ~\n`,
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const orchestrator = {
    pod_node_name: 'n1',
    namespace_labels: { 'team.io/name': 'money', env: 'prod' },
    node_labels: { 'topology.io/zone': 'a', arch: 'arm64' },
  }
  withTest(document, resource, { message: 'm', orchestrator }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the gap of an unknown option lists the most similar options first', () => {
  const { gaps } = convert(`${files.replace('  paths', '  multiline.patern: "^x"\n  paths')}${end}`)
  expect(gaps.map(({ nearest }) => nearest)).toEqual([
    expect.stringMatching(/^The Pipeline behaves as if .* Options that are converted: multiline\.pattern, multiline\./),
  ])
})

test.each([
  ['Europe/Berlin', 'Set `timezone: Europe/Berlin` in the remap transform.'],
  // The option `timezone` accepts only names.
  ['+0200', 'Set `timezone` of the remap transform to a zone with this offset, such as `Etc/GMT-2` for `+02:00`.'],
])('the advice for syslog times in %s is a valid option', (zone, nearest) => {
  const { gaps } = convert(`${files}processors:\n- syslog: { field: message, timezone: "${zone}" }\n`)
  expect(gaps.map((gap) => gap.nearest).filter((text) => text.includes('timezone'))).toEqual([nearest])
})
