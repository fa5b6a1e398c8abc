// The processes of a measurement: the agent's command, and the receiver.

import { type ChildProcess, fork, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, linkSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryMiB, processCpu } from '../process-figures.ts'
import { type Program, programOf } from '../program.ts'
import type { Delivery } from './delivered.ts'
import type { Cpus } from './pinning.ts'
import type { ReceiverMessage } from './receiver.ts'
import type { Place } from './scenarios.ts'

const here = dirname(fileURLToPath(import.meta.url))
export const root = join(here, '../..')

/** CPU time in seconds (user and system) of all ended child processes. */
export function endedChildrenCpu(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}

export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly counts: () => Readonly<Record<string, number>>
  /** Number of events on all paths. */
  readonly received: () => number
  /**
   * Waits until a condition, which is checked after each body, is true. Returns false if nothing arrives for this long; rejects if the
   * agent ends.
   */
  readonly until: (condition: () => boolean, idleMs: number, agent: ChildProcess) => Promise<boolean>
  /** For lines written before, latency counts from now on. */
  readonly beginClock: () => void
  readonly delivery: () => Promise<Delivery>
}

/**
 * With a number of pods, it checks the lines of that many files instead of counting events.
 * @param others namespaces with one pod each, whose lines it does not receive
 */
export async function startReceiver(pods = 0, others: readonly string[] = []): Promise<Receiver> {
  const child = fork(join(here, 'receiver.ts'), [String(pods), ...others], { execPath: process.execPath })
  let counts: Readonly<Record<string, number>> = {}
  let take: ((delivery: Delivery) => void) | undefined
  let changed: (() => void) | undefined
  const port = await new Promise<number>((resolve) => {
    child.on('message', (message: ReceiverMessage) => {
      if (message.port !== undefined) resolve(message.port)
      if (message.delivery !== undefined) take?.(message.delivery)
      if (message.counts === undefined) return
      counts = message.counts
      changed?.()
    })
  })
  const exited = new Promise((resolve) => child.on('exit', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    counts: () => counts,
    received: () => Object.values(counts).reduce((sum, count) => sum + count, 0),
    until(condition, idleMs, agent) {
      return new Promise((resolve, reject) => {
        const gone = () =>
          finish(() => reject(new Error(`The agent ended with ${agent.signalCode ?? agent.exitCode}.`)))
        const finish = (settle: () => void) => {
          clearTimeout(idle)
          agent.off('exit', gone)
          changed = undefined
          settle()
        }
        const idle = setTimeout(() => finish(() => resolve(false)), idleMs)
        changed = () => {
          if (condition()) finish(() => resolve(true))
          else idle.refresh()
        }
        agent.on('exit', gone)
        if (agent.exitCode !== null || agent.signalCode !== null) gone()
        else if (condition()) changed()
      })
    },
    beginClock: () => void child.send({ originMs: Date.now() }),
    delivery: () =>
      new Promise((resolve) => {
        take = resolve
        child.send({})
      }),
    // Wait for the end, so that the CPU time of this child does not count in the next measurement.
    async [Symbol.asyncDispose]() {
      child.kill()
      await exited
    },
  }
}

/** The folder of the container's log. */
export const containerOf = ({ logsDir }: Pick<Place, 'logsDir'>) => join(logsDir, 'default_web-1_uid-1/app')

/** Files of a run: pod logs in the kubelet's layout, a kubeconfig, an empty data directory. */
export function place(folder: string, receiver: string, file: string): Place {
  const logsDir = join(folder, 'pods')
  const container = containerOf({ logsDir })
  mkdirSync(container, { recursive: true })
  mkdirSync(join(folder, 'data'))
  if (file !== '') linkSync(file, join(container, '0.log'))
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(kubeConfig, kubeConfigText(receiver))
  return { logsDir, file, kubeConfig, dataDir: join(folder, 'data'), receiver }
}

export function kubeConfigText(server: string): string {
  return `apiVersion: v1
kind: Config
current-context: bench
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
clusters: [{name: bench, cluster: {server: "${server}"}}]
users: [{name: bench, user: {}}]
`
}

/** Starts the agent as the image does, because stripping types at start would add half a second to each measurement. */
export function startAgent(folder: string, config: object, cpus?: Cpus): ChildProcess {
  return startProgram(agentProgram(folder, config), cpus)
}

export function agentProgram(folder: string, config: object): Program {
  const path = join(folder, 'agent.json')
  writeFileSync(path, JSON.stringify(config, undefined, 2))
  const { command, args, env } = programOf('agent')
  return { command, args: [...args, '-q', '--config', path], env }
}

/** Reads the metrics of an agent. The result sums the samples of a metric that contain a text. */
export async function metricsOf(url: string): Promise<(name: string, label?: string) => number> {
  const lines = (await (await fetch(url)).text()).split('\n')
  return (name, label = '') =>
    lines
      .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(label))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

export interface BenchProgram extends Program {
  /** File for its output. By default, only warnings and errors are shown. */
  readonly output?: string
  /** Address of its metrics, if they are needed at the end. */
  readonly metrics?: string
}

/** Starts it on the CPU reserved for the agent, if there is more than one CPU. */
export function startProgram({ command, args, env, output }: BenchProgram, cpus: Cpus | undefined): ChildProcess {
  const [first, ...rest] = cpus === undefined ? [command, ...args] : ['taskset', '-c', cpus.agent, command, ...args]
  const file = output === undefined ? undefined : openSync(output, 'a')
  try {
    const stdio: StdioOptions = file === undefined ? ['ignore', 'ignore', 'inherit'] : ['ignore', file, file]
    const child = spawn(first as string, rest, { stdio, env: { ...process.env, ...env } })
    // It must not outlive an aborted measurement.
    const end = () => child.kill('SIGKILL')
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    return child
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Ends a process gracefully, as a node does, then by force; waits for its end. */
export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 30_000)
  await exited
  clearTimeout(late)
}

/** An agent in operator mode, with its bundle in the folder. */
export function startBundleAgent(folder: string, where: Place, apiPort: number): ChildProcess {
  return startProgram(bundleProgram(folder, where, apiPort), undefined)
}

export function bundleProgram(folder: string, where: Place, apiPort: number): BenchProgram {
  const flags = {
    bundle: join(folder, 'bundle'),
    'data-dir': where.dataDir,
    'logs-dir': where.logsDir,
    'kube-config': where.kubeConfig,
    'api-address': `127.0.0.1:${apiPort}`,
  }
  const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const { command, args, env } = programOf('agent')
  return { command, args: [...args, '-q', ...given], env: { ...env, AGENT_SELF_NODE_NAME: 'bench' } }
}

/** Waits for the first delivered line, and returns the CPU time until then, which is the cost of the start. */
export async function cpuToFirstLine(receiver: Receiver, agent: ChildProcess): Promise<number> {
  if (!(await receiver.until(() => receiver.received() > 0, 60_000, agent)))
    throw new Error('The agent has delivered nothing for a minute.')
  return processCpu(agent.pid as number)
}

/** Samples the resident memory at intervals. */
export function sampleRss(pid: number, intervalMs: number): { readonly samples: number[]; stop(): void } {
  const samples: number[] = []
  const timer = setInterval(() => {
    const mb = rssMb(pid)
    if (Number.isFinite(mb)) samples.push(mb)
  }, intervalMs)
  return { samples, stop: () => clearInterval(timer) }
}

/** Resident memory in MB; NaN after the process has ended. */
export function rssMb(pid: number): number {
  return memoryMb(pid, 'VmRSS') ?? Number.NaN
}

/** Peak resident memory in MB while the process runs. */
export function peakRss(pid: number): number | undefined {
  return memoryMb(pid, 'VmHWM')
}

function memoryMb(pid: number, field: 'VmRSS' | 'VmHWM'): number | undefined {
  try {
    const mebibytes = memoryMiB(pid, field)
    return Number.isNaN(mebibytes) ? undefined : mebibytes
  } catch {
    return undefined // ended meanwhile
  }
}
