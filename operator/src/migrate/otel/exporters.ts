// Converts exporters to sinks. A transform before the sink gives the record the form that the exporter would have sent.

import { literalTemplate } from '../escape.ts'
import { none, type Refusal } from '../page.ts'
import { allCompressions, connectionOf, deliveryOptions, httpItself, httpOptions } from './connection.ts'
import { clickhouseForm, datadogForm, form, hecForm, lokiForm, otlpJson, victoriaForm, withIntegers } from './forms.ts'
import { type Context, each, type Mapping, type Part, type SinkPart } from './mapping.ts'
import { mezmo } from './mezmo.ts'
import { debug, logging } from './printers.ts'
import { elasticsearch, opensearch } from './search-exporters.ts'

const otlpEncoding = {
  encoding: { codec: 'json' },
  payload_prefix: '{"resourceLogs":',
  payload_suffix: '}',
} as const

const endsAt = (address: string, path: string) =>
  address.endsWith(path) ? address : `${address.replace(/\/+$/, '')}${path}`

function otlpSink(part: Part, address: string, context: Context): SinkPart {
  if (/:9428\b|\/insert\/opentelemetry/.test(address)) return victoriaSink(part, address, context)
  const uri = literalTemplate(address)
  return {
    component: { type: 'http', config: { uri, ...otlpEncoding, ...connectionOf(part, context, allCompressions) } },
    steps: otlpJson,
  }
}

/** VictoriaLogs reads OTLP only as protobuf. It also reads JSON lines. */
function victoriaSink(part: Part, address: string, context: Context): SinkPart {
  const { request = {}, ...others } = connectionOf(part, context, allCompressions)
  const given = request as { readonly headers?: Readonly<Record<string, string>> }
  const named = Object.keys(given.headers ?? {}).some((name) => name.toLowerCase() === 'vl-stream-fields')
  if (!named) {
    context.replaced(
      part.place(),
      part.id,
      'with OTLP, VictoriaLogs builds streams from all resource attributes',
      'The header `VL-Stream-Fields` names the attributes of programs and pods; add others there.',
    )
  }
  const streams = 'service.name,k8s.namespace.name,k8s.pod.name,k8s.container.name,k8s.node.name'
  const headers = named ? given.headers : { 'VL-Stream-Fields': streams, ...given.headers }
  const base = address.replace(/\/insert\/opentelemetry.*$/, '').replace(/\/v1\/logs$/, '')
  return {
    component: {
      type: 'http',
      config: {
        uri: literalTemplate(`${base.replace(/\/+$/, '')}/insert/jsonline?_msg_field=_msg&_time_field=_time`),
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        ...others,
        request: { ...given, headers },
      },
    },
    steps: withIntegers(context, victoriaForm),
  }
}

const otlpHttp: Mapping<SinkPart> = {
  name: 'otlphttp',
  becomes: '`http` with OTLP in JSON, also for the OTLP endpoint of Loki; lines of JSON for VictoriaLogs',
  options: { ...httpOptions, logs_endpoint: 'the address' },
  itself: {
    ...httpItself,
    encoding: 'the sink writes JSON, which OTLP/HTTP receivers must accept',
    traces_endpoint: 'Penstock does not collect traces',
    metrics_endpoint: 'the sink accepts only logs',
    profiles_endpoint: 'Penstock does not collect profiles',
  },
  build: (part, context) => {
    const given = part.text('logs_endpoint')
    const address = given ?? `${(part.text('endpoint') ?? 'http://localhost:4318').replace(/\/+$/, '')}/v1/logs`
    return otlpSink(part, address, context)
  },
}

