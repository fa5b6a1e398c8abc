// The byte limit ends a request, whatever makes its body large: option texts that each event carries, or metrics that become many
// series. The test covers every text option of every sink with an address, whether the sink encodes events one by one or when the
// request is full.

import { expect, test } from 'vitest'
import type { SinkDeclaration } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { components } from '../registry.ts'
import { meaningOf } from '../schema/meaning.ts'
import { parseOptions } from '../schema/validate.ts'
import { exampleAt, merged, speaksToAddress } from '../testing/addressed.ts'
import { type Destination, fakeDestination } from '../testing/destination.ts'
import { log, metric } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'
import { optionLeaves } from '../testing/option-places.ts'

const mebibyte = 1 << 20
/** Limit for a request with such a small `max_bytes`; the bytes written between two checks may be added to it. */
const limit = 4 * mebibyte
const batch = { max_bytes: mebibyte / 2, max_events: 1000, timeout_secs: 300 }
const count = 1000

function events({ accepts }: SinkDeclaration): (LogEvent | MetricEvent)[] {
  const timestamp = '2026-01-01T00:00:00Z'
  return Array.from({ length: count }, (_, index) =>
    accepts.includes('log')
      ? log({ message: `m${index}`, timestamp, host: 'h', app: 'a' })
      : metric(`m${index}`, { type: 'gauge', value: 1 }, { kind: 'absolute' }),
  )
}

const sinks = components.filter(
  (each) => each.kind === 'sink' && speaksToAddress(each) && each.type !== 'siem_unstructured',
) as SinkDeclaration[]

function largest({ requests }: Destination): number {
  return requests.reduce((size, request) => Math.max(size, request.body().length), 0)
}

test.each(sinks.map((component) => ({ component, type: component.type })))(
  'sink $type limits the bytes of a request, including a text from its options for each event',
  async ({ component }) => {
    const long = 'x'.repeat(12_288)
    const places = optionLeaves(component).filter(
      ({ schema }) => meaningOf(schema).text === true || meaningOf(schema).secret === true,
    )
    const wrong: string[] = []
    let sent = 0
    for (const { name, with: given } of places) {
      await using destination = await fakeDestination({ status: 200, body: '{"took":1,"errors":false,"items":[]}' })
      const options = merged(
        exampleAt(component, `${destination.url}/`),
        merged(given(long), { batch, request: { retry_attempts: 0 } }),
      ) as object
      if (!parseOptions(optionsOf(component).members, options).ok) continue
      if (problemsOf('sink', component.type, options).some(({ severity }) => severity !== 'warning')) continue
      await using sink = await startSink(component.type, options).catch(() => undefined) // rejected because of this text
      if (sink === undefined) continue
      await sink.deliver(events(component))
      const size = largest(destination)
      if (size > 1.3 * limit) wrong.push(`${name}: ${(size / mebibyte).toFixed(1)} MiB`)
      sent += destination.requests.length
    }
    expect(wrong).toEqual([])
    expect(sent).toBeGreaterThan(0)
  },
)

test.each([
  {
    what: 'quantiles',
    options: { quantiles: Array.from({ length: 200 }, (_, index) => index / 200) },
    statistic: 'summary',
  },
  {
    what: 'limits of buckets',
    options: { buckets: Array.from({ length: 200 }, (_, index) => index) },
    statistic: 'histogram',
  },
] as const)('metrics with many series limit a request by its bytes: $what', async ({ options, statistic }) => {
  await using destination = await fakeDestination(200)
  const endpoint = `${destination.url}/write`
  await using sink = await startSink('remote_write_metrics', { endpoint, compression: 'gzip', batch, ...options })
  const tags = { pod: 'p'.repeat(100) }
  const samples = [{ value: 1, rate: 1 }]
  const events = Array.from({ length: 1000 }, (_, index) =>
    metric(`m${index}`, { type: 'distribution', samples, statistic }, { tags }),
  )
  expect(await sink.deliver(events)).toBe('delivered')
  expect(largest(destination)).toBeLessThan(1.3 * limit)
  expect(largest(destination)).toBeGreaterThan(limit / 16)
})
