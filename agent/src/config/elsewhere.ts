// Components of other agents that Penstock does not have under that name, with their replacement or the reason why there is
// none. Unknown types and `explain` are looked up here; the conversion of configurations and the guide use the same texts.

/** A component without a counterpart. */
export interface Absent {
  readonly name: string
  readonly reason: string
  readonly nearest: string
}

const listens = 'no source listens for connections'
const queue = 'Let the senders write to a queue or a file that a source reads (`amqp`, `cloud_queue`, `file`).'
const byHttp = (what: string) => `Use the sink \`http\` with ${what}.`

/** Gives several names the same reason. */
const each = (names: readonly string[], reason: string, nearest: string): Absent[] =>
  names.map((name) => ({ name, reason, nearest }))

export const absentSources: readonly Absent[] = [
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
    'Use a queue with a source: `amqp`, or `cloud_queue`.',
  ),
  ...each(['aws_s3'], 'no source reads from object stores', 'Send the logs to `cloud_queue` directly.'),
  ...each(
    ['host_metrics', 'nginx_metrics', 'mongodb_metrics', 'postgresql_metrics', 'prometheus_scrape', 'static_metrics'],
    'Penstock has no source for these metrics',
    'Let your metrics scraper collect them.',
  ),
  ...each(['aws_ecs_metrics'], 'Penstock has no source for these metrics', 'Let your metrics scraper collect them.'),
  ...each(
    ['docker_logs', 'journald', 'windows_event_log', 'exec', 'file_descriptor', 'http_client', 'okta'],
    'Penstock has no source for these logs',
    'Use `orchestrator_logs` for containers, or `file` for files.',
  ),
]

export const absentTransforms: readonly Absent[] = [
  ...each(
    ['throttle'],
    'no transform counts events over time',
    'Use `limits.perContainer` of the Pipeline, which limits each container before its lines are parsed.',
  ),
  ...each(
    ['reduce', 'detect_exceptions', 'window'],
    'a transform processes one event at a time',
    'Join lines with `multiline` of the source.',
  ),
  ...each(
    ['dedupe'],
    'a transform processes one event at a time',
    'Let the destination detect duplicates, with `id_key`.',
  ),
  ...each(
    ['aggregate', 'log_to_metric', 'incremental_to_absolute'],
    'no transform creates or aggregates metrics',
    'Let the destination do this.',
  ),
  ...each(
    ['lua'],
    'Penstock does not run Lua programs',
    'Rewrite the program in remap; the comment contains its text.',
  ),
  ...each(
    ['aws_ec2_metadata'],
    'Penstock does not add instance metadata',
    'Set labels on the nodes; `.orchestrator.node_labels` contains them.',
  ),
  ...each(['geoip'], 'there are no IP address tables', 'Let the destination add this data.'),
  ...each(
    ['trace_to_log'],
    'Penstock processes logs and metrics, but not traces',
    'Send traces through the collector.',
  ),
]

export const absentSinks: readonly Absent[] = [
  ...each(
    ['kafka', 'nats', 'mqtt', 'redis', 'amqp', 'gcp_pubsub', 'aws_sqs', 'aws_sns', 'azure_event_hubs'],
    'there is no sink for this queue',
    'Use the sink `message_broker` (Pulsar), or a gateway with the sink `http`.',
  ),
  ...each(
    ['aws_kinesis_streams', 'aws_kinesis_firehose'],
    'there is no sink for this queue',
    'Use a gateway with the sink `http`.',
  ),
  ...each(
    ['aws_s3', 'gcp_cloud_storage', 'azure_blob', 'webhdfs', 's3'],
    'there is no sink for object stores',
    'Write to a log store that archives to object storage.',
  ),
  ...each(
    ['prometheus_exporter'],
    'no sink listens for connections',
    'Use `remote_write_metrics`. Agents expose their own metrics at /metrics.',
  ),
  ...each(
    ['splunk_hec_logs', 'splunk_hec', 'splunk_hec_metrics'],
    'there is no sink for this product',
    byHttp(
      'the address of its event collector and an `Authorization` header; `logsvc_b_logs` sends the same envelopes',
    ),
  ),
  ...each(
    ['clickhouse', 'axiom', 'honeycomb', 'databend', 'doris', 'greptimedb_logs', 'logdna', 'mezmo', 'sematext_logs'],
    'there is no sink for this product',
    byHttp('the address of its API, and matching `framing` and `encoding`'),
  ),
  ...each(
    ['opentelemetry', 'influxdb_logs', 'keep', 'appsignal', 'papertrail', 'gcp_stackdriver_logs', 'postgres'],
    'there is no sink for this product',
    byHttp('the address of its API, and matching `framing` and `encoding`'),
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
    'there is no sink for this type of connection',
    byHttp('the address of the receiver'),
  ),
]