const otlpGrpc: Mapping<SinkPart> = {
  name: 'otlp',
  becomes: '`http` with OTLP in JSON; port 4318 replaces 4317',
  options: httpOptions,
  itself: {
    ...httpItself,
    balancer_name: 'the sink uses one endpoint',
    keepalive: 'the sink manages its connections',
    wait_for_ready: 'the sink retries',
    authority: 'the address names the server',
  },
  build: (part, context) => {
    const given = part.text('endpoint') ?? 'localhost:4317'
    const isPlain = part.flag('tls.insecure', false) || given.startsWith('http://')
    const bare = given.replace(/^(?:https?|dns|grpc):\/{2,3}/, '').replace(/:4317\b/, ':4318')
    const refusal = {
      reason: 'no sink sends OTLP over gRPC: requests would need protobuf messages and trailers of HTTP/2',
      nearest:
        'The sink sends OTLP over HTTP with JSON to port 4318 in place of 4317. Let the receiver listen there: in a collector `receivers.otlp.protocols.http.endpoint: 0.0.0.0:4318`, and port 4318 in its Service. To use another address, set `uri` of the sink.',
    }
    context.missing(part.place(), part.id, refusal, 'exporter')
    return otlpSink(part, `${isPlain ? 'http' : 'https'}://${bare}/v1/logs`, context)
  },
}

const nothing: Mapping<SinkPart> = {
  name: 'nop',
  becomes: '`blackhole`',
  options: {},
  build: () => ({ component: { type: 'blackhole' }, steps: [] }),
}

const file: Mapping<SinkPart> = {
  name: 'file',
  becomes: '`file` with OTLP in JSON, a line for each record',
  options: {
    path: '`path`',
    format: 'a gap unless it is `json`',
    compression: '`compression`',
    rotation: 'a date in `path`, which begins a new file each day; a gap for sizes and the number of old files',
    group_by: 'a gap: `path` is a template',
  },
  itself: {
    flush_interval: 'the sink writes immediately',
    append: 'the sink always appends',
    create_directory: 'the sink creates directories',
    directory_permissions: 'the agent sets the permissions of directories',
    encoding: 'lines are JSON',
  },
  build: (part, context) => {
    for (const [option, reason, nearest] of [
      [
        'rotation',
        'the sink begins a new file each day, by the date in `path`. It has no limit of bytes (`max_megabytes`), and never removes or renames files (`max_days`, `max_backups`)',
        'Remove old files with a job, or send the events to a destination with a limit of its own. For smaller files, add hours to the date in `path`: `%Y-%m-%d-%H`.',
      ],
      [
        'group_by',
        'the sink does not take the file name from a resource attribute',
        'Use a template with a field in `path`.',
      ],
    ] as const) {
      if (part.has(option)) context.gap(part.place([option]), `${part.id}: ${option}`, reason, nearest)
    }
    if ((part.text('format') ?? 'json') !== 'json') {
      context.gap(
        part.place(['format']),
        `${part.id}: format`,
        'the sink does not write protobuf',
        'It writes lines of JSON.',
      )
    }
    const compression = part.text('compression')
    const path = literalTemplate(part.text('path') ?? '/tmp/otel.json')
    const config = {
      path: part.has('rotation') ? path.replace(/(\.[^./]+)?$/, '-%Y-%m-%d$1') : path,
      encoding: { codec: 'json' },
      ...(compression === 'zstd' ? { compression } : {}),
    }
    return { component: { type: 'file', config }, steps: [...otlpJson, ...line] }
  },
}

