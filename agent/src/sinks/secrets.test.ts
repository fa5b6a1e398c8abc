// Secrets never appear in logs of any level, metrics, health check errors, configuration problems or the output of `validate`. The
// table covers every secret option of every sink in the registry. The test destinations echo everything they receive, as some real
// ones do.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { run as validate } from '../cli/validate.ts'
import type { SinkDeclaration } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { loadConfig, loadConfigObject } from '../config/load.ts'
import { renderProblems } from '../config/render.ts'
import { errorText } from '../errors.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { mergeProxy } from '../net/proxy.ts'
import { components } from '../registry.ts'
import { meaningOf } from '../schema/meaning.ts'
import { parseOptions } from '../schema/validate.ts'
import { membersOf, type Schema, variantsOf } from '../schema/walk.ts'
import { CountedEvents } from '../telemetry/component-events.ts'
import { Exposition } from '../telemetry/exposition.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { RepetitionLimit } from '../telemetry/repetition-limit.ts'
import { fakeDestination, type RecordedRequest } from '../testing/destination.ts'
import { at, log, metric } from '../testing/events.ts'
import { fakeBroker } from '../testing/fake-broker.ts'
import { freePort } from '../testing/free-port.ts'
import { batchOf, testGlobals } from '../testing/harness.ts'

/** Also valid base64, which one of the options requires. */
const marker = 'S3cretMarker0123'
/** A separate marker for user headers, so that hiding one does not hide the other. */
const headerMarker = 'H3aderMarker4567'
const base64 = (text: string) => Buffer.from(text).toString('base64')
const credentials = base64(JSON.stringify({ type: 'client_credentials', client_id: 'id', client_secret: marker }))
/** Wire encodings of the marker. */
const forms = [marker, headerMarker, base64(marker), base64(`user:${marker}`), base64(`${marker}:`), credentials]

type Place = (address: string) => Record<string, unknown>

const userInfo = (address: string) => address.replace('://', `://user:${marker}@`)
const aws = { strategy: 'aws', access_key_id: marker, secret_access_key: marker, session_token: marker }
const text = { encoding: { codec: 'text' } }
const siem = { customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', log_type: 'LINUX_SYSLOG', ...text }
const loki = { labels: { a: 'b' }, ...text }
const basic = { auth: { strategy: 'basic', user: 'user', password: marker } }
const bearer = { auth: { strategy: 'bearer', token: marker } }
const broker = { topic: 't', ...text, connection_retry_options: { max_retries: 0 } }

/** Configurations with the marker in every secret option, and in address credentials. */
const table: Readonly<Record<string, readonly Place[]>> = {
  cloud_monitor_logs: [(host) => ({ host, customer_id: 'c', shared_key: marker, log_type: 't' })],
  http: [
    (uri) => ({ uri, ...text, ...basic }),
    (uri) => ({ uri, ...text, ...bearer }),
    (uri) => ({ uri: userInfo(uri), ...text }),
    (uri) => ({ uri: `${uri}/{{ message }}?token=x`, ...text, ...bearer }),
  ],
  log_aggregator: [
    (endpoint) => ({ endpoint, ...loki, ...basic }),
    (endpoint) => ({ endpoint, ...loki, ...bearer }),
    (endpoint) => ({ endpoint: userInfo(endpoint), ...loki }),
  ],
  logsvc_a: [(endpoint) => ({ endpoint, api_key: marker, hostname: 'h' })],
  logsvc_a_old: [(endpoint) => ({ endpoint, api_key: marker, hostname: 'h' })],
  logsvc_b_logs: [(endpoint) => ({ endpoint, token: marker, ...text })],
  message_broker: [
    (endpoint) => ({ endpoint, ...broker, auth: { name: 'token', token: marker } }),
    (endpoint) => ({
      endpoint,
      ...broker,
      auth: {
        oauth2: {
          issuer_url: endpoint.replace('pulsar:', 'http:'),
          credentials_url: `data:application/json;base64,${credentials}`,
        },
      },
    }),
  ],
  monitor_a_logs: [(endpoint) => ({ endpoint, default_api_key: marker })],
  monitor_a_metrics: [
    (endpoint) => ({ endpoint, default_api_key: marker }),
    (endpoint) => ({ endpoint, default_api_key: marker, series_api_version: 'v1' }),
  ],
  monitor_c_logs: [(endpoint) => ({ endpoint, token: marker })],
  monitor_c_metrics: [(endpoint) => ({ endpoint, token: marker, default_namespace: 'ns' })],
  observability_d: ['events', 'logs', 'metrics'].map((api) => (address: string) => ({
    api,
    account_id: '1',
    override_uri: address,
    license_key: marker,
  })),
  remote_write_metrics: [
    (address) => ({ endpoint: `${address}/w`, ...basic }),
    (address) => ({ endpoint: `${address}/w`, ...bearer }),
    (address) => ({ endpoint: `${address}/w`, auth: aws, aws: { region: 'eu' } }),
    (address) => ({ endpoint: `${userInfo(address)}/w` }),
  ],
  search_engine: [
    (endpoint) => ({ endpoints: [endpoint], api_version: 'v8', ...basic }),
    (endpoint) => ({ endpoints: [userInfo(endpoint)] }),
    (endpoint) => ({ endpoints: [endpoint], api_version: 'v8', auth: aws, aws: { region: 'eu' } }),
  ],
  siem_unstructured: [(endpoint) => ({ endpoint, ...siem, api_key: marker })],
  tsdb_metrics: [
    (endpoint) => ({ endpoint, org: 'o', bucket: 'b', token: marker }),
    (endpoint) => ({ endpoint, database: 'd', username: 'u', password: marker }),
  ],
}

const sinks = components.filter((component): component is SinkDeclaration => component.kind === 'sink')
const schemaOf = (sink: SinkDeclaration): Schema => optionsOf(sink).schema

/** Paths of the secret options in a schema. */
function secretPaths(schema: Schema, path = ''): string[] {
  if (meaningOf(schema).secret === true) return [path]
  const below = (variantsOf(schema) ?? []).flatMap((variant) => secretPaths(variant, path))
  for (const [name, member] of Object.entries(membersOf(schema))) {
    below.push(...secretPaths(member, path === '' ? name : `${path}.${name}`))
  }
  return below
}

/** Paths of the texts that contain the marker in any encoding. */
function markedPaths(value: unknown, path = ''): string[] {
  if (typeof value === 'string') return forms.some((form) => value.includes(form)) ? [path] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => markedPaths(member, path === '' ? name : `${path}.${name}`))
}

