// Files that contain a configuration of the collector, and its variables after the conversion.

import { expect, test } from 'vitest'
import { lint } from '../../testing/conversions.ts'
import { oldAgents } from '../agents.ts'
import { Draft, type NamedText } from '../draft.ts'
import { convertOtel } from './convert.ts'

const variable = (text: string) => '$'.concat(`{${text}}`)

function convert(...files: readonly NamedText[]) {
  const draft = new Draft()
  convertOtel(files, () => [], draft)
  return {
    text: String(draft.document({ name: 'converted' })),
    spec: draft.document({ name: 'converted' }).toJSON().spec,
    gaps: draft.gaps,
  }
}

const plain = `receivers:
  filelog: { include: [/srv/app.log] }
exporters:
  kafka: { brokers: [b] }
service:
  pipelines:
    logs: { receivers: [filelog], exporters: [kafka] }
`
const indented = (by: number) => plain.replace(/^(?=.)/gm, ' '.repeat(by))
const gap = (line: number) => ({ subject: 'exporter kafka', line })

test.each([
  { name: 'a file of its own', text: plain, line: 4 },
  { name: 'the second document of a file', text: `a: 1\n---\n${plain}`, line: 6 },
  { name: 'values of the chart', text: `mode: daemonset\nconfig:\n${indented(2)}`, line: 6 },
  {
    name: 'a resource of the operator with an object',
    text: `apiVersion: opentelemetry.io/v1beta1\nkind: OpenTelemetryCollector\nmetadata: { name: c }\nspec:\n  mode: daemonset\n  config:\n${indented(4)}`,
    line: 10,
  },
  {
    name: 'a resource of the operator with text',
    text: `apiVersion: opentelemetry.io/v1alpha1\nkind: OpenTelemetryCollector\nmetadata: { name: c }\nspec:\n  config: |\n${indented(4)}`,
    line: 9,
  },
  {
    name: 'a ConfigMap',
    text: `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata:\n  relay: |\n${indented(4)}`,
    line: 9,
  },
])('$name is read with line numbers of the file', ({ text, line }) => {
  const { gaps, spec } = convert({ file: 'c.yaml', text })
  expect(gaps).toEqual([expect.objectContaining({ file: 'c.yaml', ...gap(line) })])
  expect(spec.sources[0]).toMatchObject({ name: 'filelog', type: 'file' })
  const recognising = oldAgents.filter(({ recognises }) => recognises({ file: 'c.yaml', text })).map(({ name }) => name)
  expect(recognising).toEqual(['otel'])
})

test.each([
  ['Vector', 'sources: { a: { type: demo_logs } }\nsinks: { o: { type: console, inputs: [a] } }\n'],
  ['Fluent Bit', 'pipeline:\n  inputs:\n    - name: tail\n  outputs:\n    - name: stdout\n'],
  ['Promtail', 'clients: [{ url: http://loki }]\nscrape_configs: [{ job_name: a }]\n'],
  ['Filebeat', 'filebeat.inputs: [{ type: filestream }]\noutput.elasticsearch: { hosts: [es] }\n'],
  ['a Deployment', 'apiVersion: apps/v1\nkind: Deployment\nspec: { template: {} }\nservice: { pipelines: {} }\n'],
  ['a chart of another agent', 'config: { service: "[SERVICE]" }\nmode: x\n'],
])('a text of %s is not read as one of the collector', (_, text) => {
  const otel = oldAgents.find(({ name }) => name === 'otel')
  expect(otel?.recognises({ file: 'c.yaml', text })).toBe(false)
})

test('several files form one configuration, in which later files override earlier ones', () => {
  const { gaps, spec } = convert(
    { file: 'a.yaml', text: plain },
    {
      file: 'b.yaml',
      text: 'exporters:\n  debug: { verbosity: detailed }\nservice:\n  pipelines:\n    logs:\n      exporters: [debug]\n',
    },
  )
  expect(gaps).toEqual([])
  expect(spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['console'])
})

test('a file without any part of a configuration is a gap', () => {
  const { gaps } = convert({ file: 'a.yaml', text: plain }, { file: 'b.yaml', text: 'hello: world\n' })
  expect(gaps).toContainEqual(expect.objectContaining({ file: 'b.yaml', line: 1 }))
})

test('text that is not YAML is a gap at its line', () => {
  const { gaps } = convert({ file: 'a.yaml', text: 'receivers:\n  a: [1\n  b: }\n' })
  expect(gaps[0]).toMatchObject({ file: 'a.yaml', nearest: 'Correct the file.' })
  expect(gaps[0]?.line).toBeGreaterThan(1)
})

