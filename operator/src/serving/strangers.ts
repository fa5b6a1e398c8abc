// Limits the connections of unauthenticated clients. Any client that can reach a server can open connections, and each needs memory (some
// 80 KB with TLS) until its first request is authenticated or it times out.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Enough for the agents of a large cluster that connect at once after a restart. A known pod at its own address does not count. */
const maxStrangers = 2_048

export class Strangers {
  readonly #max: number
  /** Open connections by address and port, the oldest first. */
  readonly #byAddress = new Map<string, Map<number, Socket>>()
  #open = 0

  constructor(max = maxStrangers) {
    this.#max = max
  }

  follow(server: Server): void {
    server.on('connection', (socket: Socket) => this.#add(socket))
  }

  /** Stops counting a connection, because its client is authenticated. */
  know({ remoteAddress, remotePort }: Socket): void {
    this.#remove(remoteAddress ?? '', remotePort ?? 0)
  }

  get open(): number {
    return this.#open
  }

  #add(socket: Socket): void {
    const { remoteAddress: address, remotePort: port } = socket
    // Its client has already closed it.
    if (address === undefined || port === undefined) return
    const known = this.#byAddress.get(address) ?? new Map<number, Socket>()
    this.#byAddress.set(address, known)
    // The close of an earlier connection from this port may not have been reported yet.
    if (!known.delete(port)) this.#open++
    known.set(port, socket)
    socket.once('close', () => {
      if (this.#byAddress.get(address)?.get(port) === socket) this.#remove(address, port)
    })
    if (this.#open > this.#max) this.#closeOne()
  }

  /** Closes the oldest connection of the address with the most connections, so that no address can use up the limit alone. */
  #closeOne(): void {
    let address = ''
    let max = 0
    for (const [each, { size }] of this.#byAddress) {
      if (size > max) [address, max] = [each, size]
    }
    const [oldest] = this.#byAddress.get(address) ?? []
    if (oldest === undefined) return
    const [port, socket] = oldest
    this.#remove(address, port)
    socket.destroy()
  }

  #remove(address: string, port: number): void {
    const connections = this.#byAddress.get(address)
    if (connections?.delete(port) !== true) return
    this.#open--
    if (connections.size === 0) this.#byAddress.delete(address)
  }
}
