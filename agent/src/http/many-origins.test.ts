import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

test.runIf(process.platform === 'linux')('only a limited number of addresses have open connections', async () => {
  let peak = 0
  let open = 0
  const hosts = new Set<string>()
  const server = createServer((request, response) => {
    hosts.add(request.headers.host ?? '')
    request.resume().on('end', () => response.end())
  })
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket) => {
    peak = Math.max(peak, ++open)
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
    // The client closes one connection before it opens the next; the server notices a moment later.
    expect(peak).toBeLessThanOrEqual(200)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
