// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Resources of the logging-operator: the pods of a flow, the path of an event to its outputs, Secrets, and gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'
import { isFluentd } from './files.ts'

const head = (kind: string, name: string, namespace = 'shop') =>
  `apiVersion: logging.banzaicloud.io/v1beta1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: ${namespace} }\n`
const flow = (spec: string, kind = 'Flow') => `${head(kind, 'web')}spec:\n${spec.replace(/^(?=.)/gm, '  ')}\n`
const refs = 'localOutputRefs: [out]\nglobalOutputRefs: [all]\n'
const outputs = `---\n${head('Output', 'out')}spec:\n  http: { endpoint: 'http://out/logs', format: { type: json } }
---\n${head('ClusterOutput', 'all', 'logging')}spec:\n  loki: { url: 'http://loki:3100', configure_kubernetes_labels: true }\n`

const convert = (text: string, namespace?: string) => converted(convertFluentd, [{ file: 'l.yaml', text }], namespace)
const sourcesOf = (text: string, namespace?: string) => convert(text, namespace).resource.spec.sources

test.each([
  {
    name: 'labels',
    spec: 'match: [ { select: { labels: { app: web } } } ]',
    selector: {
      pods: { matchLabels: { app: 'web' } },
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
    },
  },
  {
    name: 'old selectors',
    spec: 'selectors: { app: web }',
    selector: {
      pods: { matchLabels: { app: 'web' } },
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
    },
  },
  {
    name: 'rules that exclude',
    spec: 'match: [ { exclude: { labels: { a: b } } }, { exclude: { container_names: [x, y] } }, { select: {} } ]',
    selector: {
      pods: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] },
      namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
      containers: { exclude: ['x', 'y'] },
    },
  },
  {
    name: 'namespaces of a ClusterFlow',
    kind: 'ClusterFlow',
    spec: 'match: [ { exclude: { namespaces: [a, b] } }, { select: { namespace_labels: { team: x } } } ]',
    selector: {
      namespaces: {
        matchLabels: { team: 'x' },
        matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['a', 'b'] }],
      },
    },
  },
  { name: 'all pods', kind: 'ClusterFlow', spec: 'match: [ { select: {} } ]', selector: undefined },
])('a flow with $name reads its pods', async ({ spec, selector, kind = 'Flow' }) => {
  const text = `${flow(`${spec}\nglobalOutputRefs: [all]`, kind)}${outputs}`
  const { document, resource } = convert(text)
  expect(resource.spec.sources[0].selector).toEqual(selector)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a Pipeline in the namespace of a Flow needs no namespace selector', () => {
  expect(sourcesOf(flow(`selectors: { app: web }\n${refs}`) + outputs, 'shop')[0].selector).toEqual({
    pods: { matchLabels: { app: 'web' } },
  })
})

const time = '2026-11-24T10:11:12.5Z'
const event = (message: string, facts: object) => ({
  message,
  stream: 'stdout',
  timestamp: time,
  orchestrator: { pod_name: 'web-1', container_name: 'web', pod_node_name: 'n1', ...facts },
})

