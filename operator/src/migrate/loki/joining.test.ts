// The stage `multiline` of Promtail and Alloy: which source joins which lines, and what the stages before it see.

import { expect, test } from 'vitest'
import { converted, lint, withClock, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { convertPromtail } from '../promtail/convert.ts'

const pods = `kubernetes_sd_configs: [{ role: pod }]
    relabel_configs:
      - { source_labels: [__meta_kubernetes_pod_label_app], target_label: app }
      - { source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name], separator: /, replacement: '/var/log/pods/*$1/*.log', target_label: __path__ }`

const promtail = (stages: string, job = pods) =>
  converted(convertPromtail, [
    {
      file: 'promtail.yaml',
      text: `clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
scrape_configs:
  - job_name: app
    ${job}
    pipeline_stages:
${stages.replace(/^(?=.)/gm, '      ')}
`,
    },
  ])

const missing = ({ gaps }: ReturnType<typeof promtail>) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)

const event = (app: string, message: string) => ({
  message,
  stream: 'stdout',
  file: '/0.log',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_namespace: 'a', pod_name: 'p', container_name: 'c', pod_uid: 'u', pod_labels: { app } },
})

/** The transform that reads a source. */
const readerOf = ({ resource }: ReturnType<typeof promtail>, index: number): string => {
  const source = resource.spec.sources[index].name
  return resource.spec.transforms.find(({ inputs }: { inputs: string[] }) => inputs.includes(source)).name
}

const byMatch = `- cri: {}
- match:
    selector: '{app=~"java.*"}'
    stages:
      - multiline: { firstline: '^\\d{4}-', max_wait_time: 2s }
      - regex: { expression: '^\\S+ (?P<level>\\w+)' }
      - labels: { level: }
- match:
    selector: '{app="py"}'
    stages:
      - regex: { expression: '^\\S+ (?P<level>\\w+)$' }
      - multiline: { firstline: '^\\[' }
      - labels: { level: }
- labeldrop: [filename, stream]`

const ofSources: readonly (readonly [number, string, string, object | undefined])[] = [
  [0, 'java-1', '2026-01 WARN\n at x', { app: 'java-1', level: 'WARN' }],
  [0, 'py', '2026-01 WARN', undefined],
  [0, 'web', '2026-01 WARN', undefined],
  [1, 'py', '[1] ERR\n at x', { app: 'py', level: 'ERR' }],
  [1, 'java-1', '[1] ERR', undefined],
  [1, 'web', '[1] ERR', undefined],
  [2, 'web', '2026-01 WARN', { app: 'web' }],
  [2, 'py', '[1] ERR', undefined],
  [2, 'java-1', '2026-01 WARN', undefined],
]

test.each(ofSources)('below match: source %i gives the lines of `%s` once', async (index, app, message, labels) => {
  const made = promtail(byMatch)
  expect(missing(made)).toEqual([])
  const starts = made.resource.spec.sources.map(({ multiline }: { multiline?: { custom: { start: string } } }) => {
    return multiline?.custom.start
  })
  expect(starts).toEqual(['^[0-9]{4}-', '^\\[', undefined])
  const expected = labels === undefined ? undefined : { message, labels }
  withTest(made.document, made.resource, event(app, message), expected, readerOf(made, index))
  expect(await lint(String(made.document))).toEqual([])
})

test('stages before it see the first line only', async () => {
  const made = promtail(
    "- cri: {}\n- regex: { expression: '^(?P<day>\\S+) (?P<rest>.*)$' }\n- multiline: { firstline: '^\\d{4}' }\n- labels: { rest: }\n- labeldrop: [filename, stream]",
  )
  expect(missing(made)).toEqual([])
  const message = '2026 first\n  second'
  withTest(made.document, made.resource, event('a', message), { message, labels: { app: 'a', rest: 'first' } })
  expect(await lint(String(made.document))).toEqual([])
})

test('a match before it is a gap only if it drops or changes lines', () => {
  const after = "\n- multiline: { firstline: '^\\d{4}' }"
  const runtime = `- match: { selector: '{app!=""}', stages: [{ cri: {} }, { labels: { stream: } }] }`
  expect(missing(promtail(runtime + after))).toEqual([])
  const dropping = `- cri: {}\n- match: { selector: '{app="x"} |= "a"', action: drop }`
  expect(missing(promtail(dropping + after))).toEqual(['stage multiline'])
})

test('colours that are removed before lines are joined may begin the first line', () => {
  const made = promtail("- cri: {}\n- decolorize:\n- multiline: { firstline: '^\\d{4}-' }")
  expect(missing(made)).toEqual([])
  const { start } = made.resource.spec.sources[0].multiline.custom
  const pattern = new RegExp(start.replace(/\\x\{(\w+)\}/g, '\\x$1'))
  expect(pattern.test('\x1b[32m2026-01')).toBe(true)
  expect(pattern.test('2026-01')).toBe(true)
  expect(pattern.test('\x1b[32m at 2026-01')).toBe(false)
  expect(missing(promtail("- cri: {}\n- decolorize:\n- multiline: { firstline: '\\d{4}-' }"))).toEqual([
    'stage multiline',
  ])
})

