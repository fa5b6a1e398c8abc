// Common configurations: combinations of 9 inputs, 12 processing steps and 6 destinations, as files and as chart values. All become
// Pipelines that pass lint, and options without a counterpart become gaps with line numbers.

import { expect, test } from 'vitest'
import type { Document } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { oldAgents } from '../agents.ts'
import { convertAlloy } from './convert.ts'

interface Case {
  readonly about: string
  readonly text: string
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const rule = (...lines: readonly string[]) => `  rule {\n${lines.map((line) => `    ${line}\n`).join('')}  }\n`
const label = (from: string, to: string) =>
  rule(`source_labels = ["__meta_kubernetes_${from}"]`, `target_label  = "${to}"`)
const path = rule(
  'source_labels = ["__meta_kubernetes_pod_uid", "__meta_kubernetes_pod_container_name"]',
  'separator     = "/"',
  'replacement   = "/var/log/pods/*$1/*.log"',
  'target_label  = "__path__"',
)
const discovered = (rules: string, more = '') =>
  `discovery.kubernetes "pod" {\n  role = "pod"\n${more}}\n\ndiscovery.relabel "pod" {\n  targets = discovery.kubernetes.pod.targets\n${rules}}\n\n`
const source = (type: string, targets: string) =>
  `${type} "in" {\n  targets    = ${targets}\n  forward_to = [loki.process.main.receiver]\n}\n`

const inputs: readonly Case[] = [
  {
    about: 'pods by the API server',
    text:
      discovered(
        label('namespace', 'namespace') + label('pod_name', 'pod') + label('pod_container_name', 'container'),
      ) + source('loki.source.kubernetes', 'discovery.relabel.pod.output'),
    whole: true,
  },
  {
    about: 'pods by files',
    text: `${discovered(
      label('namespace', 'namespace') + path,
      '  selectors {\n    role  = "pod"\n    field = "spec.nodeName=" + coalesce(sys.env("HOSTNAME"), constants.hostname)\n  }\n',
    )}local.file_match "pod" {\n  path_targets = discovery.relabel.pod.output\n}\n${source('loki.source.file', 'local.file_match.pod.targets')}`,
    whole: true,
  },
  {
    about: 'pods of some namespaces, with all labels',
    text:
      discovered(
        rule(
          'source_labels = ["__meta_kubernetes_namespace"]',
          'regex         = "shop|blog"',
          'action        = "keep"',
        ) +
          rule('action = "labelmap"', 'regex  = "__meta_kubernetes_pod_label_(.+)"') +
          rule(
            'source_labels = ["__meta_kubernetes_pod_phase"]',
            'regex = "Pending|Succeeded|Failed"',
            'action = "drop"',
          ),
        '  namespaces {\n    names = ["shop", "blog", "test"]\n  }\n',
      ) + source('loki.source.kubernetes', 'discovery.relabel.pod.output'),
    whole: true,
  },
  {
    about: 'pods with an application and an annotation',
    text:
      discovered(
        rule(
          'source_labels = ["__meta_kubernetes_pod_annotation_k8s_grafana_com_logs_enabled"]',
          'regex = "false"',
          'action = "drop"',
        ) +
          rule(
            'source_labels = ["__meta_kubernetes_pod_label_app_kubernetes_io_name", "__meta_kubernetes_pod_label_app", "__meta_kubernetes_pod_controller_name"]',
            'regex = "^;*([^;]+)(;.*)?$"',
            'target_label = "app"',
          ) +
          rule(
            'source_labels = ["__meta_kubernetes_namespace", "__meta_kubernetes_pod_container_name"]',
            'separator = "/"',
            'target_label = "job"',
          ),
      ) + source('loki.source.kubernetes', 'discovery.relabel.pod.output'),
    whole: true,
  },
  {
    about: 'files of the node',
    text: `local.file_match "sys" {\n  path_targets = concat(\n    [{"__path__" = "/var/log/{syslog,messages}", "job" = "sys", "node" = constants.hostname}],\n    [{"__path__" = "/srv/*.log", "__path_exclude__" = "/srv/old.log", "job" = string.format("%s-%s", "srv", "a")}],\n  )\n  sync_period = "5s"\n}\n${source('loki.source.file', 'local.file_match.sys.targets')}`,
    whole: true,
  },
  {
    about: 'all files of pods',
    text: source('loki.source.file', '[{__path__ = "/var/log/pods/*/*/*.log", job = "pods"}]'),
    whole: true,
  },
  {
    about: 'the journal',
    text: 'loki.relabel "journal" {\n  forward_to = []\n  rule {\n    source_labels = ["__journal__systemd_unit"]\n    target_label  = "unit"\n  }\n}\nloki.source.journal "in" {\n  relabel_rules = loki.relabel.journal.rules\n  labels        = {job = "journal"}\n  forward_to    = [loki.process.main.receiver]\n}\n',
    whole: false,
  },
  {
    about: 'a listener',
    text: 'loki.source.api "in" {\n  http {\n    listen_port = 9999\n  }\n  forward_to = [loki.process.main.receiver]\n}\n',
    whole: false,
  },
  {
    about: 'PodLogs',
    text: 'loki.source.podlogs "in" {\n  forward_to = [loki.process.main.receiver]\n}\n',
    whole: false,
  },
]

const json = '  stage.json {\n    expressions = { level = "", msg = "message", ts = "time" }\n  }\n'
const processes: readonly Case[] = [
  { about: 'none', text: '', whole: true },
  { about: 'the runtime', text: '  stage.cri {}\n', whole: true },
  {
    about: 'levels',
    text: `${json}  stage.labels {\n    values = { level = "" }\n  }\n  stage.output {\n    source = "msg"\n  }\n`,
    whole: true,
  },
  {
    about: 'times',
    text: `${json}  stage.timestamp {\n    source           = "ts"\n    format           = "RFC3339Nano"\n    fallback_formats = ["Unix", "2006-01-02 15:04:05"]\n  }\n`,
    whole: true,
  },
  {
    about: 'matches',
    text: '  stage.match {\n    selector = "{namespace=~\\"shop|blog\\"} |~ `(?i)error`"\n    stage.regex {\n      expression = `(?i)(?P<level>error|warn)`\n    }\n    stage.template {\n      source   = "level"\n      template = `{{ ToLower .Value }}`\n    }\n    stage.labels {\n      values = { level = "" }\n    }\n  }\n  stage.match {\n    selector            = "{app=\\"noisy\\"}"\n    action              = "drop"\n    drop_counter_reason = "noise"\n  }\n',
    whole: true,
  },
  {
    about: 'stack traces',
    text: '  stage.multiline {\n    firstline     = `^\\[?\\d{4}-\\d{2}-\\d{2}`\n    max_wait_time = "3s"\n    max_lines     = 256\n  }\n',
    whole: true,
  },
  {
    about: 'secrets',
    text: '  stage.replace {\n    expression = `(?:password|token)=(\\S+)`\n    replace    = "***"\n  }\n  stage.decolorize {}\n',
    whole: true,
  },
  {
    about: 'drops',
    text: '  stage.drop {\n    older_than          = "1h"\n    drop_counter_reason = "old"\n  }\n  stage.drop {\n    expression = ".*health.*"\n  }\n  stage.sampling {\n    rate = 0.25\n  }\n',
    whole: true,
  },
  {
    about: 'labels',
    text: '  stage.static_labels {\n    values = { env = "prod" }\n  }\n  stage.label_drop {\n    values = ["filename", "stream"]\n  }\n  stage.label_keep {\n    values = ["namespace", "job", "env", "pod"]\n  }\n  stage.tenant {\n    label = "namespace"\n  }\n',
    whole: true,
  },
  {
    about: 'metadata',
    text: '  stage.logfmt {\n    mapping = { trace = "trace_id", level = "" }\n  }\n  stage.structured_metadata {\n    values = { trace_id = "trace" }\n  }\n  stage.pack {\n    labels = ["pod"]\n  }\n',
    whole: true,
  },
  {
    about: 'metrics',
    text: `${json}  stage.metrics {\n    metric.counter {\n      name   = "lines_total"\n      action = "inc"\n    }\n  }\n`,
    whole: false,
  },
  {
    about: 'limits',
    text: '  stage.limit {\n    rate  = 100\n    burst = 200\n    drop  = true\n  }\n  stage.geoip {\n    db     = "/geo.mmdb"\n    source = "ip"\n  }\n',
    whole: false,
  },
]

const destinations: readonly Case[] = [
  { about: 'a gateway', text: '  endpoint {\n    url = "http://loki-gateway/loki/api/v1/push"\n  }\n', whole: true },
  {
    about: 'Grafana Cloud',
    text: '  endpoint {\n    url = "https://logs-prod-eu-west-0.grafana.net/loki/api/v1/push"\n    basic_auth {\n      username = "123"\n      password = sys.env("API_KEY")\n    }\n  }\n  external_labels = {\n    cluster = sys.env("CLUSTER"),\n    dc      = "eu",\n  }\n',
    whole: true,
  },
  {
    about: 'a tenant',
    text: '  endpoint {\n    url                 = "http://loki:3100/loki/api/v1/push"\n    tenant_id           = "ops"\n    batch_wait          = "1s"\n    batch_size          = "1MiB"\n    remote_timeout      = "10s"\n    min_backoff_period  = "500ms"\n    max_backoff_period  = "5m"\n    max_backoff_retries = 10\n  }\n',
    whole: true,
  },
  {
    about: 'a Secret',
    text: '  endpoint {\n    url = nonsensitive(remote.kubernetes.secret.loki.data["url"]) + "/loki/api/v1/push"\n    bearer_token = remote.kubernetes.secret.loki.data["token"]\n    tls_config {\n      ca_file              = "/ca.pem"\n      insecure_skip_verify = true\n    }\n  }\n',
    whole: true,
  },
  {
    about: 'two endpoints',
    text: '  endpoint {\n    name = "one"\n    url  = "http://one:3100/loki/api/v1/push"\n  }\n  endpoint {\n    name    = "two"\n    url     = "http://two:3100/loki/api/v1/push"\n    headers = { "X-Team" = "ops" }\n  }\n',
    whole: true,
  },
  {
    about: 'OAuth',
    text: '  endpoint {\n    url = "https://loki/loki/api/v1/push"\n    oauth2 {\n      client_id = "a"\n      token_url = "https://t"\n    }\n  }\n',
    whole: false,
  },
]
const secret = 'remote.kubernetes.secret "loki" {\n  namespace = "x"\n  name      = "loki"\n}\n'

const cases = inputs.flatMap((input, row) =>
  processes.map((process, column) => {
    const destination = destinations[(row + column) % destinations.length] as Case
    const config = `logging {\n  level  = "info"\n  format = "logfmt"\n}\n${input.text}loki.process "main" {\n${process.text}  forward_to = [loki.write.out.receiver]\n}\n${destination.text.includes('remote.') ? secret : ''}loki.write "out" {\n${destination.text}}\n`
    return {
      about: `${input.about} / ${process.about} / ${destination.about}`,
      config,
      chart: `controller: { type: daemonset }\nalloy:\n  configMap:\n    content: |\n${config.replace(/^(?=.)/gm, '      ')}`,
      // Lines of the runtime all begin with a time, so that the old agent would join none of them.
      whole:
        input.whole &&
        process.whole &&
        destination.whole &&
        !(input.about === 'pods by files' && process.about === 'stack traces'),
    }
  }),
)

test('the corpus has 108 configurations, most of which convert completely', () => {
  expect(new Set(cases.map(({ config }) => config)).size).toBe(108)
  expect(cases.filter(({ whole }) => whole).length).toBeGreaterThan(45)
})

const missing = (gaps: readonly { isReplaced?: true; subject: string; reason: string }[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, reason }) => [subject, reason])