const loki: Mapping<SinkPart> = {
  name: 'loki',
  becomes:
    '`log_aggregator`; the hints `loki.attribute.labels` and `loki.resource.labels` name the labels, and `loki.tenant` the tenant',
  options: { ...httpOptions, default_labels_enabled: 'labels `exporter`, `job`, `instance` and `level`' },
  itself: httpItself,
  build: (part, context) => {
    const address = part.text('endpoint') ?? 'http://localhost:3100/loki/api/v1/push'
    const split = /^(https?:\/\/[^/]+|[^/]+)(\/.*)?$/.exec(address)
    const { request = {}, ...others } = connectionOf(part, context, ['gzip'])
    const { headers = {}, ...limits } = request as { readonly headers?: Readonly<Record<string, string>> }
    const tenant = Object.entries(headers).find(([name]) => name.toLowerCase() === 'x-scope-orgid')
    const rest = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== tenant?.[0]))
    const made = { ...limits, ...(Object.keys(rest).length > 0 ? { headers: rest } : {}) }
    const enabled = (name: string) => part.flag(`default_labels_enabled.${name}`, true)
    const config = {
      endpoint: split?.[1] ?? address,
      ...(split?.[2] === undefined ? {} : { path: split[2] }),
      labels: { '*': '{{ labels }}' },
      out_of_order_action: 'accept',
      encoding: { codec: 'text' },
      ...others,
      ...(tenant === undefined ? {} : { tenant_id: literalTemplate(tenant[1]) }),
      ...(Object.keys(made).length > 0 ? { request: made } : {}),
    }
    const defaults = {
      exporter: enabled('exporter'),
      job: enabled('job'),
      instance: enabled('instance'),
      level: enabled('level'),
    }
    const steps = withIntegers(context, lokiForm(defaults))
    if (!context.mentions('loki.tenant')) return { component: { type: 'log_aggregator', config }, steps }
    const given = tenant?.[1] ?? ''
    if (given.includes('SECRET[')) {
      const reason = 'a tenant from a Secret replaces that of the hint `loki.tenant`'
      context.gap(
        part.place(['headers']),
        `${part.id}: X-Scope-OrgID`,
        reason,
        'Set `tenant_id` of the sink without a Secret.',
      )
      return { component: { type: 'log_aggregator', config }, steps }
    }
    const hinted = { ...config, tenant_id: '{{ tenant }}' }
    return {
      component: { type: 'log_aggregator', config: hinted },
      steps: withIntegers(context, lokiForm(defaults, given)),
    }
  },
}

const splunk: Mapping<SinkPart> = {
  name: 'splunkhec',
  becomes: '`http` to the event collector',
  options: {
    ...httpOptions,
    token: 'a header',
    source: 'a field',
    sourcetype: 'a field',
    index: 'a field',
    'otel_to_hec_fields.severity_text': 'the name of a field',
    'otel_to_hec_fields.severity_number': 'the name of a field',
    'hec_metadata_to_otel_attrs.source': 'the attribute with the source',
    'hec_metadata_to_otel_attrs.sourcetype': 'the attribute with the source type',
    'hec_metadata_to_otel_attrs.index': 'the attribute with the index',
    'hec_metadata_to_otel_attrs.host': 'the attribute with the host',
    disable_compression: '`compression`',
  },
  itself: {
    ...httpItself,
    max_content_length_logs: 'the sink builds its own batches',
    max_content_length_metrics: 'the sink accepts only logs',
    max_content_length_traces: 'the sink accepts only logs',
    health_path: '`healthcheck` of the sink',
    telemetry: 'the agent has its own metrics',
    export_raw: {
      how: 'events have the form of the event collector',
      unless: /true/,
      reason: 'the sink sends events with their fields, not only the line',
      nearest: 'Set `encoding.codec: text` of the sink, and remove the transform before it.',
    },
    max_event_size: 'the destination limits the size of events',
    log_data_enabled: 'the sink accepts only logs',
    profiling_data_enabled: 'the sink accepts only logs',
    splunk_app_name: 'requests name the agent',
    splunk_app_version: 'requests name the agent',
    health_check_enabled: '`healthcheck` of the sink',
    max_connections: 'the sink manages its connections',
    use_multi_metric_format: 'the sink accepts only logs',
  },
  build: (part, context) => {
    const { request = {}, ...others } = connectionOf(part, context, allCompressions)
    const given = request as { readonly headers?: object }
    const address = part.text('endpoint') ?? ''
    const config = {
      uri: literalTemplate(
        /\/services\/collector/.test(address) ? address : endsAt(address, '/services/collector/event'),
      ),
      encoding: { codec: 'json' },
      framing: { method: 'newline_delimited' },
      ...others,
      ...(part.flag('disable_compression', false) ? { compression: 'none' } : {}),
      request: { ...given, headers: { ...given.headers, Authorization: `Splunk ${part.text('token') ?? ''}` } },
    }
    const fixed = { source: part.text('source'), sourcetype: part.text('sourcetype'), index: part.text('index') }
    const severity = {
      text: part.text('otel_to_hec_fields.severity_text') ?? 'otel.log.severity.text',
      number: part.text('otel_to_hec_fields.severity_number') ?? 'otel.log.severity.number',
    }
    const named = (name: string, byDefault: string) => part.text(`hec_metadata_to_otel_attrs.${name}`) ?? byDefault
    const from = {
      source: named('source', 'com.splunk.source'),
      sourcetype: named('sourcetype', 'com.splunk.sourcetype'),
      index: named('index', 'com.splunk.index'),
      host: named('host', 'host.name'),
    }
    return { component: { type: 'http', config }, steps: withIntegers(context, hecForm(fixed, severity, from)) }
  },
}

