// The output of converted configurations of Filebeat for an event, and their gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
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
    name: 'facts about the pod',
    text: `${pods}processors:\n- add_kubernetes_metadata: ~\n`,
    event: line('x'),
    expected: { message: 'x', stream: 'stdout', container: { id: 'abc', image: { name: 'web:1' } } },
  },
  {
    name: 'lines that are left out',
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
    name: 'fields over members',
    text: `${files}processors:\n- decode_json_fields: { fields: [message], target: "" }\n`,
    event: plain('{"message":"inner","a":1}'),
    expected: { message: '{"message":"inner","a":1}', a: 1 },
  },
  {
    name: 'parts and types',
    text: `${files}processors:\n- dissect: { tokenizer: "%{level} [%{code}] %{text}", target_prefix: "" }\n- convert:\n    fields:\n    - { from: code, to: status, type: integer }\n    mode: rename\n- lowercase: { fields: [level] }\n`,
    event: plain('ERR [404] not found'),
    expected: { level: 'err', status: 404, text: 'not found' },
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
])('an event: $name', async ({ text, event, expected }) => {
  const { document, resource, gaps } = convert(text + end)
  expect(gaps).toEqual([])
  withTest(document, resource, event, expected)
  expect(await lint(document.toString())).toEqual([])
})

test('gaps name the file, the line, the reason and what to do', () => {
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
    '5 input tcp: there is no source that listens for it',
    '7 processor script: programs in JavaScript do not run here',
    '10 condition odd: the condition has no counterpart',
    '11 output logstash: there is no sink for the protocol',
  ])
})

test('a rule for an index becomes a field of the event that is not sent', () => {
  const { resource } = convert(
    `${files}output.elasticsearch:\n  hosts: ["http://es:9200"]\n  index: rest\n  indices:\n  - index: errors\n    when.contains: { message: ERR }\n`,
  )
  const [sink] = resource.spec.sinks
  expect(sink.config.bulk.index).toBe('{{ %index }}')
  expect(resource.spec.transforms.at(-1).config.source).toContain('{ %index = "errors" }')
})

test.each([
  { message: 'ERR x', level: undefined, index: 'err-2026.11.24' },
  { message: 'x', level: 'warn', index: 'warn-logs' },
  { message: 'ERR x', level: 'warn', index: 'err-2026.11.24' },
  { message: 'x', level: undefined, index: 'app-2026.11' },
])('of rules for indices the first that fits counts: $index', async ({ message, level, index }) => {
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
  const wanted = [{ at, assert: `%index == "${index}"` }]
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt: at, input: { log: event }, expect: wanted }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a Beat names its store by a reference', async () => {
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
    },
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
