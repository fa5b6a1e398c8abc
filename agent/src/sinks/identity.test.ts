// A tenant's component never uses the identity of the agent: neither its environment, nor its files, nor the credential services of
// its node. The table has every sink and source of the registry, without credentials in the options where that is possible. Each new
// component needs a row.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { errorText } from '../errors.ts'
import { components } from '../registry.ts'
import { type Destination, fakeDestination } from '../testing/destination.ts'
import { log, metric } from '../testing/events.ts'
import { fakeBroker } from '../testing/fake-broker.ts'
import { startSink, startSource } from '../testing/harness.ts'

type Place = (address: string) => Record<string, unknown>
interface Row {
  readonly options: readonly Place[]
  /** The credentials that the error message requests, for components with such an identity. */
  readonly asksFor?: RegExp
}

const text = { encoding: { codec: 'text' } }
const quick = { request: { retry_attempts: 0, timeout_secs: 5 } }
const auth = { strategy: 'aws', imds: { max_attempts: 1, connect_timeout_seconds: 1, read_timeout_seconds: 1 } }
const aws = { region: 'eu' }
const keys = /Set `auth\.access_key_id` and `auth\.secret_access_key`.*implicitCredentials: Allow/s
const region = /region.*implicitCredentials: Allow/s

const sinks: Readonly<Record<string, Row>> = {
  blackhole: { options: [() => ({})] },
  cloud_monitor_logs: { options: [(host) => ({ host, customer_id: 'c', shared_key: 'c2hhcmVk', log_type: 't' })] },
  console: { options: [() => ({ target: 'stderr', ...text })] },
  file: { options: [() => ({ path: join(folder, 'out'), ...text })] },
  http: { options: [(uri) => ({ uri, ...text, ...quick })] },
  log_aggregator: { options: [(endpoint) => ({ endpoint, labels: { a: 'b' }, ...text, ...quick })] },
  logsvc_a: { options: [(endpoint) => ({ endpoint, api_key: 'own', hostname: 'h', ...quick })] },
  logsvc_a_old: { options: [(endpoint) => ({ endpoint, api_key: 'own', hostname: 'h', ...quick })] },
  logsvc_b_logs: { options: [(endpoint) => ({ endpoint, token: 'own', ...text, ...quick })] },
  message_broker: {
    options: [
      () => ({
        endpoint: broker.url,
        ...{ topic: 't', ...text, connection_retry_options: { max_retries: 0 } },
      }),
    ],
  },
  monitor_a_logs: { options: [(endpoint) => ({ endpoint, ...quick })], asksFor: /`default_api_key` is required/ },
  monitor_a_metrics: { options: [(endpoint) => ({ endpoint, ...quick })], asksFor: /`default_api_key` is required/ },
  monitor_c_logs: { options: [(endpoint) => ({ endpoint, token: 'own', ...quick })] },
  monitor_c_metrics: { options: [(endpoint) => ({ endpoint, token: 'own', default_namespace: 'ns', ...quick })] },
  observability_d: {
    options: [(override_uri) => ({ api: 'logs', account_id: '1', override_uri, license_key: 'own', ...quick })],
  },
  remote_write_metrics: {
    options: [
      (address) => ({ endpoint: `${address}/w`, auth, aws, ...quick }),
      (address) => ({ endpoint: `${address}/w`, auth: { ...auth, assume_role: 'arn:evil' }, aws, ...quick }),
      (address) => ({
        endpoint: `${address}/w`,
        auth: { ...auth, credentials_file: credentialsFile() },
        aws,
        ...quick,
      }),
    ],
    asksFor: keys,
  },
  search_engine: {
    options: [
      (endpoint) => ({ endpoints: [endpoint], api_version: 'v8', auth, aws, ...quick }),
      (endpoint) => ({ endpoints: [endpoint], auth: { ...auth, assume_role: 'arn:evil' }, aws, ...quick }),
      (endpoint) => ({ endpoints: [endpoint], auth: { ...auth, profile: 'default' }, aws, ...quick }),
    ],
    asksFor: keys,
  },
  siem_unstructured: {
    options: [
      (endpoint) => ({
        ...{ endpoint, customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', log_type: 'LINUX_SYSLOG' },
        ...{ ...text, ...quick },
      }),
    ],
    asksFor: /api_key or credentials_path.*implicitCredentials: Allow/,
  },
  tsdb_metrics: { options: [(endpoint) => ({ endpoint, org: 'o', bucket: 'b', token: 'own', ...quick })] },
}

const sources: Readonly<Record<string, Row>> = {
  amqp: { options: [() => ({ connection_string: 'amqp://127.0.0.1:1/' })] },
  cloud_queue: {
    options: [
      (address) => ({ queue_url: `${address}/1/q`, region: 'eu', auth: { imds: auth.imds } }),
      (address) => ({ queue_url: `${address}/1/q`, region: 'eu', auth: { imds: auth.imds, assume_role: 'arn:evil' } }),
    ],
    asksFor: keys,
  },
  demo_logs: { options: [() => ({ format: 'json', count: 1, interval: 0 })] },
  eventstore_metrics: { options: [(endpoint) => ({ endpoint })] },
  webserver_metrics: { options: [(address) => ({ endpoints: [address] })] },
}
/**
 * These components read the cluster with the agent's service account, within bounds that the operator sets, or connect
 * to nothing.
 */
const others = [
  'orchestrator_logs',
  'orchestrator_events',
  'stdin',
  'file',
  'internal_logs',
  'internal_metrics',
  'memory',
]
/** Variables that hold or lead to an identity. The library of `cloud_queue` also reads its own settings, which do not. */
const ofIdentity =
  /^(?:(?:AWS|CLOUD)_(?:ACCESS_KEY|SECRET|SESSION_TOKEN|ROLE|WEB_IDENTITY|CONTAINER|EC2|ENDPOINT_URL|APPLICATION)|GOOGLE_|GCE_|DD_)/

const planted = 'PLANTEDIDENTITY'
let folder = ''
const credentialsFile = () => join(folder, '.aws', 'credentials')
const kept = process.env
/** Names of variables read since the test began. */
const read = new Set<string>()
let identityService: Destination
let broker: Awaited<ReturnType<typeof fakeBroker>>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-identity-'))
  mkdirSync(join(folder, '.aws'))
  writeFileSync(credentialsFile(), `[default]\naws_access_key_id = ${planted}\naws_secret_access_key = ${planted}\n`)
  writeFileSync(join(folder, 'token'), planted)
  const answer = { AccessKeyId: planted, SecretAccessKey: planted, Token: planted, access_token: planted }
  broker = await fakeBroker()
  identityService = await fakeDestination({ body: JSON.stringify({ ...answer, expires_in: 3600 }) })
  const environment: Record<string, string | undefined> = {
    ...kept,
    ...{ HOME: folder, DD_API_KEY: planted, DD_SITE: 'planted.example' },
    ...{ GOOGLE_APPLICATION_CREDENTIALS: join(folder, 'token'), GCE_METADATA_HOST: identityService.host },
    ...{ AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, 'token'), AWS_ROLE_ARN: `arn:${planted}` },
    ...{ AWS_CONTAINER_CREDENTIALS_FULL_URI: identityService.url, AWS_REGION: 'planted' },
    ...{ AWS_EC2_METADATA_SERVICE_ENDPOINT: identityService.url, AWS_ENDPOINT_URL: identityService.url },
  }
  for (const prefix of ['AWS', 'CLOUD']) {
    for (const name of ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'SESSION_TOKEN']) {
      environment[`${prefix}_${name}`] = planted
    }
  }
  process.env = new Proxy(environment, {
    get(all, name) {
      if (typeof name === 'string') read.add(name)
      return Reflect.get(all, name)
    },
  })
  read.clear()
})
afterEach(async () => {
  process.env = kept
  await identityService[Symbol.asyncDispose]()
  await broker[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const proxy = { enabled: true, http: undefined, https: undefined, no_proxy: undefined }
const ofTenant = { ...proxy, egress: { deny: [] } }

/** Runs a component with an event; returns all problems that it reported. */
async function run(kind: 'sink' | 'source', type: string, options: object, own: typeof ofTenant): Promise<string> {
  const failures: string[] = []
  const note = (error: unknown) => void failures.push(errorText(error))
  if (kind === 'sink') {
    try {
      await using sink = await startSink(type, options, {}, own)
      await sink.sink.healthcheck?.(AbortSignal.timeout(30_000)).catch(note)
      const accepts = components.find((one) => one.kind === 'sink' && one.type === type)
      const takesLogs = accepts?.kind === 'sink' && accepts.accepts.includes('log')
      const event = takesLogs ? log({ message: 'hello' }) : metric('hello', { type: 'counter', value: 1 })
      await sink.deliver([event])
      for (const { message, fields } of sink.events.errors) note(`${message} ${errorText(fields?.['error'])}`)
    } catch (error) {
      note(error)
    }
    return failures.join('\n')
  }
  try {
    await using source = await startSource(type, options, { proxy: own })
    const settled = () => source.events.errors.length > 0 || source.sent.length > 0
    for (let turn = 0; turn < 200 && !settled(); turn++) await new Promise((resolve) => setTimeout(resolve, 10))
    for (const { message, fields } of source.events.errors) note(`${message} ${errorText(fields?.['error'])}`)
  } catch (error) {
    note(error)
  }
  return failures.join('\n')
}

const cases = (['sink', 'source'] as const).flatMap((kind) =>
  Object.entries(kind === 'sink' ? sinks : sources).flatMap(([type, { options, asksFor }]) =>
    options.map((place, index) => ({ kind, type, index, place, asksFor })),
  ),
)

test('the table contains every component that a tenant may use', () => {
  const known = new Set([...Object.keys(sinks), ...Object.keys(sources), ...others])
  const missing = components.filter(({ kind, type }) => kind !== 'transform' && !known.has(type))
  expect(missing.map(({ kind, type }) => `${kind} ${type}`)).toEqual([])
})

test.each(cases)(
  'a $kind $type of a tenant does not get the identity of the agent, options $index',
  async ({ kind, type, place, asksFor }) => {
    await using destination = await fakeDestination(200)
    const failures = await run(kind, type, place(destination.url), ofTenant)
    expect([...read].filter((name) => ofIdentity.test(name))).toEqual([])
    expect(identityService.requests).toEqual([])
    const sent = JSON.stringify(destination.requests.map(({ path, headers, raw }) => [path, headers, raw.toString()]))
    expect(sent).not.toContain(planted)
    if (asksFor === undefined) return
    expect(failures).toMatch(asksFor)
    expect(sent).not.toContain('"authorization"')
  },
)

test.each([
  { kind: 'sink', type: 'search_engine', options: (url: string) => ({ endpoints: [url], auth, ...quick }) },
  { kind: 'sink', type: 'remote_write_metrics', options: (url: string) => ({ endpoint: url, auth, ...quick }) },
  { kind: 'source', type: 'cloud_queue', options: (url: string) => ({ queue_url: `${url}/1/q` }) },
] as const)(
  'the environment does not determine the region for $kind $type of a tenant',
  async ({ kind, type, options }) => {
    await using destination = await fakeDestination(200)
    expect(await run(kind, type, options(destination.url), ofTenant)).toMatch(region)
    expect(destination.requests).toEqual([])
    expect(identityService.requests).toEqual([])
  },
)

test('with permission of the TenantPolicy, and on a local machine, the environment counts', async () => {
  for (const own of [proxy, { ...proxy, egress: { deny: [], implicitCredentials: true } }]) {
    await using destination = await fakeDestination(200)
    await run(
      'sink',
      'search_engine',
      sinks['search_engine']?.options[0]?.(destination.url) ?? {},
      own as typeof ofTenant,
    )
    expect(JSON.stringify(destination.requests.map(({ headers }) => headers.authorization))).toContain(planted)
  }
})
