import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { log } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

let dir = ''

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-file-'))
})

afterEach(async () => {
  await rm(dir, { recursive: true, force: true })
})

const text = { encoding: { codec: 'text' } }
const read = (name: string) => readFile(join(dir, name), 'utf8')

test('events go in order to the files that their fields and times name', async () => {
  await using sink = await startSink('file', { ...text, path: `${dir}/{{ app }}/%Y.log` })

  const status = await sink.deliver([
    log({ app: 'a', message: '1', timestamp: '2026-01-01T00:00:00Z' }),
    log({ app: 'b', message: '2', timestamp: '2026-01-01T00:00:00Z' }),
    log({ app: 'a', message: '3', timestamp: '2026-01-01T00:00:00Z' }),
    log({ app: 'a', message: '4', timestamp: '2025-01-01T00:00:00Z' }),
  ])

  expect(status).toBe('delivered')
  expect(await read('a/2026.log')).toBe('1\n3\n')
  expect(await read('b/2026.log')).toBe('2\n')
  expect(await read('a/2025.log')).toBe('4\n')
  expect(sink.events.counts.get('component_sent_events_total')).toBe(4)
  expect(sink.events.counts.get('component_sent_bytes_total')).toBe(8)
})

test('an event with an unreadable time goes to the file of the current time, and is counted', async () => {
  await using sink = await startSink('file', { ...text, path: `${dir}/%Y.log` })
  const timed = (timestamp: string) => new LogEvent({ message: timestamp, timestamp })
  await sink.deliver([timed('2024-01-02T03:04:05Z'), timed('at noon'), timed('later')])
  expect(await read('2024.log')).toBe('2024-01-02T03:04:05Z\n')
  expect(await read(`${new Date().getUTCFullYear()}.log`)).toBe('at noon\nlater\n')
  expect(sink.events.errors).toMatchObject([{ code: 'unreadable_time', count: 2, fields: { field: 'timestamp' } }])
})

test('only the user of the agent can read a new file, and an existing file keeps its mode', async () => {
  await writeFile(join(dir, 'old.log'), '', { mode: 0o640 })
  await using sink = await startSink('file', { ...text, path: `${dir}/{{ app }}.log` })
  await sink.deliver([log({ app: 'new', message: '1' }), log({ app: 'old', message: '2' })])
  const modeOf = async (name: string) => ((await stat(join(dir, name))).mode & 0o777).toString(8)
  expect([await modeOf('new.log'), await modeOf('old.log')]).toEqual(['600', '640'])
})

test('metrics are written too', async () => {
  await using sink = await startSink('file', { encoding: { codec: 'json' }, path: `${dir}/m` })
  await sink.deliver([new MetricEvent({ name: 'm', kind: 'absolute', value: { type: 'gauge', value: 1 } })])
  expect(await read('m')).toBe('{"name":"m","kind":"absolute","gauge":{"value":1.0}}\n')
})

test('an existing file is continued, or truncated once on request', async () => {
  for (const [name, truncate] of [
    ['kept', false],
    ['emptied', true],
  ] as const) {
    await writeFile(join(dir, name), 'old\n')
    await using sink = await startSink('file', { ...text, path: join(dir, name), truncate })
    await sink.write([log({ message: 'new' })])
    await sink.deliver([log({ message: 'newer' })])
  }
  expect(await read('kept')).toBe('old\nnew\nnewer\n')
  expect(await read('emptied')).toBe('new\nnewer\n')
})

test.each([
  ['gzip', gunzipSync],
  ['zstd', zstdDecompressSync],
] as const)('%s: several batches form one valid file', async (compression, decompress) => {
  await using sink = await startSink('file', { ...text, path: `${dir}/z`, compression })
  await sink.write([log({ message: 'one' })])
  await sink.deliver([log({ message: 'two' })])
  const bytes = await readFile(join(dir, 'z'))
  expect(decompress(bytes).toString()).toBe('one\ntwo\n')
})