test('presets of the chart add receivers and processors, at the line of the presets', () => {
  const values = `mode: daemonset
presets:
  logsCollection: { enabled: true, includeCollectorLogs: true }
  kubernetesAttributes: { enabled: true, extractAllPodLabels: true }
  hostMetrics: { enabled: true }
config:
  exporters:
    otlphttp: { endpoint: http://gateway:4318 }
  service:
    pipelines:
      logs: { receivers: [], exporters: [otlphttp] }
      traces: null
`
  const { gaps, spec, text } = convert({ file: 'values.yaml', text: values })
  // Null in values removes a pipeline of the chart.
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([
    ['presets.kubernetesAttributes', 4],
    ['pipeline metrics', 2],
  ])
  expect(spec.sources).toMatchObject([{ type: 'orchestrator_logs', config: { read_from: 'end' } }])
  expect(text).toContain('"k8s.deployment.name"')
  expect(text).toContain('for_each(object(%orchestrator.pod_labels) ?? {})')
  expect(spec.sinks).toMatchObject([{ type: 'http', config: { uri: 'http://gateway:4318/v1/logs' } }])
})

test("values with only presets use the chart's default logs pipeline", () => {
  const { gaps, spec } = convert({
    file: 'values.yaml',
    text: 'mode: daemonset\npresets:\n  logsCollection: { enabled: true }\n',
  })
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([
    ['receiver otlp', 2],
    ['debug: verbosity', 2],
  ])
  expect(spec.sources.map(({ type }: { type: string }) => type)).toEqual(['file', 'orchestrator_logs'])
  expect(spec.sinks).toMatchObject([{ name: 'debug', type: 'blackhole' }])
})

const withExporter = (endpoint: string, extra = '') => `receivers:
  filelog:
    include: [/srv/app.log]
exporters:
  otlphttp:
    endpoint: ${endpoint}
    ${extra}
service:
  pipelines:
    logs: { receivers: [filelog], exporters: [otlphttp] }
`

test.each([
  [variable('env:HOST'), 'SECRET[env.HOST]/v1/logs'],
  [variable('HOST'), 'SECRET[env.HOST]/v1/logs'],
  [`http://${variable('env:HOST')}:4318`, 'http://SECRET[env.HOST]:4318/v1/logs'],
  ['http://a$$b', 'http://a$b/v1/logs'],
])('the variable in %s becomes a reference to a Secret', (endpoint, uri) => {
  const { spec, gaps } = convert({ file: 'c.yaml', text: withExporter(endpoint) })
  expect(gaps).toEqual([])
  expect(spec.sinks[0].config.uri).toBe(uri)
  if (uri.includes('SECRET'))
    expect(spec.secrets).toEqual([expect.objectContaining({ alias: 'env', secretName: 'converted-environment' })])
})

test('the default of a variable replaces it, and is reported', () => {
  const { spec, gaps } = convert({ file: 'c.yaml', text: withExporter(variable('env:URL:-http://default:4318')) })
  expect(spec.sinks[0].config.uri).toBe('http://default:4318/v1/logs')
  expect(gaps).toEqual([
    expect.objectContaining({
      line: 6,
      isReplaced: true,
      reason: 'the default `http://default:4318` replaces the variable',
    }),
  ])
})

test('text of a file is a gap at its line', () => {
  const { gaps } = convert({
    file: 'c.yaml',
    text: withExporter('http://a', `headers: { a: "${variable('file:/token')}" }`),
  })
  expect(gaps).toEqual([expect.objectContaining({ line: 7, subject: `otlphttp: ${variable('file:/token')}` })])
})

test('values without presets have the parts that the chart defines', () => {
  const values = `mode: deployment
config:
  exporters: { otlphttp: { endpoint: http://gateway:4318 } }
  service: { pipelines: { logs: { exporters: [otlphttp] }, traces: null, metrics: null } }
`
  const { gaps, spec } = convert({ file: 'values.yaml', text: values })
  // The receiver is the one of the chart's default pipeline, and its processors need no row.
  expect(gaps.map(({ subject }) => subject)).toEqual(['receiver otlp'])
  expect(spec.sinks).toMatchObject([{ type: 'http', config: { uri: 'http://gateway:4318/v1/logs' } }])
})

const splunk = (more: string) => `clusterName: prod
environment: staging
splunkPlatform: { endpoint: 'https://splunk:8088/services/collector', token: t, index: k8s, insecureSkipVerify: true${more} }
logsCollection:
  containers:
    excludePaths: ['/var/log/pods/kube-system_*/*/*.log']
    extraOperators: [{ type: filter, expr: 'attributes.log contains "health"' }]
extraAttributes:
  fromLabels: [{ key: team }]
  custom: [{ name: region, value: eu }]
agent:
  config:
    processors:
      filter/own: { logs: { log_record: ['IsMatch(body, "noise")'] } }
`

