// Converts Fluentd outputs to sinks.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { secret } from '../fluent-bit/connection.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { none, type Refusal } from '../page.ts'
import { eventTime } from '../unix-time.ts'
import { datadog } from './datadog.ts'
import { childrenOf, isOn, listOf, objectIn, type Plugged, parameter } from './element.ts'
import { file } from './file-output.ts'
import { formatItself, formatLines, formatOptions } from './formats.ts'
import { accessorOf, recordPath } from './ruby.ts'
import { rubyTimeFormat } from './ruby-time.ts'
import { search } from './search.ts'
import { splunk } from './splunk.ts'
import type { Tag } from './tags.ts'
import {
  chunkTemplate,
  headersOf,
  login,
  type OutputPlugin,
  security,
  stepsOf,
  tagLines,
  translated,
} from './translation.ts'

/** Options of Fluent Bit for labels from fields, and labels with fixed values. */
function lokiLabels(section: Plugged, context: Context, areExtracted: boolean): readonly [string, string][] {
  const labels: [string, string][] = []
  for (const { key, value } of childrenOf(section.element, 'label').flatMap(({ parameters }) => parameters)) {
    const path = recordPath(value === '' ? key : value)
    labels.push(['labels', `${key}=${path === undefined ? value : accessorOf(path)}`])
  }
  const extra = objectIn(lastValue(section, 'extra_labels'))
  if (extra === undefined) {
    const nearest = 'Add the labels to `labels` of the sink.'
    context.gap(section, 'loki: extra_labels', 'the value is not an object', nearest)
  }
  for (const [name, value] of Object.entries(extra ?? {})) labels.push(['labels', `${name}=${value}`])
  return labels.length === 0 && !areExtracted ? [['labels', 'job=fluentd']] : labels
}

const loki = translated({
  name: 'loki',
  as: 'loki',
  becomes: '`log_aggregator`',
  names: { ...login, ...security, compress: 'compress' },
  options: {
    url: '`endpoint`',
    tenant: '`tenant_id`',
    extra_labels: '`labels`',
    label: '`labels`',
    remove_keys: '`encoding.except_fields`',
    line_format: '`encoding.codec`',
    extract_kubernetes_labels: 'all labels of the pod in `labels`',
    drop_single_key: '`encoding.codec`',
    insecure_tls: '`tls`',
    bearer_token_file: '`auth`',
    custom_headers: '`request.headers`',
  },
  itself: {
    include_thread_label: 'labels alone define the streams',
    cert: 'as `tls`',
  },
  also: (section, context, tag) => {
    const read = (key: string) => lastValue(section, key)
    const url = /^(https?):\/\/([^:/]+|\$\{\w+\})(?::(\d+))?(\/.*)?$/.exec(
      read('url') ?? 'https://logs-prod-us-central1.grafana.net',
    )
    const areExtracted = isOn(read('extract_kubernetes_labels'), false)
    const labels = lokiLabels(section, context, areExtracted)
    if (read('bearer_token_file') !== undefined) {
      context.gap(
        section,
        'loki: bearer_token_file',
        'the sink does not read a token from a file',
        'Set `auth: {strategy: bearer, token: SECRET[…]}`.',
      )
    }
    const headers = headersOf(section, 'custom_headers', context)
    const tenant = read('tenant') === undefined ? undefined : chunkTemplate(read('tenant') ?? '', tag)
    if (read('tenant') !== undefined && tenant === undefined) {
      const reason = 'the name of the tenant contains parts of tags'
      context.gap(section, `loki: tenant ${read('tenant')}`, reason, 'Set `tenant_id` to a template with fields.')
    }
    const format = read('line_format') ?? 'key_value'
    // A field that becomes a label is removed from the record.
    const ofLabels = childrenOf(section.element, 'label').flatMap(({ parameters }) =>
      parameters.map(({ key, value }) => (value === '' ? key : value)),
    )
    const removed = [...ofLabels, ...listOf(read('remove_keys'))].flatMap((key) => {
      const path = recordPath(key)
      return path === undefined ? [] : [accessorOf(path)]
    })
    return {
      options: {
        host: url?.[2] ?? 'loki',
        port: url?.[3] ?? (url?.[1] === 'https' ? '443' : '80'),
        uri: `${(url?.[4] ?? '').replace(/\/+$/, '')}/loki/api/v1/push`,
        tls: url?.[1] === 'https' ? 'on' : 'off',
        'tls.verify': isOn(read('insecure_tls'), false) ? 'off' : 'on',
        line_format: format === 'json' ? 'json' : 'plugin',
        drop_single_key: isOn(read('drop_single_key'), false) ? 'raw' : undefined,
        auto_kubernetes_labels: areExtracted ? 'on' : undefined,
      },
      steps: stepsOf([...(tenant?.lines ?? []), ...textLabels(ofLabels)]),
      config: {
        ...(tenant === undefined ? {} : { tenant_id: secret(tenant.template) }),
        ...(Object.keys(headers).length === 0 ? {} : { request: { headers } }),
        // The whole address may be a variable.
        ...(/^\$\{\w+\}/.test(read('url') ?? '') ? { endpoint: secret(read('url') ?? '') } : {}),
      },
      several: [...labels, ...removed.map((key): [string, string] => ['remove_keys', key])],
    }
  },
})

