// A real HTTP server on loopback that records requests and sends the responses of a test: each response once, and the last one forever.
// A response can also be a network fault.

import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import { loadSnappy } from '../delivery/compression.ts'

/**
 * A status; an object with headers and body; a function of the request; or a fault: `reset` closes the connection in the middle of the
 * request body, `hang` never responds, `stall` begins a response and does not end it, `break` closes the connection in the middle of the
 * response, `garbage` responds with bytes that are not HTTP.
 */
export type Answer =
  | number
  | 'reset'
  | 'hang'
  | 'stall'
  | 'break'
  | 'garbage'
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: string }
  | ((request: RecordedRequest) => Answer)

export interface RecordedRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly raw: Buffer
  /** The body, decompressed. */
  body(): Buffer
  text(): string
  json(): unknown
  /** The lines of the body as JSON. */
  lines(): unknown[]
}

export interface Destination extends AsyncDisposable {
  /** Base address. */
  readonly url: string
  readonly host: string
  readonly requests: RecordedRequest[]
  /** Number of opened connections. */
  readonly connections: number
  /** Resolves when this many requests have arrived; rejects after 2 minutes. */
  received(count: number): Promise<void>
}

/** A destination with these responses; by default 200. */
export function fakeDestination(...answers: Answer[]): Promise<Destination> {
  return startDestination(answers, (handle) => createServer(handle))
}

/** The same on a given loopback port, such as one on which no server listened before. */
export function fakeDestinationAt(port: number, ...answers: Answer[]): Promise<Destination> {
  return startDestination(answers, (handle) => createServer(handle), 'http', port)
}

/** The same over TLS. */
export function fakeTlsDestination(options: ServerOptions, ...answers: Answer[]): Promise<Destination> {
  return startDestination(answers, (handle) => createTlsServer(options, handle), 'https')
}

async function startDestination(
  answers: readonly Answer[],
  create: (handle: (request: IncomingMessage, response: ServerResponse) => void) => Server,
  protocol = 'http',
  port = 0,
): Promise<Destination> {
  const requests: RecordedRequest[] = []
  let listeners: (() => void)[] = []
  let next = 0
  let connections = 0
  const server = create((incoming, response) => {
    const answer = answers[Math.min(next++, answers.length - 1)] ?? 200
    if (answer === 'reset') {
      // The client is still sending the body, or at least has no response yet.
      incoming.once('data', () => incoming.socket.resetAndDestroy())
      incoming.once('end', () => incoming.socket.resetAndDestroy())
      return
    }
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      const request = recorded(incoming, Buffer.concat(chunks))
      requests.push(request)
      respond(request, answer, incoming, response)
      for (const listener of listeners) listener()
    })
  })
  server.on('connection', () => connections++)
  server.keepAliveTimeout = 60_000
  await once(server.listen(port, '127.0.0.1'), 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${protocol}://${host}`,
    host,
    requests,
    get connections() {
      return connections
    },
    received: (count) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(
          () => reject(new Error(`Only ${requests.length} of ${count} requests arrived in 2 minutes.`)),
          120_000,
        )
        const check = () => {
          if (requests.length < count) return
          clearTimeout(limit)
          listeners = listeners.filter((listener) => listener !== check)
          resolve()
        }
        listeners.push(check)
        check()
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function respond(request: RecordedRequest, answer: Answer, incoming: IncomingMessage, response: ServerResponse): void {
  if (typeof answer === 'function') {
    respond(request, answer(request), incoming, response)
    return
  }
  if (answer === 'hang') return
  if (answer === 'stall' || answer === 'break') {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('{', () => {
      if (answer === 'break') incoming.socket.destroy()
    })
    return
  }
  if (answer === 'reset') {
    incoming.socket.resetAndDestroy()
    return
  }
  if (answer === 'garbage') {
    incoming.socket.end('this is not a response\r\n\r\n')
    return
  }
  const { status = 200, headers = {}, body = '' } = typeof answer === 'number' ? { status: answer } : answer
  response.writeHead(status, headers)
  response.end(body)
}

function recorded(incoming: IncomingMessage, raw: Buffer): RecordedRequest {
  const body = () => decompressed(raw, incoming.headers['content-encoding'])
  const text = () => body().toString('utf8')
  return {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: incoming.headers,
    raw,
    body,
    text,
    json: () => JSON.parse(text()) as unknown,
    lines: () =>
      text()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
  }
}

function decompressed(raw: Buffer, coding: string | undefined): Buffer {
  switch (coding) {
    case 'gzip':
      return gunzipSync(raw)
    case 'deflate':
      return inflateSync(raw)
    case 'zstd':
      return zstdDecompressSync(raw)
    case 'snappy':
      return Buffer.from(loadSnappy().uncompress(raw))
    default:
      return raw
  }
}