test('an event without the field is rejected and counted; the others arrive', async () => {
  await using sink = await startSink('file', { ...text, path: `${dir}/{{ app }}.log` })
  expect(await sink.deliver([log({ app: 'a', message: '1' }), log({ message: '2' })])).toBe('rejected')
  expect(await read('a.log')).toBe('1\n')
  expect(sink.events.errors).toMatchObject([{ type: 'template_failed', stage: 'processing', count: 1 }])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('an event that cannot be encoded is rejected and counted; the others arrive', async () => {
  await using sink = await startSink('file', { encoding: { codec: 'gelf' }, path: `${dir}/g` })
  expect(await sink.deliver([log({ host: 'h', message: '1' }), log({ message: '2' })])).toBe('rejected')
  expect(await read('g')).toBe('{"host":"h","short_message":"1","version":"1.1"}\0')
  expect(sink.events.errors).toMatchObject([{ type: 'encoder_failed', stage: 'processing', count: 1 }])
})

test('a field cannot lead out of the folder', async () => {
  await mkdir(join(dir, 'in'))
  await using sink = await startSink('file', { ...text, path: `${dir}/in/{{ app }}.log` })
  expect(await sink.deliver([log({ app: '../../out', message: 'x' }), log({ app: 'a/../b', message: 'x' })])).toBe(
    'rejected',
  )
  expect(await readdir(dir)).toEqual(['in'])
  expect(await readdir(join(dir, 'in'))).toEqual([])
})

test('retries a failed write until it succeeds', async () => {
  await writeFile(join(dir, 'x'), 'a file where a folder is wanted')
  await using sink = await startSink('file', { ...text, path: `${dir}/x/y.log` })
  const status = sink.write([log({ message: 'late' })])
  await vi.waitFor(() => expect(sink.events.errors).toMatchObject([{ type: 'io_failed', stage: 'sending' }]))
  await rm(join(dir, 'x'))
  expect(await status).toBe('delivered')
  expect(await read('x/y.log')).toBe('late\n')
})

test.each(['x'.repeat(300), 'a\0b', ''])('an impossible file name does not delay other events (%#)', async (app) => {
  await using sink = await startSink('file', { ...text, path: '{{ dir }}{{ app }}' })
  const status = sink.write([log({ dir: app === '' ? '' : `${dir}/`, app, message: 'lost' })])
  expect(await status).toBe('rejected')
  expect(await sink.deliver([log({ dir: `${dir}/`, app: 'good', message: 'kept' })])).toBe('delivered')
  expect(await read('good')).toBe('kept\n')
})

test.runIf(process.platform === 'linux')(
  'a full disk is an error with retries, until the agent must stop',
  async () => {
    const sink = await startSink('file', { ...text, path: '/dev/full' })
    const status = sink.write([log({ message: 'no room' })])
    await vi.waitFor(() => expect(sink.events.errors).toMatchObject([{ type: 'io_failed', stage: 'sending' }]))
    await sink[Symbol.asyncDispose]()
    expect(await status).toBe('errored')
    expect(sink.events.discards).toEqual([{ events: 1, intentional: false, reason: 'Could not write the file.' }])
    expect(sink.events.counts.get('component_sent_events_total')).toBeUndefined()
  },
)

test.runIf(process.platform === 'linux')('an impossible folder is an error without endless retries', async () => {
  let status: Promise<string>
  {
    await using sink = await startSink('file', { ...text, path: '/proc/none/such.log' })
    status = sink.write([log({ message: 'nowhere' })])
    await vi.waitFor(() => expect(sink.events.errors).toMatchObject([{ type: 'io_failed', stage: 'sending' }]))
  }
  expect(await status).toBe('errored')
})

test('a file is closed when it has been idle', async () => {
  await using sink = await startSink('file', { ...text, path: `${dir}/idle`, idle_timeout_secs: 0.05 })
  await sink.write([log({ message: 'one' })])
  expect(sink.events.gauges.get('open_files')).toBe(1)
  await vi.waitFor(() => expect(sink.events.gauges.get('open_files')).toBe(0))
  await sink.deliver([log({ message: 'two' })])
  expect(await read('idle')).toBe('one\ntwo\n')
})

test('of any number of files, only some are open at a time, and each gets all of its events', async () => {
  await using sink = await startSink('file', { ...text, path: `${dir}/{{ app }}`, truncate: true })
  const apps = Array.from({ length: 1200 }, (_, index) => `app-${index}`)
  for (const round of ['1', '2']) {
    const status = sink.write(apps.map((app) => log({ app, message: round })))
    expect(await status).toBe('delivered')
    expect(sink.events.gauges.get('open_files')).toBe(500)
  }
  await sink.sink.close()
  const contents = await Promise.all(apps.map(read))
  // A file that was closed and reopened was not truncated a second time.
  expect(contents.filter((content) => content !== '1\n2\n')).toEqual([])
})
