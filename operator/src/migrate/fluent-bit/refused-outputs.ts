// Outputs of Fluent Bit without a sink, and alternatives.

import { none, type Refusal } from '../page.ts'

const byHttp = 'Use the sink `http`, with a receiver that writes to this destination.'

export const refusedOutputs: readonly Refusal[] = [
  none(
    'kafka',
    'there is no sink for the Kafka protocol',
    'Run a Kafka REST proxy, and change the output to `kafka-rest`, which can be converted; or use the sink `message_broker` (Pulsar).',
  ),
  none(
    's3',
    'there is no sink for object stores',
    'Send to a store that archives to S3 itself, as `log_aggregator` and `search_engine` can; or keep Fluent Bit after Penstock: its input `http` accepts requests of the sink `http`.',
  ),
  none(
    'forward',
    'there is no sink for the forward protocol of Fluentd',
    'Let the receiver listen for HTTP (`in_http` of Fluentd, the input `http` of Fluent Bit), and change the output to `http` with `Format json`, which can be converted. The address then contains the tag.',
  ),
  {
    name: 'opentelemetry',
    reason: '`convert` does not make the form of OTLP from the record',
    nearest:
      'Use the sink `http` with `encoding: {codec: json}`, `payload_prefix` \'{"resourceLogs":\', `payload_suffix` "}" and the address with `Logs_uri`, behind a remap transform that makes `{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": [{"timeUnixNano": "…", "body": {"stringValue": "…"}}]}]}` of the event. `penstock convert` writes this sink and this transform for the exporter `otlphttp` of an OpenTelemetry collector.',
    isHere: true,
  },
  ...[
    'gelf',
    'syslog',
    'tcp',
    'udp',
    'influxdb',
    'cloudwatch_logs',
    'kinesis_firehose',
    'kinesis_streams',
    'stackdriver',
    'bigquery',
    'azure_blob',
    'azure_kusto',
    'pgsql',
    'nats',
    'websocket',
    'oracle_log_analytics',
    'td',
    'skywalking',
    'vivo_exporter',
    'azure_logs_ingestion',
    'plot',
    'flowcounter',
    'counter',
    'slack',
    'exit',
    // Programs beside Fluent Bit, with the names that they had before it could write to these destinations itself.
    'cloudwatch',
    'firehose',
    'kinesis',
    'gcs',
    'calyptia',
    'zeek',
    'lib',
  ].map((name) => none(name, 'there is no sink for this destination', byHttp)),
  ...['prometheus_exporter', 'prometheus_remote_write'].map((name) =>
    none(name, 'there is no source for these metrics', 'Let a Prometheus server scrape the agents.'),
  ),
]
