// The tsdb_metrics sink with a real first-generation InfluxDB, through the agent's command. Tests compare the store's complete response. Each
// test has its own database.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { queryInflux } from '../stores.ts'

const influxdb = service('influxdb')
const why = influxdb.missing === undefined ? '' : ` (${influxdb.missing})`

const time = Math.floor(Date.now() / 1000) * 1000 - 60_000
const timestamp = new Date(time).toISOString()
const lines = (metrics: readonly object[]) => metrics.map((metric) => `${JSON.stringify({ metric })}\n`).join('')

describe.skipIf(influxdb.missing !== undefined)(`tsdb_metrics and InfluxDB${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await influxdb.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const newDatabase = async () => {
    const name = `db_${randomUUID().replaceAll('-', '')}`
    await queryInflux(server.url, name, `CREATE DATABASE ${name}`)
    return name
  }
  const pipeline = (database: string, sink: object = {}) => ({
    sources: { in: { type: 'stdin', decoding: { codec: 'native_json' } } },
    sinks: { out: { type: 'tsdb_metrics', inputs: ['in'], endpoint: server.url, database, ...sink } },
  })
  const readBack = (database: string, measurements: number) =>
    until(`${measurements} measurements in InfluxDB`, 15_000, async () => {
      const found = await queryInflux(server.url, database, 'SELECT * FROM /.*/')
      return Object.keys(found).length >= measurements && found
    })

  test('metrics of all types are returned, with all kinds of tags', async () => {
    const database = await newDatabase()
    const base = { namespace: 'ns', timestamp, tags: { 'a key': 'v,1=2 x', back: 'C:\\dir', uni: 'é"q"' } }
    const samples = [1, 2, 4].map((value) => ({ value, rate: 1 }))

    const result = await runAgent(
      pipeline(database, { quantiles: [0.5], tags: { env: 'test' } }),
      lines([
        { ...base, name: 'c', kind: 'incremental', counter: { value: 3 } },
        { ...base, name: 'c', kind: 'incremental', counter: { value: 4 } },
        { ...base, name: 'total', kind: 'absolute', counter: { value: 10 } },
        { ...base, name: 'total', kind: 'absolute', counter: { value: 15 } },
        { ...base, name: 'g x', kind: 'absolute', gauge: { value: 0.000001 } },
        { ...base, name: 's', kind: 'incremental', set: { values: ['a', 'b', 'a'] } },
        { ...base, name: 'd', kind: 'incremental', distribution: { samples, statistic: 'summary' } },
        {
          ...base,
          name: 'h',
          kind: 'absolute',
          aggregated_histogram: { buckets: [{ upper_limit: 0.5, count: 2 }], count: 3, sum: 4.5 },
        },
        {
          ...base,
          name: 'summ',
          kind: 'absolute',
          aggregated_summary: { quantiles: [{ quantile: 0.99, value: 9 }], count: 6, sum: 12 },
        },
      ]),
    )

    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).not.toContain('ERROR')
    // The sink escapes a backslash, and this server keeps the escape.
    const back = 'C:\\\\dir'
    const row = (type: string, fields: object) => [
      { time, metric_type: type, env: 'test', 'a key': 'v,1=2 x', back, uni: 'é"q"', ...fields },
    ]
    const quantile = { 'quantile_0.50': 2 }
    expect(await readBack(database, 7)).toEqual({
      'ns.c': row('counter', { value: 7 }),
      'ns.total': row('counter', { value: 5 }),
      'ns.g x': row('gauge', { value: 0.000001 }),
      'ns.s': row('set', { value: 2 }),
      'ns.d': row('distribution', { min: 1, max: 4, median: 2, avg: 7 / 3, sum: 7, count: 3, ...quantile }),
      'ns.h': row('histogram', { 'bucket_0.5': 2, count: 3, sum: 4.5 }),
      'ns.summ': row('summary', { 'quantile_0.99': 9, count: 6, sum: 12 }),
    })
  })

  test('a missing database rejects events; the agent ends normally', async () => {
    const metric = { name: 'c', kind: 'incremental', timestamp, counter: { value: 1 } }

    const result = await runAgent(pipeline('not-there', { username: 'u', password: 's3cret' }), lines([metric]))

    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('404')
    expect(result.stdout + result.stderr).not.toContain('s3cret')
  })

  test('a field whose type has changed affects only its metric', async () => {
    const database = await newDatabase()
    const summary = { quantiles: [{ quantile: 0.5, value: 1 }], count: 1, sum: 1 }
    const input = lines([
      { name: 'm', kind: 'absolute', timestamp, aggregated_summary: summary },
      // Its count is a float.
      {
        name: 'm',
        kind: 'incremental',
        timestamp,
        distribution: { samples: [{ value: 1, rate: 1 }], statistic: 'summary' },
      },
      { name: 'other', kind: 'absolute', timestamp, gauge: { value: 1 } },
    ])

    const result = await runAgent(pipeline(database), input)

    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('400')
    expect(result.stdout + result.stderr).toContain('Events dropped. count=1 intentional=false')
    expect(Object.keys(await readBack(database, 2)).sort()).toEqual(['m', 'other'])
  })
})
