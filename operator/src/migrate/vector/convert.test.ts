// Converted Vector configurations: names, outputs, fields, variables, and placeholders for components without a counterpart.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { compileFiles } from '../../compile/config.ts'
import { lint as lintWithTests } from '../../testing/conversions.ts'
import { Draft, type NamedText } from '../draft.ts'
import { convertVector } from './convert.ts'
import { isVector } from './read.ts'

interface Entry {
  readonly name: string
  readonly type: string
  readonly inputs?: readonly string[]
  readonly config?: Record<string, unknown>
}

function converted(text: string | readonly NamedText[], included: readonly NamedText[] = []) {
  const files = typeof text === 'string' ? [{ file: 'vector.yaml', text }] : text
  const draft = new Draft()
  convertVector(files, (path) => included.filter(({ file }) => file === path), draft)
  const document = draft.document({ name: 'shop' })
  const { spec } = document.toJS() as {
    spec: { sources: Entry[]; transforms?: Entry[]; sinks: Entry[]; tests?: object[]; secrets?: object[] }
  }
  const entry = (name: string) =>
    [...spec.sources, ...(spec.transforms ?? []), ...spec.sinks].find((each) => each.name === name)
  const gaps = draft.gaps.map(({ line, subject, isReplaced }) => `${line} ${subject}${isReplaced ? ' (replaced)' : ''}`)
  return { spec, entry, gaps, draft, document, text: String(document) }
}

