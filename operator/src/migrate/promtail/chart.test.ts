// Values of the Promtail chart with a file of their own, in which actions name other values.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'

const values = `config:
  logLevel: debug
  clients:
    - url: http://loki:3100/loki/api/v1/push
  file: |
    server:
      log_level: {{ .Values.config.logLevel }}
      http_listen_port: {{ .Values.config.serverPort }}
    clients:
      {{- tpl (toYaml .Values.config.clients) . | nindent 2 }}
    scrape_configs:
      - job_name: pods
        pipeline_stages:
          {{- toYaml .Values.config.snippets.pipelineStages | nindent 6 }}
        kubernetes_sd_configs: [{ role: pod }]
        relabel_configs:
          - { source_labels: [__meta_kubernetes_namespace], target_label: namespace }
  snippets:
    pipelineStages: [{ cri: {} }, { static_labels: { level: LEVEL } }]
`

test('a file of the values gets the clients, the stages and plain values that it names', async () => {
  const text = values.replace('LEVEL', 'x')
  const { document, resource, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ type: 'log_aggregator', config: { endpoint: 'http://loki:3100' } }])
  expect(String(document)).toContain('.labels.level = "x"')
  expect(await lint(String(document))).toEqual([])
})

test('snippets of jobs may name other snippets as templates', () => {
  const text = `config:
  clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
  snippets:
    common: [{ source_labels: [__meta_kubernetes_namespace], target_label: own }]
    scrapeConfigs: |
      - job_name: pods
        pipeline_stages:
          {{- tpl (toYaml .Values.config.snippets.pipelineStages | nindent 4) . }}
        kubernetes_sd_configs: [{ role: pod }]
        relabel_configs:
          {{- tpl (toYaml .Values.config.snippets.common | nindent 4) . }}
`
  const { document, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  expect(String(document)).toContain('labels.own = ')
})

test('an action that names no value of the chart is a gap with its line', () => {
  const text = values.replace('.Values.config.serverPort', '.Values.other.port')
  const { gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toMatchObject([{ subject: '{{ .Values.other.port }}', line: 8 }])
})