const common = { tls: { key_pass: marker }, request: { retry_attempts: 0, timeout_secs: 5 } }

/** The options of a row, with those common to all sinks. */
function givenOptions(type: string, place: Place, address: string): Record<string, unknown> {
  const own = place(address)
  if (type === 'message_broker') return { ...common, ...own }
  return { ...common, request: { ...common.request, headers: { 'x-key': headerMarker } }, ...own }
}

const rows = Object.entries(table).flatMap(([type, places]) => places.map((place, index) => ({ type, index, place })))

test('the table has every secret option of every sink', () => {
  for (const sink of sinks) {
    const wanted = new Set(secretPaths(schemaOf(sink)))
    const found = (table[sink.type] ?? []).flatMap((place) => markedPaths(givenOptions(sink.type, place, 'http://h')))
    expect({ sink: sink.type, missing: [...wanted].filter((path) => !found.includes(path)) }).toEqual({
      sink: sink.type,
      missing: [],
    })
  }
})

function expectHidden(what: string, shown: string): void {
  for (const form of forms)
    expect(shown.includes(form), `${what} shows the secret as ${form}: ${around(shown, form)}`).toBe(false)
}

function around(shown: string, form: string): string {
  const place = shown.indexOf(form)
  return place < 0 ? '' : JSON.stringify(shown.slice(Math.max(0, place - 300), place + 60))
}

