// Rules that read labels which discovery sets for a pod.

import { expect, test } from 'vitest'
import { converted } from '../../testing/conversions.ts'
import { convertPromtail } from '../promtail/convert.ts'

const gapsOf = (rule: string) => {
  const text = `clients: [{ url: "http://loki:3100/loki/api/v1/push" }]
scrape_configs:
- job_name: pods
  pipeline_stages: [{ cri: {} }]
  kubernetes_sd_configs: [{ role: pod }]
  relabel_configs:
  - { ${rule} }
  - { source_labels: [__meta_kubernetes_pod_uid], target_label: __path__, replacement: /var/log/pods/*$1/*/*.log }
`
  const { gaps } = converted(convertPromtail, [{ file: 'promtail.yaml', text }])
  return gaps.map(({ line, subject, isReplaced }) => ({ line, subject, isReplaced }))
}

test('a rule on the phase of pods is a gap if it does more than select them', () => {
  const gap = { line: 7, subject: 'relabel rule on __meta_kubernetes_pod_phase', isReplaced: undefined }
  const phase = '__meta_kubernetes_pod_phase'
  expect(gapsOf(`source_labels: [${phase}], action: drop, regex: Failed`)).toEqual([{ ...gap, isReplaced: true }])
  expect(gapsOf(`source_labels: [${phase}], target_label: phase`)).toEqual([gap])
  const several = `source_labels: [${phase}, __meta_kubernetes_namespace], action: keep, regex: Running;shop`
  expect(gapsOf(several)).toEqual([gap])
})
