// Components of Vector without a counterpart: why, and what to use instead.

import { underOperator } from '@penstock/agent/config'
import type { Refusal } from '../page.ts'

const listens = 'no source of an agent listens for connections'
const queue = 'Let the senders write to a queue or a file that a source reads (`amqp`, `cloud_queue`, `file`).'
const byHttp = (what: string) => `Use the sink \`http\` with ${what}.`

/** With one reason for several names. */
const each = (names: readonly string[], reason: string, nearest: string): Refusal[] =>
  names.map((name) => ({ name, reason, nearest }))

export const refusedSources: readonly Refusal[] = [
  ...each(
    ['datadog_agent', 'dnstap', 'fluent', 'heroku_logs', 'http_server', 'http', 'logstash', 'opentelemetry'],
    listens,
    queue,
  ),
  ...each(
    ['prometheus_pushgateway', 'prometheus_remote_write', 'socket', 'splunk_hec', 'statsd', 'syslog', 'vector'],
    listens,
    queue,
  ),
  ...each(['aws_kinesis_firehose', 'websocket'], listens, queue),
  ...each(
    ['kafka', 'nats', 'mqtt', 'redis', 'pulsar', 'gcp_pubsub', 'azure_event_hubs'],
    'there is no source for this queue',
    'Use a queue that has one: `amqp`, or `cloud_queue`.',
  ),
  ...each(['aws_s3'], 'objects of a store are not read', 'Send the logs to `cloud_queue` directly.'),
  ...each(
    ['host_metrics', 'nginx_metrics', 'mongodb_metrics', 'postgresql_metrics', 'prometheus_scrape', 'static_metrics'],
    'metrics of this origin are not collected',
    'Let the scraper of your metrics collect them.',
  ),
  ...each(
    ['aws_ecs_metrics'],
    'metrics of this origin are not collected',
    'Let the scraper of your metrics collect them.',
  ),
  ...each(
    ['docker_logs', 'journald', 'windows_event_log', 'exec', 'file_descriptor', 'http_client', 'okta'],
    'logs of this origin are not collected',
    'Use `orchestrator_logs` for containers, or `file` for files.',
  ),
]

export const refusedTransforms: readonly Refusal[] = [
  ...each(
    ['throttle'],
    'a transform does not count events over time',
    'Use `limits.perContainer` of the Pipeline, which limits each container before its lines are parsed.',
  ),
  ...each(
    ['reduce', 'detect_exceptions', 'window'],
    'a transform sees one event at a time',
    'Join lines by `multiline` of the source.',
  ),
  ...each(['dedupe'], 'a transform sees one event at a time', 'Let the destination recognise repeats, by `id_key`.'),
  ...each(
    ['aggregate', 'log_to_metric', 'incremental_to_absolute'],
    'metrics are not made or aggregated by transforms',
    'Let the destination do it.',
  ),
  ...each(['lua'], 'programs in Lua are not run', 'Write the program in remap; the comment contains its text.'),
  ...each(
    ['aws_ec2_metadata'],
    'metadata of instances are not added',
    'Set labels of nodes, which `.orchestrator.node_labels` has.',
  ),
  ...each(['geoip'], 'there are no tables of addresses', 'Let the destination add it.'),
  ...each(['trace_to_log'], 'events are logs and metrics, and no traces', 'Send traces by the collector.'),
]

