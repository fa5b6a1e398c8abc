// One exchange with the API server over HTTP/1.1, for the operator and for agents whose server does not speak HTTP/2. The caller gives
// the address and the credentials. The operator's leader loads it in a worker thread too, so it depends on Node alone.

import type { Agent as HttpAgent, IncomingMessage } from 'node:http'

// Not by `import`: that also loads the client of `fetch`, 16 MB in every agent.
const http = () => process.getBuiltinModule('node:http')
const https = () => process.getBuiltinModule('node:https')

/** How to reach the API server and who we are to it; plain data, so that a worker thread can be given it. */
export interface Access {
  /** Such as `https://10.96.0.1:443`, perhaps with a path. */
  readonly server: string
  readonly headers: Readonly<Record<string, string>>
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
          host: server.hostname.replace(/^\[|\]$/g, ''),
          port: server.port === '' ? (secure ? 443 : 80) : Number(server.port),
          path: server.pathname.replace(/\/$/, '') + exchange.path,
          method: exchange.method,
          headers,
          agent,
          signal: exchange.signal,
        },
        resolve,
      )
      request.on('socket', (socket) => socket.setKeepAlive(true, 15_000))
      request.on('error', reject)
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
        (known.server === access.server && JSON.stringify(known.tls) === JSON.stringify(access.tls))
      ) {
        this.#access = access
        return this.#agent
      }
      // Watches that run over the old connections go on; idle ones are closed as their answers end.
      const old = this.#agent
      setTimeout(() => old.destroy(), 600_000).unref()
    }
    const options = { keepAlive: true, keepAliveMsecs: 15_000, scheduling: 'lifo' as const }
    this.#access = access
    this.#agent = access.server.startsWith('https:')
      ? new (https().Agent)({
          ...options,
          ...Object.fromEntries(Object.entries(access.tls).filter(([, value]) => value !== undefined)),
        })
      : new (http().Agent)(options)
    return this.#agent
  }
}

/** Reads an answer to its end. */
export async function bodyText(answer: IncomingMessage, maxBytes = 256 * 1024 * 1024): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of answer as AsyncIterable<Buffer>) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) throw new Error(`The answer is longer than ${maxBytes} bytes.`)
  }
  return Buffer.concat(parts).toString('utf8')
}
