// Writes files like real programs: steadily, in bursts, rarely, with rotations and truncations. The tests check that no line is lost or
// duplicated, that no line waits for long, and that the number of reads follows the rate. The clock is fake, so minutes of writing take a
// second; the file system and inotify are real.

import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { type ComponentEvents, type ErrorReport, loggingEvents } from '../telemetry/component-events.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { CountedFiles } from '../testing/counted-files.ts'
import { startSource, type TestSource } from '../testing/harness.ts'
import { SharedDiscovery } from './shared-discovery.ts'
import { compileDelimiter } from './slab.ts'
import { Tailer } from './tail.ts'
import type { TailOptions } from './tailed-file.ts'

/** Calls of the file system by `countedTailer`. */
const calls = new CountedFiles()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-patterns-'))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  calls.reset()
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true, force: true })
})

/** Lets inotify events and promises complete. */
async function turn(): Promise<void> {
  for (let pass = 0; pass < 3; pass++) await new Promise((resolve) => setImmediate(resolve))
}

async function advance(ms: number, each?: (at: number) => void): Promise<void> {
  for (let at = 0; at < ms; at += 10) {
    each?.(at)
    await turn()
    await vi.advanceTimersByTimeAsync(10)
  }
  await turn()
}

/** Advances the clock until a condition holds; returns the elapsed time. */
async function advanceUntil(holds: () => boolean, limitMs = 10_000): Promise<number> {
  let ms = 0
  while (!holds() && ms < limitMs) {
    await advance(10)
    ms += 10
  }
  return ms
}

/** A log written line by line, with one call each. */
class Log {
  readonly path: string
  #descriptor: number
  written: string[] = []
  #rotations = 0

  constructor(path: string) {
    this.path = path
    mkdirSync(dirname(path), { recursive: true })
    this.#descriptor = openSync(path, 'a')
  }

