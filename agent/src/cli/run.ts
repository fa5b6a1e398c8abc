// `run`: the agent itself. It loads the configuration, starts the topology, handles signals and exits with the right
// code.

import { hostname } from 'node:os'
import type { ApiServer } from '../api/server.ts'
import type { BundleMode } from '../bundle/mode.ts'
import { timerMs } from '../clock.ts'
import { exitCodeOf, exitCodes } from '../command-line/exit-codes.ts'
import { flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { renderProblems } from '../config/render.ts'
import { spaceOf } from '../data-dir.ts'
import { PenstockError } from '../errors.ts'
import type { Problem } from '../schema/problems.ts'
import { details, Exposition } from '../telemetry/exposition.ts'
import { adjustedLevel, createLogger, type Logger, type LogLevel } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { colorChoices, takesColors } from '../terminal.ts'
import { reload } from '../topology/reload.ts'
import { Topology } from '../topology/run.ts'
import { watchFiles } from '../topology/watch.ts'
import { Watchdog } from '../topology/watchdog.ts'
import { version } from '../version.ts'
import { loadOptions } from './loaded-config.ts'
import { giveBackAfterStart } from './memory.ts'
import { flagTable, type RunFlags, runFlagGroups } from './run-flags.ts'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'off'] as const

/** For completion, like every command. */
export { flagTable }

const usage = `Usage: penstock-agent [run] [PATH]… [FLAGS]

Runs the agent with the configuration of these paths or of --config, until it gets SIGTERM or SIGINT. SIGHUP reloads the configuration.`

export async function run(argv: readonly string[]): Promise<number> {
  const { flags, words } = parseFlags(argv, flagTable)
  if (flags.help) {
    const groups = [...runFlagGroups()].map(([heading, table]) => `${heading}\n${flagHelp(table)}\n`)
    process.stdout.write(helpText(`${usage}\n\n${groups.join('\n')}`))
    return exitCodes.ok
  }
  if (words.length > 0 && flags.bundle !== undefined)
    throw new PenstockError('PEN_USAGE', `"${words[0]}" has no effect with --bundle. Leave one of them out.`)
  return new Agent(flags, words).run()
}

type Stop = { readonly signal: string; readonly at: 'signal' } | { readonly failure?: unknown; readonly at: 'end' }

class Agent {
  readonly #flags: RunFlags
  /** Paths of the configuration files: the arguments that are not flags. */
  readonly #paths: readonly string[]
  readonly #logger: Logger
  readonly #metrics = new Metrics()
  readonly #color: boolean
  #reloading: Promise<void> = Promise.resolve()
  #reloadWaits = false
  #unwatch = () => {}
  #onReload = () => {}
  #watchdog: Watchdog | undefined

