// Buffers on disk: a run of the agent leaves a buffer behind, intact or damaged, and the next run opens it.

import {
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Batch, finalizeBatch, metricBatch } from '../event/batch.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { crc32c } from '../formats/crc32c.ts'
import { BufferRun, minBufferBytes, numbered } from '../testing/buffer-run.ts'
import { metric } from '../testing/events.ts'
import { Random } from '../testing/random.ts'
import { diskFiles } from './disk/files.ts'
import { headerBytes, type RecordHeader, readHeader, writeHeader } from './disk/record.ts'
import { recordsIn } from './disk/segment.ts'

// The test writes hundreds of megabytes to a disk that other processes use too.

let folder = ''
const open = new Set<Run>()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-buffer-'))
})

afterEach(async () => {
  for (const run of open) await run.end()
  rmSync(folder, { recursive: true, force: true })
})

class Run extends BufferRun {
  constructor(whenFull: 'block' | 'drop_newest' = 'block', maxSize = minBufferBytes) {
    super(folder, whenFull, maxSize)
    open.add(this)
  }

  override async end(): Promise<void> {
    open.delete(this)
    await super.end()
  }
}

let next = 0
beforeEach(() => {
  next = 0
})

/** A batch of numbered events; `text` sets their size. */
function batch(size: number, heard?: (status: BatchStatus) => void, text = ''): Batch {
  const first = next
  next += size
  return numbered(first, size, heard, text)
}

/** Writes batches so that each becomes one record. */
async function fill(run: Run, batches: number, size = 10, text = ''): Promise<void> {
  for (let index = 0; index < batches; index++) await run.put(batch(size, undefined, text))
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)
const segment = (number: number) => join(folder, `buffer-data-${number}.dat`)

test('returns events that nobody took at the next start, in order', async () => {
  const first = new Run()
  await fill(first, 5)
  expect(first.value('buffer_events')).toBe(50)
  expect(first.value('buffer_received_events_total')).toBe(50)
  await first.end()

  const second = new Run()
  expect(second.value('buffer_events')).toBe(50)
  expect(second.value('buffer_byte_size')).toBeGreaterThan(500)
  expect(second.value('buffer_max_byte_size')).toBe(minBufferBytes)
  await fill(second, 1)
  expect(await second.drain()).toEqual(range(0, 60))
  expect(second.value('buffer_events')).toBe(0)
  expect(second.value('buffer_byte_size')).toBe(0)
  expect(second.value('buffer_sent_events_total')).toBe(60)
  expect(second.lost).toBe(0)
  await second.end()
  expect(await new Run().drain()).toEqual([])
})

test('a source gets the status of its events when they are on the disk, independent of the sink', async () => {
  const run = new Run()
  const heard = new Promise<BatchStatus>((resolve) => void run.buffer.write(batch(3, resolve)))
  expect(await heard).toBe('delivered')
  expect(run.value('buffer_events')).toBe(3)
})

test('returns events that were taken but not acknowledged again', async () => {
  const first = new Run()
  await fill(first, 3)
  const taken = [await first.take(), await first.take(), await first.take()] as Batch[]
  finalizeBatch(taken[0] as Batch, 'delivered')
  finalizeBatch(taken[2] as Batch, 'rejected')
  await first.end()
  finalizeBatch(taken[1] as Batch, 'delivered') // after the close

  const second = new Run()
  expect(second.value('buffer_events')).toBe(20)
  expect(await second.drain()).toEqual(range(10, 30))
})

test('keeps events that are abandoned at the end, and drops events that were rejected before', async () => {
  const first = new Run()
  await fill(first, 3)
  const taken = [await first.take(), await first.take(), await first.take()] as Batch[]
  finalizeBatch(taken[0] as Batch, 'rejected')
  first.abandoning.abort()
  finalizeBatch(taken[1] as Batch, 'errored')
  finalizeBatch(taken[2] as Batch, 'delivered')
  await first.end()
  expect(await new Run().drain()).toEqual(range(10, 30))
})

