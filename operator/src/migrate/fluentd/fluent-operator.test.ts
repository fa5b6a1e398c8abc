// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Resources of the fluent-operator for Fluentd: which pods a configuration reads, the order of filters and outputs, the route from Fluent Bit,
// Secrets, and what is a gap.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { convertFluentBit } from '../fluent-bit/convert.ts'
import { convertFluentd } from './convert.ts'

const on = '{ enabled: "true" }'
const resource = (kind: string, name: string, spec: string, more = `labels: ${on}`) =>
  `apiVersion: fluentd.fluent.io/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name}, ${more} }\nspec:\n${spec.replace(/^(?=.)/gm, '  ')}\n`
const select = '{ matchLabels: { enabled: "true" } }'
const configuration = (watched: string, name = 'config') =>
  resource(
    'ClusterFluentdConfig',
    name,
    `${watched}\nclusterFilterSelector: ${select}\nclusterOutputSelector: ${select}`,
  )
const stdout = (name = 'out') => resource('ClusterOutput', name, 'outputs:\n- stdout: {}')
const fluentd = resource(
  'Fluentd',
  'fluentd',
  `globalInputs:\n- forward: { bind: 0.0.0.0, port: 24224 }\nreplicas: 2\nfluentdCfgSelector: ${select}`,
  'namespace: fluent',
)

const convert = (...parts: readonly string[]) =>
  converted(convertFluentd, [{ file: 'f.yaml', text: parts.join('---\n') }])
const time = '2026-11-24T10:11:12.5Z'
const event = (message: string, facts: object) => ({
  message,
  stream: 'stdout',
  timestamp: time,
  orchestrator: { pod_name: 'web-1', container_name: 'web', pod_node_name: 'n1', ...facts },
})

