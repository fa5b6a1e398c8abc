// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Promtail are meant
// Rules that read labels which discovery sets for a pod.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertPromtail } from '../promtail/convert.ts'

const convert = (rules: readonly string[], discovery = '') => {
  const text = `clients: [{ url: "http://loki:3100/loki/api/v1/push" }]
scrape_configs:
- job_name: pods
  pipeline_stages: [{ cri: {} }]
  kubernetes_sd_configs: [{ role: pod${discovery} }]
  relabel_configs:
${rules.map((rule) => `  - { ${rule} }\n`).join('')}  - { source_labels: [__meta_kubernetes_pod_uid], target_label: __path__, replacement: /var/log/pods/*$1/*/*.log }
`
  return converted(convertPromtail, [{ file: 'promtail.yaml', text }])
}
const gapsOf = (rule: string) =>
  convert([rule]).gaps.map(({ line, subject, isReplaced }) => ({ line, subject, isReplaced }))

const pod = {
  message: 'x',
  stream: 'stdout',
  timestamp: '2026-01-01T00:00:00Z',
  file: '/f',
  orchestrator: { pod_namespace: 'shop', pod_name: 'web-1', pod_node_name: 'gpu-1', pod_labels: { app: 'web' } },
}

const own = 'source_labels: [__meta_kubernetes_pod_node_name], target_label: __host__'
test.each([
  ['of the own node', 'action: keep, source_labels: [__meta_kubernetes_pod_node_name], regex: "${HOSTNAME}"', true],
  ['of a node', 'action: keep, source_labels: [__meta_kubernetes_pod_node_name], regex: gpu-.*', true],
  ['of another node', 'action: keep, source_labels: [__meta_kubernetes_pod_node_name], regex: cpu-.*', false],
  ['of another node by the name of the host', 'action: keep, source_labels: [__host__], regex: cpu-.*', false],
])('a rule that keeps pods %s', async (_name, rule, isKept) => {
  const { document, resource, gaps } = convert([own, rule])
  expect(gaps).toEqual([])
  withTest(document, resource, pod, isKept ? { message: 'x' } : undefined)
  expect(await lint(String(document))).toEqual([])
})

test('a selector with the name of a node selects its pods only', () => {
  const sourceOf = (node: string) => {
    const selectors = `, selectors: [{ role: pod, field: "spec.nodeName=${node},metadata.namespace!=dev" }]`
    return convert([own], selectors).resource.spec.sources[0]
  }
  expect(sourceOf('worker-7').config).toEqual({
    extra_field_selector: 'spec.nodeName=worker-7,metadata.namespace!=dev',
  })
  expect(sourceOf('${HOSTNAME}').config).toEqual({ extra_field_selector: 'metadata.namespace!=dev' })
})

test('labels of other kinds of targets are empty', async () => {
  const rule =
    'source_labels: [__meta_kubernetes_service_label_app, __meta_kubernetes_pod_label_app], regex: ";*([^;]+)", target_label: app'
  const { document, resource, gaps } = convert([rule])
  expect(gaps).toEqual([])
  withTest(document, resource, pod, { 'labels.app': 'web' })
  expect(await lint(String(document))).toEqual([])
})

test('the name of the node is a label if discovery adds metadata of nodes', async () => {
  const rule = 'source_labels: [__meta_kubernetes_node_name], target_label: node'
  expect(gapsOf(rule).map(({ subject }) => subject)).toEqual(['relabel rule on __meta_kubernetes_node_name'])
  const { document, resource, gaps } = convert([rule], ', attach_metadata: { node: true }')
  expect(gaps).toEqual([])
  withTest(document, resource, pod, { 'labels.node': 'gpu-1' })
  expect(await lint(String(document))).toEqual([])
})

test('a rule on the phase of pods is a gap if it does more than select them', () => {
  const gap = { line: 7, subject: 'relabel rule on __meta_kubernetes_pod_phase', isReplaced: undefined }
  const phase = '__meta_kubernetes_pod_phase'
  expect(gapsOf(`source_labels: [${phase}], action: drop, regex: Failed`)).toEqual([{ ...gap, isReplaced: true }])
  expect(gapsOf(`source_labels: [${phase}], target_label: phase`)).toEqual([gap])
  const several = `source_labels: [${phase}, __meta_kubernetes_namespace], action: keep, regex: Running;shop`
  expect(gapsOf(several)).toEqual([gap])
})

test('alternatives in a group of a rule do not add labels of other kinds', () => {
  const text = (regex: string) => String(convert([`action: labelmap, regex: "${regex}"`]).document)
  expect(text('__meta_kubernetes_pod_label_(team|tier)')).not.toContain('pod_annotation')
  expect(text('__meta_kubernetes_pod_(label|annotation)_(.+)')).toContain('pod_annotation')
  expect(text('(__meta_kubernetes_pod_label_|__meta_kubernetes_pod_annotation_)(.+)')).toContain('pod_annotation')
})

test('a rule on labels of nodes has a row if discovery adds none', () => {
  const rule = ['source_labels: [__meta_kubernetes_node_label_zone], target_label: zone']
  const subjects = (more: string) => convert(rule, more).all.map(({ subject, isReplaced }) => [subject, isReplaced])
  expect(subjects('')).toEqual([['relabel rule on labels of the node', true]])
  expect(subjects(', attach_metadata: { node: true }')).toEqual([])
})