test('a sink that falls behind is served from the files, and catches up with memory', async () => {
  const run = new Run()
  const text = 'x'.repeat(10_000)
  await fill(run, 80, 10, text) // 8 MB: four times the memory limit
  const numbers: number[] = []
  for (let index = 0; index < 40; index++) {
    const taken = (await run.take()) as Batch
    for (const event of taken.events) numbers.push((event as LogEvent).fields['n'] as number)
    finalizeBatch(taken, 'delivered')
    await fill(run, 1, 10, text)
  }
  numbers.push(...(await run.drain()))
  await fill(run, 3)
  numbers.push(...(await run.drain()))
  expect(numbers).toEqual(range(0, 1230))
  expect(run.value('buffer_events')).toBe(0)
  expect(run.lost).toBe(0)
})

test('a sink that falls behind and catches up during writes gets all events in order (seed 5)', async () => {
  const chance = new Random(5)
  const run = new Run('block', 2 ** 40)
  const numbers: number[] = []
  const open: Batch[] = []
  const take = () => {
    const taken = run.buffer.take()
    if (taken === undefined) return
    for (const event of taken.events) numbers.push((event as LogEvent).fields['n'] as number)
    open.push(taken)
  }
  const finish = () => {
    const [taken] = open.splice(chance.below(open.length), 1)
    if (taken !== undefined) finalizeBatch(taken, 'delivered')
  }
  // Writes faster than the sink for a while, and then more slowly.
  for (let round = 0; round < 800; round++) {
    const isFast = round % 200 < 100
    for (let batches = chance.below(isFast ? 5 : 2); batches > 0; batches--)
      await run.buffer.write(batch(1 + chance.below(5), undefined, 'x'.repeat(chance.below(60_000))))
    for (let takes = chance.below(isFast ? 3 : 12); takes > 0; takes--) take()
    for (let ends = chance.below(8); ends > 0; ends--) finish()
    if (chance.below(3) === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  while (open.length > 0) finish()
  numbers.push(...(await run.drain()))
  expect(numbers).toEqual(range(0, next))
  // An event delivered before it was written leaves the buffer at once.
  await vi.waitFor(() => expect([run.value('buffer_events'), run.value('buffer_byte_size')]).toEqual([0, 0]), 10_000)
  expect(run.lost).toBe(0)
})

test('segments are released, and the folder stays within its limit', async () => {
  const run = new Run()
  const text = 'x'.repeat(100_000)
  const size = () => readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  let largest = 0
  const numbers: number[] = []
  // Passes 600 MB through 256 MB, with the reader half a megabyte behind.
  for (let index = 0; index < 600; index++) {
    await fill(run, 1, 10, text)
    if (index % 25 === 0) largest = Math.max(largest, size())
    if (index < 5) continue
    const taken = (await run.take()) as Batch
    for (const event of taken.events) numbers.push((event as LogEvent).fields['n'] as number)
    finalizeBatch(taken, 'delivered')
  }
  numbers.push(...(await run.drain()))
  expect(numbers).toEqual(range(0, 6000))
  expect(largest).toBeLessThanOrEqual(minBufferBytes + 1024)
  expect(readdirSync(folder).filter((name) => name.endsWith('.dat')).length).toBeLessThanOrEqual(2)
})

test('a full buffer holds its writer until a segment is free', async () => {
  const run = new Run()
  const text = 'x'.repeat(1_000_000)
  const numbers: number[] = []
  const takeUntil = async (wait: Promise<void>) => {
    let admitted = false
    void wait.then(() => {
      admitted = true
    })
    let taken = 0
    while (!admitted) {
      const batch = (await run.take()) as Batch
      for (const event of batch.events) numbers.push((event as LogEvent).fields['n'] as number)
      taken += batch.events.length
      finalizeBatch(batch, 'delivered')
      await new Promise((resolve) => setImmediate(resolve))
    }
    return taken
  }
  // A slow disk also blocks its writer until a sync: meanwhile the buffer accepts fewer events than one segment holds.
  for (let taken = 0; taken <= 100; ) {
    const wait = run.buffer.write(batch(1, undefined, text))
    if (wait === undefined) while (run.nextId < next) await new Promise((resolve) => setImmediate(resolve))
    else if (run.value('buffer_byte_size') < 240e6) await wait
    else taken = await takeUntil(wait)
    expect(next - numbers.length).toBeLessThan(280)
  }
  numbers.push(...(await run.drain()))
  expect(numbers).toEqual(range(0, next))
})

test('drop_newest discards events without room, and keeps earlier ones', async () => {
  const run = new Run('drop_newest')
  const text = 'x'.repeat(1_000_000)
  while (run.value('buffer_discarded_events_total', { intentional: 'true' }) === 0) {
    await run.buffer.write(batch(4, undefined, text))
  }
  const discarded = run.value('buffer_discarded_events_total')
  expect(await run.drain()).toEqual(range(0, next - discarded))
})

test('metrics and logs take turns', async () => {
  const run = new Run()
  void run.buffer.write(batch(2))
  void run.buffer.write(metricBatch([metric('m', { type: 'counter', value: 1 })], new Finalizer()))
  void run.buffer.write(batch(1))
  await run.end()
  const second = new Run()
  const kinds = [(await second.take())?.type, (await second.take())?.type, (await second.take())?.type]
  expect(kinds).toEqual(['log', 'metric', 'log'])
})

test('a second agent cannot use the folder', async () => {
  new Run()
  expect(() => new Run()).toThrow(/is in use/)
})

// --- Damage ---

/** Leaves a segment with 20 records of 10 events. */
async function leave(records = 20): Promise<{ offset: number; bytes: number }[]> {
  const run = new Run()
  await fill(run, records)
  await run.end()
  const found = [...recordsIn(diskFiles, { sequence: 0, path: segment(0), size: 0, end: undefined }, 0, true)]
  expect(found).toHaveLength(records)
  return found.map(({ offset, header }) => ({ offset, bytes: headerBytes + header.valueBytes + header.textBytes }))
}

function overwrite(path: string, offset: number, bytes: Buffer): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, offset)
}

