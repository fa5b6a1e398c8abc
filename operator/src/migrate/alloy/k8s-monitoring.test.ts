// Values of the chart k8s-monitoring: options of pod logs and destinations, of which none is ignored silently.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from './convert.ts'

const convert = (text: string) => converted(convertAlloy, [{ file: 'values.yaml', text }])
const missing = (gaps: readonly { isReplaced?: true; subject: string }[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)

const values = (destinations: string, pods = '') => `cluster: { name: prod }
destinations:
${destinations.replace(/^(?=.)/gm, '  ')}
podLogs:
  enabled: true
${pods.replace(/^(?=.)/gm, '  ')}`

const pod = {
  message: 'hello',
  stream: 'stdout',
  timestamp: '2026-01-01T00:00:00Z',
  file: '/var/log/pods/shop_web-1_u1/app/0.log',
  orchestrator: {
    pod_namespace: 'shop',
    pod_name: 'web-1',
    pod_uid: 'u1',
    container_name: 'app',
    container_id: 'containerd://1',
    pod_labels: { 'app.kubernetes.io/version': '7', 'app.kubernetes.io/name': 'web', team: 'ops' },
    pod_annotations: { 'example.com/job': 'nightly' },
  },
}

test('labels, annotations and structured metadata of pods', async () => {
  const text = values(
    '- { name: l, type: loki, url: "http://loki:3100/loki/api/v1/push" }',
    `labels: { team: team, version: app.kubernetes.io/version }
annotations: { job: example.com/job }
staticLabels: { region: eu }
structuredMetadata: { pod: pod, version: }
labelsToKeep: [namespace, team, region, job]
labelSelectors: { tier: [a, b] }
volumeGatherSettings: { onlyGatherNewLogLines: true }
`,
  )
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources[0].config).toEqual({ extra_label_selector: 'tier in (a,b)', read_from: 'end' })
  const labels = {
    namespace: 'shop',
    team: 'ops',
    region: 'eu',
    job: 'nightly',
    cluster: 'prod',
    k8s_cluster_name: 'prod',
  }
  withTest(document, resource, pod, { message: 'hello', labels, metadata: { pod: 'web-1', version: '7' } })
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [
    'the first version',
    `cluster: { name: prod }
externalServices: { loki: { host: "http://loki", externalLabels: { zone: b }, basicAuth: { username: u, password: p } } }
logs: { cluster_events: { enabled: false }, pod_logs: { annotations: { job: example.com/job }, structuredMetadata: { pod: } } }
`,
    {
      labels: {
        ...{ namespace: 'shop', container: 'app', job: 'nightly', app_kubernetes_io_name: 'web' },
        ...{ flags: 'F', stream: 'stdout', cluster: 'prod', zone: 'b' },
      },
      metadata: { pod: 'web-1' },
    },
  ],
  [
    'the second version, with its defaults',
    values('- { name: l, type: loki, url: "http://loki:3100/loki/api/v1/push" }'),
    {
      labels: {
        ...{ namespace: 'shop', container: 'app', job: 'shop/app', app_kubernetes_io_name: 'web', service_name: 'web' },
        ...{ cluster: 'prod', k8s_cluster_name: 'prod' },
      },
      metadata: { pod: 'web-1' },
    },
  ],
  [
    'the fourth version',
    `cluster: { name: prod }
destinations: { l: { type: loki, url: "http://loki:3100/loki/api/v1/push" } }
podLogsViaLoki: { enabled: true }
`,
    {
      labels: {
        ...{ namespace: 'shop', container: 'app', job: 'shop/app', app_kubernetes_io_name: 'web', service_name: 'web' },
        ...{ service_namespace: 'shop', flags: 'F', stream: 'stdout', cluster: 'prod', k8s_cluster_name: 'prod' },
      },
      metadata: { pod: 'web-1', service_instance_id: 'shop.web-1.app' },
    },
  ],
] as const)('labels and metadata of %s of the chart', async (_name, text, expected) => {
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, pod, { message: 'hello', ...expected })
  expect(await lint(String(document))).toEqual([])
})

