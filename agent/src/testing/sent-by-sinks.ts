// The requests that sinks send for a sequence of batches, and random sinks that accept lines.

import { fakeDestination } from './destination.ts'
import { startSink } from './harness.ts'
import { countedBy, type Deliver } from './lane-sinks.ts'
import type { Random } from './random.ts'

export interface LaneSink {
  readonly type: string
  readonly options: object
  /** A template, for sinks with an address that may contain one. */
  readonly path?: string
}

/** Options that all sinks of a type need for a test. */
const bulk = { api_version: 'v8', healthcheck: false, request: { concurrency: 1 } }
const push = { healthcheck: false, request: { concurrency: 1 } }

export const searchEngine = (options: object): LaneSink => ({ type: 'search_engine', options: { ...bulk, ...options } })
export const logAggregator = (options: object): LaneSink => ({
  type: 'log_aggregator',
  options: { ...push, encoding: { codec: 'json' }, ...options },
})

/** The requests and counters of a sink. */
export async function sentBy({ type, options, path = '' }: LaneSink, deliver: Deliver) {
  await using destination = await fakeDestination({ status: 200, body: '{"errors":false,"items":[]}' })
  const { url } = destination
  const addresses: Record<string, object> = { search_engine: { endpoints: [url] }, http: { uri: url + path } }
  await using started = await startSink(type, { ...options, ...(addresses[type] ?? { endpoint: url }) })
  const { sink, events } = started
  await deliver(async (batch) => {
    await sink.write(batch)
  })
  await sink.close()
  const bodies = destination.requests.map((request) => ({
    path: request.path,
    tenant: request.headers['x-scope-orgid'],
    body: type === 'log_aggregator' ? request.body().toString('latin1') : request.text(),
  }))
  return { bodies, ...countedBy(events) }
}

const fields = ['a', 's', 'n', 'v', 'env', 'message', 'stream', 'timestamp', 'orchestrator', 'file', 'c1', 'level']

/** A template of random fields, and sometimes of the time. */
function template(random: Random): string {
  const parts = Array.from({ length: 1 + random.below(2) }, () =>
    random.pick([
      `{{ ${random.pick(fields)} }}`,
      `{{ ${random.pick(['orchestrator.pod_name', 'o.n', 'orchestrator.pod_labels.app', '"a b"'])} }}`,
      random.pick(['%H', '%S', '%S%.3f', 'x']),
    ]),
  )
  return parts.join('-')
}

const encoding = (random: Random): object => ({ codec: 'json', ...selection(random) })

/** Options that select the fields to write, and the format of times. */
function selection(random: Random): object {
  const some = () => Array.from({ length: 1 + random.below(4) }, () => random.pick(fields))
  return {
    ...(random.chance(0.3) ? { only_fields: some() } : {}),
    ...(random.chance(0.3) ? { except_fields: some() } : {}),
    ...(random.chance(0.3) ? { timestamp_format: random.pick(['unix', 'unix_ms', 'unix_ns', 'unix_float']) } : {}),
  }
}

/** A sink with random options. */
export function randomSink(random: Random): LaneSink {
  const batch = random.chance(0.3) ? { batch: { max_events: 1 + random.below(40) } } : {}
  switch (random.below(3)) {
    case 0:
      return searchEngine({
        bulk: {
          index: template(random),
          ...(random.chance(0.3) ? { template_fallback_index: 'others' } : {}),
          ...(random.chance(0.3) ? { action: '{{ action }}' } : {}),
        },
        encoding: selection(random),
        ...(random.chance(0.2) ? { id_key: random.pick(fields) } : {}),
        ...batch,
      })
    case 1:
      return {
        type: 'http',
        options: {
          ...push,
          encoding: encoding(random),
          framing: random.pick([
            { method: 'newline_delimited' },
            { method: 'character_delimited', character_delimited: { delimiter: ',' } },
          ]),
          ...batch,
        },
        path: random.chance(0.4) ? '/{{ a }}/x' : '',
      }
    default:
      return logAggregator({
        labels: Object.fromEntries(
          Array.from({ length: 1 + random.below(3) }, (_, index) => [
            random.chance(0.15) ? 'pod_*' : random.chance(0.15) ? '{{ a }}' : `l${index}`,
            random.chance(0.15) ? '{{ orchestrator.pod_labels }}' : template(random),
          ]),
        ),
        out_of_order_action: random.pick(['accept', 'rewrite_timestamp', 'drop']),
        remove_label_fields: random.chance(0.4),
        remove_timestamp: random.chance(0.5),
        encoding: encoding(random),
        ...(random.chance(0.3) ? { structured_metadata: { m: template(random) } } : {}),
        ...(random.chance(0.2) ? { tenant_id: '{{ stream }}' } : {}),
        ...(random.chance(0.2) ? { compression: 'snappy' } : {}),
        ...batch,
      })
  }
}
