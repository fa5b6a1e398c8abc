// Measures the cost of a megabyte of unusual lines, compared with lines of one shape. An agent reads one kind of lines at a time. Both lanes
// read them, and must deliver the same events.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KubeApi } from '@penstock/agent/testing/kube-api'
import { processCpu } from '../process-figures.ts'
import { agentProgram, containerOf, peakRss, place, startProgram, stopProcess } from './agent-process.ts'
import { round } from './figures.ts'
import { OddLines, oddKinds, oneShape } from './odd-lines.ts'
import { type Cpus, moveSelf, separateCpus } from './pinning.ts'
import { httpSink, podLogs } from './scenarios.ts'
import { mergeProgram } from './steady.ts'

/** The bytes of a block of different lines, and how often it is written for the warm-up and for the measurement. */
const blockBytes = 4 << 20
const warmupBlocks = 4
const measuredBlocks = 12

/** Maximum cost of a kind on the object lane, per byte or per line, as a multiple of the cost of lines of one shape. */
const maxTimes = 4
/**
 * Maximum cost of lines that the byte lane leaves to the object lane, as a multiple of their cost there, because of the
 * attempt.
 */
const maxTimesObjects = 1.5
/** Maximum time for all blocks. */
const maxMs = 300_000

interface Run {
  readonly cpuMsPerMb: number
  readonly cpuUsPerEvent: number
  readonly rssMb: number
  readonly events: number
  /** Equal for equal events in any order. */
  readonly digest: string
}