test('a flipped bit in a record loses its events, which are counted', async () => {
  const records = await leave()
  const bytes = readFileSync(segment(0))
  const at = (records[7]?.offset ?? 0) + headerBytes + 20
  overwrite(segment(0), at, Buffer.from([(bytes[at] ?? 0) ^ 4]))
  const run = new Run()
  expect(await run.drain()).toEqual([...range(0, 70), ...range(80, 200)])
  expect(run.lost).toBe(10)
  expect(run.value('buffer_events')).toBe(0)
  expect(run.value('buffer_byte_size')).toBe(0)
  expect(run.value('buffer_errors_total', { error_type: 'reader_failed', error_code: 'checksum' })).toBe(1)
})

test('each changed bit of a header is detected, and reading continues at the next header', async () => {
  const records = await leave()
  const [at, to] = [records[3]?.offset ?? 0, records[5]?.offset ?? 0]
  overwrite(segment(0), at, Buffer.alloc(to - at, 0xee))
  const run = new Run()
  expect(await run.drain()).toEqual([...range(0, 30), ...range(50, 200)])
  expect(run.lost).toBe(20)
  expect(run.value('buffer_errors_total', { error_code: 'header' })).toBe(1)
})

test('a torn tail is removed, and its events in the ledger are counted', async () => {
  const records = await leave()
  truncateSync(segment(0), (records[18]?.offset ?? 0) + 30)
  // Like after a crash of the machine: the ledger confirms less than the files contain.
  const run = new Run()
  expect(run.lost).toBe(20)
  expect(run.value('buffer_events')).toBe(180)
  await fill(run, 1)
  expect(await run.drain()).toEqual([...range(0, 180), ...range(200, 210)])
  expect(run.lost).toBe(20)
  await run.end()
  expect(statSync(segment(0)).size % 8).toBe(0)
})