test.each([
  {
    name: 'namespaces',
    watched: 'watchedNamespaces: [shop, kube-system]',
    selector: {
      namespaces: {
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['shop', 'kube-system'] }],
      },
    },
  },
  {
    name: 'labels',
    watched: 'watchedLabels: { app: web }',
    selector: { pods: { matchLabels: { app: 'web' } } },
  },
  { name: 'nothing', watched: 'emit_mode: batch\nstickyTags: "true"', selector: undefined },
])('a configuration that watches $name reads its pods', async ({ watched, selector }) => {
  const { document, resource: made, gaps } = convert(fluentd, configuration(watched), stdout())
  expect(made.spec.sources).toHaveLength(1)
  expect(made.spec.sources[0].selector).toEqual(selector)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(gaps.map(({ subject }) => subject)).toEqual(['input forward', 'Fluentd fluentd', 'records'])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { host: 'n1', container: 'web', isTaken: true },
  { host: 'n2', container: 'web', isTaken: false },
  { host: 'n1', container: 'proxy', isTaken: false },
])('of hosts and containers, $host and $container decide', async ({ host, container, isTaken }) => {
  const { document, resource: made } = convert(
    configuration('watchedHosts: [n1]\nwatchedConstainers: [web, db]'),
    stdout(),
  )
  withTest(
    document,
    made,
    event('x', { pod_node_name: host, container_name: container }),
    isTaken ? { log: 'x' } : undefined,
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an event passes the filters in the order of their names, and those of its namespace', async () => {
  const filter = (name: string, spec: string) => resource('ClusterFilter', name, `filters:\n${spec}`)
  const {
    document,
    resource: made,
    gaps,
  } = convert(
    fluentd,
    configuration('watchedNamespaces: [shop]'),
    stdout(),
    filter(
      'b',
      "- recordTransformer: { enableRuby: true, records: [{ key: both, value: \"${record['a']}-${record['kubernetes']['namespace_name']}\" }], removeKeys: secret }",
    ),
    filter(
      'a',
      '- parser: { keyName: log, reserveData: true, removeKeyNameField: true, parse: { type: json, timeKey: t } }\n- grep: { regexp: [{ key: level, pattern: /^warn/ }] }',
    ),
  )
  withTest(document, made, event('{"a":"one","level":"warning","secret":1}', { pod_namespace: 'shop' }), {
    a: 'one',
    level: 'warning',
    both: 'one-shop',
  })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('outputs become sinks: outputs with a tag come first, and `copy` contains all others', async () => {
  const outputs = resource(
    'ClusterOutput',
    'all',
    `outputs:
- copy: { copyMode: no_copy }
- elasticsearch:
    host: es
    port: 9200
    scheme: https
    sslVerify: false
    logstashFormat: true
    logstashPrefix: shop
    user: { valueFrom: { secretKeyRef: { name: es-user, key: name } } }
    password: { valueFrom: { secretKeyRef: { name: es-user, key: pass } } }
  buffer: { type: file, path: /buffers/es, totalLimitSize: 1GB, flushInterval: 5s, tag: "tag,time", timekey: 1h }
- loki: { url: 'http://loki:3100', labels: ["job=web", "team = shop"], labelKeys: [stream], removeKeys: [a, b], lineFormat: json, insecure: true }
- http: { endpoint: 'http://logs/in', auth: { auth: basic, username: u, password: p }, jsonArray: true }
  format: { type: json }
`,
  )
  const { document, resource: made, gaps } = convert(fluentd, configuration('watchedNamespaces: [shop]'), outputs)
  const sinks = made.spec.sinks as { name: string; type: string; inputs: string[]; config: Record<string, unknown> }[]
  expect(sinks.map(({ name, type }) => [name, type])).toEqual([
    ['all-2', 'search_engine'],
    ['all-3', 'log_aggregator'],
    ['all-4', 'http'],
  ])
  expect(sinks[0]?.config).toMatchObject({
    auth: { password: { valueFrom: { secretKeyRef: { name: 'es-user', namespace: 'fluent', key: 'pass' } } } },
    bulk: { index: 'shop-%Y.%m.%d' },
    buffer: { type: 'disk', max_size: 1 << 30 },
    batch: { timeout_secs: 5 },
  })
  expect(sinks[1]?.config).toMatchObject({ labels: { job: 'web', team: 'shop', stream: '{{ stream }}' } })
  expect(sinks[2]?.config).toMatchObject({ auth: { strategy: 'basic', user: 'u', password: 'p' } })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('without `copy`, the first output consumes all events, as in Fluentd, and the second is a gap', () => {
  const { resource: made, gaps } = convert(configuration(''), stdout('a'), stdout('b'))
  expect(made.spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['a'])
  expect(gaps).toContainEqual(
    expect.objectContaining({ subject: 'match **', reason: expect.stringContaining('an earlier match consumes') }),
  )
})

test('an output that two configurations select is one sink', () => {
  const { resource: made } = convert(
    configuration('watchedNamespaces: [shop]', 'one'),
    configuration('watchedNamespaces: [other]', 'two'),
    stdout(),
  )
  expect(made.spec.sinks).toHaveLength(1)
  expect(made.spec.sinks[0].inputs).toHaveLength(2)
})

test('a FluentdConfig selects pods, filters and outputs in its namespace, and cluster outputs by label', async () => {
  const own = `namespace: shop, labels: ${on}`
  const {
    document,
    resource: made,
    gaps,
  } = convert(
    resource(
      'FluentdConfig',
      'shop',
      `filterSelector: ${select}\noutputSelector: ${select}\nclusterOutputSelector: { matchExpressions: [{ key: role, operator: Exists }] }`,
      own,
    ),
    resource('Filter', 'f', 'filters:\n- recordTransformer: { records: [{ key: team, value: shop }] }', own),
    resource(
      'Filter',
      'g',
      'filters:\n- recordTransformer: { records: [{ key: team, value: other }] }',
      `namespace: other, labels: ${on}`,
    ),
    resource('Output', 'o', 'outputs:\n- copy: { copyMode: deep }\n- stdout: {}', own),
    resource(
      'ClusterOutput',
      'audit',
      'outputs:\n- datadog: { apiKey: { valueFrom: { secretKeyRef: { name: dd, key: k } } }, useSSL: true }',
      'labels: { role: audit }',
    ),
  )
  expect(made.spec.sources[0].selector).toEqual({
    namespaces: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['shop'] }] },
  })
  expect(made.spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['audit', 'o-2'])
  withTest(document, made, event('x', { pod_namespace: 'shop' }), {
    team: 'shop',
    log: 'x',
    ddtags: 'container_name:web,kube_namespace:shop,pod_name:web-1',
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(['Filter g'])
})

test('resources of both agents in a list are read like resources in separate documents', () => {
  const documents = [
    ...['ClusterInput', 'ClusterOutput'].map((kind) => {
      const spec =
        kind === 'ClusterInput'
          ? 'tail: { path: /var/log/containers/*.log, tag: kube.* }'
          : 'match: kube.*\n  forward: { host: fluentd, port: 24224 }'
      return `apiVersion: fluentbit.fluent.io/v1alpha2\nkind: ${kind}\nmetadata: { name: a }\nspec:\n  ${spec}\n`
    }),
    configuration('watchedNamespaces: [shop]'),
    stdout(),
  ]
  const items = documents.map((text) => `- ${text.trimEnd().replaceAll('\n', '\n  ')}\n`)
  const list = `apiVersion: v1\nkind: List\nitems:\n${items.join('')}`
  const [one, other] = [list, documents.join('---\n')].map(
    (text) => converted(convertFluentBit, [{ file: 'f.yaml', text }]).resource.spec,
  )
  expect(one.sinks).toMatchObject([{ type: 'console' }])
  expect(one).toEqual(other)
})

test('plugins in the syntax of Fluentd keep their positions', async () => {
  const custom = (text: string) => `- customPlugin:\n    config: |\n${text.replace(/^(?=.)/gm, '      ')}`
  const {
    document,
    resource: made,
    gaps,
  } = convert(
    configuration('watchedNamespaces: [shop]'),
    resource(
      'ClusterFilter',
      'f',
      `filters:\n${custom('<filter **>\n  @type record_modifier\n  unknown 1\n  <record>\n    a ${record["log"]}\n  </record>\n</filter>')}`,
    ),
    resource(
      'ClusterOutput',
      'o',
      `outputs:\n${custom('<match **>\n  @type opensearch\n  host os\n  port 9200\n  index_name shop\n</match>')}`,
    ),
  )
  expect(made.spec.sinks).toMatchObject([{ type: 'search_engine', config: { bulk: { index: 'shop' } } }])
  withTest(document, made, event('x', { pod_namespace: 'shop' }), { a: 'x' })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([
    expect.objectContaining({ subject: 'record_modifier: unknown', file: 'f.yaml', line: 18 }),
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { name: 'a configuration without outputs', parts: [configuration('')], subject: 'ClusterFluentdConfig config' },
  { name: 'an output without a configuration', parts: [stdout()], subject: 'ClusterOutput out' },
  {
    name: 'a configuration that no Fluentd selects',
    parts: [fluentd, configuration('').replace('"true" } }', '"no" } }'), stdout()],
    subject: 'ClusterFluentdConfig config',
  },
  {
    name: 'an output that none selects',
    parts: [configuration(''), stdout(), stdout('other').replace('"true"', '"no"')],
    subject: 'ClusterOutput other',
  },
  {
    name: 'an input that listens',
    parts: [fluentd.replace('forward', 'http'), configuration(''), stdout()],
    subject: 'source http',
  },
  {
    name: 'an output without a sink',
    parts: [configuration(''), stdout().replace('stdout: {}', 'kafka: { brokers: b }')],
    subject: 'match kafka2',
  },
  {
    name: 'an option that no reader knows',
    parts: [configuration('watchedPods: [a]'), stdout()],
    subject: 'ClusterFluentdConfig: watchedPods',
  },
])('$name is a gap', async ({ parts, subject }) => {
  const { document, gaps } = convert(...parts)
  const [found] = gaps.filter((gap) => gap.subject === subject && gap.isReplaced !== true)
  expect(found).toMatchObject({
    file: 'f.yaml',
    reason: expect.stringMatching(/./),
    nearest: expect.stringMatching(/./),
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

// --- behind Fluent Bit ---

const bit = (kind: string, name: string, spec: string) =>
  `apiVersion: fluentbit.fluent.io/v1alpha2\nkind: ${kind}\nmetadata: { name: ${name} }\nspec:\n${spec.replace(/^(?=.)/gm, '  ')}\n`
const before = [
  bit('ClusterInput', 'pods', 'tail: { tag: kube.*, path: /var/log/containers/*.log, parser: cri }'),
  bit(
    'ClusterFilter',
    'a',
    'match: kube.*\nfilters:\n- kubernetes: { labels: true, annotations: false }\n- modify: { rules: [{ set: { first: "1" } }] }',
  ),
  bit('ClusterOutput', 'fluentd', 'match: "*"\nforward: { host: fluentd.fluent.svc, port: 24224 }'),
]

test.each([
  { namespace: 'shop', expected: { first: '1', second: '1-2' } },
  { namespace: 'other', expected: undefined },
])(
  'events of $namespace take the filters of Fluent Bit, and then those of Fluentd',
  async ({ namespace, expected }) => {
    const files = [
      { file: 'bit.yaml', text: before.join('---\n') },
      {
        file: 'fluentd.yaml',
        text: [
          fluentd,
          configuration('watchedNamespaces: [shop]'),
          stdout(),
          resource(
            'ClusterFilter',
            'b',
            'filters:\n- recordTransformer: { enableRuby: true, records: [{ key: second, value: "${record[\'first\']}-2" }] }',
          ),
        ].join('---\n'),
      },
    ]
    expect(agentFor(files)?.agent.name).toBe('fluent-bit')
    const { document, resource: made, gaps } = converted(convertFluentBit, files)
    expect(made.spec.sources).toHaveLength(1)
    expect(made.spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['out'])
    withTest(document, made, event('x', { pod_namespace: namespace }), expected)
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    expect(gaps.map(({ subject }) => subject)).toContain('output forward')
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  },
)

test('without a forward output, both parts have their own sources', async () => {
  const other = before.slice(0, 2).concat(bit('ClusterOutput', 'own', 'match: "*"\nstdout: { format: json_lines }'))
  const { document, resource: made } = converted(convertFluentBit, [
    { file: 'all.yaml', text: [...other, configuration('watchedNamespaces: [shop]'), stdout()].join('---\n') },
  ])
  expect(made.spec.sources).toHaveLength(2)
  expect(made.spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['own', 'out'])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
