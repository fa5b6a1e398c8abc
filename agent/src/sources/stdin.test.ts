import { hostname } from 'node:os'
import { PassThrough } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import type { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { decodingCodecs, framingMethods } from '../schema/groups.ts'
import { startSource, type TestSource } from '../testing/harness.ts'
import { framed, goodFrame, hostileBytes, limitedTo } from '../testing/hostile.ts'
import { Random } from '../testing/random.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function input(): PassThrough {
  const stream = new PassThrough()
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stream as never)
  return stream
}

const messages = (events: readonly unknown[]) => events.map((event) => (event as LogEvent).fields['message'])

test('every line is an event with time, host and source type; the end of the input ends the source', async () => {
  const stream = input()
  await using source = await startSource('stdin', {})
  stream.write('one\ntw')
  stream.end('o\nthree')
  const events = (await source.received(3)) as LogEvent[]
  expect(messages(events)).toEqual(['one', 'two', 'three'])
  expect(events[0]?.fields).toMatchObject({ host: hostname(), source_type: 'stdin' })
  expect(events[0]?.fields['timestamp']).toBeInstanceOf(Timestamp)
  expect(source.events.counts.get('component_received_bytes_total')).toBe(13)
})

test('lines beyond the limit are skipped and counted', async () => {
  const stream = input()
  await using source = await startSource('stdin', { max_length: 5, host_key: '' })
  stream.end('one\nmuch too long\ntwo\n')
  const events = (await source.received(2)) as LogEvent[]
  expect(messages(events)).toEqual(['one', 'two'])
  expect(events[0]?.fields['host']).toBeUndefined()
  expect(source.events.errors).toMatchObject([{ type: 'parser_failed', stage: 'processing', count: 1 }])
})

test('codecs and framings apply, and fields of the codec stay', async () => {
  const stream = input()
  await using source = await startSource('stdin', {
    decoding: { codec: 'json' },
    framing: { method: 'character_delimited', character_delimited: { delimiter: ';' } },
    host_key: 'meta.node',
  })
  stream.end('{"host":"mine","message":"a"};nonsense;{"meta":{"node":"n"},"message":"b"}')
  const events = (await source.received(2)) as LogEvent[]
  expect(events[0]?.fields).toMatchObject({ host: 'mine', message: 'a', meta: { node: hostname() } })
  expect(events[1]?.fields).toMatchObject({ message: 'b', meta: { node: 'n' } })
  expect(source.events.errors).toHaveLength(1)
})

test('the source stops on request while its input is still open', async () => {
  const stream = input()
  await using source = await startSource('stdin', {})
  stream.write('one\n')
  await source.received(1)
  await source.stop()
  expect(source.events.errors).toEqual([])
})

/** Reads until this many bytes were read, and stops the source. */
async function read(source: TestSource, length: number): Promise<void> {
  await vi.waitFor(() => expect(source.events.counts.get('component_received_bytes_total')).toBe(length), 10_000)
  await source.stop()
}

test('an input of a single frame is limited, too', async () => {
  for (const [length, failures] of [
    [1000, 0],
    [1001, 1],
  ] as const) {
    const stream = input()
    await using source = await startSource('stdin', { max_length: 1000, framing: { method: 'bytes' } })
    stream.write('x'.repeat(600))
    stream.end('x'.repeat(length - 600))
    await read(source, length)
    expect(source.sent).toHaveLength(1 - failures)
    expect(source.events.errors).toHaveLength(failures)
  }
})

const seed = 20_260_103
// Protobuf does not work with delimiters, because its bytes may equal them.
const delimited = ['newline_delimited', 'character_delimited']
const pairs = decodingCodecs.flatMap((codec) =>
  framingMethods
    .filter((method) => codec !== 'native' || !delimited.includes(method))
    .map((method) => ({ codec, method })),
)
test.each(pairs)(
  `hostile input of codec $codec, framing $method, is read to its end (seed ${seed})`,
  async ({ codec, method }) => {
    const random = new Random(seed)
    let length = 0
    const stream = input()
    await using source = await startSource('stdin', { decoding: { codec }, framing: limitedTo(method, 2000) })
    for (let round = 0; round < 50; round++) {
      const bytes = hostileBytes(random, codec, 4000)
      const sent = random.next() < 0.5 ? bytes : framed(method, bytes)
      length += sent.length
      stream.write(sent)
    }
    const last = Buffer.concat([framed(method, Buffer.alloc(0)), framed(method, goodFrame(codec, 'still here'))])
    stream.end(last)
    await read(source, length + last.length)
    // Reading can only resume at a delimiter; without delimiters, the rest may be part of an endless frame.
    if (delimited.includes(method)) expect(messages(source.sent).at(-1)).toBe('still here')
    expect(source.events.errors.every(({ type }) => type === 'parser_failed')).toBe(true)
  },
)

test.each(decodingCodecs)('codec %s: sinks for metrics only accept possible metrics', (codec) => {
  const loaded = loadConfigObject({
    sources: { in: { type: 'stdin', decoding: { codec } } },
    transforms: { keep: { type: 'filter', inputs: ['in'], condition: 'true' } },
    sinks: { out: { type: 'remote_write_metrics', inputs: ['keep'], endpoint: 'http://localhost/write' } },
  })
  expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual(
    codec.startsWith('native') ? [] : ['Data type mismatch between keep (Log) and out (Metric)'],
  )
})