test('keeps later events after the loss of delivered events that were never synced', async () => {
  const first = new Run()
  await fill(first, 10)
  expect(await first.drain()).toEqual(range(0, 100))
  await first.end()
  truncateSync(segment(0), statSync(segment(0)).size / 2)

  const second = new Run()
  await fill(second, 3)
  await second.end()

  const third = new Run()
  expect(await third.drain()).toEqual(range(100, 130))
  expect(third.lost).toBe(0)
})

test('damage at the end of the synced data is counted when it is read', async () => {
  const records = await leave()
  overwrite(segment(0), (records[19]?.offset ?? 0) + headerBytes, Buffer.alloc(16, 1))
  const run = new Run()
  expect(await run.drain()).toEqual(range(0, 190))
  expect(run.lost).toBe(10)
  expect(run.value('buffer_events')).toBe(0)
  await run.end()
  const again = new Run()
  expect(again.lost).toBe(0) // this loss was counted
  await again.end()
})

test('without a ledger everything is read again', async () => {
  await leave()
  for (const damage of [
    () => unlinkSync(join(folder, 'buffer.db')),
    () => overwrite(join(folder, 'buffer.db'), 0, Buffer.alloc(128, 7)),
  ]) {
    damage()
    const run = new Run()
    expect(run.value('buffer_events')).toBe(200)
    await run.end()
  }
  const run = new Run()
  expect(await run.drain()).toEqual(range(0, 200))
  expect(run.lost).toBe(0)
})

test('a missing segment is counted immediately and once', async () => {
  const first = new Run('block', 2 ** 40)
  const text = 'x'.repeat(1_000_000)
  const ends: number[] = []
  while (!existsSync(segment(3))) {
    const had = readdirSync(folder).length
    await fill(first, 1, 2, text)
    if (readdirSync(folder).length > had) ends.push(next - 2)
  }
  await first.end()
  unlinkSync(segment(1))
  const total = next
  const [, second = 0, third = 0] = ends
  const run = new Run('block', 2 ** 40)
  expect(run.lost).toBe(third - second)
  expect(run.value('buffer_events')).toBe(total - (third - second))
  expect(await run.drain()).toEqual([...range(0, second), ...range(third, total)])
  expect(run.lost).toBe(third - second)
  expect(run.value('buffer_events')).toBe(0)
})

test('events of a missing segment are counted once if the record behind them is damaged, too', async () => {
  const first = new Run('block', 2 ** 40)
  const text = 'x'.repeat(1_000_000)
  const ends: number[] = []
  while (!existsSync(segment(2))) {
    const had = readdirSync(folder).length
    await fill(first, 1, 2, text)
    if (readdirSync(folder).length > had) ends.push(next - 2)
  }
  await fill(first, 3, 2)
  await first.end()
  unlinkSync(segment(1))
  overwrite(segment(2), headerBytes + 20, Buffer.from('damage'))
  const total = next
  const [, second = 0, third = 0] = ends
  const run = new Run('block', 2 ** 40)
  expect(run.lost).toBe(third - second)
  expect(await run.drain()).toEqual([...range(0, second), ...range(third + 1, total)]) // each of these events is a separate record
  expect(run.lost).toBe(third + 1 - second)
  expect(run.value('buffer_events')).toBe(0)
})

test('all segments gone', async () => {
  await leave()
  unlinkSync(segment(0))
  const run = new Run()
  expect(run.lost).toBe(200)
  expect(run.value('buffer_events')).toBe(0)
  await fill(run, 1)
  expect(await run.drain()).toEqual(range(200, 210))
})

test('files of another format are left alone', async () => {
  const records = await leave(1)
  expect(records).toHaveLength(1)
  const { crc32c } = await import('../formats/crc32c.ts')
  const bytes = readFileSync(segment(0))
  bytes[37] = 9
  bytes.writeUInt32LE(crc32c(bytes.subarray(8, headerBytes)), 4)
  writeFileSync(segment(0), bytes)
  expect(() => new Run()).toThrow(/format 9/)
  expect(readFileSync(segment(0)).equals(bytes)).toBe(true)
})

