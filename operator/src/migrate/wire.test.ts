// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agents are meant
// Requests of converted sinks, as a server receives them: credentials out of Secrets and for AWS, headers, and the body of an event.

import { type Destination, fakeDestination, type RecordedRequest } from '@penstock/agent/testing/destination'
import { log } from '@penstock/agent/testing/events'
import { startSink } from '@penstock/agent/testing/harness'
import { afterEach, expect, test, vi } from 'vitest'
import { agentFor } from './agents.ts'
import { Draft } from './draft.ts'
import { secretsIn } from './inner.ts'

afterEach(() => vi.unstubAllEnvs())

/** Keys of Secrets with their values, by the names of both. */
const keys: Readonly<Record<string, string>> = {
  'store.user': 'elastic',
  'store.pass': 's3cret',
  'store.token': 't0ken',
}

interface Spec {
  readonly sinks: readonly { readonly type: string; readonly config: object }[]
  readonly secrets?: readonly { readonly alias: string; readonly secretName: string }[]
}

/** The options of a sink with the values that its references have in the cluster. */
function withSecrets(value: unknown, spec: Spec): unknown {
  if (typeof value === 'string') {
    return value.replace(/SECRET\[([^.\]]+)\.([^\]]+)\]/g, (whole, alias: string, key: string) => {
      const name = spec.secrets?.find((each) => each.alias === alias)?.secretName
      return keys[`${name}.${key}`] ?? whole
    })
  }
  if (Array.isArray(value)) return value.map((item) => withSecrets(item, spec))
  if (typeof value !== 'object' || value === null) return value
  const reference = (value as { valueFrom?: { secretKeyRef: { name: string; key: string } } }).valueFrom?.secretKeyRef
  if (reference !== undefined) return keys[`${reference.name}.${reference.key}`]
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withSecrets(item, spec)]))
}

const event = { message: 'hello', timestamp: '2026-01-01T00:00:02Z', labels: { app: 'web' }, metadata: {}, tenant: '' }

