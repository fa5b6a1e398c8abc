// `npx node --conditions=source e2e/faults/kills.ts [--kills N] [--seed N]`: kills an agent under load at random moments. Every other kill
// includes a power failure: a random part of the unsynced bytes is missing, torn or overwritten. Three paths through one agent:
//
// - `file`: a file through a disk buffer. Nothing may be lost.
// - `memory`: a file through a memory buffer, with checkpoints that follow delivery. Nothing may be lost.
// - `stdin`: standard input, which cannot be read again, through a disk buffer. Lost lines must have been written in
//   the 500 ms before a kill.
//
// The destination fails, hangs and is slow in turn. At the end, the agent delivers the rest, and the lines are compared.

import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Random } from '@penstock/agent/testing/random'
import { runScript } from '@penstock/agent/tools/script'
import { Destination, lineOf, type Mood } from './destination.ts'
import { eventually, impatientSink, onDisk, Victim } from './victim.ts'

const linesPerSecond = 4000
const padding = 'x'.repeat(240)
/** The promised time, and the additional time of a machine whose disk and CPU are busy. */
const windowMs = 500
const slackMs = 4000
/** The tolerated delay until an agent reads its input, on such a machine. */
const stallMs = 2000

export interface KillReport {
  readonly seed: number
  readonly kills: number
  readonly powerCuts: number
  readonly written: Record<string, number>
  readonly missing: Record<string, number>
  readonly doubled: Record<string, number>
  /** Number of `stdin` lines that were certainly on disk at the kill. */
  readonly synced: number
  /** Number of `stdin` lines that were done at the kill, and of those that arrived again. */
  readonly settled: number
  readonly settledAgain: number
  /** The maximum age at the kill of lines missing from `stdin`. */
  readonly oldestLossMs: number
  /** For missing lines that the agent had read: the maximum time before the last line that it read. */
  readonly maxLossMs: number
  /** Losses that the agent itself counted at its starts. */
  readonly countedByAgent: number
  readonly problems: readonly string[]
}

/** Appends numbered lines at a steady rate, to a file or to the agent's standard input. */
class Feed {
  written = 0
  /** The time of writing of each line; for standard input only. */
  readonly times: number[] = []
  readonly #put: (text: string) => boolean
  #since = 0
  #base = 0
  #running = false

  constructor(put: (text: string) => boolean) {
    this.#put = put
  }

  start(): void {
    this.#since = performance.now()
    this.#base = this.written
    this.#running = true
  }

  stop(): void {
    this.#running = false
  }