export const refusedSinks: readonly Refusal[] = [
  ...each(
    ['kafka', 'nats', 'mqtt', 'redis', 'amqp', 'gcp_pubsub', 'aws_sqs', 'aws_sns', 'azure_event_hubs'],
    'there is no sink for this queue',
    'Use the sink `message_broker` (Pulsar), or a gateway by `http`.',
  ),
  ...each(
    ['aws_kinesis_streams', 'aws_kinesis_firehose'],
    'there is no sink for this queue',
    'Use a gateway by `http`.',
  ),
  ...each(
    ['aws_s3', 'gcp_cloud_storage', 'azure_blob', 'webhdfs', 's3'],
    'there is no sink for object stores',
    'Write to a store of logs, and let it archive.',
  ),
  ...each(
    ['prometheus_exporter'],
    'no sink listens for connections',
    'Use `remote_write_metrics`. Agents serve their own metrics at /metrics.',
  ),
  ...each(
    ['splunk_hec_logs', 'splunk_hec', 'splunk_hec_metrics'],
    'there is no sink for this product',
    byHttp('the address of its event collector and an `Authorization` header; `logsvc_b_logs` has the same envelopes'),
  ),
  ...each(
    ['clickhouse', 'axiom', 'honeycomb', 'databend', 'doris', 'greptimedb_logs', 'logdna', 'mezmo', 'sematext_logs'],
    'there is no sink for this product',
    byHttp('the address of its API, `framing` and `encoding` as it takes them'),
  ),
  ...each(
    ['opentelemetry', 'influxdb_logs', 'keep', 'appsignal', 'papertrail', 'gcp_stackdriver_logs', 'postgres'],
    'there is no sink for this product',
    byHttp('the address of its API, `framing` and `encoding` as it takes them'),
  ),
  ...each(
    ['aws_cloudwatch_logs', 'aws_cloudwatch_metrics', 'gcp_stackdriver_metrics', 'greptimedb_metrics', 'humio_metrics'],
    'there is no sink for this product',
    '`penstock list` shows the destinations that exist.',
  ),
  ...each(
    ['datadog_events', 'datadog_traces', 'sematext_metrics', 'statsd'],
    'there is no sink for this product',
    '`penstock list` shows the destinations that exist.',
  ),
  ...each(
    ['socket', 'vector', 'websocket', 'websocket_server'],
    'there is no sink for connections of this kind',
    byHttp('an address of the receiver'),
  ),
]

/** Those whose name, or a word of it, is the given one: `s3` is a word of `aws_s3`. */
export function refusalsNamed(name: string): readonly (Refusal & { readonly kind: 'source' | 'transform' | 'sink' })[] {
  const wanted = name.toLowerCase().replaceAll('-', '_')
  const word = wanted === 'otlp' ? 'opentelemetry' : wanted
  const named = (refusal: Refusal) => refusal.name === word || refusal.name.split('_').includes(word)
  return [
    ...refusedSources.filter(named).map((refusal) => ({ ...refusal, kind: 'source' as const })),
    ...refusedTransforms.filter(named).map((refusal) => ({ ...refusal, kind: 'transform' as const })),
    ...refusedSinks.filter(named).map((refusal) => ({ ...refusal, kind: 'sink' as const })),
  ]
}

export interface Setting {
  readonly becomes: string
  /** Whether the cluster does the same without further work. */
  readonly isReplaced: boolean
}

/** The agent has these, too: the default under an operator has the same effect. */
const replaced: ReadonlySet<string> = new Set(['data_dir', 'api', 'healthchecks', 'expire_metrics_secs'])

/** Settings at the top level of a configuration. */
export const settings: Readonly<Record<string, Setting>> = {
  ...Object.fromEntries(
    Object.entries(underOperator).map(([name, becomes]) => [name, { becomes, isReplaced: replaced.has(name) }]),
  ),
  expire_metrics: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  expire_metrics_per_metric_set: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  timezone: { becomes: 'The option `timezone` of each remap transform.', isReplaced: true },
  secret: { becomes: 'Keys of the Secret that `spec.secrets` names.', isReplaced: true },
  schema: { becomes: 'Programs are typed without it.', isReplaced: true },
  provider: { becomes: 'The operator gives agents their configuration.', isReplaced: true },
  buffer_utilization_ewma_half_life_seconds: {
    becomes: 'Agents report the present use of a buffer.',
    isReplaced: true,
  },
}
