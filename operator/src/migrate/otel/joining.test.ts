// Operators that join lines behind a router: each route that joins lines becomes a source with its own rules, and the others share one.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertOtel } from './convert.ts'

const container = { type: 'container' }
const start = (id: string, pattern: string, more: object = {}) => ({
  type: 'recombine',
  id,
  combine_field: 'body',
  is_first_entry: `body matches ${JSON.stringify(pattern)}`,
  output: 'end',
  ...more,
})
const router = (routes: object[], more: object = { default: 'end' }) => ({ type: 'router', routes, ...more })
const end = { type: 'add', id: 'end', field: 'attributes.done', value: 'yes' }

function convert(operators: readonly object[], receiver: object = {}, namespace?: string) {
  const config = {
    receivers: {
      filelog: { include: ['/var/log/pods/*/*/*.log'], include_file_path: true, operators, ...receiver },
    },
    exporters: { debug: { verbosity: 'detailed' } },
    service: { pipelines: { logs: { receivers: ['filelog'], exporters: ['debug'] } } },
  }
  const { gaps, ...made } = converted(convertOtel, [{ file: 'c.yaml', text: stringify(config) }], namespace)
  return { ...made, gaps: gaps.filter(({ isReplaced }) => isReplaced !== true) }
}

const routes = [
  { output: 'java', expr: 'resource["k8s.namespace.name"] == "shop" and resource["k8s.container.name"] == "api"' },
  { output: 'python', expr: 'attributes["log.file.path"] contains "worker"' },
]
const joined = [
  container,
  router(routes),
  start('java', '^\\d{4}'),
  start('python', '^[A-Z]', { combine_with: ' / ' }),
  end,
]

test('each route that joins lines gets a source with its rules, and other records a source without', async () => {
  const { document, resource, gaps } = convert(joined)
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    {
      config: { extra_field_selector: 'metadata.namespace=shop' },
      multiline: { custom: { start: '^[0-9]{4}', mode: 'halt_before' } },
    },
    { multiline: { custom: { start: '^[A-Z]' } } },
    {},
  ])
  expect(resource.spec.sources[2].multiline).toBeUndefined()
  expect(await lint(String(document))).toEqual([])
})

const pod = (namespace: string, containerName: string, name = 'web-1') => ({
  message: 'one\ntwo',
  stream: 'stdout',
  timestamp: '2026-01-01T00:00:00Z',
  file: `/var/log/pods/${namespace}_${name}_u1/${containerName}/0.log`,
  orchestrator: { pod_namespace: namespace, pod_name: name, pod_uid: 'u1', container_name: containerName },
})

test.each([
  { about: 'of the first route', event: pod('shop', 'api'), taken: [0] },
  { about: 'of two routes, of which the first counts', event: pod('shop', 'api', 'worker-1'), taken: [0] },
  { about: 'of the second route, with its text between lines', event: pod('blog', 'x', 'worker-1'), taken: [1] },
  { about: 'of no route', event: pod('shop', 'web'), taken: [2] },
])('exactly one source passes on a record $about', async ({ event, taken }) => {
  for (const index of [0, 1, 2]) {
    const { document, resource } = convert(joined)
    const { name } = resource.spec.sources[index]
    const first = resource.spec.transforms.find(({ inputs }: { inputs: string[] }) => inputs.includes(name)).name
    const message = index === 1 ? 'one / two' : event.message
    const expected = taken.includes(index) ? { message } : undefined
    withTest(document, resource, event, expected, first)
    expect(await lint(String(document))).toEqual([])
  }
})

test('a Pipeline in a namespace selects no pods by fields', () => {
  const { resource } = convert(joined, {}, 'shop')
  for (const { config } of resource.spec.sources) expect(config.extra_field_selector).toBeUndefined()
})

test('operators that change nothing may be between a route and what joins its lines', () => {
  const { resource, gaps } = convert([
    container,
    router([{ output: 'none', expr: 'resource["k8s.namespace.name"] == "shop"' }]),
    { type: 'noop', id: 'none' },
    start('java', '^\\d{4}'),
    end,
  ])
  expect(gaps).toEqual([])
  expect(resource.spec.sources[0]).toMatchObject({ multiline: { custom: { start: '^[0-9]{4}' } } })
})

const only = (containerName: string, pattern: string) => ({
  ...start('', pattern, { if: `resource["k8s.container.name"] == "${containerName}"` }),
  id: undefined,
  output: undefined,
})

