import { expect, test } from 'vitest'
import type { Document } from 'yaml'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { oldAgents } from '../agents.ts'
import { Draft } from '../draft.ts'
import { convertAlloy } from './convert.ts'

const convert = (text: string, file = 'config.alloy', namespace?: string) =>
  converted(convertAlloy, [{ file, text }], namespace)
const missing = (gaps: readonly { isReplaced?: true; subject: string }[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true)

const write = 'loki.write "default" {\n  endpoint { url = "http://loki:3100/loki/api/v1/push" }\n}\n'
const pods = (rules: string, source = 'loki.source.kubernetes') => `discovery.kubernetes "pods" { role = "pod" }
discovery.relabel "pods" {
  targets = discovery.kubernetes.pods.targets
${rules}
}
${source} "pods" {
  targets    = discovery.relabel.pods.output
  forward_to = [loki.process.pods.receiver]
}
`
const process = (stages: string) => `loki.process "pods" {
  forward_to = [loki.write.default.receiver]
${stages}
}
`
const namespaceRule =
  '  rule {\n    source_labels = ["__meta_kubernetes_namespace"]\n    target_label = "namespace"\n  }'
const pathRule =
  '  rule {\n    source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]\n    separator = "/"\n    replacement = "/var/log/pods/*$1/*.log"\n    target_label = "__path__"\n  }'

const pod = {
  message: '{"level":"warn","msg":"hello","user":{"id":7}}',
  stream: 'stderr',
  file: '/var/log/pods/shop_web-1_u1/app/0.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: {
    pod_name: 'web-1',
    pod_namespace: 'shop',
    pod_uid: 'u1',
    pod_node_name: 'n1',
    container_name: 'app',
    container_id: 'containerd://abc',
    pod_labels: { app: 'web', 'app.kubernetes.io/name': 'shop-web' },
    pod_annotations: {},
  },
}
const line = pod.message

const cases: readonly { name: string; text: string; expected: Readonly<Record<string, unknown>> | undefined }[] = [
  {
    name: 'pods from the API server have a job and an instance, and no file name',
    text: pods(namespaceRule) + process('  stage.cri {}') + write,
    expected: {
      message: line,
      labels: { namespace: 'shop', job: 'loki.source.kubernetes.pods', instance: 'shop/web-1:app' },
    },
  },
  {
    name: 'pods from log files have the file name and the stream of the runtime',
    text: pods(`${namespaceRule}\n${pathRule}`, 'loki.source.file') + process('  stage.cri {}') + write,
    expected: { message: line, labels: { namespace: 'shop', filename: pod.file, stream: 'stderr' } },
  },
  {
    name: 'stages',
    text:
      pods(`${namespaceRule}\n  rule {\n    replacement = "j"\n    target_label = "job"\n  }`) +
      process(`  stage.json { expressions = { level = "", text = "msg", user = "user.id" } }
  stage.labels { values = { level = "" } }
  stage.structured_metadata { values = { user = "" } }
  stage.match {
    selector = "{level=\\"warn\\"} |= \`hello\`"
    stage.static_labels { values = { hit = "yes" } }
    stage.template {
      source   = "text"
      template = "{{ .Value | ToUpper }}!"
    }
    stage.output { source = "text" }
  }
  stage.label_drop { values = ["instance"] }
  stage.label_keep { values = ["namespace", "level", "hit"] }
  stage.tenant { value = "ops" }`) +
      write,
    expected: {
      message: 'HELLO!',
      labels: { namespace: 'shop', level: 'warn', hit: 'yes' },
      metadata: { user: '7' },
      tenant: 'ops',
    },
  },
  {
    name: 'a process that drops',
    text: pods(namespaceRule) + process('  stage.drop {\n    expression = "level.:.warn"\n  }') + write,
    expected: undefined,
  },
  {
    name: 'two processes in a row have separate extracted values, with relabelling in between',
    text: `${pods(namespaceRule)}loki.process "pods" {
  forward_to = [loki.relabel.more.receiver]
  stage.json { expressions = { level = "" } }
  stage.static_labels { values = { level = "label" } }
}
loki.relabel "more" {
  forward_to = [loki.process.second.receiver]
  rule {
    source_labels = ["namespace", "level"]
    separator     = "-"
    target_label  = "both"
  }
  rule {
    action = "labeldrop"
    regex  = "instance|job"
  }
}
loki.process "second" {
  forward_to = [loki.write.default.receiver]
  stage.labels { values = { copy = "level" } }
}
${write}`,
    expected: { message: line, labels: { namespace: 'shop', level: 'label', both: 'shop-label', copy: 'label' } },
  },
  {
    name: 'external labels, and a tenant from a label',
    text: `${pods(namespaceRule)}${process('  stage.tenant { label = "namespace" }')}loki.write "default" {
  endpoint {
    url       = "http://loki:3100/loki/api/v1/push"
    tenant_id = "other"
  }
  external_labels = { cluster = "prod", namespace = "outer" }
}
`,
    expected: {
      message: line,
      labels: { namespace: 'shop', cluster: 'prod', job: 'loki.source.kubernetes.pods', instance: 'shop/web-1:app' },
      tenant: 'shop',
    },
  },
]

