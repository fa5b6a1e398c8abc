// Responses designed to exhaust the memory: small bodies that decompress to large ones, and bodies that never end. Every component
// that sends queries must survive all of them.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AnyDeclaration } from '../component.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import { components } from '../registry.ts'
import { at, log, metric } from '../testing/events.ts'
import { startSink, startSource } from '../testing/harness.ts'
import { AnswerBody, maxHeldBytes } from './answer-body.ts'
import { HttpClient } from './client.ts'

const zeros = Buffer.alloc(64 << 20)
const repeated = (piece: Buffer) => Buffer.concat([piece, piece, piece, piece])
const lowest = { params: { [constants.BROTLI_PARAM_QUALITY]: 2 } }

/** Small bodies that decompress to 64 MB or more, by their coding. */
const bombs: Readonly<Record<string, Buffer>> = {
  gzip: repeated(gzipSync(zeros)),
  deflate: deflateSync(zeros),
  br: brotliCompressSync(zeros, lowest),
  zstd: repeated(zstdCompressSync(zeros)),
}

const compressors: Readonly<Record<string, (plain: Buffer) => Buffer>> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
}

/** Number of bytes that decompressors have returned since the test began. */
let produced = 0

beforeEach(() => {
  produced = 0
  const push = Readable.prototype.push
  vi.spyOn(Readable.prototype, 'push').mockImplementation(function (this: Readable, chunk: unknown, ...rest) {
    if ('bytesWritten' in this && '_handle' in this && Buffer.isBuffer(chunk)) produced += chunk.length
    return Reflect.apply(push, this, [chunk, ...rest])
  })
})
afterEach(() => vi.restoreAllMocks())

interface Peer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly sockets: ReadonlySet<Socket>
}

async function listening(server: Server): Promise<Peer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}) // the client has disconnected
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const peer = (answer: RequestListener) =>
  listening(
    createServer((request, response) => {
      request.resume()
      request.on('end', () => answer(request, response))
    }),
  )

