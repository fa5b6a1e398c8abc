// Lines that stay bytes pass through a disk buffer as through a memory buffer: the sink gets the same events, from memory and from the
// files, and the counts are equal.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import { crc32c } from '../formats/crc32c.ts'
import { writeJson } from '../formats/json.ts'
import { BufferRun, lineNumbering, numbered } from '../testing/buffer-run.ts'
import { bothLanes, sinkChains } from '../testing/lane-sinks.ts'
import { Random } from '../testing/random.ts'
import { diskFiles } from './disk/files.ts'
import { headerBytes } from './disk/record.ts'
import { recordsIn } from './disk/segment.ts'

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-lines-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** The JSON and sizes of a run's output, and how many of its events were byte lines. */
async function drained(run: BufferRun): Promise<{ events: [string, number][]; lines: number }> {
  const events: [string, number][] = []
  let lines = 0
  for (let batch = await run.take(); batch !== undefined; batch = await run.take()) {
    if (batch instanceof ByteBatch) lines += batch.lineCount
    const sizes = batch instanceof ByteBatch ? Array.from({ length: batch.count }, (_, at) => batch.size(at)) : []
    for (const [at, event] of batch.events.entries()) {
      events.push([writeJson('fields' in event ? event.fields : {}), sizes[at] ?? event.size])
    }
    finalizeBatch(batch, 'delivered')
  }
  return { events, lines }
}

const counters = [
  ...['buffer_received_events_total', 'buffer_received_event_bytes_total', 'buffer_sent_events_total'],
  ...['buffer_sent_event_bytes_total', 'buffer_discarded_events_total', 'buffer_errors_total', 'buffer_events'],
]
const counted = (run: BufferRun) => Object.fromEntries(counters.map((name) => [name, run.value(name)]))

test('lines and objects result in the same events and counts', async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  let total = 0
  for (const chain of sinkChains) {
    const lanes = await bothLanes(chain, random)
    for (const isCold of [false, true]) {
      const found = []
      for (const lane of ['bytes', 'objects'] as const) {
        const place = join(folder, `${chain.length}-${found.length}-${isCold}-${random.below(1e9)}`)
        let run = new BufferRun(place)
        await lanes[lane](async (batch) => {
          await run.buffer.write(batch)
        })
        if (isCold) {
          await run.end()
          run = new BufferRun(place)
        }
        const { events, lines } = await drained(run)
        expect(lines > 0, `Seed ${seed}`).toBe(lane === 'bytes')
        found.push({ events, counted: counted(run) })
        await run.end()
      }
      expect(found[0], `Seed ${seed}, ${JSON.stringify(chain)}`).toEqual(found[1])
      total += found[0]?.events.length ?? 0
    }
  }
  expect(total, `Seed ${seed}`).toBeGreaterThan(100 * sinkChains.length)
})

test('without the byte lane, stored lines of an earlier run become objects', async () => {
  const lanes = await bothLanes(['. = merge(., object!(parse_json!(.message)))\ndel(.message)'], new Random(7))
  const found = []
  for (const linesAsObjects of [false, true]) {
    const place = join(folder, `${linesAsObjects}`)
    const first = new BufferRun(place)
    await lanes.bytes(async (batch) => {
      await first.buffer.write(batch)
    })
    await first.end()
    const second = new BufferRun(place, 'block', undefined, { linesAsObjects })
    const { events, lines } = await drained(second)
    expect(lines > 0).toBe(!linesAsObjects)
    found.push(events)
    await second.end()
  }
  expect(found[1]).toEqual(found[0])
  expect(found[0]?.length).toBeGreaterThan(100)
})

test('a sink that falls behind reads lines from the files, and later lines from memory again', async () => {
  const numberedLines = await lineNumbering()
  const run = new BufferRun(folder)
  const heard: string[] = []
  let given = 0
  const give = async (batches: number, text: string) => {
    for (let batch = 0; batch < batches; batch++, given += 10) {
      await run.buffer.write(numberedLines(given, 10, (status) => heard.push(status), text))
      await turn()
    }
  }
  await give(300, 'x'.repeat(1000))
  const out: number[] = []
  let lines = 0
  const take = (batch: Batch) => {
    if (batch instanceof ByteBatch) lines += batch.lineCount
    for (const event of batch.events) out.push('fields' in event ? (event.fields['n'] as number) : -1)
    finalizeBatch(batch, 'delivered')
  }
  for (let left = 3000; left > 0; ) {
    const batch = await run.take()
    if (batch === undefined) break
    left -= batch.count
    take(batch)
  }
  await give(3, '')
  for (let batch = await run.take(); batch !== undefined; batch = await run.take()) take(batch)
  expect(out).toEqual(Array.from({ length: given }, (_, n) => n))
  expect(lines).toBe(given)
  await run.end()
  expect(heard).toEqual(Array.from({ length: given / 10 }, () => 'delivered'))
  expect(run.value('buffer_events')).toBe(0)
})

test('records of the first format are read, and other formats use new files', async () => {
  const numberedLines = await lineNumbering()
  const first = new BufferRun(folder)
  await first.put(numbered(0, 5))
  await first.put(numbered(5, 5))
  await first.end()
  const path = join(folder, 'buffer-data-0.dat')
  const bytes = readFileSync(path)
  for (const { offset } of recordsIn(diskFiles, { sequence: 0, path, size: 0, end: undefined }, 0, true)) {
    bytes[offset + 37] = 1
    bytes.writeUInt32LE(crc32c(bytes.subarray(offset + 8, offset + headerBytes)), offset + 4)
  }
  writeFileSync(path, bytes)

  const second = new BufferRun(folder)
  await second.put(numberedLines(10, 5))
  await second.end()

  expect(readFileSync(path).equals(bytes)).toBe(true)
  expect(readdirSync(folder).filter((name) => name.endsWith('.dat'))).toHaveLength(2)
  const third = new BufferRun(folder)
  expect(await third.drain()).toEqual(Array.from({ length: 15 }, (_, n) => n))
  expect(third.lost).toBe(0)
  await third.end()
})
