// A measurement with the generator's lines in pod logs: an agent on a dedicated CPU, with the writer and the receiver on others. It separates
// the start, which ends with the first delivered line, from the steady part.

import { type ChildProcess, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@penstock/agent/testing/free-port'
import { processCpu } from '../process-figures.ts'
import {
  type BenchProgram,
  cpuToFirstLine,
  kubeConfigText,
  metricsOf,
  peakRss,
  type Receiver,
  sampleRss,
  startProgram,
  startReceiver,
  stopProcess,
} from './agent-process.ts'
import { arrivalRate, type Delivery } from './delivered.ts'
import { type Cpus, moveSelf } from './pinning.ts'
import { type BenchPod, benchPods } from './pods.ts'
import type { Place } from './scenarios.ts'
import type { WriterPlan, WriterReport } from './writer.ts'

export type Load = Omit<WriterPlan, 'files' | 'warmupSeconds'> & { readonly pods: number }

export interface LoadPlace extends Place {
  /** The folder for all files of the run, like `/var/log` on a node. */
  readonly folder: string
  /** Links to the newest log of each container, like those of the kubelet. */
  readonly containersDir: string
  /** For the agent's own API. */
  readonly apiAddress: string
}

/** Creates the agent's files below the folder, and returns the command that starts it. */
export type AgentUnderLoad = (where: LoadPlace) => BenchProgram

/** The measured values, in seconds, MB and lines. */
export interface Measured {
  readonly startCpu: number
  /** CPU time from then until the steady part begins. */
  readonly warmupCpu: number
  /** CPU time of the steady part until all lines are delivered, and the part of it during writing. */
  readonly cpu: number
  readonly cpuMeanwhile: number
  /** Number of lines of the steady part, and the duration of writing them; for existing lines, the duration of delivery. */
  readonly lines: number
  readonly seconds: number
  readonly linesPerSecond: number
  /** Samples of resident memory, and its peak. */
  readonly rss: readonly number[]
  readonly peakRss: number
  readonly lost: number
  readonly doubled: number
  readonly delivery: Delivery
  /** The share of the events of programs that stayed bytes; undefined if the agent has no such metric. */
  readonly byteLaneShare: number | undefined
}

/** The agent is considered done when nothing arrives for this long. */
const idleMs = 30_000
const sampleMs = 200
/** The engine compiles hot code in the first seconds. Short runs warm up for only a part of their duration. */
const warmupSeconds = (seconds: number) => Math.min(5, seconds / 4)
/** The last body waits for more lines, so it does not count for the rate. */
const fullShare = 0.95

/** Pods whose lines are not measured, and their writer, which runs from the start of the agent. */
export interface Neighbours {
  readonly namespaces: readonly string[]
  write(where: LoadPlace): Disposable
}

export async function measureLoad(
  load: Load,
  cpus: Cpus | undefined,
  agentOf: AgentUnderLoad,
  neighbours?: Neighbours,
): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-load-'))
  const removeFolder = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', removeFolder)
  using _moved = moveSelf(cpus)
  await using receiver = await startReceiver(load.pods, neighbours?.namespaces)
  const pods = benchPods(load.pods)
  const where = loadPlace(folder, receiver.url, pods, `127.0.0.1:${await freePort()}`)
  const warmup = load.mode === 'silence' ? 0 : warmupSeconds(load.seconds)
  const files = pods.map((pod) => join(where.logsDir, pod.folder, '0.log'))
  const writer = startWriter({ ...load, seconds: load.seconds + warmup, warmupSeconds: warmup, files })
  let agent: ChildProcess | undefined
  let output: string | undefined
  try {
    const ready = await writer.report('ready')
    const program = agentOf(where)
    output = program.output
    receiver.beginClock()
    agent = startProgram(program, cpus)
    using _load = neighbours?.write(where)
    const pid = agent.pid as number
    const startCpu = await cpuToFirstLine(receiver, agent)
    const rss = sampleRss(pid, sampleMs)
    const all: Steady = { ...ready, linesBefore: 0, cpuBefore: startCpu, cpuAfter: undefined, endMs: 0 }
    const part = load.mode === 'all' ? all : await underLoad(receiver, writer, agent, ready)
    const expected = total(part.written)
    await receiver.until(() => receiver.received() >= expected, idleMs, agent)
    const cpu = processCpu(pid) - part.cpuBefore
    const cpuMeanwhile = part.cpuAfter === undefined ? cpu : part.cpuAfter - part.cpuBefore
    rss.stop()
    const peak = peakRss(pid) ?? 0
    const byteLaneShare = program.metrics === undefined ? undefined : await shareOfBytes(program.metrics)
    await stopProcess(agent) // lines that it sends while it stops also count
    const delivery = await receiver.delivery()
    const { arrivals } = delivery
    const linesPerSecond = arrivalRate(arrivals, ([atMs, lines]) =>
      load.mode === 'all' ? lines <= load.count * fullShare : atMs <= part.endMs,
    )
    const arrived = (arrivals.at(-1)?.[1] ?? 0) - (arrivals[0]?.[1] ?? 0)
    const lines = load.mode === 'all' ? arrived : expected - part.linesBefore
    if (lines === 0 || linesPerSecond === 0)
      throw new Error('Too few lines for a rate: use a larger --events or --for.')
    return {
      startCpu,
      warmupCpu: part.cpuBefore - startCpu,
      cpu,
      cpuMeanwhile,
      lines,
      seconds: load.mode === 'all' ? lines / linesPerSecond : part.ms / 1000,
      linesPerSecond,
      rss: rss.samples,
      peakRss: peak,
      lost: expected - delivery.received + delivery.damaged,
      doubled: delivery.doubled,
      delivery,
      byteLaneShare,
    }
  } catch (error) {
    if (output === undefined) throw error
    throw new Error(`${(error as Error).message} Its last output:\n${readFileSync(output, 'utf8').slice(-2000)}`)
  } finally {
    agent?.kill('SIGKILL')
    writer.child.kill()
    process.off('exit', removeFolder)
    removeFolder()
  }
}

