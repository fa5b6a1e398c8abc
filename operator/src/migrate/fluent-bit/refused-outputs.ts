// Outputs of Fluent Bit for which there is no sink, and what to use in their place.

import type { Refusal } from '../page.ts'

const none = (name: string, reason: string, nearest: string): Refusal => ({ name, reason, nearest })
const byHttp = 'Use the sink `http` with a receiver that writes to it.'

export const refusedOutputs: readonly Refusal[] = [
  none(
    'kafka',
    'there is no sink for the protocol of Kafka',
    'Let a REST proxy of Kafka listen, and change the output to `kafka-rest`, which is converted; or use the sink `message_broker` (Pulsar).',
  ),
  none(
    's3',
    'there is no sink for stores of objects',
    'Send to a store that archives to S3 itself, as `log_aggregator` and `search_engine` can; or keep Fluent Bit behind Penstock: its input `http` takes what the sink `http` sends.',
  ),
  none(
    'forward',
    'there is no sink for the protocol of Fluentd',
    'Let the receiver listen for HTTP (`in_http` of Fluentd, the input `http` of Fluent Bit), and change the output to `http` with `Format json`, which is converted. The tag is a part of the address there.',
  ),
  ...[
    'gelf',
    'syslog',
    'tcp',
    'udp',
    'influxdb',
    'opentelemetry',
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
    'logdna',
    'oracle_log_analytics',
    'td',
    'skywalking',
    'vivo_exporter',
    'chronicle',
    'azure_logs_ingestion',
    'plot',
    'flowcounter',
    'counter',
    'slack',
    'exit',
  ].map((name) => none(name, 'there is no sink for it', byHttp)),
  ...['prometheus_exporter', 'prometheus_remote_write'].map((name) =>
    none(name, 'figures have no source here', 'Let a Prometheus server read the agents.'),
  ),
]
