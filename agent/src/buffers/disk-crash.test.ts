// Crashes of a disk buffer between any two system calls. The harness records all calls of a run on its folder; from them it recreates the folder
// as a kill leaves it, or a loss of power: then only what a sync covered is there for certain, and the rest as chance has
// it. Segments are small here, so that few events fill many.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Batch, finalizeBatch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { crc32c } from '../formats/crc32c.ts'
import { BufferRun, numbered } from '../testing/buffer-run.ts'
import { Random } from '../testing/random.ts'
import { inspectBuffer } from './disk/inspect.ts'
import { Ledger, type LedgerState, ledgerName } from './disk/ledger.ts'

vi.setConfig({ testTimeout: 120_000 })

type Step =
  | { readonly op: 'create' | 'unlink'; readonly name: string; readonly file: number }
  | { readonly op: 'rename'; readonly name: string; readonly to: string }
  | { readonly op: 'write'; readonly file: number; readonly at: number; readonly bytes: Buffer }
  | { readonly op: 'truncate'; readonly file: number; readonly size: number }
  /** A sync covers what came before it began; one that failed makes the kernel forget of it. */
  | { readonly op: 'sync' | 'failed'; readonly file: number; readonly began: number }
  | { readonly op: 'sync_folder'; readonly began: number }
  /** The folder itself and those above it. */
  | { readonly op: 'make_folder' | 'sync_parent'; readonly path: string }

const disk = vi.hoisted(() => ({
  folder: '',
  /** What to throw instead of a call of this name; undefined lets it pass. */
  fault: (_call: string, _path: string): string | undefined => undefined,
  /** Bytes that the next writes take, of those they were given. */
  room: Number.POSITIVE_INFINITY,
  /** Called with what lets a sync go on, and whether to fail. */
  hang: (go: () => void, _fails: boolean): unknown => go(),
  /** Called with what does a write. */
  writes: (go: () => void): unknown => process.nextTick(go),
  steps: [] as unknown[],
  names: new Map<string, number>(),
  open: new Map<number, { file: number; path: string }>(),
  files: 0,
}))
const steps = disk.steps as Step[]

vi.mock('./disk/segment.ts', async (original) => ({
  ...(await original<typeof import('./disk/segment.ts')>()),
  segmentLimit: 4096,
}))