  turn(keepTimes: boolean): void {
    if (!this.#running) return
    const now = performance.now()
    const due = this.#base + ((now - this.#since) / 1000) * linesPerSecond
    let text = ''
    while (this.written < due && text.length < 500_000) {
      if (keepTimes) this.times[this.written] = now
      text += lineOf(this.written++, padding)
    }
    // The pipe is full. Lines that wait in this process would be lost without having been written.
    if (text !== '' && !this.#put(text)) this.#running = false
  }
}

/** Data about the kills for the evaluation. */
interface KillRecord {
  readonly killedAt: number[]
  /** For each kill, the line after the last one in the buffer. */
  readonly takenUntil: number[]
  /** Lines of stdin that were certainly on disk. */
  readonly synced: Set<number>
  /** Lines of stdin that were done, with their number of arrivals by then. */
  readonly settled: Map<number, number>
  powerCuts: number
  /** Number of events that the agent itself reported missing. */
  counted: number
}

export async function killAgain(kills: number, seed: number, maxMs = 2000): Promise<KillReport> {
  const chance = new Random(seed)
  await using destination = await new Destination().start()
  await using victim = new Victim()
  const files = { file: victim.path('file.log'), memory: victim.path('memory.log') }
  for (const file of Object.values(files)) writeFileSync(file, '')
  const source = (path: string) => ({ type: 'file', include: [path], glob_minimum_cooldown_ms: 200 })
  const config = {
    sources: { file: source(files.file), memory: source(files.memory), stdin: { type: 'stdin' } },
    sinks: {
      to_file: impatientSink('file', `${destination.url}/file`, onDisk()),
      to_memory: impatientSink('memory', `${destination.url}/memory`, { max_events: 2000 }),
      to_stdin: impatientSink('stdin', `${destination.url}/stdin`, onDisk()),
    },
  }
  const append = (path: string) => (text: string) => {
    appendFileSync(path, text)
    return true
  }
  const toFile = new Feed(append(files.file))
  const toMemory = new Feed(append(files.memory))
  const toStdin = new Feed((text) => victim.write(text))
  toFile.start()
  toMemory.start()
  const feeding = setInterval(() => {
    toFile.turn(false)
    toMemory.turn(false)
    toStdin.turn(true)
  }, 10)
  const record: KillRecord = {
    ...{ killedAt: [], takenUntil: [], synced: new Set(), settled: new Map() },
    ...{ powerCuts: 0, counted: 0 },
  }
  try {
    for (let kill = 0; kill < kills; kill++) {
      await victim.start(config)
      record.counted += await lossesOf(victim)
      const firstId = nextId(victim.buffer('to_stdin'))
      const firstLine = toStdin.written
      toStdin.start()
      for (let left = chance.between(50, maxMs); left > 0; ) {
        destination.mood = chance.pick<Mood>(['well', 'well', 'well', 'failing', 'hanging', 'slow'])
        const part = Math.min(left, chance.between(50, 600))
        await wait(part)
        left -= part
      }
      toStdin.stop()
      await victim.signal('SIGKILL')
      remember(record, victim.buffer('to_stdin'), firstId, firstLine, destination)
      destination.release()
      if (kill % 2 === 1) {
        for (const sink of ['to_file', 'to_stdin']) cutPower(victim.buffer(sink), chance)
        record.powerCuts++
      }
    }
    destination.mood = 'well'
    toFile.stop()
    toMemory.stop()
    await victim.start(config)
    record.counted += await lossesOf(victim)
    await arrivals(destination, { '/file': toFile.written, '/memory': toMemory.written })
    const empty = async () => (await victim.metric('buffer_events')) === 0
    await eventually('the buffers are empty', 30_000, empty).catch(() => {})
  } finally {
    clearInterval(feeding)
  }
  await victim.signal('SIGTERM')

  const written = { file: toFile.written, memory: toMemory.written, stdin: toStdin.written }
  return { seed, kills, ...judged(record, destination, written, toStdin.times) }
}

/** Records the content of the stdin buffer at the kill. */
function remember(
  record: KillRecord,
  buffer: string,
  firstId: number,
  firstLine: number,
  destination: Destination,
): void {
  record.killedAt.push(performance.now())
  record.takenUntil.push(firstLine + nextId(buffer) - firstId)
  // All events of this run are its lines in order, so this many of them were certainly on disk.
  const certain = syncedId(buffer) - firstId
  for (let line = firstLine; line < firstLine + certain; line++) record.synced.add(line)
  // This many were done, and must not arrive again.
  const done = doneId(buffer) - firstId
  for (let line = firstLine; line < firstLine + done; line++)
    record.settled.set(line, destination.times('/stdin', line))
}

/** Waits for all lines of these paths while lines arrive. Lines that are still missing are reported later. */
async function arrivals(destination: Destination, written: Readonly<Record<string, number>>): Promise<void> {
  const paths = Object.entries(written)
  const complete = () => paths.every(([path, lines]) => destination.missing(path, lines).length === 0)
  const seen = () => paths.reduce((sum, [path]) => sum + destination.arrived(path), 0)
  for (let [before, since] = [seen(), performance.now()]; !complete(); await wait(500)) {
    if (seen() > before) [before, since] = [seen(), performance.now()]
    if (performance.now() - since > 30_000) break
  }
}

/** @param times the time at which each line of stdin was written, in milliseconds of `performance.now()` */
function judged(
  { killedAt, takenUntil, synced, settled, powerCuts, counted }: KillRecord,
  destination: Destination,
  written: Readonly<Record<'file' | 'memory' | 'stdin', number>>,
  times: readonly number[],
): Omit<KillReport, 'seed' | 'kills'> {
  const missing = (name: 'file' | 'memory' | 'stdin') => destination.missing(`/${name}`, written[name])
  const problems: string[] = []
  for (const path of ['file', 'memory'] as const) {
    const [first] = missing(path)
    if (first !== undefined) problems.push(`${missing(path).length} lines of ${path} are lost; the first is ${first}.`)
  }
  const lost = missing('stdin')
  const broken = lost.filter((line) => synced.has(line))
  if (broken.length > 0) problems.push(`${broken.length} synced lines of stdin are lost; the first is ${broken[0]}.`)
  let oldest = 0
  let longest = 0
  for (const line of lost) {
    const at = times[line] as number
    const kill = killedAt.findIndex((time) => time >= at)
    oldest = Math.max(oldest, (killedAt[kill] ?? Number.POSITIVE_INFINITY) - at)
    // Bytes that were still in the pipe never reached the agent.
    const taken = takenUntil[kill] ?? 0
    if (line < taken) longest = Math.max(longest, (times[taken - 1] as number) - at)
  }
  if (oldest > windowMs + slackMs)
    problems.push(`A line of stdin that was written ${Math.round(oldest)} ms before the kill is lost.`)
  if (longest > windowMs + stallMs)
    problems.push(
      `Lines of stdin from a period of ${Math.round(longest)} ms are lost, which is more than the buffer may keep unsynced.`,
    )
  // A request with a late response is retried. This is rare, and allowed by at-least-once delivery.
  let again = 0
  for (const [line, before] of settled) if (destination.times('/stdin', line) > before) again++
  if (again > settled.size / 50)
    problems.push(`${again} of ${settled.size} lines of stdin arrived again after they were done.`)
  const doubled = (name: string) => destination.doubled(`/${name}`)
  return {
    powerCuts,
    written,
    missing: { file: missing('file').length, memory: missing('memory').length, stdin: lost.length },
    doubled: { file: doubled('file'), memory: doubled('memory'), stdin: doubled('stdin') },
    synced: synced.size,
    settled: settled.size,
    settledAgain: again,
    oldestLossMs: Math.round(oldest),
    maxLossMs: Math.round(longest),
    countedByAgent: counted,
    problems,
  }
}

/** Number of events that the agent reported missing from its buffers when it started. */
function lossesOf(victim: Victim): Promise<number> {
  return victim.metric('buffer_discarded_events_total', 'intentional="false"')
}

/** Changes a buffer as a power failure may do: unsynced data exists, is missing, torn or overwritten. */
export function cutPower(folder: string, chance: Random): void {
  if (!existsSync(join(folder, 'buffer.db'))) return
  const [segment, offset] = [syncedSegment(folder), syncedOffset(folder)]
  for (const name of readdirSync(folder)) {
    const number = /^buffer-data-(\d+)\.dat$/.exec(name)?.[1]
    if (number === undefined || Number(number) < segment) continue
    const path = join(folder, name)
    const safe = Number(number) === segment ? offset : 0
    const { size } = statSync(path)
    if (size <= safe) continue
    const cut = chance.between(safe, size)
    switch (chance.between(0, 3)) {
      case 0:
        break
      case 1:
        truncateSync(path, cut)
        break
      case 2:
        overwrite(path, cut, Buffer.alloc(size - cut))
        break
      case 3:
        if (safe === 0 && chance.between(0, 1) === 0) unlinkSync(path)
        else
          overwrite(
            path,
            cut,
            Buffer.from(Array.from({ length: Math.min(size - cut, 5000) }, () => chance.between(0, 255))),
          )
    }
  }
}

function overwrite(path: string, offset: number, bytes: Buffer): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, offset)
  closeSync(file)
}

