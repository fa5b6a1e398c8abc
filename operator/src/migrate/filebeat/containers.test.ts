// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Inputs that read the files in which Docker keeps the lines of containers, or that read the format of Docker as JSON.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const pod = {
  message: 'hello',
  stream: 'stderr',
  file: '/var/log/pods/shop_web-1_u/web/0.log',
  timestamp: '2026-11-24T10:11:12.5Z',
  orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', container_name: 'web', container_id: 'docker://abc' },
}
const discard = 'output.discard: {}\n'
const docker = '/var/lib/docker/containers/*/*.log'
const input = (options: string) => `filebeat.inputs:\n- { ${options} }\n${discard}`
const time = '2026-11-24T10:11:12.500000000Z'

test.each([
  { name: 'an input of containers', text: input(`type: container, paths: ['${docker}']`) },
  {
    name: 'the parser of containers',
    text: input(
      `type: filestream, id: a, paths: ['/var/lib/docker/containers/**/*-json.log'], parsers: [container: ~]`,
    ),
  },
  {
    name: 'a template',
    text: `filebeat.autodiscover.providers:\n- type: kubernetes\n  templates:\n  - condition.equals: { kubernetes.namespace: shop }\n    config:\n    - { type: container, paths: ["/var/lib/docker/containers/\${data.kubernetes.container.id}/*.log"] }\n${discard}`,
  },
])('$name over the files of Docker reads pods', async ({ text }) => {
  const { document, resource, gaps } = convert(text)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sources.map(({ type }: { type: string }) => type)).toEqual(['orchestrator_logs'])
  withTest(document, resource, pod, { message: 'hello', stream: 'stderr' })
  expect(await lint(document.toString())).toEqual([])
})

test('files of containers elsewhere are a gap, because a source of files does not decode them', () => {
  const { gaps } = convert(input('type: container, paths: [/data/logs/*.log]'))
  expect(gaps.map(({ subject }) => subject)).toEqual(['container: /data/logs/*.log'])
})

test.each([
  {
    name: 'under the root',
    options: 'json.message_key: log, json.keys_under_root: true',
    expected: { log: 'hello', stream: 'stderr', time, message: null },
  },
  {
    name: 'below an object',
    options: 'json.message_key: log',
    expected: { json: { log: 'hello', stream: 'stderr', time }, message: null, stream: null },
  },
  {
    name: 'without a key, whose text keeps its line feed',
    options: 'json.keys_under_root: true',
    expected: { log: 'hello\n', message: null },
  },
  {
    name: 'with lines that are joined afterwards, and a filter of lines',
    options:
      "json: { message_key: log, keys_under_root: true }, multiline: { pattern: '^ ', match: after }, include_lines: [hell]",
    expected: { log: 'hello' },
  },
])('an input reads the format of Docker as JSON, $name', async ({ options, expected }) => {
  for (const path of [docker, '/var/log/containers/*.log']) {
    const { document, resource, gaps } = convert(input(`type: log, paths: ['${path}'], ${options}`))
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    withTest(document, resource, pod, expected)
    expect(await lint(document.toString())).toEqual([])
  }
})

test.each([
  ['target: ""', { message: 'hello', stream: 'stderr', time }],
  ['target: "", overwrite_keys: true', { message: 'hello', log: 'hello' }],
  ['target: docker', { message: 'hello', docker: { log: 'hello', stream: 'stderr', time } }],
])('a parser reads the format of Docker as JSON: %s', async (options, expected) => {
  const parsers = `[{ ndjson: { message_key: log, ${options} } }, { multiline: { pattern: '^ ', match: after } }]`
  const { document, resource, gaps } = convert(
    input(`type: filestream, id: a, paths: [/var/log/containers/*.log], parsers: ${parsers}`),
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, pod, expected)
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['${data.kubernetes.labels.app}', { app: 'web' }, { own: 'web' }],
  ['${data.kubernetes.labels.app}', {}, undefined],
  ['${data.kubernetes.labels.app_io/name}', { 'app.io/name': 'web' }, { own: 'web' }],
  ['${data.kubernetes.labels.app_io/name}', {}, undefined],
  ['x-${data.kubernetes.labels.app:none}', {}, { own: 'x-none' }],
  ['${data.kubernetes.labels.app:none}', { app: 'web' }, { own: 'web' }],
  ['${data.kubernetes.pod.name}', {}, { own: 'web-1' }],
])('a template with %s in a field, for a pod with labels %o', async (variable, labels, expected) => {
  const config = `{ type: container, paths: ["/var/log/containers/*.log"], fields_under_root: true, fields: { own: "${variable}" } }`
  for (const options of [
    `templates: [{ config: [${config}] }]`,
    `hints: { enabled: true, default_config: ${config} }`,
  ]) {
    const { document, resource, gaps } = convert(
      `filebeat.autodiscover.providers: [{ type: kubernetes, ${options} }]\n${discard}`,
    )
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    withTest(document, resource, { ...pod, orchestrator: { ...pod.orchestrator, pod_labels: labels } }, expected)
    expect(await lint(document.toString())).toEqual([])
  }
})

