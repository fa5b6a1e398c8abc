// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// The index, the ingest pipeline and the action of an event, which its input, its metadata or a rule chooses.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

/** Converts a configuration, and tests metadata of an event before the sink. */
async function choose(text: string, event: object, assert: string): Promise<object> {
  const { document, resource, gaps } = convert(text)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks).toHaveLength(1)
  const [{ inputs, config }] = resource.spec.sinks
  const insertAt = resource.spec.transforms[0]?.name
  const expected = [{ at: inputs[0], assert }]
  document.setIn(['spec', 'tests'], [{ name: 'event', insertAt, input: { log: event }, expect: expected }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  return config
}

const files = 'filebeat.inputs:\n- type: log\n  paths: [/srv/app.log]\n'
const json = `${files}  json.keys_under_root: true\n`
const line = (message: string) => ({ message, file: '/srv/app.log' })

test.each([
  { message: 'x', own: '', usual: '', pipeline: '' },
  { message: 'x', own: '', usual: 'Usual', pipeline: 'usual' },
  { message: 'WARN x', own: '', usual: '', pipeline: 'warnings' },
  { message: 'WARN ERR x', own: '', usual: 'usual', pipeline: 'warnings' },
  { message: 'ERR x', own: '', usual: 'usual', pipeline: 'errors' },
  { message: 'ERR x', own: 'Of-Input', usual: 'usual', pipeline: 'of-input' },
])('an event gets one pipeline: $message, $own, $usual: $pipeline', async ({ message, own, usual, pipeline }) => {
  const text = `${files}${own && `  pipeline: ${own}\n`}output.elasticsearch:
  hosts: [es]
${usual && `  pipeline: ${usual}\n`}  pipelines:
  - { pipeline: Warnings, when.contains: { message: WARN } }
  - { pipeline: errors, when.contains: { message: ERR } }
`
  const config = await choose(text, line(message), `%pipeline == "${pipeline}"`)
  expect(config).toMatchObject({ bulk: { pipeline: '{{ %pipeline }}' } })
  expect(config).not.toHaveProperty('pipeline')
})

const output = (options: string) => `output.elasticsearch: { hosts: [es], index: a, ${options} }\n`
test.each([
  { name: 'a field', options: 'pipeline: "x-%{[app]}"', message: '{"app":"Shop"}', pipeline: 'x-shop' },
  { name: 'a missing field', options: 'pipeline: "x-%{[app]}"', message: '{}', pipeline: '' },
  { name: 'its default', options: 'pipeline: "x-%{[app]:None}"', message: '{}', pipeline: 'x-none' },
  {
    name: 'a rule with a field',
    options: 'pipeline: rest, pipelines: [{ pipeline: "%{[app]}", when.equals.kind: a }]',
    message: '{"app":"Shop","kind":"a"}',
    pipeline: 'shop',
  },
  {
    name: 'a rule whose field is missing',
    options: 'pipeline: rest, pipelines: [{ pipeline: "%{[app]}", when.equals.kind: a }]',
    message: '{"kind":"a"}',
    pipeline: 'rest',
  },
  {
    name: 'the default of a rule',
    options: 'pipeline: rest, pipelines: [{ pipeline: "%{[app]}", default: Other, when.equals.kind: a }]',
    message: '{"kind":"a"}',
    pipeline: 'other',
  },
  {
    name: 'a mapping',
    options: 'pipelines: [{ pipeline: "%{[kind]}", mappings: { a: One, b: two }, default: rest }]',
    message: '{"kind":"a"}',
    pipeline: 'one',
  },
])('the event names its pipeline by $name', async ({ options, message, pipeline }) => {
  await choose(json + output(options), line(message), `%pipeline == "${pipeline}"`)
})

test('the index of an input with the name of the machine contains that of the node', async () => {
  const text = `filebeat.inputs:
- { type: container, paths: ["/var/log/containers/*.log"], index: "%{[agent.name]}-%{+yyyy.MM.dd}" }
${output('')}`
  const event = { message: 'x', orchestrator: { pod_node_name: 'n1' } }
  await choose(text, event, 'match(string(%index) ?? "", r\'^n1-\\d{4}\\.\\d\\d\\.\\d\\d$\')')
})

test('a pipeline by the labels of pods', async () => {
  const text = `filebeat.autodiscover.providers:
- type: kubernetes
  templates:
  - condition.has_fields: [kubernetes.labels.app]
    config:
    - { type: container, paths: ["/var/log/containers/*\${data.kubernetes.container.id}.log"], pipeline: "\${data.kubernetes.labels.app}-logs" }
output.elasticsearch: { hosts: [es], index: a }
`
  const event = { message: 'x', orchestrator: { pod_labels: { app: 'Web' } } }
  await choose(text, event, '%pipeline == "web-logs"')
})

test('a fixed pipeline stays an option of the sink, in lower case', () => {
  const { config } = convert(files + output('pipeline: Nginx')).resource.spec.sinks[0]
  expect([config.pipeline, config.bulk]).toEqual(['nginx', { action: 'create', index: 'a' }])
})

test('the name of a pipeline of an input contains no fields', () => {
  const { gaps } = convert(`${files}  pipeline: "p-%{[fields.app]}"\n${output('')}`)
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([['log: p-%{[fields.app]}', 2]])
})

const metadata = (fields: string) => `${json}processors: [{ add_fields: { target: "@metadata", fields: ${fields} } }]\n`
test.each([
  { fields: '{ raw_index: My-Index }', assert: '%index == "my-index"' },
  { fields: '{ alias: b, raw_index: c }', assert: '%index == "b"' },
  { fields: '{ index: b }', assert: '%index == "b-2026.02.04"' },
  { fields: '{ pipeline: P }', assert: '%pipeline == "p" && %index == "a"' },
  { fields: '{ op_type: index }', assert: '%action == "index"' },
])('the metadata of an event chooses: $fields', async ({ fields, assert }) => {
  const event = { ...line('{"@timestamp":"2026-02-04T05:06:07Z"}') }
  const text = `${metadata(fields).replace('keys_under_root: true', 'keys_under_root: true\n  json.overwrite_keys: true')}`
  await choose(text + output('indices: [{ index: z, when.has_fields: [z] }]'), event, assert)
})

test.each([
  { message: '{"app":"x"}', index: 'x' },
  { message: '{}', index: 'other' },
])('a rule for the index with a default: $message', async ({ message, index }) => {
  await choose(json + output('indices: [{ index: "%{[app]}", default: Other }]'), line(message), `%index == "${index}"`)
})