/** Transforms with a different equivalent in Penstock: the replacement by name. */
export const replacedTransforms = {
  route: 'a `filter` for each route, and one for `_unmatched`',
  exclusive_route: 'a `filter` for each route, which excludes those before it, and one for `_unmatched`',
  sample: 'a `filter` with a random condition, or with the hash of `key_field`',
  add_fields: 'a `remap` that sets the fields',
  remove_fields: 'a `remap` that deletes the fields',
  rename_fields: 'a `remap` that moves the fields',
  json_parser: 'a `remap` with `parse_json`',
  add_tags: 'a `remap` that sets tags of metrics',
  remove_tags: 'a `remap` that deletes tags of metrics',
} as const satisfies Readonly<Record<string, string>>

/** Component kinds to search, with the absent components of each. */
const absentOf = { source: absentSources, transform: absentTransforms, sink: absentSinks } as const

/** Words in names that do not identify a product. */
const plainWords: ReadonlySet<string> = new Set(
  'agent blob client cloud descriptor event events exceptions file fields hubs log logs metric metrics parser read remote server source storage streams to traces window write'.split(
    ' ',
  ),
)

/** Products without a component here that users look up by another name than a component of another agent has. */
const otherNames: Readonly<Record<string, string>> = {
  otlp: 'opentelemetry',
  otel: 'opentelemetry',
  event_hubs: 'azure_event_hubs',
  google_cloud_logging: 'gcp_stackdriver_logs',
  cloud_logging: 'gcp_stackdriver_logs',
  google_cloud_storage: 'gcp_cloud_storage',
  gcs: 'gcp_cloud_storage',
  google_pubsub: 'gcp_pubsub',
  postgresql: 'postgres',
  systemd: 'journald',
  docker: 'docker_logs',
}

/** Products that take logs over HTTP, for which no agent has a component with their name, or only some. */
const productsByHttp: readonly string[] = [
  ...['better_stack', 'chronosphere', 'coralogix', 'dynatrace', 'gelf', 'graylog', 'logtail', 'openobserve'],
  ...['quickwit', 'seq', 'signoz', 'sumo_logic', 'victorialogs'],
]

/** A name as users write it, for comparison: without capitals and separators. */
export function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}

/**
 * The replacements for the components that a name refers to, or the reason why there are none, for `explain`; undefined if no other agent
 * has such a component. A word of the name suffices: `s3` finds `aws_s3`, and so does `Amazon S3`.
 */
export function elsewhereText(name: string): string | undefined {
  const given = name.toLowerCase().replaceAll(/[-\s]+/g, '_')
  const isSame = (one: string) => plainName(one) === plainName(given)
  const other = Object.keys(otherNames).find(isSame)
  const wanted = other === undefined ? given : (otherNames[other] as string)
  const exact = replacements(name, wanted, [wanted])
  if (exact !== undefined) return exact
  if (productsByHttp.some((product) => isSame(product) || product.split('_')[0] === wanted))
    return `Penstock has no component for ${name}. ${byHttp('the address of its API, and matching `framing` and `encoding`')}\n`
  return replacements(name, wanted, wanted.split('_'))
}

function replacements(name: string, wanted: string, words: readonly string[]): string | undefined {
  const isNamed = (one: string) => plainName(one) === plainName(wanted)
  const replaced = Object.entries(replacedTransforms)
    .filter(([each]) => isNamed(each))
    .map(([each, becomes]) => `${each}  (transform)\n  Use ${becomes}.\n`)
  const identifying = words.filter((word) => !plainWords.has(word))
  const absent = Object.entries(absentOf).flatMap(([kind, list]) =>
    list
      .filter((each) => isNamed(each.name) || each.name.split('_').some((part) => identifying.includes(part)))
      .map((each) => `${each.name}  (${kind})\n  ${sentence(each.reason)} ${each.nearest}\n`),
  )
  if (replaced.length + absent.length === 0) return undefined
  return `Penstock has no component named ${name}. Other agents do; Penstock replaces it as follows:\n\n${[...replaced, ...absent].join('\n')}`
}

/** The replacement for a component that another agent has under this name; undefined if none has. */
export function replacementOf(kind: keyof typeof absentOf, name: string): string | undefined {
  if (kind === 'transform' && Object.hasOwn(replacedTransforms, name))
    return `Use ${replacedTransforms[name as keyof typeof replacedTransforms]}.`
  const absent = absentOf[kind].find((each) => each.name === name)
  return absent === undefined ? undefined : `${sentence(absent.reason)} ${absent.nearest}`
}

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`
