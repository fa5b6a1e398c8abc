// Components `otelcol.*`: the records that the collector's exporters would have received, and the lines that come back to Loki.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertAlloy } from './convert.ts'

const convert = (text: string) => converted(convertAlloy, [{ file: 'config.alloy', text }])
const missing = (gaps: readonly { isReplaced?: true; subject: string }[]) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)

const write = 'loki.write "l" {\n  endpoint { url = "http://loki:3100/loki/api/v1/push" }\n}\n'
const debug = 'otelcol.exporter.debug "d" { }\n'
const lines = `loki.source.file "f" {
  targets    = [{"__path__" = "/srv/a.log", "job" = "a"}]
  forward_to = [otelcol.receiver.loki.r.receiver]
}
otelcol.receiver.loki "r" {
  output {
    logs = [otelcol.TO.input]
  }
}
`
const from = (to: string) => lines.replace('TO', to)
const output = (to: string) => `  output {\n    logs = [otelcol.${to}.input]\n  }\n`
const event = { message: 'GET /a?password=x 200', timestamp: '2026-01-01T00:00:00Z', file: '/srv/a.log' }
const record = {
  job: 'a',
  filename: '/srv/a.log',
  'log.file.path': '/srv/a.log',
  'log.file.name': 'a.log',
  'loki.attribute.labels': 'filename,job',
}

const processors: readonly { name: string; block: string; expected: Readonly<Record<string, unknown>> | undefined }[] =
  [
    { name: 'a line becomes a record with its labels as attributes', block: '', expected: { attributes: record } },
    {
      name: 'attributes: actions, and a condition',
      block: `otelcol.processor.attributes "p" {
  action {
    key    = "loki.attribute.labels"
    action = "delete"
  }
  action {
    pattern = "^log\\\\.file"
    action  = "delete"
  }
  action {
    key    = "team"
    value  = "ops"
    action = "insert"
  }
  include {
    match_type = "strict"
    attribute {
      key   = "job"
      value = "a"
    }
  }
${output('exporter.debug.d')}}
`,
      expected: { attributes: { job: 'a', filename: '/srv/a.log', team: 'ops' } },
    },
    {
      name: 'attributes: an excluded record passes unchanged',
      block: `otelcol.processor.attributes "p" {
  action {
    key    = "job"
    action = "delete"
  }
  exclude {
    match_type = "regexp"
    log_bodies = ["^GET"]
  }
${output('exporter.debug.d')}}
`,
      expected: { attributes: record },
    },
    {
      name: 'transform: statements with dollar signs',
      block: `otelcol.processor.transform "p" {
  error_mode = "ignore"
  log_statements {
    context    = "log"
    statements = [
      \`replace_pattern(body, "(password=)\\\\S+", "$1***")\`,
      \`set(resource.attributes["service.name"], attributes["job"])\`,
      \`keep_keys(attributes, ["job"])\`,
    ]
  }
${output('exporter.debug.d')}}
`,
      expected: {
        message: 'GET /a?password=*** 200',
        attributes: { job: 'a' },
        resource: { attributes: { 'service.name': 'a' } },
      },
    },
    {
      name: 'transform: flat statements',
      block: `otelcol.processor.transform "p" {
  statements {
    log = [\`set(log.attributes["n"], 1)\`, \`keep_keys(log.attributes, ["n"])\`]
  }
${output('exporter.debug.d')}}
`,
      expected: { attributes: { n: 1 } },
    },
    {
      name: 'filter',
      block: `otelcol.processor.filter "p" {
  logs {
    log_record = [\`IsMatch(body, "^GET")\`]
  }
${output('exporter.debug.d')}}
`,
      expected: undefined,
    },
    {
      name: 'filter: conditions',
      block: `otelcol.processor.filter "p" {
  log_conditions {
    context    = "log"
    conditions = [\`log.attributes["job"] == "a"\`]
  }
${output('exporter.debug.d')}}
`,
      expected: undefined,
    },
    {
      name: 'groupbyattrs, memory_limiter and batch',
      block: `otelcol.processor.groupbyattrs "p" {
  keys = ["job"]
${output('processor.memory_limiter.p')}}
otelcol.processor.memory_limiter "p" {
  check_interval = "1s"
  limit          = "100MiB"
${output('processor.batch.p')}}
otelcol.processor.batch "p" {
  timeout = "1s"
${output('exporter.debug.d')}}
`,
      expected: { resource: { attributes: { job: 'a' } } },
    },
  ]

test.each(processors)('Alloy and the Pipeline pass on the same record: $name', async ({ block, expected }) => {
  const first = /^otelcol\.(\S+) "(\w+)"/.exec(block)
  const { document, resource, gaps } = convert(
    `${from(first === null ? 'exporter.debug.d' : `${first[1]}.${first[2]}`)}${block}${debug}`,
  )
  expect(missing(gaps)).toEqual([])
  const given = expected === undefined ? undefined : { message: event.message, ...expected }
  withTest(document, resource, event, given)
  expect(await lint(String(document))).toEqual([])
})

