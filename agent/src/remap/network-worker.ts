// The thread that accesses the network for programs: DNS, address lookups and HTTP. It responds with a message, and then wakes
// the waiting thread. Every request ends with a response, a failure, or a timeout.

import { createSocket } from 'node:dgram'
import { getServers, promises } from 'node:dns'
import { connect, isIP } from 'node:net'
import { type MessagePort, parentPort } from 'node:worker_threads'
import { timeoutSignal } from '../clock.ts'
import type { NetworkAnswer, NetworkRequest } from './network.ts'
import { answerAt } from './sync-port.ts'

const maxBytes = 16 * 1024 * 1024

// The first message contains the port for requests.
parentPort?.once('message', ({ port }: { port: MessagePort }) => {
  answerAt(port, (request: NetworkRequest) =>
    answer(request).catch((error: unknown): NetworkAnswer => ({ problem: reasonOf(error) })),
  )
})

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer in time'
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
  return `${error.message}${cause}`
}

async function answer(request: NetworkRequest): Promise<NetworkAnswer> {
  switch (request.kind) {
    case 'dns':
      return await dns(request)
    case 'reverse':
      return { text: (await promises.lookupService(request.address, 0)).hostname }
    case 'http':
      return await http(request)
  }
}

async function dns(request: Extract<NetworkRequest, { kind: 'dns' }>): Promise<NetworkAnswer> {
  const servers = request.servers.length > 0 ? request.servers : getServers()
  let problem = 'no name server is known'
  for (let attempt = 0; attempt < request.attempts; attempt++) {
    for (const server of servers) {
      const { host, port } = endpoint(server)
      try {
        let data = request.tcp
          ? await overTcp(host, port, request.query, request.timeoutMs)
          : await overUdp(host, port, request.query, request.timeoutMs)
        // A truncated response is requested again over TCP.
        if (!request.tcp && ((data[2] as number) & 2) !== 0) {
          data = await overTcp(host, port, request.query, request.timeoutMs)
        }
        return { data }
      } catch (error) {
        problem = `${server}: ${reasonOf(error)}`
      }
    }
  }
  return { problem }
}

/** `10.0.0.1`, `10.0.0.1:53`, `2001:db8::1`, `[2001:db8::1]:53`. */
function endpoint(server: string): { host: string; port: number } {
  const match = /^\[(.+)\](?::(\d+))?$/.exec(server) ?? /^([^:]+)(?::(\d+))?$/.exec(server)
  if (match === null) return { host: server, port: 53 }
  return { host: match[1] as string, port: Number(match[2] ?? 53) }
}

function overUdp(host: string, port: number, query: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4')
  const timer = setTimeout(() => reject(new Error('no answer in time')), timeoutMs)
  socket.on('error', reject)
  socket.on('message', (data) => {
    // Ignores responses that do not match the query.
    if (data.length >= 12 && data[0] === query[0] && data[1] === query[1]) resolve(data)
  })
  socket.connect(port, host, () => socket.send(query))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

function overTcp(host: string, port: number, query: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const socket = connect(port, host)
  const timer = setTimeout(() => reject(new Error('no answer in time')), timeoutMs)
  let data = Buffer.alloc(0)
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('the connection was closed')))
  socket.on('data', (piece: Buffer) => {
    data = Buffer.concat([data, piece])
    if (data.length >= 2 && data.length >= data.readUInt16BE(0) + 2) resolve(data.subarray(2, data.readUInt16BE(0) + 2))
  })
  const length = Buffer.alloc(2)
  length.writeUInt16BE(query.length)
  socket.write(Buffer.concat([length, query]))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

async function http(request: Extract<NetworkRequest, { kind: 'http' }>): Promise<NetworkAnswer> {
  const { fetch, ProxyAgent } = await import('undici')
  const proxy = request.url.startsWith('https:') ? request.httpsProxy : request.httpProxy
  const dispatcher = proxy === undefined ? undefined : new ProxyAgent(proxy)
  try {
    const response = await fetch(request.url, {
      method: request.method,
      headers: request.headers.map(([name, value]): [string, string] => [name, value]),
      signal: timeoutSignal(request.timeoutMs),
      ...(request.body === '' ? {} : { body: request.body }),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    })
    const pieces: Uint8Array[] = []
    let bytes = 0
    for await (const piece of response.body ?? []) {
      bytes += (piece as Uint8Array).length
      if (bytes > maxBytes) return { problem: `the answer has more than ${maxBytes} bytes` }
      pieces.push(piece as Uint8Array)
    }
    return { text: Buffer.concat(pieces).toString('utf8') }
  } finally {
    await dispatcher?.close()
  }
}
