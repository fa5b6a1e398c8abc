// `validate`: loads a configuration, builds its components and checks their destinations, without moving an event. It
// keeps state in a temporary directory, so that it does not disturb a running agent.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { defaultPath } from '../config/read.ts'
import { renderProblem, renderProblems } from '../config/render.ts'
import { errorText } from '../errors.ts'
import type { Problem } from '../schema/problems.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { colorChoices, takesColors } from '../terminal.ts'
import {
  buildSink,
  buildSource,
  buildTransform,
  type SinkNode,
  type SourceNode,
  topologyContext,
} from '../topology/build.ts'
import { checkHealth } from '../topology/healthchecks.ts'
import { type ConfigFlagValues, loadOptions } from './loaded-config.ts'
import { configFlags } from './run-flags.ts'

export const flags = {
  ...configFlags,
  'no-environment': {
    type: 'boolean',
    help: 'Check only the configuration, without access to local files and destinations.',
  },
  'skip-healthchecks': { type: 'boolean', help: 'Build the components, but do not connect to their destinations.' },
  'deny-warnings': { type: 'boolean', short: 'd', help: 'Fail on warnings too.' },
  color: {
    type: 'string',
    oneOf: colorChoices,
    env: 'PENSTOCK_COLOR',
    help: 'Whether to colour the output (auto).',
  },
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

export async function run(argv: readonly string[]): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent validate [PATH…] [FLAGS]\n\nChecks a configuration: reports all problems, builds the components and checks whether the destinations are reachable. Exit code 78 if there is a problem.\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  const report = new Report(takesColors(process.stdout))
  const environment = !given['no-environment']
  const loaded = await loadConfig({ ...loadOptions(given, words), checkMachine: environment })
  const paths = `[${pathsOf(given, words)
    .map((path) => JSON.stringify(path))
    .join(', ')}]`
  if (!loaded.ok) {
    report.failed(`Failed to load ${paths}`, loaded.problems)
    return report.close()
  }
  report.passed(`Loaded ${paths}`)
  const counted = loaded.warnings.filter((warning) => warning.informational !== true)
  report.warned(loaded.warnings, given['deny-warnings'] && counted.length > 0)
  if (environment) await checkComponents(loaded.config, given['skip-healthchecks'], report)
  return report.close()
}

function pathsOf(given: ConfigFlagValues, words: readonly string[]): readonly string[] {
  const { paths = [], dirs = [], formats = {} } = loadOptions(given, words)
  const all = [...paths, ...Object.values(formats).flat(), ...dirs]
  return all.length === 0 ? [defaultPath()] : all
}

async function checkComponents(config: Config, skipHealthchecks: boolean, report: Report): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'penstock-validate_tmp-'))
  const abandoning = new AbortController()
  const context = topologyContext({ ...config.globals, dataDir }, silentLogger, new Metrics(), abandoning.signal)
  const sinks: SinkNode[] = []
  const sources: SourceNode[] = []
  const problems: Problem[] = []
  const attempt = async (path: string, build: () => Promise<unknown>) => {
    try {
      await build()
    } catch (error) {
      problems.push({ severity: 'error', path, message: errorText(error) })
    }
  }
  try {
    for (const [id, each] of config.sinks) {
      await attempt(`sinks.${id}`, async () => sinks.push(await buildSink(each, context)))
    }
    for (const [id, each] of config.transforms) await attempt(`transforms.${id}`, () => buildTransform(each, context))
    for (const [id, each] of config.sources) {
      await attempt(`sources.${id}`, async () => sources.push(await buildSource(each, context)))
    }
    if (problems.length > 0) report.failed('Component configuration', problems)
    else report.passed('Component configuration')
    if (skipHealthchecks) return
    const checked = await checkHealth([...sinks, ...sources], config.globals.healthchecks.enabled, abandoning.signal)
    for (const { id, health, error } of checked) {
      if (health === 'healthy') report.passed(`Health check "${id}"`)
      else if (health === 'unhealthy') report.failed(`Health check for "${id}" failed: ${errorText(error)}`, [])
      else if (health === 'disabled') report.noted(`Health check disabled for "${id}"`)
    }
  } finally {
    abandoning.abort()
    for (const source of sources) source.stopping.abort()
    await Promise.allSettled(
      sinks.map(async (node) => {
        await node.sink.close()
        await node.buffer.close()
      }),
    )
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Prints a line for each step, which begins with its outcome: passed, failed or warned. */
class Report {
  readonly #color: boolean
  #failed = false
  #widest = 0

  constructor(color: boolean) {
    this.#color = color
  }

  passed(text: string): void {
    this.#line(32, '√', text)
  }

  noted(text: string): void {
    this.#line(33, '~', text)
  }

  failed(text: string, problems: readonly Problem[]): void {
    this.#failed = true
    this.#line(31, 'x', text)
    if (problems.length > 0) this.#print(`${renderProblems(problems, { color: this.#color })}\n`)
  }

  warned(warnings: readonly Problem[], denied: boolean): void {
    if (denied) this.#failed = true
    for (const warning of warnings) this.#line(denied ? 31 : 33, denied ? 'x' : '~', renderProblem(warning))
  }

  /** Prints the last line and returns the exit code. */
  close(): number {
    if (this.#failed) return exitCodes.config
    const width = Math.max(this.#widest, 'Validated'.length)
    this.#print(`${'-'.repeat(width)}\n${'Validated'.padStart(width)}\n`)
    return exitCodes.ok
  }

  #line(color: number, mark: string, text: string): void {
    this.#widest = Math.max(this.#widest, ...text.split('\n').map((line) => Math.min(line.length + 2, 100)))
    this.#print(`${this.#color ? `\u001b[${color}m${mark}\u001b[0m` : mark} ${text}\n`)
  }

  #print(text: string): void {
    process.stdout.write(text)
  }
}
