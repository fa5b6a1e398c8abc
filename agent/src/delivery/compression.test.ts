import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { fastGzip } from '../formats/deflate.ts'
import type { CompressionOption } from '../schema/groups.ts'
import { fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'
import { compileCompression } from './compression.ts'

const algorithms = ['gzip', 'zlib', 'zstd', 'snappy'] as const
const options: CompressionOption[] = [
  ...algorithms,
  ...(['gzip', 'zlib', 'zstd'] as const).flatMap((algorithm) =>
    (['none', 'fast', 'default', 'best', 3] as const).map((level) => ({ algorithm, level })),
  ),
]

/** Text of this length with repeated words. */
function words(length: number): Buffer {
  let text = ''
  for (let index = 0; text.length < length; index++) text += `{"n":${(index * 7919) % 10_007},"level":"info"}\n`
  return Buffer.from(text.slice(0, length))
}

const bodies = [
  Buffer.alloc(0),
  Buffer.from('a'),
  words(1000),
  words((128 << 10) - 1),
  words(128 << 10),
  words(3 << 20),
]

test.each(options)('the output of %j can be decompressed', async (option) => {
  const codec = compileCompression(option, 2)
  for (const body of bodies) {
    expect(codec.decompress(codec.compress(body)).equals(body)).toBe(true)
    const aside = codec.compressOnPool?.(body)
    const isMain = option === 'snappy' || option === 'gzip'
    expect(aside !== undefined).toBe(!isMain && body.length >= 128 << 10)
    if (aside !== undefined) expect(codec.decompress(await aside).equals(body)).toBe(true)
  }
})

test.each(['gzip', 'zlib', 'zstd'] as const)('with one core, %s stays on the main thread', (algorithm) => {
  const option = { algorithm, level: 'fast' } as const
  for (const cpus of [0.5, 1]) expect(compileCompression(option, cpus).compressOnPool).toBeUndefined()
  expect(compileCompression(option, 1.5).compressOnPool).toBeDefined()
})

test('gzip uses our own deflate without a level, and the library with one', () => {
  const body = words(1 << 20)
  const made = (option: CompressionOption) => compileCompression(option, 2).compress(body)
  expect(made('gzip').equals(fastGzip(body))).toBe(true)
  expect(made({ algorithm: 'gzip', level: undefined }).equals(fastGzip(body))).toBe(true)
  expect(made({ algorithm: 'gzip', level: 'fast' }).equals(gzipSync(body, { level: 1 }))).toBe(true)
  expect(made({ algorithm: 'gzip', level: 'default' }).equals(gzipSync(body))).toBe(true)
})

test('the pool compresses at most two bodies at a time, for all sinks together', async () => {
  const [one, other] = [compileCompression('zlib', 4), compileCompression('zstd', 4)]
  const body = words(1 << 20)
  const running = [one.compressOnPool?.(body), other.compressOnPool?.(body)]
  expect(running).not.toContain(undefined)
  expect(one.compressOnPool?.(body)).toBeUndefined()
  await Promise.all(running)
  const next = one.compressOnPool?.(body)
  expect(next).toBeDefined()
  await next
})

test.each([...algorithms, { algorithm: 'gzip', level: 1 } as const])(
  'large bodies compressed with %j arrive in order, with every event',
  async (compression) => {
    await using destination = await fakeDestination()
    const count = 3000
    {
      await using sink = await startSink('http', {
        uri: destination.url,
        encoding: { codec: 'json' },
        framing: { method: 'newline_delimited' },
        compression,
        batch: { max_events: 500 },
        request: { concurrency: 1 },
      })
      const events = Array.from({ length: count }, (_, n) => log({ n, text: `${n} `.repeat(n % 7 === 0 ? 10 : 100) }))
      expect(await sink.deliver(events)).toBe('delivered')
      expect(destination.requests.every((request) => request.body().length > 128 << 10)).toBe(true)
    }
    const lines = destination.requests.flatMap((request) => request.lines()) as { n: number; text: string }[]
    expect(lines.map(({ n }) => n)).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(lines.every(({ n, text }) => text === `${n} `.repeat(n % 7 === 0 ? 10 : 100))).toBe(true)
  },
)

test('a sink that is closed during a compression loses no events', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    compression: { algorithm: 'gzip', level: 'best' },
    batch: { timeout_secs: 60 },
  })
  const message = words(2 << 20).toString()
  const outcome = sink.write([log({ message })])
  await sink.sink.close() // seals the request; the library needs at least 50 ms for its body
  expect(await outcome).toBe('delivered')
  expect(destination.requests.map((request) => request.text())).toEqual([`${message}\n`])
})