const datadog: Mapping<SinkPart> = {
  name: 'datadog',
  becomes: '`monitor_a_logs`',
  options: {
    'api.key': '`default_api_key`',
    'api.site': '`site`',
    'logs.endpoint': '`endpoint`',
    ...tlsAndDelivery(),
  },
  itself: {
    ...httpItself,
    'api.fail_on_invalid_key': '`healthcheck` of the sink',
    'logs.use_compression': 'the sink compresses',
    'logs.compression_level': 'the sink compresses',
    'logs.batch_wait': 'the sink builds its own batches',
    'logs.dump_payloads': '`penstock tap` shows events',
    hostname: 'the resource attribute `host.name` names the host',
    host_metadata: 'the sink does not send metadata of the machine',
    metrics: 'the sink accepts only logs',
    traces: 'Penstock does not collect traces',
    hostname_detection_timeout: 'the resource attribute `host.name` names the host',
  },
  build: (part, context) => {
    const site = part.text('api.site')
    const endpoint = part.text('logs.endpoint')
    const config = {
      default_api_key: part.text('api.key') ?? '',
      ...(site === undefined ? {} : { site }),
      ...(endpoint === undefined ? {} : { endpoint }),
      ...connectionOf(part, context, ['gzip', 'snappy', 'zlib', 'zstd']),
    }
    return { component: { type: 'monitor_a_logs', config }, steps: withIntegers(context, datadogForm) }
  },
}

function tlsAndDelivery(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(httpOptions).filter(([name]) => name.startsWith('tls.') || name in deliveryOptions),
  )
}

const line = form('message = .\n. = { "resourceLogs": [message] }', 'Each message contains one record.')

/** Options of the client of the message broker, which the sink manages itself. */
const clientItself = Object.fromEntries(
  ['operation_timeout', 'connection_timeout', 'map_connections_per_broker', 'timeout'].map((name) => [
    name,
    'the sink manages its connections',
  ]),
)

