import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

test.runIf(process.platform === 'linux')(
  'of addresses without number only some have connections at a time',
  async () => {
    let most = 0
    let open = 0
    const hosts = new Set<string>()
    const server = createServer((request, response) => {
      hosts.add(request.headers.host ?? '')
      request.resume().on('end', () => response.end())
    })
    server.keepAliveTimeout = 60_000
    server.on('connection', (socket) => {
      most = Math.max(most, ++open)
      socket.on('close', () => open--)
    })
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
    try {
      const { port } = server.address() as AddressInfo
      await using sink = await startSink('http', {
        uri: `http://127.0.{{ a }}.{{ b }}:${port}/`,
        encoding: { codec: 'text' },
        request: { concurrency: 10 },
      })
      const events = Array.from({ length: 400 }, (_, index) =>
        log({ a: Math.floor(index / 200), b: (index % 200) + 1, message: 'x' }),
      )
      expect(await sink.deliver(events)).toBe('delivered')
      expect(hosts.size).toBe(400)
      // The client closes one before it opens the next; the server hears of it a moment later.
      expect(most).toBeLessThanOrEqual(200)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  },
)
