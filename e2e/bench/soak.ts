// `npm run soak -- [--minutes N]`: application lines for a long time, together with two hostile pipelines on the same agent. The command
// fails if lines are lost, if memory grows, or if lines arrive more slowly than they are written.

import { appendFileSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bundleFiles, project, type TestBundle } from '@penstock/agent/testing/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { Random } from '@penstock/agent/testing/random'
import { runScript } from '@penstock/agent/tools/script'
import { programOf } from '../program.ts'
import { bundleProgram } from './agent-process.ts'
import { faults, firstThird, lastThird, mean, round } from './figures.ts'
import { type LoadPlace, type Measured, measureLoad, type Neighbours } from './load.ts'
import { separateCpus } from './pinning.ts'
import { benchNamespaces, podOf } from './pods.ts'
import { httpSink } from './scenarios.ts'
import { defaultLoad, loadFigures } from './steady.ts'

/** Shorter runs end before the agent reaches its usual size, and a pause of the machine would have a large effect. */
const minJudgedSeconds = 120
/** The required share of the written rate, and the tolerated growth of memory. */
const minRate = 0.97
const maxGrowth = { times: 1.05, mb: 8 }

const merge = '. = merge(., object!(parse_json!(.message)))'
const digits = '[0,1,2,3,4,5,6,7,8,9]'
const loops = (levels: number, body: string) =>
  `${Array.from({ length: levels }, (_, level) => `for_each(${digits}) -> |_i${level}, _v${level}| { `).join('')}${body}${' }'.repeat(levels)}`

/** Programs of the hostile pipelines, by namespace. */
const hostile = {
  /** Computes more values from each line, all of whose names are new, than the kernel has space for. */
  'hostile-lines': `${merge}\n.whole = [.message, .message]\n.up = upcase!(.message)\n.moved = del(.x)`,
  /** Would never end without its budget. */
  'hostile-loops': `${merge}\nn = 0\n${loops(12, 'n = n + 1')}\n.n = n`,
}
const hostileNames = Object.keys(hostile) as (keyof typeof hostile)[]

function bundleOf(where: LoadPlace, names: readonly (keyof typeof hostile)[]): TestBundle {
  const all = ['victim', ...names]
  return {
    pipelines: Object.fromEntries(
      all.map((name) => [
        `${name}/p`,
        { uid: name, generation: 1, hash: name, restricted: true, egress: { deny: [] }, cpuShare: 100 },
      ]),
    ),
    subscriptions: all.map((name) => ({
      cursor: `${name}/app`,
      out: `${name}/p/app`,
      namespaces: name === 'victim' ? benchNamespaces.map(({ metadata }) => metadata.name) : [name],
    })),
    transforms: Object.fromEntries([
      ['victim/p/change', { type: 'remap', inputs: ['victim/p/app'], source: `${merge}\ndel(.message)` }],
      ...names.map((name) => [
        `${name}/p/change`,
        { type: 'remap', inputs: [`${name}/p/app`], source: hostile[name], drop_on_error: true },
      ]),
    ]),
    sinks: Object.fromEntries([
      [
        'victim/p/out',
        httpSink(where, '/', ['victim/p/change'], {
          compression: { algorithm: 'zstd', level: 1 },
          batch: { max_bytes: 1_000_000, timeout_secs: 1 },
        }),
      ],
      ...names.map((name) => [`${name}/p/out`, { type: 'blackhole', inputs: [`${name}/p/change`] }]),
    ]),
  }
}

const rotateBytes = 20_000_000
const turnMs = 100
/** Lines per turn of each hostile pod. */
const linesEach = 50

/** Writes the lines of the hostile pods until disposed. */
class HostileLines implements Disposable {
  readonly #files: readonly string[]
  readonly #random = new Random(7)
  readonly #timer: NodeJS.Timeout
  written = 0

  constructor(where: LoadPlace) {
    this.#files = hostileNames.map((name) => join(where.logsDir, podOf(name).folder, '0.log'))
    for (const file of this.#files) {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, '')
    }
    this.#timer = setInterval(() => this.#turn(), turnMs)
  }

  #turn(): void {
    for (const file of this.#files) {
      const lines = Array.from({ length: linesEach }, () => this.#line())
      appendFileSync(file, lines.join(''))
      this.written += lines.length
      if (statSync(file).size < rotateBytes) continue
      renameSync(file, `${file}.20260101-000000`)
      writeFileSync(file, '')
    }
  }

  #line(): string {
    const random = this.#random
    const id = () => random.below(2 ** 31).toString(36)
    const members = Array.from({ length: 8 }, () => `"${id()}":"${id()}"`)
    const long = random.chance(0.02) ? 'x\\u003c'.repeat(random.below(8000)) : id()
    const odd = random.pick(['1e5', '0.1234567890123456789', '{"z":1,"a":[1.50]}', '"\\ud83d"', '[[[[[]]]]]'])
    return `${new Date().toISOString()} stdout F {${members.join(',')},"x":"${long}","odd":${odd}}\n`
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

interface Soaked extends Measured {
  readonly hostileLines: number
}

async function run(seconds: number, rate: number, names: readonly (keyof typeof hostile)[]): Promise<Soaked> {
  const port = await freePort()
  let lines: HostileLines | undefined
  const neighbours: Neighbours = {
    namespaces: hostileNames,
    write(where) {
      lines = new HostileLines(where)
      return lines
    },
  }
  const agent = (where: LoadPlace) => {
    mkdirSync(join(where.folder, 'bundle'))
    project(join(where.folder, 'bundle'), bundleFiles(bundleOf(where, names)).files)
    // The errors of the hostile pipelines are logged.
    return { ...bundleProgram(where.folder, where, port), output: join(where.folder, 'agent.log') }
  }
  const load = { ...defaultLoad, seconds, rate }
  const measured = await measureLoad(load, separateCpus(), agent, names.length === 0 ? undefined : neighbours)
  return { ...measured, hostileLines: lines?.written ?? 0 }
}

async function soakWithHostile(seconds: number, rate: number): Promise<object> {
  const alone = await run(Math.min(60, seconds), rate, [])
  const together = await run(seconds, rate, hostileNames)
  const [first, last] = [mean(firstThird(together.rss)), mean(lastThird(together.rss))]
  const writtenPerSecond = together.lines / together.seconds
  const problems = [
    ...(last > first * maxGrowth.times + maxGrowth.mb
      ? [`Memory grows from ${round(first)} to ${round(last)} MB.`]
      : []),
    ...(together.linesPerSecond < writtenPerSecond * minRate
      ? [`Only ${Math.round(together.linesPerSecond)} of ${Math.round(writtenPerSecond)} lines per second arrive.`]
      : []),
  ]
  return {
    ...loadFigures(together),
    written_per_s: Math.round(writtenPerSecond),
    hostile_lines: together.hostileLines,
    rss_first_third_mb: round(first, 1),
    rss_last_third_mb: round(last, 1),
    alone_cores: loadFigures(alone)['cores'],
    alone_latency_avg_ms: round(alone.delivery.latencyAvgMs, 1),
    alone_latency_p99_ms: alone.delivery.latencyP99Ms,
    alone_rss_mean_mb: round(mean(alone.rss), 1),
    lost: alone.lost + together.lost,
    doubled: alone.doubled + together.doubled,
    ...(seconds < minJudgedSeconds || problems.length === 0 ? {} : { problem: problems.join(' ') }),
  }
}

if (import.meta.main) {
  // Exiting also ends its child processes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  await runScript({
    call: 'npm run soak --',
    about:
      'Runs application lines together with two hostile pipelines on one agent, and prints the figures as one line of JSON; e2e/bench/README.md explains them. The exit code is 1 if lines are lost, or in runs of two minutes or more, if memory grows or lines arrive late.',
    flags: {
      minutes: { type: 'string', number: 'any', minimum: 0.01, value: 'N', help: 'Duration (10).' },
      rate: {
        type: 'string',
        number: 'whole',
        minimum: 1,
        value: 'N',
        help: 'Application lines per second (10000).',
      },
    },
    async run({ flags: { minutes = 10, rate = defaultLoad.rate } }) {
      programOf('agent') // pack it before the measurement
      const figures = await soakWithHostile(minutes * 60, rate)
      console.log(JSON.stringify({ scenario: 'soak-hostile', minutes, ...figures }))
      const problem = faults(figures)
      if (problem !== undefined) console.error(problem)
      return problem === undefined ? 0 : 1
    },
  })
}
