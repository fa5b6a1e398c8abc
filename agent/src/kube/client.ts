// The agent's client for the Kubernetes API. All requests share one HTTP/2 connection, which the client opens when needed and reopens after
// it was lost. If the server does not support HTTP/2, the client uses HTTP/1.1 (transport.ts).
//
// The operator has its own client (operator/src/kube/client.ts), which uses only transport.ts. Every node has an agent with a few
// long-lived watches, and a single connection costs the API server the least. The operator may watch every type in every namespace. That
// can exceed the 100 streams of an HTTP/2 connection, and a watch that waits for a stream would wait forever. It also lists megabytes,
// writes objects, and needs the `Status` of a response. Both clients share the code for addresses, credentials, bodies and watch lines.

import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { errorText, PenstockError } from '../errors.ts'
import type { KubeTarget } from './config.ts'
import { type Access, addressOf, bodyText, hostOf, Transport, tlsOptions } from './transport.ts'

export interface Answer {
  readonly status: number
  readonly body: Readable
}

/** The JSON body of a request. */
interface Sent {
  readonly method: 'POST' | 'PUT'
  readonly text: string
}

const connectTimeoutMs = 10_000
const answerTimeoutMs = 60_000
const pingEveryMs = 30_000
const pingTimeoutMs = 10_000

export class ApiServerClient {
  readonly #target: KubeTarget
  readonly #userAgent: string
  readonly #address: Omit<Access, 'headers'>
  readonly #http1 = new Transport()
  /** Whether the server is known to support only HTTP/1.1. */
  #speaksHttp1: boolean
  #session: Promise<ClientHttp2Session | undefined> | undefined
  #closed = false

  constructor(target: KubeTarget, userAgent: string) {
    this.#target = target
    this.#userAgent = userAgent
    this.#address = addressOf(target)
    this.#speaksHttp1 = target.server.protocol === 'http:'
  }

  /** Gets a path with a query, or sends a JSON body to it. Returns the status, and the body as a stream. */
  async get(path: string, signal: AbortSignal, sent?: Sent): Promise<Answer> {
    signal.throwIfAborted()
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': this.#userAgent }
    const authorization = this.#target.authorization()
    if (authorization !== undefined) headers['authorization'] = authorization
    if (sent !== undefined) headers['content-type'] = 'application/json'
    try {
      const session = this.#speaksHttp1 ? undefined : await this.#connected()
      return session === undefined
        ? await this.#getHttp1(path, headers, signal, sent)
        : await this.#getHttp2(session, path, headers, signal, sent)
    } catch (error) {
      if (signal.aborted || error instanceof PenstockError) throw error
      throw new PenstockError(
        'PEN_KUBERNETES',
        `The Kubernetes API at ${this.#target.server.origin} could not be reached: ${errorText(error)}`,
        { cause: error },
      )
    }
  }

  /** Gets a path, or sends an object to it, and parses the response as JSON. */
  async json(
    path: string,
    signal: AbortSignal,
    post?: unknown,
    method: Sent['method'] = 'POST',
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const sent = post === undefined ? undefined : { method, text: JSON.stringify(post) }
    const { status, body } = await this.get(path, signal, sent)
    const text = await bodyText(body)
    try {
      return { status, body: JSON.parse(text) }
    } catch (error) {
      if (status !== 200) return { status, body: undefined }
      throw new PenstockError('PEN_KUBERNETES', 'A response of the Kubernetes API is not valid JSON.', { cause: error })
    }
  }

  /** Closes all connections permanently. */
  async close(): Promise<void> {
    this.#closed = true
    await this.disconnect()
  }

  /** Closes all connections. The next request opens a new one. */
  async disconnect(): Promise<void> {
    this.#http1.close()
    const session = await this.#session?.catch(() => undefined)
    session?.destroy()
  }

  /** The shared session; undefined if the server supports only HTTP/1.1. */
  #connected(): Promise<ClientHttp2Session | undefined> {
    this.#session ??= this.#connect().catch((error: unknown) => {
      this.#session = undefined
      throw error
    })
    return this.#session
  }

  async #connect(): Promise<ClientHttp2Session | undefined> {
    if (this.#closed) throw new PenstockError('PEN_KUBERNETES', 'The connection to the Kubernetes API was closed.')
    const socket = await openSocket(socketOptions(this.#target.server, this.#address.tls))
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy()
      this.#speaksHttp1 = true
      this.#session = undefined
      return undefined
    }
    const session = connectHttp2(this.#target.server, { createConnection: () => socket })
    // Pings detect a dead connection, because a watch may be silent for minutes.
    const pings = setInterval(() => {
      const late = setTimeout(() => session.destroy(new Error('The server did not respond to a ping.')), pingTimeoutMs)
      late.unref()
      session.ping(() => clearTimeout(late))
    }, pingEveryMs)
    pings.unref()
    const lost = () => {
      clearInterval(pings)
      this.#session = undefined
    }
    session.on('error', lost)
    session.on('goaway', lost)
    session.on('close', lost)
    return session
  }

  #getHttp2(
    session: ClientHttp2Session,
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    sent: Sent | undefined,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const method = sent?.method ?? 'GET'
      const base = this.#target.server.pathname.replace(/\/$/, '')
      const stream = session.request(
        { ...headers, [constants.HTTP2_HEADER_METHOD]: method, [constants.HTTP2_HEADER_PATH]: base + path },
        { signal },
      )
      const late = setTimeout(() => stream.destroy(new Error('The server did not respond in time.')), answerTimeoutMs)
      stream.on('response', (answer) => {
        clearTimeout(late)
        resolve({ status: Number(answer[constants.HTTP2_HEADER_STATUS]), body: stream })
      })
      stream.on('close', () => {
        clearTimeout(late)
        reject(new Error('The connection was closed before the response.'))
      })
      stream.on('error', (error) => {
        clearTimeout(late)
        reject(error)
      })
      stream.end(sent?.text)
    })
  }

  async #getHttp1(
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    sent: Sent | undefined,
  ): Promise<Answer> {
    const method = sent?.method ?? 'GET'
    const exchange = { method, path, body: sent?.text, signal, answerTimeoutMs }
    const answer = await this.#http1.send({ ...this.#address, headers }, exchange)
    return { status: answer.statusCode ?? 0, body: answer }
  }
}

function socketOptions(server: URL, tls: Access['tls']): ConnectionOptions {
  const host = hostOf(server)
  const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host }
  return { host, port: Number(server.port || 443), ...name, ...tlsOptions(tls) }
}

function openSocket(options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ ...options, ALPNProtocols: ['h2', 'http/1.1'] })
    const late = setTimeout(() => socket.destroy(new Error('The connection timed out.')), connectTimeoutMs)
    socket.once('secureConnect', () => {
      clearTimeout(late)
      socket.removeListener('error', reject)
      resolve(socket)
    })
    socket.once('error', (error) => {
      clearTimeout(late)
      reject(error)
    })
  })
}
