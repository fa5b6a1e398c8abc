// Metric sinks with VictoriaMetrics, which decodes remote write, lines of both generations of time-series databases, events of observability
// platform D, and the metric intake of monitoring service A. Metrics of all types pass through the agent's command, and tests compare the
// complete content of the store. Each test has its own label.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import { gate } from '../gate.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { exportVictoriaMetrics } from '../stores.ts'
import { expectClean } from './expect-clean.ts'
import { shapedInput } from './shaped-input.ts'

const victoria = service('victoriametrics')
const why = victoria.missing === undefined ? '' : ` (${victoria.missing})`

const time = Math.floor(Date.now() / 1000) * 1000 - 60_000
const timestamp = new Date(time).toISOString()
const lines = (metrics: readonly object[]) => metrics.map((metric) => `${JSON.stringify({ metric })}\n`).join('')
const samples = [1, 2, 3].map((value) => ({ value, rate: 1 }))

/** One metric of each type, but two counters, which become one. */
const everyType = (run: string) => {
  const base = { timestamp, tags: { run, code: '200', zone: 'a b' } }
  return [
    { ...base, name: 'requests', kind: 'incremental', counter: { value: 3 } },
    { ...base, name: 'requests', kind: 'incremental', counter: { value: 4 } },
    { ...base, name: 'temp', kind: 'absolute', gauge: { value: -1.5 } },
    { ...base, name: 'users', kind: 'incremental', set: { values: ['a', 'b', 'a'] } },
    { ...base, name: 'sizes', kind: 'incremental', distribution: { samples, statistic: 'histogram' } },
    { ...base, name: 'lat', kind: 'incremental', distribution: { samples, statistic: 'summary' } },
    {
      ...base,
      name: 'hist',
      kind: 'incremental',
      aggregated_histogram: {
        buckets: [
          { upper_limit: 1, count: 2 },
          { upper_limit: 2.5, count: 1 },
        ],
        count: 4,
        sum: 7,
      },
    },
    {
      ...base,
      name: 'summ',
      kind: 'absolute',
      aggregated_summary: { quantiles: [{ quantile: 0.99, value: 9 }], count: 6, sum: 12 },
    },
  ]
}

