// A measurement with the lines of the generator in pod logs: an agent on a CPU of its own, the writer and the receiver beside it.
// Start and steady part are apart: the start ends when the first line has been delivered.

import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Program } from '../program.ts'
import {
  cpuToFirstLine,
  kubeConfigText,
  peakRss,
  processCpu,
  type Receiver,
  sampleRss,
  startProgram,
  startReceiver,
  stopProcess,
} from './agent-process.ts'
import type { Delivery } from './delivered.ts'
import { type Cpus, moveSelf } from './pinning.ts'
import { type BenchPod, benchPods } from './pods.ts'
import type { Place } from './scenarios.ts'
import type { WriterPlan, WriterReport } from './writer.ts'

export type Load = Omit<WriterPlan, 'files'> & { readonly pods: number }

/** Makes what an agent needs below the folder, and says how it is started. */
export type AgentUnderLoad = (where: Place & { readonly folder: string }) => Program

/** What was measured, in seconds, MB and lines. */
export interface Measured {
  readonly startCpu: number
  /** CPU of the part after the start, the lines of that part, and how long it took. */
  readonly cpu: number
  readonly lines: number
  readonly seconds: number
  readonly linesPerSecond: number
  /** Resident memory at each moment, and its peak. */
  readonly rss: readonly number[]
  readonly peakRss: number
  readonly lost: number
  readonly doubled: number
  readonly delivery: Delivery
}

/** The agent has ended its work when nothing arrives for so long. */
const idleMs = 30_000
const sampleMs = 200

export async function measureLoad(load: Load, cpus: Cpus | undefined, agentOf: AgentUnderLoad): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-load-'))
  using _moved = moveSelf(cpus)
  await using receiver = await startReceiver(load.pods)
  const pods = benchPods(load.pods)
  const where = loadPlace(folder, receiver.url, pods)
  const writer = startWriter({ ...load, files: pods.map((pod) => join(where.logsDir, pod.folder, '0.log')) })
  let agent: ChildProcess | undefined
  try {
    const ready = await writer.report('ready')
    receiver.beginClock()
    agent = startProgram(agentOf({ ...where, folder }), cpus)
    const pid = agent.pid as number
    const startCpu = await cpuToFirstLine(receiver, agent)
    const rss = sampleRss(pid, sampleMs)
    const begun = load.mode === 'all' ? ready : await underLoad(receiver, writer, agent, ready)
    const { cpuBefore, cpu, written, ms } = { cpuBefore: startCpu, cpu: undefined, ...begun }
    const expected = total(written)
    await receiver.until(() => receiver.received() >= expected, idleMs, agent)
    const used = (cpu ?? processCpu(pid)) - cpuBefore
    rss.stop()
    const peak = peakRss(pid) ?? 0
    await stopProcess(agent) // what it sends as it ends counts, too
    const delivery = await receiver.delivery()
    const spanMs = delivery.lastAtMs - delivery.firstAtMs
    const later = delivery.received - load.pods - delivery.firstLines
    return {
      startCpu,
      cpu: used,
      lines: load.mode === 'all' ? later : expected - total(ready.written),
      seconds: (load.mode === 'all' ? spanMs : ms) / 1000,
      linesPerSecond: spanMs > 0 ? later / (spanMs / 1000) : 0,
      rss: rss.samples,
      peakRss: peak,
      lost: expected - delivery.received + delivery.damaged,
      doubled: delivery.doubled,
      delivery,
    }
  } finally {
    agent?.kill('SIGKILL')
    writer.child.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Writes at the rate of the plan once every file is known, and takes the CPU of exactly that time. */
async function underLoad(
  receiver: Receiver,
  writer: Writer,
  agent: ChildProcess,
  ready: WriterReport,
): Promise<{ cpuBefore: number; cpu: number; written: readonly number[]; ms: number }> {
  const first = total(ready.written)
  if (!(await receiver.until(() => receiver.received() >= first, idleMs, agent)))
    throw new Error(`Only ${receiver.received()} of the ${first} lines from before the start were delivered.`)
  const cpuBefore = processCpu(agent.pid as number)
  writer.child.send('go')
  const { written, ms } = await writer.report('done')
  return { cpuBefore, cpu: processCpu(agent.pid as number), written, ms }
}

interface Writer {
  readonly child: ChildProcess
  /** Waits for the report of that state. */
  report(state: WriterReport['state']): Promise<WriterReport>
}

function startWriter(plan: WriterPlan): Writer {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'writer.ts')
  const child = fork(script, [JSON.stringify(plan)], { execPath: process.execPath })
  return {
    child,
    report: (state) =>
      new Promise((resolve, reject) => {
        child.on('message', (report: WriterReport) => {
          if (report.state === state) resolve(report)
        })
        child.on('exit', (code) => reject(new Error(`The writer ended with exit code ${code}.`)))
      }),
  }
}

function loadPlace(folder: string, receiver: string, pods: readonly BenchPod[]): Place {
  const logsDir = join(folder, 'pods')
  for (const pod of pods) mkdirSync(join(logsDir, pod.folder), { recursive: true })
  mkdirSync(join(folder, 'data'))
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(kubeConfig, kubeConfigText(receiver))
  return { logsDir, file: '', kubeConfig, dataDir: join(folder, 'data'), receiver }
}

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)
