// `penstock run -f DIR [--for 10s]`: compiles the resources of a folder and runs them locally. Sample pods, or files in their place,
// replace a cluster; everything else is real: as on a node, the agent tails log files and lists metadata from an API server. Sinks of
// type `console`, and sinks that cannot deliver from here, print short readable lines or JSON, regardless of their codec.

import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ComponentView } from '@penstock/agent/bundle'
import { orchestratorEvents, orchestratorLogs } from '@penstock/agent/config'
import { PenstockError } from '@penstock/agent/errors'
import {
  type ColorChoice,
  colorChoices,
  counted,
  type Flags,
  pause,
  takesColors,
  workerFile,
} from '@penstock/agent/program'
import type { Table } from '../compile/compiled.ts'
import { type CompiledResources, compileFiles, configText, type FilesOptions } from '../compile/config.ts'
import { resourceFiles, standardInput } from '../compile/resources.ts'
import { clusterNameOption, durationMs, helpOf, parseFlags, resourceOptions, resourcePaths } from './arguments.ts'
import { npx } from './npx.ts'
import { printProblems } from './problems.ts'
import { allDelivered, givenInputs, isPodLogs, quietLimitMs, RunInput } from './run-input.ts'
import { RunScreen } from './run-screen.ts'
import { type IdleSource, idleSources } from './run-selection.ts'
import { isScreen, shownSinks, unreachable } from './run-sinks.ts'
import { runAtChanges } from './run-watch.ts'
import { SampleApiServer, type SampleObject } from './sample-cluster/api-server.ts'
import {
  type SampleWriter,
  sampleContainers,
  sampleNode,
  sampleObjects,
  samplePodNames,
  writeGivenLog,
  writeSampleLogs,
} from './sample-cluster/pods.ts'

export const options = {
  ...resourceOptions,
  input: {
    type: 'string',
    multiple: true,
    value: '[NAME=]FILE',
    help: [
      'File with lines for a source to read, such as the output of `kubectl logs --timestamps POD`, or - for standard input.',
      `NAME is a sample pod (${sampleContainers.join(', ')}, shop/${sampleContainers[0]}) or a source. Without NAME, the file is for the first pod`,
      'and for every source without pods: queue messages, `kubectl get events -o yaml`, a status page. May be repeated.',
    ].join(' '),
  },
  ...clusterNameOption,
  watch: { type: 'boolean', short: 'w', help: 'Run again after each change of the resources or the input.' },
  for: {
    type: 'string',
    value: 'TIME',
    help: 'Stop after this time, such as 10s; with --watch, after all runs together.',
  },
  print: { type: 'boolean', help: 'Print all events and deliver none.' },
  output: {
    type: 'string',
    short: 'o',
    default: 'pretty',
    oneOf: ['pretty', 'json'],
    value: 'FORMAT',
    help: 'Format of printed events: pretty, short lines for people, or json (pretty).',
  },
  color: {
    type: 'string',
    default: 'auto',
    oneOf: colorChoices,
    value: 'WHEN',
    help: 'Whether to colour: auto, always or never (auto).',
  },
} as const satisfies Flags

export const usage = `Usage: penstock run [-f] PATH… [FLAGS]

Runs resources on this machine: on sample pods, until Ctrl-C, or on files, until their events are delivered.

${helpOf(options)}
`

type Output = 'pretty' | 'json'

export async function run(argv: string[]): Promise<number> {
  const { flags: values, words } = parseFlags(argv, options, 'words')
  const flags: RunFlags = {
    paths: resourcePaths(values.file, words),
    inputs: values.input,
    limit: values.for === undefined ? undefined : durationMs(values.for),
    output: values.output,
    color: values.color,
    compile: {
      ownMachine: true,
      secretsRequired: !values.print,
      standalone: true,
      recursive: values.recursive,
      clusterName: values['cluster-name'],
    },
    print: values.print,
  }
  const given = givenInputs(flags.inputs, flags.paths)
  for (const stream of outputs) stream.off('error', unheard).on('error', unheard)
  if (!values.watch) return await runOnce(flags, given)
  const files = given.map(({ file }) => file)
  if ([...files, ...flags.paths].includes(standardInput)) {
    throw new PenstockError('PEN_USAGE', '`--watch` needs files, because standard input can only be read once.')
  }
  const watched = () => [...flags.paths.flatMap((path) => resourceFiles(path, values.recursive)), ...files]
  const each = { ...flags, limit: undefined }
  return await runAtChanges(watched, (over) => runOnce(each, given, over), flags.limit)
}

