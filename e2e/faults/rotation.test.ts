// Pod logs that grow at 5 MB/s and are rotated like the kubelet does: renamed, the previous one compressed, the oldest removed. Tests count all
// lines that the agent writes: none is lost or duplicated; after SIGKILL, only lines delivered since the last checkpoint arrive twice.

import {
  appendFileSync,
  createReadStream,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { startAgent } from '../agent.ts'
import { place, startReceiver } from '../bench/agent-process.ts'
import { until } from '../command.ts'

const bytesPerSecond = 5_000_000
const padding = 'x'.repeat(250)

/** Writes numbered lines into one container's log until it is stopped. */
class Writer {
  readonly #path: string
  readonly #rotateEveryMs: number
  readonly #plainFiles: number
  #stopped = false
  readonly #rotated: string[] = []
  /** First line of each file. */
  readonly firstLines: number[] = [0]
  written = 0
  rotations = 0
  /** Initially off, because files compressed before the agent starts are not read. */
  rotating = false
  readonly running: Promise<void>

  /**
   * @param plainFiles rotated files that are not yet compressed. Nothing reads a file that was compressed while the agent was away,
   *   and the progress of an agent that is killed repeatedly depends on the machine, so no file is compressed there
   */
  constructor(path: string, rotateEveryMs: number, plainFiles: number) {
    this.#plainFiles = plainFiles
    this.#path = path
    this.#rotateEveryMs = rotateEveryMs
    writeFileSync(path, '')
    this.running = this.#run()
  }

  async #run(): Promise<void> {
    const started = performance.now()
    let lastRotation = started
    let bytes = 0
    while (!this.#stopped) {
      const now = performance.now()
      let text = ''
      for (const due = ((now - started) / 1000) * bytesPerSecond; bytes < due && text.length < 2_000_000; ) {
        const line = `2026-01-01T00:00:00.000000000Z stdout F ${padding}<${String(this.written++).padStart(9, '0')}>\n`
        text += line
        bytes += line.length
      }
      appendFileSync(this.#path, text)
      if (this.rotating && now - lastRotation > this.#rotateEveryMs) {
        lastRotation = now
        this.#rotate()
      }
      await wait(20)
    }
  }

  // The kubelet keeps the last rotated file and compresses the one before.
  #rotate(): void {
    const name = `${this.#path}.20260101-${String(this.rotations++).padStart(6, '0')}`
    renameSync(this.#path, name)
    writeFileSync(this.#path, '')
    this.firstLines.push(this.written)
    this.#rotated.push(name)
    const previous = this.#rotated.length > this.#plainFiles ? this.#rotated.shift() : undefined
    if (previous === undefined) return
    writeFileSync(`${previous}.tmp`, gzipSync(readFileSync(previous), { level: 1 }))
    renameSync(`${previous}.tmp`, `${previous}.gz`)
    rmSync(previous)
    for (const old of readdirSync(join(previous, '..'))
      .filter((file) => file.endsWith('.gz'))
      .sort()
      .slice(0, -3)) {
      rmSync(join(previous, '..', old))
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/** Number of arrivals of each line. */
async function arrivals(path: string, count: number): Promise<Uint8Array> {
  const seen = new Uint8Array(count)
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'latin1', highWaterMark: 1_048_576 })) {
    const text = rest + chunk
    // A kill may tear lines, so count numbers anywhere.
    for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at + 1)) {
      if (text[at + 10] !== '>') continue
      const line = Number(text.slice(at + 1, at + 10))
      seen[line] = (seen[line] ?? 0) + 1
    }
    rest = text.slice(-10) // a number and its brackets are eleven characters
  }
  return seen
}

/** The missing lines, as ranges. */
function missing(seen: Uint8Array): string[] {
  const ranges: string[] = []
  let from = -1
  for (let line = 0; line <= seen.length; line++) {
    if (seen[line] === 0) from = from < 0 ? line : from
    else if (from >= 0) {
      ranges.push(`${from} to ${line - 1}`)
      from = -1
    }
  }
  return ranges
}

function doubled(seen: Uint8Array): number {
  let lines = 0
  for (const times of seen) if (times > 1) lines += times - 1
  return lines
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0
}

async function setup() {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-rotation-'))
  const receiver = await startReceiver()
  const where = place(folder, receiver.url, '')
  const output = join(folder, 'out.log')
  return {
    output,
    log: join(where.logsDir, 'default_web-1_uid-1/app/0.log'),
    config: {
      data_dir: where.dataDir,
      sources: {
        pods: {
          type: 'orchestrator_logs',
          logs_dir: where.logsDir,
          kube_config_file: where.kubeConfig,
          self_node_name: 'bench',
        },
      },
      sinks: { out: { type: 'file', inputs: ['pods'], path: output, encoding: { codec: 'text' } } },
    },
    async [Symbol.asyncDispose]() {
      await receiver[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits for all lines while lines arrive. */
async function untilComplete(output: string, count: number): Promise<Uint8Array> {
  let seen: Uint8Array = new Uint8Array(count)
  let size = -1
  let looked = false
  // A check reads all of the output, so check only when it has not grown for a moment.
  for (let quietSince = Date.now(); Date.now() < quietSince + 60_000; await wait(500)) {
    const now = sizeOf(output)
    if (now !== size) {
      size = now
      quietSince = Date.now()
      looked = false
    } else if (!looked && Date.now() > quietSince + 1000) {
      looked = true
      seen = await arrivals(output, count)
      if (missing(seen).length === 0) break
    }
  }
  return seen // the assertion shows missing lines
}

test('fifty rotations lose and duplicate nothing', async () => {
  await using run = await setup()
  await using agent = await startAgent(run.config)
  await using writer = new Writer(run.log, 400, 1)
  await until('the first lines', 30_000, async () => sizeOf(run.output) > 0)
  writer.rotating = true
  while (writer.rotations < 50) await wait(100)
  await writer.stop()
  const seen = await untilComplete(run.output, writer.written)
  expect(await agent.stop(), agent.output()).toBe(0)
  expect(missing(seen), `${agent.output()}\nfiles began at ${writer.firstLines}`).toEqual([])
  expect(doubled(await arrivals(run.output, writer.written))).toBe(0)
})

test('twenty kills lose nothing, and duplicate only lines delivered since the last checkpoint', async () => {
  await using run = await setup()
  await using writer = new Writer(run.log, 6000, Number.POSITIVE_INFINITY)
  const kills = 20
  for (let kill = 0; kill < kills; kill++) {
    await using agent = await startAgent(run.config)
    const before = sizeOf(run.output)
    await until('the agent to read on', 30_000, async () => sizeOf(run.output) > before).catch((error: unknown) => {
      throw new Error(agent.output(), { cause: error })
    })
    writer.rotating = true
    await wait(Math.random() * 2000)
    await agent.stop('SIGKILL')
  }
  await using agent = await startAgent(run.config)
  await writer.stop()
  const seen = await untilComplete(run.output, writer.written)
  expect(await agent.stop(), agent.output()).toBe(0)
  expect(missing(seen), `${agent.output()}\nfiles began at ${writer.firstLines}`).toEqual([])
  // A checkpoint is written half a second after a change, and a backlog is delivered faster than it is written.
  const linesPerSecond = bytesPerSecond / (padding.length + 52)
  expect(doubled(seen)).toBeLessThan(kills * linesPerSecond * 2)
})
