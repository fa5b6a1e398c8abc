// Scenarios that a number of events ends. CPU time is that of the agent's process alone, its start included; the best of several
// runs counts, because neighbours only ever add to it.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { endedChildrenCpu, peakRss, place, root, startAgent, startReceiver } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { commonLine, criLine, jsonLine, linesFile } from './lines.ts'
import { aliases, type Scenario, scenarios } from './scenarios.ts'

export interface Figures {
  readonly scenario: string
  readonly events_per_s: number
  readonly mb_per_s: number
  readonly cpu_s_per_million: number
  readonly peak_rss_mb: number
  readonly p_ns: number
  /** CPU per event in P. */
  readonly cpu_p: number
}

async function once(
  scenario: Scenario,
  file: string,
  events: number,
): Promise<Omit<Figures, 'scenario' | 'p_ns' | 'cpu_p'>> {
  const folder = mkdtempSync(join(dirname(file), 'run-'))
  await using receiver = await startReceiver()
  try {
    const cpuBefore = endedChildrenCpu()
    const started = performance.now()
    const agent = startAgent(folder, scenario.config(place(folder, receiver.url, file)))
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
    if (finished === 0) finished = performance.now()
    if (code !== 0) throw new Error(`The agent ended with exit code ${code}.`)
    for (const path of scenario.paths) {
      const count = receiver.counts()[path] ?? 0
      if (count !== events) throw new Error(`${path} received ${count} of ${events} events.`)
    }
    const seconds = (finished - started) / 1000
    const cpu = endedChildrenCpu() - cpuBefore
    const bytes = readFileSizes.get(file) as number
    return {
      events_per_s: Math.round(events / seconds),
      mb_per_s: round(bytes / 1e6 / seconds),
      cpu_s_per_million: round((cpu / events) * 1e6),
      peak_rss_mb: round(rss),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const readFileSizes = new Map<string, number>()

const round = (value: number) => Math.round(value * 1000) / 1000

export async function measure(name: string, count: number, runs: number): Promise<Figures> {
  const scenario = scenarios[aliases[name] ?? name] as Scenario
  const events = count * (scenario.scale ?? 1)
  const cache = join(tmpdir(), `penstock-bench-${userInfo().uid}`)
  const file = join(cache, `cri-${events}.log`)
  readFileSizes.set(file, linesFile(file, events, criLine))
  const p = calibrate().p_ns
  let best = await once(scenario, file, events)
  for (let run = 1; run < runs; run++) {
    const figures = await once(scenario, file, events)
    if (figures.cpu_s_per_million < best.cpu_s_per_million) best = figures
  }
  return { scenario: name, ...best, p_ns: p, cpu_p: round((best.cpu_s_per_million * 1000) / p) }
}

/** Programs without input or output: measured inside one process by the agent's own test code. */
export async function measureProgram(name: string, events: number): Promise<Figures> {
  const p = calibrate().p_ns
  const kind = name === 'remap-regex' ? 'common' : 'json'
  const file = join(tmpdir(), `penstock-bench-${userInfo().uid}`, `${kind}-20000.log`)
  linesFile(file, 20_000, kind === 'common' ? commonLine : jsonLine)
  const script = join(root, 'agent/src/testing/bench-remap.ts')
  const child = spawn(process.execPath, ['--conditions=source', script, name, String(events), file, String(p)], {
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