/** The inputs of one run. */
interface RunFlags {
  readonly paths: readonly [string, ...string[]]
  readonly inputs: readonly string[]
  readonly limit: number | undefined
  readonly output: Output
  readonly color: ColorChoice
  readonly compile: FilesOptions
  /** Whether all events are printed and none delivered. */
  readonly print: boolean
}

/** @param over ends the run */
async function runOnce(flags: RunFlags, given: ReturnType<typeof givenInputs>, over?: AbortSignal): Promise<number> {
  const { paths, limit, output, color } = flags
  const compiled = compileFiles(paths, flags.compile)
  if (!printProblems(compiled.problems)) return 78
  if (compiled.pipelines.length === 0) {
    console.error(`Nothing to run: ${compiled.suspended.join(', ')} is suspended.`)
    return 0
  }

  const folder = mkdtempSync(join(tmpdir(), 'penstock-run-'))
  try {
    const own = compiled.pipelines.map((pipeline) => pipeline.namespace || 'default')
    await using input = await RunInput.open(compiled.config.sources, given, [...new Set(own)], folder)
    const namespaces = [...new Set([...own, ...input.pods.map((pod) => pod.namespace)])]
    const objects = namespaces.flatMap(sampleObjects)
    refuseUnread(input, objects)
    await using server = new SampleApiServer([...objects, ...input.events])
    const address = await server.open()
    const logsDir = join(folder, 'pods')
    const api = `127.0.0.1:${await freePort()}`
    const config = agentConfig({ ...compiled.config, sources: input.sources }, folder, logsDir, address, api)
    const isReplaced = flags.print ? () => true : await replaced(config.sinks, compiled)
    const sinks = shownSinks(config.sinks, output === 'json' ? 'json' : 'native_json', isReplaced)
    const configFile = join(folder, 'agent.json')
    writeFileSync(configFile, configText({ ...config, sinks }))
    const terminal = { out: process.stdout, err: process.stderr, color: takesColors(process.stdout, color) }
    const screens = Object.values(sinks).filter(isScreen)
    const isSample = given.length === 0
    const screen = new RunScreen(terminal, isSample && output === 'pretty' && screens.length === 1)
    introduce(compiled)
    if (!isSample) {
      for (const pod of input.pods) await writeGivenLog(logsDir, pod)
      const quietMs = quietLimitMs(config.sources)
      const unread = unreadInput(input)
      return await runAgent(configFile, api, screen, {
        limit,
        output,
        color,
        quietMs,
        stdin: input.stdin,
        over,
        unread,
      })
    }
    introduceSamples(logsDir, idleSources(input.sources, objects), next(api, paths, over !== undefined))
    mkdirSync(logsDir)
    const writers: SampleWriter[] = []
    // Starts with the agent: lines written before would appear all at once, pod by pod.
    const started = () => {
      for (const namespace of namespaces)
        writers.push(writeSampleLogs(logsDir, namespace, (line) => screen.input(line)))
    }
    const code = await runAgent(configFile, api, screen, { limit, output, color, over, started, unread: unreadSamples })
    for (const writer of writers) writer.close()
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Sinks that cannot deliver from here; they are reported. */
async function replaced(
  sinks: Readonly<Record<string, Table>>,
  { pipelines }: CompiledResources,
): Promise<(id: string) => boolean> {
  const problems = await unreachable(sinks)
  for (const [id, problem] of problems) {
    // For a single Pipeline the name is unique; otherwise the id adds its namespace and name.
    const shown = pipelines.length === 1 ? id.slice(id.lastIndexOf('/') + 1) : id
    console.error(`Sink ${shown} cannot deliver from here (${problem}).\nIts events are printed instead.`)
  }
  return (id) => problems.has(id)
}

/** The compiled configuration with the paths of this machine: logs, metadata and state. */
function agentConfig(
  compiled: CompiledResources['config'],
  folder: string,
  logsDir: string,
  address: string,
  api: string,
): Table & Pick<CompiledResources['config'], 'sources' | 'sinks'> {
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeConfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'sample',
      contexts: [{ name: 'sample', context: { cluster: 'sample', user: 'sample' } }],
      clusters: [{ name: 'sample', cluster: { server: address } }],
      users: [{ name: 'sample', user: {} }],
    }),
  )
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const sources = Object.fromEntries(
    Object.entries(compiled.sources).map(([id, source]): [string, Table] => {
      if (source['type'] === orchestratorEvents.type) return [id, { ...source, kube_config_file: kubeConfig }]
      if (source['type'] !== orchestratorLogs.type) return [id, source]
      return [id, { ...source, logs_dir: logsDir, kube_config_file: kubeConfig, self_node_name: sampleNode }]
    }),
  )
  const { transforms, sinks } = compiled
  return { data_dir: dataDir, api: { enabled: true, address: api }, sources, transforms, sinks }
}

