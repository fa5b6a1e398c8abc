// Compares Penstock with other agents on the same lines. Runs alternate between agents, so that all get the same conditions. The other agents
// use the configurations of their vendors, in `peers/`. The OpenTelemetry collector and vlagent are built from Go modules; other agents
// participate if environment variables name their binaries.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../cache.ts'
import { command } from '../command.ts'
import { fingerprint } from '../fingerprint.ts'
import { ensureGo } from '../go.ts'
import type { BenchProgram } from './agent-process.ts'
import { calibrate } from './calibrate.ts'
import { median, round } from './figures.ts'
import { type AgentUnderLoad, type Load, type LoadPlace, measureLoad } from './load.ts'
import { separateCpus } from './pinning.ts'
import { benchNode } from './pods.ts'
import { defaultLoad, loadFigures, penstock } from './steady.ts'

const folder = join(dirname(fileURLToPath(import.meta.url)), 'peers')

/** The output of other agents, which is shown only if one ends or delivers nothing. */
const agent = (where: LoadPlace, command: string, args: readonly string[], env = {}): BenchProgram => ({
  command,
  args,
  env,
  output: join(where.folder, 'output'),
})

/** Environment variables with the paths of binaries, and the arguments to start each agent with its configuration file. */
const fromEnvironment: Readonly<Record<string, { variable: string; start: (binary: string) => AgentUnderLoad }>> = {
  'fluent-bit': {
    variable: 'PENSTOCK_BENCH_FLUENT_BIT',
    start: (binary) => (where) => agent(where, binary, ['--config', written('fluent-bit.conf', where)]),
  },
  vector: {
    variable: 'PENSTOCK_BENCH_VECTOR',
    start: (binary) => (where) => {
      const user = process.getuid?.() === 0 ? [] : ['--map-root-user']
      const mount = ['sh', '-c', 'mount --bind "$0" /var/log && exec "$@"', where.folder]
      const vector = [binary, '--config', written('vector.yaml', where)]
      return agent(where, 'unshare', ['--mount', ...user, ...mount, ...vector])
    },
  },
}

/** The file with names between at-signs replaced by their values in this run. */
function filled(name: string, where: LoadPlace): string {
  const { hostname, port } = new URL(where.receiver)
  const token = join(where.folder, 'token')
  const values: Record<string, string> = {
    URL: where.receiver,
    HOST: hostname,
    PORT: port,
    PODS: where.logsDir,
    CONTAINERS: where.containersDir,
    CONTAINERS_TAG: where.containersDir.slice(1).replaceAll('/', '.'),
    DATA: where.dataDir,
    KUBECONFIG: where.kubeConfig,
    NODE: benchNode.metadata.name,
    TOKEN: token,
  }
  writeFileSync(token, 'none')
  return readFileSync(join(folder, name), 'utf8').replaceAll(/@([A-Z_]+)@/g, (_, value: string) => {
    const text = values[value]
    if (text === undefined) throw new Error(`${name} contains the placeholder "${value}", which has no value.`)
    return text
  })
}

function written(name: string, where: LoadPlace): string {
  const path = join(where.folder, name)
  writeFileSync(path, filled(name, where))
  return path
}

/** Builds a program from the Go module in a folder of `peers/` into the user's cache, once per content. Returns its path. */
async function built(name: string, main: string): Promise<string> {
  const module = join(folder, name)
  const binary = join(cacheFolder, 'bench', `${name}-${fingerprint([module])}`)
  if (existsSync(binary)) return binary
  mkdirSync(dirname(binary), { recursive: true })
  await ensureGo()
  console.error(`Building ${name}.`)
  await command('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', `${binary}.new`, main], {
    cwd: module,
    env: { GOFLAGS: '-mod=readonly' },
    timeoutMs: 3_600_000,
  })
  renameSync(`${binary}.new`, binary)
  return binary
}

async function collector(): Promise<AgentUnderLoad> {
  const binary = await built('otelcol', '.')
  return (where) => agent(where, binary, ['--config', written('otelcol.yaml', where)])
}

async function vlagent(): Promise<AgentUnderLoad> {
  const given = process.env['PENSTOCK_BENCH_VLAGENT'] || undefined
  const binary = given ?? (await built('vlagent', 'github.com/VictoriaMetrics/VictoriaLogs/app/vlagent'))
  return (where) => {
    const flags = filled('vlagent.flags', where).split('\n')
    const args = flags.filter((line) => line.startsWith('-'))
    return agent(where, binary, args, { KUBECONFIG: where.kubeConfig })
  }
}

const loads: readonly (readonly [name: string, load: Partial<Load>])[] = [
  ['steady smooth', { mode: 'smooth' }],
  ['steady burst', { mode: 'burst' }],
  ['peak', { mode: 'all' }],
]

/** Figures of each agent under each load: medians of the runs, which alternate between agents. */
export async function peers(runs: number, seconds = 20, count = defaultLoad.count): Promise<object[]> {
  const agents = new Map<string, AgentUnderLoad>([
    ['penstock', penstock('json')],
    ['opentelemetry', await collector()],
    ['vlagent', await vlagent()],
  ])
  for (const [name, { variable, start }] of Object.entries(fromEnvironment)) {
    const binary = process.env[variable]
    if (binary !== undefined && binary !== '') agents.set(name, start(binary))
    else console.error(`Without ${name}: ${variable} names no binary.`)
  }
  const { p_ns } = calibrate()
  const cpus = separateCpus()
  const figures = new Map<string, Record<string, number>[]>()
  const problems = new Map<string, string>()
  for (let run = 1; run <= runs; run++) {
    for (const [loadName, load] of loads) {
      for (const [name, start] of agents) {
        const key = `${name}, ${loadName}`
        try {
          const measured = loadFigures(await measureLoad({ ...defaultLoad, ...load, seconds, count }, cpus, start))
          figures.set(key, [...(figures.get(key) ?? []), measured])
          console.error(`${key}, run ${run}: ${measured['cpu_s_per_million']} CPU-s per million lines`)
        } catch (error) {
          const { message } = error as Error
          problems.set(key, message.split('\n')[0] as string)
          console.error(`${key}, run ${run}: ${message}`)
        }
      }
    }
  }
  return loads.flatMap(([load]) =>
    [...agents.keys()].map((name) => {
      const measured = figures.get(`${name}, ${load}`) ?? []
      const problem = problems.get(`${name}, ${load}`)
      return {
        scenario: 'peers',
        agent: name,
        load,
        runs: measured.length,
        ...summary(measured),
        p_ns,
        pinned: cpus !== undefined,
        ...(problem === undefined ? {} : { problem }),
      }
    }),
  )
}

/** Medians; for cores also the range, and for failures the sum. */
function summary(runs: readonly Record<string, number>[]): Record<string, number> {
  const made: Record<string, number> = {}
  for (const name of Object.keys(runs[0] ?? {})) {
    const values = runs.map((run) => run[name] as number)
    if (name === 'lost' || name === 'doubled') made[name] = values.reduce((sum, value) => sum + value, 0)
    else made[name] = round(median(values), 4)
    if (name !== 'cores') continue
    made['cores_min'] = Math.min(...values)
    made['cores_max'] = Math.max(...values)
  }
  return made
}
