// The remote_write_metrics sink with a real Prometheus, through the agent's command. Tests compare the store's complete response. Each test
// has its own namespace.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import { gate } from '../gate.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { queryPrometheus } from '../stores.ts'
import { expectClean } from './expect-clean.ts'

const prometheus = service('prometheus')
const why = prometheus.missing === undefined ? '' : ` (${prometheus.missing})`

const second = Math.floor(Date.now() / 1000) - 60
const instant = (offset: number) => new Date((second + offset) * 1000).toISOString()
const lines = (metrics: readonly object[]) => metrics.map((metric) => `${JSON.stringify({ metric })}\n`).join('')
const newNamespace = () => `run_${randomUUID().replaceAll('-', '')}`

describe.skipIf(prometheus.missing !== undefined)(`remote_write_metrics and Prometheus${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await prometheus.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const pipeline = (sink: object) => ({
    sources: { in: { type: 'stdin', decoding: { codec: 'native_json' } } },
    sinks: {
      out: { type: 'remote_write_metrics', inputs: ['in'], endpoint: `${server.url}/api/v1/write`, ...sink },
    },
  })
  const readBack = (namespace: string, count: number) =>
    until(`${count} series in Prometheus`, 15_000, async () => {
      const found = await queryPrometheus(server.url, `{__name__=~"${namespace}_.*"}`)
      return found.length >= count && found.map((line) => line.slice(namespace.length + 1))
    })

  test('metrics of all types are returned, increments as totals', async () => {
    const namespace = newNamespace()
    const base = { namespace, timestamp: instant(0), tags: { code: '200', zone: 'ü "q" \\' } }
    const labels = 'code="200",zone="ü "q" \\"'
    const samples = [1, 2, 4].map((value) => ({ value, rate: 1 }))

    const result = await runAgent(
      pipeline({ buckets: [1, 2.5], quantiles: [0.5] }),
      lines([
        { ...base, name: 'requests', kind: 'incremental', counter: { value: 3 } },
        { ...base, name: 'requests', kind: 'incremental', counter: { value: 4 } },
        { ...base, name: 'temp', kind: 'absolute', gauge: { value: -1.5 } },
        { ...base, name: 'users', kind: 'incremental', set: { values: ['a', 'b', 'a'] } },
        { ...base, name: 'sizes', kind: 'incremental', distribution: { samples, statistic: 'histogram' } },
        { ...base, name: 'lat', kind: 'incremental', distribution: { samples, statistic: 'summary' } },
        {
          ...base,
          name: 'summ',
          kind: 'absolute',
          aggregated_summary: { quantiles: [{ quantile: 0.99, value: 9 }], count: 6, sum: 12 },
        },
      ]),
    )

    expectClean(result)
    const at = (value: number) => `${value}@${second}`
    const expected = [
      `requests{${labels}} ${at(7)}`,
      `temp{${labels}} ${at(-1.5)}`,
      `users{${labels}} ${at(2)}`,
      `sizes_bucket{code="200",le="1",zone="ü "q" \\"} ${at(1)}`,
      `sizes_bucket{code="200",le="2.5",zone="ü "q" \\"} ${at(2)}`,
      `sizes_bucket{code="200",le="+Inf",zone="ü "q" \\"} ${at(3)}`,
      `sizes_sum{${labels}} ${at(7)}`,
      `sizes_count{${labels}} ${at(3)}`,
      `lat{code="200",quantile="0.5",zone="ü "q" \\"} ${at(2)}`,
      `lat_sum{${labels}} ${at(7)}`,
      `lat_count{${labels}} ${at(3)}`,
      `lat_min{${labels}} ${at(1)}`,
      `lat_max{${labels}} ${at(4)}`,
      `lat_avg{${labels}} ${at(7 / 3)}`,
      `summ{code="200",quantile="0.99",zone="ü "q" \\"} ${at(9)}`,
      `summ_sum{${labels}} ${at(12)}`,
      `summ_count{${labels}} ${at(6)}`,
    ]
    expect((await readBack(namespace, expected.length)).sort()).toEqual(expected.sort())
  })

  test('all samples of a series from many requests are returned in order', async () => {
    const namespace = newNamespace()
    const metrics = Array.from({ length: 50 }, (_, n) => ({
      namespace,
      name: 'c',
      kind: 'incremental',
      timestamp: instant(n),
      counter: { value: 1 },
    }))

    const result = await runAgent(pipeline({ batch: { max_events: 7, aggregate: false } }), lines(metrics))

    expectClean(result)
    const samples = Array.from({ length: 50 }, (_, n) => `${n + 1}@${second + n}`)
    expect(await readBack(namespace, 1)).toEqual([`c{} ${samples.join(' ')}`])
  })

  test('an out-of-order sample is rejected; the agent continues and ends normally', async () => {
    const namespace = newNamespace()
    const gauge = (offset: number, value: number) => ({
      namespace,
      name: 'g',
      kind: 'absolute',
      timestamp: instant(offset),
      gauge: { value },
    })

    const result = await runAgent(
      pipeline({ batch: { max_events: 1 } }),
      lines([gauge(1, 1), gauge(-7200, 2), gauge(2, 3)]),
    )

    expect(result.code, result.stderr).toBe(0)
    expect(await readBack(namespace, 1)).toEqual([`g{} 1@${second + 1} 3@${second + 2}`])
    expect(result.stdout + result.stderr).toContain('400')
  })

  test('basic authentication is sent, and the tenant as a header', async () => {
    const namespace = newNamespace()
    await using guarded = await gate(server.url, `Basic ${Buffer.from('writer:s3cret').toString('base64')}`)
    const config = pipeline({
      endpoint: `${guarded.url}/api/v1/write`,
      auth: { strategy: 'basic', user: 'writer', password: 's3cret' },
      tenant_id: 'team',
    })

    const result = await runAgent(
      config,
      lines([{ namespace, name: 'g', kind: 'absolute', timestamp: instant(0), gauge: { value: 1 } }]),
    )

    expectClean(result)
    expect(await readBack(namespace, 1)).toEqual([`g{} 1@${second}`])
    expect(result.stdout + result.stderr).not.toContain('s3cret')
    expect(guarded.seen.filter((request) => request.status === 401)).toEqual([])
  })
})
