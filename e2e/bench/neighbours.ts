// Ten pipelines of ten namespaces on one agent: nine light ones and one with an expensive program, with and without the latter.
// With `paced`, lines arrive at a rate for which CPU time suffices. With `full`, all lines exist at the start, and CPU time is scarce.

import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { bundleFiles, project, type TestBundle } from '@penstock/agent/testing/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { processCpu } from '../process-figures.ts'
import { place, startBundleAgent, startReceiver } from './agent-process.ts'
import { round } from './figures.ts'
import { criLine } from './lines.ts'

const lightProgram = '. = merge(., object!(parse_json!(.message)))'
const heavyProgram = `${lightProgram}
sum = 0
for_each(split("${'a,'.repeat(400)}", ",")) -> |_, part| { sum = sum + length(part) }
.sum = sum`

/** The pipelines by name. */
const bundleOf = (names: readonly string[]): TestBundle => ({
  pipelines: Object.fromEntries(
    names.map((name) => [`${name}/p`, { uid: name, generation: 1, hash: name, restricted: true, cpuShare: 100 }]),
  ),
  subscriptions: names.map((name) => ({ cursor: `${name}/app`, out: `${name}/p/app`, namespaces: [name] })),
  transforms: Object.fromEntries(
    names.map((name) => [
      `${name}/p/change`,
      { type: 'remap', inputs: [`${name}/p/app`], source: name === 'heavy' ? heavyProgram : lightProgram },
    ]),
  ),
  sinks: Object.fromEntries(
    names.map((name) => [`${name}/p/out`, { type: 'blackhole', inputs: [`${name}/p/change`] }]),
  ),
})

/** Delivered events by pipeline. */
async function taken(port: number): Promise<Map<string, number>> {
  const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(
    (answer) => answer.text(),
    () => '',
  )
  const counts = new Map<string, number>()
  for (const [, id, value] of text.matchAll(
    /^component_received_events_total\{[^}]*component_id="([^"/]+)\/p\/out"[^}]*\} (\d+)/gm,
  )) {
    counts.set(id as string, (counts.get(id as string) ?? 0) + Number(value))
  }
  return counts
}

interface Run {
  /** Events per second by pipeline. */
  readonly rates: ReadonlyMap<string, number>
  readonly startCpu: number
  readonly cores: number
}

async function run(paced: boolean, withHeavy: boolean, seconds: number): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-neighbours-'))
  await using receiver = await startReceiver()
  const where = place(folder, receiver.url, '')
  const names = [...Array.from({ length: 9 }, (_, index) => `light-${index}`), ...(withHeavy ? ['heavy'] : [])]
  const files = names.map((name) => {
    const container = join(where.logsDir, `${name}_web_uid-${name}`, 'app')
    mkdirSync(container, { recursive: true })
    return join(container, '0.log')
  })
  const block = Array.from({ length: 500 }, (_, index) => `${criLine(index)}\n`).join('')
  for (const file of files) writeFileSync(file, paced ? `${criLine(0)}\n` : block.repeat(1600))
  mkdirSync(join(folder, 'bundle'))
  project(join(folder, 'bundle'), bundleFiles(bundleOf(names)).files)
  const port = await freePort()
  const agent = startBundleAgent(folder, where, port)
  try {
    for (let turn = 0; (await taken(port)).size < names.length; turn++) {
      if (turn > 300) throw new Error('The agent does not read.')
      await wait(100)
    }
    const startCpu = processCpu(agent.pid as number)
    const started = performance.now()
    const before = await taken(port)
    const finish = async (): Promise<Run> => {
      const elapsed = (performance.now() - started) / 1000
      const cores = (processCpu(agent.pid as number) - startCpu) / elapsed
      const after = await taken(port)
      const rate = (name: string) => ((after.get(name) ?? 0) - (before.get(name) ?? 0)) / elapsed
      return { rates: new Map(names.map((name) => [name, rate(name)])), startCpu, cores }
    }
    if (!paced) {
      await wait(seconds * 1000)
      return await finish()
    }
    for (let turn = 1; performance.now() - started < seconds * 1000; turn++) {
      // The expensive pipeline gets as many lines as it can process; the light ones get 2500 lines per second each.
      for (const [index, file] of files.entries()) {
        appendFileSync(file, names[index] === 'heavy' ? block.repeat(10) : block)
      }
      await wait(Math.max(0, turn * 200 - (performance.now() - started)))
    }
    return await finish()
  } finally {
    agent.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Events per second of the nine light pipelines together, and of the expensive one. */
export async function neighbours(seconds: number): Promise<object> {
  const figures: Record<string, number> = {}
  for (const paced of [true, false]) {
    for (const withHeavy of [false, true]) {
      const { rates, startCpu, cores } = await run(paced, withHeavy, seconds)
      figures['start_cpu_s'] ??= round(startCpu)
      const heavy = rates.get('heavy')
      const light = [...rates].filter(([name]) => name !== 'heavy').map(([, rate]) => rate)
      const name = `${paced ? 'paced' : 'full'}_${withHeavy ? 'with' : 'without'}`
      figures[`${name}_light_per_s`] = Math.round(light.reduce((sum, rate) => sum + rate, 0))
      figures[`${name}_cores`] = round(cores)
      if (heavy !== undefined) figures[`${name}_heavy_per_s`] = Math.round(heavy)
    }
  }
  return { scenario: 'neighbours', seconds, ...figures }
}
