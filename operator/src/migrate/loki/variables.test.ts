// biome-ignore-all lint/suspicious/noTemplateCurlyInString: environment variables are meant
// Environment variables in labels: a program reads them from the environment of the agent. In any other text they are gaps.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from '../alloy/convert.ts'
import { convertPromtail } from '../promtail/convert.ts'

process.env['PENSTOCK_TEST_CLUSTER'] = 'prod'

const write = 'loki.write "w" {\n  endpoint { url = "http://loki:3100/loki/api/v1/push" }\n}\n'
const source = (targets: string, to = 'loki.write.w.receiver') =>
  `loki.source.file "f" {\n  targets = ${targets}\n  forward_to = [${to}]\n}\n`
const plain = '[{__path__ = "/a.log", job = "a"}]'
const relabel = (rule: string) =>
  `loki.relabel "r" {\n  forward_to = [loki.write.w.receiver]\n  rule {\n${rule}\n  }\n}\n`

test.each([
  {
    name: 'a label of a target',
    text: source('[{__path__ = "/a.log", cluster = sys.env("PENSTOCK_TEST_CLUSTER")}]') + write,
    labels: { cluster: 'prod' },
  },
  {
    name: 'a variable within a text',
    text: source('[{__path__ = "/a.log", cluster = "eu-" + env("PENSTOCK_TEST_CLUSTER") + "-1"}]') + write,
    labels: { cluster: 'eu-prod-1' },
  },
  {
    name: 'a variable that is not set',
    text: source('[{__path__ = "/a.log", job = "a", cluster = sys.env("PENSTOCK_TEST_NONE")}]') + write,
    labels: { job: 'a' },
  },
  {
    name: 'a default',
    text: source('[{__path__ = "/a.log", cluster = coalesce(sys.env("PENSTOCK_TEST_NONE"), "dev")}]') + write,
    labels: { cluster: 'dev' },
  },
  {
    name: 'a rule with a constant',
    text:
      source(plain, 'loki.relabel.r.receiver') +
      relabel('    target_label = "cluster"\n    replacement = sys.env("PENSTOCK_TEST_CLUSTER")') +
      write,
    labels: { job: 'a', cluster: 'prod' },
  },
  {
    name: 'a rule with a group',
    text:
      source(plain, 'loki.relabel.r.receiver') +
      relabel(
        '    source_labels = ["job"]\n    target_label = "cluster"\n    replacement = "$1-" + sys.env("PENSTOCK_TEST_CLUSTER")',
      ) +
      write,
    labels: { job: 'a', cluster: 'a-prod' },
  },
  {
    name: 'a stage',
    text: `${source(plain, 'loki.process.p.receiver')}loki.process "p" {
  forward_to = [loki.write.w.receiver]
  stage.static_labels {
    values = { cluster = sys.env("PENSTOCK_TEST_CLUSTER") }
  }
}
${write}`,
    labels: { job: 'a', cluster: 'prod' },
  },
])('$name has the value in the environment of the agent', async ({ text, labels }) => {
  const { document, resource, gaps } = converted(convertAlloy, [{ file: 'config.alloy', text }])
  expect(gaps).toMatchObject([{ isReplaced: true, nearest: expect.stringContaining('spec.podTemplate') }])
  const expected = { labels: { ...labels, filename: '/a.log' } }
  withTest(document, resource, { message: 'x', file: '/a.log' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { name: 'a path', text: source('[{__path__ = "/" + sys.env("APP") + ".log"}]') + write },
  {
    name: 'an expression of a rule',
    text:
      source(plain, 'loki.relabel.r.receiver') +
      relabel('    source_labels = ["job"]\n    action = "keep"\n    regex = sys.env("APP")') +
      write,
  },
  {
    name: 'a namespace',
    text: `discovery.kubernetes "d" {\n  role = "pod"\n  namespaces { names = [sys.env("APP")] }\n}\nloki.source.kubernetes "k" {\n  targets = discovery.kubernetes.d.targets\n  forward_to = [loki.write.w.receiver]\n}\n${write}`,
  },
  {
    name: 'an expression of a stage',
    text: `${source(plain, 'loki.process.p.receiver')}loki.process "p" {\n  forward_to = [loki.write.w.receiver]\n  stage.drop { expression = sys.env("APP") }\n}\n${write}`,
  },
])('$name with a variable is a gap', async ({ text }) => {
  const { document, gaps } = converted(convertAlloy, [{ file: 'config.alloy', text }])
  expect(gaps).toMatchObject([{ file: 'config.alloy' }])
  expect(gaps[0]?.isReplaced).toBeUndefined()
  expect(`${gaps[0]?.subject} ${gaps[0]?.reason}`).toContain('${APP}')
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a namespace of events from a variable is a gap, and no other namespace is read', async () => {
  const text =
    'loki.source.kubernetes_events "e" {\n  namespaces = ["shop", sys.env("TEAM_NS")]\n  forward_to = [loki.write.w.receiver]\n}\nloki.write "w" { endpoint { url = "http://l/loki/api/v1/push" } }\n'
  const { document, resource, gaps } = converted(convertAlloy, [{ file: 'config.alloy', text }])
  expect(resource.spec.sources[0].config.namespaces).toEqual(['shop', 'team-ns'])
  expect(gaps).toMatchObject([{ subject: expect.stringContaining('${TEAM_NS}') }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a Pipeline of a namespace may not read the environment, so the variable is a gap', async () => {
  const text = `clients: [{ url: 'http://loki/loki/api/v1/push' }]
scrape_configs:
- job_name: pods
  kubernetes_sd_configs: [{ role: pod }]
  relabel_configs:
  - { target_label: cluster, replacement: '\${CLUSTER}' }
`
  const { document, gaps } = converted(convertPromtail, [{ file: 'p.yaml', text }], 'shop')
  expect(gaps).toContainEqual(expect.objectContaining({ subject: 'relabel rule for cluster: ${CLUSTER}', line: 6 }))
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a variable with the whole address keeps its path, and the sink has no health check', async () => {
  const text = source(plain) + write.replace('"http://loki:3100/loki/api/v1/push"', 'sys.env("LOKI_PUSH_URL")')
  const { document, resource, gaps } = converted(convertAlloy, [{ file: 'c.alloy', text }])
  const { endpoint, path, healthcheck } = resource.spec.sinks[0].config
  expect({ endpoint, path, healthcheck }).toEqual({
    endpoint: 'SECRET[env.LOKI_PUSH_URL]',
    path: '',
    healthcheck: { enabled: false },
  })
  expect(gaps).toMatchObject([{ subject: 'endpoint: url', isReplaced: true }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each(['http://{{loki-address}}:{{loki-port}}/loki/api/v1/push', '<http://10.0.0.1:3100/loki/api/v1/push>'])(
  'the address %s is a gap, and a comment at the sink',
  async (url) => {
    const text = `clients: [{ url: '${url}' }]\nscrape_configs:\n- static_configs: [{ labels: { __path__: /a.log } }]\n`
    const { document, gaps } = converted(convertPromtail, [{ file: 'p.yaml', text }])
    expect(gaps).toMatchObject([{ subject: 'client: url', line: 1, reason: `\`${url}\` is not a valid address` }])
    const written = document.toString({ lineWidth: 0 })
    expect(written).toContain(`# GAP: \`${url}\` is not a valid address (p.yaml:1, \`url\`).`)
    expect(await lint(written)).toEqual([])
  },
)
