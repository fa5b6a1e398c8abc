// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Promtail are meant
// Arguments of Promtail beside its file: labels of all clients, a client, and the replacement of variables.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'

const convert = (text: string) => converted(convertPromtail, [{ file: 'promtail.yaml', text }])

const job = `scrape_configs:
- job_name: a
  static_configs: [{ labels: { job: a, region: own, __path__: /a.log } }]
`
const workload = (args: string, config: string) => `kind: ConfigMap
metadata: { name: promtail }
data:
  promtail.yaml: |
${config.replace(/^(?=.)/gm, '    ')}
---
kind: DaemonSet
metadata: { name: promtail }
spec: { template: { spec: { containers: [{ name: p, image: "grafana/promtail:2.9.4", args: ${args} }] } } }
`
const clients = 'clients: [{ url: "http://loki:3100/loki/api/v1/push", external_labels: { dc: file } }]\n'

const forms: readonly (readonly [string, string])[] = [
  [
    'values of the chart',
    `extraArgs: ["-client.external-labels=cluster=prod,region=eu,dc=args"]\nconfig:\n  ${clients.replace(/\n$/, '')}\n  snippets:\n    scrapeConfigs: |\n${job.replace('scrape_configs:\n', '').replace(/^(?=.)/gm, '      ')}`,
  ],
  ['a workload', workload('["--client.external-labels=cluster=prod,region=eu,dc=args"]', clients + job)],
  [
    'an argument and its value',
    workload('["-client.external-labels", "cluster=prod,region=eu,dc=args"]', clients + job),
  ],
]
test.each(forms)(
  '%s: labels of arguments are labels that neither the event nor the client has',
  async (_name, text) => {
    const { document, resource, gaps } = convert(text)
    expect(gaps).toEqual([])
    const labels = { job: 'a', region: 'own', dc: 'file', cluster: 'prod', filename: '/a.log' }
    withTest(document, resource, { message: 'x', file: '/a.log' }, { labels })
    expect(await lint(String(document))).toEqual([])
  },
)

test('a label of the node and a client of arguments', async () => {
  const args =
    '["-client.url=http://other:3100/loki/api/v1/push", "-client.tenant-id=t", "-client.external-labels=node=$(NODE_NAME)"]'
  const { document, resource, gaps } = convert(workload(args, job))
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ config: { endpoint: 'http://other:3100' } }])
  expect(String(document)).toContain('.labels.node = string!(%node_name || "")')
  withTest(document, resource, { message: 'x', file: '/a.log' }, { tenant: 't' })
  expect(await lint(String(document))).toEqual([])
})

const stages = String.raw`  pipeline_stages:
  - regex: { expression: '^(?P<day>\\d+) (?P<rest>.*)$' }
  - labels: { day: }
  relabel_configs:
  - { source_labels: [job], regex: '(.)', replacement: 'x-$$1', target_label: job }
`
test.each([
  ['the argument', workload('["-config.expand-env=true"]', clients + job + stages)],
  ['variables in it', clients.replace('file', '"${DC}"') + job + stages],
])('%s: Promtail makes one backslash and one dollar sign of two', async (_name, text) => {
  const { document, resource, gaps } = convert(text)
  expect(gaps.map(({ isReplaced }) => isReplaced)).not.toContain(undefined)
  expect(gaps.map(({ subject }) => subject)).toContain('-config.expand-env')
  const labels = { job: 'x-a', region: 'own', day: '17', filename: '/a.log' }
  withTest(
    document,
    resource,
    { message: '17 x', file: '/a.log' },
    { 'labels.job': labels.job, 'labels.day': labels.day },
  )
  expect(await lint(String(document))).toEqual([])
})

test('without the argument, backslashes stay as they are', async () => {
  const text = clients + job + stages.replace('$$1', '$1').replace('day>', String.raw`day>C:\\`)
  const { document, resource, gaps } = convert(text)
  expect(gaps).toEqual([])
  expect(String(document)).toContain(String.raw`C:\\\\d+`)
  withTest(document, resource, { message: String.raw`C:\\dd x`, file: '/a.log' }, { 'labels.job': 'x-a' })
  expect(await lint(String(document))).toEqual([])
})

test('a write-ahead log is a buffer on disk', async () => {
  const { document, resource, gaps } = convert(`${clients}wal: { enabled: true, dir: /wal }\n${job}`)
  expect(gaps).toMatchObject([{ subject: 'wal', isReplaced: true }])
  expect(resource.spec.sinks[0].config.buffer).toEqual({ type: 'disk', max_size: 268_435_488 })
  expect(await lint(String(document))).toEqual([])
})
