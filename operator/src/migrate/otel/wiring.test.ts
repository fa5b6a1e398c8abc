// Connections between components, and the counterparts of exporters.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { lint, withClock } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'

type Config = Readonly<Record<string, unknown>>

function convert(config: Config) {
  const draft = new Draft()
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  const document = draft.document({ name: 'converted' })
  return { document, gaps: draft.gaps, spec: document.toJSON().spec }
}

const filelog = { include: ['/srv/app.log'], include_file_name: false }
const secret = (name: string) => '$'.concat(`{env:${name}}`)

const one = (exporter: string, options: unknown, more: Config = {}) => ({
  receivers: { filelog },
  exporters: { [exporter]: options },
  service: { pipelines: { logs: { receivers: ['filelog'], exporters: [exporter] } } },
  ...more,
})

const record = {
  message: 'hello',
  timestamp: '2026-01-01T00:00:00Z',
  observed_timestamp: '2026-01-01T00:00:01Z',
  severity_text: 'WARN',
  severity_number: 13,
  attributes: { 'log.file.name': 'a.log', http: { status: 200 } },
  resource: { attributes: { 'service.name': 'web', 'service.namespace': 'shop', 'host.name': 'n1' } },
}

interface SinkCase {
  readonly name: string
  readonly config: Config
  readonly sink: object
  /** A test of the event that the sink gets for the record. */
  readonly assert?: string
}

const otlpAssert =
  '.resource.attributes[2] == {"key": "service.namespace", "value": {"stringValue": "shop"}} && .scopeLogs[0].logRecords[0].timeUnixNano == "1767225600000000000" && .scopeLogs[0].logRecords[0].body == {"stringValue": "hello"} && .scopeLogs[0].logRecords[0].severityNumber == 13 && .scopeLogs[0].logRecords[0].attributes[0] == {"key": "http", "value": {"kvlistValue": {"values": [{"key": "status", "value": {"intValue": 200}}]}}}'

