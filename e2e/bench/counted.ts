// Scenarios with a fixed number of events. CPU time is that of the agent's process, including its start. The best of several runs counts,
// because other processes can only increase it.

import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { bundleFiles, project } from '@penstock/agent/testing/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { processCpu } from '../process-figures.ts'
import {
  containerOf,
  endedChildrenCpu,
  peakRss,
  place,
  type Receiver,
  root,
  startAgent,
  startBundleAgent,
  startReceiver,
} from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { round } from './figures.ts'
import { commonLine, criLine, jsonLine, linesFile } from './lines.ts'
import { type Place, type Scenario, scenarios } from './scenarios.ts'

export interface Figures {
  readonly scenario: string
  readonly events_per_s: number
  readonly mb_per_s: number
  readonly cpu_s_per_million: number
  /** CPU time until the first delivered event, and CPU time after it. */
  readonly start_cpu_s: number
  readonly steady_cpu_s_per_million: number
  readonly peak_rss_mb: number
  readonly p_ns: number
  /** CPU per event in P. */
  readonly cpu_p: number
}

async function startScenario(folder: string, scenario: Scenario, where: Place): Promise<ChildProcess> {
  if ('config' in scenario) return startAgent(folder, scenario.config(where))
  const path = join(folder, 'bundle')
  mkdirSync(path)
  project(path, bundleFiles(scenario.bundle(where)).files)
  return startBundleAgent(folder, where, await freePort())
}

/** Appends lines like a container. */
async function write(path: string, first: number, end: number, pace: number): Promise<void> {
  const started = performance.now()
  for (let next = first; next < end; ) {
    const due = Math.min(end, first + Math.ceil(((performance.now() - started) / 1000) * pace))
    const lines: string[] = []
    for (; next < due; next++) lines.push(criLine(next))
    appendFileSync(path, `${lines.join('\n')}\n`)
    await wait(100)
  }
}

