// The eventstore_metrics source through the agent's command. There is no package of an event store, so a server on loopback returns the
// document from the vendor's documentation, and changes it with each request.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { shownMetrics, startAgent } from '../agent.ts'
import { until } from '../command.ts'

/** `/stats` of a node, shortened in `es`, which the source does not read. */
const stats = (reads: number) => ({
  proc: {
    startTime: '2026-01-05T08:27:31.5186060Z',
    id: 4242,
    mem: 118_968_320,
    cpu: 0.4,
    cpuScaled: 0.05,
    threadsCount: 45,
    contentionsRate: 0,
    thrownExceptionsRate: 0,
    gc: { allocationSpeed: 0, gen0ItemsCount: 12, totalBytesInHeaps: 51_338_912 },
    diskIo: { readBytes: reads * 4096, writtenBytes: 2_052_096, readOps: reads, writeOps: 8_821 },
    tcp: { connections: 0, receivingSpeed: 0, sendingSpeed: 0 },
  },
  sys: {
    cpu: 5.6,
    loadavg: { '1m': 0.18, '5m': 0.22, '15m': 0.19 },
    freeMem: 9_663_676_416,
    totalMem: 16_777_216_000,
    drive: {
      '/var/lib/eventstore': {
        availableBytes: 35_000_000_000,
        totalBytes: 50_000_000_000,
        usage: '30%',
        usedBytes: 15_000_000_000,
      },
      '/var/lib/index': { availableBytes: 7, totalBytes: 10, usage: 30, usedBytes: 3 },
    },
  },
  es: {
    checksum: 1024,
    queue: { mainQueue: { queueName: 'MainQueue', groupName: '', avgItemsPerSecond: 14, length: 0 } },
    writer: { lastFlushSize: 0, lastFlushDelayMs: 0.0134 },
  },
})

test('reads the statistics of a node with temporary failures', async () => {
  let asked = 0
  const server = createServer((request, answer) => {
    asked++
    expect(request.headers.accept).toBe('application/json')
    if (request.url !== '/stats') answer.writeHead(404).end()
    else if (asked === 2) answer.writeHead(503).end('starting')
    else if (asked === 3) request.socket.destroy()
    else if (asked === 4) answer.end('{"proc":')
    else answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(stats(asked)))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/stats`
  try {
    await using agent = await startAgent({
      sources: { in: { type: 'eventstoredb_metrics', endpoint: url, scrape_interval_secs: 1 } },
      sinks: { out: { type: 'console', inputs: ['in'], encoding: { codec: 'json' } } },
    })
    await until('two good readings', 30_000, async () => shownMetrics(agent).length >= 24).catch((error: unknown) => {
      throw new Error(agent.output(), { cause: error })
    })
    expect(await agent.stop(), agent.output()).toBe(0)

    const metrics = shownMetrics(agent)
    for (const metric of metrics) expect(metric).toMatchObject({ namespace: 'eventstoredb', kind: 'absolute' })
    const data = { id: '4242', path: '/var/lib/eventstore' }
    const index = { id: '4242', path: '/var/lib/index' }
    const node = { id: '4242' }
    const expected = (reads: number) => [
      ['process_memory_used_bytes', 'gauge', 118_968_320, node],
      ['disk_read_bytes_total', 'counter', reads * 4096, node],
      ['disk_written_bytes_total', 'counter', 2_052_096, node],
      ['disk_read_ops_total', 'counter', reads, node],
      ['disk_write_ops_total', 'counter', 8_821, node],
      ['memory_free_bytes', 'gauge', 9_663_676_416, node],
      ['disk_total_bytes', 'gauge', 50_000_000_000, data],
      ['disk_free_bytes', 'gauge', 35_000_000_000, data],
      ['disk_used_bytes', 'gauge', 15_000_000_000, data],
      ['disk_total_bytes', 'gauge', 10, index],
      ['disk_free_bytes', 'gauge', 7, index],
      ['disk_used_bytes', 'gauge', 3, index],
    ]
    const shown = metrics.map(({ name, type, value, tags }) => [name, type, value, tags])
    expect(shown.slice(0, 24)).toEqual([...expected(1), ...expected(5)])
    expect(agent.output()).toContain('http_response_503')
  } finally {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
})