const sinks: readonly SinkCase[] = [
  {
    name: 'otlphttp to Loki, with a tenant and credentials of an extension',
    config: one(
      'otlphttp/loki',
      {
        endpoint: 'https://loki:3100/otlp/',
        headers: { 'X-Scope-OrgID': 't1' },
        auth: { authenticator: 'basicauth/loki' },
        tls: { ca_file: '/ca.pem', insecure_skip_verify: true },
        timeout: '10s',
        retry_on_failure: { enabled: true, initial_interval: '500ms', max_interval: '30s', max_elapsed_time: '0s' },
        sending_queue: { enabled: true, num_consumers: 4, queue_size: 5000, storage: 'file_storage' },
      },
      {
        extensions: { 'basicauth/loki': { client_auth: { username: 'u', password: secret('LOKI_PASSWORD') } } },
      },
    ),
    sink: {
      type: 'http',
      config: {
        uri: 'https://loki:3100/otlp/v1/logs',
        encoding: { codec: 'json' },
        payload_prefix: '{"resourceLogs":',
        payload_suffix: '}',
        compression: 'gzip',
        tls: { ca_file: '/ca.pem', verify_certificate: false, verify_hostname: false },
        auth: { strategy: 'basic', user: 'u', password: 'SECRET[env.LOKI_PASSWORD]' },
        request: {
          timeout_secs: 10,
          retry_initial_backoff_secs: 1,
          retry_max_duration_secs: 30,
          concurrency: 4,
          headers: { 'X-Scope-OrgID': 't1' },
        },
        buffer: { type: 'disk', max_size: 1_073_741_824 },
      },
    },
    assert: otlpAssert,
  },
  {
    name: 'otlphttp to VictoriaLogs',
    config: one('otlphttp', {
      logs_endpoint: 'http://vl:9428/insert/opentelemetry/v1/logs',
      compression: 'none',
      headers: { 'VL-Stream-Fields': 'service.name' },
    }),
    sink: {
      type: 'http',
      config: {
        uri: 'http://vl:9428/insert/jsonline?_msg_field=_msg&_time_field=_time',
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        compression: 'none',
        request: { headers: { 'VL-Stream-Fields': 'service.name' } },
      },
    },
    assert:
      '._msg == "hello" && ._time == t\'2026-01-01T00:00:00Z\' && ."service.name" == "web" && .http.status == 200 && .severity == "WARN"',
  },
  {
    name: 'loki',
    config: one('loki', {
      endpoint: 'http://loki:3100/loki/api/v1/push',
      headers: { 'X-Scope-OrgID': 't1' },
      default_labels_enabled: { exporter: false, job: true },
      compression: 'none',
    }),
    sink: {
      type: 'log_aggregator',
      config: {
        endpoint: 'http://loki:3100',
        path: '/loki/api/v1/push',
        labels: { '*': '{{ labels }}' },
        out_of_order_action: 'accept',
        encoding: { codec: 'text' },
        compression: 'none',
        tenant_id: 't1',
      },
    },
    assert:
      '.labels == {"job": "shop/web", "level": "WARN"} && parse_json!(.message) == {"body": "hello", "severity": "WARN", "attributes": {"log.file.name": "a.log", "http": {"status": 200}}, "resources": {"service.name": "web", "service.namespace": "shop", "host.name": "n1"}}',
  },
  {
    name: 'elasticsearch',
    config: one('elasticsearch', {
      endpoints: ['https://es:9200'],
      user: 'elastic',
      password: secret('ES_PASSWORD'),
      logs_index: 'logs-app',
      mapping: { mode: 'otel' },
      pipeline: 'p',
      retry: { max_retries: 5 },
      sending_queue: { sizer: 'items', queue_size: 2000 },
    }),
    sink: {
      type: 'search_engine',
      config: {
        endpoints: ['https://es:9200'],
        bulk: { action: 'create', index: 'logs-app' },
        encoding: { except_fields: ['timestamp'] },
        pipeline: 'p',
        compression: 'gzip',
        buffer: { max_events: 2000 },
        auth: { strategy: 'basic', user: 'elastic', password: 'SECRET[env.ES_PASSWORD]' },
        request: { retry_attempts: 5 },
      },
    },
    assert:
      '.body == {"text": "hello"} && .attributes.http.status == 200 && .resource.attributes."service.name" == "web" && .severity_text == "WARN" && ."@timestamp" == t\'2026-01-01T00:00:00Z\' && !exists(.trace_id)',
  },
  {
    name: 'elasticsearch with the mapping none and a daily index',
    config: one('elasticsearch', {
      endpoint: 'http://es:9200',
      mapping: { mode: 'none' },
      logs_index: 'otel',
      logstash_format: { enabled: true },
    }),
    sink: {
      type: 'search_engine',
      config: {
        endpoints: ['http://es:9200'],
        bulk: { action: 'create', index: 'otel-%Y.%m.%d' },
        encoding: { except_fields: ['timestamp'] },
        compression: 'gzip',
      },
    },
    assert:
      '.Body == "hello" && ."Attributes.http".status == 200 && ."Resource.service.name" == "web" && .SeverityNumber == 13',
  },
  {
    name: 'loki with a tenant by an attribute',
    config: one(
      'loki',
      { endpoint: 'http://loki:3100/loki/api/v1/push', headers: { 'X-Scope-OrgID': 'main' } },
      {
        processors: {
          resource: { attributes: [{ key: 'loki.tenant', value: 'service.namespace', action: 'insert' }] },
        },
        service: { pipelines: { logs: { receivers: ['filelog'], processors: ['resource'], exporters: ['loki'] } } },
      },
    ),
    sink: {
      type: 'log_aggregator',
      config: {
        endpoint: 'http://loki:3100',
        path: '/loki/api/v1/push',
        labels: { '*': '{{ labels }}' },
        out_of_order_action: 'accept',
        encoding: { codec: 'text' },
        compression: 'gzip',
        tenant_id: '{{ tenant }}',
      },
    },
    assert: '.tenant == "main"',
  },
  {
    name: 'elasticsearch with an index by attributes',
    config: one(
      'elasticsearch',
      { endpoint: 'http://es:9200', mapping: { mode: 'otel' }, retry: { max_requests: 2 } },
      {
        processors: {
          transform: {
            log_statements: [
              'set(log.attributes["data_stream.dataset"], "My-App")',
              'set(resource.attributes["data_stream.namespace"], "eu")',
            ],
          },
        },
        service: {
          pipelines: { logs: { receivers: ['filelog'], processors: ['transform'], exporters: ['elasticsearch'] } },
        },
      },
    ),
    sink: {
      type: 'search_engine',
      config: {
        endpoints: ['http://es:9200'],
        bulk: { action: 'create', index: '{{ %index }}' },
        encoding: { except_fields: ['timestamp'] },
        compression: 'gzip',
        request: { retry_attempts: 2 },
      },
    },
    assert: '%index == "logs-generic.otel-default" && .body.text == "hello"',
  },
  {
    name: 'opensearch',
    config: one('opensearch', {
      http: { endpoint: 'https://os:9200', tls: { insecure_skip_verify: true } },
      logs_index: 'app',
    }),
    sink: {
      type: 'search_engine',
      config: {
        endpoints: ['https://os:9200'],
        bulk: { action: 'create', index: 'app' },
        encoding: { except_fields: ['timestamp'] },
        compression: 'gzip',
        tls: { verify_certificate: false, verify_hostname: false },
      },
    },
    assert: '.body == "hello" && .severity == {"number": 13, "text": "WARN"} && .resource."service.name" == "web"',
  },
  {
    name: 'splunk_hec',
    config: one('splunk_hec', {
      endpoint: 'https://hec:8088/services/collector',
      token: secret('HEC'),
      index: 'main',
      source: 'otel',
    }),
    sink: {
      type: 'http',
      config: {
        uri: 'https://hec:8088/services/collector',
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        compression: 'gzip',
        request: { headers: { Authorization: 'Splunk SECRET[env.HEC]' } },
      },
    },
    assert:
      '.event == "hello" && .host == "n1" && .index == "main" && .source == "otel" && .fields."service.name" == "web" && .fields."otel.log.severity.text" == "WARN"',
  },
  {
    name: 'datadog',
    config: one('datadog', { api: { key: secret('DD'), site: 'datadoghq.eu' } }),
    sink: {
      type: 'monitor_a_logs',
      config: { default_api_key: 'SECRET[env.DD]', site: 'datadoghq.eu', compression: 'gzip' },
    },
    assert: '.message == "hello" && .service == "web" && .status == "WARN" && .hostname == "n1" && .http.status == 200',
  },
  {
    name: 'clickhouse',
    config: one('clickhouse', {
      endpoint: 'http://ch:8123?database=otel',
      username: 'u',
      password: secret('CH_PASSWORD'),
      ttl: '72h',
      compression: 'none',
    }),
    sink: {
      type: 'http',
      config: {
        uri: 'http://ch:8123/?query=INSERT+INTO+otel.otel_logs+FORMAT+JSONEachRow&date_time_input_format=best_effort&async_insert=1',
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        compression: 'none',
        auth: { strategy: 'basic', user: 'u', password: 'SECRET[env.CH_PASSWORD]' },
      },
    },
    assert:
      '.Body == "hello" && .ServiceName == "web" && .SeverityNumber == 13 && .LogAttributes.http == "{\\"status\\":200}" && .ResourceAttributes."host.name" == "n1" && !exists(.TraceId)',
  },
  {
    name: 'file',
    config: one('file', { path: '/srv/out.json' }),
    sink: { type: 'file', config: { path: '/srv/out.json', encoding: { codec: 'json' } } },
    assert: '.resourceLogs[0].scopeLogs[0].logRecords[0].body == {"stringValue": "hello"}',
  },
  {
    name: 'debug',
    config: one('debug', { verbosity: 'detailed' }),
    sink: { type: 'console', config: { encoding: { codec: 'json' } } },
    assert: '.message == "hello" && !exists(.trace_id)',
  },
  {
    name: 'otlphttp with a token of an extension, and without retries',
    config: one(
      'otlphttp',
      { endpoint: 'https://api', auth: { authenticator: 'bearertokenauth' }, retry_on_failure: { enabled: false } },
      {
        extensions: { bearertokenauth: { token: secret('TOKEN') } },
      },
    ),
    sink: {
      type: 'http',
      config: {
        uri: 'https://api/v1/logs',
        encoding: { codec: 'json' },
        payload_prefix: '{"resourceLogs":',
        payload_suffix: '}',
        compression: 'gzip',
        auth: { strategy: 'bearer', token: 'SECRET[env.TOKEN]' },
        request: { retry_attempts: 0 },
      },
    },
  },
]