/** Receives bodies of lines, and waits for those with a mark. */
class Digests implements AsyncDisposable {
  readonly #server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      response.writeHead(204).end()
      this.#take(Buffer.concat(pieces))
    })
  })
  #sum = 0n
  #marks = new Map<string, () => void>()
  events = 0

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get digest(): string {
    return this.#sum.toString(16)
  }

  /** Resolves when a line with the mark has arrived. */
  until(mark: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`Nothing with ${mark} came in ${maxMs / 1000} s.`)), maxMs)
      this.#marks.set(mark, () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  #take(body: Buffer): void {
    for (let from = 0; from < body.length; ) {
      const end = body.indexOf(10, from)
      const line = body.subarray(from, end < 0 ? body.length : end)
      from = end < 0 ? body.length : end + 1
      this.events++
      this.#sum = (this.#sum + createHash('sha1').update(line).digest().readBigUInt64LE()) & 0xffff_ffff_ffff_ffffn
      for (const [mark, found] of this.#marks) {
        if (!line.includes(mark)) continue
        this.#marks.delete(mark)
        found()
      }
    }
  }

  async [Symbol.asyncDispose]() {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

/** A line on the other stream, which endless lines do not delay. */
const markLine = (kind: string, mark: string) =>
  `2026-11-26T10:11:12.5Z ${oddKinds[kind]?.stream === 'stderr' ? 'stdout' : 'stderr'} F {"mark":"${mark}"}\n`

/** @param folder the same for both lanes, because events contain the path of their file */
async function run(
  folder: string,
  kind: string,
  block: Buffer,
  byteLane: boolean,
  cpus: Cpus | undefined,
): Promise<Run> {
  mkdirSync(folder)
  using _moved = moveSelf(cpus)
  await using api = await KubeApi.start()
  await using digests = new Digests()
  const where = place(folder, await digests.start(), '')
  api.set('namespaces', { metadata: { name: 'default' } })
  api.set('nodes', { metadata: { name: 'bench' } })
  api.set('pods', {
    metadata: { name: 'web-1', namespace: 'default', uid: 'uid-1', labels: { app: 'web' } },
    spec: { nodeName: 'bench', containers: [{ name: 'app', image: 'shop/web:1' }] },
  })
  writeFileSync(where.kubeConfig, api.kubeConfig())
  const log = join(containerOf(where), '0.log')
  mkdirSync(containerOf(where), { recursive: true })
  writeFileSync(log, markLine(kind, 'start'))
  const config = {
    data_dir: where.dataDir,
    remap: { byte_lane: byteLane },
    sources: { pods: podLogs(where) },
    transforms: { edit: { type: 'remap', inputs: ['pods'], source: mergeProgram } },
    sinks: { out: httpSink(where, '/', ['edit'], { request: { concurrency: 1 } }) },
  }
  const program = agentProgram(folder, config)
  const started = digests.until('"start"')
  const agent = startProgram({ ...program, output: join(folder, 'output') }, cpus)
  try {
    await started
    const pass = async (blocks: number, mark: string) => {
      const passed = digests.until(`"${mark}"`)
      for (let written = 0; written < blocks; written++) appendFileSync(log, block)
      appendFileSync(log, markLine(kind, mark))
      await passed
    }
    await pass(warmupBlocks, 'warm')
    const before = processCpu(agent.pid as number)
    const eventsBefore = digests.events
    await pass(measuredBlocks, 'done')
    const cpu = processCpu(agent.pid as number) - before
    const events = digests.events - eventsBefore
    const rssMb = peakRss(agent.pid as number) ?? 0
    await stopProcess(agent) // lines that it sends before it ends count, too
    return {
      cpuMsPerMb: (cpu * 1000) / ((measuredBlocks * block.length) / 1e6),
      cpuUsPerEvent: (cpu * 1e6) / events,
      rssMb,
      events: digests.events,
      digest: digests.digest,
    }
  } finally {
    agent.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onBothLanes(kind: string, cpus: Cpus | undefined): Promise<readonly [Run, Run]> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-kinds-'))
  try {
    const block = new OddLines(kind, 1).block(blockBytes)
    const on = (byteLane: boolean) => run(join(folder, 'run'), kind, block, byteLane, cpus)
    return [await on(true), await on(false)]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Figures of each kind on both lanes, compared with lines of one shape. */
export async function kinds(names: readonly string[] = Object.keys(oddKinds)): Promise<object[]> {
  const cpus = separateCpus()
  const one = await onBothLanes(oneShape, cpus)
  const figures: object[] = []
  for (const kind of names) {
    const runs = kind === oneShape ? one : await onBothLanes(kind, cpus)
    const [bytes, objects] = runs
    const times = runs.map(({ cpuMsPerMb }, lane) => cpuMsPerMb / (one[lane] as Run).cpuMsPerMb)
    // The cost of short lines depends on their number, that of long lines on their bytes.
    const [bytesAtLeast, objectsAtLeast] = runs.map(({ cpuUsPerEvent }, lane) =>
      Math.min(times[lane] as number, cpuUsPerEvent / (one[lane] as Run).cpuUsPerEvent),
    ) as [number, number]
    const isEqual = bytes.digest === objects.digest && bytes.events === objects.events
    const isCostly =
      objectsAtLeast > maxTimes || (bytesAtLeast > maxTimes && bytes.cpuMsPerMb > maxTimesObjects * objects.cpuMsPerMb)
    const problem = !isEqual
      ? `The lanes deliver different events: ${bytes.events} and ${objects.events}.`
      : isCostly
        ? `It costs too much: more than ${maxTimes} times what lines of one shape cost on its lane.`
        : undefined
    const figure = {
      scenario: 'kinds',
      kind,
      about: oddKinds[kind]?.about,
      events: bytes.events,
      cpu_ms_per_mb: round(bytes.cpuMsPerMb, 2),
      cpu_us_per_event: round(bytes.cpuUsPerEvent, 2),
      times_one_shape: round(times[0] as number, 2),
      rss_max_mb: round(bytes.rssMb, 1),
      object_lane_cpu_ms_per_mb: round(objects.cpuMsPerMb, 2),
      object_lane_cpu_us_per_event: round(objects.cpuUsPerEvent, 2),
      object_lane_times_one_shape: round(times[1] as number, 2),
      object_lane_rss_max_mb: round(objects.rssMb, 1),
      pinned: cpus !== undefined,
      ...(problem === undefined ? {} : { problem }),
    }
    console.error(
      `${kind.padEnd(18)} ${figure.cpu_ms_per_mb} ms/MB, ${figure.times_one_shape} times; objects ${figure.object_lane_cpu_ms_per_mb}, ${figure.object_lane_times_one_shape}; ${problem ?? ''}`,
    )
    figures.push(figure)
  }
  return figures
}
