// Every sink that reads a time accepts text from JSON or a file.

import { expect, test } from 'vitest'
import { LogEvent } from '../event/log.ts'
import type { ValueObject } from '../event/value.ts'
import { fakeDestination } from '../testing/destination.ts'
import { startSink } from '../testing/harness.ts'

const json = { encoding: { codec: 'json' } }

interface Case {
  readonly type: string
  readonly options: Readonly<Record<string, unknown>>
  /** The option with the address. */
  readonly address?: 'endpoints' | 'host' | 'override_uri'
  /** Field of the time. */
  readonly field?: string
  /** The expected text of 2024-01-02T03:04:05.5Z in the request, and of a text that is not a time. */
  readonly wanted: string
  readonly kept: string
}

const cases: Case[] = [
  {
    type: 'log_aggregator',
    options: { labels: { a: 'b' }, ...json },
    wanted: '"1704164645500000000","{\\"message\\":\\"m\\"}"',
    kept: '"{\\"message\\":\\"m\\",\\"timestamp\\":\\"at noon\\"}"',
  },
  {
    type: 'logsvc_b_logs',
    options: { token: 't', timestamp_key: 'when', ...json },
    field: 'when',
    wanted: '"time":1704164645.5',
    kept: '"when":"at noon"',
  },
  {
    type: 'cloud_monitor_logs',
    options: { customer_id: 'c', shared_key: 'a2V5', log_type: 'T', time_generated_key: 'when' },
    address: 'host',
    field: 'when',
    wanted: '"when":"2024-01-02T03:04:05.500Z"',
    kept: '"when":"at noon"',
  },
  {
    type: 'siem_unstructured',
    options: {
      customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c',
      log_type: 'L',
      api_key: 'k',
      ...json,
    },
    wanted: '"ts_rfc3339":"2024-01-02T03:04:05.500Z"',
    kept: '\\"timestamp\\":\\"at noon\\"',
  },
  {
    type: 'search_engine',
    options: { api_version: 'v8', bulk: { index: 'i-%Y.%m.%d' } },
    address: 'endpoints',
    wanted: '"_index":"i-2024.01.02"',
    kept: '"timestamp":"at noon"',
  },
  {
    type: 'search_engine',
    options: { api_version: 'v8', mode: 'data_stream', data_stream: { dataset: 'd-%Y' } },
    address: 'endpoints',
    wanted: '"_index":"logs-d-2024-default"',
    kept: '"@timestamp":"at noon"',
  },
  {
    type: 'logsvc_a',
    options: { api_key: 'k', hostname: 'h', encoding: { timestamp_format: 'unix' } },
    wanted: '"timestamp":1704164645',
    kept: '"timestamp":"at noon"',
  },
  {
    type: 'observability_d',
    options: { api: 'logs', license_key: 'k', encoding: { timestamp_format: 'unix' } },
    address: 'override_uri',
    wanted: '"timestamp":1704164645',
    kept: '"timestamp":"at noon"',
  },
  {
    type: 'observability_d',
    options: { api: 'events', account_id: '1', license_key: 'k' },
    address: 'override_uri',
    wanted: '"timestamp":1704164645500',
    kept: '"timestamp":"at noon"',
  },
]

async function sent({ type, options, address }: Case, fields: ValueObject) {
  await using destination = await fakeDestination({ status: 200, body: '{"errors":false,"items":[]}' })
  const where = { [address ?? 'endpoint']: address === 'endpoints' ? [destination.url] : destination.url }
  await using sink = await startSink(type, { ...options, ...where })
  await sink.deliver([new LogEvent(fields)])
  return { request: destination.requests.map((each) => each.text()).join(''), errors: sink.events.errors }
}

test.each(cases)('$type reads a time in text form: $wanted', async (each) => {
  const { request, errors } = await sent(each, { message: 'm', [each.field ?? 'timestamp']: '2024-01-02T03:04:05.5Z' })
  expect(request).toContain(each.wanted)
  expect(errors).toEqual([])
})

test.each(cases)('$type accepts a text in another format: $wanted', async (each) => {
  const { request } = await sent(each, { message: 'm', [each.field ?? 'timestamp']: '2024-01-02 04:04:05.5+01:00' })
  expect(request).toContain(each.wanted)
})

test.each(cases)('$type keeps an invalid time, and counts it: $kept', async (each) => {
  const { request, errors } = await sent(each, { message: 'm', [each.field ?? 'timestamp']: 'at noon' })
  expect(request).toContain(each.kept)
  expect(errors.filter(({ type }) => type === 'conversion_failed')).toMatchObject([{ count: 1 }])
})
