import { once } from 'node:events'
import { type ClientRequest, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { Bodies, type CountedBody } from './bodies.ts'

/** Reads each body, as one of the namespace in the path, and keeps it until `release`. */
async function reading(perNamespace: number, total: number, maxBytes: number) {
  const bodies = new Bodies({ perNamespace, total })
  const kept: CountedBody[] = []
  const server = createServer((received, response) => {
    bodies.read(received, received.url ?? '', maxBytes).then(
      (body) => {
        if (typeof body !== 'string') kept.push(body)
        response.setHeader('connection', 'close')
        response.end(typeof body === 'string' ? body : body.take().toString())
      },
      () => response.destroy(),
    )
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const open = (namespace: string, headers: Record<string, string> = {}): ClientRequest =>
    request({ host: '127.0.0.1', port, method: 'POST', path: namespace, headers, agent: false }).on('error', () => {})
  return {
    open,
    async send(namespace: string, content: string | Buffer, headers: Record<string, string> = {}): Promise<string> {
      const asked = open(namespace, headers)
      asked.end(content)
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      return (await answer.toArray()).join('')
    },
    release(): void {
      for (const body of kept.splice(0)) body[Symbol.dispose]()
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

test('a body is read up to its maximum size, also when it is compressed', async () => {
  await using server = await reading(1_000, 1_000, 100)
  const compressed = { 'content-encoding': 'gzip' }
  expect(await server.send('/a', 'x'.repeat(100))).toBe('x'.repeat(100))
  expect(await server.send('/a', 'x'.repeat(101))).toBe('size')
  expect(await server.send('/a', gzipSync('y'.repeat(100)), compressed)).toBe('y'.repeat(100))
  expect(await server.send('/a', gzipSync('y'.repeat(50_000)), compressed)).toBe('size')
  for (const content of ['plain', gzipSync('y'.repeat(50)).subarray(0, 20)])
    expect(await server.send('/a', content, compressed)).toBe('invalid')
})

test('bodies in memory count by namespace and in total, until they are disposed', async () => {
  await using server = await reading(100, 150, 100)
  expect(await server.send('/a', 'x'.repeat(80))).toHaveLength(80)
  expect(await server.send('/a', 'x'.repeat(30))).toBe('busy')
  expect(await server.send('/b', 'x'.repeat(60))).toHaveLength(60)
  expect(await server.send('/c', 'x'.repeat(20))).toBe('busy')
  server.release()
  expect(await server.send('/a', 'x'.repeat(100))).toHaveLength(100)
  expect(await server.send('/b', gzipSync('z'.repeat(60)), { 'content-encoding': 'gzip' })).toBe('busy')
})

test('a body that its sender does not complete no longer counts', async () => {
  await using server = await reading(100, 100, 100)
  const half = server.open('/a')
  half.write('x'.repeat(90))
  await vi.waitFor(async () => expect(await server.send('/a', 'x'.repeat(20))).toBe('busy'), 30_000)
  half.destroy()
  await vi.waitFor(async () => {
    server.release()
    expect(await server.send('/a', 'x'.repeat(20))).toHaveLength(20)
  }, 30_000)
})
