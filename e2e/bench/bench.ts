// `npm run bench -- SCENARIO [--json] [--events N] [--runs N] [--for SECONDS]`: runs one scenario, or `all`, and prints its figures. The agent
// runs as its command from a configuration file, in a process of its own; the receiver is another process. CPU time is that of
// the agent's process alone, its start included; the best of several runs counts, because neighbours only ever add to it.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { misuse, runScript } from '@penstock/agent/testing/script'
import { programOf } from '../program.ts'
import { endedChildrenCpu, peakRss, place, root, startAgent, startReceiver } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { buffer, bufferRestart, soakFaults } from './disk.ts'
import { commonLine, criLine, jsonLine, linesFile } from './lines.ts'
import { idle, soak } from './long.ts'
import { neighbours } from './neighbours.ts'
import { aliases, programs, type Scenario, scenarios } from './scenarios.ts'
import { type Format, type Pace, peak, steady } from './steady.ts'

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
  let best = await once(scenario, file, events)
  for (let run = 1; run < runs; run++) {
    const figures = await once(scenario, file, events)
    if (figures.cpu_s_per_million < best.cpu_s_per_million) best = figures
  }
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
  const show = (part: object, indent: string) => {
    for (const [name, value] of Object.entries(part)) {
      if (typeof value === 'object') {
        console.log(`${indent}${name}`)
        show(value, `${indent}  `)
      } else console.log(`${indent}${name.padEnd(20)} ${value}`)
    }
  }
  show(rest, '  ')
}

interface Given {
  readonly events: number | undefined
  readonly runs: number
  readonly seconds: number | undefined
  readonly mode: Pace
  readonly format: Format
}

async function figuresOf(name: string, given: Given): Promise<object> {
  const { runs, seconds, mode, format } = given
  const events = given.events ?? 2_000_000
  if (name === 'calibrate') return { scenario: name, ...calibrate() }
  if (name === 'steady') return steady(mode, format, seconds)
  if (name === 'peak') return peak(format, given.events)
  if (name.startsWith('idle-')) return idle(name, Number(name.slice(5)), seconds ?? 20)
  if (name === 'neighbours') return neighbours(seconds ?? 20)
  if (name === 'soak') return soak(seconds ?? 600)
  if (name === 'soak-faults') return soakFaults(seconds ?? 600)
  if (name === 'buffer-restart') return bufferRestart(events)
  if (name.startsWith('buffer')) return buffer(name, events)
  return programs.some((program) => program === name) ? measureProgram(name, events) : measure(name, events, runs)
}

/** Lines that did not come exactly once make every other figure worthless. */
function faults(figures: object): string | undefined {
  const { scenario, lost = 0, doubled = 0 } = figures as { scenario: string; lost?: number; doubled?: number }
  return lost === 0 && doubled === 0 ? undefined : `${scenario}: ${lost} lines were lost, and ${doubled} came twice.`
}

const known = [
  'steady',
  'peak',
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

await runScript({
  call: 'npm run bench -- SCENARIO…',
  about: `Runs scenarios one after another and prints their figures.\n\nScenarios: ${known.join(', ')}; all of them but those that take long: all`,
  flags: {
    json: { type: 'boolean', help: 'An object a line.' },
    events: { type: 'number', whole: true, minimum: 1, value: 'N', help: 'How many, where a count ends it (2000000).' },
    runs: { type: 'number', whole: true, minimum: 1, value: 'N', help: 'Of which the best counts (3).' },
    for: { type: 'number', minimum: 1, value: 'SECONDS', help: 'How long, where time ends it (20; soak: 600).' },
    mode: {
      type: 'string',
      oneOf: ['smooth', 'burst'],
      value: 'MODE',
      help: 'How lines come in `steady`: one by one, or those of a second at once (smooth).',
    },
    format: {
      type: 'string',
      oneOf: ['json', 'raw'],
      value: 'FORMAT',
      help: 'Whether `steady` and `peak` parse the lines (json), or leave them as they are.',
    },
  },
  words: true,
  async run({ flags: { json, events, runs = 3, for: seconds, mode = 'smooth', format = 'json' }, words }) {
    const names = words.flatMap((name) =>
      name === 'all' ? known.filter((each) => !each.startsWith('soak') && each !== 'buffer-restart') : [name],
    )
    if (names.length === 0) throw misuse(`Name a scenario: ${known.join(', ')}, all.`)
    const unknown = names.filter((name) => !known.includes(name))
    if (unknown.length > 0) throw misuse(`There is no scenario "${unknown.join('", "')}": ${known.join(', ')}, all.`)
    if (names.some((name) => name !== 'calibrate')) programOf('agent') // packed before anything is measured
    let exitCode = 0
    for (const name of names) {
      const figures = await figuresOf(name, { events, runs, seconds, mode: mode as Pace, format: format as Format })
      print(figures, json)
      const problem = faults(figures)
      if (problem === undefined) continue
      console.error(problem)
      exitCode = 1
    }
    return exitCode
  },
})
