// Log sinks with VictoriaLogs, which decodes pushes of log aggregation systems, the bulk API of search engines and the log intake of
// monitoring service A. Tests compare all decoded entries. Each test has its own field.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { searchVictoriaLogs } from '../stores.ts'
import { expectClean } from './expect-clean.ts'
import { shapedInput } from './shaped-input.ts'

const victoria = service('victorialogs')
const why = victoria.missing === undefined ? '' : ` (${victoria.missing})`

const second = Math.floor(Date.now() / 1000) * 1000 - 60_000
const timestamp = (index: number) => new Date(second + index).toISOString()
const count = 300
const text = (index: number) => `message ${index} "ü" \\ ${'x'.repeat(index)}`

describe.skipIf(victoria.missing !== undefined)(`logs and VictoriaLogs${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await victoria.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  /** Sends events through the agent. The store has no endpoints for health checks. */
  const send = async (sink: object, fields: Record<string, string>) => {
    const run = randomUUID()
    const config = {
      ...shapedInput,
      sinks: { out: { inputs: ['shape'], healthcheck: false, ...sink } },
    }
    const input = Array.from(
      { length: count },
      (_, index) =>
        `${JSON.stringify({ message: text(index), host: 'h1', run, timestamp: timestamp(index), ...fields })}\n`,
    ).join('')
    expectClean(await runAgent(config, input))
    const found = await until(`${count} entries in VictoriaLogs`, 20_000, async () => {
      const entries = await searchVictoriaLogs(server.url, `run:="${run}"`)
      return entries.length >= count && entries
    })
    return found
      .map(({ run: _, _time: at = '', ...entry }) => ({ at: Date.parse(at), ...entry }))
      .sort((left, right) => left.at - right.at)
  }
  const expected = (own: (index: number) => Record<string, string>) =>
    Array.from({ length: count }, (_, index) => ({ at: second + index, ...own(index) }))

  test.each(['none', 'gzip', 'zstd'])(
    'monitoring service A, compression %s: reserved attributes and tags',
    async (compression) => {
      const found = await send(
        {
          type: 'monitor_a_logs',
          endpoint: `${server.url}/insert/datadog/api/v2/logs`,
          default_api_key: 'k',
          compression,
          // This decoder accepts times only in milliseconds.
          encoding: { timestamp_format: 'unix_ms' },
        },
        { service: 'shop', ddsource: 'src', ddtags: 'env:prod,v:1' },
      )
      expect(found).toEqual(
        expected((index) => ({
          _msg: text(index),
          hostname: 'h1',
          service: 'shop',
          ddsource: 'src',
          env: 'prod',
          v: '1',
        })),
      )
    },
  )

  test.each(['none', 'gzip', 'zlib', 'zstd'])(
    'bulk requests of the search engine, compression %s',
    async (compression) => {
      const found = await send(
        {
          type: 'search_engine',
          endpoints: [`${server.url}/insert/elasticsearch`],
          compression,
          query: { _msg_field: 'message', _time_field: 'timestamp', _stream_fields: 'app' },
        },
        { app: 'web' },
      )
      expect(found).toEqual(expected((index) => ({ _msg: text(index), app: 'web', host: 'h1' })))
    },
  )

  test('bulk requests of monitoring service C', async () => {
    const found = await send(
      {
        type: 'monitor_c_logs',
        endpoint: `${server.url}/insert/elasticsearch`,
        token: 'tok',
      },
      { app: 'web' },
    )
    // The sink's address has no parameters, so the store keeps the fields unchanged, and uses the time of arrival.
    const entries = found.map(({ at: _, ...entry }) => entry as Record<string, string>)
    const documents = entries.map(({ '@timestamp': time = '', _msg, ...fields }) => ({
      at: Date.parse(time),
      ...fields,
    }))
    expect(documents.sort((left, right) => left.at - right.at)).toEqual(
      expected((index) => ({ message: text(index), app: 'web', 'os.host': 'h1' })),
    )
  })

  test.each(['none', 'gzip', 'snappy'])('pushes of the log aggregator, compression %s', async (compression) => {
    const found = await send(
      {
        type: 'log_aggregator',
        endpoint: `${server.url}/insert`,
        labels: { run: '{{ run }}', app: '{{ app }}' },
        structured_metadata: { trace: '{{ trace }}' },
        encoding: { codec: 'text' },
        compression,
      },
      { app: 'web', trace: 't1' },
    )
    expect(found).toEqual(expected((index) => ({ _msg: text(index), app: 'web', trace: 't1' })))
  })
})