test.each(cases)('$about', async ({ config, chart, whole }) => {
  const file = 'config.alloy'
  const found = converted(convertAlloy, [{ file, text: config }])
  if (whole) expect(missing(found.gaps)).toEqual([])
  else expect(missing(found.gaps).length).toBeGreaterThan(0)
  const lines = config.split('\n').length
  for (const gap of found.gaps) {
    expect(gap.line).toBeGreaterThan(1)
    expect(gap.line).toBeLessThanOrEqual(lines)
    expect([gap.file, gap.reason === '', gap.nearest === '']).toEqual([file, false, false])
  }
  expect(await lint(String(found.document))).toEqual([])
  // Text inside other files is recognized by its content, and only as this agent's.
  for (const given of [
    { file: 'values.yaml', text: chart },
    { file: 'stdin.yaml', text: config },
  ]) {
    expect(oldAgents.filter(({ recognises }) => recognises(given)).map(({ name }) => name)).toEqual(['alloy'])
  }
  const other = converted(convertAlloy, [{ file: 'values.yaml', text: chart }])
  const bare = (document: Document) => document.toString({ lineWidth: 0 }).replace(/\([\w.]+:\d+\)/g, '')
  expect(missing(other.gaps)).toEqual(missing(found.gaps))
  expect(bare(other.document)).toBe(bare(found.document))
})
