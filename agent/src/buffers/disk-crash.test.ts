// Crashes of a disk buffer between any two system calls: kills of the process, and power failures on a model of the disk. The
// segments are small, so that few events fill many of them.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { crc32c } from '../formats/crc32c.ts'
import { BufferRun, lineNumbering, numbered } from '../testing/buffer-run.ts'
import { CrashDisk, type Step, writeAtOnce } from '../testing/crash-disk.ts'
import { Random } from '../testing/random.ts'
import { inspectBuffer } from './disk/inspect.ts'
import { Ledger, type LedgerState, ledgerName } from './disk/ledger.ts'

const numberedLines = await lineNumbering()

/** Enough turns of the loop for all pending writes to start. */
async function turn(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await immediate()
}

/** Delays writes by some turns; returns a function that waits for all of them. */
function slowly(chance: Random): () => Promise<void> {
  let underWay = 0
  disk.writes = async (go) => {
    underWay++
    for (let turns = chance.below(6); turns > 0; turns--) await immediate()
    underWay--
    go()
  }
  return async () => {
    for (let quiet = 0; quiet < 5; quiet = underWay === 0 ? quiet + 1 : 0) await turn()
  }
}

let root = ''
let disk: CrashDisk
const runs = new Set<BufferRun>()

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-crash-'))
  disk = new CrashDisk(root)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(async () => {
  disk.repair()
  vi.useRealTimers()
  for (const run of runs) await run.end()
  runs.clear()
  rmSync(root, { recursive: true, force: true })
})

function start(folder = disk.folder): BufferRun {
  const run = new BufferRun(folder, 'block', 2 ** 40, { files: disk, segmentLimit: 4096 })
  runs.add(run)
  return run
}

async function end(run: BufferRun): Promise<void> {
  runs.delete(run)
  await run.end()
}

/** Advances time until a sync, a retry and a ledger write are due, and waits until they end. */
async function pass(until: () => boolean): Promise<void> {
  const began = Date.now()
  while (!until()) {
    if (Date.now() - began > 60_000) throw new Error('Gave up waiting.')
    await vi.advanceTimersByTimeAsync(20)
    await turn()
  }
}

/**
 * Writes a batch as its own record. The record may have to wait for a sync, because the fake time advances faster than
 * the disk works.
 */
async function write(run: BufferRun, batch: Batch): Promise<void> {
  const held = run.buffer.write(batch)
  if (held !== undefined) {
    let isIn = false
    void held.then(() => {
      isIn = true
    })
    await pass(() => isIn)
  }
  await turn()
}

/** The history of each event, as the number of steps completed at that time. */
class History {
  readonly given: number[] = []
  readonly written: number[] = []
  readonly heard: number[] = []
  readonly done: number[] = []
  /** Events whose source received a status. */
  readonly answered = new Set<number>()
  /** Whether writes take time: their outcome is then known late, and some events are delivered earlier. */
  readonly slow: boolean
  #run = 0

  constructor(slow = false) {
    this.slow = slow
  }

  /** The current run was killed: its callbacks are ignored, and bytes not yet on the disk may be lost. */
  isKilled(): void {
    this.#run++
    const unknown = this.written.indexOf(Number.POSITIVE_INFINITY)
    if (unknown >= 0) this.written.fill(Number.NaN, unknown)
  }