/** Flags of the agent: lines of sample pods do not justify a long wait for a destination. */
const quietly = ['-q', '--graceful-shutdown-limit-secs', '5']

interface RunOptions {
  readonly limit: number | undefined
  readonly output: Output
  readonly color: ColorChoice
  /** How long there must be no activity before the run ends; undefined: it continues. */
  readonly quietMs?: number
  /** A file as the agent's standard input. */
  readonly stdin?: string | undefined
  /** Called when the agent runs. */
  readonly started?: () => void
  /** Ends the run. */
  readonly over?: AbortSignal | undefined
  /** The likely cause if nothing is read. */
  readonly unread: string
}

/** Closing a terminal sends SIGHUP. */
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const repeatedMs = 300

const outputs = [process.stdout, process.stderr]
/** After the run, too, a closed output must not end this command, which removes its files. */
const unheard = () => {}

async function runAgent(config: string, api: string, screen: RunScreen, options: RunOptions): Promise<number> {
  const main = fileURLToPath(workerFile('agent', import.meta.url))
  const color = takesColors(process.stderr, options.color) ? 'always' : 'never'
  const stdin = options.stdin === undefined ? undefined : openSync(options.stdin, 'r')
  const agent = spawn(
    process.execPath,
    ['--conditions=source', main, ...quietly, '--color', color, '--config', config],
    {
      stdio: [stdin ?? 'ignore', options.output === 'pretty' ? 'pipe' : 'inherit', 'pipe', 'ipc'],
      // Terminal signals only reach this process, which forwards them: two signals would stop the agent at once.
      detached: true,
    },
  )
  if (stdin !== undefined) closeSync(stdin)
  let interruptedAt = Number.NEGATIVE_INFINITY
  const interrupt = () => {
    // With npm, Ctrl-C arrives twice: from the terminal, and from npm. A user who presses it again is slower.
    const isRepeated = performance.now() - interruptedAt < repeatedMs
    if (isRepeated) return
    interruptedAt = performance.now()
    agent.kill('SIGTERM')
  }
  if (options.over?.aborted) interrupt()
  options.over?.addEventListener('abort', interrupt)
  for (const signal of endings) process.on(signal, interrupt)
  // The reader has closed the output, as with `| head -1`.
  for (const stream of outputs) stream.on('error', interrupt)
  if (agent.stdout !== null) createInterface(agent.stdout).on('line', (line) => screen.event(line))
  if (agent.stderr !== null) createInterface(agent.stderr).on('line', (line) => screen.note(line))
  let figures: readonly ComponentView[] | undefined
  agent.on('message', (sent) => {
    figures = sent as readonly ComponentView[]
  })
  let end: NodeJS.Timeout | undefined
  let startedAt = performance.now()
  const ended = new AbortController()
  void answering(api, ended.signal).then((answers) => {
    if (!answers) return
    startedAt = performance.now()
    options.started?.()
    screen.stay(`Ctrl-C exits. Each step: ${npx}penstock-agent tap --url http://${api}`)
    end = options.limit === undefined ? undefined : setTimeout(interrupt, options.limit)
    if (options.quietMs === undefined) return
    void allDelivered(api, options.quietMs, ended.signal).then((isOver) => {
      if (isOver) interrupt()
    })
  })
  try {
    return await new Promise<number>((resolve, reject) => {
      agent.on('error', reject)
      // Also after its streams have ended, so that no line is missed.
      agent.on('close', (code) => resolve(code ?? 0))
    })
  } finally {
    screen.close()
    if (figures !== undefined) screen.note(summary(figures, (performance.now() - startedAt) / 1000, options.unread))
    ended.abort()
    clearTimeout(end)
    options.over?.removeEventListener('abort', interrupt)
    for (const signal of endings) process.off(signal, interrupt)
    for (const stream of outputs) stream.off('error', interrupt)
  }
}

