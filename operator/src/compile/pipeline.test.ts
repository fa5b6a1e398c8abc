import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { components, optionsOf } from '@penstock/agent/config'
import { isTable, membersOf, type Schema } from '@penstock/agent/schema'
import { describe, expect, test } from 'vitest'
import { type PodLogs, subscriptionOf } from './compiled.ts'
import { compileResources } from './config.ts'
import { compilePipeline } from './pipeline.ts'
import { loadResources, type Resource, Resources } from './resources.ts'

/** Compiles the resources in the text; problems as `line:column message`. */
function compile(text: string, ownMachine = false, sharedAlone = false) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-compile-'))
  try {
    writeFileSync(join(folder, 'all.yaml'), text)
    const { resources, problems } = loadResources([folder])
    const compiled = compileResources(resources, { ownMachine, sharedAlone })
    const all = [...problems, ...compiled.problems]
    return {
      config: compiled.config,
      problems: all.map((problem) => `${problem.line}:${problem.column} ${problem.message}`),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A Pipeline with a spec, and a ClusterSink for it. */
function compileJobText(spec: string): [Resource, Resource] {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-compile-'))
  try {
    const sink = `apiVersion: penstock.dev/v1alpha1
kind: ClusterSink
metadata: { name: store }
spec: { type: blackhole, allowedNamespaces: { from: All }, limits: { perNamespace: { bytesPerSecond: 5Mi } } }
`
    writeFileSync(join(folder, 'all.yaml'), `${pipeline(spec)}---\n${sink}`)
    return loadResources([folder]).resources as [Resource, Resource]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const pipeline = (spec: string) => `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: checkout, namespace: shop }
spec:
${spec.replace(/^/gm, '  ')}
`

const labelled = `sources: [{ name: app, type: orchestrator_logs }]
sinks:
  - name: out
    type: log_aggregator
    config:
      endpoint: http://loki.example.com
      labels: { cluster: { valueFrom: { fieldRef: { fieldPath: clusterName } } } }
      encoding: { codec: json }
      out_of_order_action: accept
`

test('files are checked without the name of the cluster', () => {
  const { config, problems } = compile(pipeline(labelled))
  expect(problems).toEqual([])
  expect(config.sinks['shop/checkout/out']).toMatchObject({ labels: { cluster: 'cluster' } })
})

test('an operator without a name of its cluster reports the Pipelines that need it', () => {
  const [resource, sink] = compileJobText(labelled)
  const compiled = compilePipeline(resource, new Resources([resource, sink]), { ownMachine: false })
  expect(compiled.problems).toEqual([
    expect.objectContaining({
      message: 'The operator does not know the name of its cluster',
      path: 'spec.sinks[0].config.labels.cluster.valueFrom.fieldRef',
    }),
  ])
})

test.each([
  ['*', 'http-a,http-aa,tcp-a'],
  ['http-*', 'http-a,http-aa'],
  ['*a', 'http-a,http-aa,tcp-a'],
  ['*-a', 'http-a,tcp-a'],
  ['*a*a', 'http-aa'],
  ['**p-a', 'http-a,tcp-a'],
  ['t*-a', 'tcp-a'],
  ['http-a*a*a', ''],
])('the pattern %j of `inputs` means %j', (pattern, expected) => {
  const { config } = compile(
    pipeline(`sources:
  - { name: http-a, type: demo_logs, config: { format: json } }
  - { name: http-aa, type: demo_logs, config: { format: json } }
  - { name: tcp-a, type: demo_logs, config: { format: json } }
sinks:
  - { name: out, type: blackhole, inputs: ['${pattern}'] }`),
    true,
  )
  const { inputs = [] } =
    (config as { sinks?: Record<string, { inputs?: string[] }> }).sinks?.['shop/checkout/out'] ?? {}
  expect(inputs.map((id) => id.split('/')[2]).join()).toBe(expected)
})

test('the cost of a pattern of `inputs` with many stars is linear', () => {
  const spec = `sources:
  - { name: ${'a'.repeat(63)}, type: demo_logs, config: { format: json } }
sinks:
  - { name: out, type: blackhole, inputs: ['${'*a'.repeat(40)}*b'] }`
  expect(compile(pipeline(spec), true).problems.join()).toContain('No source or transform of this Pipeline is named')
})

test('omitted inputs connect the sources through each transform to the sinks', () => {
  const { config, problems } = compile(
    pipeline(`sources:
  - { name: app, type: orchestrator_logs }
  - { name: demo, type: demo_logs, config: { format: json } }
transforms:
  - { name: parse, type: remap, config: { source: '.a = 1' } }
  - { name: keep, type: filter, config: { condition: 'true' } }
sinks:
  - { name: out, type: http, config: { uri: 'http://x', encoding: { codec: json } } }
  - { name: raw, type: http, inputs: ['*'], config: { uri: 'http://y', encoding: { codec: json } } }`),
    true,
  )
  expect(problems).toEqual([])
  expect(config?.transforms['shop/checkout/parse']?.['inputs']).toEqual(['shop/checkout/app', 'shop/checkout/demo'])
  expect(config?.transforms['shop/checkout/keep']?.['inputs']).toEqual(['shop/checkout/parse'])
  expect(config?.sinks['shop/checkout/out']).toEqual({
    type: 'http',
    uri: 'http://x',
    encoding: { codec: 'json' },
    inputs: ['shop/checkout/keep'],
  })
  expect(config?.sinks['shop/checkout/raw']?.['inputs']).toEqual([
    'shop/checkout/app',
    'shop/checkout/demo',
    'shop/checkout/parse',
    'shop/checkout/keep',
  ])
})

test('pod logs are limited to the namespace of the Pipeline, selectors become label and path filters', () => {
  const { config, problems } = compile(
    pipeline(`sources:
  - name: app
    type: orchestrator_logs
    selector:
      pods:
        matchLabels: { part-of: checkout }
        matchExpressions: [{ key: logs, operator: NotIn, values: ["off", "never"] }]
      containers: { exclude: [proxy] }
    multiline: { preset: python }
sinks: [{ name: out, type: blackhole }]`),
  )
  expect(problems).toEqual([])
  expect(config?.sources['shop/checkout/app']).toEqual({
    type: 'orchestrator_logs',
    extra_field_selector: 'metadata.namespace=shop',
    extra_label_selector: 'logs notin (never,off),part-of=checkout',
    exclude_paths_glob_patterns: ['**/*.gz', '**/*.tmp', '**/proxy/**'],
    multiline: {
      start_pattern: '^Traceback \\(most recent call last\\):',
      condition_pattern: '^\\s',
      mode: 'continue_past',
      timeout_ms: 1000,
    },
  })
})

test('rules of a Pipeline for joining lines become those of the agent', () => {
  const { config, problems } = compile(
    pipeline(`sources:
  - name: app
    type: orchestrator_logs
    multiline: { custom: { start: '.*', condition: '^BEGIN', mode: halt_before, flush: '^END' } }
sinks: [{ name: out, type: blackhole }]`),
  )
  expect(problems).toEqual([])
  expect(config?.sources['shop/checkout/app']).toMatchObject({
    multiline: {
      start_pattern: '.*',
      condition_pattern: '^BEGIN',
      mode: 'halt_before',
      timeout_ms: 1000,
      flush_pattern: '^END',
    },
  })
})

test('references, values of Secrets and aliases are resolved within the namespace', () => {
  const { config, problems } = compile(`${pipeline(`secrets: [{ alias: es, secretName: creds }]
sources: [{ name: app, ref: { kind: Source, name: java } }]
sinks: [{ name: out, ref: { kind: Sink, name: search } }]`)}---
apiVersion: penstock.dev/v1alpha1
kind: Source
metadata: { name: java, namespace: shop }
spec: { type: orchestrator_logs, config: { max_line_bytes: 65536 } }
---
apiVersion: penstock.dev/v1alpha1
kind: Sink
metadata: { name: search, namespace: shop }
spec:
  type: search_engine
  config:
    endpoints: ['https://es.shop.svc:9200']
    auth: { strategy: basic, user: 'SECRET[es.user]', password: { valueFrom: { secretKeyRef: { name: creds, key: pass } } } }
---
apiVersion: v1
kind: Secret
metadata: { name: creds, namespace: shop }
stringData: { user: 'a"$b' }
data: { pass: ${Buffer.from('p\n$w').toString('base64')} }
`)
  expect(problems).toEqual([])
  expect(config?.sinks['shop/checkout/out']?.['auth']).toEqual({ strategy: 'basic', user: 'a"$b', password: 'p\n$w' })
  expect(config?.sources['shop/checkout/app']?.['max_line_bytes']).toBe(65536)
})

test('tests of a Pipeline become unit tests of the configuration', () => {
  const { config } = compile(
    pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms: [{ name: parse, type: remap, config: { source: '.a = 1' } }]
sinks: [{ name: out, type: blackhole }]
tests:
  - { name: t, insertAt: parse, input: { raw: x }, expect: [{ at: parse, assert: '.a == 1' }, { at: parse, count: 0 }] }`),
  )
  expect(config?.tests).toEqual([
    {
      name: 'shop/checkout: t',
      inputs: [{ insert_at: 'shop/checkout/parse', type: 'raw', value: 'x' }],
      outputs: [{ extract_from: 'shop/checkout/parse', conditions: [{ type: 'vrl', source: '.a == 1' }] }],
      no_outputs_from: ['shop/checkout/parse'],
    },
  ])
})

test('a test may have several inputs, each at its own transform', () => {
  const { config, problems } = compile(
    pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms:
  - { name: parse, type: remap, config: { source: '.a = 1' } }
  - { name: keep, type: filter, config: { condition: '.a == 1' } }
sinks: [{ name: out, type: blackhole }]
tests:
  - { name: t, inputs: [{ insertAt: parse, raw: x }, { insertAt: keep, log: { a: 2 } }, { insertAt: keep, program: '.a = 3' }], expect: [{ at: keep, count: 1 }] }`),
  )
  expect(problems).toEqual([])
  expect(config?.tests).toMatchObject([
    {
      inputs: [
        { insert_at: 'shop/checkout/parse', type: 'raw', value: 'x' },
        { insert_at: 'shop/checkout/keep', type: 'log', log_fields: { a: 2 } },
        { insert_at: 'shop/checkout/keep', type: 'vrl', source: '.a = 3' },
      ],
    },
  ])
})

test.each([
  [
    '{ insertAt: parse, input: { raw: x }, inputs: [{ insertAt: parse, raw: x }] }',
    'A test needs either `insertAt` and `input`, or `inputs`',
  ],
  ['{ insertAt: parse }', 'A test needs either `insertAt` and `input`, or `inputs`'],
  ['{ inputs: [{ insertAt: parse, raw: x, log: { a: 1 } }] }', 'one of `raw`, `log` and `program`'],
  ['{ inputs: [{ insertAt: parse }] }', 'one of `raw`, `log` and `program`'],
  ['{ inputs: [{ insertAt: parse, program: ".a = 1", log: { a: 1 } }] }', 'one of `raw`, `log` and `program`'],
  ['{ insertAt: parse, input: { program: ".a = get_env_var!(\\"HOME\\")" } }', 'get_env_var'],
  ['{ inputs: [{ insertAt: prase, raw: x }] }', 'No transform of this Pipeline is named "prase"'],
])('the inputs of a test are checked: %s', (given, message) => {
  const { problems } = compile(
    pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms: [{ name: parse, type: remap, config: { source: '.a = 1' } }]
sinks: [{ name: out, type: blackhole }]
tests: [{ name: t, expect: [{ at: parse, count: 1 }], ${given.slice(1, -1)} }]`),
  )
  expect(problems.join('\n')).toContain(message)
})

test('a test without a transform is reported at its place', () => {
  const { problems } = compile(
    pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms: [{ name: parse, type: remap, config: { source: '.a = 1', reroute_dropped: true } }]
sinks: [{ name: out, type: blackhole }]
tests:
  - { name: one, insertAt: prase, input: { raw: x }, expect: [{ at: parse, count: 1 }] }
  - { name: two, insertAt: parse, input: { raw: x }, expect: [{ at: parse.dropped, count: 0 }, { at: out, count: 1 }] }`),
  )
  expect(problems).toEqual([
    expect.stringMatching(/^9:\d+ No transform of this Pipeline is named "prase"$/),
    expect.stringMatching(/^10:\d+ No transform of this Pipeline is named "out"$/),
  ])
})

test('problems of all stages are reported together: shape, rules for namespaces, agent', () => {
  const { problems } = compile(
    pipeline(`shape: wrong
sources: [{ name: app, type: orchestrator_logs }]
transforms:
  - { name: parse, type: remap, config: { source: '.a = parse_json(.message)' } }
  - { name: keep, type: filter, config: { condition: .level } }
sinks:
  - { name: gone, ref: { kind: Sink, name: nowhere } }
  - { name: out, type: http, config: { uri: 'http://169.254.169.254/x', encoding: { codec: jason } } }
  - { name: files, type: http, config: { uri: 'http://x/', encoding: { codec: json }, tls: { ca_file: /etc/ca.pem } } }`),
  )
  expect(problems).toEqual([
    expect.stringMatching(/^5:3 unknown field `shape`/),
    '11:40 Sink "nowhere" is not in namespace "shop"',
    expect.stringMatching(/^12:\d+ .*169\.254\.169\.254.*\(T7\)/),
    expect.stringMatching(/^13:\d+ .*ca_file.*\(T4\)/),
    expect.stringMatching(/^8:\d+ .*does not compile/),
    expect.stringMatching(/^9:\d+ The condition must return a boolean/),
    expect.stringMatching(/^12:\d+ .*EncodingConfig/),
  ])
})

test('all stages also check an unused Source or Sink, even without a Pipeline', () => {
  const shared = (kind: string, spec: string) =>
    compile(
      `apiVersion: penstock.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: x }\nspec:\n${spec.replaceAll(/^/gm, '  ')}\n`,
      false,
      true,
    ).problems
  expect(
    shared('Sink', 'type: http\nconfig: { uri: "http://169.254.169.254/", encoding: { codec: json }, nope: 1 }'),
  ).toEqual([expect.stringMatching(/^6:\d+ .*\(T7\)$/), expect.stringMatching(/^6:\d+ unknown field `nope`/)])
  expect(shared('ClusterSink', 'type: tsdb_metrics\nconfig: { endpoint: 7 }')).toEqual([
    expect.stringMatching(/^6:\d+ `endpoint` must be a string, found 7$/),
  ])
  // Reports that the type does not exist, not that it is forbidden.
  expect(shared('Source', 'type: kafkaa')).toEqual([expect.stringMatching(/^5:3 unknown source type `kafkaa`/)])
  // An alias belongs to the Pipeline that uses it.
  const secret = 'auth: { strategy: bearer, token: "SECRET[a.b]" }'
  expect(shared('Sink', `type: http\nconfig: { uri: "http://x/", encoding: { codec: json }, ${secret} }`)).toEqual([])
  expect(shared('Source', 'type: orchestrator_logs')).toEqual([])
})

test('only a gap is reported, not its consequences', () => {
  const gap = (spec: string) => compile(pipeline(spec)).problems
  const sinks = 'sinks: [{ name: out, type: blackhole, config: {} }]'
  expect(gap(`sources: [{ name: app, ref: { kind: Source, name: gone } }]\n${sinks}`)).toEqual([
    '5:47 Source "gone" is not in namespace "shop"',
  ])
  expect(
    gap(`sources: [{ name: app, type: orchestrator_logs }]\n${sinks.replace('config', 'inputs: [oops], config')}`),
  ).toEqual(['6:50 No source or transform of this Pipeline is named "oops"'])
  expect(gap(`sources: [{ name: app, type: orchestrator_logs }]\nsinks: wrong`)).toEqual([
    expect.stringMatching(/^6:\d+ /),
  ])
})

test('facts hidden from the operator by its rights are reported where they are needed', () => {
  const resources = compileJobText(`sources:
  - { name: app, type: orchestrator_logs, config: { node_annotation_fields: { node_labels: .node } } }
  - { name: plain, type: orchestrator_logs, config: { node_annotation_fields: { node_labels: '' } } }
sinks: [{ name: out, ref: { kind: ClusterSink, name: store } }]`)
  const [user] = resources
  const unseen = { clusterKinds: true, nodeLabels: true }
  const { problems } = compilePipeline(user, [], { ownMachine: false, unseen })
  expect(problems.map(({ reason, path, message }) => `${reason} ${path}: ${message}`)).toEqual([
    'SinkNotFound spec.sinks[0].ref.name: ClusterSink "store" is not available: this operator watches single namespaces, which disables Cluster kinds',
    'InvalidConfig spec.sources[0].config.node_annotation_fields.node_labels: `node_labels` needs the labels of nodes, which agents with namespace rights cannot read',
  ])
  expect(compilePipeline(user, resources.slice(1), { ownMachine: false }).problems).toEqual([])
})

test('warns about parts without effect: unused transforms, outputs that reach no sink, deprecated options', () => {
  const { problems } = compile(
    pipeline(`sources:
  - { name: app, type: orchestrator_logs }
  - { name: unread, type: orchestrator_logs }
  - { name: lost, type: orchestrator_logs }
transforms:
  - { name: first, type: filter, inputs: [lost], config: { condition: 'true' } }
  - { name: unused, type: filter, config: { condition: 'true' } }
sinks:
  - { name: out, type: search_engine, inputs: [app], config: { endpoint: 'http://x/' } }`),
  )
  expect(problems).toEqual([
    expect.stringMatching(/^13:\d+ `endpoint` is deprecated$/),
    '7:7 Source "unread" has no consumers',
    '11:37 Transform "unused" has no consumers',
    '8:7 The output of source "lost" reaches no sink',
    '10:7 The output of transform "first" reaches no sink',
  ])
})

test.each([
  { labels: '{ app: shop }', action: '', isWarned: true },
  { labels: "{ app: '{{ orchestrator.pod_labels.app }}' }", action: 'drop', isWarned: true },
  { labels: "{ pod: '{{ orchestrator.pod_name }}' }", action: 'drop', isWarned: false },
  { labels: "{ team: '{{ team }}' }", action: 'drop', isWarned: false },
  { labels: '{ app: shop }', action: 'accept', isWarned: false },
])(
  'warns about pods that share a stream whose late lines are discarded: $labels $action',
  ({ labels, action, isWarned }) => {
    const { problems } = compile(
      pipeline(`sources: [{ name: app, type: orchestrator_logs }]
sinks:
  - name: out
    type: log_aggregator
    config: { endpoint: 'http://loki:3100', encoding: { codec: json }, labels: ${labels}${action === '' ? '' : `, out_of_order_action: ${action}`} }`),
    )
    const warning =
      '9:74 No label distinguishes pods, so lines of one pod that are older than those of another are discarded'
    expect(problems).toEqual(isWarned ? [warning] : [])
  },
)

test('a field selector limits the reads of a source, and an unsatisfiable one is refused', () => {
  const everywhere = (selector: string) =>
    compileJobText(`sources:
  - { name: app, type: orchestrator_logs, config: { extra_field_selector: '${selector}' } }
sinks: [{ name: out, type: blackhole }]`)[0]
  const compiled = (selector: string) => {
    const given = everywhere(selector)
    const cluster = { ...given, kind: 'ClusterPipeline', namespace: '' } satisfies Resource
    return compilePipeline(cluster, [cluster], { ownMachine: false })
  }
  const { podLogs, problems } = compiled('metadata.namespace=shop,status.phase!=Failed')
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(subscriptionOf(podLogs[0] as PodLogs, 'uid')).toMatchObject({
    fieldSelector: 'metadata.namespace=shop,status.phase!=Failed',
    options: {},
  })
  expect(compiled('spec.colour=red').problems).toMatchObject([
    {
      path: expect.stringContaining('extra_field_selector'),
      message: expect.stringContaining('pods cannot be selected by field "spec.colour"'),
    },
  ])
})

test('every problem is reported at its place', () => {
  const { problems } = compile(
    pipeline(`source: []
sources:
  - { name: App, type: orchestrator_logs }
  - { name: two, type: orchestrator_logs, config: { logs_dir: /etc } }
  - { name: two, type: stdin }
sinks:
  - { name: out, ref: { kind: Sink, name: nowhere } }
  - { name: screen, type: console, inputs: [tow] }
  - { name: both, type: http, ref: { kind: Sink, name: x } }`),
  )
  expect(problems).toEqual([
    '5:3 unknown field `source`, expected `mode`, `suspend`, `secrets`, `sources`, `transforms`, `sinks`, `limits`, `onError`, `tests`',
    '7:9 `spec.sources[0].name` must be at most 63 lower-case letters, digits and `-`, starting with a letter and ending with a letter or digit; found "App"',
    '9:9 The name "two" is used twice',
    '11:39 Sink "nowhere" is not in namespace "shop"',
    '13:7 "both" needs either `type` with `config`, or `ref`',
    '8:55 `logs_dir` is not allowed in a namespaced resource (T3)',
    '12:47 No source or transform of this Pipeline is named "tow"',
    '12:23 Type `console` is not allowed in a namespaced resource (T9)',
    '12:7 missing field `encoding`',
  ])
})

test.each([
  [
    'apiVersion: v1\nkind: Pipelin\nmetadata: { name: x }',
    '2:1 `kind` must be one of Pipeline, Source, Sink, ClusterPipeline, ClusterSource, ClusterSink, Agent, TenantPolicy, Secret, ConfigMap, Namespace; found "Pipelin"',
  ],
  [
    'apiVersion: v1\nkind: Sink\nmetadata: { name: x }',
    '1:1 `apiVersion` of a Sink must be `penstock.dev/v1beta1` or `penstock.dev/v1alpha1`; found "v1"',
  ],
  ['a: [', '1:4 The `[` that begins here is not closed'],
])('%j is refused', (text, problem) => {
  expect(compile(text).problems).toContain(problem)
})

// Each rule for tenants, by an author's attempt to break it.
describe('a namespaced author', () => {
  const attempt = (part: string, sinks = 'sinks: [{ name: out, type: blackhole }]') =>
    compile(pipeline(`${part}\n${sinks}`)).problems.map((problem) => problem.replace(/^\d+:\d+ /, ''))
  const source = (config: string) => `sources: [{ name: app, type: orchestrator_logs, config: ${config} }]`
  const sink = (type: string, config: string) =>
    [
      'sources: [{ name: app, type: orchestrator_logs }]',
      `sinks: [{ name: out, type: ${type}, config: ${config} }]`,
    ] as const
  const variable = ['$', '{HOME}'].join('')
  const program = (text: string) =>
    `sources: [{ name: app, type: orchestrator_logs }]\ntransforms: [{ name: t, type: remap, config: { source: ${JSON.stringify(text)} } }]`

  test.each([
    [
      'T3',
      attempt(source('{ extra_namespace_label_selector: a=b }')),
      '`extra_namespace_label_selector` is not allowed',
    ],
    ['T3', attempt(source('{ exclude_paths_glob_patterns: [/etc/*] }')), 'An absolute path'],
    ['T3', attempt(source('{ glob_minimum_cooldown_ms: 10 }')), 'must be 1000 or more'],
    [
      'T4',
      attempt(
        ...sink('http', '{ uri: "https://x", encoding: { codec: json }, tls: { ca_file: /var/run/secrets/token } }'),
      ),
      '`ca_file` must not name a file',
    ],
    [
      'T4',
      attempt(...sink('siem_unstructured', '{ credentials_path: /etc/key }')),
      '`credentials_path` must not name a file',
    ],
    [
      'T5',
      attempt(...sink('search_engine', '{ endpoints: ["https://x"], auth: { strategy: aws } }')),
      '`auth` of type `search_engine` needs explicit credentials',
    ],
    ['T6', attempt(program('.a = 1\n.b = get_env_var!("HOME")')), 'line 2 col 6: E-TENANT `get_env_var`'],
    [
      'T6',
      attempt(...sink('http', `{ uri: "https://x/${variable}", encoding: { codec: json } }`)),
      `${variable} is not allowed`,
    ],
    [
      'T4',
      attempt(program('_, err = validate_json_schema("{}", .path)\n.e = err')),
      'line 1 col 37: E-TENANT `schema_definition` of `validate_json_schema`',
    ],
    ['T4', attempt(program('.a = parse_proto!(.a, "/dev/zero", "a.B")')), '`desc_file` of `parse_proto`'],
    ['T4', attempt(program('.a = encode_proto!({}, "/dev/zero", "a.B")')), '`desc_file` of `encode_proto`'],
    ['T4', attempt(program('.a = parse_etld!(.a, psl: "/dev/zero")')), '`psl` of `parse_etld`'],
    [
      'T4',
      attempt(program('.a = parse_groks!(.a, ["a"], alias_sources: ["/etc/passwd"])')),
      '`alias_sources` of `parse_groks`',
    ],
    ['T6', attempt(program('.a = find_vector_metrics("a")')), 'E-TENANT `find_vector_metrics`'],
    ['T6', attempt(program('for_each([1]) -> |_i, _v| { .h = get_hostname!() }')), 'E-TENANT `get_hostname`'],
    [
      'T7',
      attempt(...sink('http', '{ uri: "http://169.254.169.254/latest", encoding: { codec: json } }')),
      'host "169.254.169.254"',
    ],
    [
      'T7',
      attempt(...sink('http', '{ uri: "http://2852039166/latest", encoding: { codec: json } }')),
      'host "169.254.169.254"',
    ],
    [
      'T7',
      attempt(...sink('http', '{ uri: "http://[::ffff:7f00:1]:80", encoding: { codec: json } }')),
      'host "::ffff:7f00:1"',
    ],
    [
      'T7',
      attempt(...sink('log_aggregator', '{ endpoint: "https://kubernetes.default.svc", encoding: { codec: json } }')),
      'host "kubernetes.default.svc"',
    ],
    [
      'T8',
      attempt(
        ...sink(
          'http',
          '{ uri: "https://x", encoding: { codec: json }, auth: { strategy: bearer, token: { valueFrom: { secretKeyRef: { namespace: other, name: a, key: b } } } } }',
        ),
      ),
      '`secretKeyRef.namespace` is not allowed',
    ],
    ['T9', attempt('sources: [{ name: app, type: internal_metrics }]'), 'Type `internal_metrics` is not allowed'],
    [
      'T9',
      attempt(
        'sources: [{ name: app, type: kubernetes_logs }, { name: q, type: webserver_metrics, config: { endpoints: ["http://x"] } }]',
      ),
      'Type `webserver_metrics` of sources is not allowed',
    ],
  ])('is stopped by %s: %j', (rule, problems, message) => {
    expect(
      problems.some((problem) => problem.includes(message) && problem.includes(`(${rule})`)),
      problems.join('\n'),
    ).toBe(true)
  })

  test('an optional reference to a Secret that is missing gives no credentials (T5)', () => {
    const missing = '{ valueFrom: { secretKeyRef: { name: missing, key: x, optional: true } } }'
    const attempted = (config: string, type: string, key: string) =>
      compile(`${pipeline(sink(type, config).join('\n'))}---
apiVersion: v1
kind: Secret
metadata: { name: missing, namespace: shop }
stringData: { ${key}: value }
`).problems
    const keys = `{ endpoints: ["https://x"], auth: { strategy: aws, access_key_id: ${missing}, secret_access_key: ${missing} } }`
    expect(attempted(keys, 'search_engine', 'x')).toEqual([])
    expect(attempted(keys, 'search_engine', 'y')).toEqual([
      expect.stringContaining('needs explicit credentials in a namespaced resource (T5)'),
    ])
    const account = `{ customer_id: c8c65bfa-5f2c-42d4-9189-64bb7b939f2c, log_type: A, region: eu, encoding: { codec: json }, credentials_path: ${missing} }`
    expect(attempted(account, 'siem_unstructured', 'x')).toEqual([])
    expect(attempted(account, 'siem_unstructured', 'y')).toEqual([expect.stringContaining('(T5)')])
  })

  test('every option that is an address or content may come from a Secret', () => {
    const from = '{ valueFrom: { secretKeyRef: { name: creds, key: k } } }'
    const broker = `{ endpoint: ${from}, topic: t, encoding: { codec: json }, auth: { oauth2: { issuer_url: ${from}, credentials_url: ${from} } } }`
    expect(attempt(...sink('message_broker', broker))).toEqual([])
    expect(attempt(...sink('http', `{ uri: ${from}, encoding: { codec: json } }`))).toEqual([])
  })

  test('an override of a ClusterSink may not add the identity of the agent (T5)', () => {
    const shared = (config: string) => `${pipeline(`sources: [{ name: app, type: orchestrator_logs }]
sinks:
  - { name: out, ref: { kind: ClusterSink, name: search }, overrides: { auth: { strategy: aws } } }`)}---
apiVersion: penstock.dev/v1alpha1
kind: ClusterSink
metadata: { name: search }
spec:
  type: search_engine
  allowedNamespaces: { from: All }
  overridable: [auth]
  config: ${config}
`
    expect(compile(shared('{ endpoints: ["https://x"] }')).problems).toEqual([
      expect.stringContaining('`auth` of type `search_engine` needs explicit credentials'),
    ])
    expect(compile(shared('{ endpoints: ["https://x"], auth: { strategy: aws } }')).problems).toEqual([])
  })

  test('all memory buffers of a Pipeline together are bounded (T11)', () => {
    const buffered = (events: number) =>
      attempt(
        'sources: [{ name: app, type: orchestrator_logs }]',
        `sinks:\n${[1, 2, 3].map((each) => `  - { name: s${each}, type: blackhole, inputs: [app], config: { buffer: { max_events: ${events} } } }`).join('\n')}`,
      )
    expect(buffered(16_000)).toEqual([])
    expect(buffered(17_000)).toEqual([
      'The memory buffers of a Pipeline may hold at most 50000 events in total (T11); found 51000',
    ])
  })

  test('a ClusterSink is used as its owner allows: shared, with some options open and others enforced', () => {
    const shared = (grant: string) => `${pipeline(`sources: [{ name: app, type: orchestrator_logs }]
sinks:
  - name: out
    ref: { kind: ClusterSink, name: loki }
    overrides: { labels: { app: mine, cluster: forged }, tenant_id: other }`)}---
apiVersion: penstock.dev/v1alpha1
kind: ClusterSink
metadata: { name: loki }
spec:
  type: log_aggregator
  allowedNamespaces: ${grant}
  overridable: [labels]
  enforced: { labels: { cluster: prod, namespace: '{{ orchestrator.pod_namespace }}' } }
  config: { endpoint: 'https://loki:3100', encoding: { codec: json }, labels: { a: b }, out_of_order_action: accept }
---
apiVersion: v1
kind: Namespace
metadata: { name: shop, labels: { tier: gold } }
`
    expect(compile(shared('{ from: Selector, selector: { matchLabels: { tier: iron } } }')).problems).toEqual([
      '8:7 ClusterSink "loki" is not granted to namespace "shop"',
    ])
    const { config, problems } = compile(shared('{ from: Selector, selector: { matchLabels: { tier: gold } } }'))
    expect(problems).toEqual(['9:60 `tenant_id` of ClusterSink "loki" cannot be overridden'])
    expect(config.sinks['shop/checkout/out']?.['labels']).toEqual({
      a: 'b',
      app: 'mine',
      cluster: 'prod',
      namespace: 'shop',
    })
  })

  describe('enforced values of an owner arrive exactly once, with any overrides of a Pipeline (T13)', () => {
    const overriding = (type: string, enforced: object, overrides: object, open: string) => {
      const spec = { type, allowedNamespaces: { from: 'All' }, overridable: [open], enforced, config: {} }
      const owner = { apiVersion: 'penstock.dev/v1alpha1', kind: 'ClusterSink', metadata: { name: 'shared' }, spec }
      const own = pipeline(`sources: [{ name: app, type: orchestrator_logs }]
sinks: [{ name: out, ref: { kind: ClusterSink, name: shared }, overrides: ${JSON.stringify(overrides)} }]`)
      return compile(`${own}---\n${JSON.stringify(owner)}\n`)
    }
    /** Maps of texts in a schema, with the meaning of their keys. */
    const maps = (schema: Schema, path: readonly string[] = []): [readonly string[], unknown][] =>
      isTable(schema['additionalProperties'])
        ? [[path, schema['x-names']]]
        : Object.entries(membersOf(schema)).flatMap(([name, member]) => maps(member, [...path, name]))
    const nested = (path: readonly string[], value: object): object =>
      path.reduceRight<object>((inner, name) => ({ [name]: inner }), value)
    const sinks = components.filter(({ kind }) => kind === 'sink')
    const rows = sinks.flatMap((sink) =>
      maps(optionsOf(sink).schema).map(([path, names]) => ({ type: sink.type, path, names, at: path.join('.') })),
    )

    test('there are such maps', () => {
      expect(rows.map(({ type, at }) => `${type} ${at}`)).toEqual(
        expect.arrayContaining(['log_aggregator labels', 'http request.headers', 'search_engine query']),
      )
    })

    test.each(rows)('$type: $at', ({ type, path, names, at }) => {
      const same = ['X-Tenant', 'x-tenant', 'X-TENANT', 'x-Tenant']
      const hostile = Object.fromEntries(same.map((name) => [name, 'forged']))
      const { config } = overriding(type, nested(path, { 'X-Tenant': 'shop' }), nested(path, hostile), at)
      const sent = path.reduce<unknown>(
        (value, name) => (value as Record<string, unknown>)[name],
        config.sinks['shop/checkout/out'],
      ) as Record<string, unknown>

      expect(sent['X-Tenant']).toBe('shop')
      expect(Object.keys(sent)).toEqual(expect.arrayContaining(names === 'header' ? ['X-Tenant'] : same))
      if (names === 'header') expect(Object.keys(sent)).toHaveLength(1)
    })

    test('enforced names are written as text', () => {
      const { problems } = overriding('log_aggregator', { labels: { '{{ a }}': 'x', 'b*': 'y', c: 'z' } }, {}, 'labels')
      expect(problems.map((problem) => problem.replace(/^\S+ /, ''))).toEqual(
        expect.arrayContaining([
          'Names in `labels` of `enforced` must be literal; found "b*"',
          'Names in `labels` of `enforced` must be literal; found "{{ a }}"',
        ]),
      )
      expect(problems.join()).not.toContain('found "c"')
    })
  })

  test('reads only the events of its own namespace, if a TenantPolicy names the source (T3, T9)', () => {
    const tried = (config: string, more = '', policy = true) => {
      const [own, sink] = compileJobText(
        `${more}sources: [{ name: app, type: orchestrator_events, config: ${config} }]\nsinks: [{ name: out, type: blackhole }]`,
      )
      const allowed = { namespaceSelector: {}, allowedSources: ['orchestrator_events'] }
      const compiled = compilePipeline(own, [own, sink], {
        ownMachine: false,
        ...(policy ? { policy: allowed } : {}),
      })
      return { ...compiled, messages: compiled.problems.map(({ message }) => message) }
    }
    expect(tried('{}', '', false).messages).toEqual([
      'Type `orchestrator_events` of sources is not allowed in this namespace (T9)',
    ])
    const { messages, sources, mode } = tried('{ extra_field_selector: type=Warning }')
    expect([messages, mode]).toEqual([[], 'Aggregator'])
    expect(sources['shop/checkout/app']).toEqual({
      type: 'orchestrator_events',
      namespaces: ['shop'],
      extra_field_selector: 'type=Warning',
    })
    expect(tried('{ data_dir: /d, kube_config_file: /k, namespaces: [blog] }').messages).toEqual([
      '`data_dir` is not allowed in a namespaced resource (T3)',
      '`kube_config_file` is not allowed in a namespaced resource (T3)',
      '`namespaces` is not allowed in a namespaced resource (T3)',
    ])
    expect(tried('{}', 'mode: Node\n').messages).toContain(
      'Sources of type orchestrator_events need `mode: Aggregator`; found Node',
    )
  })

  test('enforced options only read captured facts of the source, where no program can write (T13)', () => {
    const shared = (
      label: string,
      source = '{ name: app, type: orchestrator_logs }',
    ) => `${pipeline(`sources: [${source}]
sinks: [{ name: out, ref: { kind: ClusterSink, name: loki } }]`)}---
apiVersion: penstock.dev/v1alpha1
kind: ClusterSink
metadata: { name: loki }
spec:
  type: log_aggregator
  allowedNamespaces: { from: All }
  enforced: { labels: { own: '${label}' } }
  config: { endpoint: 'https://loki:3100', encoding: { codec: json } }
`
    const { config, problems } = compile(shared('{{ orchestrator.pod_labels.app }}-{{ .orchestrator.pod_node_name }}'))
    expect(problems).toEqual([])
    expect(config.sinks['shop/checkout/out']?.['labels']).toEqual({
      own: '{{ %vector.orchestrator.pod_labels.app }}-{{ %vector.orchestrator.pod_node_name }}',
    })
    expect(compile(shared('{{ team }}')).problems).toEqual([
      '14:25 `enforced` may only use fields that a source captures; found {{ team }}',
    ])
    const demo = '{ name: demo, type: demo_logs, config: { format: json } }'
    expect(compile(shared('{{ orchestrator.pod_name }}', demo), true).problems).toEqual([
      '14:25 `enforced` uses {{ orchestrator.pod_name }}, which only pod logs have; "demo" is a source of type demo_logs',
    ])
  })

  test('dead letters of all programs and sinks together stay within the limit', () => {
    const { config, problems } = compile(
      pipeline(`sources: [{ name: app, type: orchestrator_logs }]
transforms:
  - { name: one, type: remap, config: { source: '.a = 1' } }
  - { name: two, type: remap, config: { source: '.b = 1' } }
sinks:
  - { name: out, type: http, config: { uri: 'https://x', encoding: { codec: json } } }
  - { name: dead, type: http, inputs: [one], config: { uri: 'https://y', encoding: { codec: json } } }
onError: { deadLetter: { sink: dead, maxEventsPerSecond: 12 } }`),
    )
    expect(problems).toEqual([])
    for (const name of ['one', 'two']) {
      expect(config.transforms[`shop/checkout/${name}`]).toMatchObject({
        drop_on_error: true,
        reroute_dropped: true,
        reroute_dropped_limit: 4,
      })
    }
    expect(config.sinks['shop/checkout/dead']?.['inputs']).toEqual([
      'shop/checkout/one',
      'shop/checkout/one.dropped',
      'shop/checkout/two.dropped',
    ])
  })

  test.each([
    { dead: "type: http, config: { uri: 'https://y', encoding: { codec: json } }", max: 12, parts: { perSecond: 6 } },
    { dead: "type: http, config: { uri: 'https://y', encoding: { codec: json } }", max: undefined, parts: {} },
    // The remains of a rejected event lack the captured fields that its owner enforces.
    {
      dead: "type: http, config: { uri: 'https://y/{{ %vector.orchestrator.pod_namespace }}', encoding: { codec: json } }",
    },
  ])('sends rejected events to the dead letter sink: $dead', ({ dead, max, parts }) => {
    const limit = max === undefined ? '' : `, maxEventsPerSecond: ${max}`
    const [checkout, sink] = compileJobText(`sources: [{ name: app, type: orchestrator_logs }]
transforms: [{ name: one, type: remap, config: { source: '.a = 1' } }]
sinks:
  - { name: out, type: http, config: { uri: 'https://x', encoding: { codec: json } } }
  - { name: dead, inputs: [one], ${dead} }
onError: { deadLetter: { sink: dead${limit} } }`)
    const { deadLetter, problems } = compilePipeline(checkout, [checkout, sink], { ownMachine: false })
    expect(problems).toEqual([])
    expect(deadLetter).toEqual(parts === undefined ? undefined : { sink: 'shop/checkout/dead', ...parts })
  })

  test('limits the reads of all Pipelines of a namespace together, for a shared sink and for the quota', () => {
    const [checkout, sink] = compileJobText(`sources: [{ name: app, type: orchestrator_logs }]
limits: { pipeline: { bytesPerSecond: 20Mi, onLimit: Drop } }
sinks: [{ name: out, ref: { kind: ClusterSink, name: store } }]`)
    const { podLogs } = compilePipeline(checkout, [checkout, sink], {
      ownMachine: false,
      policy: { namespaceSelector: {}, quota: { bytesPerSecond: '10Mi' } },
    })
    expect(podLogs[0]?.limits).toEqual({
      perContainer: undefined,
      pipeline: { bytes: 20 * 2 ** 20, onLimit: 'drop' },
      shared: [
        { key: 'shop/ClusterSink/store', bytes: 5 * 2 ** 20 },
        { key: 'shop/quota', bytes: 10 * 2 ** 20 },
      ],
    })
  })

  test.each([
    ['', '', ['shop/checkout/out']],
    ['', '\n    overrides: { labels: { app: mine } }', ['shop/checkout/out']],
    ['', "\n    overrides: { endpoint: 'https://mine' }", []], // the owner no longer determines its destination
    ['', "\n    overrides: { labels: { app: 'https://mine' } }", ['shop/checkout/out']], // a label is not an address
    ['/{{ orchestrator.pod_name }}', '', []],
  ])(
    'a ClusterSink connects for its owner if only the owner determines the address (%j, %j)',
    (address, overrides, own) => {
      const folder = mkdtempSync(join(tmpdir(), 'penstock-compile-'))
      try {
        writeFileSync(
          join(folder, 'all.yaml'),
          `${pipeline(`sources: [{ name: app, type: orchestrator_logs }]
sinks:
  - name: mine
    type: http
    config: { uri: 'https://es.shop.svc', encoding: { codec: json } }
  - name: out
    ref: { kind: ClusterSink, name: loki }${overrides}`)}---
apiVersion: penstock.dev/v1alpha1
kind: ClusterSink
metadata: { name: loki }
spec:
  type: log_aggregator
  allowedNamespaces: { from: All }
  overridable: [labels, endpoint]
  config: { endpoint: 'https://loki:3100${address}', encoding: { codec: json }, labels: { a: b } }
`,
        )
        const { resources } = loadResources([folder])
        const compiled = compilePipeline(resources[0] as Resource, new Resources(resources), { ownMachine: false })
        expect(compiled.problems).toEqual([])
        expect(compiled.platform).toEqual(own)
      } finally {
        rmSync(folder, { recursive: true })
      }
    },
  )
})
