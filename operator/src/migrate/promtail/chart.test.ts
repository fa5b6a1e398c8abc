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
          - { source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name], separator: /, replacement: '/var/log/pods/*$1/*.log', target_label: __path__ }
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
    common:
      - { source_labels: [__meta_kubernetes_namespace], target_label: own }
      - { source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name], separator: /, replacement: '/var/log/pods/*$1/*.log', target_label: __path__ }
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

test('old versions of the chart have an address and options of the client', async () => {
  const text = `config:
  lokiAddress: https://loki:3100/loki/api/v1/push
  snippets:
    extraClientConfigs: |
      tenant_id: ops
      basic_auth: { username: u, password: p }
`
  const { document, resource, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  const auth = { strategy: 'basic', user: 'u', password: 'p' }
  expect(resource.spec.sinks).toMatchObject([{ config: { endpoint: 'https://loki:3100', auth } }])
  expect(String(document)).toContain('"ops"')
  expect(await lint(String(document))).toEqual([])
})

test('a value that the chart does not have is a gap with its line', () => {
  const text = 'config:\n  clients: [{ url: "http://l/loki/api/v1/push" }]\n  moon: 1\n  snippets:\n    stages: []\n'
  const { gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps.map(({ subject, line }) => [subject, line])).toEqual([
    ['config: moon', 3],
    ['snippets: stages', 5],
  ])
})

test('a template of a stage may be in the text of `printf`', () => {
  const text = String.raw`config:
  clients: [{ url: "http://l/loki/api/v1/push" }]
  snippets:
    extraScrapeConfigs: |
      - job_name: a
        static_configs: [{ labels: { __path__: /a.log } }]
        pipeline_stages:
        - replace: { expression: '(\d+)', replace: '{{ printf "{{ .Value | Hash \"salt\" }}" }}' }
`
  const { document, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  expect(String(document)).toContain('sha3(')
})

test('stages may follow those of the snippet', async () => {
  const text = `config:
  clients: [{ url: "http://l/loki/api/v1/push" }]
  snippets:
    pipelineStages: [{ cri: {} }]
    scrapeConfigs: |
      - job_name: pods
        pipeline_stages:
          {{- toYaml .Values.config.snippets.pipelineStages | nindent 4 }}
          - match: { selector: '{namespace="a"}', action: drop }
        kubernetes_sd_configs: [{ role: pod }]
        relabel_configs:
        - { source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name], separator: /, replacement: '/var/log/pods/*$1/*.log', target_label: __path__ }
`
  const { document, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  expect(String(document)).toContain('{ abort }')
  expect(await lint(String(document))).toEqual([])
})

test('actions with only a literal escape the braces of stages', () => {
  const text = `config:
  clients: [{ url: 'http://loki:3100/loki/api/v1/push' }]
  snippets:
    pipelineStages:
      - cri: {}
      - template: { source: a, template: '{{ "{{" }} ToUpper .Value {{ "}}" }}' }
      - template: { source: b, template: '{{ ToLower .Value }}' }
`
  const { document, gaps } = converted(convertPromtail, [{ file: 'values.yaml', text }])
  expect(gaps).toEqual([])
  expect(String(document)).toContain('upcase(')
  expect(String(document)).toContain('downcase(')
})
