// A destination that records messages by path. It listens on an address of this machine other than loopback, because namespaced Pipelines may not
// connect to loopback. It can be stopped and restarted at the same address.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { gunzipSync } from 'node:zlib'
import { ownText } from '@penstock/agent/program'

export class Receiver implements AsyncDisposable {
  readonly #server: Server
  readonly #host: string
  readonly #maxLength: number
  #port = 0
  /** The `message` fields by path. */
  readonly messages = new Map<string, string[]>()
  readonly authorizations = new Map<string, Set<string>>()
  /** Paths with an error response. */
  readonly down = new Set<string>()
  /** Delays of responses in milliseconds by path. */
  readonly slow = new Map<string, number>()
  /** Passwords for basic authentication by path. Other requests get 401. */
  readonly guarded = new Map<string, string>()
  /** Number of 401 responses by path. */
  readonly unauthorized = new Map<string, number>()
  /** Arrival time of the first message by path, from `performance.now()`. */
  readonly firstAt = new Map<string, number>()

  private constructor(host: string, maxLength: number) {
    this.#host = host
    this.#maxLength = maxLength
    this.#server = createServer((request, response) => {
      const path = request.url ?? ''
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const body = Buffer.concat(parts)
        const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
        if (this.down.has(path)) {
          response.writeHead(503).end()
          return
        }
        const password = this.guarded.get(path)
        if (password !== undefined && passwordOf(request.headers.authorization) !== password) {
          this.unauthorized.set(path, (this.unauthorized.get(path) ?? 0) + 1)
          response.writeHead(401).end()
          return
        }
        const seen = this.authorizations.get(path) ?? new Set()
        this.authorizations.set(path, seen.add(request.headers.authorization ?? ''))
        const lines = this.messages.get(path) ?? []
        this.messages.set(path, lines)
        if (text !== '' && !this.firstAt.has(path)) this.firstAt.set(path, performance.now())
        for (const event of text === '' ? [] : (JSON.parse(text) as { message?: unknown }[]))
          lines.push(ownText(String(event.message).slice(0, this.#maxLength)))
        setTimeout(() => response.writeHead(200).end(), this.slow.get(path) ?? 0)
      })
    })
  }

  /**
   * @param host the address of this machine for its URL
   * @param maxLength number of characters that it keeps of each message
   */
  static async start(host = outerAddress(), maxLength = Number.POSITIVE_INFINITY): Promise<Receiver> {
    const receiver = new Receiver(host, maxLength)
    await receiver.back()
    receiver.#port = (receiver.#server.address() as AddressInfo).port
    return receiver
  }

  get url(): string {
    return `http://${this.#host}:${this.#port}`
  }

  /** Closes all connections, and refuses new ones. */
  async away(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done))
    this.#server.closeAllConnections()
    await closed
  }

  async back(): Promise<void> {
    await new Promise<void>((done, failed) => {
      this.#server.once('error', failed)
      this.#server.listen(this.#port, '0.0.0.0', done)
    })
  }

  at(path: string): readonly string[] {
    return this.messages.get(path) ?? []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.away()
  }
}

/** The password in a basic authentication header. */
function passwordOf(header = ''): string | undefined {
  const [, encoded] = header.split(' ')
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString().split(':').slice(1).join(':')
}

/** An address of this machine that is neither loopback nor link-local. */
export function outerAddress(): string {
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { family, internal, address } of addresses ?? []) {
      if (family === 'IPv4' && !internal && !address.startsWith('169.254.')) return address
    }
  }
  throw new Error('This machine has only loopback addresses.')
}