test.each([
  { name: 'nothing', damage: (path: string) => truncateSync(path, 0) },
  { name: 'data of an earlier use', damage: (path: string) => writeFileSync(path, readFileSync(segment(0))) },
  { name: 'noise', damage: (path: string) => writeFileSync(path, Buffer.alloc(5_000_000, 'PSB1')) },
])('a new segment that contains $name does not affect earlier ones', async ({ damage }) => {
  const text = 'x'.repeat(1_000_000)
  const first = new Run('block', 2 ** 40)
  // Like after a power failure before the first sync of a new segment: the ledger does not contain it.
  const ledger = join(folder, 'buffer.db')
  let before = Buffer.alloc(0)
  while (!existsSync(segment(1))) {
    before = readFileSync(ledger)
    await fill(first, 1, 1, text)
  }
  const kept = next - 1
  await first.end()
  damage(segment(1))
  writeFileSync(ledger, before)
  const run = new Run('block', 2 ** 40)
  expect(run.value('buffer_events')).toBe(kept)
  await fill(run, 2)
  expect(await run.drain()).toEqual([...range(0, kept), ...range(kept + 1, kept + 21)])
  expect(run.lost).toBe(0)
  await run.end()
  const again = new Run('block', 2 ** 40)
  expect(again.value('buffer_events')).toBe(0)
})

test.skipIf(process.platform !== 'linux')('ten gigabytes are opened without being read', async () => {
  // Eighty segments with one record at the beginning; the rest is a hole in the file.
  await leave(1)
  const record = readFileSync(segment(0))
  const header = readHeader(record, 0) as RecordHeader
  const ledger = readFileSync(join(folder, 'buffer.db'))
  for (let sequence = 0; sequence < 80; sequence++) {
    writeHeader({ ...header, segment: sequence, firstId: sequence * header.events }, record)
    writeFileSync(segment(sequence), record)
    if (sequence < 79) truncateSync(segment(sequence), 128 * 1024 * 1024)
  }
  for (const slot of [0, 64]) {
    ledger.writeUInt32LE(79, slot + 32)
    ledger.writeUInt32LE(0, slot + 36)
    ledger.writeBigUInt64LE(BigInt(79 * header.events), slot + 48)
    ledger.writeBigUInt64LE(BigInt(80 * header.events), slot + 40)
    ledger.writeUInt32LE(crc32c(ledger.subarray(slot + 8, slot + 64)), slot + 4)
  }
  writeFileSync(join(folder, 'buffer.db'), ledger)
  const readSoFar = () => Number(/rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
  const before = readSoFar()
  const run = new Run('block', 2 ** 40)
  expect((await run.take())?.count).toBe(header.events)
  expect(run.value('buffer_byte_size')).toBeGreaterThan(10e9)
  expect(run.value('buffer_events')).toBe(80 * header.events)
  expect(readSoFar() - before).toBeLessThan(8e6)
})

test('random damage only loses the damaged records, and every loss is counted (seed 7)', async () => {
  const chance = new Random(7)
  const random = (below: number) => chance.below(below)
  for (let round = 0; round < 25; round++) {
    rmSync(folder, { recursive: true, force: true })
    next = 0
    const records = await leave(5 + random(30))
    const total = next
    const hit = new Set<number>()
    for (let times = 1 + random(4); times > 0; times--) {
      const index = random(records.length)
      const { offset, bytes } = records[index] as { offset: number; bytes: number }
      overwrite(segment(0), offset + random(bytes), Buffer.from([1 + random(255)]))
      hit.add(index)
    }
    const run = new Run()
    const numbers = await run.drain()
    expect(numbers.length + run.lost).toBe(total)
    expect(run.lost).toBeLessThanOrEqual(hit.size * 10)
    expect(numbers).toEqual([...numbers].sort((left, right) => left - right))
    expect(run.value('buffer_events')).toBe(0)
    await run.end()
  }
})
