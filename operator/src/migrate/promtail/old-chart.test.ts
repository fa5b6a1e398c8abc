// Values of the Promtail chart before version 3: its stages, its jobs and its client.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'

const values = (more: string) => `promtail:
  pipelineStages: [{ cri: {} }, { labeldrop: [filename, stream] }]
${more.replace(/^(?=.)/gm, '  ')}`
const convert = (more: string) => converted(convertPromtail, [{ file: 'values.yaml', text: values(more) }])
const pod = (labels: object, owner = 'ReplicaSet/web-5d9f8b7c6d') => ({
  message: 'x',
  stream: 'stdout',
  timestamp: '2026-01-01T00:00:00Z',
  file: '/f',
  orchestrator: {
    ...{ pod_namespace: 'shop', pod_name: 'web-1', pod_uid: 'u', container_name: 'app', pod_owner: owner },
    pod_labels: labels,
  },
})

test.each([
  ['name', pod({ name: 'n', app: 'a' }), { name: 'n', app: 'a', job: 'shop/n' }],
  ['app', pod({ app: 'a' }), { app: 'a', job: 'shop/a' }],
  ['direct-controllers', pod({}, 'DaemonSet/agent'), { job: 'shop/agent' }],
  ['indirect-controller', pod({}), { job: 'shop/web' }],
])('the job kubernetes-pods-%s has the pods and labels that it has in the chart', async (name, event, labels) => {
  const all = ['name', 'app', 'direct-controllers', 'indirect-controller', 'static']
  for (const each of all) {
    const { document, resource, gaps } = convert('loki: { serviceName: logs }\n')
    expect(gaps).toEqual([])
    const { transforms, sinks } = resource.spec
    const own = transforms.filter((one: { name: string }) => one.name.startsWith(`kubernetes-pods-${each}`))
    const expected = { labels: { ...labels, namespace: 'shop', pod: 'web-1', container: 'app' } }
    const only = { spec: { transforms: own, sinks: [{ ...sinks[0], inputs: [own[0].name] }] } }
    withTest(document, only, event, each === name ? expected : undefined)
    expect(await lint(String(document))).toEqual([])
  }
})

test('the client has the address of the Service, and further jobs follow those of the chart', () => {
  const { resource, gaps } = convert(`loki: { servicePort: 80 }
config: { client: { external_labels: { cluster: c } } }
scrapeConfigs: [{ job_name: own, static_configs: [{ labels: { __path__: /own.log } }] }]
extraScrapeConfigs: [{ job_name: more, static_configs: [{ labels: { __path__: /more.log } }] }]
`)
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['loki.serviceName', true]])
  expect(resource.spec.sources.map(({ name }: { name: string }) => name)).toEqual(['own', 'more'])
  expect(resource.spec.sinks).toMatchObject([{ config: { endpoint: 'http://loki:80' } }])
})