test('events of the cluster, and the Secret of a destination', async () => {
  const text = `cluster: { name: prod }
destinations:
  - name: l
    type: loki
    url: http://loki:3100/loki/api/v1/push
    auth: { type: basic, usernameKey: user }
    secret: { create: false, name: login, namespace: logging }
clusterEvents: { enabled: true, namespaces: [shop], excludeNamespaces: [test] }
`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ type: 'orchestrator_events', config: { namespaces: ['shop'] } }])
  const reference = (key: string) => ({ valueFrom: { secretKeyRef: { name: 'login', namespace: 'logging', key } } })
  expect(resource.spec.sinks).toMatchObject([
    { config: { auth: { strategy: 'basic', user: reference('user'), password: reference('password') } } },
  ])
  const regarding = { kind: 'Node', name: 'n1', namespace: 'shop' }
  const object = { regarding, type: 'Normal', reason: 'Ready', note: 'up', eventTime: '2026-01-01T00:00:00Z' }
  withTest(
    document,
    resource,
    { orchestrator: { object } },
    {
      message: 'name=n1 kind=Node reason=Ready type=Normal msg="up" ',
      labels: {
        ...{ namespace: 'shop', job: 'integrations/kubernetes/eventhandler', source: 'kubernetes-events' },
        ...{ level: 'Info', node: 'n1', cluster: 'prod', k8s_cluster_name: 'prod' },
      },
    },
  )
  expect(await lint(String(document))).toEqual([])
})

test('a destination of the type otlp gets records with the name of the cluster', async () => {
  const otlp = `- name: cloud
  type: otlp
  protocol: http
  url: https://otlp:4318
  tenantId: t1
  extraHeaders: { X-A: b }
  extraLabels: { env: live }
  auth: { type: basic, username: u, password: p }
  tls: { insecureSkipVerify: true }
`
  const { document, resource, gaps } = convert(values(otlp, 'labelsToKeep: [namespace]\n'))
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([
    {
      type: 'http',
      config: {
        uri: 'https://otlp:4318/v1/logs',
        auth: { strategy: 'basic', user: 'u', password: 'p' },
        tls: { verify_certificate: false },
        request: { headers: { 'X-A': 'b', 'X-Scope-OrgID': 't1' } },
      },
    },
  ])
  const attributes = ['cluster', 'env', 'k8s.cluster.name'].map((key) => ({
    key,
    value: { stringValue: key === 'env' ? 'live' : 'prod' },
  }))
  withTest(document, resource, pod, { resource: { attributes } })
  expect(await lint(String(document))).toEqual([])
})

test('pod logs go to the named destinations only', () => {
  const two = ['a', 'b'].map((name) => `- { name: ${name}, type: loki, url: "http://${name}/loki/api/v1/push" }`)
  const { resource } = convert(values(two.join('\n'), 'destinations: [b]\n'))
  expect(resource.spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['write-b'])
})

test('the name of a destination can be a key, and one without logs gets none', () => {
  const named =
    'x: { type: loki, url: "http://x/loki/api/v1/push", extraHeaders: { A: b } }\ny: { type: otlp, url: y, logs: { enabled: false } }'
  const { resource } = convert(values(named))
  expect(resource.spec.sinks).toMatchObject([{ name: 'write-x', config: { request: { headers: { A: 'b' } } } }])
})

test('an option without a counterpart is a gap with its line', () => {
  const destination = '- { name: l, type: loki, url: "http://loki/loki/api/v1/push", moon: 1, tls: { ca: x } }'
  const { gaps } = convert(values(destination, 'secretFilter: { enabled: true }\n'))
  const found = gaps.map(({ subject, line }) => [subject, line])
  expect(found).toContainEqual(['podLogs: secretFilter', 6])
  expect(found).toContainEqual(['destination l: moon', 3])
  expect(found).toContainEqual(['destination l: tls: ca', 3])
})

test('pods of the fourth version choose by an annotation, and get labels of their node', async () => {
  const text = `cluster: { name: prod }
destinations: { l: { type: loki, url: "http://loki:3100/loki/api/v1/push" } }
podLogsViaLoki: { enabled: true, nodeLabels: { region: true, nodePool: true }, structuredMetadata: { service.instance.id: null } }
`
  const made = () => convert(text)
  const orchestrator = {
    ...pod.orchestrator,
    node_labels: { 'topology.kubernetes.io/region': 'eu', agentpool: 'blue' },
  }
  const { document, resource, gaps } = made()
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { ...pod, orchestrator }, { 'labels.region': 'eu', 'labels.nodepool': 'blue' })
  expect(await lint(String(document))).toEqual([])
  const other = made()
  const silent = { ...orchestrator, pod_annotations: { 'logs.grafana.com/pods.enabled': 'false' } }
  withTest(other.document, other.resource, { ...pod, orchestrator: silent }, undefined)
  expect(await lint(String(other.document))).toEqual([])
})

