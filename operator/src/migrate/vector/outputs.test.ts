// The events that components receive whose inputs have no counterpart: none that the old configuration did not send to them.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const convert = (text: string) => converted(convertVector, [{ file: 'vector.yaml', text }])

test('the sink for dropped events reads the replacement of the program, which drops none', async () => {
  const { document, resource, gaps } = convert(`
sources: { f: { type: file, include: [/a.log] } }
transforms: { p: { type: remap, inputs: [f], drop_on_error: true, reroute_dropped: true, source: '.a = unknown(.b)' } }
sinks:
  good: { type: http, inputs: [p], uri: http://x, encoding: { codec: json } }
  bad: { type: http, inputs: [p.dropped], uri: http://y, encoding: { codec: json } }
`)
  expect(resource.spec.sinks.map(({ inputs }: { inputs: string[] }) => inputs)).toEqual([['p'], ['p.dropped']])
  expect(resource.spec.transforms[0].config).toEqual({ source: '.', drop_on_error: true, reroute_dropped: true })
  expect(gaps.map(({ subject }) => subject)).toEqual(['p: source'])
  expect(await lint(String(document))).toEqual([])
})

test('a component that receives nothing because of a gap names the gap', () => {
  const { gaps } = convert(`
sources: { f: { type: file, include: [/a.log] } }
transforms:
  p: { type: remap, inputs: [f], source: '.a = unknown(.b)' }
  q: { type: filter, inputs: [p.dropped], condition: 'true' }
sinks:
  good: { type: http, inputs: [p], uri: http://x, encoding: { codec: json } }
  bad: { type: http, inputs: [q], uri: http://y, encoding: { codec: json } }
`)
  expect(gaps.slice(-2)).toMatchObject([
    { subject: 'q', reason: 'no event leaves `p.dropped`, because of the gap at `p` (line 4)' },
    { subject: 'bad', reason: 'no event leaves `q`, because of the gap at `q` (line 5)' },
  ])
})

test('a transform of metrics reads only the inputs that give metrics', async () => {
  const { document, resource, gaps } = convert(`
sources: { own: { type: internal_metrics }, host: { type: host_metrics } }
transforms:
  both: { type: tag_cardinality_limit, inputs: [own, host], value_limit: 5 }
  none: { type: tag_cardinality_limit, inputs: [host], value_limit: 5 }
sinks: { out: { type: prometheus_remote_write, inputs: [both, none], endpoint: 'http://mimir/api/v1/push' } }
`)
  expect(resource.spec.transforms).toMatchObject([{ name: 'both', inputs: ['own'] }])
  expect(resource.spec.sinks).toMatchObject([{ inputs: ['both'] }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['host: host_metrics', 'both: inputs', 'none: inputs'])
  // The placeholder for the source stays, for the reader.
  expect((await lint(String(document))).filter((problem) => !problem.includes('has no consumers'))).toEqual([])
})

test.each([
  { node: '"$VECTOR_SELF_NODE_NAME"', rows: [] },
  { node: 'n1', rows: ['k: self_node_name'] },
])('an agent reads the pods of its own node, not of $node', ({ node, rows }) => {
  const { resource, gaps } = convert(
    `sources: { k: { type: kubernetes_logs, self_node_name: ${node} } }\nsinks: { out: { type: console, inputs: [k], encoding: { codec: json } } }`,
  )
  expect(resource.spec.sources[0].config).toBeUndefined()
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual(rows.map((row) => [row, true]))
})

test.each([
  ['metadata.name!=$VECTOR_SELF_POD_NAME', undefined],
  [`metadata.namespace!=kube-system, metadata.name != \${POD_NAME}`, 'metadata.namespace!=kube-system'],
  ['metadata.name!=web', 'metadata.name!=web'],
])('the selector %s becomes %s, because agents never read their own logs', async (given, expected) => {
  const text = stringify({
    sources: { k: { type: 'kubernetes_logs', extra_field_selector: given } },
    sinks: { out: { type: 'console', inputs: ['k'], encoding: { codec: 'json' } } },
  })
  const { document, resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(resource.spec.sources[0].config?.extra_field_selector).toBe(expected)
  expect(gaps).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const loki = (labels: object) => ({
  sources: { in: { type: 'demo_logs', format: 'json' } },
  sinks: {
    out: { type: 'loki', inputs: ['in'], endpoint: 'http://loki', labels, encoding: { codec: 'json' } },
  },
})

test('names with dots behind backslashes in templates are names in quotes', async () => {
  const text = stringify(
    loki({ app: String.raw`{{ kubernetes.pod_labels.app\.kubernetes\.io/name }}`, b: '{{ a.b }}' }),
  )
  const { document, resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config.labels).toEqual({
    app: '{{ kubernetes.pod_labels."app.kubernetes.io/name" }}',
    b: '{{ a.b }}',
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('names of expanded labels have small letters', async () => {
  const text = stringify({
    sources: { in: { type: 'demo_logs', format: 'json' } },
    sinks: {
      out: {
        type: 'loki',
        inputs: ['in'],
        endpoint: 'http://loki',
        encoding: { codec: 'json', except_fields: ['a'] },
        labels: { 'Pod_*': '{{ kubernetes.pod_labels }}', Own: '{{ app }}' },
        structured_metadata: { '*': '{{ trace }}' },
        remove_label_fields: true,
      },
    },
  })
  const { document, resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    labels: { 'pod_*': '{{ %labels_1 }}', Own: '{{ app }}' },
    structured_metadata: { '*': '{{ %labels_2 }}' },
    encoding: { codec: 'json', except_fields: ['a', 'kubernetes.pod_labels'] },
  })
  const event = { kubernetes: { pod_labels: { teamName: 'X', app: 'y' } } }
  const at = resource.spec.sinks[0].inputs[0]
  const assert = '%labels_1 == { "teamname": "X", "app": "y" } && %labels_2 == {}'
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: at, input: { log: event }, expect: [{ at, assert }] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a tenant that an event may not have is reported', () => {
  const { sinks, sources } = loki({ app: 'x' })
  const text = stringify({ sources, sinks: { out: { ...sinks.out, tenant_id: '{{ team }}' } } })
  const { gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(gaps).toMatchObject([{ subject: 'out: tenant_id', isReplaced: true }])
})

test('a template that is not valid is a gap', async () => {
  const text = stringify(loki({ app: '{{ a..b }}' }))
  const { document, gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(gaps.map(({ subject }) => subject)).toEqual(['out: labels.app'])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