/** Events that programs processed as bytes, among all events that they received. */
async function shareOfBytes(metrics: string): Promise<number> {
  const counted = await metricsOf(metrics)
  const received = counted('component_received_events_total', 'component_kind="transform"')
  return counted('byte_lane_events_total', 'reason="bytes"') / received
}

interface Steady extends Omit<WriterReport, 'state'> {
  /** Lines and CPU time before it, and CPU time at its end. */
  readonly linesBefore: number
  readonly cpuBefore: number
  readonly cpuAfter: number | undefined
  readonly endMs: number
}

/** Writes at the planned rate after all files are known, and measures the CPU time of exactly the steady part. */
async function underLoad(
  receiver: Receiver,
  writer: Writer,
  agent: ChildProcess,
  ready: WriterReport,
): Promise<Steady> {
  const pid = agent.pid as number
  const first = total(ready.written)
  if (!(await receiver.until(() => receiver.received() >= first, idleMs, agent)))
    throw new Error(`Only ${receiver.received()} of the ${first} lines from before the start were delivered.`)
  writer.child.send('go')
  const warm = await writer.report('warm')
  const cpuBefore = processCpu(pid)
  const { written, ms } = await writer.report('done')
  const cpuAfter = processCpu(pid)
  return { written, ms: ms - warm.ms, linesBefore: total(warm.written), cpuBefore, cpuAfter, endMs: Date.now() }
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

function loadPlace(folder: string, receiver: string, pods: readonly BenchPod[], apiAddress: string): LoadPlace {
  const logsDir = join(folder, 'pods')
  const containersDir = join(folder, 'containers')
  const dataDir = join(folder, 'data')
  for (const made of [containersDir, dataDir]) mkdirSync(made)
  for (const pod of pods) {
    mkdirSync(join(logsDir, pod.folder), { recursive: true })
    symlinkSync(join(logsDir, pod.folder, '0.log'), join(containersDir, pod.link))
  }
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(kubeConfig, kubeConfigText(receiver))
  return { folder, logsDir, containersDir, file: '', kubeConfig, dataDir, receiver, apiAddress }
}

const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)