const folder = mkdtempSync(join(tmpdir(), 'penstock-vector-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Lint's findings for a Pipeline. Lint also runs its unit tests. */
function lint(text: string): string[] {
  const file = join(folder, 'pipeline.yaml')
  writeFileSync(file, text)
  return compileFiles([file], { ownMachine: false }).problems.map(({ path, message }) => `${path}: ${message}`)
}

const sink = 'sinks: { out: { type: console, inputs: ["*"], encoding: { codec: json } } }\n'

test('components get unique names, and keep the fields of the old source', () => {
  const { spec, gaps } = converted(`
sources:
  k8s_logs: { type: kubernetes_logs, glob_minimum_cooldown_ms: 2000 }
transforms:
  addTeam:
    type: remap
    inputs: [k8s_*]
    source: |
      .team = "$$5"
      .pod = .kubernetes.pod_name
sinks:
  store:
    type: loki
    inputs: [addTeam]
    endpoint: https://loki:3100
    labels: { pod: "{{ kubernetes.pod_name }}" }
    encoding: { codec: json, except_fields: [kubernetes.pod_annotations] }
`)
  expect(spec).toEqual({
    sources: [{ name: 'k8s-logs', type: 'orchestrator_logs', config: { glob_minimum_cooldown_ms: 2000 } }],
    transforms: [
      {
        name: 'k8s-logs-fields',
        type: 'remap',
        inputs: ['k8s-logs'],
        config: {
          source:
            'if exists(.orchestrator) { .kubernetes = del(.orchestrator) }\nif .source_type == "orchestrator_logs" { .source_type = "kubernetes_logs" }',
        },
      },
      {
        name: 'addteam',
        type: 'remap',
        inputs: ['k8s-logs-fields'],
        config: { source: '.team = "$5"\n.pod = .kubernetes.pod_name\n' },
      },
    ],
    sinks: [
      {
        name: 'store',
        type: 'log_aggregator',
        inputs: ['addteam'],
        config: {
          endpoint: 'https://loki:3100',
          labels: { pod: '{{ kubernetes.pod_name }}' },
          encoding: { codec: 'json', except_fields: ['kubernetes.pod_annotations'] },
          out_of_order_action: 'accept',
        },
      },
    ],
  })
  expect(gaps).toEqual([])
})

test('a late line is sent as in Vector, unless the configuration says otherwise', () => {
  const sink = (more: string) =>
    converted(
      `sources: { s: { type: stdin } }\nsinks: { a: { type: loki, inputs: [s], endpoint: 'http://l:3100', labels: { a: b }, encoding: { codec: json }${more} } }`,
    ).spec.sinks?.[0]?.config?.['out_of_order_action']
  expect(sink('')).toBe('accept')
  expect(sink(', out_of_order_action: drop')).toBe('drop')
})

test('only variables change in the text of programs, templates and paths', () => {
  const program = String.raw`.a = replace!(.message, r'app\.kubernetes\.io/', ".kubernetes.x") # .kubernetes.
.b = get!(., ["kubernetes", "pod_name"])
.c = ."x .kubernetes.y"`
  const { entry } = converted(`
sources: { f: { type: file, include: [/var/log/.kubernetes/x.log] } }
transforms:
  p:
    type: remap
    inputs: [f]
    source: ${JSON.stringify(program)}
${sink}`)
  expect(entry('p')?.config?.['source']).toBe(program)
  expect(entry('f')?.config?.['include']).toEqual(['/var/log/.kubernetes/x.log'])
})

test('routes become filters that pass the same events as the old outputs', () => {
  const { spec, entry, gaps, document } = converted(`
sources: { f: { type: demo_logs, format: json } }
transforms:
  r:
    type: route
    inputs: [f]
    route:
      errors: '.level == "error"'
      audit: { type: vrl, source: "x = exists(.audit)\\nx" }
      unread: 'true'
  e: { type: exclusive_route, inputs: [r._unmatched], routes: [{ name: a, condition: '.n == 1' }, { name: b, condition: '.n != 9 && exists(.n)' }] }
sinks:
  one: { type: console, inputs: [r.errors, e.b], encoding: { codec: json } }
  two: { type: console, inputs: ["r.*", e._unmatched], encoding: { codec: json } }
`)
  expect(gaps).toEqual([])
  expect(entry('one')?.inputs).toEqual(['r-errors', 'e-b'])
  expect(entry('two')?.inputs).toEqual(['r-errors', 'r-audit', 'r-unread', 'r-unmatched', 'e-unmatched'])
  const passed: Readonly<Record<string, readonly object[]>> = {
    'r-errors': [{ level: 'error' }, { level: 'error', audit: 1 }],
    'r-audit': [{ audit: 1 }, { level: 'error', audit: 1 }],
    'r-unmatched': [{ n: 1 }, { n: 3 }, { n: 9 }],
    'e-b': [{ n: 3 }],
    'e-unmatched': [{ n: 9 }, { level: 'error' }],
  }
  const events = [{ level: 'error' }, { audit: 1 }, { n: 1 }, { n: 3 }, { n: 9 }, { level: 'error', audit: 1 }]
  const isOf = (events: readonly object[], event: object) =>
    events.some((each) => JSON.stringify(each) === JSON.stringify(event))
  const tests = Object.entries(passed).flatMap(([at, those]) =>
    events
      .filter((event) => !at.startsWith('e-') || !('audit' in event))
      .map((event, index) => ({
        ...{ name: `${at} ${index}`, insertAt: at, input: { log: event } },
        expect: [{ at, count: isOf(those, event) ? 1 : 0 }],
      })),
  )
  document.setIn(['spec', 'tests'], tests)
  expect(lint(String(document))).toEqual([])
  expect(spec.transforms?.map(({ name }) => name)).toContain('e-b')
})

test('the default of a variable is used and reported; other variables become keys of a Secret', () => {
  const { entry, spec, gaps } = converted(`
sources: { k: { type: kubernetes_logs } }
transforms: { p: { type: remap, inputs: [k], source: '.cluster = "\${CLUSTER}"' } }
sinks:
  s:
    type: elasticsearch
    inputs: [p]
    endpoints: ["\${ES_URL:-http://es:9200}"]
    batch: { max_bytes: "\${BATCH:-1000}" }
    auth: { strategy: basic, user: $USER, password: "\${PASS}" }
`)
  expect(entry('s')?.config).toMatchObject({
    endpoints: ['http://es:9200'],
    batch: { max_bytes: 1000 },
    auth: { user: 'SECRET[env.USER]', password: 'SECRET[env.PASS]' },
  })
  expect(spec.secrets).toEqual([{ alias: 'env', secretName: 'shop-environment', namespace: 'penstock-system' }])
  expect(gaps).toEqual([
    '3 $CLUSTER (replaced)',
    '8 $ES_URL (replaced)',
    '9 $BATCH (replaced)',
    '10 $USER (replaced)',
    '10 $PASS (replaced)',
  ])
})

test('a component without a counterpart is replaced by one that passes or discards events, with reason and line', () => {
  const { spec, gaps, text, draft } = converted(`
sources:
  s: { type: syslog, address: 0.0.0.0:514, mode: tcp }
transforms:
  l: { type: lua, inputs: [s], source: "function process(event, emit) emit(event) end" }
  bad: { type: remap, inputs: [l], source: '.a = no_such_function(.b)' }
sinks:
  k: { type: kafka, inputs: [bad], topic: t, bootstrap_servers: "k:9092", encoding: { codec: json } }
  lost: { type: console, inputs: [nothing], encoding: { codec: json } }
`)
  expect(spec.sources[0]).toMatchObject({ type: 'file', config: { include: ['/var/empty/s'] } })
  expect(spec.transforms?.map(({ type, config }) => [type, config?.['source']])).toEqual([
    ['remap', '.'],
    ['remap', '.'],
  ])
  expect(spec.sinks.map(({ name, type, inputs }) => [name, type, inputs])).toEqual([['k', 'blackhole', ['bad']]])
  expect(gaps).toEqual(['3 s: syslog', '5 l: lua', '6 bad: source', '8 k: kafka', '9 lost: nothing', '9 lost'])
  for (const { reason, nearest } of draft.gaps) expect([reason, nearest]).not.toContain('')
  expect(text).toContain(
    '# GAP: transform `l` of type `lua` (vector.yaml:5) has no counterpart. Events pass unchanged.',
  )
  expect(text).toContain('# function process(event, emit) emit(event) end')
  expect(text).toContain('# .a = no_such_function(.b)')
})

test('an unknown option is left out and reported with its line; a missing required option turns the component into a gap', () => {
  const { entry, gaps } = converted(`
sources:
  f:
    type: file
    include: [/a.log]
    begin_at: start
    fingerprint:
      strategy: checksum
      bytes: many
sinks:
  h:
    type: http
    inputs: [f]
    encoding: { codec: json }
`)
  expect(gaps).toContain('6 f: begin_at')
  expect(gaps.some((gap) => gap.startsWith('9 f: fingerprint'))).toBe(true)
  expect(entry('f')?.config?.['include']).toEqual(['/a.log'])
  expect(entry('h')).toMatchObject({ type: 'blackhole' })
})

test('global settings of the agent are reported, and its own metrics need no exporter', () => {
  const { spec, gaps } = converted(`
data_dir: /vector
api: { enabled: true }
timezone: local
whatever: 1
sources:
  own: { type: internal_metrics }
  k: { type: kubernetes_logs }
transforms:
  tagged: { type: remap, inputs: [own], source: '.tags.a = "b"' }
sinks:
  exporter: { type: prometheus_exporter, inputs: [tagged], address: 0.0.0.0:9090 }
  out: { type: console, inputs: [k], encoding: { codec: json } }
`)
  expect(gaps).toEqual(['2 data_dir (replaced)', '3 api (replaced)', '5 whatever', '12 exporter (replaced)'])
  expect(spec.sources.map(({ name }) => name)).toEqual(['k'])
  expect(spec.transforms?.map(({ name }) => name)).toEqual(['k-fields'])
  expect(spec.sinks.map(({ name }) => name)).toEqual(['out'])
})

test('unit tests are converted with the new names of their transforms', () => {
  const { spec, gaps } = converted(`
sources: { k: { type: kubernetes_logs } }
transforms:
  Add: { type: remap, inputs: [k], source: '.x = 1' }
sinks: { o: { type: console, inputs: [Add], encoding: { codec: json } } }
tests:
  - name: adds
    inputs: [{ insert_at: Add, type: log, log_fields: { message: hi } }]
    outputs: [{ extract_from: Add, conditions: [{ type: vrl, source: .x == 1 }] }]
  - name: raw
    inputs: [{ insert_at: Add, value: hi }]
    no_outputs_from: [Add]
  - name: two
    inputs: [{ insert_at: Add, value: a }, { insert_at: Add, value: b }]
    outputs: []
`)
  expect(spec.tests).toEqual([
    { name: 'adds', insertAt: 'add', input: { log: { message: 'hi' } }, expect: [{ at: 'add', assert: '.x == 1' }] },
    { name: 'raw', insertAt: 'add', input: { raw: 'hi' }, expect: [{ at: 'add', count: 0 }] },
  ])
  expect(gaps).toEqual(['13 test two'])
})

test('events of unit tests enter all transforms that replace a route, and a transform in several steps at the first', async () => {
  const { spec, gaps, text } = converted(`
sources: { k: { type: kubernetes_logs } }
transforms:
  by:
    type: exclusive_route
    inputs: [k]
    routes: [{ name: a, condition: .level == 1 }, { name: b, condition: .level == 1 || .level == 2 }]
  mark: { type: remap, inputs: [by.b], source: .mark = true }
  some: { type: sample, inputs: [by.a], rate: 1, exclude: .level == 5, sample_rate_key: n }
sinks: { o: { type: console, inputs: [by.a, mark, some], encoding: { codec: json } } }
tests:
  - name: several
    inputs: [{ insert_at: by, type: log, log_fields: { level: 1 } }, { insert_at: by, type: log, log_fields: { level: 2 } }]
    outputs:
      - { extract_from: by.a, conditions: [{ type: vrl, source: .level == 1 }] }
      - { extract_from: mark, conditions: [{ type: vrl, source: .level == 2 && .mark == true }], expected_event_count: 1 }
  - name: made
    inputs: [{ insert_at: mark, type: vrl, source: '. = { "level": 2 }' }]
    outputs: [{ extract_from: mark, conditions: [{ type: vrl, source: .level == 2 && .mark == true }] }]
  - name: none
    inputs: [{ insert_at: by, type: log, log_fields: { level: 3 } }]
    no_outputs_from: [by.a, mark]
  - name: steps
    inputs: [{ insert_at: some, type: log, log_fields: { level: 1 } }]
    outputs: [{ extract_from: some, conditions: [{ type: vrl, source: '.n == "1"' }] }]
`)
  expect(gaps).toEqual(['9 some (replaced)'])
  expect(spec.tests).toMatchObject([
    {
      inputs: [
        { insertAt: 'by-a', log: { level: 1 } },
        { insertAt: 'by-b', log: { level: 1 } },
        { insertAt: 'by-a', log: { level: 2 } },
        { insertAt: 'by-b', log: { level: 2 } },
      ],
    },
    { insertAt: 'mark', input: { program: '. = { "level": 2 }' } },
    { inputs: [{ insertAt: 'by-a' }, { insertAt: 'by-b' }] },
    { insertAt: 'some' },
  ])
  expect(await lintWithTests(text)).toEqual([])
})

test('an output that only a test reads exists', () => {
  const { spec, gaps } = converted(`
sources: { k: { type: kubernetes_logs } }
transforms: { by: { type: route, inputs: [k], route: { a: .level == 1 } } }
sinks: { o: { type: console, inputs: [by.a], encoding: { codec: json } } }
tests:
  - name: rest
    inputs: [{ insert_at: by, type: log, log_fields: { level: 3 } }]
    outputs: [{ extract_from: by._unmatched, conditions: [.level == 3] }]
`)
  expect(gaps).toEqual([])
  expect(spec.transforms?.map(({ name }) => name)).toEqual(['k-fields', 'by-a', 'by-unmatched'])
  expect(spec.tests).toMatchObject([{ expect: [{ at: 'by-unmatched', assert: '.level == 3' }] }])
})

test('the Pipeline contains the program of a file', () => {
  const text = `
sources: { k: { type: kubernetes_logs } }
transforms: { a: { type: remap, inputs: [k], file: a.vrl }, b: { type: remap, inputs: [a], file: b.vrl } }
${sink}`
  const { entry, gaps } = converted(text, [{ file: 'a.vrl', text: '.a = 1\n' }])
  expect(entry('a')?.config).toEqual({ source: '.a = 1\n' })
  expect(entry('b')?.config).toEqual({ source: '.' })
  expect(gaps).toEqual(['3 b: b.vrl'])
})

test.each([
  ['next to the configuration, under its path in a container', '/etc/vector/parse.vrl', 'parse.vrl'],
  ['in a folder next to the configuration', '/etc/vector/programs/parse.vrl', 'programs/parse.vrl'],
  ['above the folder of a component', 'programs/parse.vrl', '../programs/parse.vrl'],
])('the file of a program is found %s', (_, path, file) => {
  const text = `sources: { k: { type: stdin } }\ntransforms: { a: { type: remap, inputs: [k], file: ${path} } }\n${sink}`
  const { entry, gaps } = converted(text, [{ file, text: '.a = 1' }])
  expect(entry('a')?.config).toEqual({ source: '.a = 1' })
  expect(gaps).toEqual([])
})

test('a program is found in a ConfigMap', () => {
  const configMap = `apiVersion: v1
kind: ConfigMap
metadata: { name: vector }
data:
  parse.vrl: |
    .a = 1
  vector.yaml: |
    sources: { k: { type: stdin } }
    transforms: { a: { type: remap, inputs: [k], file: /etc/vector/parse.vrl } }
    ${sink}`
  const { entry, gaps } = converted(configMap)
  expect(entry('a')?.config).toEqual({ source: '.a = 1\n' })
  expect(gaps).toEqual([])
})

test('a file in the folder of a kind contains one component, and its name is the id', () => {
  const files = [
    { file: '/c/sources/in.toml', text: 'type = "stdin"\n' },
    { file: '/c/transforms/add.yaml', text: 'type: remap\ninputs: [in]\nsource: .a = 1\n' },
    {
      file: '/c/sinks/out.json',
      text: '{"type": "console", "inputs": ["add"],\n "encoding": {"codec": "json"},\n "none": 1}',
    },
    { file: '/c/vector.yaml', text: 'data_dir: /d\ntimezone: Europe/Berlin\n' },
  ]
  expect(isVector(files[0] as NamedText)).toBe(true)
  const { spec, gaps } = converted(files)
  expect(spec).toEqual({
    sources: [{ name: 'in', type: 'stdin' }],
    transforms: [
      { name: 'add', type: 'remap', inputs: ['in'], config: { source: '.a = 1', timezone: 'Europe/Berlin' } },
    ],
    sinks: [{ name: 'out', type: 'console', inputs: ['add'], config: { encoding: { codec: 'json' } } }],
  })
  expect(gaps).toEqual(['1 data_dir (replaced)', '3 out: none'])
})

test('values of the first chart: switches for usual components, and options as text', () => {
  const { spec, gaps, text } = converted([
    {
      file: 'values.yaml',
      text: `
kubernetesLogsSource: { enabled: true, sourceId: pods }
internalMetricsSource: { enabled: true }
globalOptions: { enabled: true, dataDir: /d }
logSchema: { enabled: true, hostKey: host, messageKey: message }
prometheusSink: { enabled: true, listenPort: "9090" }
transforms:
  add:
    type: remap
    inputs: [pods]
    rawConfig: |
      source = '''
      .a = 1
      '''
sinks:
  loki:
    type: loki
    inputs: [add]
    rawConfig: |
      endpoint = "http://loki:3100"
      encoding.codec = "json"
      labels.a = "b"
      none = 1
  bad: { type: console, inputs: [add], encoding: { codec: json }, rawConfig: "= no" }
`,
    },
  ])
  expect(spec.transforms?.[1]).toMatchObject({ name: 'add', config: { source: '.a = 1\n' } })
  expect(spec.sinks[0]).toMatchObject({ name: 'loki', inputs: ['add'], config: { endpoint: 'http://loki:3100' } })
  expect(gaps).toEqual(['4 data_dir (replaced)', '6 prometheus_sink (replaced)', '23 loki: none', '24 bad: rawConfig'])
  expect(lint(text)).toEqual([])
})

const toml = `
[sources.k]
type = "kubernetes_logs"
[sinks.o]
type = "console"
inputs = ["k"]
encoding.codec = "json"
`
const yaml =
  'sources: { k: { type: kubernetes_logs } }\nsinks: { o: { type: console, inputs: [k], encoding: { codec: json } } }\n'
const indented = (text: string, by: string) => text.replace(/^(?=.)/gm, by)

test.each([
  ['TOML', 'a.toml', toml, 4],
  [
    'JSON',
    'a.json',
    JSON.stringify({
      sources: { k: { type: 'kubernetes_logs' } },
      sinks: { o: { type: 'console', inputs: ['k'], encoding: { codec: 'json' }, x: 1 } },
    }),
    1,
  ],
  ['values of the chart', 'values.yaml', `role: Agent\ncustomConfig:\n${indented(yaml, '  ')}`, 4],
  ['a ConfigMap', 'cm.yaml', `kind: ConfigMap\ndata:\n  other: text\n  vector.yaml: |\n${indented(yaml, '    ')}`, 6],
  [
    'a ConfigMap with TOML, after another object',
    'cm.yaml',
    `kind: Service\n---\nkind: ConfigMap\ndata:\n  vector.toml: |\n${indented(toml.trimStart(), '    ')}`,
    8,
  ],
  [
    'a custom resource',
    'vp.yaml',
    `apiVersion: observability.kaasops.io/v1alpha1\nkind: VectorPipeline\nspec:\n${indented(yaml, '  ')}`,
    4,
  ],
])('%s is read, with line numbers of the file', (_, file, text, line) => {
  const broken = text
    .replace('"json"', '"no"')
    .replace('codec: json', 'codec: no')
    .replace(', inputs: [k]', ', extra: 1, inputs: [k]')
  const changed =
    file.endsWith('.toml') || text.includes('vector.toml')
      ? text.replace(/^(\s*)inputs/m, '$1extra = 1\n$1inputs')
      : broken
  expect(isVector({ file, text })).toBe(true)
  const { spec } = converted([{ file, text }])
  expect(spec.sources).toEqual([{ name: 'k', type: 'orchestrator_logs' }])
  const { draft } = converted([{ file, text: changed }])
  expect(draft.gaps.length).toBeGreaterThan(0)
  expect(Math.min(...draft.gaps.map((gap) => gap.line))).toBeGreaterThanOrEqual(line)
  expect(draft.gaps.every((gap) => gap.file === file)).toBe(true)
})

test('components of one file read from those of another', () => {
  const { entry, gaps } = converted([
    { file: 'a.yaml', text: 'sources: { k: { type: demo_logs, format: json } }\n' },
    { file: 'b.yaml', text: 'sinks: { o: { type: console, inputs: [k], encoding: { codec: json } } }\n' },
  ])
  expect(entry('o')?.inputs).toEqual(['k'])
  expect(gaps).toEqual([])
})

test.each(['', 'a: 1', '[x]\ny = 2', '{}', 'sources: 3', '\u0000', '- 1', 'sources: {a: 1}\nsinks: {b: [c]}', ': : :'])(
  'a text without a configuration results in an empty Pipeline and a gap: %j',
  (text) => {
    const { spec, gaps } = converted(text)
    expect(spec.sources.length).toBeGreaterThan(0)
    expect(spec.sinks.length).toBeGreaterThan(0)
    expect(gaps.length).toBeGreaterThan(0)
  },
)

test('a transform without inputs is left out; readers of any output of a transform without a counterpart get its events', () => {
  const { spec, gaps, text } = converted(`
sources: { in: { type: demo_logs, format: json } }
transforms:
  a: { type: exclusive_route, inputs: [in], routes: [{ name: x, condition: { type: is_trace } }] }
  alone: { type: remap, inputs: [nowhere], source: '.a = 1' }
  behind: { type: remap, inputs: [alone], source: '.b = 1' }
sinks:
  out: { type: console, inputs: [a.x], encoding: { codec: json } }
`)
  expect(spec.transforms?.map(({ name }) => name)).toEqual(['a'])
  expect(spec.sinks[0]?.inputs).toEqual(['a'])
  expect(gaps).toEqual(expect.arrayContaining(['5 alone', '6 behind', '4 a']))
  expect(lint(text)).toEqual([])
})
