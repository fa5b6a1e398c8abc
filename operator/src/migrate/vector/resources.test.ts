// Resources of an operator for Vector: namespaces, duplicate ids, and resources without components.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertVector } from './convert.ts'
import { isVector } from './read.ts'

const head = (kind: string, name: string, namespace?: string) =>
  `apiVersion: observability.kaasops.io/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name}${namespace === undefined ? '' : `, namespace: ${namespace}`} }\nspec:\n`
const components = `  sources:
    logs: { type: kubernetes_logs }
  transforms:
    add: { type: remap, inputs: [logs], source: .pod = .kubernetes.pod_name }
  sinks:
    out: { type: loki, inputs: [add], endpoint: 'http://loki:3100', labels: { a: b }, encoding: { codec: json }, no: 1 }
`
const convert = (text: string, namespace?: string) => converted(convertVector, [{ file: 'v.yaml', text }], namespace)

test('a VectorPipeline reads the pods of its namespace, a ClusterVectorPipeline those of all namespaces', async () => {
  const { document, resource, gaps } = convert(
    `${head('VectorPipeline', 'app', 'shop')}${components}---\n${head('ClusterVectorPipeline', 'all')}${components}`,
  )
  const sources = resource.spec.sources as { name: string; selector?: object }[]
  expect(sources.map(({ name, selector }) => [name, selector])).toEqual([
    ['shop-app-logs', { namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } } }],
    ['all-logs', undefined],
  ])
  expect(resource.spec.sinks).toMatchObject([{ inputs: ['shop-app-add'] }, { inputs: ['all-add'] }])
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([
    ['shop-app-out: no', 10],
    ['all-out: no', 21],
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a VectorPipeline of another operator reads the pods of all namespaces', () => {
  const other = (text: string) => text.replaceAll('observability.kaasops.io', 'vector.zcentric.com')
  const agent = `${head('Vector', 'vector', 'logging')}  image: x\n`
  const { resource, gaps } = convert(
    other(`${agent}---\n${head('VectorPipeline', 'app', 'shop')}  vectorRef: vector\n${components}`),
  )
  expect(resource.spec.sources).toMatchObject([{ type: 'orchestrator_logs' }])
  expect(resource.spec.sources[0].selector).toBeUndefined()
  expect(gaps.map(({ subject }) => subject)).toEqual(['Vector', 'vectorRef', 'shop-app-out: no'])
})

test('a Pipeline in the same namespace needs no selector', async () => {
  const { document, resource } = convert(`${head('VectorPipeline', 'app', 'shop')}${components}`, 'shop')
  expect(resource.spec.sources[0].selector).toBeUndefined()
  expect(resource.spec.sources[0].name).toBe('logs')
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a VectorPipeline without a namespace is a gap', () => {
  const { gaps } = convert(`${head('VectorPipeline', 'app')}${components}`)
  expect(gaps.map(({ reason }) => reason)).toContain(
    'a VectorPipeline reads the pods of its namespace, but the file does not name one',
  )
})