/** Only texts become labels. The metadata of a pod has no other values. */
const textLabels = (names: readonly string[]): readonly string[] =>
  names.flatMap((name) => {
    const path = recordPath(name)
    if (path === undefined || path[0] === 'kubernetes' || path[0] === 'stream') return []
    return [`if !is_string(${fieldLiteral(path)}) { del(${fieldLiteral(path)}) }`]
  })

/** Headers whose values depend on the events. Lines set the values of their templates. */
function filledHeaders(
  section: Plugged,
  context: Context,
  tag: Tag | undefined,
): { readonly headers: Readonly<Record<string, string>>; readonly lines: readonly string[] } {
  const option = 'headers_from_placeholders'
  const given = objectIn(lastValue(section, option))
  if (given === undefined) headersOf(section, option, context)
  const found = Object.entries(given ?? {}).map(([name, text]) => {
    const filled = chunkTemplate(text, tag)
    if (filled === undefined) {
      const nearest = 'Set `request.headers` to a template with fields of the event.'
      context.gap(section, `http: ${option} ${name}`, 'the header contains parts of tags', nearest)
    }
    return { name, template: secret(filled?.template ?? text), lines: filled?.lines ?? [] }
  })
  const headers = Object.fromEntries(found.map(({ name, template }) => [name, template]))
  return { headers, lines: found.flatMap(({ lines }) => lines) }
}

/** Types of content that the plugin states by itself. */
const contentTypes: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  ltsv: 'text/tab-separated-values',
}

const asText = { encoding: { codec: 'text' }, framing: { method: 'newline_delimited' } } as const