test.each([
  { name: 'the first rule', namespace: 'kube-system', labels: {}, isTaken: true },
  { name: 'a rule that excludes', namespace: 'shop', labels: { a: 'b' }, isTaken: false },
  { name: 'a rule that needs both', namespace: 'shop', labels: { a: 'c' }, isTaken: true },
  { name: 'the last rule', namespace: 'other', labels: {}, isTaken: true },
])('in a list of rules, $name decides', async ({ namespace, labels, isTaken }) => {
  const spec =
    'match:\n- select: { namespaces_regex: ["^kube-"], hosts: [n1, n2] }\n- exclude: { namespaces: [shop], labels: { a: b } }\n- select: {}\nglobalOutputRefs: [all]'
  const { document, resource } = convert(`${flow(spec, 'ClusterFlow')}${outputs}`)
  withTest(
    document,
    resource,
    event('x', { pod_namespace: namespace, pod_labels: labels }),
    isTaken ? { message: 'x' } : undefined,
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('rules that only exclude select nothing', async () => {
  const { document, resource } = convert(
    `${flow('match: [ { exclude: { labels: { a: b } } } ]\nglobalOutputRefs: [all]')}${outputs}`,
  )
  withTest(document, resource, event('x', { pod_namespace: 'shop', pod_labels: {} }), undefined)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('filters of the Logging run before those of the flow', async () => {
  const logging = `---\n${head('Logging', 'all')}spec:\n  globalFilters:\n    - record_transformer: { records: [ { a: one }, { b: two } ] }\n`
  const filters = `filters:
- parser: { reserve_data: true, remove_key_name_field: true, parse: { type: json } }
- record_transformer: { enable_ruby: true, remove_keys: noise, records: [ { team: '\${record["a"]}-x', pod: '\${record["kubernetes"]["pod_name"]}' } ] }
- grep: { regexp: [ { key: level, pattern: '/^warn/' } ] }
`
  const { document, resource, gaps } = convert(`${flow(`${filters}${refs}`)}${outputs}${logging}`)
  withTest(document, resource, event('{"level":"warning","noise":1}', { pod_namespace: 'shop' }), {
    a: 'one',
    b: 'two',
    team: 'one-x',
    pod: 'web-1',
    level: 'warning',
  })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks.map(({ name, type }: { name: string; type: string }) => [name, type])).toEqual([
    ['out', 'http'],
    ['all', 'log_aggregator'],
  ])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('pod labels become stream labels', async () => {
  const { document, resource } = convert(`${flow('globalOutputRefs: [all]')}${outputs}`)
  expect(resource.spec.sinks[0].config.labels).toMatchObject({
    '*': '{{ kubernetes.labels }}',
    pod: '{{ kubernetes.pod_name }}',
    container_id: '{{ kubernetes.docker_id }}',
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an output of two flows becomes one sink', () => {
  const { resource } = convert(
    `${flow('globalOutputRefs: [all]')}---\n${flow('globalOutputRefs: [all]').replace('name: web', 'name: api')}${outputs}`,
  )
  expect(resource.spec.sinks).toHaveLength(1)
  expect(resource.spec.sinks[0].inputs).toHaveLength(2)
})

test('keys of Secrets become references, in the namespace of the output', async () => {
  const output = `---\n${head('Output', 'es')}spec:\n  elasticsearch:
    host: es
    user: u
    password: { valueFrom: { secretKeyRef: { name: es-user, key: pass } } }
    ca_file: { mountFrom: { secretKeyRef: { name: ca, key: ca.crt } } }\n`
  const { document, resource, gaps } = convert(`${flow('localOutputRefs: [es]')}${output}`)
  expect(resource.spec.sinks[0].config.auth.password).toEqual({
    valueFrom: { secretKeyRef: { name: 'es-user', namespace: 'shop', key: 'pass' } },
  })
  // The option takes the content of the file.
  expect(resource.spec.sinks[0].config.tls.ca_file).toEqual({
    valueFrom: { secretKeyRef: { name: 'ca', namespace: 'shop', key: 'ca.crt' } },
  })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { name: 'a missing output', text: flow('localOutputRefs: [no]'), subject: 'Output no', line: 5 },
  { name: 'a flow without outputs', text: flow('match: []'), subject: 'shop-web', line: 1 },
  {
    name: 'a condition of syslog-ng on a name that is not a field',
    text: `${head('SyslogNGFlow', 's')}spec: { match: { regexp: { pattern: abc, value: SDATA } } }\n`,
    subject: 'SyslogNGFlow s: match',
    line: 4,
  },
  {
    name: 'a destination of syslog-ng without a sink',
    text: `${head('SyslogNGOutput', 's')}spec: { mongodb: { collection: c } }\n`,
    subject: 'SyslogNGOutput s: mongodb',
    line: 4,
  },
  {
    name: 'the journal',
    text: `${head('HostTailer', 'h').replace('v1beta1', 'v1alpha1')}spec:\n  systemdTailers: [ { name: kubelet } ]\n`,
    subject: 'HostTailer h: kubelet',
    line: 5,
  },
  {
    name: 'a file of a HostTailer without a flow',
    text: `${head('HostTailer', 'h').replace('v1beta1', 'v1alpha1')}spec:\n  fileTailers: [ { name: a, path: /var/log/a.log } ]\n`,
    subject: 'HostTailer h: a',
    line: 5,
  },
])('$name is a gap', async ({ text, subject, line }) => {
  expect(isFluentd({ file: 'l.yaml', text })).toBe(true)
  const { document, gaps } = convert(text)
  expect(gaps).toContainEqual(expect.objectContaining({ subject, line, file: 'l.yaml' }))
  const made = document.toString({ lineWidth: 0 })
  expect(await lint(made)).toEqual([])
})

test('new tags that no output writes are not missing', () => {
  const { gaps } = convert(flow('filters: [ { tag_normaliser: {} } ]\nglobalOutputRefs: [all]') + outputs)
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'tag_normaliser', isReplaced: true }))
})

test('an output writes the tag that tag_normaliser sets', async () => {
  const filters = 'filters: [ { tag_normaliser: { format: "${namespace_name}/${labels.app}" } } ]'
  const text = `${flow(`${filters}\nglobalOutputRefs: [x]`)}---\n${head('ClusterOutput', 'x')}spec: { elasticsearch: { host: es, include_tag_key: true } }\n`
  const { document, resource, gaps } = convert(text)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event('x', { pod_namespace: 'shop' }), { tag: 'shop/unknown' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a parser in a list, as in early versions', async () => {
  const filters =
    'filters: [ { parser: { reserve_data: true, parsers: [ { type: regexp, expression: "/^(?<a>x)/" } ] } } ]'
  const { document, resource, gaps } = convert(`${flow(`${filters}\n${refs}`)}${outputs}`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, event('xy', { pod_namespace: 'shop' }), { a: 'x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('files of a HostTailer that a flow selects by its container', async () => {
  const tailer = `---\n${head('HostTailer', 'nodes')}spec:
  fileTailers:
    - { name: audit, path: /var/log/audit.log, read_from_head: true }
    - { name: other, path: /var/log/other.log }
    - { name: old, path: /var/log/old.log, disabled: true }\n`
  const selection =
    'match: [ { select: { labels: { app.kubernetes.io/name: host-tailer }, container_names: [audit] } } ]\n'
  const filters =
    'filters: [ { parser: { key_name: message, reserve_data: true, remove_key_name_field: true, parse: { type: json } } } ]\n'
  const rest = flow('match: [ { select: {} } ]\nglobalOutputRefs: [all]').replace('name: web', 'name: rest')
  const { document, resource, gaps } = convert(
    `${flow(`${selection}${filters}${refs}`)}${tailer}---\n${rest}${outputs}`,
  )
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const sources: readonly { name: string; type: string; config: { include: unknown } }[] = resource.spec.sources
  expect(sources.map(({ name, config: { include } }) => [name, include])).toEqual([
    ['shop-web-audit', ['/var/log/audit.log']],
    ['shop-rest', undefined],
    ['shop-rest-audit', ['/var/log/audit.log']],
    ['shop-rest-other', ['/var/log/other.log']],
  ])
  const audit = { message: '{"verb":"get"}', timestamp: '2026-11-24T10:11:12Z' }
  withTest(document, resource, audit, { verb: 'get', stream: 'stdout' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a default flow without other flows reads all pods', async () => {
  const { document, resource } = convert(
    `${head('Logging', 'l')}spec:\n  defaultFlow: { globalOutputRefs: [all] }\n${outputs}`,
  )
  expect(resource.spec.sources).toMatchObject([{ name: 'l-default', type: 'orchestrator_logs' }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a configuration in a value between quotes is recognized', () => {
  const text =
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: f}\ndata:\n  fluent.conf: "<source>\\n  @type tail\\n  path /a\\n  tag a\\n</source>\\n"\n'
  expect(isFluentd({ file: 'map.yaml', text })).toBe(true)
})

test('a flow for the pod of an EventTailer gets the events of the cluster as lines', async () => {
  const text = `apiVersion: logging-extensions.banzaicloud.io/v1alpha1
kind: EventTailer
metadata: { name: sample }
spec: { controlNamespace: ops }
---
apiVersion: logging.banzaicloud.io/v1beta1
kind: Flow
metadata: { name: events, namespace: ops }
spec:
  match:
    - select: { labels: { app.kubernetes.io/name: event-tailer } }
  filters:
    - parser: { key_name: message, reserve_data: true, remove_key_name_field: true, parse: { type: json } }
  localOutputRefs: [out]
---
apiVersion: logging.banzaicloud.io/v1beta1
kind: Output
metadata: { name: out, namespace: ops }
spec: { nullout: {} }
`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'l.yaml', text }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ type: 'orchestrator_events', config: { include_object: true } }])
  const object = {
    kind: 'Event',
    metadata: { name: 'x' },
    regarding: { kind: 'Pod' },
    note: 'Failed',
    deprecatedCount: 2,
  }
  const orchestrator = { object, first_timestamp: 'a', last_timestamp: 'b' }
  withTest(
    document,
    resource,
    { message: 'Failed', timestamp: '2026-11-24T10:11:12Z', orchestrator },
    {
      verb: 'UPDATED',
      event: { metadata: { name: 'x' }, involvedObject: { kind: 'Pod' }, message: 'Failed', count: 2 },
      'kubernetes.labels': {
        'app.kubernetes.io/name': 'event-tailer',
        'app.kubernetes.io/instance': 'sample-event-tailer',
      },
    },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an EventTailer that no flow selects is a gap', () => {
  const text = 'apiVersion: logging.banzaicloud.io/v1alpha1\nkind: EventTailer\nmetadata: { name: e }\n'
  const { gaps } = converted(convertFluentd, [{ file: 'l.yaml', text }])
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'EventTailer e' }))
})
