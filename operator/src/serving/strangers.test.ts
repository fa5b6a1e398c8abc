import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { request as requestSecure } from 'node:https'
import { type AddressInfo, Socket } from 'node:net'
import { expect, test, vi } from 'vitest'
import { flood } from '../testing/flood.ts'
import { OperatorCertificate, renewCertificates, secureServer, serverNames } from './certificates.ts'
import { Strangers } from './strangers.ts'

async function serving(secure: boolean, max: number) {
  const strangers = new Strangers(max)
  const listener: RequestListener = (received, response) => {
    if (received.headers.authorization !== undefined) strangers.know(received.socket)
    if (received.url === '/held') response.writeHead(200).write('held')
    else response.end('answered')
  }
  const certificate = new OperatorCertificate()
  if (secure) certificate.set((await renewCertificates({}, serverNames('ns'), new Date())).server)
  const server: Server = secure ? secureServer(certificate, listener) : createServer(listener)
  strangers.follow(server)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const get = async (path: string, localAddress: string): Promise<IncomingMessage> => {
    const options = { host: '127.0.0.1', port, path, localAddress, headers: { authorization: 'yes' } }
    const asked = secure
      ? requestSecure({ ...options, rejectUnauthorized: false, agent: false }).end()
      : request({ ...options, agent: new Agent() }).end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    return answer
  }
  return {
    ...{ strangers, port, get },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

test.each([false, true])(
  'an address with too many connections without a request loses only its own (TLS: %s)',
  async (secure) => {
    await using server = await serving(secure, 20)
    // A known client at the same address, and a few unknown ones at another.
    const held = await server.get('/held', '127.0.0.2')
    let isLost = false
    held.on('close', () => {
      isLost = true
    })
    using others = await flood(server.port, '127.0.0.3', 6, secure)
    using hostile = await flood(server.port, '127.0.0.2', 60, secure)
    await vi.waitFor(() => expect(hostile.open()).toBeLessThanOrEqual(14), 30_000)
    expect(server.strangers.open).toBeLessThanOrEqual(20)
    expect(others.open()).toBe(6)
    expect(isLost).toBe(false)
    for (const address of ['127.0.0.1', '127.0.0.2', '127.0.0.3'])
      expect((await server.get('/', address)).statusCode).toBe(200)
  },
)

test('a connection that its client has already closed does not count, and one from the same port counts once', () => {
  const strangers = new Strangers(5)
  const server = createServer()
  strangers.follow(server)
  for (let count = 0; count < 20; count++) server.emit('connection', new Socket())
  expect(strangers.open).toBe(0)
  const [first, second] = [1, 2].map(() =>
    Object.defineProperties(new Socket(), { remoteAddress: { value: '127.0.0.9' }, remotePort: { value: 4000 } }),
  )
  server.emit('connection', first)
  server.emit('connection', second)
  expect(strangers.open).toBe(1)
  first?.emit('close')
  expect(strangers.open).toBe(1)
  second?.emit('close')
  expect(strangers.open).toBe(0)
})

test('closed connections do not count', async () => {
  await using server = await serving(false, 5)
  for (let round = 0; round < 4; round++) {
    using _ = await flood(server.port, '127.0.0.2', 4, false)
  }
  await vi.waitFor(() => expect(server.strangers.open).toBe(0), 30_000)
  using _ = await flood(server.port, '127.0.0.4', 5, false)
  await vi.waitFor(() => expect(server.strangers.open).toBe(5), 30_000)
})