test.each(cases)('Alloy and the Pipeline push the same: $name', async ({ text, expected }) => {
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, pod, expected)
  expect(await lint(String(document))).toEqual([])
})

test('a Kubernetes event has the line that Alloy writes', async () => {
  const text = `loki.source.kubernetes_events "cluster" {
  namespaces = ["shop"]
  forward_to = [loki.write.default.receiver]
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  const config = { namespaces: ['shop'], include_object: true }
  expect(resource.spec.sources).toMatchObject([{ type: 'orchestrator_events', config }])
  const object = {
    metadata: { name: 'web-1.1', resourceVersion: '12' },
    note: 'Back-off "x"',
    reason: 'BackOff',
    type: 'Warning',
    eventTime: null,
    deprecatedCount: 3,
    deprecatedFirstTimestamp: '2025-12-31T23:00:00Z',
    deprecatedLastTimestamp: '2026-01-01T00:00:00Z',
    deprecatedSource: { component: 'kubelet', host: 'node-1' },
    regarding: { name: 'web-1', kind: 'Pod', namespace: 'shop', apiVersion: 'v1', resourceVersion: '11' },
  }
  const event = { message: object.note, timestamp: '2026-01-01T00:00:09Z', orchestrator: { object } }
  const labels = {
    namespace: 'shop',
    job: 'loki.source.kubernetes_events',
    instance: 'loki.source.kubernetes_events.cluster',
  }
  const pushed =
    'name=web-1 kind=Pod objectAPIversion=v1 objectRV=11 eventRV=12 sourcecomponent=kubelet sourcehost=node-1 reason=BackOff type=Warning count=3 msg="Back-off \\"x\\"" '
  const timestamp = object.deprecatedLastTimestamp
  withTest(document, resource, event, { message: pushed, labels, timestamp })
  expect(await lint(String(document))).toEqual([])
  const asJson = convert(text.replace('namespaces', 'log_format = "json"\n  namespaces'))
  const values = {
    count: 3,
    eventRV: '12',
    kind: 'Pod',
    msg: 'Back-off "x"',
    name: 'web-1',
    objectAPIversion: 'v1',
    objectRV: '11',
    reason: 'BackOff',
    sourcecomponent: 'kubelet',
    sourcehost: 'node-1',
    type: 'Warning',
  }
  withTest(asJson.document, asJson.resource, event, { message: JSON.stringify(values), labels })
  expect(await lint(String(asJson.document))).toEqual([])
})

test('Kubernetes events next to pods become a separate Pipeline, because an aggregator reads them', async () => {
  const events = 'loki.source.kubernetes_events "all" {\n  forward_to = [loki.write.default.receiver]\n}\n'
  const draft = new Draft()
  convertAlloy([{ file: 'config.alloy', text: pods(namespaceRule) + process('') + events + write }], () => [], draft)
  expect(missing(draft.gaps)).toEqual([])
  const documents = draft.documents({ name: 'converted' })
  const types = documents.map((each) => each.toJSON().spec.sources.map(({ type }: { type: string }) => type))
  expect(types).toEqual([['orchestrator_logs'], ['orchestrator_events']])
  for (const document of documents) expect(await lint(String(document))).toEqual([])
})

test('a use of a declared component becomes its inner components, with arguments and exports', async () => {
  const text = `declare "labelled" {
  argument "team" {}
  argument "env" {
    optional = true
    default  = "test"
  }
  argument "to" {}
  export "receiver" {
    value = loki.process.labels.receiver
  }
  loki.process "labels" {
    stage.static_labels {
      values = {team = argument.team.value, env = argument.env.value}
    }
    forward_to = argument.to.value
  }
}
labelled "shop" {
  team = "shop"
  to   = [loki.write.default.receiver]
}
labelled "blog" {
  team = "blog"
  env  = "live"
  to   = [loki.write.default.receiver]
}
loki.source.file "shop" {
  targets    = [{"__path__" = "/srv/shop.log"}]
  forward_to = [labelled.shop.receiver]
}
loki.source.file "blog" {
  targets    = [{"__path__" = "/srv/blog.log"}]
  forward_to = [labelled.blog.receiver]
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  const event = { message: 'x', timestamp: '2026-01-01T00:00:00Z', file: '/srv/blog.log' }
  const labels = { env: 'live', filename: '/srv/blog.log', team: 'blog' }
  withTest(document, resource, event, { message: 'x', labels }, 'file-blog-2')
  expect(await lint(String(document))).toEqual([])
})

test('a module in the text of an import becomes its components, with the lines of the file', async () => {
  const text = `import.string "mods" {
  content = \`
declare "team" {
  argument "to" { }
  argument "name" {
    optional = true
    default  = "ops"
  }
  inner "x" {
    to   = argument.to.value
    name = argument.name.value
  }
  export "receiver" { value = inner.x.receiver }
}
declare "inner" {
  argument "to" { }
  argument "name" { }
  loki.process "p" {
    stage.static_labels { values = { team = argument.name.value } }
    stage.moon { }
    forward_to = argument.to.value
  }
  export "receiver" { value = loki.process.p.receiver }
}
\`
}
mods.team "a" {
  to = [loki.write.default.receiver]
}
loki.source.file "f" {
  targets    = [{"__path__" = "/srv/a.log"}]
  forward_to = [mods.team.a.receiver]
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps).map(({ subject, line }: { subject: string; line?: number }) => [subject, line])).toEqual([
    ['stage moon', 20],
  ])
  const event = { message: 'x', timestamp: '2026-01-01T00:00:00Z', file: '/srv/a.log' }
  withTest(document, resource, event, { labels: { filename: '/srv/a.log', team: 'ops' } })
  expect(await lint(String(document))).toEqual([])
})

test('a template is expanded for each item of a literal list', async () => {
  const text = `foreach "apps" {
  collection = [{name = "shop", path = "/srv/shop.log"}, {name = "blog", path = "/srv/blog.log"}]
  var        = "app"
  template {
    loki.source.file "x" {
      targets    = [{"__path__" = app["path"], "app" = app["name"]}]
      forward_to = [loki.write.default.receiver]
    }
  }
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  const paths = resource.spec.sources.map(({ config }: { config: { include: string[] } }) => config.include[0])
  expect(paths).toEqual(['/srv/shop.log', '/srv/blog.log'])
  const event = { message: 'x', timestamp: '2026-01-01T00:00:00Z', file: '/srv/shop.log' }
  withTest(document, resource, event, { message: 'x', labels: { app: 'shop', filename: '/srv/shop.log' } })
  expect(await lint(String(document))).toEqual([])
})

const gapCases: readonly [string, string, string][] = [
  [
    'the journal',
    'loki.source.journal "j" {\n  forward_to = [loki.write.default.receiver]\n}\n',
    'loki.source.journal.j',
  ],
  ['metrics', 'prometheus.scrape "m" {\n  targets    = []\n  forward_to = []\n}\n', 'prometheus.scrape.m'],
  [
    'OpenTelemetry',
    'otelcol.receiver.otlp "o" {\n  grpc {}\n  output {\n    logs = []\n  }\n}\n',
    'otelcol.receiver.otlp.o',
  ],
  ['a module', 'import.git "m" {\n  repository = "x"\n}\n', 'import.git.m'],
  [
    'items that only the agent knows',
    'foreach "own" {\n  collection = discovery.kubernetes.pods.targets\n  var = "each"\n  template {}\n}\n',
    'foreach.own',
  ],
  ['an unknown component', 'pigeon.loft "p" {\n}\n', 'pigeon.loft.p'],
]

test.each(gapCases)('%s is a gap with its place, and the output passes lint', async (_, text, subject) => {
  const before = `${pods(namespaceRule)}${process('')}${write}`
  const { document, gaps } = convert(`${before}${text}`)
  const found = gaps.find((gap) => gap.subject === subject)
  expect(found).toMatchObject({
    file: 'config.alloy',
    line: before.split('\n').length,
    reason: expect.stringMatching(/\w/),
    nearest: expect.stringMatching(/\w/),
  })
  expect(await lint(String(document))).toEqual([])
})

test('a sink that discards events replaces a destination without a counterpart', async () => {
  const text = `${pods(namespaceRule)}loki.process "pods" {
  forward_to = [loki.secretfilter.default.receiver, loki.echo.here.receiver]
}
loki.secretfilter "default" {
  forward_to = [loki.echo.here.receiver]
}
loki.echo "here" {}
`
  const { document, resource, gaps } = convert(text)
  expect(resource.spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['blackhole', 'console'])
  expect(String(document)).toContain(
    '# GAP: `loki.secretfilter.default` (config.alloy:16) has no counterpart. This sink discards its events.',
  )
  expect(missing(gaps).map(({ subject }) => subject)).toEqual(['loki.secretfilter.default'])
  expect(await lint(String(document))).toEqual([])
})

test('the source joins lines', async () => {
  const stages = '  stage.multiline {\n    firstline     = "^\\\\d{4}-"\n    max_wait_time = "5s"\n  }'
  const { document, resource, gaps } = convert(pods(namespaceRule) + process(stages) + write)
  expect(resource.spec.sources[0].multiline).toEqual({
    custom: { start: '^[0-9]{4}-', condition: '^[0-9]{4}-', mode: 'halt_before', timeoutMs: 5000 },
  })
  expect(missing(gaps)).toEqual([])
  expect(await lint(String(document))).toEqual([])
})

test('chart values, ConfigMaps and several files are read with their line numbers', () => {
  const text = pods(namespaceRule) + process('  stage.geoip {}') + write
  const indented = text.replace(/^(?=.)/gm, '      ')
  const plain = convert(text)
  const chart = convert(`alloy:\n  configMap:\n    content: |-\n${indented}`, 'values.yaml')
  const map = convert(`kind: ConfigMap\ndata:\n  config.alloy: |\n${indented}`, 'map.yaml')
  const bare = (document: Document) => document.toString({ lineWidth: 0 }).replace(/\([\w.]+:\d+\)/g, '')
  expect(bare(chart.document)).toBe(bare(plain.document))
  expect(bare(map.document)).toBe(bare(plain.document))
  const [gap] = plain.gaps.filter(({ subject }) => subject === 'stage geoip')
  expect(missing(chart.gaps)).toMatchObject([{ file: 'values.yaml', line: (gap?.line ?? 0) + 3 }])
  expect(text.split('\n')[(gap?.line ?? 0) - 1]).toContain('stage.geoip')

  const [first = '', second = ''] = text.split(/^(?=loki\.process)/m)
  const files = [
    { file: 'a.alloy', text: first },
    { file: 'b.alloy', text: second },
  ]
  expect(bare(converted(convertAlloy, files).document)).toBe(bare(plain.document))
})

test('files keep their labels, their maximum age and the position where reading begins', async () => {
  const text = `local.file_match "logs" {
  path_targets      = [{"__path__" = "/srv/*.log", "__path_exclude__" = "/srv/old.log", job = "srv"}]
  ignore_older_than = "24h"
}
loki.source.file "logs" {
  targets       = local.file_match.logs.targets
  tail_from_end = true
  encoding      = "utf-16le"
  forward_to    = [loki.write.default.receiver]
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toEqual([
    {
      name: 'file-logs',
      type: 'file',
      config: {
        include: ['/srv/*.log'],
        exclude: ['/srv/old.log'],
        read_from: 'end',
        ignore_older_secs: 86_400,
        encoding: { charset: 'utf-16le' },
      },
    },
  ])
  withTest(document, resource, { message: 'x', file: '/srv/a.log' }, { labels: { job: 'srv', filename: '/srv/a.log' } })
  expect(await lint(String(document))).toEqual([])
})

test('a missing component is a gap at the line that names it, and its events are discarded', async () => {
  const { document, resource, gaps } = convert(
    `${pods(namespaceRule)}${process('').replace('loki.write.default', 'loki.write.other')}${write}`,
  )
  expect(missing(gaps).map(({ subject }) => subject)).toEqual([
    'loki.write.other.receiver',
    'loki.process.pods',
    'loki.write.default',
  ])
  expect(resource.spec.sinks).toMatchObject([{ name: 'ends', type: 'blackhole' }])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [
    'new',
    `cluster: { name: prod }
destinations:
  - { name: my-loki, type: loki, url: "http://loki:3100/loki/api/v1/push", tenantId: t1, auth: { type: basic, username: u, passwordFrom: 'sys.env("PASS")' } }
  - { name: prom, type: prometheus, url: "http://prom" }
clusterMetrics: { enabled: true }
podLogs:
  enabled: true
  excludeNamespaces: [kube-system]
  extraLogProcessingStages: |
    stage.drop {
      expression = "health"
    }
alloy-logs: { enabled: true }
`,
    ['clusterMetrics'],
  ],
  [
    'old',
    `cluster: { name: prod }
externalServices:
  loki: { host: "http://loki:3100", tenantId: t1, basicAuth: { username: u } }
logs:
  pod_logs:
    enabled: true
    excludeNamespaces: [kube-system]
    extraStageBlocks: |
      stage.drop {
        expression = "health"
      }
`,
    [],
  ],
])('values of k8s-monitoring are read: %s', async (_, text, subjects) => {
  const given = { file: 'values.yaml', text }
  expect(oldAgents.filter(({ recognises }) => recognises(given)).map(({ name }) => name)).toEqual(['alloy'])
  const { document, resource, gaps } = convert(text, 'values.yaml')
  expect(missing(gaps).map(({ subject }) => subject)).toEqual(subjects)
  expect(resource.spec.sources[0]).toMatchObject({
    config: { extra_field_selector: 'metadata.namespace!=kube-system' },
  })
  expect(resource.spec.sinks[0].config).toMatchObject({ endpoint: 'http://loki:3100', auth: { user: 'u' } })
  expect(String(document)).toContain('match(string!(.message), r')
  withTest(document, resource, pod, { message: line, tenant: 't1' })
  expect(await lint(String(document))).toEqual([])
})

test('components that forward to each other in a cycle are a gap, and their events are discarded', async () => {
  const back = process('').replace('loki.write.default', 'loki.process.more')
  const { document, resource, gaps } = convert(
    `${pods(namespaceRule)}${back}loki.process "more" {\n  forward_to = [loki.process.pods.receiver]\n  stage.static_labels { values = { a = "b" } }\n}\n${write}`,
  )
  expect(gaps.map(({ subject, reason }) => `${subject}: ${reason}`)).toContain(
    'loki.process.pods.receiver: components forward to each other in a cycle',
  )
  expect(resource.spec.sinks).toMatchObject([{ name: 'ends', type: 'blackhole' }])
  expect(await lint(String(document))).toEqual([])
})

test('values of two Secrets become references to both, although their keys have the same name', async () => {
  const secret = (label: string, name: string) =>
    `remote.kubernetes.secret "${label}" {\n  namespace = "logging"\n  name = "${name}"\n}\n`
  const endpoint = `loki.write "default" {
  endpoint {
    url = "http://loki:3100/loki/api/v1/push"
    basic_auth {
      username = remote.kubernetes.secret.one.data["key"]
      password = remote.kubernetes.secret.other.data["key"]
    }
  }
}
`
  const { resource, document, gaps } = convert(
    `${pods(namespaceRule)}${process('')}${endpoint}${secret('one', 'loki-user')}${secret('other', 'loki-password')}`,
  )
  const reference = (name: string) => ({ valueFrom: { secretKeyRef: { name, namespace: 'logging', key: 'key' } } })
  expect(resource.spec.sinks[0].config.auth).toMatchObject({
    user: reference('loki-user'),
    password: reference('loki-password'),
  })
  expect(missing(gaps)).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each(['"lib.alloy"', 'file.path_join(module_path, "mods", "lib.alloy")'])(
  'a module of another file, imported by %s',
  async (path) => {
    const main = `import.file "lib" {
  filename = ${path}
}
lib.sink "x" {
  team = "ops"
}
${pods(namespaceRule)}${process('').replace('loki.write.default', 'lib.sink.x')}`
    const lib = `declare "sink" {
  argument "team" { }
  loki.process "p" {
    stage.static_labels { values = { team = argument.team.value } }
    forward_to = [loki.write.w.receiver]
  }
  loki.write "w" {
    endpoint { url = "http://loki:3100/loki/api/v1/push" }
  }
  export "receiver" { value = loki.process.p.receiver }
}
`
    const files = [
      { file: 'config.alloy', text: main },
      { file: 'lib.alloy', text: lib },
    ]
    const { document, resource, gaps } = converted(convertAlloy, files)
    expect(missing(gaps)).toEqual([])
    const labels = { namespace: 'shop', team: 'ops', job: 'loki.source.kubernetes.pods', instance: 'shop/web-1:app' }
    withTest(document, resource, pod, { labels })
    expect(await lint(String(document))).toEqual([])
    const { gaps: alone } = converted(convertAlloy, files.slice(0, 1))
    expect(missing(alone).map(({ subject }) => subject)).toContain('import.file.lib')
  },
)

test('events continue behind loki.enrich, which only adds labels', async () => {
  const text = `${pods(namespaceRule).replace('loki.process.pods', 'loki.enrich.e')}loki.enrich "e" {
  forward_to = [loki.process.pods.receiver]
}
${process('')}${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps).map(({ subject }) => subject)).toEqual(['loki.enrich.e'])
  withTest(document, resource, pod, { message: line })
  expect(await lint(String(document))).toEqual([])
})