  write(lines: number, padding = ''): void {
    for (let line = 0; line < lines; line++) {
      const text = `${this.path.length} ${this.written.length} ${padding}`
      this.written.push(text)
      writeSync(this.#descriptor, `${text}\n`)
    }
  }

  writeHalf(): () => void {
    const text = `half ${this.written.length}`
    this.written.push(text)
    writeSync(this.#descriptor, text)
    return () => writeSync(this.#descriptor, '\n')
  }

  rotate(): void {
    this.#untilClockMoves()
    renameSync(this.path, `${this.path}.${++this.#rotations}`)
    const before = this.#descriptor
    this.#descriptor = openSync(this.path, 'a')
    closeSync(before)
  }

  truncate(): void {
    ftruncateSync(this.#descriptor, 0)
  }

  /** File system clocks tick: two changes of a folder within one tick have the same modification time. */
  #untilClockMoves(): void {
    const probe = join(tmpdir(), `penstock-clock-${process.pid}`)
    const before = statSync(dirname(this.path)).mtimeMs
    do writeFileSync(probe, '')
    while (statSync(probe).mtimeMs <= before)
    rmSync(probe)
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}

interface Reader extends AsyncDisposable {
  /** The lines that each tailer has passed on. */
  readonly received: readonly (readonly unknown[])[]
}

const messages = (source: TestSource) => source.sent.map((event) => (event as LogEvent).fields['message'])

async function fileSource(include: string): Promise<Reader> {
  const source = await startSource('file', { include: [include] })
  return {
    get received() {
      return [messages(source)]
    },
    async [Symbol.asyncDispose]() {
      vi.useRealTimers()
      await source[Symbol.asyncDispose]()
    },
  }
}

/** Several tailers, like those of a bundle's pipelines: a position for each, one watch for all. */
async function sharedTailers(root: string, count: number): Promise<Reader> {
  const discovery = new SharedDiscovery(root)
  const reader = tailers(root, count, { find: (rules, hooks) => discovery.open(rules, hooks), sweepMs: 60_000 })
  return {
    received: reader.received,
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]()
      discovery.close()
    },
  }
}

/** A tailer like that of the file source, which counts calls of the file system. */
const countedTailer = (root: string) => tailers(root, 1, { files: calls, sweepMs: 1000 })

function tailers(
  root: string,
  count: number,
  own: Pick<TailOptions, 'find' | 'files' | 'sweepMs'>,
  events: ComponentEvents = loggingEvents(silentLogger),
): Reader {
  const stopping = new AbortController()
  const received = Array.from({ length: count }, () => [] as unknown[])
  const dataDir = join(folder, 'data')
  const running = received.map((lines, index) => {
    const context = { events, logger: silentLogger, stopping: stopping.signal }
    const tailer = new Tailer<undefined>(
      {
        rules: { roots: [root], enter: () => true, accept: () => true },
        ...own,
        fingerprint: { strategy: 'checksum', lines: 1, maxLineBytes: 32_768 },
        delimiter: compileDelimiter(Buffer.from('\n')),
        maxLineBytes: 32_768,
        maxReadBytes: 2048,
        oldestFirst: 'folder',
        readFrom: 'beginning',
        ignoreOlderMs: undefined,
        ignoreCheckpoints: false,
        rotateWaitMs: undefined,
        stopAtEnd: false,
        removeAfterMs: undefined,
        lastLine: false,
        dataDir,
        componentId: `tailer-${index}`,
        fileTag: false,
      },
      {
        opened: () => undefined,
        lines(file, slab) {
          for (let line = 0; line < slab.count; line++) {
            lines.push(slab.text(slab.starts[line] as number, slab.ends[line] as number))
          }
          file.progress.handOn(slab.end).release(1, 'delivered')
          return undefined
        },
        closed: () => undefined,
      },
      context,
    )
    return tailer.run()
  })
  return {
    received,
    async [Symbol.asyncDispose]() {
      vi.useRealTimers()
      stopping.abort()
      await Promise.all(running)
    },
  }
}

/** A location for a log, and its readers. */
const readers = {
  'the file source': async () => {
    const log = new Log(join(folder, 'logs/app.log'))
    return { log, start: () => fileSource(join(folder, 'logs/*.log*')) }
  },
  'the file source behind a symbolic link': async () => {
    const log = new Log(join(folder, 'real/app.log'))
    mkdirSync(join(folder, 'links'))
    symlinkSync(log.path, join(folder, 'links/app.log'))
    return { log, start: () => fileSource(join(folder, 'links/*.log')) }
  },
  'three tailers with one discovery': async () => {
    const log = new Log(join(folder, 'pods/pod/0.log'))
    return { log, start: () => sharedTailers(join(folder, 'pods'), 3) }
  },
}

const isComplete = (reader: Reader, log: Log) => reader.received.every((lines) => lines.length >= log.written.length)

/** Ways to write to a log. */
const patterns: Record<string, (log: Log, complete: () => Promise<void>, isLink: boolean) => Promise<void>> = {
  'a line every 10 ms': (log) => advance(15_000, () => log.write(1)),
  '60 lines at once every second': (log) => advance(15_000, (at) => log.write(at % 1000 === 0 ? 60 : 0)),
  'an occasional line': (log) => advance(30_000, (at) => log.write(at % 7000 === 0 ? 1 : 0)),
  'silence, a burst, silence, a line': async (log) => {
    await advance(3000)
    log.write(500)
    await advance(20_000)
    log.write(1)
  },
  'three megabytes a second': (log) => advance(3000, () => log.write(30, 'x'.repeat(1000))),
  'lines that come in halves': async (log) => {
    for (let line = 0; line < 200; line++) {
      const end = log.writeHalf()
      await advance(line % 10 === 0 ? 600 : 20)
      end()
      await advance(20)
    }
  },
  'an occasional rotation while it is written to': (log) =>
    advance(15_000, (at) => {
      log.write(1)
      if (at % 3700 === 3600) log.rotate()
    }),
  // inotify does not report a new target of a link, and the old target has no other name here.
  'rotations one after the other': (log, _complete, isLink) =>
    advance(6000, (at) => {
      log.write(2)
      if (at % (isLink ? 1200 : 400) === 300) log.rotate()
    }),
  'a rotation after the last line': async (log) => {
    await advance(4000, () => log.write(1))
    log.rotate()
    await advance(2000)
    log.write(1)
  },
  'it is cut while it is written to': async (log, complete) => {
    for (let cut = 0; cut < 4; cut++) {
      await advance(3000, () => log.write(1))
      await complete()
      log.truncate()
    }
    await advance(1000, () => log.write(1))
  },
  'it is cut in silence, and filled at once beyond where it was read': async (log, complete) => {
    for (let cut = 0; cut < 3; cut++) {
      await advance(3000, () => log.write(1))
      await complete()
      await advance(700)
      log.truncate()
      log.write(1000)
      await complete()
    }
  },
}

describe.each(Object.entries(readers))('%s', (name, prepare) => {
  test.each(Object.entries(patterns))('gets every line once: %s', async (_pattern, write) => {
    const { log, start } = await prepare()
    log.write(1)
    await using reader = await start()
    const complete = async () => {
      await advanceUntil(() => isComplete(reader, log))
    }
    await complete()
    await write(log, complete, name.includes('link'))
    await complete()
    // Duplicate lines would arrive within this time.
    await advance(2000)
    for (const lines of reader.received) expect(lines.toSorted()).toEqual(log.written.toSorted())
    log.close()
  })
})

test('files of one folder each follow their own rate', async () => {
  const logs = [0, 1, 2, 3].map((index) => new Log(join(folder, `logs/${index}${'-'.repeat(index)}.log`)))
  for (const log of logs) log.write(1)
  await using reader = await fileSource(join(folder, 'logs/*.log'))
  await advance(10_000, (at) => {
    logs[0]?.write(30, 'x'.repeat(200))
    logs[1]?.write(1)
    logs[2]?.write(at % 1000 === 0 ? 20 : 0)
    logs[3]?.write(at === 7770 ? 1 : 0)
  })
  await advance(500)
  expect(reader.received[0]?.toSorted()).toEqual(logs.flatMap(({ written }) => written).toSorted())
  for (const log of logs) log.close()
})

test('short-lived files are read next to a busy one', async () => {
  const busy = new Log(join(folder, 'logs/app.log'))
  busy.write(1)
  await using reader = await fileSource(join(folder, 'logs/*.log'))
  const others: Log[] = []
  await advance(12_000, (at) => {
    busy.write(1)
    if (at % 400 === 200) {
      const log = new Log(join(folder, `logs/short${'-'.repeat(others.length)}.log`))
      log.write(20)
      log.close()
      others.push(log)
    }
    if (at % 400 === 350) rmSync(others.at(-1)?.path ?? '')
  })
  await advance(500)
  const written = [busy, ...others].flatMap((log) => log.written)
  expect(reader.received[0]?.toSorted()).toEqual(written.toSorted())
  busy.close()
})

describe('reads', () => {
  const start = async () => {
    const log = new Log(join(folder, 'logs/app.log'))
    log.write(1)
    const reader = countedTailer(join(folder, 'logs'))
    await advanceUntil(() => isComplete(reader, log))
    return { log, reader }
  }

  test.each([
    { pattern: 'a line every 10 ms', write: (at: number) => (at >= 0 ? 1 : 0) },
    { pattern: '100 lines at once every second', write: (at: number) => (at % 1000 === 0 ? 100 : 0) },
  ])('occur about four times a second, and no line waits longer than one interval: $pattern', async ({ write }) => {
    const { log, reader } = await start()
    await using _ = reader
    calls.reset()
    const seconds = 30
    const writtenAt: number[] = []
    let delivered = 0
    let longest = 0
    await advance(seconds * 1000, () => {
      const now = performance.now()
      for (const count = reader.received[0]?.length ?? 0; delivered < count - 1; delivered++) {
        longest = Math.max(longest, now - (writtenAt[delivered] as number))
      }
      const lines = write(Math.round(now / 10) * 10)
      log.write(lines)
      for (let line = 0; line < lines; line++) writtenAt.push(now)
    })
    // This includes the times when discovery watches again, to see whether the folder is still busy.
    expect(calls.reads / seconds).toBeGreaterThan(3)
    expect(calls.reads / seconds).toBeLessThan(6)
    // Forty checks a second for ten seconds after a new file, then four a second, plus one per beat.
    expect(calls.stats.get(dirname(log.path)) ?? 0).toBeLessThan(10 * 40 + seconds * 6)
    expect(delivered).toBeGreaterThan(seconds * 90)
    expect(longest).toBeLessThanOrEqual(270)
    log.close()
  })

  test('return large chunks if much is written', async () => {
    const { log, reader } = await start()
    await using _ = reader
    await advance(2000, () => log.write(20, 'x'.repeat(1000)))
    calls.reset()
    const before = log.written.length
    await advance(5000, () => log.write(20, 'x'.repeat(1000)))
    const bytes = (log.written.length - before) * 1000
    expect(calls.bytes).toBeGreaterThanOrEqual(bytes)
    expect(bytes / calls.reads).toBeGreaterThan(20_000)
    log.close()
  })

  test('happen immediately for a line after silence', async () => {
    const { log, reader } = await start()
    await using _ = reader
    await advance(3000, () => log.write(1))
    await advance(90_000)
    calls.reset()
    await advance(60_000)
    expect(calls.reads).toBeLessThan(20)
    log.write(1)
    expect(await advanceUntil(() => isComplete(reader, log))).toBeLessThanOrEqual(30)
    log.close()
  })

  test('of a new file after a rotation begin long before the next interval', async () => {
    const { log, reader } = await start()
    await using _ = reader
    await advance(3000, () => log.write(1))
    await advanceUntil(() => isComplete(reader, log))
    log.rotate()
    log.write(1)
    expect(await advanceUntil(() => isComplete(reader, log))).toBeLessThan(600)
    log.close()
  })
})

describe.each([
  { code: 'ENOSPC', limit: 'fs.inotify.max_user_watches' },
  { code: 'EMFILE', limit: 'fs.inotify.max_user_instances' },
])('if the system allows no further watches ($code)', ({ code, limit }) => {
  const sweepMs = 5000
  const start = async () => {
    const log = new Log(join(folder, 'logs/app.log'))
    log.write(1)
    calls.watchError = Object.assign(new Error(code), { code })
    const reports: ErrorReport[] = []
    const events = { ...loggingEvents(silentLogger), error: (report: ErrorReport) => void reports.push(report) }
    const reader = tailers(join(folder, 'logs'), 1, { files: calls, sweepMs }, events)
    await advanceUntil(() => isComplete(reader, log))
    return { log, reader, reports }
  }
  afterEach(() => {
    calls.watchError = undefined
  })

  test('files are polled, and each folder is reported once, with the limit', async () => {
    const { log, reader, reports } = await start()
    await using _ = reader
    await advance(12_000, () => log.write(1))
    expect(await advanceUntil(() => isComplete(reader, log))).toBeLessThanOrEqual(270)
    await advance(30_000)
    calls.reset()
    await advance(20_000)
    expect(calls.reads).toBeLessThan(40)
    log.write(1)
    expect(await advanceUntil(() => isComplete(reader, log))).toBeLessThanOrEqual(1050)
    const later = new Log(join(folder, 'logs/later/other.log'))
    later.write(3)
    const all = log.written.length + 3
    expect(await advanceUntil(() => reader.received[0]?.length === all)).toBeLessThanOrEqual(2100)
    later.close()
    log.close()
    const shown = reports.map(({ message, fields }) => ({
      message,
      directory: `${fields?.['directory']}`,
      limit: `${fields?.['limit']}`,
    }))
    const message = 'The limit for inotify watches is reached; checking the folder every second instead.'
    expect(shown).toEqual([
      { message, directory: join(folder, 'logs'), limit },
      { message, directory: join(folder, 'logs/later'), limit },
    ])
  })

  test('folders are watched as soon as the system allows it, and one attempt per check suffices', async () => {
    const { log, reader } = await start()
    await using _ = reader
    for (const name of ['a', 'b', 'c']) new Log(join(folder, `logs/${name}/app.log`)).close()
    await advance(2000)
    calls.reset()
    await advance(4 * sweepMs)
    expect(calls.watches).toBeLessThanOrEqual(5)
    calls.watchError = undefined
    await advance(2 * sweepMs)
    calls.reset()
    await advance(20_000)
    expect(calls.watches).toBe(0)
    log.write(1)
    expect(await advanceUntil(() => isComplete(reader, log))).toBeLessThanOrEqual(30)
    log.close()
  })
})
