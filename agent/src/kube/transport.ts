// One exchange with the API server over HTTP/1.1, for the operator and for agents whose server does not speak HTTP/2. The caller gives
// the address and the credentials. The operator's leader loads it in a worker thread too, so it depends on Node alone.

import type { Agent as HttpAgent, IncomingMessage } from 'node:http'
import type { ConnectionOptions } from 'node:tls'
import type { KubeTarget } from './config.ts'

// Not by `import`: that also loads the client of `fetch`, 16 MB in every agent.
const http = () => process.getBuiltinModule('node:http')
const https = () => process.getBuiltinModule('node:https')

/** How to reach the API server and who we are to it; plain data, so that a worker thread can be given it. */
export interface Access {
  /** Such as `https://10.96.0.1:443`, perhaps with a path. */
  readonly server: string
  /** A list is sent as that many headers. */
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
  /** With its query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly signal: AbortSignal
  /** Time limit for the head of the answer; only the signal ends the wait if not given. */
  readonly answerTimeoutMs?: number
}

/** Address and TLS of a target, without credentials in headers: those change with the token. */
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

/** The options that are given: Node takes one that is undefined for a value. */
export function tlsOptions(tls: Access['tls']): ConnectionOptions {
  return Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined))
}

/** The host of an address, as sockets want it: an IPv6 address without brackets. */
export function hostOf(server: URL): string {
  return server.hostname.replace(/^\[|\]$/g, '')
}

/** Connections to one server; those of an `Access` are kept for the next request. */
export class Transport {
  #access: Access | undefined
  #agent: HttpAgent | undefined

  /** Sends a request and gives the answer when its head is there. */
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
          : setTimeout(() => request.destroy(new Error('It did not answer in time.')), exchange.answerTimeoutMs)
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
      // Watches that run over the old connections continue; idle ones are closed as their answers end.
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

/** Longest answer that is read as a whole. */
const maxAnswerBytes = 256 * 1024 * 1024

/** Reads an answer to its end. */
export async function bodyText(answer: AsyncIterable<Buffer>, maxBytes = maxAnswerBytes): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of answer) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) throw new Error(`The answer is longer than ${maxBytes} bytes.`)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** A stream that cannot be trusted any more: the caller must begin with a new list. */
export class BrokenStreamError extends Error {}

/** The lines of a watch that are not empty; `heard` is called for every piece that arrives. */
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
