// `npx node --conditions=source e2e/faults/kills.ts [--kills N] [--seed N]`: kills an agent under load at random moments. Every other
// kill comes with a power cut: a random part of the bytes that were not synced is then missing, torn or overwritten. Three ways through
// one agent:
//
// - `file`: a file through a disk buffer. Nothing may be lost.
// - `memory`: a file through a memory buffer, whose positions follow delivery. Nothing may be lost.
// - `stdin`: standard input, which cannot send again, through a disk buffer. Lost lines must have been written in
//   the 500 ms before a kill.
//
// The destination in turn fails, hangs and is slow. At the end the agent delivers the rest, and the lines are compared.

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
/** The promised time, and the time that a machine adds while others use its disk and processor. */
const windowMs = 500
const slackMs = 4000
/** How late an agent may be to read what was written to it, on such a machine. */
const stallMs = 2000

export interface KillReport {
  readonly seed: number
  readonly kills: number
  readonly powerCuts: number
  readonly written: Record<string, number>
  readonly missing: Record<string, number>
  readonly doubled: Record<string, number>
  /** Lines of `stdin` that were certain to be on the disk when the agent was killed. */
  readonly synced: number
  /** Lines of `stdin` that were done when the agent was killed, and how many of them came again. */
  readonly settled: number
  readonly settledAgain: number
  /** Of the lines missing from `stdin`: how old they were at most when the agent was killed. */
  readonly oldestLossMs: number
  /** Of those that the agent had taken in: how long before the last one that it took in. */
  readonly maxLossMs: number
  /** Losses that the agent itself counted after its starts. */
  readonly countedByAgent: number
  readonly problems: readonly string[]
}

/** Appends numbered lines at a steady rate, to a file or to the agent's standard input. */
class Feed {
  written = 0
  /** When each line was written; of standard input only. */
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
    // A full pipe: what waits in this process would be lost without ever having been written.
    if (text !== '' && !this.#put(text)) this.#running = false
  }
}

/** Facts about the kills, for the judgement. */
interface KillRecord {
  readonly killedAt: number[]
  /** For each kill: the line behind the last that was in the buffer. */
  readonly takenUntil: number[]
  /** Lines of stdin that were certain to be on the disk. */
  readonly synced: Set<number>
  /** Lines of stdin that were done, with how often each had come by then. */
  readonly settled: Map<number, number>
  powerCuts: number
  /** Events that the agent itself found missing. */
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

/** Notes what the buffer of stdin held when its agent was killed. */
function remember(
  record: KillRecord,
  buffer: string,
  firstId: number,
  firstLine: number,
  destination: Destination,
): void {
  record.killedAt.push(performance.now())
  record.takenUntil.push(firstLine + nextId(buffer) - firstId)
  // Every event of this run is a line of it, in order: so many of them were certain to be on the disk.
  const certain = syncedId(buffer) - firstId
  for (let line = firstLine; line < firstLine + certain; line++) record.synced.add(line)
  // So many were done: they must not come again.
  const done = doneId(buffer) - firstId
  for (let line = firstLine; line < firstLine + done; line++)
    record.settled.set(line, destination.times('/stdin', line))
}

/** Waits for all lines of these paths, as long as something arrives; lines still missing then are reported later. */
async function arrivals(destination: Destination, written: Readonly<Record<string, number>>): Promise<void> {
  const paths = Object.entries(written)
  const complete = () => paths.every(([path, lines]) => destination.missing(path, lines).length === 0)
  const seen = () => paths.reduce((sum, [path]) => sum + destination.arrived(path), 0)
  for (let [before, since] = [seen(), performance.now()]; !complete(); await wait(500)) {
    if (seen() > before) [before, since] = [seen(), performance.now()]
    if (performance.now() - since > 30_000) break
  }
}

/** @param times when each line of stdin was written, in milliseconds of `performance.now()` */
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
    if (first !== undefined) problems.push(`${missing(path).length} lines of ${path} are lost, the first is ${first}.`)
  }
  const lost = missing('stdin')
  const broken = lost.filter((line) => synced.has(line))
  if (broken.length > 0)
    problems.push(`${broken.length} lines of stdin are lost that were synced, the first is ${broken[0]}.`)
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
    problems.push(`A line of stdin is lost that was written ${Math.round(oldest)} ms before the kill.`)
  if (longest > windowMs + stallMs)
    problems.push(`Lines of stdin are lost of ${Math.round(longest)} ms: more than the buffer takes in unsynced.`)
  // A request that was answered too late is sent again: that, too, is at-least-once, and rare.
  let again = 0
  for (const [line, before] of settled) if (destination.times('/stdin', line) > before) again++
  if (again > settled.size / 50)
    problems.push(`${again} of ${settled.size} lines of stdin came again after they were done.`)
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

/** Events that the agent found missing from its buffers when it started. */
function lossesOf(victim: Victim): Promise<number> {
  return victim.metric('buffer_discarded_events_total', 'intentional="false"')
}

/** Does to a buffer what a loss of power may do: whatever was not synced is there, gone, torn or something else. */
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

/** The slot of a ledger that counts: that with the higher number. agent/src/buffers/disk/FORMAT.md describes the layout. */
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
      'Kills an agent under load, with power cuts, and compares what went in with what came out. Exit code 1 if lines are missing.',
    flags: {
      kills: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'How many (200).' },
      seed: { type: 'string', number: 'whole', value: 'N', help: 'Seed of the faults; a random one by default.' },
    },
    async run({ flags: { kills = 200, seed = Date.now() % 1_000_000 } }) {
      console.log(`seed ${seed}`)
      const report = await killAgain(kills, seed)
      console.log(JSON.stringify(report, undefined, 2))
      return report.problems.length > 0 ? 1 : 0
    },
  })
}
