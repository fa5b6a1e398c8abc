// Opens many unauthenticated connections, as a hostile pod would: without a byte, with half a request, or with only a TLS handshake.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecure } from 'node:tls'

/** @param localAddress a loopback address that stands for a pod */
export async function flood(port: number, localAddress: string, count: number, secure: boolean): Promise<Flood> {
  const sockets: Socket[] = []
  for (let index = 0; index < count; index++) {
    const socket = connect({ host: '127.0.0.1', port, localAddress })
    socket.on('error', () => {}) // the server may close it at any time
    sockets.push(socket)
    await once(socket, 'connect')
    if (index % 3 === 1)
      socket.write(secure ? Buffer.from([22, 3, 1, 2]) : 'POST /v1/heartbeat HTTP/1.1\r\nhost: o\r\n')
    if (index % 3 === 2 && secure) connectSecure({ socket, rejectUnauthorized: false }).on('error', () => {})
  }
  return {
    open: () => sockets.filter(({ closed, readableEnded }) => !closed && !readableEnded).length,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface Flood extends Disposable {
  /** Number of connections that the server has not closed. */
  open(): number
}
