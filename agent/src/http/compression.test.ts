import { expect, test } from 'vitest'
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

/** Text of so many bytes in which words come again. */
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

test.each(options)('what %j makes is read back', async (option) => {
  const codec = compileCompression(option, 2)
  for (const body of bodies) {
    expect(codec.decompress(codec.compress(body)).equals(body)).toBe(true)
    const aside = codec.compressAside?.(body)
    expect(aside !== undefined).toBe(option !== 'snappy' && body.length >= 128 << 10)
    if (aside !== undefined) expect(codec.decompress(await aside).equals(body)).toBe(true)
  }
})

test.each(algorithms)('with one core, %s stays on the main thread', (algorithm) => {
  for (const cpus of [0.5, 1]) expect(compileCompression(algorithm, cpus).compressAside).toBeUndefined()
  expect(compileCompression(algorithm, 1.5).compressAside !== undefined).toBe(algorithm !== 'snappy')
})

test('two bodies at a time are compressed on the pool, of all sinks together', async () => {
  const [one, other] = [compileCompression('gzip', 4), compileCompression('zstd', 4)]
  const body = words(1 << 20)
  const running = [one.compressAside?.(body), other.compressAside?.(body)]
  expect(running).not.toContain(undefined)
  expect(one.compressAside?.(body)).toBeUndefined()
  await Promise.all(running)
  const next = one.compressAside?.(body)
  expect(next).toBeDefined()
  await next
})

test.each(algorithms)('large bodies by %s arrive in their order, with every event', async (compression) => {
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
})

test('a sink that is closed while it compresses loses nothing', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('http', {
    uri: destination.url,
    encoding: { codec: 'text' },
    compression: { algorithm: 'gzip', level: 'best' },
    batch: { timeout_secs: 60 },
  })
  const message = words(2 << 20).toString()
  const outcome = sink.write([log({ message })])
  await sink.sink.close() // seals the request, whose body takes the library 50 ms at least
  expect(await outcome).toBe('delivered')
  expect(destination.requests.map((request) => request.text())).toEqual([`${message}\n`])
})