test('values of the chart of Splunk give the pipeline of the collectors on nodes', async () => {
  const { gaps, spec, text } = convert({ file: 'values.yaml', text: splunk('') })
  expect(spec.sources.map(({ type }: { type: string }) => type)).toEqual(['orchestrator_logs', 'file'])
  expect(spec.sinks).toMatchObject([
    {
      type: 'http',
      config: {
        uri: 'https://splunk:8088/services/collector',
        tls: { verify_certificate: false },
        request: { headers: { Authorization: 'Splunk SECRET[env.SPLUNK_PLATFORM_HEC_TOKEN]' } },
      },
    },
  ])
  for (const part of [
    '"deployment.environment" = "staging"',
    '"k8s.cluster.name" = "prod"',
    'region',
    '"k8s.pod.labels.team"',
  ])
    expect(text).toContain(part)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, line }) => [subject, line])).toEqual([
    ['receiver otlp', 4],
    ['k8sattributes: annotations of namespace', 8],
  ])
  expect(await lint(text)).toEqual([])
})

test('lines that the chart of Splunk joins in some containers get sources of their own', async () => {
  const values = `splunkPlatform: { endpoint: 'https://splunk:8088/services/collector', token: t }
logsCollection:
  containers:
    multilineConfigs:
      - namespaceName: { value: shop }
        podName: { value: 'web-.*', useRegexp: true }
        containerName: { value: server }
        firstEntryRegex: '^[^\\s].*'
      - namespaceName: { value: 'java-.*', useRegexp: true }
        firstEntryRegex: '^\\d{4}'
        combineWith: ' '
`
  const { gaps, spec, text } = convert({ file: 'values.yaml', text: values })
  const left = gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(left.filter(({ subject }) => /recombine|multiline/.test(subject))).toEqual([])
  expect(spec.sources.slice(0, 2)).toMatchObject([
    {
      config: { extra_field_selector: 'metadata.namespace=shop' },
      multiline: { custom: { start: '^[^\\t\\n\\f\\r ].*' } },
    },
    { multiline: { custom: { start: '^[0-9]{4}' } } },
  ])
  expect(spec.sources[2]).toMatchObject({ type: 'orchestrator_logs' })
  expect(await lint(text)).toEqual([])
})

test('values with a table for the Service of the chart are values, and not a configuration', () => {
  const values = `mode: daemonset
service: { enabled: true, type: ClusterIP }
presets:
  logsCollection: { enabled: true }
  resourceDetection: { enabled: true, env: { enabled: true }, k8snode: { enabled: true }, eks: { enabled: false } }
config:
  exporters: { otlphttp: { endpoint: http://gateway:4318 } }
  service: { pipelines: { logs: { receivers: [filelog], exporters: [otlphttp] }, metrics: null, traces: null } }
`
  const { gaps, spec, text } = convert({ file: 'values.yaml', text: values })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(spec.sources.map(({ type }: { type: string }) => type)).toEqual(['orchestrator_logs'])
  expect(text).toContain('OTEL_RESOURCE_ATTRIBUTES')
  const otel = oldAgents.find(({ name }) => name === 'otel')
  expect(otel?.recognises({ file: 'values.yaml', text: values })).toBe(true)
})

test('presets without a counterpart are gaps at their lines', () => {
  const values = `mode: daemonset
presets:
  logsCollection: { enabled: true }
  annotationDiscovery:
    logs: { enabled: true }
  kubernetesObjects: { enabled: true }
config:
  service: { pipelines: { logs: { receivers: [filelog] }, metrics: null, traces: null } }
`
  const { gaps } = convert({ file: 'values.yaml', text: values })
  const rows = gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, line }) => [subject, line])
  expect(rows).toEqual([
    ['presets.annotationDiscovery.logs', 5],
    ['presets.kubernetesObjects', 6],
  ])
})

test('presets and options of other charts are gaps at their lines', () => {
  const values = `mode: daemonset
presets:
  logsCollection: { enabled: true, storeCheckpoints: true,
    blacklist: { enabled: true } }
  otlpExporter: { enabled: true }
  hostMetrics: { enabled: false, odd: 1 }
config:
  service: { pipelines: { logs: { receivers: [filelog] }, metrics: null, traces: null } }
`
  const { gaps } = convert({ file: 'values.yaml', text: values })
  const rows = gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, line }) => [subject, line])
  expect(rows).toEqual([
    ['presets.logsCollection.blacklist', 4],
    ['presets.otlpExporter', 5],
  ])
})

test('a configuration in place of the one of the chart is not merged with its default pipeline', () => {
  const values = `mode: deployment
alternateConfig:
${indented(2)}`
  const { gaps, spec } = convert({ file: 'values.yaml', text: values })
  expect(gaps).toEqual([expect.objectContaining(gap(6))])
  expect(spec.sources.map(({ name }: { name: string }) => name)).toEqual(['filelog'])
})

test('a variable without braces, as early versions replaced it, is a variable and is reported', () => {
  const text = withExporter('http://$HOST:4318')
  const { gaps, spec } = convert({ file: 'c.yaml', text })
  expect(spec.sinks[0].config.uri).toBe('http://SECRET[env.HOST]:4318/v1/logs')
  expect(gaps).toEqual([expect.objectContaining({ subject: 'otlphttp: $HOST', line: 6, isReplaced: true })])
})