vi.mock('node:fs', async (original) => {
  const real = await original<typeof import('node:fs')>()
  const ours = (path: unknown) => disk.folder !== '' && String(path).startsWith(disk.folder)
  const named = (path: unknown) => disk.names.get(String(path)) ?? -1
  const opened = (file: number) => disk.open.get(file) ?? { file: -1, path: '' }
  const failure = (call: string, path: string) => {
    const code = ours(path) ? disk.fault(call, path) : undefined
    return code === undefined ? undefined : Object.assign(new Error(`${code}: ${call} ${path}`), { code })
  }
  const check = (call: string, path: unknown) => {
    const error = failure(call, String(path))
    if (error !== undefined) throw error
  }
  const note = (step: Step) => disk.steps.push(step)
  const removed = (path: unknown) => {
    if (!disk.names.has(String(path))) return
    note({ op: 'unlink', name: String(path), file: named(path) })
    disk.names.delete(String(path))
  }
  const synced = (call: 'fdatasync' | 'fsync') => (file: number, done: (error: Error | null) => void) => {
    const { file: id, path } = opened(file)
    const began = disk.steps.length
    const error = failure(call, path)
    if (error !== undefined) {
      const failed = () => {
        if (id > 0) note({ op: 'failed', file: id, began })
        done(error)
      }
      setImmediate(() => disk.hang(failed, true))
      return
    }
    const go = () =>
      real[call](file, (failed) => {
        if (failed === null && id > 0) note({ op: 'sync', file: id, began })
        else if (failed === null && id === 0) note({ op: 'sync_folder', began })
        done(failed)
      })
    disk.hang(go, false)
  }
  const mocked = {
    ...real,
    mkdirSync(path: string, options: object) {
      const first = real.mkdirSync(path, options) as unknown as string | undefined
      const made: string[] = []
      for (let at = path; ours(path) && first !== undefined && at.length >= first.length; at = dirname(at))
        made.push(at)
      for (const at of made.reverse()) note({ op: 'make_folder', path: at })
      return first
    },
    fsyncSync(file: number) {
      real.fsyncSync(file)
      note({ op: 'sync_parent', path: opened(file).path })
    },
    openSync(path: string, flags?: string | number, mode?: number) {
      check('open', path)
      const file = real.openSync(path, flags as string, mode)
      if (disk.folder.startsWith(`${path}/`)) disk.open.set(file, { file: -1, path })
      if (!ours(path)) return file
      if (path !== disk.folder && !disk.names.has(path)) {
        disk.names.set(path, ++disk.files)
        note({ op: 'create', name: path, file: disk.files })
      }
      disk.open.set(file, { file: path === disk.folder ? 0 : named(path), path })
      return file
    },
    closeSync(file: number) {
      disk.open.delete(file)
      real.closeSync(file)
    },
    readSync(file: number, bytes: Buffer, offset: number, length: number, at: number) {
      check('read', opened(file).path)
      return real.readSync(file, bytes, offset, length, at)
    },
    writev(file: number, parts: Buffer[], at: number, done: (error: Error | null, written?: number) => void) {
      disk.writes(() => {
        const { file: id, path } = opened(file)
        const bytes = Buffer.concat(parts).subarray(0, disk.room)
        disk.room = Math.max(0, disk.room - bytes.length)
        const full = bytes.length === 0 ? Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }) : undefined
        const error = failure('write', path) ?? full
        if (error !== undefined) {
          done(error)
          return
        }
        if (id >= 0) note({ op: 'write', file: id, at, bytes })
        done(null, real.writeSync(file, bytes, 0, bytes.length, at))
      })
    },
    writeSync(file: number, bytes: Buffer, offset: number, length: number, at: number) {
      check('write', opened(file).path)
      const { file: id } = opened(file)
      if (id >= 0) note({ op: 'write', file: id, at, bytes: Buffer.from(bytes.subarray(offset, offset + length)) })
      return real.writeSync(file, bytes, offset, length, at)
    },
    ftruncateSync(file: number, size: number) {
      const { file: id } = opened(file)
      if (id >= 0) note({ op: 'truncate', file: id, size })
      real.ftruncateSync(file, size)
    },
    truncateSync(path: string, size: number) {
      if (disk.names.has(path)) note({ op: 'truncate', file: named(path), size })
      real.truncateSync(path, size)
    },
    renameSync(from: string, to: string) {
      check('rename', from)
      real.renameSync(from, to)
      if (!disk.names.has(from)) return
      note({ op: 'rename', name: from, to })
      disk.names.set(to, named(from))
      disk.names.delete(from)
    },
    unlinkSync(path: string) {
      real.unlinkSync(path)
      removed(path)
    },
    rmSync(path: string, options: object) {
      real.rmSync(path, options)
      removed(path)
    },
    unlink(path: string, done: (error: Error | null) => void) {
      const error = failure('unlink', path)
      if (error !== undefined) setImmediate(done, error)
      else {
        real.unlink(path, (failed) => {
          if (failed === null) removed(path)
          done(failed)
        })
      }
    },
    fdatasync: synced('fdatasync'),
    fsync: synced('fsync'),
  }
  return { ...mocked, default: mocked }
})

/** So many turns of the loop that what was handed over is on its way to the disk. */
async function turn(): Promise<void> {
  for (let turns = 0; turns < 3; turns++) await immediate()
}

/** Writes are done when the call for them has returned, and before anything else happens. */
const atOnce = (go: () => void) => process.nextTick(go)