test('conditions of operators that join lines select the records of a source', async () => {
  const { document, resource, gaps } = convert([container, only('java', '^\\d'), only('python', '^[A-Z]'), end])
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    { multiline: { custom: { start: '^[0-9]' } } },
    { multiline: { custom: { start: '^[A-Z]' } } },
    {},
  ])
  const first = resource.spec.transforms.find(({ inputs }: { inputs: string[] }) => inputs.includes('filelog')).name
  withTest(document, resource, pod('shop', 'java'), { message: 'one\ntwo' }, first)
  expect(await lint(String(document))).toEqual([])
})

test('conditions that may select the same record remain one after another', () => {
  const { resource, gaps } = convert([
    container,
    only('java', '^\\d'),
    { ...only('x', '^[A-Z]'), if: 'attributes.a == nil' },
  ])
  expect(resource.spec.sources).toHaveLength(2)
  expect(gaps).toMatchObject([{ reason: 'only sources join records, before all other operators' }])
})

test('a condition on lines that an operator joins is a gap', () => {
  const { resource, gaps } = convert([container, { ...only('java', '^\\d'), if: 'body contains "x"' }])
  expect(resource.spec.sources).toMatchObject([{ multiline: { custom: { start: '^[0-9]' } } }])
  expect(gaps).toMatchObject([{ subject: 'filelog: if' }])
})

test('files are read once for each route that joins lines', async () => {
  const byPath = [router([{ output: 'a', expr: 'attributes["log.file.name"] == "a.log"' }]), start('a', '^a'), end]
  const { document, resource, gaps } = convert(byPath, { include: ['/srv/*.log'] })
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    { type: 'file', config: { include: ['/srv/*.log'], multiline: { start_pattern: '^a' } } },
    { type: 'file', config: { include: ['/srv/*.log'] } },
  ])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  {
    about: 'a move of the line to an attribute before the router',
    operators: [
      container,
      { type: 'add', field: 'resource.kind', value: 'EXPR("pod:"+resource["k8s.pod.name"])' },
      { type: 'move', from: 'attributes["log.file.path"]', to: 'resource.path' },
      { type: 'move', from: 'body', to: 'attributes.log' },
      router([{ output: 'a', expr: 'resource["k8s.pod.name"] == "a"' }]),
      start('a', 'x', { combine_field: 'attributes.log', is_first_entry: 'attributes.log matches "^a"' }),
      { type: 'move', id: 'end', from: 'attributes.log', to: 'body' },
    ],
    starts: ['^a', undefined],
  },
  {
    about: 'a default that joins lines',
    operators: [
      container,
      router([{ output: 'end', expr: 'resource["k8s.pod.name"] == "a"' }], { default: 'rest' }),
      start('rest', '^r'),
      end,
    ],
    starts: ['^r', undefined],
  },
  {
    about: 'no other records',
    operators: [
      container,
      router([{ output: 'a', expr: 'resource["k8s.pod.name"] == "a"' }], {}),
      start('a', '^a'),
      end,
    ],
    starts: ['^a'],
  },
])('lines are joined after $about', async ({ operators, starts }) => {
  const { document, resource, gaps } = convert(operators)
  expect(gaps).toEqual([])
  const found = resource.spec.sources.map(
    ({ multiline }: { multiline?: { custom: { start: string } } }) => multiline?.custom.start,
  )
  expect(found).toEqual(starts)
  expect(await lint(String(document))).toEqual([])
})

test.each([
  {
    about: 'a route by the text of the line',
    operators: [container, router([{ output: 'a', expr: 'body matches "^a"' }]), start('a', '^a'), end],
  },
  {
    about: 'an operator before it that reads the line',
    operators: [
      container,
      { type: 'json_parser' },
      router([{ output: 'a', expr: 'resource["k8s.pod.name"] == "a"' }]),
      start('a', '^a'),
      end,
    ],
  },
  {
    about: 'an operator before it with a condition on the line',
    operators: [
      container,
      { type: 'add', field: 'attributes.x', value: 'y', if: 'body matches "a"' },
      router([{ output: 'a', expr: 'resource["k8s.pod.name"] == "a"' }]),
      start('a', '^a'),
      end,
    ],
  },
])('$about is a gap, and the output passes lint', async ({ operators }) => {
  const { document, gaps } = convert(operators)
  expect(gaps.map(({ subject }) => subject)).toEqual(['filelog: operator recombine'])
  expect(await lint(String(document))).toEqual([])
})
