// Sinks that write streams and messages write the same output and counts whether events arrive as lines or as objects.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { fakeBroker } from '../testing/fake-broker.ts'
import { startSink } from '../testing/harness.ts'
import { bothLanes, countedBy, type Deliver, sinkChains, timeChains } from '../testing/lane-sinks.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

interface Written {
  /** The content of each destination. */
  readonly places: Readonly<Record<string, string>>
  readonly counted: object
}

const json = { encoding: { codec: 'json' } }
const framed = (method: string, delimiter?: number) => ({
  ...json,
  framing: { method, ...(delimiter === undefined ? {} : { character_delimited: { delimiter } }) },
})

async function toFiles(options: object, path: string, deliver: Deliver): Promise<Written> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-streams-'))
  try {
    await using started = await startSink('file', { ...options, path: join(folder, path) })
    await deliver(async (batch) => started.sink.write(batch))
    await started.sink.close()
    const names = (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length))
      .sort()
    const places: Record<string, string> = {}
    for (const name of names) places[name] = await readFile(join(folder, name), 'latin1')
    return { places, counted: countedBy(started.events) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function toConsole(options: object, deliver: Deliver): Promise<Written> {
  let stdout = ''
  vi.spyOn(process.stdout, 'write').mockImplementation(((bytes: Uint8Array, callback: () => void) => {
    stdout += Buffer.from(bytes).toString('latin1')
    callback()
    return true
  }) as never)
  await using started = await startSink('console', options)
  await deliver(async (batch) => started.sink.write(batch))
  await started.sink.close()
  vi.restoreAllMocks()
  return { places: { stdout }, counted: countedBy(started.events) }
}

async function toBroker(options: object, deliver: Deliver): Promise<Written> {
  await using broker = await fakeBroker({ partitions: (topic) => (topic.endsWith('two') ? 0 : 3) })
  await using started = await startSink('message_broker', { topic: 'logs', ...json, ...options, endpoint: broker.url })
  await deliver(async (batch) => started.sink.write(batch))
  await started.sink.close()
  const places: Record<string, string> = {}
  // The number of messages per batch depends on timing, and so does the partition of a message without a key.
  for (const { topic, text, key, properties, eventTimeMs } of broker.messages) {
    const place = key === undefined ? topic.replace(/-partition-\d+$/, '') : topic
    places[place] = `${places[place] ?? ''}${JSON.stringify({ text, key, properties, eventTimeMs })}\n`
  }
  if (!('topic' in options)) {
    for (const place in places) places[place] = (places[place] as string).split('\n').sort().join('\n')
  }
  return { places, counted: { sent: started.events.counts.get('component_sent_events_total') } }
}

async function toNothing(deliver: Deliver): Promise<Written> {
  await using started = await startSink('blackhole', {})
  await deliver(async (batch) => started.sink.write(batch))
  return { places: {}, counted: countedBy(started.events) }
}

const streams: readonly { readonly name: string; readonly write: (deliver: Deliver) => Promise<Written> }[] = [
  ...[
    'all',
    '{{ a }}',
    '{{ stream }}/{{ s }}-%H.%M.%S',
    '%S%.3f',
    '{{ orchestrator.pod_name }}-%S',
    '{{ message }}',
  ].map((path) => ({ name: `file ${path}`, write: (deliver: Deliver) => toFiles(json, path, deliver) })),
  ...[framed('bytes'), framed('character_delimited', 7), framed('length_delimited')].map((options) => ({
    name: `file ${options.framing.method}`,
    write: (deliver: Deliver) => toFiles(options, '{{ n }}', deliver),
  })),
  ...[
    { except_fields: ['a', 'stream', 'orchestrator', 'none'] },
    { only_fields: ['a', 's', 'timestamp', 'message', 'env', 'none'] },
    { only_fields: ['o', 'a'], except_fields: ['s', 'n'] },
    { only_fields: [] },
    { only_fields: ['a', '"ü"'] },
    { except_fields: ['o.n'] },
    { timestamp_format: 'unix' },
    { timestamp_format: 'unix_us', except_fields: ['stream', 'n'] },
    { timestamp_format: 'unix_float', only_fields: ['timestamp', 'a'] },
  ].map((fields) => ({
    name: `file of ${JSON.stringify(fields)}`,
    write: (deliver: Deliver) => toFiles({ encoding: { codec: 'json', ...fields } }, '{{ n }}', deliver),
  })),
  { name: 'console', write: (deliver) => toConsole(json, deliver) },
  { name: 'console, framed', write: (deliver) => toConsole(framed('character_delimited', 0x2c), deliver) },
  { name: 'message_broker', write: (deliver) => toBroker({}, deliver) },
  {
    name: 'message_broker with keys',
    write: (deliver) => toBroker({ partition_key_field: 's', properties_key: 'o' }, deliver),
  },
  {
    name: 'message_broker of some fields',
    write: (deliver) => toBroker({ encoding: { codec: 'json', except_fields: ['stream', 'o'] } }, deliver),
  },
  {
    name: 'message_broker with times in numbers',
    write: (deliver) =>
      toBroker(
        { encoding: { codec: 'json', only_fields: ['timestamp', 'a', 's'], timestamp_format: 'unix_ms' } },
        deliver,
      ),
  },
  {
    name: 'message_broker with topics',
    write: (deliver) => toBroker({ topic: '{{ stream }}-two', partition_key_field: 'orchestrator.pod_name' }, deliver),
  },
  { name: 'blackhole', write: (deliver) => toNothing(deliver) },
]

test.each(streams)('sinks write the same for lines and for objects: $name', async ({ write }) => {
  // Events without a time get the current one.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-23T10:11:15Z') })
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  for (const chain of [...sinkChains, ...timeChains]) {
    const lanes = await bothLanes(chain, random)
    let asBytes = 0
    const bytes = await write((into) =>
      lanes.bytes((batch) => {
        if (batch instanceof ByteBatch) asBytes += batch.lineCount
        return into(batch)
      }),
    )
    const objects = await write(lanes.objects)
    expect(bytes, `Seed ${seed}, ${JSON.stringify(chain)}`).toEqual(objects)
    expect(asBytes).toBeGreaterThan(0)
  }
})