describe.skipIf(victoria.missing !== undefined)(`metrics and VictoriaMetrics${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await victoria.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const pipeline = (sink: object) => ({
    sources: { in: { type: 'stdin', decoding: { codec: 'native_json' } } },
    sinks: { out: { inputs: ['in'], ...sink } },
  })
  /** The series of a run without common labels. */
  const readBack = (run: string, count: number) =>
    until(`${count} series in VictoriaMetrics`, 15_000, async () => {
      const series = await exportVictoriaMetrics(server.url, 'run', run, ['run', 'code', 'zone'])
      return series.length >= count && series
    })

  test('remote write: metrics of all types are returned, increments as totals', async () => {
    const run = randomUUID()
    const sink = { type: 'remote_write_metrics', endpoint: `${server.url}/api/v1/write`, default_namespace: 'rw' }
    expectClean(await runAgent(pipeline({ ...sink, buckets: [1, 2.5], quantiles: [0.5] }), lines(everyType(run))))

    const found = await readBack(run, 22)
    const labels = (own = '') => `{${own}}`
    const at = (value: number) => `${value}@${time}`
    expect(found).toEqual(
      [
        `rw_requests${labels()} ${at(7)}`,
        `rw_temp${labels()} ${at(-1.5)}`,
        `rw_users${labels()} ${at(2)}`,
        `rw_sizes_bucket${labels('le="1"')} ${at(1)}`,
        `rw_sizes_bucket${labels('le="2.5"')} ${at(2)}`,
        `rw_sizes_bucket${labels('le="+Inf"')} ${at(3)}`,
        `rw_sizes_sum${labels()} ${at(6)}`,
        `rw_sizes_count${labels()} ${at(3)}`,
        `rw_lat${labels('quantile="0.5"')} ${at(2)}`,
        `rw_lat_sum${labels()} ${at(6)}`,
        `rw_lat_count${labels()} ${at(3)}`,
        `rw_lat_min${labels()} ${at(1)}`,
        `rw_lat_max${labels()} ${at(3)}`,
        `rw_lat_avg${labels()} ${at(2)}`,
        `rw_hist_bucket${labels('le="1"')} ${at(2)}`,
        `rw_hist_bucket${labels('le="2.5"')} ${at(3)}`,
        `rw_hist_bucket${labels('le="+Inf"')} ${at(4)}`,
        `rw_hist_sum${labels()} ${at(7)}`,
        `rw_hist_count${labels()} ${at(4)}`,
        `rw_summ${labels('quantile="0.99"')} ${at(9)}`,
        `rw_summ_sum${labels()} ${at(12)}`,
        `rw_summ_count${labels()} ${at(6)}`,
      ].sort(),
    )
  })

  test('lines of the second generation: all types, with token, organization and bucket', async () => {
    const run = randomUUID()
    await using guarded = await gate(server.url, 'Token s3cret')
    const sink = { type: 'tsdb_metrics', endpoint: guarded.url, org: 'o 1', bucket: 'b', token: 's3cret' }
    const result = await runAgent(
      pipeline({ ...sink, quantiles: [0.5], tags: { env: 'test' }, healthcheck: false }),
      lines(everyType(run)),
    )
    expectClean(result)
    expect(result.stdout + result.stderr).not.toContain('s3cret')
    expect(guarded.seen.map(({ path }) => path)).toEqual(['/api/v2/write?org=o+1&bucket=b&precision=ns'])

    const statistics = (name: string) =>
      Object.entries({ avg: 2, count: 3, max: 3, median: 2, min: 1, 'quantile_0.50': 2, sum: 6 }).map(
        ([field, value]) => `${name}_${field}{env="test",metric_type="distribution"} ${value}@${time}`,
      )
    const values = (type: string, of: Record<string, number>) =>
      Object.entries(of).map(([name, value]) => `${name}{env="test",metric_type="${type}"} ${value}@${time}`)
    expect(await readBack(run, 24)).toEqual(
      [
        ...values('counter', { requests_value: 7 }),
        ...values('gauge', { temp_value: -1.5 }),
        ...values('set', { users_value: 2 }),
        ...statistics('sizes'),
        ...statistics('lat'),
        ...values('histogram', { hist_bucket_1: 2, 'hist_bucket_2.5': 1, hist_count: 4, hist_sum: 7 }),
        ...values('summary', { summ_count: 6, summ_sum: 12, 'summ_quantile_0.99': 9 }),
      ].sort(),
    )
  })

  test('lines of monitoring service C: counters and gauges', async () => {
    const run = randomUUID()
    const sink = { type: 'monitor_c_metrics', endpoint: server.url, token: 'tok', default_namespace: 'c' }
    const result = await runAgent(pipeline(sink), lines(everyType(run)))
    expect(result.code, result.stderr).toBe(0)
    const labels = (type: string) => `{db="metrics",metric_type="${type}",token="tok"}`
    expect(await readBack(run, 2)).toEqual([
      `c_requests${labels('counter')} 7@${time}`,
      `c_temp${labels('gauge')} -1.5@${time}`,
    ])
    // The agent logs the points that the service rejects.
    expect(result.stdout + result.stderr).toContain('Events dropped. count=5 intentional=false')
  })

  test.each(['none', 'gzip'])('events of platform D, compression %s', async (compression) => {
    const run = randomUUID()
    await using envelope = await inEnvelope(`${server.url}/newrelic/infra/v2/metrics/events/bulk`)
    const config = {
      ...shapedInput,
      sinks: {
        out: {
          type: 'observability_d',
          inputs: ['shape'],
          api: 'events',
          account_id: '7',
          license_key: 's3cret',
          override_uri: envelope.url,
          compression,
        },
      },
    }
    const events = [
      { run, timestamp, message: '{"cpu":1.5,"text":"ü \\"q\\""}', app: { name: 'shop', list: [1] }, n: 7 },
      { run, timestamp, message: 'plain', eventType: 'Mine', big: 2 ** 40, small: -1e-9 },
    ]
    const result = await runAgent(config, events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    expectClean(result)
    expect(result.stdout + result.stderr).not.toContain('s3cret')
    expect(envelope.keys).toEqual(['s3cret', 's3cret']) // the first one is from the health check

    const own = 'app.name="shop",eventType="PenstockSink",text="ü "q""'
    expect(await readBack(run, 4)).toEqual(
      [
        `cpu{${own}} 1.5@${time}`,
        `n{${own}} 7@${time}`,
        `big{eventType="Mine",message="plain"} 1099511627776@${time}`,
        `small{eventType="Mine",message="plain"} -1e-9@${time}`,
      ].sort(),
    )
  })

  test.each(['v1', 'v2'])('monitoring service A, series %s, and sketches: all types', async (version) => {
    const run = randomUUID()
    const sink = {
      type: 'monitor_a_metrics',
      endpoint: `${server.url}/datadog`,
      default_api_key: 'k',
      default_namespace: 'a',
      series_api_version: version,
    }
    const metrics = [
      ...everyType(run),
      { name: 'on', timestamp, kind: 'absolute', gauge: { value: 1 }, tags: { run, host: 'h1', device: 'd0' } },
    ]
    expectClean(await runAgent(pipeline(sink), lines(metrics)))

    const found = await readBack(run, 29)
    const series = found.filter((line) => !/^a\.(sizes|lat|hist)/.test(line))
    expect(series).toEqual(
      [
        `a.requests{} 7@${time}`,
        `a.temp{} -1.5@${time}`,
        `a.users{} 2@${time}`,
        `a.summ{quantile="0.99"} 9@${time}`,
        `a.on{device="d0",host="h1"} 1@${time}`,
      ].sort(),
    )
    // The store writes a sketch once for each of its five quantiles.
    const five = (value: number) => Array.from({ length: 5 }, () => `${value}@${time}`).join(' ')
    const part = (name: string) =>
      found.filter((line) => line.startsWith(`a.${name}{`) || line.startsWith(`a.${name}.`))
    for (const name of ['sizes', 'lat']) {
      expect(part(name)).toEqual(
        expect.arrayContaining([
          `a.${name}.count{} ${five(3)}`,
          `a.${name}.max{} ${five(3)}`,
          `a.${name}.min{} ${five(1)}`,
          `a.${name}.sum{} ${five(6)}`,
        ]),
      )
      // A sketch has a relative error of at most 1/128.
      const median = part(name).find((line) => line.includes('quantile="0.5"'))
      const value = Number(/ (\S+)@\d+$/.exec(median ?? '')?.[1])
      expect(Math.abs(value - 2)).toBeLessThan(2 / 128)
    }
    expect(part('hist')).toEqual(expect.arrayContaining([`a.hist.count{} ${five(3)}`]))
  })
})

interface Envelope extends AsyncDisposable {
  readonly url: string
  /** The API keys of requests. */
  readonly keys: string[]
}

/**
 * The store expects events of platform D in the envelope of that platform's own agents. This adds the envelope around the unchanged bytes of
 * a sink, which works because separately compressed parts decompress to one text.
 */
async function inEnvelope(target: string): Promise<Envelope> {
  const keys: string[] = []
  const relay = async (incoming: IncomingMessage, answer: ServerResponse) => {
    keys.push(String(incoming.headers['api-key']))
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part as Buffer)
    const encoding = incoming.headers['content-encoding']
    const coded = (text: string) => (encoding === 'gzip' ? gzipSync(text) : Buffer.from(text))
    const response = await fetch(target, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
      },
      body: Buffer.concat([coded('[{"EntityID":1,"Events":'), ...parts, coded('}]')]),
    })
    answer.writeHead(response.status).end(await response.text())
  }
  const server = createServer((incoming, answer) => {
    relay(incoming, answer).catch(() => answer.destroy())
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/accounts/7/events`,
    keys,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