test('the exporter pulsar sends one record in each message', async () => {
  const options = {
    endpoint: 'pulsar+ssl://broker:6651',
    topic: 'logs',
    encoding: 'otlp_json',
    auth: { token: { token: secret('TOKEN') } },
    producer: { compression_type: 'lz4', max_pending_messages: 100 },
    tls_trust_certs_file_path: '/ca.pem',
  }
  const { document, spec, gaps } = convert(one('pulsar', options))
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['pulsar: encoding', true]])
  expect(spec.sinks[0]).toMatchObject({
    type: 'message_broker',
    config: {
      endpoint: 'pulsar+ssl://broker:6651',
      topic: 'logs',
      encoding: { codec: 'json' },
      compression: 'lz4',
      auth: { name: 'token', token: 'SECRET[env.TOKEN]' },
      tls: { ca_file: '/ca.pem' },
    },
  })
  const [at] = spec.sinks[0].inputs
  const assert = '.resourceLogs[0].scopeLogs[0].logRecords[0].body == {"stringValue": "hello"}'
  const form = spec.transforms.find(({ name }: { name: string }) => name.startsWith('pulsar-form')).name
  const tests = [
    { name: 'form', insertAt: withClock(document, form), input: { log: record }, expect: [{ at, assert }] },
  ]
  document.setIn(['spec', 'tests'], tests)
  expect(await lint(String(document))).toEqual([])
})