test.each([
  ['["*"]', { message: 'hello' }],
  ['[abc, def]', { message: 'hello' }],
  ['def', undefined],
])('an input of the containers %s', async (ids, expected) => {
  const { document, resource, gaps } = convert(input(`type: docker, containers.ids: ${ids}`))
  expect(gaps).toEqual([])
  withTest(document, resource, pod, expected)
  expect(await lint(document.toString())).toEqual([])
})

test('a variable in the path of pods, of which any value is read, is a gap', async () => {
  const path = '/var/log/containers/*_${NAMESPACE}_${data.kubernetes.container.name}-*.log'
  const { document, resource, gaps } = convert(input(`type: container, paths: ["${path}"]`))
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['container: ${NAMESPACE}', undefined]])
  withTest(document, resource, pod, { message: 'hello' })
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['/var/log/containers/*-${data.kubernetes.container.id}.log', true],
  ['/var/log/containers/*${data.container.id}.log', true],
  ['/var/log/containers/*_shop_*-${data.kubernetes.container.id}.log', false],
])('a template over %s needs no filter by name: %s', async (path, isAny) => {
  const { document, resource } = convert(
    `filebeat.autodiscover.providers: [{ type: kubernetes, templates: [{ config: [{ type: container, paths: ["${path}"] }] }] }]\n${discard}`,
  )
  expect(JSON.stringify(resource.spec.transforms).includes('parse_grok')).toBe(!isAny)
  withTest(document, resource, pod, { message: 'hello' })
  expect(await lint(document.toString())).toEqual([])
})

test.each(['C:/logs/*.log', 'd:\\logs\\*.log', '\\\\host\\share\\a.log'])(
  'the files %s of Windows are a gap',
  (path) => {
    const { gaps } = convert(input(`type: filestream, id: a, paths: ['${path}']`))
    expect(gaps.map(({ subject, isAbsent }) => [subject, isAbsent])).toEqual([[`filestream: ${path}`, true]])
  },
)

const cri = '2026-11-24T10:11:12.500000000Z stderr F hello'
test.each([
  [
    'processors:\n- dissect: { tokenizer: "%{time} %{stream} F %{text}", target_prefix: x }\n',
    { message: cri, 'x.text': 'hello' },
  ],
  ['processors:\n- dissect: { tokenizer: "%{time} %{text}", target_prefix: x }\n', { message: 'hello', x: null }],
  ['processors:\n- drop_event.when.regexp.message: "^\\\\S+ stderr "\n', undefined],
])('an input without a parser for containers, and steps that read their format: %s', async (steps, expected) => {
  const { document, resource, gaps } = convert(input('type: log, paths: [/var/log/containers/*.log]') + steps)
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['log: pods', true]])
  const event = { ...pod, orchestrator: { ...pod.orchestrator, container_id: 'containerd://abc' } }
  withTest(document, resource, event, expected)
  expect(await lint(document.toString())).toEqual([])
})

const labelled = { ...pod, orchestrator: { ...pod.orchestrator, pod_labels: { 'a.b': '1', c: '2' } } }
const provider =
  'filebeat.autodiscover.providers: [{ type: kubernetes, labels.dedot: false, include_labels: [a.b], templates: [{ config: [{ type: container, paths: ["/var/log/containers/*.log"] }] }] }]\n'
test.each([
  ['discovery', provider, { 'a.b': '1' }],
  [
    'another processor',
    input(
      'type: container, paths: [/var/log/containers/*.log], processors: [{ add_kubernetes_metadata.include_labels: [c] }]',
    ),
    { c: '2' },
  ],
  ['nothing', input('type: container, paths: [/var/log/containers/*.log]'), { a_b: '1', c: '2' }],
])('metadata of %s stays', async (_, text, labels) => {
  const { document, resource } = convert(
    `${text.replace(discard, '')}processors: [{ add_kubernetes_metadata: ~ }]\n${discard}`,
  )
  withTest(document, resource, labelled, { 'kubernetes.labels': labels })
  expect(await lint(document.toString())).toEqual([])
})

test('options that a template does not have are named', () => {
  const { gaps } = convert(
    `${provider.replace('templates: [{', 'templates: [{ processors: [{ drop_event: {} }],')}${discard}`,
  )
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['templates.processors', true]])
})

test('the metadata of a container is added to that of its pod', async () => {
  const { document, resource } = convert(
    `${input('type: container, paths: [/var/log/containers/*.log]').replace(discard, '')}processors: [{ add_kubernetes_metadata: ~ }, { add_docker_metadata: ~ }]\n${discard}`,
  )
  withTest(document, resource, pod, { 'container.runtime': 'docker', 'container.id': 'abc' })
  expect(await lint(document.toString())).toEqual([])
})
