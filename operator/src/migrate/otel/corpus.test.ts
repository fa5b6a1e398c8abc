// Common configurations: combinations of receivers, chains of processors and exporters. All become Pipelines that pass lint, and parts
// without a counterpart become gaps with line numbers.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { compileFiles } from '../../compile/config.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-otel-corpus-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Parts = Readonly<Record<string, unknown>>
interface Case {
  readonly about: string
  readonly parts: Parts
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const variable = (text: string) => '$'.concat(`{${text}}`)
const pods = {
  include: ['/var/log/pods/*/*/*.log'],
  exclude: ['/var/log/pods/*/otel-collector/*.log'],
  start_at: 'end',
  include_file_path: true,
  include_file_name: false,
}

const receivers: readonly Case[] = [
  {
    about: 'pods by the operator container',
    parts: { filelog: { ...pods, operators: [{ type: 'container', id: 'container-parser' }] } },
    whole: true,
  },
  {
    about: 'pods with JSON and severity',
    parts: {
      filelog: {
        ...pods,
        retry_on_failure: { enabled: true },
        storage: 'file_storage',
        poll_interval: '500ms',
        operators: [
          { type: 'container', id: 'container-parser', max_log_size: 102_400 },
          {
            type: 'json_parser',
            if: 'body matches "^{.*}$"',
            parse_from: 'body',
            parse_to: 'attributes',
            timestamp: { parse_from: 'attributes.time', layout: '%Y-%m-%dT%H:%M:%S.%LZ' },
            severity: { parse_from: 'attributes.level', mapping: { fatal: ['critical', 'panic'], info: 'notice' } },
          },
          { type: 'move', from: 'attributes.msg', to: 'body', if: 'attributes.msg != nil' },
          { type: 'remove', field: 'attributes.time' },
        ],
      },
    },
    whole: true,
  },
  {
    about: 'pods of one namespace, with joined lines',
    parts: {
      'filelog/shop': {
        ...pods,
        include: ['/var/log/pods/shop_*/*/*.log'],
        operators: [
          { type: 'container' },
          {
            type: 'recombine',
            combine_field: 'body',
            is_first_entry: 'body matches "^\\\\d{4}-\\\\d{2}-\\\\d{2}"',
            source_identifier: 'attributes["log.file.path"]',
            max_log_size: '1MiB',
            force_flush_period: '5s',
          },
        ],
      },
    },
    whole: true,
  },
  {
    about: 'files of a web server',
    parts: {
      'filelog/nginx': {
        include: ['/var/log/nginx/access.log'],
        start_at: 'beginning',
        resource: { 'service.name': 'nginx' },
        operators: [
          {
            type: 'regex_parser',
            regex:
              '^(?P<remote>\\S+) \\S+ (?P<user>\\S+) \\[(?P<time>[^\\]]+)\\] "(?P<method>\\S+) (?P<path>\\S+) [^"]*" (?P<status>\\d{3}) (?P<size>\\d+)',
            timestamp: { parse_from: 'attributes.time', layout: '%d/%b/%Y:%H:%M:%S %z' },
            severity: { parse_from: 'attributes.status', mapping: { error: '5xx', warn: '4xx', info: ['2xx', '3xx'] } },
          },
        ],
      },
    },
    whole: true,
  },
  {
    about: 'files of the machine, joined',
    parts: {
      'filelog/host': {
        include: ['/var/log/syslog', '/var/log/auth.log'],
        exclude: ['/var/log/*.gz'],
        multiline: { line_start_pattern: '^\\w{3} +\\d' },
        max_log_size: '1MiB',
        max_concurrent_files: 100,
        attributes: { origin: 'host' },
        operators: [{ type: 'syslog_parser', protocol: 'rfc3164', on_error: 'send_quiet' }],
      },
    },
    whole: true,
  },
  {
    about: 'events of the cluster',
    parts: { k8s_events: { auth_type: 'serviceAccount', namespaces: ['shop', 'blog'] } },
    whole: true,
  },
  {
    about: 'OTLP beside pods',
    parts: {
      otlp: { protocols: { grpc: { endpoint: '0.0.0.0:4317' }, http: {} } },
      filelog: { ...pods, operators: [{ type: 'container' }] },
    },
    whole: false,
  },
  {
    about: 'syslog',
    parts: { syslog: { tcp: { listen_address: '0.0.0.0:54526' }, protocol: 'rfc5424' } },
    whole: false,
  },
  { about: 'the journal', parts: { journald: { directory: '/var/log/journal', units: ['kubelet'] } }, whole: false },
]

const limits = { memory_limiter: { check_interval: '1s', limit_percentage: 80, spike_limit_percentage: 25 } }
const batch = { batch: { send_batch_size: 8192, timeout: '5s' } }
const chains: readonly Case[] = [
  { about: 'none', parts: {}, whole: true },
  { about: 'limits and batches', parts: { ...limits, ...batch }, whole: true },
  {
    about: 'facts about pods',
    parts: {
      ...limits,
      k8sattributes: {
        auth_type: 'serviceAccount',
        passthrough: false,
        filter: { node_from_env_var: 'KUBE_NODE_NAME' },
        extract: {
          metadata: [
            'k8s.namespace.name',
            'k8s.pod.name',
            'k8s.deployment.name',
            'k8s.node.name',
            'container.image.name',
          ],
          labels: [{ tag_name: 'app', key: 'app', from: 'pod' }],
          annotations: [{ tag_name: '$$1', key_regex: 'log/(.*)', from: 'pod' }],
        },
        pod_association: [
          { sources: [{ from: 'resource_attribute', name: 'k8s.pod.uid' }] },
          { sources: [{ from: 'connection' }] },
        ],
      },
      ...batch,
    },
    whole: true,
  },
  {
    about: 'attributes and resource',
    parts: {
      'resource/cluster': {
        attributes: [
          { key: 'k8s.cluster.name', value: 'prod-1', action: 'upsert' },
          { key: 'k8s.node.name', value: variable('env:K8S_NODE_NAME'), action: 'insert' },
        ],
      },
      'attributes/clean': {
        actions: [
          { key: 'password', action: 'delete' },
          { key: 'email', action: 'hash' },
          { key: 'env', value: 'prod', action: 'insert' },
        ],
      },
      ...batch,
    },
    whole: true,
  },
  {
    about: 'filter by conditions',
    parts: {
      'filter/noise': {
        error_mode: 'ignore',
        logs: {
          log_record: [
            'IsMatch(body, ".*(healthz|readyz).*")',
            'severity_number != SEVERITY_NUMBER_UNSPECIFIED and severity_number < SEVERITY_NUMBER_INFO',
            'resource.attributes["k8s.namespace.name"] == "kube-system"',
          ],
        },
      },
    },
    whole: true,
  },
  {
    about: 'filter by the older lists',
    parts: {
      filter: {
        logs: {
          exclude: {
            match_type: 'regexp',
            resource_attributes: [{ key: 'k8s.container.name', value: 'istio-.*' }],
            bodies: ['^\\s*$'],
          },
        },
      },
    },
    whole: true,
  },
  {
    about: 'statements',
    parts: {
      transform: {
        error_mode: 'ignore',
        log_statements: [
          {
            context: 'log',
            statements: [
              'merge_maps(cache, ParseJSON(body), "upsert") where IsMatch(body, "^\\\\{")',
              'set(attributes["trace"], cache["trace_id"]) where cache["trace_id"] != nil',
              'set(severity_text, ToUpperCase(cache["level"])) where IsString(cache["level"])',
              'set(severity_number, SEVERITY_NUMBER_ERROR) where severity_text == "ERROR"',
              'replace_pattern(body, "(?i)(token|password)=[^&\\\\s]+", "$$1=***")',
              'delete_matching_keys(attributes, "^tmp\\\\..*")',
              'truncate_all(attributes, 4096)',
            ],
          },
          {
            context: 'resource',
            statements: [
              'keep_keys(attributes, ["service.name", "k8s.pod.name", "k8s.namespace.name"])',
              'set(attributes["service.name"], attributes["k8s.pod.name"]) where attributes["service.name"] == nil',
            ],
          },
        ],
      },
      ...batch,
    },
    whole: true,
  },
  {
    about: 'statements without a context',
    parts: {
      transform: {
        log_statements: [
          'set(log.attributes["app"], resource.attributes["app"])',
          'limit(log.attributes, 64, ["app"])',
          'set(log.body, Concat([log.attributes["app"], log.body], ": "))',
        ],
      },
    },
    whole: true,
  },
  {
    about: 'samples, groups and masks',
    parts: {
      probabilistic_sampler: { sampling_percentage: 15 },
      groupbyattrs: { keys: ['host.name'] },
      redaction: { allow_all_keys: true, blocked_values: ['4[0-9]{12}(?:[0-9]{3})?'], summary: 'silent' },
      'resourcedetection/system': { detectors: ['system'], timeout: '2s', override: false },
    },
    whole: true,
  },
  {
    about: 'facts about clouds',
    parts: { resourcedetection: { detectors: ['env', 'eks', 'ec2'], timeout: '2s' }, ...batch },
    whole: false,
  },
  {
    about: 'parts without a counterpart',
    parts: {
      logdedup: { interval: '60s' },
      transform: { log_statements: ['set(attributes["h"], Murmur3Hash(body))'] },
    },
    whole: false,
  },
]

const queue = {
  sending_queue: { enabled: true, num_consumers: 4, queue_size: 1000 },
  retry_on_failure: { enabled: true, initial_interval: '5s', max_interval: '30s', max_elapsed_time: '300s' },
}
const exporters: readonly Case[] = [
  {
    about: 'OTLP by HTTP',
    parts: {
      otlphttp: {
        endpoint: 'https://otlp.example/otlp',
        headers: { authorization: `Basic ${variable('env:GRAFANA')}` },
        ...queue,
      },
    },
    whole: true,
  },
  {
    about: "Loki's OTLP",
    parts: {
      'otlphttp/loki': {
        endpoint: 'http://loki-gateway.loki.svc/otlp',
        headers: { 'X-Scope-OrgID': 'shop' },
        tls: { insecure: true },
      },
    },
    whole: true,
  },
  {
    about: 'VictoriaLogs',
    parts: { 'otlphttp/vl': { logs_endpoint: 'http://vl:9428/insert/opentelemetry/v1/logs', compression: 'gzip' } },
    whole: true,
  },
  {
    about: 'Loki by its own exporter',
    parts: {
      loki: { endpoint: 'http://loki:3100/loki/api/v1/push', default_labels_enabled: { exporter: false, job: true } },
    },
    whole: true,
  },
  {
    about: 'Elasticsearch',
    parts: {
      elasticsearch: {
        endpoints: ['https://es:9200'],
        user: 'elastic',
        password: variable('env:ES_PASS'),
        logs_index: 'logs-shop',
        mapping: { mode: 'otel' },
        tls: { ca_file: '/ca.crt' },
        ...queue,
      },
    },
    whole: true,
  },
  {
    about: 'OpenSearch',
    parts: {
      opensearch: { http: { endpoint: 'https://os:9200', tls: { insecure_skip_verify: true } }, logs_index: 'shop' },
    },
    whole: true,
  },
  {
    about: 'Splunk',
    parts: {
      splunk_hec: {
        token: variable('env:HEC'),
        endpoint: 'https://hec:8088/services/collector',
        index: 'main',
        tls: { insecure_skip_verify: true },
      },
    },
    whole: true,
  },
  {
    about: 'Datadog and standard output',
    parts: { datadog: { api: { key: variable('env:DD'), site: 'datadoghq.com' } }, debug: { verbosity: 'basic' } },
    whole: true,
  },
  { about: 'a file', parts: { file: { path: '/srv/otel.json' } }, whole: true },
  { about: 'OTLP by gRPC', parts: { otlp: { endpoint: 'gateway:4317', tls: { insecure: true } } }, whole: false },
  {
    about: 'Kafka',
    parts: { kafka: { brokers: ['b:9092'], topic: 'logs', encoding: 'otlp_json' }, debug: {} },
    whole: false,
  },
]

/** Each chain with seven receivers and exporters, so that all neighbouring pairs occur: 77 configurations. */
const cases = chains.flatMap((chain, row) =>
  [0, 1, 2, 3, 4, 5, 6].map((column) => {
    const receiver = receivers[(row + column * 4) % receivers.length] as Case
    const exporter = exporters[(row * 2 + column) % exporters.length] as Case
    const pipeline = {
      receivers: Object.keys(receiver.parts),
      processors: Object.keys(chain.parts),
      exporters: Object.keys(exporter.parts),
    }
    const config = {
      receivers: receiver.parts,
      processors: chain.parts,
      exporters: exporter.parts,
      extensions: { health_check: { endpoint: '0.0.0.0:13133' }, file_storage: { directory: '/var/lib/otelcol' } },
      service: {
        extensions: ['health_check', 'file_storage'],
        telemetry: { logs: { level: 'info' } },
        pipelines: { logs: pipeline },
      },
    }
    const about = `${receiver.about} / ${chain.about} / ${exporter.about}`
    return { about, config, whole: receiver.whole && chain.whole && exporter.whole }
  }),
)

let written = 0
function convert(file: string, text: string) {
  const draft = new Draft()
  convertOtel([{ file, text }], () => [], draft)
  const document = String(draft.document({ name: 'corpus' }))
  const path = join(folder, `${++written}.yaml`)
  const values = ['GRAFANA', 'ES_PASS', 'HEC', 'DD'].map((name) => `  ${name}: x\n`).join('')
  const secret = `---\napiVersion: v1\nkind: Secret\nmetadata: { name: corpus-environment, namespace: penstock-system }\nstringData:\n${values}`
  writeFileSync(path, `${document}${secret}`)
  const problems = compileFiles([path], { ownMachine: false }).problems.map(
    ({ path: at, message, rendered }) => `${at}: ${message} ${rendered ?? ''}`,
  )
  const gaps = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  return { document, gaps, problems, lines: text.split('\n').length }
}

test('the corpus has 77 configurations, most of which convert completely', () => {
  expect(new Set(cases.map(({ config }) => stringify(config))).size).toBe(77)
  expect(cases.filter(({ whole }) => whole).length).toBeGreaterThan(30)
})

test.each(cases)('$about', ({ config, whole }) => {
  const found = convert('collector.yaml', stringify(config))
  expect(found.problems).toEqual([])
  if (whole) expect(found.gaps).toEqual([])
  else expect(found.gaps.length).toBeGreaterThan(0)
  for (const gap of found.gaps) {
    expect(gap.line).toBeGreaterThan(1)
    expect(gap.line).toBeLessThanOrEqual(found.lines)
    expect([gap.file, gap.reason === '', gap.nearest === '']).toEqual(['collector.yaml', false, false])
  }

  // The same configuration as a resource of the operator, and in chart values.
  const resource = {
    apiVersion: 'opentelemetry.io/v1beta1',
    kind: 'OpenTelemetryCollector',
    metadata: { name: 'c' },
    spec: { config },
  }
  for (const other of [resource, { mode: 'daemonset', config }]) {
    const same = convert('collector.yaml', stringify(other))
    const bare = (text: string) => text.replace(/\(collector\.yaml:\d+\)/g, '')
    expect(bare(same.document)).toBe(bare(found.document))
    expect(same.gaps.map(({ subject }) => subject)).toEqual(found.gaps.map(({ subject }) => subject))
  }
})