const http = translated({
  name: 'http',
  as: 'http',
  becomes: '`http`',
  names: {
    ...security,
    ...login,
    'auth.username': 'http_user',
    'auth.password': 'http_passwd',
    http_method: 'http_method',
    cacert_file: 'tls.ca_file',
  },
  options: {
    endpoint: '`uri`',
    endpoint_url: '`uri`',
    headers: '`request.headers`',
    headers_from_placeholders: '`request.headers`, with templates',
    custom_headers: 'as `headers`',
    proxy: '`proxy`',
    ssl_no_verify: '`tls`',
    compress_request: '`compression`',
    json_array: '`framing`',
    'format.@type': '`encoding`',
    ...formatOptions,
    'auth.method': '`auth`',
    content_type: 'a header',
    tls_verify_mode: '`tls`',
    compress: '`compression`',
  },
  itself: {
    ...formatItself,
    serializer: {
      how: 'the sink sends JSON',
      unless: /^(?!json$)/,
      reason: 'the sink sends JSON',
      nearest: 'Configure the receiver to read lines of JSON.',
    },
    open_timeout: '`request.timeout_secs`',
    read_timeout: '`request.timeout_secs`',
    retryable_response_codes: 'the sink retries requests that may succeed later',
    recoverable_status_codes: 'the sink retries requests that may succeed later',
    tls_version: 'the agent negotiates TLS',
    tls_ciphers: 'the agent negotiates TLS',
    ssl_timeout: '`request.timeout_secs`',
    error_response_as_unrecoverable: 'the sink discards and counts rejected events',
    bulk_request: '`batch` configures requests',
    rate_limit_msec: 'each request waits for its response',
    raise_on_error: 'the sink discards and counts rejected events',
    authentication: '`auth`',
    reuse_connections: 'the sink reuses connections',
  },
  also: (section, context, tag) => {
    const read = (key: string) => lastValue(section, key)
    const endpoint = read('endpoint') ?? read('endpoint_url') ?? 'http://localhost/'
    const uri = chunkTemplate(endpoint, tag)
    if (uri === undefined)
      context.gap(
        section,
        `http: ${endpoint}`,
        'the address contains parts of tags',
        'Set `uri` to a template with fields of the event.',
      )
    const format = (read('format.@type') ?? 'json').toLowerCase()
    const lines = formatLines(section, format)
    if (format !== 'json' && lines === undefined)
      context.gap(
        section,
        `http: format ${format}`,
        `the sink sends JSON, not \`${format}\``,
        'Configure the receiver to read lines of JSON.',
      )
    const content = read('content_type') ?? (lines === undefined ? undefined : (contentTypes[format] ?? 'text/plain'))
    if (read('endpoint_url') !== undefined && read('serializer') === undefined) {
      const reason = 'the plugin sends forms unless `serializer` is `json`, and the sink sends JSON'
      context.gap(section, 'http: serializer', reason, 'Configure the receiver to read lines of JSON.')
    }
    const headers = { ...headersOf(section, 'custom_headers', context), ...headersOf(section, 'headers', context) }
    const filled = filledHeaders(section, context, tag)
    const proxy = read('proxy')
    const method = (read('auth.method') ?? 'basic').toLowerCase()
    if (method !== 'basic') {
      const reason = `the sink does not use the authentication \`${method}\``
      context.gap(section, `http: auth ${method}`, reason, 'Set `auth` of the sink to one of its strategies.')
    }
    return {
      options: {
        format: isOn(read('json_array'), false) ? 'json' : 'json_lines',
        json_date_key: 'false',
        compress: isOn(read('compress_request'), false) ? 'gzip' : read('compress'),
        'tls.verify': read('tls_verify_mode') === 'none' || isOn(read('ssl_no_verify'), false) ? 'off' : 'on',
      },
      several: [
        ...Object.entries(headers).map(([name, value]) => ['header', `${name} ${value}`] as const),
        ...(content === undefined ? [] : [['header', `Content-Type ${content}`] as const]),
      ],
      steps: [...stepsOf([...(uri?.lines ?? []), ...filled.lines]), ...stepsOf(lines ?? [])],
      config: {
        uri: secret(uri?.template ?? endpoint),
        ...(lines === undefined ? {} : asText),
        ...(proxy === undefined ? {} : { proxy: { http: secret(proxy), https: secret(proxy) } }),
        ...(Object.keys(filled.headers).length === 0 ? {} : { request: { headers: filled.headers } }),
      },
    }
  },
})

const newRelic = translated({
  name: 'newrelic',
  as: 'nrlogs',
  becomes: '`observability_d` with `api: logs`',
  names: { license_key: 'license_key', api_key: 'license_key', base_uri: 'base_uri' },
  also: () => ({ options: { compress: 'gzip' } }),
})

const stdout = translated({
  name: 'stdout',
  as: 'stdout',
  becomes: '`console`',
  names: {},
  itself: {
    'format.@type': 'the sink writes lines of JSON',
    output_type: 'the sink writes lines of JSON',
    'format.output_type': 'the sink writes lines of JSON',
    format: 'the sink writes lines of JSON',
  },
  also: () => ({ options: { format: 'json_lines', json_date_key: 'false' } }),
})

const azure = translated({
  name: 'azure-loganalytics',
  as: 'azure',
  becomes: '`cloud_monitor_logs`',
  names: { customer_id: 'customer_id', shared_key: 'shared_key', log_type: 'log_type' },
  options: {
    endpoint: '`host`',
    azure_resource_id: '`azure_resource_id`',
    time_generated_field: 'the field for the time, which the sink always sends',
    add_time_field: 'a field for the time',
    time_field_name: 'a field for the time',
    time_format: 'the format of that field',
    add_tag_field: 'a field for the tag',
    tag_field_name: 'a field for the tag',
  },
  itself: { localtime: 'the zone of the time is UTC, as in containers' },
  also: (section, context, tag) => {
    const read = (key: string) => lastValue(section, key)
    const timed = read('time_generated_field') || undefined
    if (timed === undefined) {
      const reason =
        'the sink names the field with the time, `@timestamp`; without the option, the service takes the time of arrival'
      context.replaced(section, 'azure-loganalytics: time', reason, 'Nothing, unless queries compare the two times.')
    }
    const format = textLiteral(rubyTimeFormat(read('time_format') ?? '%s'))
    const lines = [
      ...(isOn(read('add_time_field'), true)
        ? [`${fieldLiteral([read('time_field_name') ?? 'time'])} = format_timestamp(${eventTime}, ${format}) ?? null`]
        : []),
      ...(isOn(read('add_tag_field'), false) ? tagLines(read('tag_field_name') ?? 'tag', section, context, tag) : []),
      ...(timed === undefined
        ? []
        : [`.timestamp = parse_timestamp(to_string(${fieldLiteral([timed])}) ?? "", "%+") ?? .timestamp`]),
    ]
    return {
      options: { time_key: timed },
      steps: stepsOf(lines),
      config: {
        ...(read('endpoint') === undefined ? {} : { host: secret(read('endpoint') ?? '') }),
        ...(read('azure_resource_id') ? { azure_resource_id: secret(read('azure_resource_id') ?? '') } : {}),
      },
    }
  },
})

