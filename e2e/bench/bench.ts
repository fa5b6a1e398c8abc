// `npm run bench -- SCENARIO [--json] [--events N] [--runs N] [--for SECONDS]`: runs one scenario, or `all`, and prints its figures. The agent
// runs as its command from a configuration file, in a process of its own; the receiver is another process. CPU time is that of
// the agent's process alone, its start included; the best of several runs counts, because neighbours only ever add to it.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildAgent, endedChildrenCpu, peakRss, place, root, startAgent, startReceiver } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { buffer, bufferRestart, soakFaults } from './disk.ts'
import { commonLine, criLine, jsonLine, linesFile } from './lines.ts'
import { idle, soak } from './long.ts'
import { neighbours } from './neighbours.ts'
import { aliases, programs, type Scenario, scenarios } from './scenarios.ts'

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

async function measure(name: string, count: number, runs: number): Promise<Figures> {
  const scenario = scenarios[aliases[name] ?? name] as Scenario
  const events = count * (scenario.scale ?? 1)
  const cache = join(tmpdir(), `penstock-bench-${userInfo().uid}`)
  const file = join(cache, `cri-${events}.log`)
  readFileSizes.set(file, linesFile(file, events, criLine))
  const p = calibrate().p_ns
  let best: Omit<Figures, 'scenario' | 'p_ns' | 'cpu_p'> | undefined
  for (let run = 0; run < runs; run++) {
    const figures = await once(scenario, file, events)
    if (best === undefined || figures.cpu_s_per_million < best.cpu_s_per_million) best = figures
  }
  if (best === undefined) throw new Error('`--runs` must be at least 1.')
  return { scenario: name, ...best, p_ns: p, cpu_p: round((best.cpu_s_per_million * 1000) / p) }
}

/** Programs without input or output: measured inside one process by the agent's own test code. */
async function measureProgram(name: string, events: number): Promise<Figures> {
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

function print(figures: object, json: boolean): void {
  if (json) {
    console.log(JSON.stringify(figures))
    return
  }
  const { scenario, ...rest } = figures as { scenario: string }
  console.log(scenario)
  for (const [name, value] of Object.entries(rest)) console.log(`  ${name.padEnd(20)} ${value}`)
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      events: { type: 'string', default: '2000000' },
      runs: { type: 'string', default: '3' },
      for: { type: 'string' },
    },
  })
  const known = [
    'calibrate',
    ...Object.keys(scenarios),
    ...Object.keys(aliases),
    ...programs,
    'buffer',
    'buffer-parsed',
    'buffer-restart',
    'idle-500',
    'idle-5000',
    'neighbours',
    'soak',
    'soak-faults',
  ]
  const wanted =
    positionals[0] === 'all'
      ? known.filter((name) => !name.startsWith('soak') && name !== 'buffer-restart')
      : positionals
  const unknown = wanted.filter((name) => !known.includes(name))
  if (wanted.length === 0 || unknown.length > 0) {
    if (unknown.length > 0) console.error(`There is no scenario "${unknown.join('", "')}".`)
    console.error(
      `Usage: npm run bench -- SCENARIO [--json] [--events N] [--runs N] [--for SECONDS]\nScenarios: ${known.join(', ')}, all`,
    )
    return 64
  }
  const events = Number(values.events)
  if (wanted.some((name) => name !== 'calibrate')) buildAgent()
  const runs = Number(values.runs)
  for (const name of wanted) {
    if (name === 'calibrate') print({ scenario: name, ...calibrate() }, values.json)
    else if (name.startsWith('idle-'))
      print(await idle(name, Number(name.slice(5)), Number(values.for ?? 20)), values.json)
    else if (name === 'neighbours') print(await neighbours(Number(values.for ?? 20)), values.json)
    else if (name === 'soak') print(await soak(Number(values.for ?? 600)), values.json)
    else if (name === 'soak-faults') print(await soakFaults(Number(values.for ?? 600)), values.json)
    else if (name === 'buffer-restart') print(bufferRestart(Number(values.events)), values.json)
    else if (name.startsWith('buffer')) print(buffer(name, events), values.json)
    else if (programs.some((program) => program === name)) print(await measureProgram(name, events), values.json)
    else print(await measure(name, events, runs), values.json)
  }
  return 0
}

process.exitCode = await main()