const pulsar: Mapping<SinkPart> = {
  name: 'pulsar',
  becomes: '`message_broker` with OTLP in JSON, a message for each record',
  options: {
    ...Object.fromEntries(Object.entries(deliveryOptions).filter(([name]) => name !== 'timeout')),
    endpoint: '`endpoint`',
    topic: '`topic`',
    encoding: 'a gap unless it is `otlp_json`',
    'auth.token.token': '`auth.token`',
    'producer.compression_type': '`compression`',
    tls_trust_certs_file_path: '`tls.ca_file`',
    tls_allow_insecure_connection: '`tls.verify_certificate`, `tls.verify_hostname`',
  },
  itself: {
    ...httpItself,
    ...clientItself,
    ...Object.fromEntries(
      [
        'batch_builder_type',
        'batching_max_messages',
        'batching_max_publish_delay',
        'batching_max_size',
        'compression_level',
        'disable_batching',
        'disable_block_if_queue_full',
        'hashing_scheme',
        'max_pending_messages',
        'max_reconnect_broker',
        'partitions_auto_discovery_interval',
        'send_timeout',
      ].map((name) => [`producer.${name}`, 'the sink builds its own batches']),
    ),
  },
  build: (part, context) => {
    if ((part.text('encoding') ?? 'otlp_proto') !== 'otlp_json') {
      const reason = 'the sink writes OTLP only as JSON'
      context.gap(
        part.place(part.has('encoding') ? ['encoding'] : []),
        `${part.id}: encoding`,
        reason,
        'Let the consumer read OTLP as JSON: `encoding: otlp_json` of the receiver.',
      )
    } else {
      const reason = 'each message contains one record, and not a batch of records'
      context.replaced(part.place(['encoding']), `${part.id}: encoding`, reason, 'Nothing: consumers read both.')
    }
    const { request = {}, buffer } = connectionOf(part, context, allCompressions)
    const { headers: _, timeout_secs: __, ...limits } = request as Record<string, unknown>
    const compression = part.text('producer.compression_type')
    const ca = part.text('tls_trust_certs_file_path')
    const isInsecure = part.flag('tls_allow_insecure_connection', false)
    const token = part.text('auth.token.token')
    const tls = {
      ...(ca === undefined ? {} : { ca_file: ca }),
      ...(isInsecure ? { verify_certificate: false, verify_hostname: false } : {}),
    }
    const config = {
      endpoint: part.text('endpoint') ?? 'pulsar://localhost:6650',
      topic: literalTemplate(part.text('topic') ?? 'otlp_logs'),
      encoding: { codec: 'json' },
      ...(compression === undefined ? {} : { compression }),
      ...(token === undefined ? {} : { auth: { name: 'token', token } }),
      ...(Object.keys(tls).length === 0 ? {} : { tls }),
      ...(Object.keys(limits).length === 0 ? {} : { request: limits }),
      ...(buffer === undefined ? {} : { buffer }),
    }
    return { component: { type: 'message_broker', config }, steps: [...otlpJson, ...line] }
  },
}

/** The parts of an address of ClickHouse: the path is the database, and parameters may name it and a user. */
function clickhouseAddress(given: string) {
  const [, scheme = 'tcp', login, host = '', path = '', query = ''] =
    /^(?:(\w+):\/\/)?(?:([^@/?]*)@)?([^/?]*)\/?([^?]*)(?:\?(.*))?$/.exec(given) ?? []
  const parameters = new URLSearchParams(query)
  const isHttp = /^https?$/.test(scheme)
  const isSecure = scheme === 'https' || parameters.get('secure') === 'true'
  const address = isHttp ? host : host.replace(/:9000$/, ':8123').replace(/:9440$/, ':8443')
  const [user, password] = login?.split(':') ?? []
  return {
    isHttp,
    address: `${isSecure ? 'https' : 'http'}://${address}`,
    database: path.replace(/\/+$/, '') || parameters.get('database') || undefined,
    user: user ?? parameters.get('username') ?? undefined,
    password: password ?? parameters.get('password') ?? undefined,
  }
}

