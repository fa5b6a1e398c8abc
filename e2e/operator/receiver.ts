// A destination that keeps what it is sent, by path. It listens on an address of this machine that is not loopback, where
// namespaced Pipelines may connect to.

import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'

export class Receiver implements AsyncDisposable {
  readonly #server: Server
  /** Texts of the `message` fields, by path. */
  readonly messages = new Map<string, string[]>()
  readonly authorizations = new Map<string, Set<string>>()
  /** Paths that are answered with an error. */
  readonly down = new Set<string>()
  /** Paths that are answered after this many milliseconds. */
  readonly slow = new Map<string, number>()

  private constructor() {
    this.#server = createServer((request, response) => {
      const path = request.url ?? ''
      let text = ''
      request.on('data', (part) => {
        text += part
      })
      request.on('end', () => {
        if (this.down.has(path)) {
          response.writeHead(503).end()
          return
        }
        const seen = this.authorizations.get(path) ?? new Set()
        this.authorizations.set(path, seen.add(request.headers.authorization ?? ''))
        const lines = this.messages.get(path) ?? []
        this.messages.set(path, lines)
        for (const event of text === '' ? [] : (JSON.parse(text) as { message?: unknown }[]))
          lines.push(String(event.message))
        setTimeout(() => response.writeHead(200).end(), this.slow.get(path) ?? 0)
      })
    })
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((done) => receiver.#server.listen(0, '0.0.0.0', done))
    return receiver
  }

  get url(): string {
    return `http://${outerAddress()}:${(this.#server.address() as AddressInfo).port}`
  }

  at(path: string): readonly string[] {
    return this.messages.get(path) ?? []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}

/** An address of this machine that is neither loopback nor link-local. */
export function outerAddress(): string {
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { family, internal, address } of addresses ?? []) {
      if (family === 'IPv4' && !internal && !address.startsWith('169.254.')) return address
    }
  }
  throw new Error('This machine has no address but loopback.')
}