/** Writes take some turns; gives what waits for all of them. */
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
const runs = new Set<BufferRun>()

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-crash-'))
  disk.folder = join(root, 'data', 'live')
  disk.fault = () => undefined
  disk.room = Number.POSITIVE_INFINITY
  disk.steps.length = 0
  disk.names.clear()
  disk.open.clear()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(async () => {
  disk.fault = () => undefined
  disk.hang = (go) => go()
  disk.writes = atOnce
  disk.room = Number.POSITIVE_INFINITY
  vi.useRealTimers()
  for (const run of runs) await run.end()
  runs.clear()
  rmSync(root, { recursive: true, force: true })
})

function start(folder = disk.folder): BufferRun {
  const run = new BufferRun(folder, 'block', 2 ** 40)
  runs.add(run)
  return run
}

async function end(run: BufferRun): Promise<void> {
  runs.delete(run)
  await run.end()
}

/** Lets so much time pass that a sync, a retry and a writing of the ledger are due, and what they do come to an end. */
async function pass(until: () => boolean): Promise<void> {
  const began = Date.now()
  while (!until()) {
    if (Date.now() - began > 60_000) throw new Error('Gave up waiting.')
    await vi.advanceTimersByTimeAsync(20)
    await turn()
  }
}

/** Writes a batch as a record of its own, which may have to wait for a sync: time passes quicker here than the disk is. */
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

/** What happened to each event, by the number of steps that were done then. */
class History {
  readonly given: number[] = []
  readonly written: number[] = []
  readonly heard: number[] = []
  readonly done: number[] = []
  /** Events whose source got any status. */
  readonly answered = new Set<number>()
  /** Whether writes take their time: what is written is known only now and then, and some of it is delivered before. */
  readonly slow: boolean
  #run = 0

  constructor(slow = false) {
    this.slow = slow
  }

  /** The run in force was killed: nobody hears of it any more, and what was on its way to the disk is gone, or may be. */
  isKilled(): void {
    this.#run++
    const unknown = this.written.indexOf(Number.POSITIVE_INFINITY)
    if (unknown >= 0) this.written.fill(Number.NaN, unknown)
  }

