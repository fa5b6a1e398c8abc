// The webserver_metrics source with a real Apache httpd, through the agent's command.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { shownMetrics, startAgent } from '../agent.ts'
import { until } from '../command.ts'
import { type RunningService, service } from '../services/service.ts'

const apache = service('apache')
const why = apache.missing === undefined ? '' : ` (${apache.missing})`

describe.skipIf(apache.missing !== undefined)(`webserver_metrics and Apache httpd${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await apache.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('reads all metrics of the status page, from several servers, one of which does not respond and one is down', async () => {
    const address = new URL(server.url)
    // The page shows no load before the server has used 10 ms of CPU time.
    await until('the server to have used some time', 60_000, async () => {
      for (let n = 0; n < 100; n++) await (await fetch(new URL('/', address))).text()
      return (await (await fetch(server.url)).text()).includes('CPULoad')
    })
    await using silent = await silentServer()
    const down = 'http://127.0.0.1:1/server-status?auto'
    const absent = `${address.origin}/no-such-page`
    await using agent = await startAgent({
      sources: {
        in: {
          type: 'apache_metrics', // the alias that users know from another agent
          endpoints: [silent.url, server.url, down, absent],
          scrape_interval_secs: 1,
        },
      },
      sinks: { out: { type: 'console', inputs: ['in'], encoding: { codec: 'json' } } },
    })
    const of = (endpoint: string) => shownMetrics(agent).filter(({ tags }) => tags['endpoint'] === endpoint)
    const ups = (endpoint: string) => of(endpoint).filter(({ name }) => name === 'up')
    await until('three readings of those that answer', 30_000, async () =>
      [server.url, down, absent].every((endpoint) => ups(endpoint).length >= 3),
    ).catch((error: unknown) => {
      throw new Error(agent.output(), { cause: error })
    })
    expect(await agent.stop(), agent.output()).toBe(0)

    const metrics = of(server.url)
    for (const metric of metrics) {
      expect(metric).toMatchObject({ namespace: 'apache', kind: 'absolute', tags: { host: address.host } })
      expect(metric.timestamp).toMatch(/^\d{4}-.*Z$/)
    }
    const seen = new Set(metrics.map(({ name, type, tags }) => `${name} ${type} ${tags['state'] ?? ''}`.trim()))
    const states = 'waiting starting reading sending keepalive dnslookup closing logging finishing idle_cleanup open'
    expect([...seen].sort()).toEqual(
      [
        'up gauge',
        'access_total counter',
        'sent_bytes_total counter',
        'duration_seconds_total counter',
        'uptime_seconds_total counter',
        'cpu_load gauge',
        ...['user', 'system', 'children_user', 'children_system'].map((state) => `cpu_seconds_total counter ${state}`),
        ...['idle', 'busy'].map((state) => `workers gauge ${state}`),
        ...['total', 'writing', 'keepalive', 'closing'].map((state) => `connections gauge ${state}`),
        ...states.split(' ').map((state) => `scoreboard gauge ${state}`),
      ].sort(),
    )
    const values = (name: string) => metrics.filter((metric) => metric.name === name).map(({ value }) => value)
    expect(Math.min(...values('access_total'))).toBeGreaterThanOrEqual(100)
    expect(values('access_total')).toEqual(values('access_total').toSorted((one, other) => one - other))
    expect(Math.max(...values('workers'))).toBeGreaterThan(0)
    expect(new Set(values('up'))).toEqual(new Set([1]))

    expect(of(silent.url)).toEqual([])
    expect(silent.requests()).toBe(1)
    expect(new Set(of(down).map(({ name, value }) => `${name} ${value}`))).toEqual(new Set(['up 0']))
    expect(new Set(of(absent).map(({ name, value }) => `${name} ${value}`))).toEqual(new Set(['up 1']))
  })
})

/** Accepts requests and never responds. */
async function silentServer(): Promise<AsyncDisposable & { readonly url: string; requests(): number }> {
  let requests = 0
  const server = createServer(() => {
    requests++
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/server-status?auto`,
    requests: () => requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