const nothing = translated({
  name: 'null',
  as: 'null',
  becomes: '`blackhole`',
  names: {},
  itself: { never_flush: 'the sink discards events' },
})

export const outputs: readonly OutputPlugin[] = [
  search('elasticsearch'),
  search('elasticsearch_dynamic'),
  search('elasticsearch_data_stream'),
  search('opensearch'),
  search('opensearch_data_stream'),
  search('aws-elasticsearch-service'),
  loki,
  http,
  { ...http, name: 'out_http' },
  splunk('splunk_hec'),
  splunk('splunk'),
  datadog,
  azure,
  newRelic,
  stdout,
  file,
  nothing,
]

/** Options of an output that are read elsewhere: those of `<store>` and of other elements that name servers. */
export function secondaryOf(section: Plugged): string | undefined {
  const [secondary] = childrenOf(section.element, 'secondary')
  return secondary === undefined ? undefined : (parameter(secondary, '@type') ?? 'file')
}

const byHttp = 'Use the sink `http`, with a receiver that writes to this destination.'

export const refusedOutputs: readonly Refusal[] = [
  ...['kafka', 'kafka2', 'kafka_buffered', 'rdkafka', 'rdkafka2'].map((name) =>
    none(
      name,
      'there is no sink for this protocol',
      'Use the sink `message_broker` (Pulsar), or a bridge that accepts HTTP.',
    ),
  ),
  none(
    's3',
    'there is no sink for object stores',
    'Send to a collector with the sink `http`, and let it store objects.',
  ),
  none(
    'gcs',
    'there is no sink for object stores',
    'Send to a collector with the sink `http`, and let it store objects.',
  ),
  ...['azurestorage', 'azure-storage-append-blob', 'oss', 'webhdfs', 'swift'].map((name) =>
    none(
      name,
      'there is no sink for object stores',
      'Send to a collector with the sink `http`, and let it store objects.',
    ),
  ),
  ...['forward', 'secure_forward'].map((name) =>
    none(name, 'there is no sink for this protocol', 'Let Fluentd listen with `in_http`, and use the sink `http`.'),
  ),
  ...[
    'cloudwatch_logs',
    'kinesis_streams',
    'kinesis_firehose',
    'google_cloud',
    'bigquery',
    'remote_syslog',
    'syslog',
    'gelf',
    'logzio_buffered',
    'sumologic',
    'coralogix',
    'mongo',
    'influxdb',
    'exec',
    'exec_filter',
    'prometheus',
    'redis',
    'sql',
    'slack',
    'mail',
    'td',
    'tdlog',
    'flowcounter',
    'logdna',
    'papertrail',
    'graylog',
    ...'firehose kinesis_streams_aggregated stackdriver gcloud_pubsub sqs sns amazon_sns dynamodb timestream'.split(
      ' ',
    ),
    ...'amqp rabbitmq mqtt nats pulsar rocketmq redis_store mysql_bulk sentry zabbix statsd dogstatsd graphite'.split(
      ' ',
    ),
    ...'opentsdb hdfs syslog_rfc5424 heroku-syslog loggly logzio logtail dynatrace honeycomb scalyr'.split(' '),
    ...'lmlogs vmware_loginsight vmware_log_intelligence oci-logging-analytics clickhouse'.split(' '),
    ...'mattermost parseable http_ext http_buffered qingstor flowcounter_simple datacounter numeric_monitor grepcounter'.split(
      ' ',
    ),
  ].map((name) => none(name, 'there is no sink for this destination', byHttp)),
  none(
    'opentelemetry',
    'no sink sends OTLP in protobuf or over gRPC',
    'Use the sink `http` with OTLP in JSON: `uri: http://HOST:4318/v1/logs`, `encoding: {codec: json}`, `payload_prefix` and `payload_suffix` for the object `resourceLogs`, and a remap transform for its items. `penstock convert` writes all of this for the exporter `otlphttp` of an OpenTelemetry Collector.',
  ),
]