/** Runs a sink to its end and returns all its output. */
async function logOf(type: string, options: Record<string, unknown>): Promise<string> {
  const declaration = sinks.find((sink) => sink.type === type) as SinkDeclaration
  const parsed = parseOptions(optionsOf(declaration).members, options)
  if (!parsed.ok) throw new Error(parsed.problems.map(({ path, message }) => `${path}: ${message}`).join())
  const dataDir = await mkdtemp(join(tmpdir(), 'penstock-secrets-'))
  const lines: string[] = []
  const serializers = { error: (error: unknown) => (error instanceof Error ? described(error) : error) }
  const logger = pino({ level: 'trace', serializers }, { write: (line: string) => void lines.push(line) })
  const metrics = new Metrics()
  const identity = { id: 'out', kind: 'sink', type }
  const abandoning = new AbortController()
  const globals = testGlobals(dataDir)
  const errors: string[] = []
  try {
    const sink = await declaration.build(parsed.value as never, {
      ...identity,
      kind: 'sink',
      globals,
      logger,
      events: new CountedEvents(metrics, logger, new RepetitionLimit(0), identity),
      proxy: mergeProxy((parsed.value as { proxy: typeof globals.proxy }).proxy, globals.proxy),
      abandoning: abandoning.signal,
    })
    await sink
      .healthcheck?.(AbortSignal.timeout(5000))
      .catch((error: unknown) => errors.push(JSON.stringify(described(error))))
    // An event's own key is a secret too.
    const secrets = { datadog_api_key: marker }
    const logs = [
      log({ message: 'a', timestamp: '2026-01-01T00:00:00Z' }),
      new LogEvent({ message: 'b' }, { value: {}, secrets }),
    ]
    const parts = {
      name: 'b',
      kind: 'absolute',
      value: { type: 'gauge', value: 1 },
      timestamp: at('2026-01-01T00:00:00Z'),
    } as const
    const gauges = [
      metric('a', { type: 'gauge', value: 1 }, { kind: 'absolute' }),
      new MetricEvent({ ...parts, metadata: { value: {}, secrets } }),
    ]
    const ends: Promise<unknown>[] = []
    for (const events of [logs, gauges]) {
      if (!declaration.accepts.includes(events[0] instanceof LogEvent ? 'log' : 'metric')) continue
      ends.push(new Promise((resolve) => void sink.write(batchOf(events, new Finalizer(resolve)))))
    }
    await sink.close()
    await Promise.all(ends)
  } catch (error) {
    errors.push(JSON.stringify(described(error)))
  } finally {
    abandoning.abort()
    await rm(dataDir, { recursive: true, force: true })
  }
  const { text: exposed } = await new Exposition(metrics, {}).render()
  return [...lines, ...errors, exposed].join('\n')
}

/** An error with its whole text and its causes. */
function described(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  return { ...error, message: error.message, stack: error.stack, cause: described(error.cause) }
}

/** Everything sent, as a destination may echo it; compressed bodies unchanged. */
const repeated = (request: RecordedRequest) =>
  `${request.path}\n${JSON.stringify(request.headers)}\n${request.raw.toString('latin1')}`

describe.each(rows)('$type $index', ({ type, place }) => {
  const isBroker = type === 'message_broker'

  test('shows no secret if nobody listens', async () => {
    const port = await freePort()
    const shown = await logOf(type, givenOptions(type, place, `${isBroker ? 'pulsar' : 'http'}://127.0.0.1:${port}`))
    expect(shown).toMatch(/cannot be reached|ECONNREFUSED|failed/i)
    expectHidden('A refused connection', shown)
  })

  test.each([400, 401, 403, 500])('shows no secret if the destination responds with %s and an echo', async (status) => {
    if (isBroker) {
      await using refusing = await fakeBroker({
        connect: (fields) => ({
          error: status === 500 ? 1 : status === 400 ? 4 : 3,
          text: `no ${fields.text(3)} here`,
        }),
      })
      await using issuer = await fakeDestination((request) =>
        status === 500 && request.method === 'GET'
          ? { body: JSON.stringify({ token_endpoint: `${issuer.url}/token` }) }
          : status === 403
            ? { body: JSON.stringify({ access_token: marker, token_endpoint: `${issuer.url}/token` }) }
            : { status, body: repeated(request) },
      )
      const options = givenOptions(type, place, refusing.url)
      const { oauth2 } = options['auth'] as { oauth2?: { issuer_url: string } }
      if (oauth2 !== undefined) oauth2.issuer_url = issuer.url
      expectHidden(`An answer ${status}`, await logOf(type, options))
      return
    }
    await using destination = await fakeDestination((request) => ({ status, body: repeated(request) }))
    const shown = await logOf(type, givenOptions(type, place, destination.url))
    expect(destination.requests.length).toBeGreaterThan(0)
    expectHidden(`An answer ${status}`, shown)
  })

  test('shows no secret if the response is a redirect or unexpected', async () => {
    if (isBroker) return
    await using destination = await fakeDestination(
      (request) => ({ status: 302, headers: { location: `http://x/?${marker}` }, body: repeated(request) }),
      (request) => ({ status: 200, body: repeated(request) }),
    )
    expectHidden('A redirect', await logOf(type, givenOptions(type, place, destination.url)))
  })

  test('shows no secret in problems of the options', () => {
    const options = { type, inputs: ['in'], ...givenOptions(type, place, `${isBroker ? 'pulsar' : 'http'}://h:1`) }
    for (const path of markedPaths(options)) {
      for (const value of [[marker], { [marker]: 1 }, { value: marker }, `x y://user:${marker}@h`]) {
        const config = loadConfigObject({
          sources: { in: { type: 'demo_logs', format: 'json' } },
          sinks: { out: replaced(options, path.split('.'), value) },
        })
        const problems = config.ok ? config.warnings : config.problems
        expectHidden(`A problem of ${path}`, renderProblems(problems) + JSON.stringify(problems.map(withoutNames)))
      }
    }
    const wrong = loadConfigObject({
      sources: { in: { type: 'demo_logs', format: 'json' } },
      sinks: { out: { ...options, unknown: 1, batch: { max_events: 'x' }, encoding: 7, compression: {} } },
    })
    expect(wrong.ok).toBe(false)
    expectHidden('A problem', renderProblems(wrong.ok ? [] : wrong.problems))
  })
})

