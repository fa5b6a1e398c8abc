// Requests to the Kubernetes API. All of them share one HTTP/2 connection, which is opened when it is needed and opened
// again when it was lost; servers that do not speak HTTP/2 are spoken to in HTTP/1.1.

import type { Agent as HttpAgent, IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import type { Agent as HttpsAgent } from 'node:https'
import type { Readable } from 'node:stream'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { errorText, PenstockError } from '../errors.ts'
import type { KubeTarget } from './config.ts'

// Only for servers of HTTP/1.1, and not by `import`: that also loads the client of `fetch`, 16 MB in every agent.
const http = () => process.getBuiltinModule('node:http')
const https = () => process.getBuiltinModule('node:https')

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
/** Longest answer that is read as a whole. */
const maxAnswerBytes = 256 * 1024 * 1024

export class KubeClient {
  readonly #target: KubeTarget
  readonly #userAgent: string
  readonly #tls: ConnectionOptions
  #session: Promise<ClientHttp2Session | undefined> | undefined
  #agent: HttpAgent | HttpsAgent | undefined
  #closed = false

  constructor(target: KubeTarget, userAgent: string) {
    this.#target = target
    this.#userAgent = userAgent
    const { hostname, port } = target.server
    const host = hostname.replace(/^\[|\]$/g, '')
    this.#tls = {
      host,
      port: Number(port || 443),
      rejectUnauthorized: target.verify,
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      ...(target.serverName === undefined ? {} : { servername: target.serverName }),
      ...(target.ca === undefined ? {} : { ca: target.ca }),
      ...(target.cert === undefined ? {} : { cert: target.cert }),
      ...(target.key === undefined ? {} : { key: target.key }),
    }
  }

  /** Asks for a path with its query, or sends a body of JSON to it; gives the status and the body as it comes. */
  async get(path: string, signal: AbortSignal, sent?: Sent): Promise<Answer> {
    signal.throwIfAborted()
    const full = this.#target.server.pathname.replace(/\/$/, '') + path
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': this.#userAgent }
    const authorization = this.#target.authorization()
    if (authorization !== undefined) headers['authorization'] = authorization
    if (sent !== undefined) headers['content-type'] = 'application/json'
    try {
      if (this.#target.server.protocol === 'http:') {
        this.#agent ??= new (http().Agent)({ keepAlive: true })
        return await this.#getHttp1(full, headers, signal, sent)
      }
      const session = this.#agent === undefined ? await this.#connected() : undefined
      return session === undefined
        ? await this.#getHttp1(full, headers, signal, sent)
        : await this.#getHttp2(session, full, headers, signal, sent)
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
    const parts: Buffer[] = []
    let length = 0
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part)
      length += part.length
      if (length > maxAnswerBytes)
        throw new PenstockError('PEN_KUBERNETES', 'An answer of the Kubernetes API is too long.')
    }
    const text = Buffer.concat(parts).toString('utf8')
    try {
      return { status, body: JSON.parse(text) }
    } catch (error) {
      if (status !== 200) return { status, body: undefined }
      throw new PenstockError('PEN_KUBERNETES', 'An answer of the Kubernetes API is not valid JSON.', { cause: error })
    }
  }

  /** Closes connections for good. */
  async close(): Promise<void> {
    this.#closed = true
    await this.disconnect()
  }

  /** Closes connections; the next request opens one again. */
  async disconnect(): Promise<void> {
    this.#agent?.destroy()
    const session = await this.#session?.catch(() => undefined)
    session?.destroy()
  }

  /** The shared session; undefined if the server speaks HTTP/1.1 only. */
  #connected(): Promise<ClientHttp2Session | undefined> {
    this.#session ??= this.#connect().catch((error: unknown) => {
      this.#session = undefined
      throw error
    })
    return this.#session
  }

  async #connect(): Promise<ClientHttp2Session | undefined> {
    if (this.#closed) throw new PenstockError('PEN_KUBERNETES', 'The connection to the Kubernetes API was closed.')
    const socket = await openSocket(this.#tls)
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy()
      this.#agent = new (https().Agent)({ ...this.#tls, keepAlive: true })
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
      const stream = session.request(
        { ...headers, [constants.HTTP2_HEADER_METHOD]: method, [constants.HTTP2_HEADER_PATH]: path },
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

  #getHttp1(
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
    sent: Sent | undefined,
  ): Promise<Answer> {
    const { server } = this.#target
    const agent = this.#agent as HttpAgent | HttpsAgent
    return new Promise((resolve, reject) => {
      const options = {
        host: this.#tls.host,
        port: Number(server.port || (server.protocol === 'http:' ? 80 : 443)),
        method: sent?.method ?? 'GET',
        path,
        headers,
        agent,
        signal,
      }
      const onAnswer = (answer: IncomingMessage) => {
        clearTimeout(late)
        resolve({ status: answer.statusCode ?? 0, body: answer })
      }
      const request =
        server.protocol === 'http:'
          ? http().request(options, onAnswer)
          : https().request({ ...this.#tls, ...options }, onAnswer)
      const late = setTimeout(() => request.destroy(new Error('It did not answer in time.')), answerTimeoutMs)
      request.on('error', (error) => {
        clearTimeout(late)
        reject(error)
      })
      request.end(sent?.text)
    })
  }
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
