// Requests of the agent to the Kubernetes API. All of them share one HTTP/2 connection, which is opened when it is needed and opened
// again when it was lost; servers that do not speak HTTP/2 are spoken to in HTTP/1.1 (transport.ts).
//
// The operator has another client (operator/src/kube/client.ts) over transport.ts alone. An agent holds a few watches for years, on
// each node: one connection costs the API server least. The operator may watch each type in each namespace, more than the 100 streams
// that a connection of HTTP/2 has, and a watch that waits for a stream would wait forever; it also lists megabytes, writes, and
// needs what an answer's `Status` says. Both read addresses, credentials, bodies and lines of watches by the same code.

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

/** A body of JSON that goes with a request. */
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
  /** Whether the server supports only HTTP/1.1, as far as is known. */
  #speaksHttp1: boolean
  #session: Promise<ClientHttp2Session | undefined> | undefined
  #closed = false

  constructor(target: KubeTarget, userAgent: string) {
    this.#target = target
    this.#userAgent = userAgent
    this.#address = addressOf(target)
    this.#speaksHttp1 = target.server.protocol === 'http:'
  }

  /** Asks for a path with its query, or sends a body of JSON to it; returns the status and the body as it comes. */
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

  /** Asks for a path, or sends something to it, and reads the answer as JSON. */
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
      throw new PenstockError('PEN_KUBERNETES', 'An answer of the Kubernetes API is not valid JSON.', { cause: error })
    }
  }

  /** Closes all connections and opens no others. */
  async close(): Promise<void> {
    this.#closed = true
    await this.disconnect()
  }

  /** Closes connections; the next request opens one again. */
  async disconnect(): Promise<void> {
    this.#http1.close()
    const session = await this.#session?.catch(() => undefined)
    session?.destroy()
  }

  /** The shared session; undefined if the server supports HTTP/1.1 only. */
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
    // A connection that died without a word is found out by pings: a watch may be silent for minutes.
    const pings = setInterval(() => {
      const late = setTimeout(() => session.destroy(new Error('A ping was not answered.')), pingTimeoutMs)
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
      const late = setTimeout(() => stream.destroy(new Error('It did not answer in time.')), answerTimeoutMs)
      stream.on('response', (answer) => {
        clearTimeout(late)
        resolve({ status: Number(answer[constants.HTTP2_HEADER_STATUS]), body: stream })
      })
      stream.on('close', () => {
        clearTimeout(late)
        reject(new Error('The connection was closed before an answer came.'))
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
    const late = setTimeout(() => socket.destroy(new Error('It could not be reached in time.')), connectTimeoutMs)
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