/** The valid slot of a ledger, which is the one with the higher number. agent/src/buffers/disk/FORMAT.md describes the layout. */
function slotOf(folder: string): Buffer {
  const ledger = readFileSync(join(folder, 'buffer.db'))
  const second = ledger.length >= 128 && ledger.readUInt32LE(64 + 12) > ledger.readUInt32LE(12)
  const slot = ledger.subarray(second || ledger.readUInt32LE(0) === 0 ? 64 : 0)
  return slot
}
export const nextId = (folder: string) => Number(slotOf(folder).readBigUInt64LE(40))
export const syncedId = (folder: string) => Number(slotOf(folder).readBigUInt64LE(48))
const doneId = (folder: string) => Number(slotOf(folder).readBigUInt64LE(24))
const syncedSegment = (folder: string) => slotOf(folder).readUInt32LE(32)
export const syncedOffset = (folder: string) => slotOf(folder).readUInt32LE(36)

if (import.meta.main) {
  await runScript({
    call: 'npx node --conditions=source e2e/faults/kills.ts',
    about:
      'Kills an agent under load, with power failures, and compares input and output. The exit code is 1 if lines are missing.',
    flags: {
      kills: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'Number of kills (200).' },
      seed: { type: 'string', number: 'whole', value: 'N', help: 'Seed of the faults; random by default.' },
    },
    async run({ flags: { kills = 200, seed = Date.now() % 1_000_000 } }) {
      console.log(`seed ${seed}`)
      const report = await killAgain(kills, seed)
      console.log(JSON.stringify(report, undefined, 2))
      return report.problems.length > 0 ? 1 : 0
    },
  })
}
