// PodLogs beside a configuration: the pods that each selects, its rules, and the label `job`.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { convertAlloy } from './convert.ts'

const alloy = (blocks = '') => ({
  file: 'config.alloy',
  text: `loki.source.podlogs "all" {
  forward_to = [loki.write.default.receiver]
${blocks}
}
loki.write "default" {
  endpoint { url = "http://loki:3100/loki/api/v1/push" }
}
`,
})
const podLogs = (name: string, spec: string, labels = '{ team: shop }', namespace = 'shop') => ({
  file: `${name}.yaml`,
  text: `apiVersion: monitoring.grafana.com/v1alpha2
kind: PodLogs
metadata: { name: ${name}, namespace: ${namespace}, labels: ${labels} }
spec:
${spec.replace(/^(?=.)/gm, '  ')}
`,
})
const web = podLogs(
  'web',
  `selector: { matchLabels: { app: web }, matchExpressions: [{ key: tier, operator: NotIn, values: [test] }] }
namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: shop } }
relabelings:
- { sourceLabels: [__meta_kubernetes_namespace], targetLabel: namespace }
- { sourceLabels: [__meta_kubernetes_podlogs_label_team], targetLabel: team }
- { sourceLabels: [__pod_namespace__, __pod_name__], separator: /, targetLabel: pod }
- { action: drop, sourceLabels: [__meta_kubernetes_pod_container_name], regex: proxy }
`,
)
const other = podLogs('other', 'relabelings: [{ targetLabel: job, replacement: fixed }]', '{}', 'ops')
const pod = (container: string) => ({
  message: 'x',
  stream: 'stdout',
  timestamp: '2026-01-01T00:00:00Z',
  orchestrator: { pod_name: 'web-1', pod_namespace: 'shop', container_name: container, pod_labels: { app: 'web' } },
})

test.each([
  {
    container: 'app',
    labels: {
      ...{ namespace: 'shop', team: 'shop', pod: 'shop/web-1' },
      ...{ job: 'shop/web:app', instance: 'shop/web-1:app' },
    },
  },
  { container: 'proxy', labels: undefined },
])('PodLogs become a source with their selector and rules: $container', async ({ container, labels }) => {
  expect(agentFor([alloy(), web])?.agent.name).toBe('alloy')
  const { document, resource, gaps } = converted(convertAlloy, [alloy(), web])
  expect(gaps).toEqual([])
  expect(resource.spec.sources).toEqual([
    {
      name: 'web',
      type: 'orchestrator_logs',
      selector: {
        pods: {
          matchLabels: { app: 'web' },
          matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['test'] }],
        },
        namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
      },
    },
  ])
  withTest(document, resource, pod(container), labels === undefined ? undefined : { message: 'x', labels })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { name: 'no blocks', blocks: '', sources: ['other', 'web'], subjects: [] },
  { name: 'labels', blocks: '  selector { match_labels = { team = "shop" } }', sources: ['web'], subjects: [] },
  {
    name: 'an expression',
    blocks: '  selector {\n    match_expression {\n      key = "team"\n      operator = "DoesNotExist"\n    }\n  }',
    sources: ['other'],
    subjects: [],
  },
  {
    name: 'the name of a namespace',
    blocks: '  namespace_selector { match_labels = { "kubernetes.io/metadata.name" = "ops" } }',
    sources: ['other'],
    subjects: [],
  },
  {
    name: 'another label of namespaces',
    blocks: '  namespace_selector { match_labels = { env = "prod" } }',
    sources: ['other', 'web'],
    subjects: ['loki.source.podlogs.all: namespace_selector'],
  },
  {
    name: 'labels that none has',
    blocks: '  selector { match_labels = { team = "none" } }',
    sources: ['podlogs-all'],
    subjects: ['loki.source.podlogs.all'],
  },
])('a component with $name takes $sources', async ({ blocks, sources, subjects }) => {
  const { document, resource, gaps } = converted(convertAlloy, [alloy(blocks), other, web])
  expect(resource.spec.sources.map(({ name }: { name: string }) => name)).toEqual(sources)
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('selectors for namespaces are a gap in a namespaced Pipeline', async () => {
  const { document, resource, gaps } = converted(convertAlloy, [alloy(), web], 'shop')
  expect(gaps.map(({ subject }) => subject)).toEqual(['namespaceSelector'])
  expect(resource.spec.sources[0].selector).toEqual({
    pods: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['test'] }] },
  })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