test('records become lines of Loki, whose labels the hints of attributes name', async () => {
  const text = `${from('exporter.loki.l')}otelcol.exporter.loki "l" {
  forward_to = [loki.process.p.receiver]
}
loki.process "p" {
  stage.json { expressions = { "body" = "" } }
  stage.output { source = "body" }
  stage.static_labels { values = { "more" = "1" } }
  forward_to = [loki.write.l.receiver]
}
${write}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  const labels = { exporter: 'OTLP', filename: '/srv/a.log', job: 'a', more: '1' }
  withTest(document, resource, event, { message: event.message, labels })
  expect(await lint(String(document))).toEqual([])
})

test('the receiver filelog reads pods, and k8sattributes adds their metadata', async () => {
  const text = `otelcol.receiver.filelog "pods" {
  include           = ["/var/log/pods/*/*/*.log"]
  start_at          = "beginning"
  include_file_name = false
  operators         = [{ type = "container" }, { type = "json_parser", parse_to = "body", if = "body matches \\"^{\\"" }]
${output('processor.k8sattributes.k')}}
otelcol.processor.k8sattributes "k" {
  extract {
    metadata = ["k8s.pod.name", "container.image.tags"]
    label {
      key      = "app"
      tag_name = "app"
      from     = "pod"
    }
  }
  pod_association {
    source {
      from = "resource_attribute"
      name = "k8s.pod.uid"
    }
  }
${output('exporter.debug.d')}}
${debug}`
  const { document, resource, gaps } = convert(text)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sources).toMatchObject([{ type: 'orchestrator_logs', config: { read_from: 'beginning' } }])
  const pod = {
    message: '{"a":1.5}',
    stream: 'stdout',
    timestamp: '2026-01-01T00:00:00Z',
    file: '/var/log/pods/shop_web-1_u1/app/0.log',
    orchestrator: {
      pod_name: 'web-1',
      pod_namespace: 'shop',
      pod_uid: 'u1',
      container_name: 'app',
      container_image: 'registry:5000/web:1.2@sha256:0',
      pod_labels: { app: 'web' },
    },
  }
  withTest(document, resource, pod, {
    message: { a: 1.5 },
    resource: {
      attributes: {
        app: 'web',
        'container.image.tags': ['1.2'],
        'k8s.container.name': 'app',
        'k8s.container.restart_count': '0',
        'k8s.namespace.name': 'shop',
        'k8s.pod.name': 'web-1',
        'k8s.pod.uid': 'u1',
      },
    },
  })
  expect(await lint(String(document))).toEqual([])
})

const sinks: readonly { name: string; exporter: string; more?: string; expected: object }[] = [
  {
    name: 'otlphttp with credentials of another component',
    exporter: `otelcol.exporter.otlphttp "x" {
  client {
    endpoint = "https://otlp:4318"
    auth     = otelcol.auth.basic.a.handler
    headers  = { "X-Scope-OrgID" = "shop" }
    timeout  = "20s"
    tls {
      insecure_skip_verify = true
    }
  }
  retry_on_failure {
    initial_interval = "2s"
  }
}
`,
    more: 'otelcol.auth.basic "a" {\n  username = "u"\n  password = sys.env("PASSWORD")\n}\n',
    expected: {
      type: 'http',
      config: {
        uri: 'https://otlp:4318/v1/logs',
        auth: { strategy: 'basic', user: 'u', password: 'SECRET[env.PASSWORD]' },
        tls: { verify_certificate: false },
        request: { timeout_secs: 20, retry_initial_backoff_secs: 2, headers: { 'X-Scope-OrgID': 'shop' } },
      },
    },
  },
  {
    name: 'otlphttp with a bearer token, and a queue on disk',
    exporter: `otelcol.exporter.otlphttp "x" {
  client {
    endpoint = "http://otlp:4318"
    auth     = otelcol.auth.bearer.a.handler
  }
  sending_queue {
    storage = otelcol.storage.file.q.handler
  }
}
`,
    more: 'otelcol.auth.bearer "a" {\n  token = "t"\n}\notelcol.storage.file "q" { }\n',
    expected: {
      type: 'http',
      config: { auth: { strategy: 'bearer', token: 't' }, buffer: { type: 'disk', max_size: 1024 ** 3 } },
    },
  },
  {
    name: 'headers of another component',
    exporter:
      'otelcol.exporter.otlphttp "x" {\n  client {\n    endpoint = "http://otlp:4318"\n    auth     = otelcol.auth.headers.a.handler\n  }\n}\n',
    more: 'otelcol.auth.headers "a" {\n  header {\n    key   = "X-Key"\n    value = "v"\n  }\n}\n',
    expected: { type: 'http', config: { request: { headers: { 'X-Key': 'v' } } } },
  },
  {
    name: 'splunkhec',
    exporter: `otelcol.exporter.splunkhec "x" {
  client {
    endpoint             = "https://splunk:8088"
    insecure_skip_verify = true
  }
  splunk {
    token       = sys.env("TOKEN")
    source_type = "kube"
  }
}
`,
    expected: {
      type: 'http',
      config: {
        uri: 'https://splunk:8088/services/collector/event',
        tls: { verify_certificate: false },
        request: { headers: { Authorization: 'Splunk SECRET[env.TOKEN]' } },
      },
    },
  },
  {
    name: 'datadog',
    exporter: 'otelcol.exporter.datadog "x" {\n  api {\n    api_key = "k"\n    site    = "datadoghq.eu"\n  }\n}\n',
    expected: { type: 'monitor_a_logs', config: { default_api_key: 'k', site: 'datadoghq.eu' } },
  },
]

test.each(sinks)('an exporter becomes the sink of the collector: $name', async ({ exporter, more = '', expected }) => {
  const kind = /^otelcol\.(\S+)/.exec(exporter)?.[1]
  const { document, resource, gaps } = convert(`${from(`${kind}.x`)}${exporter}${more}`)
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([expected])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  {
    name: 'a receiver that listens',
    text: `otelcol.receiver.otlp "x" {\n  grpc { }\n${output('exporter.debug.d')}}\n${debug}`,
    gaps: ['otelcol.receiver.otlp.x'],
  },
  {
    name: 'a processor without a counterpart',
    text: `${from('processor.tail_sampling.x')}otelcol.processor.tail_sampling "x" {\n${output('exporter.debug.d')}}\n${debug}`,
    gaps: ['otelcol.processor.tail_sampling.x'],
  },
  {
    name: 'an exporter without a counterpart',
    text: `${from('exporter.kafka.x')}otelcol.exporter.kafka "x" {\n  protocol_version = "2.0.0"\n}\n`,
    gaps: ['otelcol.exporter.kafka.x'],
  },
  {
    name: 'a connector',
    text: `${from('connector.count.x')}otelcol.connector.count "x" {\n  output { }\n}\n`,
    gaps: ['otelcol.connector.count.x'],
  },
  {
    name: 'credentials without a counterpart',
    text: `${from('exporter.otlphttp.x')}otelcol.exporter.otlphttp "x" {
  client {
    endpoint = "http://otlp:4318"
    auth     = otelcol.auth.oauth2.a.handler
  }
}
otelcol.auth.oauth2 "a" {
  client_id = "c"
}
`,
    gaps: ['otelcol.auth.oauth2.a', 'otelcol.exporter.otlphttp.x: auth otelcol.auth.oauth2.a'],
  },
  {
    name: 'a component that no logs reach',
    text: `${from('exporter.debug.d')}${debug}otelcol.processor.batch "x" {\n${output('exporter.debug.d')}}\n`,
    gaps: ['otelcol.processor.batch.x'],
  },
  {
    name: 'an option without a counterpart, below a block',
    text: `${from('exporter.otlphttp.x')}otelcol.exporter.otlphttp "x" {\n  client {\n    endpoint = "http://otlp:4318"\n    moon     = 1\n  }\n}\n`,
    gaps: ['otelcol.exporter.otlphttp.x: moon'],
  },
])('a gap has its place, and the output passes lint: $name', async ({ text, gaps: expected }) => {
  const { document, gaps } = convert(text)
  expect(missing(gaps)).toEqual(expected)
  const all = text.split('\n')
  for (const { line, subject, reason, nearest, isReplaced } of gaps) {
    if (isReplaced === true) continue
    const words = subject.split(/[.: ]+/)
    expect(words.some((word) => all[line - 1]?.includes(word))).toBe(true)
    expect([reason, nearest]).not.toContain('')
  }
  expect(await lint(String(document))).toEqual([])
})

test('traces beside logs are gaps of parts that do not exist here', () => {
  const { gaps } = convert(`${from('exporter.debug.d')}${debug}otelcol.receiver.otlp "t" {
  output { traces = [otelcol.processor.batch.t.input] }
}
otelcol.processor.batch "t" {
  output { traces = [otelcol.exporter.otlp.t.input] }
}
otelcol.exporter.otlp "t" {
  client { endpoint = "tempo:4317" }
}
`)
  expect(missing(gaps)).toEqual(['otelcol.receiver.otlp.t', 'otelcol.processor.batch.t', 'otelcol.exporter.otlp.t'])
  for (const { isAbsent, isReplaced } of gaps) if (isReplaced !== true) expect(isAbsent).toBe(true)
})
