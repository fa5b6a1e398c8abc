// Opens connections: direct or through a proxy, plain or with TLS. For TLS, the proxy opens a tunnel (CONNECT). For plain HTTP, the
// client sends the request to the proxy, with the full address in the request line.

import { connect, type Socket } from 'node:net'
import { PenstockError } from '../errors.ts'
import type { Egress } from './egress.ts'
import type { ProxyAddress } from './proxy.ts'
import type { TlsSettings } from './tls.ts'

export interface ConnectTarget {
  readonly host: string
  readonly port: number
  readonly secure: boolean
}

/** Opens a connection to the target. Rejects with the reason if this fails or the signal aborts. */
export async function openConnection(
  target: ConnectTarget,
  proxy: ProxyAddress | undefined,
  tls: TlsSettings,
  signal: AbortSignal,
  egress?: Egress,
): Promise<Socket> {
  if (proxy === undefined) {
    const socket = await openSocket(target.host, target.port, signal, egress)
    return target.secure ? tls.secure(socket, tls.serverName ?? target.host, signal) : socket
  }
  await egress?.checkBehindProxy(target.host)
  const guard = egress?.isOwnProxy(proxy) === true ? undefined : egress
  let socket = await openSocket(proxy.host, proxy.port, signal, guard)
  if (proxy.secure) socket = await tls.secure(socket, proxy.host, signal)
  if (!target.secure) return socket
  await openTunnel(socket, target, proxy, signal)
  return tls.secure(socket, tls.serverName ?? target.host, signal)
}

/** @param egress rejects forbidden addresses, including those that a name resolves to */
async function openSocket(host: string, port: number, signal: AbortSignal, egress?: Egress): Promise<Socket> {
  egress?.check(host)
  const lookup = egress === undefined ? {} : { lookup: egress.lookup }
  const socket = connect({ host, port, autoSelectFamily: true, noDelay: true, keepAlive: true, ...lookup })
  await reached(socket, signal, (done) => ({ connect: done }))
  return socket
}

const maxAnswerLength = 16_384

async function openTunnel(
  socket: Socket,
  target: ConnectTarget,
  proxy: ProxyAddress,
  signal: AbortSignal,
): Promise<void> {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host
  const authority = `${host}:${target.port}`
  const opened = reached(socket, signal, (done, fail) => {
    let answer = ''
    const data = (chunk: Buffer) => {
      answer += chunk.toString('latin1')
      const head = answer.indexOf('\r\n\r\n')
      if (head < 0) {
        if (answer.length > maxAnswerLength) fail(new Error('The response of the proxy is not HTTP.'))
        return
      }
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]
      if (status === undefined) return fail(new Error('The response of the proxy is not HTTP.'))
      if (!status.startsWith('2')) {
        const message = `The proxy refused the tunnel with status ${status}.`
        return fail(new PenstockError('PEN_REQUEST_FAILED', message, { fact: message, status: Number(status) }))
      }
      done()
      socket.pause()
      const rest = answer.slice(head + 4)
      if (rest !== '') socket.unshift(Buffer.from(rest, 'latin1'))
    }
    return { data, close: () => fail(new Error('The proxy closed the connection.')) }
  })
  const authorization = proxy.authorization === undefined ? '' : `Proxy-Authorization: ${proxy.authorization}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`)
  await opened
}

/**
 * Waits for a state of a socket, with listeners that end with the wait. If one of them fails, or the socket, or if the signal aborts, this
 * rejects and destroys the socket.
 */
function reached(
  socket: Socket,
  signal: AbortSignal,
  listenersOf: (done: () => void, fail: (error: unknown) => void) => Readonly<Record<string, (data: Buffer) => void>>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener)
      signal.removeEventListener('abort', abort)
    }
    const fail = (error: unknown) => {
      end()
      socket.on('error', () => {}) // later errors contain no new information
      socket.destroy()
      reject(error)
    }
    const done = () => {
      end()
      resolve()
    }
    const abort = () => fail(signal.reason)
    const listeners = { error: fail, ...listenersOf(done, fail) }
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
