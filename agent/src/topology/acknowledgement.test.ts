// End-to-end acknowledgement from a source through every possible fate of its events, with both types of buffers: which
// answers a source receives, and when.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Config } from '../config/config.ts'
import { loadConfigObject } from '../config/load.ts'
import { logBatch } from '../event/batch.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import type { Value } from '../event/value.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { log } from '../testing/events.ts'
import { reload } from './reload.ts'
import { Topology } from './run.ts'

let folder = ''
let topology: Topology | undefined
let metrics = new Metrics()

/** A destination that answers each request when the test says so, selected by the path of the request. */
const held = new Map<string, ServerResponse[]>()
const bodies = new Map<string, string[]>()
const credentials = new Map<string, (string | undefined)[]>()
const server = createServer((request, response) => {
  const path = request.url ?? ''
  let body = ''
  request.on('data', (part: Buffer) => {
    body += part.toString()
  })
  request.on('end', () => {
    credentials.set(path, [...(credentials.get(path) ?? []), request.headers.authorization])
    bodies.set(path, [...(bodies.get(path) ?? []), body])
    held.set(path, [...(held.get(path) ?? []), response])
  })
})

async function answer(path: string, status: number): Promise<void> {
  await vi.waitFor(() => expect(held.get(path)?.length ?? 0, `a request for ${path}`).toBeGreaterThan(0), 5000)
  held.get(path)?.shift()?.writeHead(status).end()
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-ack-'))
  held.clear()
  bodies.clear()
  credentials.clear()
  metrics = new Metrics()
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

afterEach(async () => {
  await topology?.stop(0)
  topology = undefined
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

interface Components {
  readonly transforms?: object
  readonly sinks: Record<string, object>
}

function configOf(components: Components): Config {
  const loaded = loadConfigObject({ data_dir: folder, sources: { in: { type: 'stdin' } }, ...components })
  if (!loaded.ok) throw new Error(loaded.problems.map((problem) => `${problem.path}: ${problem.message}`).join('\n'))
  return loaded.config
}

/** Starts sinks and transforms after a source whose output the test drives itself. */
async function start(components: Components): Promise<void> {
  topology = new Topology(configOf(components), { logger: silentLogger, metrics })
  await topology.build()
  topology.wire()
  for (const sink of topology.sinks.values()) sink.driver.start()
}

function send(...events: Record<string, Value>[]): Promise<BatchStatus> & { heard: BatchStatus | undefined } {
  const promise = new Promise<BatchStatus>((resolve) => {
    const batch = logBatch(events.map(log), new Finalizer(resolve))
    topology?.sources.get('in')?.outlet.send(batch)
  }) as Promise<BatchStatus> & { heard: BatchStatus | undefined }
  promise.heard = undefined
  void promise.then((status) => {
    promise.heard = status
  })
  return promise
}

const sink = (path: string, inputs: string[], more: object = {}) => ({
  type: 'http',
  inputs,
  uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}`,
  encoding: { codec: 'json' },
  framing: { method: 'newline_delimited' },
  batch: { timeout_secs: 0.01 },
  request: { concurrency: 8, retry_initial_backoff_secs: 1, retry_max_duration_secs: 1 },
  healthcheck: false,
  acknowledgements: true,
  ...more,
})
const disk = { buffer: { type: 'disk', max_size: 268_435_488 } }

test('fan-out: the source gets the worst status after the last destination has responded', async () => {
  await start({ sinks: { a: sink('a', ['in']), b: sink('b', ['in']) } })
  const first = send({ n: 1 })
  await answer('/a', 200)
  await vi.waitFor(() => expect(held.get('/b')).toHaveLength(1))
  expect(first.heard).toBeUndefined()
  await answer('/b', 400)
  expect(await first).toBe('rejected')
})

test('fan-out to a memory and a disk buffer: synced events count as delivered in the disk buffer', async () => {
  await start({ sinks: { a: sink('a', ['in']), b: sink('b', ['in'], disk) } })
  const first = send({ n: 1 })
  await vi.waitFor(() => expect(held.get('/b')).toHaveLength(1)) // and never gets a response
  expect(first.heard).toBeUndefined()
  await answer('/a', 200)
  expect(await first).toBe('delivered')
  expect(metrics.sum('buffer_events', { component_id: 'b' })).toBe(1)
})

test('sources do not wait for events that a filter or an aborted program drops', async () => {
  await start({
    transforms: {
      even: { type: 'filter', inputs: ['in'], condition: 'mod(int!(.n), 2) == 0' },
      sure: { type: 'remap', inputs: ['even'], source: 'if .n == 4 { abort }', drop_on_abort: true },
    },
    sinks: { a: sink('a', ['sure']) },
  })
  const dropped = send({ n: 1 }, { n: 3 }, { n: 4 })
  expect(await dropped).toBe('delivered')
  const mixed = send({ n: 1 }, { n: 2 }, { n: 4 })
  await vi.waitFor(() => expect(held.get('/a')).toHaveLength(1))
  expect(mixed.heard).toBeUndefined()
  await answer('/a', 200)
  expect(await mixed).toBe('delivered')
  expect(bodies.get('/a')).toEqual(['{"n":2}\n'])
})

test('events that a program cannot process are not sent again by their source', async () => {
  await start({
    transforms: { parse: { type: 'remap', inputs: ['in'], source: '. = parse_json!(.message)', drop_on_error: true } },
    sinks: { a: sink('a', ['parse']) },
  })
  expect(await send({ message: 'no JSON' })).toBe('delivered')
  expect(metrics.sum('component_discarded_events_total', { component_id: 'parse', intentional: 'false' })).toBe(1)
})

test.each([
  { name: 'memory', more: {} },
  { name: 'disk', more: disk },
])('partitions finish one by one, and the batch with the last one: $name', async ({ name, more }) => {
  await start({ sinks: { a: sink('{{ team }}', ['in'], more) } })
  const batch = send({ team: 'x', n: 1 }, { team: 'y', n: 2 }, { team: 'x', n: 3 })
  await answer('/x', 200)
  await vi.waitFor(() => expect(held.get('/y')).toHaveLength(1))
  if (name === 'memory') expect(batch.heard).toBeUndefined()
  expect(metrics.sum('buffer_events', { component_id: 'a' })).toBe(name === 'memory' ? 0 : 3)
  await answer('/y', 200)
  expect(await batch).toBe('delivered')
  await vi.waitFor(() => expect(metrics.sum('buffer_events', { component_id: 'a' })).toBe(0))
  expect(bodies.get('/x')).toEqual(['{"n":1,"team":"x"}\n{"n":3,"team":"x"}\n'])
})

test('events of a named output are acknowledged separately', async () => {
  await start({
    transforms: {
      parse: { type: 'remap', inputs: ['in'], source: '.n = int!(.n)', drop_on_error: true, reroute_dropped: true },
    },
    sinks: { a: sink('a', ['parse']), b: sink('b', ['parse.dropped']) },
  })
  const batch = send({ n: 1 }, { n: 'two' })
  await answer('/b', 200)
  await vi.waitFor(() => expect(held.get('/a')).toHaveLength(1))
  expect(batch.heard).toBeUndefined()
  await answer('/a', 200)
  expect(await batch).toBe('delivered')
})

test('a full buffer that drops the newest events neither blocks the source nor reports the intended loss to it', async () => {
  await start({
    sinks: {
      a: sink('a', ['in'], { buffer: { max_events: 1, when_full: 'drop_newest' }, request: { concurrency: 1 } }),
    },
  })
  const batches = Array.from({ length: 5 }, (_, n) => send({ n }))
  await vi.waitFor(() =>
    expect(metrics.sum('buffer_received_events_total') + metrics.sum('buffer_discarded_events_total')).toBe(5),
  )
  const dropped = metrics.sum('buffer_discarded_events_total', { intentional: 'true' })
  await vi.waitFor(() => expect(batches.filter((batch) => batch.heard === 'delivered')).toHaveLength(dropped))
})

test.each([
  { limit: 'of a moment', ms: 20 },
  { limit: 'none', ms: undefined }, // a silent destination would block it forever
])(
  'a sink with a disk buffer delivers the events that it gives up at the end (limit: $limit) after the next start',
  async ({ ms }) => {
    const config = { sinks: { a: sink('a', ['in'], disk) } }
    await start(config)
    void send({ n: 1 })
    await vi.waitFor(() => expect(held.get('/a')).toHaveLength(1))
    expect(await topology?.stop(ms)).toEqual([])
    expect(metrics.sum('component_discarded_events_total')).toBe(0)
    held.clear()
    await start(config)
    await answer('/a', 200)
    await vi.waitFor(() => expect(metrics.sum('buffer_events', { component_id: 'a' })).toBe(0))
    expect(bodies.get('/a')).toEqual(['{"n":1}\n', '{"n":1}\n'])
  },
  20_000,
)

test.each(['memory', 'disk'])(
  'events with rejected credentials are delivered after a rotation, buffered in %s',
  async (type) => {
    const withToken = (token: string, path = 'a') => ({
      sinks: { a: sink(path, ['in'], { ...(type === 'disk' ? disk : {}), auth: { strategy: 'bearer', token } }) },
    })
    await start(withToken('old'))
    const sent = send({ n: 1 })
    await answer('/a', 401)
    expect(await reload(topology as Topology, configOf(withToken('new')))).toMatchObject({ outcome: 'reloaded' })
    await answer('/a', 200)
    expect(await sent).toBe('delivered')
    expect(credentials.get('/a')).toEqual(['Bearer old', 'Bearer new'])
    expect(bodies.get('/a')).toEqual(['{"n":1}\n', '{"n":1}\n'])
    await vi.waitFor(() => expect(metrics.sum('component_sent_events_total', { component_id: 'a' })).toBe(1))
  },
)

test('rejected credentials of a sink do not affect a sink with another destination', async () => {
  const withToken = (token: string, path: string) => ({
    sinks: { a: sink(path, ['in'], { auth: { strategy: 'bearer', token } }) },
  })
  await start(withToken('old', 'a'))
  const sent = send({ n: 1 })
  await answer('/a', 401)
  expect(await reload(topology as Topology, configOf(withToken('new', 'b')))).toMatchObject({ outcome: 'reloaded' })
  await answer('/a', 200)
  expect(await sent).toBe('delivered')
  expect(credentials.get('/a')).toEqual(['Bearer old', 'Bearer old'])
})
