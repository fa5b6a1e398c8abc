// The sink of log service B with a real decoder of its protocol, the event collector of the OpenTelemetry Collector. Tests compare all
// decoded events.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import { gate } from '../gate.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { type CollectedLog, readCollector } from '../stores.ts'
import { expectClean } from './expect-clean.ts'
import { shapedInput } from './shaped-input.ts'

const collector = service('hec')
const why = collector.missing === undefined ? '' : ` (${collector.missing})`

const second = Math.floor(Date.now() / 1000) * 1000 - 60_000
const count = 300
const text = (index: number) => `message ${index} "ü" \\ ${'x'.repeat(index)}`

describe.skipIf(collector.missing !== undefined)(`log service B and an event collector${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await collector.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  /** Sends events through the agent, and returns the events decoded by the collector. */
  const send = async (sink: object): Promise<readonly CollectedLog[]> => {
    const run = randomUUID()
    const config = {
      ...shapedInput,
      sinks: {
        out: {
          type: 'logsvc_b_logs',
          inputs: ['shape'],
          endpoint: server.url,
          token: `s3cret-${run}`,
          source: '/var/log/{{ app }}.log',
          index: 'shop',
          event_type: 'parser',
          indexed_fields: ['app', '#run', 'none'],
          ...sink,
        },
      },
    }
    const input = Array.from({ length: count }, (_, index) => {
      const timestamp = new Date(second + index).toISOString().replace('Z', '000123Z')
      return `${JSON.stringify({ message: text(index), host: 'h1', app: `a${index % 2}`, '#run': run, n: index, timestamp })}\n`
    }).join('')
    const result = await runAgent(config, input)
    expectClean(result)
    expect(result.stdout + result.stderr).not.toContain('s3cret')
    const found = await until(`${count} events in the collector`, 20_000, async () => {
      const logs = await readCollector(server.variables['PENSTOCK_TEST_HEC_DECODED_URL'] ?? '')
      const own = logs.filter(({ attributes }) => attributes['#run'] === run)
      return own.length >= count && own
    })
    expect(new Set(found.map(({ resource }) => resource['com.splunk.hec.access_token']))).toEqual(
      new Set([`s3cret-${run}`]),
    )
    return found
      .map(({ attributes: { '#run': _, ...attributes }, ...rest }) => ({ ...rest, attributes }))
      .toSorted((left, right) => left.at - right.at)
  }
  const expected = (body: (index: number) => unknown) =>
    Array.from({ length: count }, (_, index) => ({
      at: second + index,
      body: body(index),
      attributes: { app: `a${index % 2}` },
      resource: {
        'host.name': 'h1',
        'com.splunk.source': `/var/log/a${index % 2}.log`,
        'com.splunk.sourcetype': 'parser',
        'com.splunk.index': 'shop',
        'com.splunk.hec.access_token': expect.any(String),
      },
    }))

  test.each(['none', 'gzip'])('events with codec json, compression %s', async (compression) => {
    const found = await send({ encoding: { codec: 'json', except_fields: ['"#run"'] }, compression })
    expect(found).toEqual(
      expected((index) => ({
        message: text(index),
        host: 'h1',
        app: `a${index % 2}`,
        n: index,
        '@timestamp.nanos': 123,
      })),
    )
  })

  test('events with codec text', async () => {
    expect(await send({ encoding: { codec: 'text' } })).toEqual(expected(text))
  })

  test('events that the collector rejects are discarded and logged, but not retried', async () => {
    await using between = await gate(server.url, 'Splunk t')
    const config = {
      sources: { in: { type: 'stdin', decoding: { codec: 'json' } } },
      sinks: {
        out: {
          type: 'logsvc_b_logs',
          inputs: ['in'],
          endpoint: between.url,
          token: 't',
          healthcheck: false,
          encoding: { codec: 'json' },
          indexed_fields: ['deep'], // extra fields must be flat
        },
      },
    }
    const result = await runAgent(config, '{"message":"lost","deep":{"a":1}}\n')
    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('Events dropped. count=1 intentional=false')
    expect(between.seen.map(({ status }) => status)).toEqual([400])
  })
})
