// Common configurations: combinations of 10 jobs, 12 pipelines and 6 clients, in their own file, in chart values, in a ConfigMap and in
// `logs` of the Grafana Agent. All become Pipelines that pass lint, and parts without a counterpart become gaps with line numbers.

import { expect, test } from 'vitest'
import type { Document } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertPromtail } from './convert.ts'
import { isPromtail } from './read.ts'

interface Case {
  readonly about: string
  readonly text: string
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const path = `- source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name]
  separator: /
  replacement: /var/log/pods/*$1/*.log
  target_label: __path__
`
const pods = (rules: string) => `kubernetes_sd_configs:\n- role: pod\nrelabel_configs:\n${rules}${path}`
const jobs: readonly Case[] = [
  {
    about: 'pods with their labels',
    text: pods(
      '- { action: labelmap, regex: __meta_kubernetes_pod_label_(.+) }\n- { source_labels: [__meta_kubernetes_namespace], target_label: namespace }\n',
    ),
    whole: true,
  },
  {
    about: 'pods of some namespaces',
    text: pods(
      '- { action: keep, source_labels: [__meta_kubernetes_namespace], regex: shop|blog }\n- { source_labels: [__meta_kubernetes_pod_node_name], target_label: __host__ }\n',
    ),
    whole: true,
  },
  {
    about: 'pods by the name of their controller',
    text: pods(
      "- { source_labels: [__meta_kubernetes_pod_controller_name], regex: '([0-9a-z-.]+?)(-[0-9a-f]{8,10})?', target_label: __tmp }\n- { action: drop, regex: '', source_labels: [__tmp] }\n- { source_labels: [__meta_kubernetes_namespace, __tmp], separator: /, replacement: $1, target_label: job }\n",
    ),
    whole: true,
  },
  {
    about: 'pods with an annotation',
    text: pods(
      "- { action: keep, source_labels: [__meta_kubernetes_pod_annotation_promtail_io_scrape], regex: 'true' }\n- { action: hashmod, source_labels: [__meta_kubernetes_pod_uid], modulus: 4, target_label: __shard }\n",
    ),
    whole: true,
  },
  {
    about: 'all files of pods',
    text: 'static_configs:\n- targets: [localhost]\n  labels: { job: pods, __path__: /var/log/pods/*/*/*.log }\n',
    whole: true,
  },
  {
    about: 'files of the node',
    text: 'static_configs:\n- targets: [localhost]\n  labels: { job: varlogs, __path__: "/var/log/{syslog,messages}", host: "$'.concat(
      '{HOSTNAME}" }\n- targets: [localhost]\n  labels: { job: nginx, __path__: /var/log/nginx/*.log, __path_exclude__: /var/log/nginx/old.log }\n',
    ),
    whole: true,
  },
  {
    about: 'the journal',
    text: 'journal: { max_age: 12h, labels: { job: journal } }\nrelabel_configs:\n- { source_labels: [__journal__systemd_unit], target_label: unit }\n',
    whole: false,
  },
  { about: 'syslog', text: 'syslog: { listen_address: "0.0.0.0:1514", labels: { job: syslog } }\n', whole: false },
  {
    about: 'containers of Docker',
    text: 'docker_sd_configs:\n- { host: unix:///var/run/docker.sock }\nrelabel_configs:\n- { source_labels: [__meta_docker_container_name], regex: /(.*), target_label: container }\n',
    whole: false,
  },
  { about: 'Kafka', text: 'kafka: { brokers: ["k:9092"], topics: [logs], labels: { job: kafka } }\n', whole: false },
]

const json = '- json: { expressions: { level: , msg: message, code: http.status_code, ts: time } }\n'
const pipelines: readonly Case[] = [
  { about: 'the runtime alone', text: '', whole: true },
  { about: 'levels of JSON', text: `${json}- labels: { level: , code: }\n- output: { source: msg }\n`, whole: true },
  {
    about: 'times',
    text: `${json}- timestamp: { source: ts, format: "2006-01-02T15:04:05.000Z07:00", fallback_formats: [Unix, RFC3339Nano] }\n`,
    whole: true,
  },
  {
    about: 'lines of a web server',
    text: `- regex: { expression: '^(?P<remote>[\\w\\.]+) - (?P<user>[^ ]*) \\[(?P<time>.*)\\] "(?P<method>[^ ]*) (?P<path>[^ ]*) (?P<proto>[^ ]*)" (?P<status>[\\d]+)' }\n- labels: { status: , method: }\n- timestamp: { source: time, format: "02/Jan/2006:15:04:05 -0700" }\n`,
    whole: true,
  },
  {
    about: 'matches',
    text: `- match:\n    selector: '{namespace="shop"} |~ "(?i)error|warn"'\n    stages:\n    - regex: { expression: '(?i)(?P<level>error|warn)' }\n    - template: { source: level, template: '{{ ToLower .Value }}' }\n    - labels: { level: }\n- match: { selector: '{app="noisy"}', action: drop, drop_counter_reason: noise }\n`,
    whole: true,
  },
  {
    about: 'stack traces',
    text: "- multiline: { firstline: '^\\d{4}-\\d{2}-\\d{2} \\d{1,2}:\\d{2}', max_wait_time: 5s, max_lines: 500 }\n",
    whole: true,
  },
  {
    about: 'secrets',
    text: "- replace: { expression: '(?i)(?:password|token)=(\\S+)', replace: '***' }\n- replace: { expression: '(\\d{4})-(\\d{4})-(\\d{4})', replace: '{{ .Value | Hash \"salt\" }}' }\n",
    whole: true,
  },
  {
    about: 'drops',
    text: "- drop: { expression: '.*(health|ready)z.*', drop_counter_reason: probes }\n- drop: { older_than: 24h, longer_than: 8kb }\n- sampling: { rate: 0.5 }\n",
    whole: true,
  },
  {
    about: 'tenants',
    text: '- tenant: { label: namespace }\n- labeldrop: [filename, stream]\n- static_labels: { env: prod }\n',
    whole: true,
  },
  {
    about: 'metadata',
    text: '- logfmt: { mapping: { traceID: trace_id, lvl: level } }\n- structured_metadata: { traceID: }\n- labels: { level: lvl }\n- labelallow: [namespace, pod, level, job]\n- pack: { labels: [pod] }\n',
    whole: true,
  },
  {
    about: 'metrics',
    text: `${json}- metrics: { lines: { type: Counter, source: level, config: { action: inc } } }\n`,
    whole: false,
  },
  {
    about: 'a limit',
    text: '- limit: { rate: 100, burst: 200, drop: true }\n- geoip: { db: /geo.mmdb, source: ip, db_type: city }\n',
    whole: false,
  },
]

const clients: readonly Case[] = [
  { about: 'a gateway', text: '- url: http://loki-gateway/loki/api/v1/push\n', whole: true },
  {
    about: 'Grafana Cloud',
    text: '- url: https://123:$'.concat('{API_KEY}@logs-prod-eu-west-0.grafana.net/loki/api/v1/push\n'),
    whole: true,
  },
  {
    about: 'a tenant',
    text: '- url: http://loki:3100/loki/api/v1/push\n  tenant_id: ops\n  batchwait: 1s\n  batchsize: 1048576\n  timeout: 10s\n  backoff_config: { min_period: 100ms, max_period: 10s, max_retries: 10 }\n',
    whole: true,
  },
  {
    about: 'a password in a file',
    text: '- url: https://loki.example.com/loki/api/v1/push\n  basic_auth: { username: u, password_file: /etc/loki/password }\n  tls_config: { ca_file: /etc/ca.pem }\n  external_labels: { cluster: "$'.concat(
      '{CLUSTER}", dc: eu }\n',
    ),
    whole: true,
  },
  {
    about: 'two destinations',
    text: '- { name: one, url: "http://one:3100/loki/api/v1/push" }\n- { name: two, url: "http://two:3100/loki/api/v1/push", external_labels: { copy: "2" } }\n',
    whole: true,
  },
  {
    about: 'OAuth',
    text: '- url: https://loki/loki/api/v1/push\n  oauth2: { client_id: a, client_secret: b, token_url: https://t }\n',
    whole: false,
  },
]

const indent = (text: string, by: number) => text.replace(/^(?=.)/gm, ' '.repeat(by))

/** Each job with each pipeline, with alternating clients. */
const cases = jobs.flatMap((job, row) =>
  pipelines.map((pipeline, column) => {
    const client = clients[(row + column) % clients.length] as Case
    const runtime = /kubernetes_sd|\/pods\//.test(job.text) ? '- cri: {}\n' : ''
    const stages = `${runtime}${pipeline.text}`
    const jobText = `- job_name: main\n${indent(job.text, 2)}${stages === '' ? '' : `  pipeline_stages:\n${indent(stages, 2)}`}`
    const config = `server: { http_listen_port: 9080 }\npositions: { filename: /tmp/positions.yaml }\nclients:\n${client.text}scrape_configs:\n${jobText}`
    const chart = `config:\n  clients:\n${indent(client.text, 4)}  snippets:\n    scrapeConfigs: |\n${indent(jobText.replaceAll('{{', '{{"{{"}}'), 6)}`
    return {
      about: `${job.about} / ${pipeline.about} / ${client.about}`,
      config,
      chart,
      configMap: `kind: ConfigMap\nmetadata: { name: promtail }\ndata:\n  promtail.yaml: |\n${indent(config, 4)}`,
      agent: `server: { log_level: info }\nlogs:\n  configs:\n  - name: default\n${indent(config, 4)}`,
      whole: job.whole && pipeline.whole && client.whole,
    }
  }),
)

test('the corpus has 120 configurations, most of which convert completely', () => {
  expect(new Set(cases.map(({ config }) => config)).size).toBe(120)
  expect(cases.filter(({ whole }) => whole).length).toBeGreaterThan(45)
})

const missing = (gaps: readonly { isReplaced?: true; subject: string; reason: string }[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, reason }) => [subject, reason])

test.each(cases)('$about', async ({ config, chart, configMap, agent, whole }) => {
  const file = 'promtail.yaml'
  expect(isPromtail({ file, text: config })).toBe(true)
  const found = converted(convertPromtail, [{ file, text: config }])
  if (whole) expect(missing(found.gaps)).toEqual([])
  else expect(missing(found.gaps).length).toBeGreaterThan(0)
  const lines = config.split('\n').length
  for (const gap of found.gaps) {
    expect(gap.line).toBeGreaterThan(1)
    expect(gap.line).toBeLessThanOrEqual(lines)
    expect([gap.file, gap.reason === '', gap.nearest === '']).toEqual([file, false, false])
  }
  expect(await lint(String(found.document))).toEqual([])
  const bare = (document: Document) => document.toString({ lineWidth: 0 }).replace(/\(promtail\.yaml:\d+\)/g, '')
  for (const text of [chart, configMap, agent]) {
    expect(isPromtail({ file, text })).toBe(true)
    const other = converted(convertPromtail, [{ file, text }])
    expect(missing(other.gaps)).toEqual(missing(found.gaps))
    expect(bare(other.document)).toBe(bare(found.document))
  }
})