async function once(
  scenario: Scenario,
  file: string,
  events: number,
  oneEventCpu: number,
): Promise<Omit<Figures, 'scenario' | 'p_ns' | 'cpu_p'>> {
  const folder = mkdtempSync(join(dirname(file), 'run-'))
  await using receiver = await startReceiver()
  try {
    const cpuBefore = endedChildrenCpu()
    const started = performance.now()
    const { pace } = scenario
    const where = place(folder, receiver.url, pace === undefined ? file : '')
    const log = join(containerOf(where), '0.log')
    if (pace !== undefined) writeFileSync(log, `${criLine(0)}\n`)
    const agent = await startScenario(folder, scenario, where)
    const writing = pace === undefined ? undefined : write(log, 1, events, pace)
    const start = startOf(agent, receiver)
    let rss = 0
    let finished = 0
    const code = await new Promise<number | null>((resolve) => {
      const watch = setInterval(() => {
        rss = Math.max(rss, peakRss(agent.pid as number) ?? 0)
        const counts = receiver.counts()
        if (
          finished === 0 &&
          scenario.paths.length > 0 &&
          scenario.paths.every((path) => (counts[path] ?? 0) >= events)
        ) {
          finished = performance.now()
          agent.kill('SIGTERM')
        }
      }, 20)
      agent.on('exit', (exit) => {
        clearInterval(watch)
        resolve(exit)
      })
    })
    await writing
    if (finished === 0) finished = performance.now()
    if (code !== 0) throw new Error(`The agent ended with exit code ${code}.`)
    for (const path of scenario.paths) {
      const count = receiver.counts()[path] ?? 0
      if (count !== events) throw new Error(`${path} received ${count} of ${events} events.`)
    }
    const seconds = (finished - started) / 1000
    const cpu = endedChildrenCpu() - cpuBefore
    const { cpu: startCpu, events: startEvents } = (await start) ?? { cpu: oneEventCpu, events: scenario.paths.length }
    const others = events - startEvents / Math.max(1, scenario.paths.length)
    const bytes = readFileSizes.get(file) as number
    return {
      events_per_s: Math.round(events / seconds),
      mb_per_s: round(bytes / 1e6 / seconds),
      cpu_s_per_million: round((cpu / events) * 1e6),
      start_cpu_s: round(startCpu),
      steady_cpu_s_per_million: round((Math.max(0, cpu - startCpu) / Math.max(1, others)) * 1e6),
      peak_rss_mb: round(rss),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** CPU time until the first delivered events, and their number; undefined if none arrived before the agent ended. */
async function startOf(agent: ChildProcess, receiver: Receiver): Promise<{ cpu: number; events: number } | undefined> {
  try {
    await receiver.until(() => receiver.received() > 0, 600_000, agent)
    return { cpu: processCpu(agent.pid as number), events: receiver.received() }
  } catch {
    return undefined // it ended; its exit code shows the reason
  }
}

const readFileSizes = new Map<string, number>()

export async function measure(name: string, count: number, runs: number): Promise<Figures> {
  const scenario: Scenario = scenarios[name as keyof typeof scenarios]
  const events = count * (scenario.scale ?? 1)
  const cache = join(tmpdir(), `penstock-bench-${userInfo().uid}`)
  const file = join(cache, `cri-${events}.log`)
  readFileSizes.set(file, linesFile(file, events, criLine))
  const p = calibrate().p_ns
  // For a sink that sends nothing, the first delivery is not visible, so a run with one event measures the start.
  const oneEventCpu = scenario.paths.length > 0 ? 0 : await cpuOfOneEvent(scenario, cache)
  let best = await once(scenario, file, events, oneEventCpu)
  for (let run = 1; run < runs; run++) {
    const figures = await once(scenario, file, events, oneEventCpu)
    if (figures.cpu_s_per_million < best.cpu_s_per_million) best = figures
  }
  return { scenario: name, ...best, p_ns: p, cpu_p: round((best.cpu_s_per_million * 1000) / p) }
}

async function cpuOfOneEvent(scenario: Scenario, folder: string): Promise<number> {
  const file = join(folder, 'cri-1.log')
  readFileSizes.set(file, linesFile(file, 1, criLine))
  return (await once(scenario, file, 1, 0)).cpu_s_per_million / 1e6
}

/** Programs without input and output: the best of `runs`, and the additional cost of a namespaced Pipeline's budget in percent. */
export async function measureProgram(
  name: string,
  events: number,
  runs: number,
): Promise<Figures & { budget_cost_percent: number }> {
  const p = calibrate().p_ns
  const kind = name === 'remap-regex' ? 'common' : 'json'
  const file = join(tmpdir(), `penstock-bench-${userInfo().uid}`, `${kind}-20000.log`)
  linesFile(file, 20_000, kind === 'common' ? commonLine : jsonLine)
  // Alternate between separate processes, because in one process the engine would compile the second program with type feedback of the
  // first.
  const free: Figures[] = []
  const budgeted: Figures[] = []
  for (let run = 0; run < runs; run++) {
    free.push(await measureProgramOnce(name, events, file, p, 'platform'))
    budgeted.push(await measureProgramOnce(name, events, file, p, 'restricted'))
  }
  const best = bestOf(free)
  const ratio = bestOf(budgeted).cpu_s_per_million / best.cpu_s_per_million
  return { ...best, budget_cost_percent: round((ratio - 1) * 100, 1) }
}

function bestOf(runs: readonly Figures[]): Figures {
  return runs.reduce((best, next) => (next.cpu_s_per_million < best.cpu_s_per_million ? next : best))
}

async function measureProgramOnce(
  name: string,
  events: number,
  file: string,
  p: number,
  rules: 'platform' | 'restricted',
): Promise<Figures> {
  const script = join(root, 'agent/src/bench/bench-remap.ts')
  const child = spawn(process.execPath, ['--conditions=source', script, name, String(events), file, String(p), rules], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8')
  })
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
  if (code !== 0) throw new Error(`The measuring process ended with exit code ${code}.`)
  return { scenario: name, ...(JSON.parse(text) as Omit<Figures, 'scenario'>) }
}