const clickhouse: Mapping<SinkPart> = {
  name: 'clickhouse',
  becomes: '`http` to the HTTP port, with rows for the table of the exporter, which must exist',
  options: {
    ...httpOptions,
    username: '`auth`',
    password: '`auth`',
    database: 'the address',
    logs_table_name: 'the address',
    async_insert: 'the address',
  },
  itself: {
    ...httpItself,
    create_schema: 'the sink uses the table that the exporter has created',
    cluster_name: 'the sink uses the table that the exporter has created',
    table_engine: 'the sink uses the table that the exporter has created',
    ttl: 'the sink uses the table that the exporter has created',
    ttl_days: 'the sink uses the table that the exporter has created',
    connection_params: 'the protocol is HTTP',
    traces_table_name: 'Penstock does not collect traces',
    metrics_table_name: 'the sink accepts only logs',
    metrics_tables: 'the sink accepts only logs',
    compress: 'as `compression`',
  },
  build: (part, context) => {
    const given = part.text('endpoint') ?? ''
    const { isHttp, address, database, user, password } = clickhouseAddress(given)
    if (!isHttp) {
      context.gap(
        part.place(['endpoint']),
        `${part.id}: endpoint`,
        'the sink does not support the native protocol',
        'It sends rows over HTTP, to port 8123 instead of 9000, or 8443 instead of 9440: let the server listen there.',
      )
    }
    const named = part.text('database')
    const chosen = named === undefined || named === 'default' ? (database ?? 'default') : named
    const table = `${chosen}.${part.text('logs_table_name') ?? 'otel_logs'}`
    const parameters = new URLSearchParams({
      query: `INSERT INTO ${table} FORMAT JSONEachRow`,
      date_time_input_format: 'best_effort',
      async_insert: part.flag('async_insert', true) ? '1' : '0',
    })
    const username = part.text('username') ?? user
    const config = {
      uri: literalTemplate(`${address}/?${parameters}`),
      encoding: { codec: 'json' },
      framing: { method: 'newline_delimited' },
      ...connectionOf(part, context, allCompressions),
      ...(username === undefined
        ? {}
        : { auth: { strategy: 'basic', user: username, password: part.text('password') ?? password ?? '' } }),
    }
    return { component: { type: 'http', config }, steps: withIntegers(context, clickhouseForm) }
  },
}

export const exporters: readonly Mapping<SinkPart>[] = [
  otlpHttp,
  otlpGrpc,
  loki,
  elasticsearch,
  opensearch,
  splunk,
  datadog,
  clickhouse,
  pulsar,
  mezmo,
  file,
  debug,
  logging,
  nothing,
]

const byHttp =
  'Use the sink `http` with a receiver that writes to this destination, for instance a collector that listens for OTLP.'

export const refusedExporters: readonly Refusal[] = [
  none(
    'kafka',
    'there is no sink for this protocol',
    'Use the sink `message_broker` (Pulsar), or a bridge that accepts HTTP.',
  ),
  ...each(
    ['prometheusremotewrite', 'prometheus', 'influxdb', 'signalfx'],
    'there is no source for these metrics',
    'Collect them with Prometheus or another metrics agent; `remote_write_metrics` sends the metrics that Penstock has.',
  ),
  {
    name: 'azuremonitor',
    reason: '`convert` does not convert this exporter',
    nearest: 'Use the sink `cloud_monitor_logs` with `customer_id`, `shared_key` and `log_type`.',
    isHere: true,
  },
  {
    name: 'sematext',
    reason: '`convert` does not convert this exporter',
    nearest: 'Use the sink `monitor_c_logs` with `token` and `region`.',
    isHere: true,
  },
  {
    name: 'newrelic',
    reason: '`convert` does not convert this exporter',
    nearest: 'Use the sink `observability_d` with `api: logs`.',
    isHere: true,
  },
  {
    name: 'logscale',
    reason: '`convert` does not convert this exporter',
    nearest: 'Use the sink `logsvc_b_logs` with `token`.',
    isHere: true,
  },
  ...each(
    ['jaeger', 'zipkin', 'sapm', 'otelarrow', 'loadbalancing', 'tempo'],
    'Penstock does not collect traces',
    'Keep the collector for traces.',
  ),
  ...each(
    [
      'awss3',
      'awscloudwatchlogs',
      'awskinesis',
      'awsxray',
      'awsemf',
      'googlecloud',
      'googlecloudpubsub',
      'googlecloudstorage',
      'azureblob',
      'azuredataexplorer',
      'syslog',
      'tcp',
      'rabbitmq',
      'sumologic',
      'coralogix',
      'logzio',
      'honeycombmarker',
      'dynatrace',
      'alibabacloud_logservice',
      'tencentcloud_logservice',
      'cassandra',
      'doris',
      'bmchelix',
      'logicmonitor',
      'sentry',
      'mongodb',
      'faro',
    ],
    'there is no sink for this destination',
    byHttp,
  ),
]
