// The processes of a measurement: the agent as its command, and the process that receives.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programOf } from '../program.ts'
import type { Place } from './scenarios.ts'

const here = dirname(fileURLToPath(import.meta.url))
export const root = join(here, '../..')

/** Seconds of CPU, user and system, of all children of this process that have ended. */
export function endedChildrenCpu(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) / 100
}

export interface Receiver extends AsyncDisposable {
  readonly url: string
  readonly counts: () => Readonly<Record<string, number>>
}

export async function startReceiver(): Promise<Receiver> {
  const child = fork(join(here, 'receiver.ts'), { execPath: process.execPath })
  let counts: Record<string, number> = {}
  const port = await new Promise<number>((resolve) => {
    child.on('message', (message: { port?: number; counts?: Record<string, number> }) => {
      if (message.port !== undefined) resolve(message.port)
      if (message.counts !== undefined) counts = message.counts
    })
  })
  const exited = new Promise((resolve) => child.on('exit', resolve))
  return {
    url: `http://127.0.0.1:${port}`,
    counts: () => counts,
    // Waits for the end: the CPU time of this child must not be counted in the next measurement.
    async [Symbol.asyncDispose]() {
      child.kill()
      await exited
    },
  }
}

/** Files of a run: pod logs in the kubelet's layout, a kubeconfig, an empty data directory. */
export function place(folder: string, receiver: string, file: string): Place {
  const container = join(folder, 'pods/default_web-1_uid-1/app')
  mkdirSync(container, { recursive: true })
  mkdirSync(join(folder, 'data'))
  if (file !== '') linkSync(file, join(container, '0.log'))
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(kubeConfig, kubeConfigText(receiver))
  return { logsDir: join(folder, 'pods'), file, kubeConfig, dataDir: join(folder, 'data'), receiver }
}

function kubeConfigText(server: string): string {
  return `apiVersion: v1
kind: Config
current-context: bench
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
clusters: [{name: bench, cluster: {server: "${server}"}}]
users: [{name: bench, user: {}}]
`
}

/** Starts the agent as its image runs it: types stripped at start would cost half a second in every measurement. */
export function startAgent(folder: string, config: object): ChildProcess {
  const path = join(folder, 'agent.json')
  writeFileSync(path, JSON.stringify(config, undefined, 2))
  const { command, args, env } = programOf('agent')
  return spawn(command, [...args, '-q', '--config', path], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  })
}

/** An agent of an operator, with its bundle in the folder. */
export function startBundleAgent(folder: string, where: Place, apiPort: number): ChildProcess {
  const flags = {
    bundle: join(folder, 'bundle'),
    'data-dir': where.dataDir,
    'logs-dir': where.logsDir,
    'kube-config': where.kubeConfig,
    'api-address': `127.0.0.1:${apiPort}`,
  }
  const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])
  const { command, args, env } = programOf('agent')
  return spawn(command, [...args, '-q', ...given], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env, AGENT_SELF_NODE_NAME: 'bench' },
  })
}

/** Resident memory in MB. */
export function rssMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** Peak resident memory in MB, as long as the process lives. */
export function peakRss(pid: number): number | undefined {
  try {
    const match = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
    return match === null ? undefined : Number(match[1]) / 1024
  } catch {
    return undefined // ended meanwhile
  }
}
