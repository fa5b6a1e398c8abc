// Writes pod logs like a container runtime, with one `write` per CRI line, and renames files at 10 MiB like the kubelet. The process is
// started with a `WriterPlan`, reports when each file has its first line, waits for a message, and writes the rest.

import { closeSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Random } from '@penstock/agent/testing/random'
import { type AppLine, appLines, type LineKind, lineOf, Stamp } from './app-lines.ts'

/**
 * `smooth`: one line after another, each to the next file. `burst`: each file in turn gets the lines of one second at once. `all`: all lines
 * before the report. `silence`: one line per file, and the next after 15 to 30 s.
 */
export type WriterMode = 'smooth' | 'burst' | 'all' | 'silence'

export interface WriterPlan {
  readonly files: readonly string[]
  readonly kind: LineKind
  readonly mode: WriterMode
  /** Lines per second of all files together. */
  readonly rate: number
  /** Duration of writing, and the part of it after which it reports once. */
  readonly seconds: number
  readonly warmupSeconds: number
  /** Number of lines in mode `all`. */
  readonly count: number
  readonly seed: number
}

export interface WriterReport {
  readonly state: 'ready' | 'warm' | 'done'
  /** Number of lines per file, and the duration of writing in milliseconds. */
  readonly written: readonly number[]
  readonly ms: number
}

const rotateBytes = 10 * 1024 * 1024
const preparedLines = 20_000
const secondsOfSilence = 15

class PodLog {
  readonly #path: string
  readonly #index: number
  readonly #stamp: Stamp
  #file: number
  #bytes = 0
  #rotations = 0
  written = 0

  constructor(path: string, index: number, stamp: Stamp) {
    this.#path = path
    this.#index = index
    this.#stamp = stamp
    mkdirSync(dirname(path), { recursive: true })
    this.#file = openSync(path, 'a')
  }

  write(line: AppLine): void {
    this.#stamp.write(line, this.#index, this.written++)
    for (const { bytes } of line.parts) {
      writeSync(this.#file, bytes)
      this.#bytes += bytes.length
    }
    if (this.#bytes >= rotateBytes) this.#rotate()
  }

  /** Writes many lines at once. */
  fill(line: (number: number) => AppLine, count: number): void {
    let texts: Buffer[] = []
    for (let index = 0; index < count; index++) {
      const { parts } = line(this.written)
      this.#stamp.tick()
      this.#stamp.write({ parts }, this.#index, this.written++)
      for (const { bytes } of parts) texts.push(Buffer.from(bytes))
      if (texts.length < 1000 && index < count - 1) continue
      writeSync(this.#file, Buffer.concat(texts))
      texts = []
    }
  }

  /** Keeps the last renamed file for agents that still read it. */
  #rotate(): void {
    closeSync(this.#file)
    renameSync(this.#path, this.#rotated(this.#rotations))
    if (this.#rotations > 0) rmSync(this.#rotated(this.#rotations - 1))
    this.#rotations++
    this.#file = openSync(this.#path, 'a')
    this.#bytes = 0
  }

  #rotated(rotation: number): string {
    const second = new Date(Date.UTC(2026, 0, 1, 0, 0, rotation)).toISOString().slice(0, 19)
    return `${this.#path}.${second.replaceAll(/[-:]/g, '').replace('T', '-')}`
  }
}

async function main(): Promise<void> {
  const { files, kind, mode, rate, seconds, warmupSeconds, count, seed } = JSON.parse(
    process.argv[2] as string,
  ) as WriterPlan
  const lines = appLines(kind, preparedLines, seed)
  const stamp = new Stamp(seed)
  const logs = files.map((path, index) => new PodLog(path, index, stamp))
  // Shapes rotate across all files.
  let rotation = 0
  const next =
    kind === 'shapes'
      ? () => lines[rotation++ % lines.length] as AppLine
      : (file: number, number: number) => lineOf(lines, file, number)
  const report = (state: WriterReport['state'], ms: number) =>
    process.send?.({ state, written: logs.map((log) => log.written), ms } satisfies WriterReport)
  const writeTo = (file: number) => {
    const log = logs[file] as PodLog
    log.write(next(file, log.written))
  }

  stamp.tick()
  for (let file = 0; file < logs.length; file++) writeTo(file)
  if (mode === 'all') {
    for (const [file, log] of logs.entries()) {
      const ends = Math.floor(((file + 1) * count) / logs.length) - Math.floor((file * count) / logs.length)
      log.fill((number) => next(file, number), ends)
    }
  }
  report('ready', 0)
  await new Promise((resolve) => process.once('message', resolve))

  const started = performance.now()
  const since = () => performance.now() - started
  if (mode === 'silence') report('warm', 0)
  if (mode === 'silence') await afterSilence(logs.length, seconds, seed, since, stamp, writeTo)
  if (mode === 'smooth' || mode === 'burst') {
    const linesAtOnce = mode === 'smooth' ? 1 : Math.max(1, Math.round(rate / logs.length))
    const turns = Math.floor((rate * seconds) / linesAtOnce)
    const warmupTurns = Math.floor((rate * warmupSeconds) / linesAtOnce)
    for (let turn = 0; turn < turns; ) {
      const due = Math.min(turns, Math.ceil((since() / 1000) * (rate / linesAtOnce)))
      for (; turn < due; turn++) {
        if (turn === warmupTurns) report('warm', since())
        stamp.tick()
        for (let index = 0; index < linesAtOnce; index++) writeTo(turn % logs.length)
      }
      if (turn < turns) await wait(1)
    }
  }
  report('done', since())
  process.disconnect?.()
}

async function afterSilence(
  files: number,
  seconds: number,
  seed: number,
  since: () => number,
  stamp: Stamp,
  writeTo: (file: number) => void,
): Promise<void> {
  const random = new Random(seed)
  const silenceMs = () => (secondsOfSilence + random.next() * secondsOfSilence) * 1000
  const due = Array.from({ length: files }, silenceMs)
  while (since() < seconds * 1000) {
    for (let file = 0; file < files; file++) {
      if (since() < (due[file] as number)) continue
      stamp.tick()
      writeTo(file)
      due[file] = since() + silenceMs()
    }
    await wait(1)
  }
}

process.once('disconnect', () => process.exit())
await main()