  batch(size: number, text = ''): Batch {
    const first = this.written.length
    const run = this.#run
    for (let n = first; n < first + size; n++) {
      this.given.push(disk.steps.length)
      this.written.push(Number.POSITIVE_INFINITY)
    }
    const heard = (status: string) => {
      for (let n = first; n < first + size; n++) this.answered.add(n)
      for (let n = first; n < first + size && status === 'delivered' && run === this.#run; n++)
        this.heard[n] = disk.steps.length
    }
    return (first % 2 === 0 ? numbered : numberedLines)(first, size, heard, text)
  }

  /** Everything handed to the buffer so far has been written. */
  markWritten(): void {
    for (let n = this.written.length - 1; this.written[n] === Number.POSITIVE_INFINITY; n--)
      this.written[n] = disk.steps.length
  }

  markDone(batch: Batch): void {
    // After a kill an event may be delivered again; only its first delivery counts.
    for (const event of batch.events) this.done[(event as LogEvent).fields['n'] as number] ??= disk.steps.length
    finalizeBatch(batch, 'delivered')
  }

  /** Events that met the condition within this many steps. */
  before(what: 'given' | 'written' | 'heard' | 'done', step: number): number[] {
    return this[what].flatMap((at, n) => (at <= step ? [n] : []))
  }
}

/** Opens the buffer after a crash, and compares its output with the input. */
async function examine(history: History, step: number, power: Random | undefined, what: string): Promise<void> {
  disk.writes = writeAtOnce
  const live = disk.folder
  const { folder } = disk.crashed(step, power)
  const ledger = join(folder, ledgerName)
  // If no event was lost before, and each was written before its delivery, the ids equal the event numbers.
  const certain = existsSync(ledger) && !history.slow ? (Ledger.read(ledger).state?.syncedId ?? 0) : 0
  disk.folder = ''
  try {
    const run = start(folder)
    const out = await run.drain()
    const got = new Set(out)
    expect(out, what).toEqual([...got].sort((left, right) => left - right))
    const done = new Set(history.before('done', step))
    const safe = history.before(power === undefined ? 'written' : 'heard', step)
    for (let n = 0; n < certain; n++) safe.push(n)
    expect(
      safe.filter((n) => !got.has(n) && !done.has(n)),
      `${what}: lost`,
    ).toEqual([])
    const missing = history.before(history.slow ? 'given' : 'written', step).filter((n) => !got.has(n))
    expect(run.lost, `${what}: counted`).toBeLessThanOrEqual(missing.length)
    if (power === undefined) expect(run.lost, `${what}: counted`).toBe(0)
    expect([run.value('buffer_events'), run.value('buffer_byte_size')], what).toEqual([0, 0])
    void run.buffer.write(numbered(10_000, 5))
    await turn()
    void run.buffer.write(numbered(10_005, 5))
    await end(run)
    const second = start(folder)
    expect(second.lost, `${what}: the second start`).toBe(0)
    const again = await second.drain()
    expect(again, `${what}: the second start`).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => 10_000 + n))
    await end(second)
  } finally {
    disk.folder = live
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A few runs with many kinds of steps: segments fill, are released and reused, and syncs start and fail. */
async function live(history: History, chance: Random, failing: boolean): Promise<void> {
  const settled = history.slow ? slowly(chance) : undefined
  for (let round = 0; round < 3; round++) {
    const run = start()
    let failed = 0
    for (let turns = 0; turns < 25; turns++) {
      for (let batches = 1 + chance.below(4); batches > 0; batches--) {
        await write(run, history.batch(1 + chance.below(8), 'x'.repeat(chance.below(120))))
        if (settled === undefined) history.markWritten()
      }
      if (chance.below(3) === 0 && settled !== undefined) {
        await settled()
        if (run.value('buffer_errors_total', { error_type: 'writer_failed' }) === failed) history.markWritten()
        failed = run.value('buffer_errors_total', { error_type: 'writer_failed' })
      }
      for (let takes = chance.below(6); takes > 0; takes--) {
        const batch = run.buffer.take()
        if (batch !== undefined) history.markDone(batch)
        await turn()
      }
      let failures = failing ? chance.below(6) : 6
      const unlucky = failing && history.slow
      disk.fault = (call, path) => {
        if (call === 'write' && unlucky && path.endsWith('.dat')) return (['EIO', 'ENOSPC'] as const)[chance.below(12)]
        return call === 'fdatasync' && failures++ < 3 ? 'EIO' : undefined
      }
      const last = history.written.length - 1
      if (chance.below(4) === 0) await pass(() => history.answered.has(last))
      else if (chance.below(2) === 0) await vi.advanceTimersByTimeAsync(60)
    }
    disk.fault = () => undefined
    if (round === 1) await end(run)
    else if (round === 0) {
      disk.kill()
      history.isKilled()
    }
  }
}

test.each([
  { what: 'a disk that is well', slow: false, failing: false, seed: 11 },
  { what: 'a disk whose syncs sometimes fail', slow: false, failing: true, seed: 12 },
  { what: 'a disk that takes its time', slow: true, failing: false, seed: 13 },
  { what: 'a disk that is slow and sometimes fails', slow: true, failing: true, seed: 14 },
])(
  'no crash between two system calls loses events that were reported as safe: $what (seed $seed)',
  async ({ slow, failing, seed }) => {
    const history = new History(slow)
    const chance = new Random(seed)
    await live(history, chance, failing)
    vi.useRealTimers()
    expect(history.before('heard', disk.steps.length).length).toBeGreaterThan(100)
    const all = Number(process.env['PENSTOCK_CRASHES'] ?? 30)
    for (let crash = 0; crash < all; crash++) {
      const step = all > disk.steps.length ? crash % disk.steps.length : chance.below(disk.steps.length + 1)
      await examine(
        history,
        step,
        crash % 3 === 0 ? undefined : chance,
        `crash ${crash} after ${step} of ${disk.steps.length}`,
      )
    }
  },
)

const dataFiles = () => readdirSync(disk.folder).filter((name) => name.endsWith('.dat'))

/** Writes this many records, each in its own turn. */
async function fill(run: BufferRun, first: number, records: number): Promise<void> {
  for (let index = 0; index < records; index++) {
    await write(run, numbered(first + 5 * index, 5, undefined, 'x'.repeat(100)))
  }
}

test('a spare file that cannot be opened for a while is used later', async () => {
  const run = start()
  await fill(run, 0, 60)
  const out = await run.drain()
  await pass(() => dataFiles().includes('buffer-spare.dat'))
  disk.fault = (call, path) => (call === 'open' && path.endsWith('spare.dat') ? 'EMFILE' : undefined)
  const rest = fill(run, 300, 60) // the buffer holds it back
  await pass(() => run.value('buffer_errors_total', { error_code: 'EMFILE' }) > 1)
  disk.fault = () => undefined
  await rest
  await end(run)
  out.push(...(await start().drain()))
  expect(new Set(out).size).toBe(600)
})

test.each([
  { what: 'renamed', call: 'rename' },
  { what: 'removed', call: 'unlink' },
])('a segment that could not be $what is released later, even without further events', async ({ call }) => {
  const run = start()
  await fill(run, 0, 90)
  disk.fault = (name) => (name === call ? 'EIO' : undefined)
  await run.drain()
  await pass(() => run.value('buffer_errors_total', { error_type: 'writer_failed' }) > 0)
  disk.fault = () => undefined
  await pass(() => dataFiles().length <= 2)
})

test('a segment that becomes done during the release of another one is not missing after a kill', async () => {
  const first = start()
  await fill(first, 0, 45)
  const given = () => disk.steps.filter(({ op }) => op === 'unlink' || op === 'rename').length
  await first.drain()
  await pass(() => given() === 2)
  for (let step = 0; step <= disk.steps.length; step++) {
    const { folder } = disk.crashed(step, undefined)
    const live = disk.folder
    disk.folder = ''
    const run = start(folder)
    expect(run.lost, `after ${step} of ${disk.steps.length}`).toBe(0)
    await end(run)
    disk.folder = live
  }
})

test('a record that was written partly to a full disk does not announce events to the next start', async () => {
  const run = start()
  await fill(run, 0, 60)
  await run.drain()
  await pass(() => dataFiles().includes('buffer-spare.dat'))
  // Writes the rest to a reused file, in which a header is followed by at least as many bytes as it announces.
  for (let first = 300; dataFiles().includes('buffer-spare.dat'); first += 5) await fill(run, first, 1)
  const kept = run.value('buffer_events')
  disk.room = 70
  await fill(run, 900, 1)
  await pass(() => run.value('buffer_errors_total', { error_code: 'ENOSPC' }) > 0)
  disk.folder = disk.crashed(disk.steps.length, undefined).folder
  disk.room = Number.POSITIVE_INFINITY
  const next = start()
  expect(next.lost).toBe(0)
  expect(await next.drain()).toHaveLength(kept)
})

test.each([0, 1, 2])('the agent starts although the disk cannot release segment %i', async (number) => {
  await fill(start(), 0, 45)
  disk.kill()
  expect(dataFiles()).toEqual(['buffer-data-0.dat', 'buffer-data-1.dat', 'buffer-data-2.dat'])
  disk.fault = (call, path) => (call === 'read' && path.endsWith(`data-${number}.dat`) ? 'EIO' : undefined)
  const second = start()
  disk.fault = () => undefined
  await fill(second, 225, 2)
  expect(await second.drain()).toEqual(Array.from({ length: 235 }, (_, n) => n))
  expect(second.lost).toBe(0)
})

test('does not report events that a killed run left unsynced as safe before they are synced', async () => {
  const first = start()
  await fill(first, 0, 3)
  disk.kill()
  const second = start()
  const synced = () => Ledger.read(join(disk.folder, ledgerName)).state?.syncedId
  expect(synced()).toBe(0)
  expect(second.value('buffer_events')).toBe(15)
  await pass(() => synced() === 15)
  const syncs = disk.steps.filter(({ op }) => op === 'sync')
  expect(syncs.length).toBeGreaterThan(0)
})

test('does not report events that the last run could not sync as safe', async () => {
  const first = start()
  disk.fault = (call) => (call === 'fdatasync' ? 'EIO' : undefined)
  await fill(first, 0, 3)
  await pass(() => first.value('buffer_errors_total', { error_code: 'EIO' }) > 0)
  disk.kill()
  disk.fault = () => undefined
  const second = start()
  const ledger = () => Ledger.read(join(disk.folder, ledgerName)).state
  const heard: string[] = []
  await write(
    second,
    numbered(15, 5, (status) => heard.push(status)),
  )
  await pass(() => heard.length > 0)
  expect(heard).toEqual(['delivered'])
  // The kernel considered the data written, so this sync proves nothing.
  expect(ledger()).toMatchObject({ syncedId: 0, unsafe: true })
  await second.drain()
  await fill(second, 20, 1)
  await pass(() => ledger()?.syncedId === 25)
  expect(ledger()?.unsafe).toBe(false)
})

test('does not report events that are written during the last failed sync as safe before they are written again', async () => {
  const history = new History()
  const run = start()
  const put = async () => {
    await write(run, history.batch(5, 'x'.repeat(100)))
    history.markWritten()
  }
  const deliver = async () => {
    for (let batch = run.buffer.take(); batch !== undefined; batch = run.buffer.take()) history.markDone(batch)
    await turn()
  }
  let failures = 0
  let fail: (() => void) | undefined
  const isNewest = (path: string) => path.endsWith(dataFiles().at(-1) as string)
  disk.fault = (call, path) =>
    call === 'fdatasync' && failures < 3 && isNewest(path) && ++failures > 0 ? 'EIO' : undefined
  disk.hang = (go, fails) => {
    if (fails && failures === 3) fail = go
    else go()
  }
  for (const failed of [1, 2]) {
    await put()
    await pass(() => run.value('buffer_errors_total') === failed)
    await deliver() // otherwise the buffer accepts no more events
  }
  await put()
  await pass(() => fail !== undefined)
  await deliver()
  await put()
  fail?.()
  await pass(() => history.answered.has(19))
  vi.useRealTimers()
  const failed = disk.steps.findLastIndex(({ op }) => op === 'failed')
  const { file, began } = disk.steps[failed] as Extract<Step, { op: 'failed' }>
  const meanwhile = disk.steps.slice(began, failed).filter((step) => step.op === 'write' && step.file === file)
  expect(meanwhile).toHaveLength(1)
  expect(history.heard[19]).toBeDefined()
  for (let crash = 0; crash < 10; crash++)
    await examine(history, disk.steps.length, new Random(crash), `crash ${crash}`)
})

test('a hanging sync blocks the writer within half a second, unless all events are delivered', async () => {
  const run = start()
  let hanging: (() => void)[] | undefined = []
  disk.hang = (go) => (hanging === undefined ? go() : hanging.push(go))
  let taken = 0
  const write = () => {
    const held = run.buffer.write(numbered(taken, 1))
    taken++
    return held
  }
  let held: Promise<void> | undefined
  let passed = 0
  for (; held === undefined; passed += 10) {
    held = write()
    await vi.advanceTimersByTimeAsync(10)
    expect(passed).toBeLessThan(600)
  }
  expect(passed).toBeGreaterThan(400)
  await vi.advanceTimersByTimeAsync(5000)
  expect(run.value('buffer_events')).toBe(taken - 1)
  // All of it is delivered, so a power failure would lose nothing.
  const out: number[] = []
  const take = async () => {
    const batch = run.buffer.take()
    if (batch === undefined) return
    for (const event of batch.events) out.push((event as LogEvent).fields['n'] as number)
    finalizeBatch(batch, 'delivered')
  }
  await pass(() => {
    void take()
    return out.length === taken
  })
  expect(out).toEqual(Array.from({ length: taken }, (_, n) => n))
  for (const go of hanging) go()
  hanging = undefined
})

test('the numbers of the ledger restart after the maximum', async () => {
  await fill(start(), 0, 3)
  disk.kill()
  const path = join(disk.folder, ledgerName)
  const bytes = readFileSync(path)
  for (const slot of [0, 64]) {
    bytes.writeUInt32LE(0xffff_fffc + (bytes.readUInt32LE(slot + 12) & 1), slot + 12)
    bytes.writeUInt32LE(crc32c(bytes.subarray(slot + 8, slot + 64)), slot + 4)
  }
  writeFileSync(path, bytes)
  const run = start()
  for (let round = 0; round < 6; round++) {
    await fill(run, 15 + 5 * round, 1)
    await run.drain()
  }
  await end(run)
  const last = start()
  expect(last.value('buffer_events')).toBe(0)
  expect(last.value('buffer_errors_total')).toBe(0)
  expect(await last.drain()).toEqual([])
})

test('a sink that has read all events finds no damage at the end', async () => {
  const run = start()
  // More than fits in memory, and then no further events.
  for (let batch = 0; batch < 100; batch++) {
    await write(run, numbered(10 * batch, 10, undefined, 'x'.repeat(3000)))
  }
  expect(await run.drain()).toHaveLength(1000)
  for (let moments = 0; moments < 100; moments++) {
    await vi.advanceTimersByTimeAsync(20)
    await turn()
  }
  expect(run.value('buffer_errors_total')).toBe(0)
})

test('a segment that is released during an inspection is not reported as missing', async () => {
  await fill(start(), 0, 45)
  const before = inspectBuffer(disk.folder, disk)
  expect(before).toMatchObject({ in_use: true, lag_events: 225, missing_events: 0 })
  disk.fault = (call, path) => {
    if (call !== 'open' || !path.endsWith('data-0.dat')) return undefined
    disk.fault = () => undefined
    const { ledger, state } = Ledger.open(join(disk.folder, ledgerName), disk)
    ledger.write({ ...(state as LedgerState), readId: before.segments[1]?.first_id ?? 0 })
    ledger.close()
    unlinkSync(path)
    return undefined
  }
  const found = inspectBuffer(disk.folder, disk)
  expect(found.segments.map(({ file }) => file)).toEqual(['buffer-data-1.dat', 'buffer-data-2.dat'])
  expect(found).toMatchObject({ in_use: true, missing_events: 0 })
})