test('the exporter opensearch with placeholders in the name of the index is a gap', () => {
  const { gaps } = convert(one('opensearch', { http: { endpoint: 'http://os' }, logs_index: 'logs-%{service.name}' }))
  expect(gaps.map(({ subject }) => subject)).toEqual(['opensearch: logs_index'])
})

test('the exporter pulsar writes no protobuf', () => {
  const { gaps } = convert(one('pulsar', { endpoint: 'pulsar://broker:6650' }))
  expect(gaps).toMatchObject([{ subject: 'pulsar: encoding', nearest: expect.stringContaining('otlp_json') }])
})

test.each(sinks)('$name', async ({ config, sink, assert }) => {
  const { document, spec, gaps } = convert(config)
  expect(gaps).toEqual([])
  const { name: _, inputs, ...made } = spec.sinks[0]
  expect(made).toEqual(sink)
  if (assert !== undefined) {
    const form = spec.transforms.find(({ name }: { name: string }) => name.endsWith('-form')).name
    document.setIn(
      ['spec', 'tests'],
      [
        {
          name: 'form',
          insertAt: withClock(document, form),
          input: { log: record },
          expect: [{ at: inputs[0], assert }],
        },
      ],
    )
  }
  expect(await lint(String(document))).toEqual([])
})

test.each([
  {
    exporter: 'elasticsearch',
    config: { endpoint: 'https://es.eu-west-1.es.amazonaws.com', logs_index: 'x', mapping: { mode: 'otel' } },
  },
  { exporter: 'opensearch', config: { http: { endpoint: 'https://x.eu-west-1.aoss.amazonaws.com' } } },
])('requests to $exporter are signed for AWS', async ({ exporter, config }) => {
  const auth = { authenticator: 'sigv4auth' }
  const text = stringify({
    receivers: { filelog: { include: ['/srv/app.log'] } },
    extensions: { sigv4auth: { region: 'eu-west-1', service: 'aoss', assume_role: { arn: 'arn:aws:iam::1:role/x' } } },
    exporters: { [exporter]: 'http' in config ? { http: { ...config.http, auth } } : { ...config, auth } },
    service: { extensions: ['sigv4auth'], pipelines: { logs: { receivers: ['filelog'], exporters: [exporter] } } },
  })
  const draft = new Draft()
  convertOtel([{ file: 'c.yaml', text }], () => [], draft)
  expect(draft.gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const [sink] = draft.document({ name: 'x' }).toJS().spec.sinks as { config: object }[]
  expect(sink?.config).toMatchObject({
    auth: { strategy: 'aws', assume_role: 'arn:aws:iam::1:role/x' },
    aws: { region: 'eu-west-1' },
    opensearch_service_type: 'serverless',
  })
})

test('otlp is a gap, because the sink sends over HTTP instead of gRPC', async () => {
  const { document, spec, gaps } = convert(one('otlp', { endpoint: 'gateway:4317', tls: { insecure: true } }))
  expect(gaps).toEqual([
    expect.objectContaining({ subject: 'otlp', reason: expect.stringContaining('OTLP over gRPC'), isAbsent: true }),
  ])
  expect(spec.sinks[0].config.uri).toBe('http://gateway:4318/v1/logs')
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['0af7651916cd43dd8448eb211c80319c', 'exists'],
  ['0af76519-16cd-43dd-8448-eb211c80319c', '!exists'],
])('only a valid trace id is sent: %s', async (id, exists) => {
  const { document, spec } = convert(one('otlphttp', { endpoint: 'http://o' }))
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'id',
        insertAt: withClock(document, 'otlphttp-form'),
        input: { log: { ...record, trace_id: id } },
        expect: [{ at: spec.sinks[0].inputs[0], assert: `${exists}(.scopeLogs[0].logRecords[0].traceId)` }],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

test('paths of pods and of other files in one receiver become two sources', async () => {
  const { document, spec, gaps } = convert({
    ...one('nop', null),
    receivers: {
      filelog: { include: ['/var/log/pods/*/*/*.log', '/srv/app.log'], operators: [{ type: 'container' }] },
    },
  })
  expect(gaps.map(({ subject }) => subject)).toEqual(['filelog: operator container'])
  expect(spec.sources.map(({ type }: { type: string }) => type)).toEqual(['orchestrator_logs', 'file'])
  expect(spec.sources[1].config.include).toEqual(['/srv/app.log'])
  expect(spec.sinks[0].inputs).toHaveLength(2)
  expect(await lint(String(document))).toEqual([])
})

test('pipelines share sources and sinks, but not processors', async () => {
  const { document, spec, gaps } = convert({
    receivers: { filelog, 'filelog/b': { ...filelog, include: ['/srv/b.log'] } },
    processors: { batch: {}, 'attributes/a': { actions: [{ key: 'a', action: 'insert', value: 1 }] } },
    exporters: { debug: { verbosity: 'detailed' }, nop: null },
    service: {
      pipelines: {
        'logs/a': {
          receivers: ['filelog', 'filelog/b'],
          processors: ['attributes/a', 'batch'],
          exporters: ['debug', 'nop'],
        },
        'logs/b': { receivers: ['filelog/b'], exporters: ['debug'] },
      },
    },
  })
  expect(gaps).toEqual([])
  expect(spec.sources.map(({ name }: { name: string }) => name)).toEqual(['filelog', 'filelog-b'])
  const inputsOf = (name: string) =>
    [...spec.transforms, ...spec.sinks].find((each: { name: string }) => each.name === name).inputs
  expect(inputsOf('logs-a-attributes-a')).toEqual(['filelog-record', 'filelog-b-record'])
  expect(inputsOf('nop')).toEqual(['logs-a-attributes-a'])
  expect(inputsOf('debug-form')).toEqual(['logs-a-attributes-a', 'filelog-b-record'])
  expect(await lint(String(document))).toEqual([])
})

const routed = (table: object[], more: object = {}) => ({
  receivers: { filelog },
  exporters: { 'nop/a': null, 'nop/b': null, 'nop/rest': null },
  connectors: { routing: { table, default_pipelines: ['logs/rest'], ...more } },
  service: {
    pipelines: {
      'logs/a': { receivers: ['routing'], exporters: ['nop/a'] },
      'logs/b': { receivers: ['routing'], exporters: ['nop/b'] },
      'logs/rest': { receivers: ['routing'], exporters: ['nop/rest'] },
      'logs/in': { receivers: ['filelog'], exporters: ['routing'] },
    },
  },
})

test.each([
  { name: 'the first condition', attributes: { ns: 'a' }, severity: 17, targets: ['a'] },
  { name: 'another condition', attributes: { ns: 'x' }, severity: 17, targets: ['b'] },
  { name: 'no condition', attributes: {}, severity: 1, targets: ['rest'] },
  { name: 'all conditions', attributes: { ns: 'a' }, severity: 17, more: { match_once: false }, targets: ['a', 'b'] },
])('the connector routing follows $name', async ({ attributes, severity, more = {}, targets }) => {
  const table = [
    { statement: 'route() where attributes["ns"] == "a"', pipelines: ['logs/a'] },
    { context: 'log', condition: 'severity_number >= SEVERITY_NUMBER_ERROR', pipelines: ['logs/b'] },
  ]
  const { document, spec, gaps } = convert(routed(table, more))
  expect(gaps).toEqual([])
  const input = { ...record, severity_number: severity, resource: { attributes } }
  document.setIn(
    ['spec', 'tests'],
    ['a', 'b', 'rest'].map((target) => {
      const [at] = spec.sinks.find(({ name }: { name: string }) => name === `nop-${target}`).inputs
      const expected = targets.includes(target) ? { at, assert: 'true' } : { at, count: 0 }
      return { name: target, insertAt: at, input: { log: input }, expect: [expected] }
    }),
  )
  expect(await lint(String(document))).toEqual([])
})

test('the connector forward joins pipelines', async () => {
  const { spec, gaps } = convert({
    receivers: { filelog },
    processors: { resource: { attributes: [{ key: 'a', value: 1, action: 'upsert' }] } },
    exporters: { nop: null },
    connectors: { forward: null },
    service: {
      pipelines: {
        logs: { receivers: ['forward'], processors: ['resource'], exporters: ['nop'] },
        'logs/in': { receivers: ['filelog'], exporters: ['forward'] },
      },
    },
  })
  expect(gaps).toEqual([])
  expect(spec.transforms.find(({ name }: { name: string }) => name === 'resource').inputs).toEqual(['filelog-record'])
})

test.each([
  ['a receiver', { receivers: { otlp: {}, filelog } }, { receivers: ['otlp', 'filelog'] }, 'receiver otlp'],
  [
    'an exporter',
    { exporters: { kafka: { brokers: ['b'] }, nop: null } },
    { exporters: ['kafka', 'nop'] },
    'exporter kafka',
  ],
  ['a processor', { processors: { tail_sampling: {} } }, { processors: ['tail_sampling'] }, 'processor tail_sampling'],
  ['a connector', { connectors: { count: {} } }, { exporters: ['count', 'nop'] }, 'connector count'],
  ['a component that is not defined', {}, { processors: ['batch/missing'] }, 'processor batch/missing'],
  [
    'an option',
    { receivers: { filelog: { ...filelog, ordering_criteria: { top_n: 1 } } } },
    {},
    'filelog: ordering_criteria',
  ],
  ['an extension', { extensions: { oauth2client: {} } }, {}, 'extension oauth2client'],
])(
  '%s without a counterpart is a gap with line and nearest equivalent, and the output passes lint',
  async (_, parts, pipeline, subject) => {
    const base = one('nop', null)
    const extensions = 'extensions' in parts ? { extensions: Object.keys(parts.extensions as object) } : {}
    const { document, gaps } = convert({
      ...base,
      ...parts,
      service: { ...extensions, pipelines: { logs: { receivers: ['filelog'], exporters: ['nop'], ...pipeline } } },
    })
    expect(gaps.map((gap) => gap.subject)).toEqual([subject])
    expect(gaps.every((gap) => gap.nearest !== '' && gap.reason !== '' && gap.line > 1)).toBe(true)
    expect(await lint(String(document))).toEqual([])
  },
)

test('pipelines of traces and metrics are gaps, and a configuration without logs still becomes a Pipeline', async () => {
  const { document, gaps, spec } = convert({
    receivers: { otlp: {} },
    exporters: { debug: { verbosity: 'detailed' } },
    service: {
      pipelines: {
        traces: { receivers: ['otlp'], exporters: ['debug'] },
        metrics: { receivers: ['otlp'], exporters: ['debug'] },
      },
    },
  })
  expect(gaps.map(({ subject }) => subject)).toEqual(['pipeline traces', 'pipeline metrics', 'receivers', 'exporters'])
  expect(spec.sources[0].name).toBe('nothing')
  expect(await lint(String(document))).toEqual([])
})

test('a component that is not defined is reported once, with the line of the first pipeline that names it', async () => {
  const named = (...exporters: string[]) => ({ receivers: ['filelog'], processors: ['gone'], exporters })
  const { gaps, document, spec } = convert({
    receivers: { filelog },
    exporters: { debug: { verbosity: 'detailed' } },
    service: {
      pipelines: { 'logs/a': named('otlphttp/none', 'debug'), 'logs/b': named('otlphttp/none', 'other/none') },
    },
  })
  expect(gaps.map(({ subject, reason }) => [subject, reason])).toEqual([
    ['processor gone', 'the configuration does not define the processor'],
    ['exporter otlphttp/none', 'the configuration does not define the exporter'],
    ['exporter other/none', 'the configuration does not define the exporter'],
  ])
  expect(spec.sinks.map(({ type }: { type: string }) => type)).toEqual(['blackhole', 'console', 'blackhole'])
  expect(String(document)).toContain('GAP: the exporter `otlphttp/none` (c.yaml:')
  expect(String(document)).toContain(') is not defined. This sink discards its events.')
  expect(await lint(String(document))).toEqual([])
})

test('the hint of a tenant names an attribute of the record or the resource', async () => {
  const { document, spec } = convert(
    one(
      'loki',
      { endpoint: 'http://loki:3100/loki/api/v1/push' },
      {
        processors: {
          attributes: { actions: [{ key: 'loki.tenant', value: 'service.namespace', action: 'insert' }] },
        },
        service: { pipelines: { logs: { receivers: ['filelog'], processors: ['attributes'], exporters: ['loki'] } } },
      },
    ),
  )
  const { name } = spec.transforms.find(({ inputs }: { inputs: string[] }) => inputs.includes('filelog-record'))
  const at = spec.sinks[0].inputs[0]
  document.setIn(
    ['spec', 'tests'],
    [
      {
        name: 'tenant',
        insertAt: withClock(document, name),
        input: { log: record },
        expect: [{ at, assert: '.tenant == "shop"' }],
      },
    ],
  )
  expect(await lint(String(document))).toEqual([])
})

test('events of the connector failover go to the pipelines of the first level', async () => {
  const { document, spec, gaps } = convert({
    receivers: { filelog },
    connectors: { failover: { priority_levels: [['logs/a'], ['logs/b']] } },
    exporters: { 'otlphttp/a': { endpoint: 'http://a' }, 'otlphttp/b': { endpoint: 'http://b' } },
    service: {
      pipelines: {
        'logs/in': { receivers: ['filelog'], exporters: ['failover'] },
        'logs/a': { receivers: ['failover'], exporters: ['otlphttp/a'] },
        'logs/b': { receivers: ['failover'], exporters: ['otlphttp/b'] },
      },
    },
  })
  expect(gaps.map(({ subject }) => subject)).toEqual(['connector failover', 'pipeline logs/b'])
  expect(spec.sinks.map(({ name }: { name: string }) => name)).toEqual(['otlphttp-a'])
  expect(await lint(String(document))).toEqual([])
})