test.each(['Vector', 'VectorAggregator', 'ClusterVectorAggregator'])('%s contains no components', async (kind) => {
  const text = `${head(kind, 'vector', 'logging')}  agent: { image: x }\n`
  expect(isVector({ file: 'v.yaml', text })).toBe(true)
  const { document, gaps } = convert(text)
  expect(gaps[0]).toMatchObject({ subject: kind, line: 2, isReplaced: true })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const queue = `customConfig:
  sources: { q: { type: amqp, connection_string: "amqp://r:5672/%2f" } }
  sinks: { out: { type: console, inputs: [q], encoding: { codec: json } } }
`
test.each([
  { values: 'role: Aggregator\n', aggregator: { replicas: 1 } },
  {
    values:
      'role: Aggregator\nreplicas: 3\npersistence: { enabled: true, size: 20Gi }\nnodeSelector: { disk: fast }\ntolerations: []\n',
    aggregator: { replicas: 3, storage: { size: '20Gi' }, nodeSelector: { disk: 'fast' } },
  },
  {
    values:
      'role: Stateless-Aggregator\npersistence: { enabled: true }\nautoscaling: { enabled: true, maxReplicas: 4, targetCPUUtilizationPercentage: 60 }\nresources: { limits: { memory: 1Gi } }\n',
    aggregator: { autoscaling: { minReplicas: 1, maxReplicas: 4, targetCPU: 60 } },
    resources: { limits: { memory: '1Gi' } },
  },
])(
  'values for an aggregator give an Agent that runs the Pipeline: $values',
  async ({ values, aggregator, resources }) => {
    const draft = new Draft()
    convertVector([{ file: 'values.yaml', text: `${values}${queue}` }], () => [], draft)
    expect(draft.gaps).toMatchObject([{ line: 1, isReplaced: true }])
    const [agent] = draft.agents({ name: 'shop' })
    const [pipeline, ...others] = draft.documents({ name: 'shop' })
    expect(agent?.toJSON()).toMatchObject({
      kind: 'Agent',
      metadata: { name: 'shop', namespace: 'penstock-system' },
      spec: {
        mode: 'Aggregator',
        pipelines: { clusterPipelines: { selector: { matchLabels: pipeline?.toJSON().metadata.labels } } },
        ...(resources && { resources }),
      },
    })
    expect(agent?.toJSON().spec.aggregator).toEqual(aggregator)
    expect(pipeline?.toJSON().spec.mode).toBe('Aggregator')
    expect(others).toEqual([])
    expect(await lint(`${pipeline}---\n${agent}`)).toEqual([])
  },
)

test('an Agent of a namespace runs the Pipelines of this namespace', () => {
  const draft = new Draft('shop')
  convertVector([{ file: 'values.yaml', text: `role: Aggregator\n${queue}` }], () => [], draft)
  const [agent] = draft.agents({ name: 'hub', namespace: 'shop' })
  expect(agent?.toJSON()).toMatchObject({
    metadata: { name: 'hub', namespace: 'shop' },
    spec: { pipelines: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } } } },
  })
})

test.each([
  ['stringData', (text: string) => JSON.stringify(text)],
  ['data', (text: string) => Buffer.from(text).toString('base64')],
])('a Secret contains a configuration in `%s`', async (list, written) => {
  const config = { sources: { q: { type: 'stdin' } }, sinks: { o: { type: 'blackhole', inputs: ['q'], no: 1 } } }
  const text = `apiVersion: v1\nkind: Secret\n${list}:\n  vector.json: ${written(JSON.stringify(config))}\n`
  expect(isVector({ file: 'v.yaml', text })).toBe(true)
  const { resource, gaps } = convert(text)
  expect(resource.spec.sources).toMatchObject([{ name: 'q', type: 'stdin' }])
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'o: no', line: 4 }))
})

