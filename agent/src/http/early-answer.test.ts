// Destinations that answer before they have read the whole request.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LogEvent } from '../event/log.ts'
import { startSink } from '../testing/harness.ts'

/** More than the buffers of a connection hold. */
const bodyBytes = 8_000_000

let server: Server
let readAfterMs = 0
const bodies: Buffer[] = []
beforeEach(async () => {
  bodies.length = 0
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => {}) // the client ends the connection
    request.on('data', (chunk: Buffer) => {
      if (chunks.push(chunk) > 1) return
      request.pause()
      response.end()
      setTimeout(() => request.resume(), readAfterMs)
    })
    request.on('end', () => bodies.push(Buffer.concat(chunks)))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const start = (timeoutSecs: number) =>
  startSink('http', {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    encoding: { codec: 'text' },
    framing: { method: 'bytes' },
    batch: { max_bytes: 2 * bodyBytes, max_events: 1 },
    request: { timeout_secs: timeoutSecs },
    healthcheck: false,
  })

test('a destination that answers early still receives the rest of the request, and not the next one', async () => {
  readAfterMs = 200
  await using sink = await start(60)
  const letters = ['a', 'b', 'c']
  for (const letter of letters) {
    expect(await sink.write([new LogEvent({ message: letter.repeat(bodyBytes) })])).toBe('delivered')
  }
  await vi.waitFor(() => expect(bodies).toHaveLength(letters.length))
  for (const [index, letter] of letters.entries()) {
    expect(bodies[index]?.equals(Buffer.alloc(bodyBytes, letter)), letter).toBe(true)
  }
})

test('a request that is answered, but not read until it times out, is delivered, and its connection ends', async () => {
  readAfterMs = 3000
  await using sink = await start(1)
  const statuses = await Promise.all(
    ['a', 'b'].map((letter) => sink.write([new LogEvent({ message: letter.repeat(bodyBytes) })])),
  )
  expect(statuses).toEqual(['delivered', 'delivered'])
  await vi.waitFor(
    () =>
      new Promise<void>((resolve, reject) => {
        server.getConnections((_, open) =>
          open === 0 ? resolve() : reject(new Error(`${open} connections are open.`)),
        )
      }),
  )
  expect(bodies).toEqual([])
})