  batch(size: number, text = ''): Batch {
    const first = this.written.length
    const run = this.#run
    for (let n = first; n < first + size; n++) {
      this.given.push(steps.length)
      this.written.push(Number.POSITIVE_INFINITY)
    }
    const heard = (status: string) => {
      for (let n = first; n < first + size; n++) this.answered.add(n)
      for (let n = first; n < first + size && status === 'delivered' && run === this.#run; n++)
        this.heard[n] = steps.length
    }
    return numbered(first, size, heard, text)
  }

  /** Everything that was handed over so far is written. */
  isWritten(): void {
    for (let n = this.written.length - 1; this.written[n] === Number.POSITIVE_INFINITY; n--)
      this.written[n] = steps.length
  }

  isDone(batch: Batch): void {
    // After a kill it may come once more; what counts is the first time.
    for (const event of batch.events) this.done[(event as LogEvent).fields['n'] as number] ??= steps.length
    finalizeBatch(batch, 'delivered')
  }

  /** Events of which this was true after so many steps. */
  before(what: 'given' | 'written' | 'heard' | 'done', step: number): number[] {
    return this[what].flatMap((at, n) => (at <= step ? [n] : []))
  }
}

/** Makes the folder as it may be if all ends after so many steps; gives the numbers of its files too. */
function crashed(step: number, power: Random | undefined): { folder: string; names: Map<string, number> } {
  const names = new Map<string, number>()
  const files = new Map<number, Buffer>()
  const isKept = keptSteps(step, power)
  const isGone = power !== undefined && isFolderLost(step, power)
  for (let index = 0; index < step; index++) {
    const at = steps[index] as Step
    const kept = isKept[index]
    if (!kept || isGone) continue
    if (at.op === 'write' || at.op === 'truncate') {
      files.set(at.file, changed(files.get(at.file) ?? Buffer.alloc(0), at, kept === 'torn' ? power : undefined))
    } else if (at.op === 'create') {
      names.set(basename(at.name), at.file)
    } else if (at.op === 'unlink') {
      names.delete(basename(at.name))
    } else if (at.op === 'rename') {
      names.set(basename(at.to), names.get(basename(at.name)) ?? -1)
      names.delete(basename(at.name))
    }
  }
  const folder = mkdtempSync(join(root, 'crash-'))
  for (const [name, file] of names) writeFileSync(join(folder, name), files.get(file) ?? '')
  return { folder, names }
}

/** Whether the folder itself is gone, or one above it: one that no sync of its parent has covered may be. */
function isFolderLost(step: number, power: Random): boolean {
  const done = steps.slice(0, step)
  return done.some((made, index) => {
    if (made.op !== 'make_folder') return false
    const isSynced = (after: Step) => after.op === 'sync_parent' && after.path === dirname(made.path)
    return !done.slice(index).some(isSynced) && power.chance(0.5)
  })
}

/** Goes on as after a kill: what the run that was in force does from now on is no part of it any more. */
function kill(): void {
  const { folder, names } = crashed(steps.length, undefined)
  disk.folder = folder
  disk.open.clear()
  disk.names.clear()
  for (const [name, file] of names) disk.names.set(join(folder, name), file)
}

function changed(before: Buffer, step: Extract<Step, { op: 'write' | 'truncate' }>, torn: Random | undefined): Buffer {
  if (step.op === 'truncate') return Buffer.concat([before], step.size)
  const bytes = torn === undefined ? step.bytes : step.bytes.subarray(0, torn.below(step.bytes.length))
  const after = Buffer.concat([before], Math.max(before.length, step.at + bytes.length))
  bytes.copy(after, step.at)
  return after
}

/** Which steps are on the disk: all after a kill; those covered by a sync, and any others, after a loss of power. */
function keptSteps(step: number, power: Random | undefined): (boolean | 'torn')[] {
  if (power === undefined) return new Array(step).fill(true)
  const kept: (boolean | 'torn')[] = new Array(step).fill(false)
  let open: number[] = []
  let folder: number[] = []
  const chance = (indexes: number[]) => {
    for (const index of indexes) kept[index] = ([true, false, 'torn'] as const)[power.below(3)] ?? false
  }
  for (let index = 0; index < step; index++) {
    const at = steps[index] as Step
    if (at.op === 'sync' || at.op === 'failed') {
      // A failure may also be of data written meanwhile: the kernel reports it once.
      const until = at.op === 'failed' ? index : at.began
      const covered = (other: number) => other < until && (steps[other] as { file: number }).file === at.file
      if (at.op === 'failed') chance(open.filter(covered))
      else for (const other of open.filter(covered)) kept[other] = true
      open = open.filter((other) => !covered(other))
    } else if (at.op === 'sync_folder') {
      for (const other of folder) if (other < at.began) kept[other] = true
      folder = folder.filter((other) => other >= at.began)
    } else if (at.op === 'write' || at.op === 'truncate') open.push(index)
    else folder.push(index)
  }
  chance(open)
  // Names change in the order in which they were changed.
  for (const index of folder.slice(0, power.below(folder.length + 1))) kept[index] = true
  return kept
}

/** Opens what a crash has left, and compares what comes out with what went in. */
async function examine(history: History, step: number, power: Random | undefined, what: string): Promise<void> {
  disk.writes = atOnce
  const live = disk.folder
  const { folder } = crashed(step, power)
  const ledger = join(folder, ledgerName)
  // Nothing was ever lost before, so that events have their numbers as ids, if each was written before it was delivered.
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

/** A few runs in which much happens: segments fill, are given back and used again, syncs come and fail. */
async function live(history: History, chance: Random, failing: boolean): Promise<void> {
  const settled = history.slow ? slowly(chance) : undefined
  for (let round = 0; round < 3; round++) {
    const run = start()
    let failed = 0
    for (let turns = 0; turns < 25; turns++) {
      for (let batches = 1 + chance.below(4); batches > 0; batches--) {
        await write(run, history.batch(1 + chance.below(8), 'x'.repeat(chance.below(120))))
        if (settled === undefined) history.isWritten()
      }
      if (chance.below(3) === 0 && settled !== undefined) {
        await settled()
        if (run.value('buffer_errors_total', { error_type: 'writer_failed' }) === failed) history.isWritten()
        failed = run.value('buffer_errors_total', { error_type: 'writer_failed' })
      }
      for (let takes = chance.below(6); takes > 0; takes--) {
        const batch = run.buffer.take()
        if (batch !== undefined) history.isDone(batch)
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
      kill()
      history.isKilled()
    }
  }
}

test.each([
  { what: 'a disk that is well', slow: false, failing: false, seed: 11 },
  { what: 'a disk whose syncs fail now and then', slow: false, failing: true, seed: 12 },
  { what: 'a disk that takes its time', slow: true, failing: false, seed: 13 },
  { what: 'a disk that takes its time and fails now and then', slow: true, failing: true, seed: 14 },
])('no crash between two system calls loses what was safe: $what (seed $seed)', async ({ slow, failing, seed }) => {
  const history = new History(slow)
  const chance = new Random(seed)
  await live(history, chance, failing)
  vi.useRealTimers()
  expect(history.before('heard', steps.length).length).toBeGreaterThan(100)
  const all = Number(process.env['PENSTOCK_CRASHES'] ?? 30)
  for (let crash = 0; crash < all; crash++) {
    const step = all > steps.length ? crash % steps.length : chance.below(steps.length + 1)
    await examine(
      history,
      step,
      crash % 3 === 0 ? undefined : chance,
      `crash ${crash} after ${step} of ${steps.length}`,
    )
  }
})

const dataFiles = () => readdirSync(disk.folder).filter((name) => name.endsWith('.dat'))

/** Writes so many records, each in a turn of its own. */
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
  const rest = fill(run, 300, 60) // it is held
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
])('a segment that could not be $what is given back later, though nothing more comes', async ({ call }) => {
  const run = start()
  await fill(run, 0, 90)
  disk.fault = (name) => (name === call ? 'EIO' : undefined)
  await run.drain()
  await pass(() => run.value('buffer_errors_total', { error_type: 'writer_failed' }) > 0)
  disk.fault = () => undefined
  await pass(() => dataFiles().length <= 2)
})

test('a segment that becomes done while another is given back is not missed after a kill', async () => {
  const first = start()
  await fill(first, 0, 45)
  const given = () => steps.filter(({ op }) => op === 'unlink' || op === 'rename').length
  await first.drain()
  await pass(() => given() === 2)
  for (let step = 0; step <= steps.length; step++) {
    const { folder } = crashed(step, undefined)
    const live = disk.folder
    disk.folder = ''
    const run = start(folder)
    expect(run.lost, `after ${step} of ${steps.length}`).toBe(0)
    await end(run)
    disk.folder = live
  }
})

test('a record that a full disk took a part of promises nothing to the next start', async () => {
  const run = start()
  await fill(run, 0, 60)
  await run.drain()
  await pass(() => dataFiles().includes('buffer-spare.dat'))
  // The rest goes to a file that was used before: there a header is followed by as many bytes as it speaks of.
  for (let first = 300; dataFiles().includes('buffer-spare.dat'); first += 5) await fill(run, first, 1)
  const kept = run.value('buffer_events')
  disk.room = 70
  await fill(run, 900, 1)
  await pass(() => run.value('buffer_errors_total', { error_code: 'ENOSPC' }) > 0)
  disk.folder = crashed(steps.length, undefined).folder
  disk.room = Number.POSITIVE_INFINITY
  const next = start()
  expect(next.lost).toBe(0)
  expect(await next.drain()).toHaveLength(kept)
})

test.each([0, 1, 2])(
  'segment %i, which the disk does not give back at the start, does not keep the agent from it',
  async (number) => {
    await fill(start(), 0, 45)
    kill()
    expect(dataFiles()).toEqual(['buffer-data-0.dat', 'buffer-data-1.dat', 'buffer-data-2.dat'])
    disk.fault = (call, path) => (call === 'read' && path.endsWith(`data-${number}.dat`) ? 'EIO' : undefined)
    const second = start()
    disk.fault = () => undefined
    await fill(second, 225, 2)
    expect(await second.drain()).toEqual(Array.from({ length: 235 }, (_, n) => n))
    expect(second.lost).toBe(0)
  },
)

test('what a killed run has left unsynced is not called safe before it is', async () => {
  const first = start()
  await fill(first, 0, 3)
  kill()
  const second = start()
  const synced = () => Ledger.read(join(disk.folder, ledgerName)).state?.syncedId
  expect(synced()).toBe(0)
  expect(second.value('buffer_events')).toBe(15)
  await pass(() => synced() === 15)
  const syncs = steps.filter(({ op }) => op === 'sync')
  expect(syncs.length).toBeGreaterThan(0)
})

test('what a run could not sync is not called safe by the next', async () => {
  const first = start()
  disk.fault = (call) => (call === 'fdatasync' ? 'EIO' : undefined)
  await fill(first, 0, 3)
  await pass(() => first.value('buffer_errors_total', { error_code: 'EIO' }) > 0)
  kill()
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
  // The kernel took it for written: this sync says nothing of it.
  expect(ledger()).toMatchObject({ syncedId: 0, unsafe: true })
  await second.drain()
  await fill(second, 20, 1)
  await pass(() => ledger()?.syncedId === 25)
  expect(ledger()?.unsafe).toBe(false)
})

test('what is written while a sync fails for the last time is not called safe before it is written again', async () => {
  const history = new History()
  const run = start()
  const put = async () => {
    await write(run, history.batch(5, 'x'.repeat(100)))
    history.isWritten()
  }
  const deliver = async () => {
    for (let batch = run.buffer.take(); batch !== undefined; batch = run.buffer.take()) history.isDone(batch)
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
    await deliver() // else nothing more is taken in
  }
  await put()
  await pass(() => fail !== undefined)
  await deliver()
  await put()
  fail?.()
  await pass(() => history.answered.has(19))
  vi.useRealTimers()
  const failed = steps.findLastIndex(({ op }) => op === 'failed')
  const { file, began } = steps[failed] as Extract<Step, { op: 'failed' }>
  const meanwhile = steps.slice(began, failed).filter((step) => step.op === 'write' && step.file === file)
  expect(meanwhile).toHaveLength(1)
  expect(history.heard[19]).toBeDefined()
  for (let crash = 0; crash < 10; crash++) await examine(history, steps.length, new Random(crash), `crash ${crash}`)
})

test('a sync that hangs holds the writer within half a second, unless all is delivered', async () => {
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
  // All of it is delivered: a loss of power would cost nothing.
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

test('the numbers of the ledger begin again after the last', async () => {
  await fill(start(), 0, 3)
  kill()
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

test('a sink that has read all there is finds no damage at the end', async () => {
  const run = start()
  // More than waits in memory, and then nothing more.
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

test('a segment that is given back while the buffer is inspected is not missed', async () => {
  await fill(start(), 0, 45)
  const before = inspectBuffer(disk.folder)
  expect(before).toMatchObject({ in_use: true, lag_events: 225, missing_events: 0 })
  disk.fault = (call, path) => {
    if (call !== 'open' || !path.endsWith('data-0.dat')) return undefined
    disk.fault = () => undefined
    const { ledger, state } = Ledger.open(join(disk.folder, ledgerName))
    ledger.write({ ...(state as LedgerState), readId: before.segments[1]?.first_id ?? 0 })
    ledger.close()
    unlinkSync(path)
    return undefined
  }
  const found = inspectBuffer(disk.folder)
  expect(found.segments.map(({ file }) => file)).toEqual(['buffer-data-1.dat', 'buffer-data-2.dat'])
  expect(found).toMatchObject({ in_use: true, missing_events: 0 })
})
