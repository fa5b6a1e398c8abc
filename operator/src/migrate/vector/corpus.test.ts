// Common configurations: combinations of 8 sources, 10 chains of transforms and 10 sinks. All become Pipelines that pass lint, and parts
// without a counterpart become gaps with line numbers.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { compileFiles } from '../../compile/config.ts'
import { Draft } from '../draft.ts'
import { convertVector } from './convert.ts'

const folder = mkdtempSync(join(tmpdir(), 'penstock-vector-corpus-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Table = Record<string, unknown>
interface Part {
  readonly about: string
  readonly components: Table
  /** The inputs of the next part. */
  readonly heads: readonly string[]
  /** Whether all parts have a counterpart. */
  readonly whole: boolean
}

const sources: readonly Part[] = [
  {
    about: 'pods',
    components: { kubernetes_logs: { type: 'kubernetes_logs' } },
    heads: ['kubernetes_logs'],
    whole: true,
  },
  {
    about: 'some pods',
    components: {
      Pods: {
        type: 'kubernetes_logs',
        extra_label_selector: 'app in (web, api)',
        extra_namespace_label_selector: 'team=shop',
        exclude_paths_glob_patterns: ['**/exclude/**'],
        glob_minimum_cooldown_ms: 5000,
        ignore_older_secs: 600,
        max_line_bytes: 131_072,
        pod_annotation_fields: { pod_ip: '' },
      },
    },
    heads: ['Pods'],
    whole: true,
  },
  {
    about: 'files with multiline',
    components: {
      app_files: {
        type: 'file',
        include: ['/srv/app/*.log'],
        exclude: ['/srv/app/old.log'],
        read_from: 'beginning',
        multiline: { mode: 'halt_before', start_pattern: '^\\d{4}', condition_pattern: '^\\d{4}', timeout_ms: 1000 },
        data_dir: '/var/lib/vector',
      },
    },
    heads: ['app_files'],
    whole: true,
  },
  {
    about: 'pods and metrics of the agent',
    components: {
      k8s: { type: 'kubernetes_logs' },
      self: { type: 'internal_metrics', scrape_interval_secs: 15 },
      own: { type: 'internal_logs' },
    },
    heads: ['k8s', 'own'],
    whole: true,
  },
  {
    about: 'a queue',
    components: { rabbit: { type: 'amqp', connection_string: 'amqp://rabbit:5672/%2f', queue: 'logs' } },
    heads: ['rabbit'],
    whole: true,
  },
  {
    about: 'pods and the host',
    components: {
      k8s: { type: 'kubernetes_logs' },
      host: { type: 'host_metrics', collectors: ['cpu'] },
      units: { type: 'journald', include_units: ['kubelet'] },
    },
    heads: ['k8s', 'units'],
    whole: false,
  },
  {
    about: 'a port',
    components: { in: { type: 'vector', address: '0.0.0.0:6000', version: '2' } },
    heads: ['in'],
    whole: false,
  },
  {
    about: 'sample lines',
    components: { demo: { type: 'demo_logs', format: 'apache_common', interval: 0.1 } },
    heads: ['demo'],
    whole: true,
  },
]

interface Chain extends Omit<Part, 'components' | 'heads'> {
  readonly components: (heads: readonly string[]) => Table
  readonly last: readonly string[] | undefined
}

const chains: readonly Chain[] = [
  { about: 'nothing', components: () => ({}), last: undefined, whole: true },
  {
    about: 'a program',
    components: (inputs) => ({
      parse_json: {
        type: 'remap',
        inputs,
        drop_on_error: false,
        source: `structured, err = parse_json(.message)
if err == null { . = merge(., object!(structured)) }
.app = .kubernetes.pod_labels.app || "none"
del(.kubernetes.pod_annotations)`,
      },
    }),
    last: ['parse_json'],
    whole: true,
  },
  {
    about: 'a filter by a condition of each form',
    components: (inputs) => ({
      keep: { type: 'filter', inputs, condition: '!includes(["kube-system"], .kubernetes.pod_namespace)' },
      keep_more: { type: 'filter', inputs: ['keep'], condition: { type: 'vrl', source: '.level != "debug"' } },
    }),
    last: ['keep_more'],
    whole: true,
  },
  {
    about: 'routes',
    components: (inputs) => ({
      by_level: { type: 'route', inputs, route: { err: '.level == "error"', rest: { type: 'vrl', source: 'true' } } },
    }),
    last: ['by_level.err', 'by_level._unmatched'],
    whole: true,
  },
  {
    about: 'a sample, all dropped events elsewhere',
    components: (inputs) => ({
      p: { type: 'remap', inputs, drop_on_error: true, reroute_dropped: true, source: '. = parse_json!(.message)' },
      s: { type: 'sample', inputs: ['p'], rate: 10, key_field: 'trace_id', exclude: '.level == "error"' },
    }),
    last: ['s', 'p.dropped'],
    whole: true,
  },
  {
    about: 'old transforms',
    components: (inputs) => ({
      a: { type: 'add_fields', inputs, fields: { cluster: 'eu-1', n: 5 } },
      b: { type: 'json_parser', inputs: ['a'], field: 'message', drop_invalid: false },
      c: { type: 'rename_fields', inputs: ['b'], fields: { lvl: 'level' } },
      d: { type: 'remove_fields', inputs: ['c'], fields: ['stream', 'a.b'] },
    }),
    last: ['d'],
    whole: true,
  },
  {
    about: 'lua',
    components: (inputs) => ({
      l: { type: 'lua', version: '2', inputs, hooks: { process: 'function (event, emit) emit(event) end' } },
    }),
    last: ['l'],
    whole: false,
  },
  {
    about: 'throttle and reduce',
    components: (inputs) => ({
      t: { type: 'throttle', inputs, threshold: 100, window_secs: 1, key_field: '{{ kubernetes.pod_name }}' },
      r: { type: 'reduce', inputs: ['t'], group_by: ['id'], merge_strategies: { message: 'concat_newline' } },
    }),
    last: ['r'],
    whole: false,
  },
  {
    about: 'a program that is wrong',
    components: (inputs) => ({ w: { type: 'remap', inputs, source: '.a = parse_json(.message' } }),
    last: ['w'],
    whole: false,
  },
  {
    about: 'a pattern of inputs',
    components: (inputs) => ({
      first_x: { type: 'remap', inputs, source: '.x = 1' },
      first_y: { type: 'remap', inputs, source: '.y = to_string(.x) ?? ""' },
    }),
    last: ['first_*'],
    whole: true,
  },
]

const sinks: readonly { about: string; options: Table; whole: boolean }[] = [
  { about: 'console', options: { type: 'console', encoding: { codec: 'json' }, target: 'stdout' }, whole: true },
  {
    about: 'Loki',
    options: {
      type: 'loki',
      endpoint: 'http://loki:3100',
      labels: { app: '{{ kubernetes.pod_labels.app }}', '{{ kubernetes.pod_labels }}_*': 'x' },
      out_of_order_action: 'accept',
      encoding: { codec: 'json', except_fields: ['kubernetes.pod_uid'] },
      buffer: { type: 'disk', max_size: 268_435_488, when_full: 'block' },
      tenant_id: '{{ kubernetes.pod_namespace }}',
    },
    whole: true,
  },
  {
    about: 'Elasticsearch',
    options: {
      type: 'elasticsearch',
      endpoints: ['https://es:9200'],
      mode: 'bulk',
      bulk: { index: 'logs-%Y.%m.%d', action: 'create' },
      auth: { strategy: 'basic', user: '$ES_USER', password: `\${ES_PASSWORD}` },
      tls: { verify_certificate: false },
      compression: 'gzip',
      request: { retry_attempts: 10 },
    },
    whole: true,
  },
  {
    about: 'HTTP',
    options: {
      type: 'http',
      uri: 'https://logs.example/in',
      method: 'post',
      encoding: { codec: 'json', timestamp_format: 'rfc3339' },
      framing: { method: 'newline_delimited' },
      batch: { max_bytes: 1_000_000, timeout_secs: 5 },
      auth: { strategy: 'bearer', token: `\${TOKEN}` },
    },
    whole: true,
  },
  { about: 'a file', options: { type: 'file', path: '/tmp/%Y.log', encoding: { codec: 'text' } }, whole: true },
  {
    about: 'Datadog',
    options: { type: 'datadog_logs', default_api_key: `\${DD_API_KEY}`, site: 'datadoghq.eu', compression: 'gzip' },
    whole: true,
  },
  { about: 'Kafka', options: { type: 'kafka', bootstrap_servers: 'k:9092', topic: 'logs' }, whole: false },
  {
    about: 'S3',
    options: { type: 'aws_s3', bucket: 'logs', region: 'eu-west-1', encoding: { codec: 'ndjson' } },
    whole: false,
  },
  {
    about: 'an address with a default, and an option of nobody',
    options: { type: 'http', uri: `\${URI:-http://a/b}`, encoding: { codec: 'json' }, colour: 'red' },
    whole: false,
  },
  { about: 'blackhole', options: { type: 'blackhole', print_interval_secs: 0 }, whole: true },
]

interface Case {
  readonly about: string
  readonly config: Table
  readonly whole: boolean
}

const cases: readonly Case[] = Array.from({ length: 80 }, (_, index): Case => {
  const source = sources[index % sources.length] as Part
  const chain = chains[Math.floor(index / 3 + index) % chains.length] as Chain
  const sink = sinks[(index * 7 + Math.floor(index / 10)) % sinks.length] as (typeof sinks)[number]
  const hasOwn = 'self' in source.components
  return {
    about: `${source.about}; ${chain.about}; ${sink.about}`,
    config: {
      ...(index % 4 === 0 ? { data_dir: '/vector-data-dir', api: { enabled: true, address: '127.0.0.1:8686' } } : {}),
      sources: source.components,
      transforms: chain.components(source.heads),
      sinks: {
        Out_1: { ...sink.options, inputs: chain.last ?? source.heads },
        ...(hasOwn ? { prom: { type: 'prometheus_exporter', inputs: ['self'], address: '0.0.0.0:9598' } } : {}),
      },
    },
    whole: source.whole && chain.whole && sink.whole,
  }
})

test('the corpus is large, and most of its components have a counterpart', () => {
  expect(new Set(cases.map(({ about }) => about)).size).toBeGreaterThanOrEqual(60)
  expect(cases.filter(({ whole }) => whole).length).toBeGreaterThan(20)
})

test.each(cases)('$about', ({ config, whole }) => {
  const draft = new Draft()
  const text = stringify(config)
  convertVector([{ file: 'vector.yaml', text }], () => [], draft)
  const path = join(folder, 'pipeline.yaml')
  writeFileSync(path, String(draft.document({ name: 'converted' })))
  const problems = compileFiles([path], { ownMachine: false }).problems.filter(({ informational }) => !informational)
  // Two of the sources feed nothing in some chains, and a placeholder reads nothing.
  const left = problems.filter(({ code, severity }) => code !== 'NO_CONSUMERS' && severity === 'error')
  expect(left.map(({ path: at, message }) => `${at}: ${message}`)).toEqual([])

  const missing = draft.gaps.filter(({ isReplaced }) => isReplaced !== true)
  expect(missing.map(({ subject }) => subject).length > 0).toBe(!whole)
  for (const gap of draft.gaps) {
    expect(gap.file).toBe('vector.yaml')
    expect(gap.line).toBeGreaterThan(0)
    expect(gap.line).toBeLessThanOrEqual(text.split('\n').length)
    expect(gap.subject).not.toBe('')
    expect(gap.reason).not.toBe('')
    expect(gap.nearest).toMatch(/\.$/)
  }
})
