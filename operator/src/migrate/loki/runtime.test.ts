// Pods whose lines no stage `cri` or `docker` parses: the old agents pass on the lines of the container runtime.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { convertPromtail } from '../promtail/convert.ts'

const promtail = (stages: string) =>
  converted(convertPromtail, [
    {
      file: 'promtail.yaml',
      text: `clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
scrape_configs:
  - job_name: app
    kubernetes_sd_configs: [{ role: pod }]
    relabel_configs:
      - { source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name], separator: /, replacement: '/var/log/pods/*$1/*.log', target_label: __path__ }
    pipeline_stages:
${stages.replace(/^(?=.)/gm, '      ')}
      - labeldrop: [filename]
`,
    },
  ])
const alloy = (stages: string) =>
  converted(convertAlloy, [
    {
      file: 'config.alloy',
      text: `discovery.kubernetes "p" {
  role = "pod"
}
discovery.relabel "p" {
  targets = discovery.kubernetes.p.targets
  rule {
    source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]
    separator     = "/"
    replacement   = "/var/log/pods/*$1/*.log"
    target_label  = "__path__"
  }
}
loki.source.file "p" {
  targets    = discovery.relabel.p.output
  forward_to = [loki.process.p.receiver]
}
loki.process "p" {
  forward_to = [loki.write.w.receiver]
${stages}
  stage.label_drop { values = ["filename"] }
}
loki.write "w" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`,
    },
  ])

const event = {
  message: 'level=warn text',
  stream: 'stderr',
  file: '/var/log/pods/a_b_u/c/0.log',
  timestamp: '2026-01-02T03:04:05.6Z',
  orchestrator: { pod_namespace: 'a', pod_name: 'b', pod_uid: 'u', container_name: 'c' },
}
const line = '2026-01-02T03:04:05.600000000Z stderr F level=warn text'
const runtime = String.raw`^(?s)(?P<time>\S+?) (?P<stream>stdout|stderr) (?P<flags>\S+?) (?P<content>.*)$`

const cases = [
  { name: 'Promtail: the line', made: () => promtail('- static_labels: { a: b }'), message: line, labels: { a: 'b' } },
  {
    name: 'Promtail: a stage `regex` instead of `cri`',
    made: () => promtail(`- regex: { expression: '${runtime}' }\n- labels: { stream: }\n- output: { source: content }`),
    message: event.message,
    labels: { stream: 'stderr' },
  },
  {
    name: 'Promtail: stages instead of `docker`',
    made: () =>
      promtail(
        '- json: { expressions: { log: , stream: , at: time } }\n- labels: { stream: , at: }\n- output: { source: log }',
      ),
    message: `${event.message}\n`,
    labels: { stream: 'stderr', at: '2026-01-02T03:04:05.600000000Z' },
  },
  {
    name: 'Alloy: a stage `regex` instead of `cri`',
    made: () =>
      alloy(
        `  stage.regex { expression = \`${runtime}\` }\n  stage.labels { values = { stream = "" } }\n  stage.output { source = "content" }`,
      ),
    message: event.message,
    labels: { stream: 'stderr' },
  },
  {
    name: 'Alloy: the line',
    made: () => alloy('  stage.static_labels { values = { a = "b" } }'),
    message: line,
    labels: { a: 'b' },
  },
]

test.each(cases)('$name', async ({ made, message, labels }) => {
  const { document, resource, gaps } = made()
  expect(gaps).toMatchObject([{ subject: 'lines of the container runtime', isReplaced: true }])
  withTest(document, resource, event, { message, labels })
  expect(await lint(String(document))).toEqual([])
})

test('a stage that joins these lines is a gap', () => {
  const { gaps } = promtail("- multiline: { firstline: '^\\d{4}-' }")
  const missing = gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(missing.map(({ subject }) => subject)).toEqual(['lines of the container runtime'])
})

test.each([
  ['cri', 'time'],
  ['docker', 'timestamp'],
])('the time that the stage %s extracts is there for other stages', async (stage, name) => {
  const { document, resource, gaps } = promtail(`- ${stage}: {}\n- structured_metadata: { at: ${name} }`)
  expect(gaps).toEqual([])
  withTest(document, resource, event, { metadata: { at: '2026-01-02T03:04:05.600000000Z' } })
  expect(await lint(String(document))).toEqual([])
})