const bomb = (coding: string) => (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-encoding': coding }).end(bombs[coding])

/** Writes until the other side closes the connection. */
function pour(write: (more: () => void) => void, until: () => boolean): void {
  if (!until()) write(() => void setImmediate(pour, write, until))
}

const endless = (_: IncomingMessage, response: ServerResponse) => {
  const piece = Buffer.alloc(65_536, 'a')
  response.writeHead(200)
  pour(
    (more) => response.write(piece, more),
    () => response.destroyed,
  )
}

const endlessHeaders = () =>
  createTcpServer((socket) => {
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\n')
    pour(
      (more) => socket.write(`x: ${'a'.repeat(1000)}\r\n`.repeat(10), more),
      () => socket.destroyed,
    )
  })

const clientOf = () =>
  new HttpClient({
    tls: compileTls(defaultTls),
    proxy: compileProxy({ enabled: false, http: undefined, https: undefined, no_proxy: undefined }),
  })
const ask = (client: HttpClient, url: string, keep?: number) =>
  client.send({ method: 'GET', url: new URL(url), headers: {} }, AbortSignal.timeout(30_000), keep)

describe('the client', () => {
  test.each(Object.keys(bombs))('a small body with coding %s is decompressed only up to the limit', async (coding) => {
    await using server = await peer(bomb(coding))
    const client = clientOf()

    const { body } = await ask(client, server.url)
    await client.close()

    expect(body.length).toBe(65_536)
    expect(produced).toBeLessThan(1 << 20)
  })

  test.each(Object.keys(bombs))(
    'a truncated body with coding %s is decompressed as far as possible',
    async (coding) => {
      const text = Buffer.from('{"a":"b"} '.repeat(10_000))
      const whole = (compressors[coding] as (plain: Buffer) => Buffer)(text)
      await using server = await peer(
        (_, response) => void response.writeHead(400, { 'content-encoding': coding }).end(whole),
      )
      const client = clientOf()

      expect((await ask(client, server.url, 200_000)).body).toEqual(text)
      const cut = (await ask(client, server.url, whole.length - 4)).body
      await client.close()

      expect(cut.equals(whole.subarray(0, cut.length)) || text.subarray(0, cut.length).equals(cut)).toBe(true)
    },
  )

  test('the client reads only the beginning of an endless body, and closes the connection', async () => {
    await using server = await peer(endless)
    const client = clientOf()

    const { status, body } = await ask(client, server.url)

    expect({ status, length: body.length }).toEqual({ status: 200, length: 65_536 })
    await expect.poll(() => server.sockets.size).toBe(0)
    await client.close()
  })

  test('endless headers are an error', async () => {
    await using server = await listening(endlessHeaders())
    const client = clientOf()

    await expect(ask(client, server.url)).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_OVERFLOW' })
    await client.close()
  })

  test('all current responses share one limit, and each releases its bytes', () => {
    const piece = Buffer.alloc(1 << 20)
    const client = { held: 0 }
    const bodies = Array.from({ length: 16 }, () => new AnswerBody(Number.POSITIVE_INFINITY, client))

    for (let round = 0; round < 16; round++) for (const body of bodies) body.add(piece)
    const lengths = bodies.map((body) => body.raw().length + body.surplus)
    const held = bodies.reduce((sum, body) => sum + body.raw().length, 0)
    for (const body of bodies) body.release()

    expect(lengths).toEqual(bodies.map(() => 16 << 20))
    expect(held).toBeGreaterThan(maxHeldBytes / 4)
    expect(held).toBeLessThanOrEqual(maxHeldBytes)
    expect(client.held).toBe(0)
  })
})

const text = { encoding: { codec: 'text' } }
const key = 'AAAAAAAAAAAAAAAAAAAAAA=='
const siem = { customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', log_type: 'LINUX_SYSLOG', api_key: key, ...text }
const aws = { strategy: 'aws', access_key_id: 'a', secret_access_key: 'b' }
const oauth2 = { credentials_url: `data:application/json;base64,${btoa('{"client_id":"a","client_secret":"b"}')}` }

type Options = (url: string) => Record<string, unknown>

/** How each component sends queries over HTTP. */
const asking: Readonly<Record<string, Options>> = {
  cloud_monitor_logs: (host) => ({ host, customer_id: 'c', shared_key: key, log_type: 't' }),
  http: (uri) => ({ uri, ...text }),
  log_aggregator: (endpoint) => ({ endpoint, labels: { a: 'b' }, ...text }),
  logsvc_a: (endpoint) => ({ endpoint, api_key: key, hostname: 'h' }),
  logsvc_a_old: (endpoint) => ({ endpoint, api_key: key, hostname: 'h' }),
  logsvc_b_logs: (endpoint) => ({ endpoint, token: key, ...text }),
  message_broker: (url) => ({
    endpoint: url.replace('http:', 'pulsar:'),
    topic: 't',
    ...text,
    auth: { oauth2: { ...oauth2, issuer_url: url } },
    connection_retry_options: { max_retries: 0 },
  }),
  monitor_a_logs: (endpoint) => ({ endpoint, default_api_key: key }),
  monitor_a_metrics: (endpoint) => ({ endpoint, default_api_key: key }),
  monitor_c_logs: (endpoint) => ({ endpoint, token: key }),
  monitor_c_metrics: (endpoint) => ({ endpoint, token: key, default_namespace: 'ns' }),
  observability_d: (url) => ({ api: 'logs', account_id: '1', override_uri: url, license_key: key }),
  remote_write_metrics: (url) => ({ endpoint: `${url}/w`, auth: aws, aws: { region: 'eu' } }),
  search_engine: (url) => ({ endpoints: [url] }),
  siem_unstructured: (endpoint) => ({ endpoint, ...siem }),
  tsdb_metrics: (endpoint) => ({ endpoint, org: 'o', bucket: 'b', token: key }),
  eventstore_metrics: (url) => ({ endpoint: url, scrape_interval_secs: 1 }),
  webserver_metrics: (url) => ({ endpoints: [url], scrape_interval_secs: 1 }),
  cloud_queue: (url) => ({
    queue_url: `${url}/1/q`,
    region: 'eu',
    endpoint: url,
    auth: { access_key_id: 'a', secret_access_key: 'b' },
  }),
}

/** Components that send no queries, or not over HTTP. */
const silent: ReadonlySet<string> = new Set([
  ...[
    'amqp',
    'demo_logs',
    'file',
    'internal_logs',
    'internal_metrics',
    'orchestrator_events',
    'orchestrator_logs',
    'stdin',
  ],
  ...['blackhole', 'console', 'file', 'memory_table'],
])

const querying = components.filter(({ kind, type }) => kind !== 'transform' && !silent.has(type))

test('every component that sends queries is in the table', () => {
  expect(Object.keys(asking).toSorted()).toEqual([...new Set(querying.map(({ type }) => type))].toSorted())
})

const answers: Readonly<Record<string, RequestListener>> = {
  ...Object.fromEntries(Object.keys(bombs).map((coding) => [coding, bomb(coding)])),
  endless,
}

describe.each(querying.map((component) => ({ type: component.type, component })))('$type', ({ type, component }) => {
  test.each(Object.keys(answers))('reads only the beginning of a response: %s', async (name) => {
    let asked = 0
    const answer = answers[name] as RequestListener
    await using server = await peer((request, response) => {
      asked++
      answer(request, response)
    })

    await exchange(component, (asking[type] as Options)(server.url), () => asked)

    expect(asked).toBeGreaterThan(0)
    // Scrapes keep 8 MiB, and lists of rejected events as much as a client may hold.
    expect(produced).toBeLessThan(asked * (maxHeldBytes + (1 << 20)))
  })
})

/** Runs a component until it has sent at least one query and received the response. */
async function exchange(component: AnyDeclaration, options: object, asked: () => number): Promise<void> {
  const { kind, type } = component
  if (kind === 'source') {
    await using source = await startSource(type, options)
    await expect.poll(asked).toBeGreaterThan(0)
    await expect.poll(() => source.events.counts.size + source.events.errors.length).toBeGreaterThan(0)
    return
  }
  if (kind !== 'sink') return
  await using sink = await startSink(type, { ...options, request: { retry_attempts: 0, timeout_secs: 20 } })
  const time = '2026-01-01T00:00:00Z'
  const events = component.accepts.includes('log')
    ? [log({ message: 'a', timestamp: time })]
    : [metric('a', { type: 'gauge', value: 1 }, { kind: 'absolute', timestamp: at(time) })]
  await sink.sink.healthcheck?.(AbortSignal.timeout(30_000)).catch(() => {}) // the health check may fail
  await sink.deliver(events)
}
