// A TCP relay, optionally with TLS termination. It lets pods reach servers that listen only on loopback, adds TLS to servers without it, and can
// interrupt connections.

import type { AddressInfo, Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

export interface RelayOptions {
  /** Address to listen on; loopback by default. */
  readonly host?: string
  /** Key and certificate (PEM), with which the relay uses TLS for clients. */
  readonly tls?: { readonly key: string; readonly cert: string; readonly ca?: string; readonly requestCert?: boolean }
}

export interface Relay extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** Closes all connections, and refuses new ones until `open`. */
  cut(): void
  open(): void
}

/** Starts a relay to the host and port of a URL. */
export async function relay(target: string, options: RelayOptions = {}): Promise<Relay> {
  const { hostname, port: targetPort } = new URL(target)
  const host = options.host ?? '127.0.0.1'
  const sockets = new Set<Socket>()
  let closed = false

  const accept = (client: Socket) => {
    if (closed) {
      client.destroy()
      return
    }
    const upstream = connect(Number(targetPort), hostname)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  }
  const server: Server =
    options.tls === undefined
      ? createServer(accept)
      : createTlsServer({ ...options.tls, rejectUnauthorized: options.tls.requestCert ?? false }, accept)
  server.on('tlsClientError', () => {}) // a client may reject the certificate, which the test checks at the client
  await new Promise<void>((done, reject) => {
    server.once('error', reject)
    server.listen(0, host, done)
  })
  const { port } = server.address() as AddressInfo

  const cut = () => {
    closed = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${host}:${port}`,
    port,
    cut,
    open: () => {
      closed = false
    },
    async [Symbol.asyncDispose]() {
      cut()
      await new Promise((done) => server.close(done))
    },
  }
}