/** A problem without names invented by the user: the problem's path may contain them. */
function withoutNames(problem: object): object {
  return { ...problem, path: '' }
}

/** The options with another value at a path. */
function replaced(options: unknown, path: readonly string[], value: unknown): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  if (Array.isArray(options))
    return options.map((item, index) => (String(index) === name ? replaced(item, rest, value) : item))
  return { ...(options as object), [name]: replaced((options as Record<string, unknown>)[name], rest, value) }
}

describe('validate', () => {
  let folder = ''
  let port = 0
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-secrets-'))
    port = await freePort()
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const all = () =>
    Object.fromEntries(
      rows.map(({ type, index, place }) => [
        `${type}_${index}`,
        {
          type,
          inputs: ['in'],
          ...givenOptions(type, place, `${type === 'message_broker' ? 'pulsar' : 'http'}://127.0.0.1:${port}`),
        },
      ]),
    )
  const sources = {
    in: { type: 'demo_logs', format: 'json' },
    inm: { type: 'internal_metrics' },
  }
  const printed = async (name: string, content: string) => {
    const file = join(folder, name)
    await writeFile(file, content)
    let output = ''
    const write = (chunk: unknown) => {
      output += String(chunk)
      return true
    }
    const spies = [
      vi.spyOn(process.stdout, 'write').mockImplementation(write),
      vi.spyOn(process.stderr, 'write').mockImplementation(write),
    ]
    try {
      const code = await validate([file]).catch((error: unknown) => errorText(error))
      return { code, output: `${output}${typeof code === 'string' ? code : ''}` }
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
  }

  test('prints no secret of sinks whose destinations cannot be reached', async () => {
    const sinks = Object.fromEntries(
      Object.entries(all()).map(([id, sink]) => [
        id,
        { ...sink, inputs: [/metrics/.test(id) || id === 'observability_d_2' ? 'inm' : 'in'] },
      ]),
    )
    const { code, output } = await printed(
      'agent.json',
      JSON.stringify({ data_dir: folder, sources, sinks }, undefined, 2),
    )
    expect(output).toContain('Health check')
    expect(code).toBe(78)
    expectHidden('`validate`', output)
  }, 60_000)

  test.each([
    [
      'a.yaml',
      `sources:\n  in: { type: stdin }\nsinks:\n  out:\n    type: logsvc_b_logs\n    token: "${marker}\n    x: [}\n`,
    ],
    ['b.yaml', `sinks:\n  out:\n    token: ${marker}: x\n    token: ${marker}\n`],
    ['a.toml', `[sinks.out]\ntype = "logsvc_b_logs"\ntoken = ${marker}\n`],
    ['b.toml', `[sinks.out]\ntoken = "${marker}" x\n`],
    ['a.json', `{"sinks":{"out":{"type":"logsvc_b_logs","token":"${marker}",}}}`],
    ['b.json', `{"sinks":{"out":{"token":${marker}}}}`],
    ['env.yaml', `sinks:\n  out:\n    token: ${marker}\${PENSTOCK_TEST_UNSET}\n`],
  ])('prints no secret of a file that cannot be read: %s', async (name, content) => {
    const { code, output } = await printed(name, content)
    expect(code).toBe(78)
    expectHidden('`validate`', output)
    const loaded = await loadConfig({ paths: [join(folder, name)] })
    expectHidden('A problem', JSON.stringify(loaded.ok ? [] : loaded.problems))
  })
})