/** The result of a run, and the likely cause if it is empty. */
function summary(components: readonly ComponentView[], seconds: number, unread: string): string {
  const sum = (kind: string, count: (component: ComponentView) => number) =>
    components.reduce((total, one) => (one.component_kind === kind ? total + count(one) : total), 0)
  const read = sum('source', (source) => source.sent_events_total)
  const filtered = sum('transform', (transform) => transform.filtered_events_total)
  const delivered = sum('sink', (sink) => sink.sent_events_total)
  const lost = components.reduce((total, one) => total + one.discarded_events_total - one.filtered_events_total, 0)
  const rate = (read / Math.max(seconds, 0.001)).toFixed(1)
  const parts = [
    `read ${counted(read, 'event')}`,
    `filtered ${filtered}`,
    `delivered ${delivered}`,
    ...(lost > 0 ? [`lost ${lost}`] : []),
  ]
  const done = `\nIn ${seconds.toFixed(1)} s: ${parts.join(', ')} (${rate} read per second).`
  return read > 0 ? done : `${done}\nNothing was read. ${unread}`
}

const unreadSamples =
  "Do the sources' selectors match the labels of a sample pod above?\nTo try your own lines: --input FILE"

/** @throws PenstockError if no source reads the pods whose logs are the input: the run would wait for lines in vain */
function refuseUnread({ pods, sources, others }: RunInput, objects: readonly SampleObject[]): void {
  if (pods.length === 0 || others > 0) return
  const isGiven = (namespace: string, container: string) =>
    pods.some((pod) => pod.namespace === namespace && pod.container === container)
  const idle = idleSources(sources, objects, isGiven)
  const logSources = Object.values(sources).filter(isPodLogs)
  if (idle.length < logSources.length) return
  const given = [...new Set(pods.map(({ container }) => container))].join(', ')
  const lines = [
    `No source reads the input, which is the log of pod ${given}:`,
    ...idle.map(({ name, selection }) => `  source ${name} reads pods with ${selection}`),
    'The sample pods are:',
    ...samplePodNames.map((name) => `  ${name}`),
    'To use another pod: --input POD=FILE.',
  ]
  throw new PenstockError('PEN_USAGE', lines.join('\n'))
}

function unreadInput({ pods }: RunInput): string {
  if (pods.length === 0) return 'Does the input have the form that the source reads?'
  const given = [...new Set(pods.map(({ container }) => container))].join(', ')
  const known = samplePodNames.map((name) => `  ${name}`).join('\n')
  return `The input is the log of pod ${given}. Do the sources' selectors match its labels?\n${known}\nTo use another pod: --input POD=FILE`
}

/** Waits until the agent runs, which takes some seconds at its first start; false if the run ends first. */
async function answering(api: string, over: AbortSignal): Promise<boolean> {
  while (!over.aborted) {
    const answer = await fetch(`http://${api}/health`, { signal: over }).catch(() => undefined)
    if (answer?.ok) return true
    await pause(100, over)
  }
  return false
}

/** The header: what runs. */
function introduce(compiled: CompiledResources): void {
  for (const pipeline of compiled.pipelines) {
    const spec = pipeline.content['spec'] as Record<string, { name: string }[] | undefined>
    const names = (list: string) => (spec[list] ?? []).map((entry) => entry.name).join(', ')
    const steps = [names('sources'), ...(spec['transforms'] ?? []).map((entry) => entry.name), names('sinks')]
    const id = pipeline.namespace === '' ? pipeline.name : `${pipeline.namespace}/${pipeline.name}`
    console.error(`${pipeline.kind} ${id}: ${steps.join(' -> ')}`)
  }
}

/** Which data the run uses, and what to do next. */
function introduceSamples(logsDir: string, idle: readonly IdleSource[], advice: string): void {
  console.error(['Sample pods:', ...samplePodNames.map((name) => `  ${name}`)].join('\n'))
  for (const { name, selection } of idle)
    console.error(`Source ${name} reads none of them: it reads pods with ${selection}.`)
  console.error(`They write their logs below:\n  ${logsDir}\n\n${advice}\n`)
}

/**
 * The next steps. Paths appear only in commands on lines of their own, because a path can be long. @param isWatched whether a change of a file
 * starts a new run
 */
export function next(api: string, paths: readonly string[], isWatched = false): string {
  const files = paths.map((path) => `-f ${path}`).join(' ')
  const commands = [
    [`${npx}penstock-agent top --url http://${api}`, 'live figures'],
    [`${npx}penstock-agent tap --url http://${api} '*'`, 'events at each step'],
    [`curl http://${api}/metrics`, 'for Prometheus'],
  ]
  const width = Math.max(...commands.map(([command = '']) => command.length))
  return [
    'While it runs, in another terminal (Ctrl-C exits):',
    ...commands.map(([command = '', shows]) => `  ${command.padEnd(width)}  ${shows}`),
    isWatched
      ? 'Then change the files: it restarts automatically. To check them:'
      : 'Then change the files and start again, or use --watch. To check them:',
    `  ${npx}penstock lint ${files}`,
  ].join('\n')
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