/** The last request that the first sink of a converted configuration makes for an event. */
async function requestOf(file: string, text: string, destination: Destination): Promise<RecordedRequest> {
  const given = { file, text: text.replaceAll('HOST:PORT', destination.url.replace('http://', '')) }
  const found = agentFor([given])
  if (found === undefined) throw new Error('No agent knows the file.')
  const draft = new Draft()
  for (const [name, key] of secretsIn(given)) draft.secrets.set(name, key)
  found.agent.convert(found.files, () => [], draft)
  expect(draft.gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const { spec } = draft.document({ name: 'converted' }).toJS() as { spec: Spec }
  const [sink] = spec.sinks
  if (sink === undefined) throw new Error('There is no sink.')
  const { buffer: _, ...options } = withSecrets(sink.config, spec) as Record<string, unknown>
  await using started = await startSink(sink.type, { ...options, batch: { timeout_secs: 0.05 } })
  expect(await started.deliver([log(event)])).toBe('delivered')
  return destination.requests.at(-1) as RecordedRequest
}

const stored = { body: '{"errors":false,"items":[{"index":{"status":201}}],"version":{"number":"8.0.0"}}' }
const basic = `Basic ${Buffer.from('elastic:s3cret').toString('base64')}`

const entry = (name: string, key: string) =>
  `{ name: ${name}, valueFrom: { secretKeyRef: { name: store, key: ${key} } } }`
const entries = `[${entry('STORE_USER', 'user')}, ${entry('STORE_PASS', 'pass')}, ${entry('STORE_TOKEN', 'token')}]`

test.each([
  {
    agent: 'Fluent Bit',
    text: `env: ${entries}
config:
  inputs: "[INPUT]\\n    Name tail\\n    Path /a.log\\n    Tag a\\n"
  filters: ""
  outputs: |
    [OUTPUT]
        Name http
        Match *
        Host 127.0.0.1
        Port PORT
        Format json
        HTTP_User \${STORE_USER}
        HTTP_Passwd \${STORE_PASS}
`,
    authorization: basic,
  },
  {
    agent: 'Fluentd',
    text: `env: ${entries}
fileConfigs:
  01_sources.conf: |-
    <source>
      @type tail
      path /a.log
      tag a
      <parse>
        @type none
      </parse>
    </source>
  04_outputs.conf: |-
    <match **>
      @type elasticsearch
      host 127.0.0.1
      port PORT
      user "#{ENV['STORE_USER']}"
      password "#{ENV['STORE_PASS']}"
    </match>
`,
    authorization: basic,
  },
  {
    agent: 'Filebeat',
    text: `daemonset:
  extraEnvs: ${entries}
  filebeatConfig:
    filebeat.yml: |
      filebeat.inputs: [{ type: log, paths: [/a.log] }]
      output.elasticsearch:
        hosts: ["http://HOST:PORT"]
        username: "\${STORE_USER}"
        password: "\${STORE_PASS}"
`,
    authorization: basic,
  },
  {
    agent: 'Promtail',
    text: `extraEnv: ${entries}
extraArgs: [-config.expand-env=true]
config:
  clients:
  - url: http://HOST:PORT/loki/api/v1/push
    basic_auth: { username: "\${STORE_USER}", password: "\${STORE_PASS}" }
  snippets:
    scrapeConfigs: |
      - job_name: a
        static_configs: [{ labels: { __path__: /a.log, job: a } }]
`,
    authorization: basic,
  },
  {
    agent: 'Alloy',
    text: `alloy:
  extraEnv: ${entries}
  configMap:
    content: |
      loki.source.file "f" {
        targets    = [{__path__ = "/a.log"}]
        forward_to = [loki.write.w.receiver]
      }
      loki.write "w" {
        endpoint {
          url          = "http://HOST:PORT/loki/api/v1/push"
          bearer_token = sys.env("STORE_TOKEN")
        }
      }
`,
    authorization: 'Bearer t0ken',
  },
  {
    agent: 'the OpenTelemetry collector',
    text: `mode: daemonset
extraEnvs: ${entries}
config:
  receivers: { filelog: { include: [/a.log] } }
  extensions: { bearertokenauth/store: { token: "\${env:STORE_TOKEN}" } }
  exporters: { otlphttp: { endpoint: "http://HOST:PORT", auth: { authenticator: bearertokenauth/store } } }
  service: { extensions: [bearertokenauth/store], pipelines: { logs: { receivers: [filelog], exporters: [otlphttp] } } }
`,
    authorization: 'Bearer t0ken',
  },
  {
    agent: 'Vector',
    text: `role: Agent
env: ${entries}
customConfig:
  sources: { f: { type: file, include: [/a.log] } }
  sinks:
    out:
      type: http
      inputs: [f]
      uri: http://HOST:PORT/in
      encoding: { codec: json }
      auth: { strategy: basic, user: "\${STORE_USER}", password: "\${STORE_PASS}" }
`,
    authorization: basic,
  },
])('references to Secrets in values of the chart of $agent are the credentials of requests', async (given) => {
  await using destination = await fakeDestination(stored)
  const text = given.text.replaceAll(/(?<!:)\bPORT\b/g, new URL(destination.url).port)
  const { headers } = await requestOf('values.yaml', text, destination)
  expect(headers.authorization).toBe(given.authorization)
})

const bitSearch = (more: string) => (port: string) =>
  `[INPUT]\n  Name tail\n  Path /a.log\n  Tag a\n[OUTPUT]\n  Name opensearch\n  Match *\n  Host 127.0.0.1\n  Port ${port}\n  AWS_Auth On\n  AWS_Region eu-west-1\n${more}`
const otelSearch = (service: string) => (port: string) =>
  `receivers: { filelog: { include: [/a.log] } }
extensions: { sigv4auth: { region: eu-west-1, service: ${service} } }
exporters: { opensearch: { http: { endpoint: "http://127.0.0.1:${port}", auth: { authenticator: sigv4auth } } } }
service: { extensions: [sigv4auth], pipelines: { logs: { receivers: [filelog], exporters: [opensearch] } } }
`

test.each([
  { about: 'Fluent Bit', file: 'fluent-bit.conf', text: bitSearch(''), service: 'es' },
  {
    about: 'Fluent Bit, serverless',
    file: 'fluent-bit.conf',
    text: bitSearch('  AWS_Service_Name aoss\n'),
    service: 'aoss',
  },
  { about: 'the collector', file: 'otel.yaml', text: otelSearch('es'), service: 'es' },
  { about: 'the collector, serverless', file: 'otel.yaml', text: otelSearch('aoss'), service: 'aoss' },
  {
    about: 'Vector',
    file: 'vector.yaml',
    text: (port: string) =>
      `sources: { f: { type: file, include: [/a.log] } }\nsinks: { out: { type: elasticsearch, inputs: [f], endpoints: ["http://127.0.0.1:${port}"], api_version: v8, auth: { strategy: aws }, aws: { region: eu-west-1 } } }\n`,
    service: 'es',
  },
])('requests of $about are signed for AWS', async ({ file, text, service }) => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKID')
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret')
  await using destination = await fakeDestination(stored)
  const request = await requestOf(file, text(new URL(destination.url).port), destination)
  expect(request.headers.authorization).toMatch(
    new RegExp(`^AWS4-HMAC-SHA256 Credential=AKID/\\d{8}/eu-west-1/${service}/aws4_request, `),
  )
  expect(request.path).toMatch(/\/_bulk/)
})