test('a match by the text of lines is a gap', () => {
  const made = promtail(
    `- cri: {}\n- match: { selector: '{app="x"} |= "a"', stages: [{ multiline: { firstline: '^\\d{4}' } }] }`,
  )
  expect(missing(made)).toEqual(['stage multiline'])
})

test('a file source does not join lines that a stage of the runtime parses', () => {
  const job = 'static_configs: [{ labels: { job: x, __path__: /var/log/pods/shop_*/*/*.log } }]'
  const made = promtail("- cri: {}\n- multiline: { firstline: '^\\d{4}' }", job)
  expect(missing(made)).toEqual(['stage multiline'])
  expect(made.resource.spec.sources[0].config).not.toHaveProperty('multiline')
})

test('Alloy: two processes share the sources of the second, which joins lines', async () => {
  const text = `discovery.kubernetes "p" {
  role = "pod"
}
discovery.relabel "p" {
  targets = discovery.kubernetes.p.targets
  rule {
    source_labels = ["__meta_kubernetes_pod_label_app"]
    target_label  = "app"
  }
}
loki.source.kubernetes "p" {
  targets    = discovery.relabel.p.output
  forward_to = [loki.process.a.receiver]
}
loki.process "a" {
  stage.static_labels { values = { env = "prod" } }
  forward_to = [loki.process.b.receiver]
}
loki.process "b" {
  stage.match {
    selector = "{app=\\"java\\", env=\\"prod\\"}"
    stage.multiline { firstline = "^\\\\d" }
  }
  stage.label_keep { values = ["app"] }
  forward_to = [loki.write.w.receiver]
}
loki.write "w" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`
  for (const [index, app, isKept] of [
    [0, 'java', true],
    [0, 'web', false],
    [1, 'web', true],
    [1, 'java', false],
  ] as const) {
    const made = converted(convertAlloy, [{ file: 'config.alloy', text }])
    expect(missing(made)).toEqual([])
    expect(made.resource.spec.sources).toHaveLength(2)
    const expected = isKept ? { message: '1 a', labels: { app } } : undefined
    withTest(made.document, made.resource, event(app, '1 a'), expected, readerOf(made, index))
    expect(await lint(String(made.document))).toEqual([])
  }
})

const behind = (source: string, second: string) => `${source}
loki.process "a" {
  forward_to = [loki.process.b.receiver]
  stage.cri { }
}
loki.process "b" {
  forward_to = [loki.write.w.receiver]
${second}
}
loki.write "w" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`
const file =
  'loki.source.file "f" {\n  targets    = [{"__path__" = "/a.log"}]\n  forward_to = [loki.process.a.receiver]\n}'
const lines = '  stage.multiline { firstline = "^\\\\d" }'

test.each([
  {
    name: 'events of Kubernetes',
    text: behind('loki.source.kubernetes_events "e" {\n  forward_to = [loki.process.b.receiver]\n}', lines),
    gaps: ['loki.process.a', 'stage multiline'],
  },
  {
    name: 'a second process',
    text: behind(file, '')
      .replace('stage.cri { }', lines.trim())
      .replace('[loki.write.w.receiver]\n\n}', `[loki.write.w.receiver]\n${lines}\n}`),
    gaps: ['stage multiline'],
  },
  {
    name: 'a process behind one that reads the lines',
    text: behind(file, lines).replace('stage.cri { }', 'stage.json { expressions = { a = "" } }'),
    gaps: ['loki.process.b'],
  },
  {
    name: 'files whose runtime another process parses',
    text: behind(file, lines),
    gaps: ['stage multiline'],
  },
])('Alloy: lines of $name are not joined in silence', async ({ text, gaps }) => {
  const made = converted(convertAlloy, [{ file: 'config.alloy', text }])
  expect(missing(made)).toEqual(gaps)
  expect(await lint(String(made.document))).toEqual([])
})

test.each([
  ['', 129, 2],
  ['', 128, 1],
  [', max_lines: 2', 5, 3],
  [', max_lines: 0', 300, 1],
])('with the options %s, %i lines become %i events', async (more, count, events) => {
  const lines = Array.from({ length: count }, (_, index) => (index === 0 ? '2026 WARN' : ` at ${index}`)).join('\n')
  const stages = `- multiline: { firstline: '^\\d{4}'${more} }\n    - regex: { expression: '^\\S+ (?P<level>\\w+)$' }`
  for (const text of [
    `- cri: {}\n${stages.replace(/^ {4}/gm, '')}`,
    `- cri: {}\n- match:\n    selector: '{app="a"}'\n    stages:\n    ${stages}`,
  ]) {
    const made = promtail(`${text}\n- labeldrop: [filename, stream]`)
    expect(missing(made)).toEqual([])
    const at = made.resource.spec.sinks[0].inputs[0]
    const insertAt = withClock(made.document, readerOf(made, 0))
    const expected = [{ at, count: events, assert: '.labels.app == "a" && .timestamp == t\'2026-01-01T00:00:00Z\'' }]
    made.document.setIn(
      ['spec', 'tests'],
      [{ name: 'lines', insertAt, input: { log: event('a', lines) }, expect: expected }],
    )
    expect(await lint(String(made.document))).toEqual([])
  }
})
