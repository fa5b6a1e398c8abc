// Requests to the API server over HTTP/1.1, for the operator, and for agents if the server does not support HTTP/2. The caller passes the
// address and the credentials. The operator's leader also loads this file in a worker thread, so it depends only on Node.js.

import type { Agent as HttpAgent, IncomingMessage } from 'node:http'
import type { ConnectionOptions } from 'node:tls'
import type { KubeTarget } from './config.ts'

// `import` would also load the client for `fetch`, which costs 16 MB in every agent.
const http = () => process.getBuiltinModule('node:http')
const https = () => process.getBuiltinModule('node:https')

/** Address and credentials for the API server, as plain data that can be passed to a worker thread. */
export interface Access {
  /** The address, such as `https://10.96.0.1:443`, perhaps with a path. */
  readonly server: string
  /** Headers to send. A list is sent as several headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly tls: {
    readonly ca?: string | undefined
    readonly cert?: string | undefined
    readonly key?: string | undefined
    readonly servername?: string | undefined
    readonly rejectUnauthorized?: boolean | undefined
  }
}

export interface Exchange {
  readonly method: string
  /** The path, including the query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal: AbortSignal
  /** Time limit for the response head; by default, only the signal ends the wait. */
  readonly answerTimeoutMs?: number
}

/** Address and TLS settings of a target, without the credentials in headers, which change with the token. */
export function addressOf(target: KubeTarget): Omit<Access, 'headers'> {
  return {
    server: target.server.href.replace(/\/$/, ''),
    tls: {
      ca: target.ca,
      cert: target.cert,
      key: target.key,
      servername: target.serverName,
      rejectUnauthorized: target.verify ? undefined : false,
    },
  }
}

/** Removes undefined options, because Node.js would not treat them as absent. */
export function tlsOptions(tls: Access['tls']): ConnectionOptions {
  return Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined))
}

/** The host of an address in the form that sockets need: IPv6 addresses have no brackets. */
export function hostOf(server: URL): string {
  return server.hostname.replace(/^\[|\]$/g, '')
}

/** Connections to one server, which are reused for requests with the same `Access`. */
export class Transport {
  #access: Access | undefined
  #agent: HttpAgent | undefined

  /** Sends a request. Resolves with the response when its head has arrived. */
  send(access: Access, exchange: Exchange): Promise<IncomingMessage> {
    const agent = this.#agentOf(access)
    const server = new URL(access.server)
    const secure = server.protocol === 'https:'
    return new Promise((resolve, reject) => {
      exchange.signal.throwIfAborted()
      const { body } = exchange
      const headers = {
        accept: 'application/json',
        ...access.headers,
        ...exchange.headers,
        ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      }
      const request = (secure ? https() : http()).request(
        {
          host: hostOf(server),
          port: server.port === '' ? (secure ? 443 : 80) : Number(server.port),
          path: server.pathname.replace(/\/$/, '') + exchange.path,
          method: exchange.method,
          headers,
          agent,
          signal: exchange.signal,
        },
        (answer) => {
          clearTimeout(late)
          resolve(answer)
        },
      )
      const late =
        exchange.answerTimeoutMs === undefined
          ? undefined
          : setTimeout(
              () => request.destroy(new Error('The server did not respond in time.')),
              exchange.answerTimeoutMs,
            )
      request.on('socket', (socket) => socket.setKeepAlive(true, 15_000))
      request.on('error', (error) => {
        clearTimeout(late)
        reject(error)
      })
      request.end(body)
    })
  }

  close(): void {
    this.#agent?.destroy()
    this.#agent = undefined
    this.#access = undefined
  }

  #agentOf(access: Access): HttpAgent {
    const known = this.#access
    if (known !== undefined && this.#agent !== undefined) {
      if (
        known === access ||
        (known.server === access.server &&
          (known.tls === access.tls || JSON.stringify(known.tls) === JSON.stringify(access.tls)))
      ) {
        this.#access = access
        return this.#agent
      }
      // Watches continue on the old connections; after ten minutes, all old connections are closed.
      const old = this.#agent
      setTimeout(() => old.destroy(), 600_000).unref()
    }
    const options = { keepAlive: true, keepAliveMsecs: 15_000, scheduling: 'lifo' as const }
    this.#access = access
    this.#agent = access.server.startsWith('https:')
      ? new (https().Agent)({
          ...options,
          ...tlsOptions(access.tls),
        })
      : new (http().Agent)(options)
    return this.#agent
  }
}

/** Maximum length of a response that is read completely. */
const maxAnswerBytes = 256 * 1024 * 1024

/** Reads a response to its end. */
export async function bodyText(answer: AsyncIterable<Buffer>, maxBytes = maxAnswerBytes): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of answer) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) throw new Error(`The response is longer than ${maxBytes} bytes.`)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** The stream is no longer reliable, so the caller must start with a new list. */
export class BrokenStreamError extends Error {}

/** The non-empty lines of a watch. Calls `heard` for every piece that arrives. */
export async function* watchLines(
  answer: AsyncIterable<Buffer>,
  maxBytes = 16 * 1024 * 1024,
  heard?: () => void,
): AsyncGenerator<string> {
  let parts: Buffer[] = []
  let length = 0
  heard?.()
  for await (const chunk of answer) {
    heard?.()
    let from = 0
    for (;;) {
      const end = chunk.indexOf(10, from)
      if (end === -1) break
      parts.push(chunk.subarray(from, end))
      const line = Buffer.concat(parts).toString('utf8')
      parts = []
      length = 0
      from = end + 1
      if (line.trim() !== '') yield line
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from))
      length += chunk.length - from
      if (length > maxBytes) throw new BrokenStreamError(`a line is longer than ${maxBytes} bytes`)
    }
  }
}
