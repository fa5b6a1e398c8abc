// Sinks send the same whether events come to them as lines or as objects: the same requests, the same figures.

import { afterEach, expect, test, vi } from 'vitest'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { fakeDestination } from '../testing/destination.ts'
import { startSink } from '../testing/harness.ts'
import { lineOf, messageOf, through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'

const parse = '. = parse_json!(.message)'
const merge = '. = merge(., object!(parse_json!(.message)))'
const chains: readonly (readonly string[])[] = [
  [],
  ['.env = "prod"\n.a = 1'],
  [parse, '.env = "x\\"y"\ndel(.c)'],
  [`${merge}\ndel(.message)`],
  [merge, '.timestamp = "2026-11-23T10:11:13.5Z"'],
  ['del(.timestamp)', '.a = "constant"'],
]

const bulk = { api_version: 'v8', healthcheck: false, request: { concurrency: 1 } }
const push = { healthcheck: false, encoding: { codec: 'json' }, request: { concurrency: 1 } }
const sinks: readonly { readonly type: string; readonly options: object }[] = [
  ...[
    {},
    { bulk: { index: 'i-{{ a }}' } },
    { bulk: { index: '{{ stream }}-{{ s }}', template_fallback_index: 'others' } },
    { bulk: { index: '{{ stream }}-%H.%M.%S' } },
    { bulk: { index: '%S%.3f' } },
    { bulk: { index: '{{ orchestrator.pod_name }}-{{ timestamp }}-%S' } },
    { bulk: { index: 'x', action: '{{ action }}' } },
    { bulk: { index: `${'long'.repeat(5000)}-{{ a }}` } },
  ].map((options) => ({ type: 'search_engine', options: { ...bulk, ...options } })),
  ...[
    { labels: { env: 'prod' }, out_of_order_action: 'accept' },
    { labels: { env: '{{ a }}' } },
    { labels: { a: '{{ a }}', stream: '{{ stream }}', pod: '{{ orchestrator.pod_name }}' }, remove_label_fields: true },
    { labels: { '{{ a }}': '{{ s }}', 'pod_*': '{{ orchestrator.pod_labels }}' }, remove_timestamp: false },
    { labels: { second: '%H:%M:%S', s: '{{ s }}' }, out_of_order_action: 'rewrite_timestamp' },
    { labels: { message: '{{ message }}' }, out_of_order_action: 'accept' },
    { labels: { env: 'x', a: '{{ o.n }}' }, structured_metadata: { s: '{{ s }}' } },
    { labels: { env: 'x' }, tenant_id: '{{ stream }}' },
    { labels: { env: 'x' }, compression: 'snappy' },
  ].map((options) => ({ type: 'log_aggregator', options: { ...push, ...options } })),
]

const stamps = [
  ...[
    '"2026-11-23T10:11:12Z"',
    '"2026-11-23T10:11:12.123456789Z"',
    '"2026-11-23 10:11:10"',
    '"1970-01-01T00:00:00.5Z"',
  ],
  ...['"no time"', '7', 'null', '"3000-01-01T00:00:00Z"', '{"a":1}'],
]

/** Messages of which many have what sinks ask for. */
function messageFor(random: Random): string {
  if (random.chance(0.3)) return messageOf(random)
  const members = [`"a":"${random.pick(['x', 'y', 'z z', 'ü"'.replace('"', '\\"')])}"`, `"n":${random.below(100)}`]
  if (random.chance(0.7)) members.push(`"s":${random.pick(['"one"', '"two"', '3', 'true', '"q\\\\uote"'])}`)
  if (random.chance(0.3)) members.push(`"timestamp":${random.pick(stamps)}`)
  if (random.chance(0.3)) members.push(`"action":${random.pick(['"index"', '"create"', '"delete"'])}`)
  if (random.chance(0.2)) members.push(`"o":{"n":${random.below(3)},"text":"\\u00e9\\n"}`)
  return `{${members.join(',')}}`
}

/** What a sink has sent and counted. */
async function sentBy(
  { type, options }: (typeof sinks)[number],
  deliver: (
    write: (batch: Parameters<Awaited<ReturnType<typeof startSink>>['sink']['write']>[0]) => Promise<void>,
  ) => Promise<void>,
) {
  await using destination = await fakeDestination({ status: 200, body: '{"errors":false,"items":[]}' })
  const endpoint = type === 'search_engine' ? { endpoints: [destination.url] } : { endpoint: destination.url }
  await using started = await startSink(type, { ...options, ...endpoint })
  const { sink, events } = started
  await deliver(async (batch) => {
    await sink.write(batch)
  })
  await sink.close()
  const errors = new Map<string, number>()
  for (const { type: error, code, message, count = 1 } of events.errors) {
    const key = `${error} ${code} ${message}`
    errors.set(key, (errors.get(key) ?? 0) + count)
  }
  const discards = new Map<string, number>()
  for (const { reason, intentional, events: count } of events.discards) {
    const key = `${reason} ${intentional}`
    discards.set(key, (discards.get(key) ?? 0) + count)
  }
  const sorted = (map: ReadonlyMap<string, number>) =>
    [...map].filter(([name]) => !name.includes('second')).sort(([left], [right]) => (left < right ? -1 : 1))
  const bodies = destination.requests.map((request) => ({
    tenant: request.headers['x-scope-orgid'],
    body: type === 'search_engine' || options === undefined ? request.text() : request.body().toString('latin1'),
  }))
  return { bodies, counts: sorted(events.counts), errors: sorted(errors), discards: sorted(discards) }
}

afterEach(() => {
  vi.useRealTimers()
})

test.each(sinks.map((sink) => ({ ...sink, name: `${sink.type} ${JSON.stringify(sink.options).slice(0, 160)}` })))(
  'the same is sent of lines and of objects: $name',
  { timeout: 120_000 },
  async (sink) => {
    // Events without a time get the present one.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-23T10:11:15Z') })
    const seed = (Math.random() * 2 ** 32) >>> 0
    const random = new Random(seed)
    for (const chain of chains) {
      const [asBytes, asObjects] = await Promise.all([transformsOf(chain, true), transformsOf(chain, false)])
      const chunks = Array.from({ length: 6 }, (_, index) => ({
        pod: new BytePod(`pod-${index % 2}`),
        lines: Array.from({ length: 1 + random.below(80) }, () => lineOf(random, messageFor)),
      }))
      const bytes = await sentBy(sink, async (write) => {
        for (const { pod, lines } of chunks) {
          const waiting: Promise<void>[] = []
          pod.read(lines, (batch) => {
            const after = through(asBytes, batch)
            if (after !== undefined) waiting.push(write(after))
          })
          await Promise.all(waiting)
        }
      })
      const objects = await sentBy(sink, async (write) => {
        for (const { pod, lines } of chunks) {
          const after = through(asObjects, logBatch(pod.objects(lines), new Finalizer()))
          if (after !== undefined) await write(after)
        }
      })
      expect(bytes, `Seed ${seed}, ${JSON.stringify(chain)}`).toEqual(objects)
    }
  },
)