test.each([
  ['includeReasons: [Failed, BackOff]', 'BackOff', 'Warning', true],
  ['includeReasons: [Failed]', 'BackOff', 'Warning', false],
  ['excludeReasons: [Pulled]', 'Pulled', 'Normal', false],
  ['includeLevels: [Warning]', 'BackOff', 'Normal', false],
  ['excludeLevels: [Normal]', 'BackOff', 'Warning', true],
])('events of the cluster: %s', async (option, reason, type, isKept) => {
  const text = `cluster: { name: prod }
destinations: [{ name: l, type: loki, url: "http://loki:3100/loki/api/v1/push" }]
clusterEvents: { enabled: true, ${option} }
`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  const regarding = { kind: 'Pod', name: 'p', namespace: 'shop' }
  const object = { regarding, type, reason, note: 'x', eventTime: '2026-01-01T00:00:00Z' }
  withTest(document, resource, { orchestrator: { object } }, isKept ? { 'labels.namespace': 'shop' } : undefined)
  expect(await lint(String(document))).toEqual([])
})

test('options of a Loki destination', async () => {
  const destination = `- name: l
  type: loki
  urlFrom: '"http://" + sys.env("LOKI_HOST") + "/loki/api/v1/push"'
  tenantIdFrom: '"t1"'
  extraLabelsFrom: { region: '"eu"' }
  extraHeadersFrom: { X-A: '"b"' }
  maxBackoffRetries: 4
  proxyURL: http://proxy:3128
  auth: { type: bearerToken, bearerTokenFile: /run/token }
  tls: { caFile: /ca.pem }
  logProcessingStages: |
    stage.static_labels {
      values = { last = "yes" }
    }
`
  const { document, resource, gaps } = convert(values(destination, 'labelsToKeep: [namespace]\n'))
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([
    {
      config: {
        endpoint: 'http://SECRET[env.LOKI_HOST]',
        auth: { strategy: 'bearer', token: 'SECRET[env.TOKEN]' },
        tls: { ca_file: '/ca.pem' },
        proxy: { http: 'http://proxy:3128' },
        request: { retry_attempts: 3, headers: { 'X-A': 'b' } },
      },
    },
  ])
  const labels = { namespace: 'shop', last: 'yes', region: 'eu', cluster: 'prod', k8s_cluster_name: 'prod' }
  withTest(document, resource, pod, { labels, tenant: 't1' })
  expect(await lint(String(document))).toEqual([])
})

test('pods that the fourth version reads from the API server', async () => {
  const { document, resource, gaps } = convert(`cluster: { name: prod }
destinations: { l: { type: loki, url: "http://loki:3100/loki/api/v1/push" } }
podLogsViaKubernetesApi: { enabled: true, namespaces: [shop], staticLabels: { via: api } }
`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    { type: 'orchestrator_logs', config: { extra_field_selector: 'metadata.namespace=shop' } },
  ])
  withTest(document, resource, pod, {
    labels: {
      ...{ namespace: 'shop', container: 'app', job: 'shop/app', app_kubernetes_io_name: 'web', service_name: 'web' },
      ...{ service_namespace: 'shop', instance: 'shop/web-1:app', via: 'api', cluster: 'prod' },
      k8s_cluster_name: 'prod',
    },
    metadata: { pod: 'web-1', service_instance_id: 'shop.web-1.app' },
  })
  expect(await lint(String(document))).toEqual([])
})

test('other ways to read pods are gaps', () => {
  const destination = '- { name: l, type: loki, url: "http://loki/loki/api/v1/push" }'
  expect(missing(convert(values(destination, 'gatherMethod: filelog\n')).gaps)).toEqual(['podLogs: gatherMethod'])
  expect(missing(convert(values(destination, 'gatherMethod: volumes\n')).gaps)).toEqual([])
  const others = 'podLogsViaOpenTelemetry: { enabled: true }\npodLogsObjects: { enabled: false }\n'
  expect(missing(convert(`${others}${values(destination)}`).gaps)).toEqual(['podLogsViaOpenTelemetry'])
})
