// Configurations in other forms: `logs` of the Grafana Agent, and files with merged keys.

import { expect, test } from 'vitest'
import { converted } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'
import { isPromtail } from './read.ts'

const convert = (text: string) => converted(convertPromtail, [{ file: 'agent.yaml', text }])

test('configurations of the Grafana Agent without clients have the clients of all', () => {
  const { resource, gaps } = convert(`logs:
  positions_directory: /tmp
  global:
    clients: [{ url: "http://all:3100/loki/api/v1/push" }]
  configs:
  - name: one
    scrape_configs: [{ job_name: sys, static_configs: [{ labels: { __path__: /var/log/sys.log } }] }]
  - name: two
    clients: [{ url: "http://own:3100/loki/api/v1/push" }]
    scrape_configs: [{ job_name: app, static_configs: [{ labels: { __path__: /srv/app.log } }] }]
`)
  expect(gaps).toEqual([])
  const ends = resource.spec.sinks.map(({ inputs, config }: { inputs: string[]; config: { endpoint: string } }) => [
    ...inputs,
    config.endpoint,
  ])
  expect(ends).toEqual([
    ['loki-form', 'http://all:3100'],
    ['loki-form-2', 'http://own:3100'],
  ])
})

test('members of a map come before merged ones, and the first merged map before others', () => {
  const { resource, gaps } = convert(`x: &one { job_name: merged, encoding: utf-16le }
y: &two { encoding: latin1, static_configs: [{ labels: { job: a, __path__: /two.log } }] }
clients: [{ url: "http://loki:3100/loki/api/v1/push" }]
scrape_configs:
- job_name: own
  <<: [*one, *two]
`)
  expect(gaps.filter(({ subject }) => !subject.endsWith(': x') && !subject.endsWith(': y'))).toEqual([])
  expect(resource.spec.sources).toMatchObject([
    { name: 'own', config: { include: ['/two.log'], encoding: { charset: 'utf-16le' } } },
  ])
})

test('a rule that sets the path marks a configuration', () => {
  const jobs = (label: string) => `scrape_configs:
- job_name: pods
  kubernetes_sd_configs: [{ role: pod }]
  relabel_configs: [{ source_labels: [__meta_kubernetes_pod_uid], target_label: ${label} }]
`
  expect(isPromtail({ file: 'c.yaml', text: jobs('__path__') })).toBe(true)
  expect(isPromtail({ file: 'c.yaml', text: jobs('__address__') })).toBe(false)
})

test('a configuration in a text of another file keeps its line numbers', () => {
  const { resource, gaps } = convert(`services: { promtail: { image: promtail } }
configs:
  promtail:
    content: |
      clients: [{ url: "http://loki:3100/loki/api/v1/push", moon: 1 }]
      scrape_configs:
      - job_name: sys
        static_configs: [{ labels: { __path__: /var/log/sys.log } }]
`)
  expect(gaps).toMatchObject([{ subject: 'client: moon', line: 5 }])
  expect(resource.spec.sources).toMatchObject([{ name: 'sys' }])
  const prometheus = 'data:\n  prometheus.txt: |\n    scrape_configs:\n    - job_name: a\n'
  expect(isPromtail({ file: 'c.yaml', text: prometheus })).toBe(false)
})