test('files of folders that the chart mounts are read at their paths on the node', async () => {
  const text = `role: Agent
extraVolumes: [{ name: nginx, hostPath: { path: /opt/nginx/log/ } }, { name: own, emptyDir: {} }]
extraVolumeMounts: [{ name: nginx, mountPath: /nginx }, { name: own, mountPath: /own }]
customConfig:
  sources: { f: { type: file, include: ["/nginx/*.log", "/own/*.log"], exclude: [/nginx/old.log] } }
  sinks: { out: { type: console, inputs: [f], encoding: { codec: json } } }
`
  const { document, resource, gaps } = convert(text)
  expect(resource.spec.sources[0].config).toEqual({
    include: ['/opt/nginx/log/*.log', '/own/*.log'],
    exclude: ['/opt/nginx/log/old.log'],
  })
  expect(gaps).toMatchObject([{ subject: 'f: include', line: 5, isReplaced: true }])
  expect(gaps[0]?.nearest).toBe('Add `/opt/nginx/log` to `spec.node.logPaths.extraReadOnly` of the Agent.')
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('sources of nodes stay with the agents of the nodes', () => {
  const draft = new Draft()
  convertVector([{ file: 'values.yaml', text: `role: Aggregator\ncustomConfig:\n${components}` }], () => [], draft)
  expect(draft.gaps[0]).toMatchObject({ subject: 'role: Aggregator', line: 1, isReplaced: true })
  expect(draft.agents({ name: 'shop' })).toEqual([])
  expect(draft.documents({ name: 'shop' }).map((each) => each.toJSON().spec.mode)).toEqual([undefined])
})

test.each([
  ['role: Agent\ntolerations: []\n', 'Agent', 1, 'orchestrator_logs'],
  ['# none\nrole: Stateless-Aggregator\n', 'Stateless-Aggregator', 2, 'file'],
  ['image: { repository: timberio/vector }\n', 'Aggregator', 1, 'file'],
  ['fullnameOverride: v\ncustomConfig: {}\n', 'Aggregator', 2, 'file'],
])("values without a configuration use the chart's default: %j", (text, role, line, source) => {
  const { gaps, resource } = convert(text)
  expect(gaps.find(({ subject }) => subject === 'customConfig')).toMatchObject({
    line,
    reason: `the values have no configuration, so the chart's default for the role \`${role}\` applies`,
    isReplaced: true,
  })
  expect(resource.spec.sources.map(({ type }: { type: string }) => type)).toContain(source)
  expect(resource.spec.sinks).toContainEqual(expect.objectContaining({ name: 'stdout', type: 'console' }))
})

test('values can refer to a ConfigMap with the configuration', () => {
  const { gaps } = convert('role: Agent\nexistingConfigMaps:\n- shop-vector\n')
  expect(gaps).toContainEqual(
    expect.objectContaining({
      line: 2,
      subject: 'existingConfigMaps',
      nearest: expect.stringContaining('shop-vector'),
    }),
  )
})

test('outputs of a source without a counterpart are those of its placeholder', () => {
  const { gaps, resource } = convert(
    'sources: { dd: { type: datadog_agent, address: "0.0.0.0:80", multiple_outputs: true } }\nsinks: { out: { type: console, inputs: [dd.logs], encoding: { codec: json } } }\n',
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(['dd: datadog_agent'])
  expect(resource.spec.sinks[0].inputs).toEqual(['dd'])
})

test('Kubernetes Events have the form of the collector, and only those of the namespace are read', async () => {
  const { document, resource, gaps } = convert(
    `${head('VectorPipeline', 'app', 'shop')}  sources: { e: { type: kubernetes_events } }\n  sinks: { out: { type: console, inputs: [e], encoding: { codec: json } } }\n`,
  )
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    { type: 'orchestrator_events', config: { include_object: true, namespaces: ['shop'] } },
  ])
  const object = {
    metadata: { uid: 'u', name: 'n', namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' },
    note: 'Killing',
    reason: 'Unhealthy',
    type: 'Warning',
    deprecatedLastTimestamp: '2026-01-01T00:00:05Z',
    deprecatedSource: { component: 'kubelet', host: 'n1' },
    regarding: { kind: 'Pod', name: 'web', namespace: 'shop' },
  }
  withTest(
    document,
    resource,
    { message: 'Killing', orchestrator: { object } },
    {
      source_type: 'vector',
      event: {
        uid: 'u',
        message: 'Killing',
        reason: 'Unhealthy',
        action: '',
        type: 'Warning',
        creationTimestamp: '2026-01-01T00:00:00Z',
        firstTimestamp: '0001-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:05Z',
        name: 'n',
        Namespace: 'shop',
        source: { component: 'kubelet', host: 'n1' },
        involvedObject: {
          uid: '',
          kind: 'Pod',
          name: 'web',
          Namespace: 'shop',
          apiVersion: '',
          resourceVersion: '',
          fieldPath: '',
        },
      },
    },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