  constructor(flags: RunFlags, paths: readonly string[]) {
    this.#flags = flags
    this.#paths = paths
    this.#color = takesColors(
      process.stderr,
      colorChoices.find((choice) => choice === flags.color),
    )
    const level = adjustedLevel(baseLevel(), flags.verbose, flags.quiet)
    this.#logger = createLogger({ level, format: flags['log-format'] === 'json' ? 'json' : 'text', color: this.#color })
  }

  async run(): Promise<number> {
    const stopped = Promise.withResolvers<Stop>()
    const unlisten = this.#listen((signal) => stopped.resolve({ signal, at: 'signal' }))
    // Keeps the process alive, because a source may consist only of promises.
    const keepAlive = setInterval(() => {}, 2 ** 31 - 1)
    try {
      return await this.#start(stopped.promise)
    } finally {
      clearInterval(keepAlive)
      unlisten()
    }
  }

  async #start(stopped: Promise<Stop>): Promise<number> {
    const bundle = await this.#openBundle()
    const config = bundle === undefined ? await this.#load() : bundle.config
    if (config === undefined) return exitCodes.config
    const { threads } = this.#flags
    if (threads !== undefined && threads > 1) {
      this.#logger.warn({ threads }, 'This version processes events on one thread, whatever number is requested.')
    }
    const { globals } = config
    this.#countProcess()
    this.#countDisk(globals.dataDir)
    let api: ApiServer | undefined
    let topology: Topology
    try {
      if (globals.api.enabled) api = await this.#serve(globals.api, bundle)
      topology = await Topology.start(config, {
        logger: this.#logger,
        metrics: this.#metrics,
        logRateLimitMs: (this.#flags['internal-log-rate-limit'] ?? 10) * 1000,
        ...(this.#flags['require-healthy'] ? { requireHealthy: true } : {}),
        ...bundle?.topologyOptions,
      })
    } catch (error) {
      await api?.close()
      const { code } = error as { code?: unknown }
      this.#logger.error(
        { error, ...(typeof code === 'string' ? { error_code: code } : {}) },
        'The agent cannot start.',
      )
      return startCode(error)
    }
    if (api !== undefined) api.topology = topology
    this.#watchdog = new Watchdog({
      logger: this.#logger,
      metrics: this.#metrics,
      culprit: () => topology.takeCulprit(),
    })
    this.#onReload = bundle === undefined ? () => this.#requestReload(topology) : () => bundle.request()
    this.#watch(topology)
    await bundle?.start(topology)
    const expiry = this.#expireMetrics(globals.expireMetricsSecs)
    this.#metrics.counter('started_total').add(1)
    this.#logger.info({ version, pid: process.pid }, 'Penstock has started.')
    const keepMemory = giveBackAfterStart(this.#logger)

    const ended = topology.ended.then((ending): Stop => ({ ...ending, at: 'end' }))
    const emptied =
      this.#flags.drain === true
        ? bundle?.drained(topology).then((failure): Stop => ({ failure, at: 'end' }))
        : undefined
    // With a bundle, pipelines may all end while the agent keeps running.
    const stop = await (bundle === undefined
      ? Promise.race([stopped, ended])
      : Promise.race([stopped, emptied ?? stopped]))
    this.#onReload = () => {}
    this.#unwatch()
    clearInterval(expiry)
    keepMemory()
    if (api !== undefined) api.stopping = true
    await bundle?.stop()
    this.#logStop(stop, emptied !== undefined)
    const limit = this.#flags['graceful-shutdown-limit-secs'] ?? 60
    const remaining = await topology.stop(this.#flags['no-graceful-shutdown-limit'] ? undefined : limit * 1000)
    if (remaining.length > 0) {
      this.#logger.error(
        { remaining_components: remaining.join(', ') },
        'The time limit for a graceful stop is over; events in the memory of these components are lost.',
      )
    }
    await sendFigures(topology)
    await bundle?.close()
    await api?.close()
    this.#watchdog[Symbol.dispose]()
    this.#metrics.counter('stopped_total').add(1)
    this.#logger.info('Penstock has stopped.')
    return stop.at === 'end' && stop.failure !== undefined ? exitCodeOf(stop.failure) : exitCodes.ok
  }

  /** The bundle mode of the agent, if `--bundle` names it. */
  async #openBundle(): Promise<BundleMode | undefined> {
    const { bundle } = this.#flags
    if (bundle === undefined) return undefined
    const { BundleMode } = await import('../bundle/mode.ts')
    return await BundleMode.open({ ...this.#flags, bundle }, this.#logger, this.#metrics)
  }

  async #serve({ address, metric_prefix: prefix }: Config['globals']['api'], bundle: BundleMode | undefined) {
    const { ApiServer } = await import('../api/server.ts')
    const detail = details.find((one) => one === this.#flags['metrics-detail'])
    const constant = { host: hostname(), pid: String(process.pid) }
    const exposition = new Exposition(this.#metrics, constant, { detail, prefix })
    const api = await ApiServer.start({
      address,
      logger: this.#logger,
      exposition,
      ...bundle?.api,
      trouble: () => bundle?.api.trouble?.() ?? this.#watchdog?.trouble,
    })
    this.#metrics.counter('api_started_total').add(1)
    return api
  }

  #logStop(stop: Stop, isDraining: boolean): void {
    if (stop.at === 'signal') this.#logger.info({ signal: stop.signal }, 'Penstock is stopping.')
    else if (!isDraining) this.#logger.info('All sources have ended; Penstock is stopping.')
    else if (stop.failure === undefined) this.#logger.info('All buffers are empty; Penstock is stopping.')
    else this.#logger.error({ error: stop.failure }, 'Could not empty all buffers.')
  }

  /** Handles signals and uncaught errors. Returns a function that stops this. */
  #listen(stop: (signal: string) => void): () => void {
    let asked = false
    const onStop = (signal: string) => {
      if (asked) this.#quit(signal)
      asked = true
      stop(signal)
    }
    const onQuit = (signal: string) => this.#quit(signal)
    const onReload = () => this.#onReload()
    const onFault = (error: unknown) => {
      this.#logger.fatal(
        { error, stack: error instanceof Error ? error.stack : undefined },
        'An internal error of Penstock.',
      )
      process.exit(exitCodes.internal)
    }
    process.on('SIGINT', onStop).on('SIGTERM', onStop).on('SIGQUIT', onQuit).on('SIGHUP', onReload)
    process.on('uncaughtException', onFault).on('unhandledRejection', onFault)
    return () => {
      process.off('SIGINT', onStop).off('SIGTERM', onStop).off('SIGQUIT', onQuit).off('SIGHUP', onReload)
      process.off('uncaughtException', onFault).off('unhandledRejection', onFault)
    }
  }

  #quit(signal: string): never {
    this.#metrics.counter('quit_total').add(1)
    this.#logger.warn({ signal }, 'Penstock stops at once; events in flight are lost.')
    process.exit(exitCodes.ok)
  }

  async #load(): Promise<Config | undefined> {
    const result = await loadConfig({
      ...loadOptions(this.#flags, this.#paths),
      allowEmpty: this.#flags['allow-empty-config'],
    })
    if (!result.ok) {
      this.#metrics.counter('config_load_errors_total').add(1)
      this.#report(result.problems)
      return undefined
    }
    if (result.warnings.length > 0) this.#report(result.warnings)
    return result.config
  }

  /** Reports problems as blocks for people, or as log records if the log is for machines. */
  #report(problems: readonly Problem[]): void {
    if (this.#flags['log-format'] !== 'json') {
      const shown = problems.filter((problem) => this.#logger.isLevelEnabled(levelOf(problem)))
      if (shown.length > 0) process.stderr.write(`${renderProblems(shown, { color: this.#color })}\n\n`)
      return
    }
    for (const problem of problems) {
      const { severity: _, informational: __, diagnostic: ___, code: ____, message, ...place } = problem
      this.#logger[levelOf(problem)]({ problem: message, ...place }, 'The configuration has a problem.')
    }
  }

  #watch(topology: Topology): void {
    this.#unwatch()
    if (!this.#flags['watch-config']) return
    const method = this.#flags['watch-config-method'] === 'poll' ? 'poll' : 'recommended'
    const pollSecs = this.#flags['watch-config-poll-interval-seconds'] ?? 30
    this.#unwatch = watchFiles(topology.config.files, { method, pollSecs }, () => this.#requestReload(topology))
  }

  /** Only one reload runs at a time; at most one more waits, which then reads the newest files. */
  #requestReload(topology: Topology): void {
    if (this.#reloadWaits) return
    this.#reloadWaits = true
    this.#reloading = this.#reloading.then(async () => {
      this.#reloadWaits = false
      await this.#reload(topology)
    })
  }

  async #reload(topology: Topology): Promise<void> {
    const rejected = (reason: string) => this.#metrics.counter('config_reload_rejected_total', { reason }).add(1)
    const keeps = 'The active configuration stays.'
    try {
      const config = await this.#load()
      if (config === undefined) {
        rejected('invalid')
        this.#logger.error(`The new configuration has problems. ${keeps}`)
        return
      }
      const result = await reload(topology, config)
      if (result.outcome === 'unchanged') {
        this.#logger.info('The configuration has not changed.')
      } else if (result.outcome === 'reloaded') {
        this.#metrics.counter('reloads_total').add(1)
        const { sources, transforms, sinks, rewired } = result.diff
        this.#logger.info({ sources, transforms, sinks, rewired }, 'The new configuration is active.')
        this.#watch(topology)
      } else {
        rejected(result.reason)
        if (result.reason === 'globals') {
          this.#logger.error(
            { changed: result.changed },
            "Global options can't be changed while reloading config file; reload aborted. Please restart Penstock to apply them.",
          )
        } else if (result.reason !== 'stopping') {
          this.#logger.error({ error: result.error }, `Could not activate the new configuration. ${keeps}`)
        }
      }
    } catch (error) {
      rejected('internal')
      this.#logger.error({ error }, `The reload failed. ${keeps}`)
    }
  }

  /** Metrics computed on request. */
  #countProcess(): void {
    const startedAt = performance.now()
    const metrics = this.#metrics
    metrics.computed('uptime_seconds', {}, () => (performance.now() - startedAt) / 1000)
    metrics.computed(
      'build_info',
      { version, arch: process.arch, revision: process.env['PENSTOCK_REVISION'] ?? '' },
      () => 1,
    )
    metrics.computed('process_resident_memory_bytes', {}, () => process.memoryUsage.rss())
    metrics.computed('process_cpu_seconds_total', {}, () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    })
  }

  /** The file system of `data_dir`, unless that folder is missing. */
  #countDisk(dataDir: string): void {
    if (spaceOf(dataDir) === undefined) return
    this.#metrics.computed('data_dir_size_bytes', {}, () => spaceOf(dataDir)?.size ?? 0)
    this.#metrics.computed('data_dir_available_bytes', {}, () => spaceOf(dataDir)?.available ?? 0)
  }

  #expireMetrics(secs: number | undefined): NodeJS.Timeout | undefined {
    if (secs === undefined) return undefined
    const expire = () => this.#metrics.expire(performance.now(), secs * 1000)
    return setInterval(expire, timerMs(Math.max(1000, secs * 500))).unref()
  }
}

/** A parent process with a channel, such as `penstock run`, gets the figures of the whole run. */
async function sendFigures(topology: Topology): Promise<void> {
  if (process.send === undefined) return
  const { componentViews } = await import('../api/components.ts')
  const { promise, resolve } = Promise.withResolvers<void>()
  // The callback also runs if the parent has ended.
  process.send(componentViews(topology), undefined, undefined, () => resolve())
  await promise
}

function levelOf({ severity, informational }: Problem): 'error' | 'warn' | 'info' {
  if (severity === 'error') return 'error'
  return informational === true ? 'info' : 'warn'
}

/** Every reason that keeps the agent from starting concerns its configuration, except an address in use and internal errors. */
function startCode(error: unknown): number {
  const code = exitCodeOf(error)
  return code === exitCodes.unavailable ? exitCodes.config : code
}

function baseLevel(): LogLevel {
  const named = process.env['PENSTOCK_LOG'] ?? ''
  if (named === '') return 'info'
  if (!(levels as readonly string[]).includes(named)) {
    throw new PenstockError('PEN_USAGE', `PENSTOCK_LOG is "${named}"; it must be one of ${levels.join(', ')}.`)
  }
  return named === 'off' ? 'silent' : (named as LogLevel)
}
