// `penstock run -f DIR [--for 10s]`: compiles the resources of a folder and runs them here. Sample pods stand in for a cluster,
// but nothing else is made up: their log files are tailed and their metadata is listed from an API server as on a node.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { pause } from '@penstock/agent/clock'
import { fileBeside } from '@penstock/agent/remap/worker-file'
import { type CompiledResources, compileFiles, configText } from '../compile/config.ts'
import { durationMs, fileOption, resourcePaths } from './arguments.ts'
import { printProblems } from './problems.ts'
import { SampleApiServer } from './sample-cluster/api-server.ts'
import { sampleNode, sampleObjects, writeSampleLogs } from './sample-cluster/pods.ts'

export const usage = `Usage: penstock run -f PATH [FLAGS]

Compiles resources and runs them here, on sample pods, until Ctrl-C.

  -f, --file PATH            a file or a folder with .yaml files; may be repeated
  --for TIME                 end when it has run for so long, such as 10s
`

/** Lines of the pods have been seen then. */
const adviceMs = 3000

export async function run(argv: string[]): Promise<number> {
  const { values } = parseArgs({ args: argv, options: { file: fileOption, for: { type: 'string' } } })
  const limit = values.for === undefined ? undefined : durationMs(values.for)
  const paths = resourcePaths(values.file)
  const compiled = compileFiles(paths, { ownMachine: true, secretsRequired: true, standalone: true })
  if (!printProblems(compiled.problems)) return 78
  if (compiled.pipelines.length === 0) {
    console.error(`Nothing to run: ${compiled.suspended.join(', ')} is suspended.`)
    return 0
  }

  const folder = mkdtempSync(join(tmpdir(), 'penstock-run-'))
  try {
    const namespaces = [...new Set(compiled.pipelines.map((pipeline) => pipeline.namespace || 'default'))]
    await using server = new SampleApiServer(namespaces.flatMap(sampleObjects))
    const address = await server.open()
    const logsDir = join(folder, 'pods')
    const writers = namespaces.map((namespace) => writeSampleLogs(logsDir, namespace))
    const api = `127.0.0.1:${await freePort()}`
    const config = join(folder, 'agent.json')
    writeFileSync(config, configText(agentConfig(compiled, folder, logsDir, address, api)))
    introduce(compiled, logsDir)
    const code = await runAgent(config, api, next(api, paths), limit)
    for (const writer of writers) writer.close()
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The compiled configuration with what belongs to this machine: where logs, metadata and state are. */
function agentConfig(
  compiled: CompiledResources,
  folder: string,
  logsDir: string,
  address: string,
  api: string,
): object {
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
    Object.entries(compiled.config.sources).map(([id, source]) => {
      const options = source as Record<string, unknown>
      if (options['type'] !== 'orchestrator_logs') return [id, options]
      return [id, { ...options, logs_dir: logsDir, kube_config_file: kubeConfig, self_node_name: sampleNode }]
    }),
  )
  const { transforms, sinks } = compiled.config
  return { data_dir: dataDir, api: { enabled: true, address: api }, sources, transforms, sinks }
}

async function runAgent(config: string, api: string, advice: string, limit: number | undefined): Promise<number> {
  const main = fileURLToPath(fileBeside('agent', import.meta.url))
  const agent = spawn(process.execPath, ['--conditions=source', main, '-q', '--config', config], {
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  // Ctrl-C in a terminal reaches the agent too, which then ends cleanly; a signal sent to this process alone is passed on.
  const interrupt = () => void agent.kill('SIGTERM')
  const ignore = () => {}
  process.on('SIGTERM', interrupt)
  process.on('SIGINT', process.stdin.isTTY ? ignore : interrupt)
  let hint: NodeJS.Timeout | undefined
  let end: NodeJS.Timeout | undefined
  const ended = new AbortController()
  void answering(api, ended.signal).then((answers) => {
    if (!answers) return
    hint = setTimeout(() => console.error(`\n${advice}\n`), adviceMs)
    end = limit === undefined ? undefined : setTimeout(interrupt, limit)
  })
  try {
    return await new Promise<number>((resolve, reject) => {
      agent.on('error', reject)
      agent.on('exit', (code) => resolve(code ?? 0))
    })
  } finally {
    ended.abort()
    clearTimeout(hint)
    clearTimeout(end)
    process.off('SIGTERM', interrupt)
    process.off('SIGINT', interrupt)
    process.off('SIGINT', ignore)
  }
}

/** Waits until the agent runs, which takes some seconds where it is started for the first time; false if that is over before. */
async function answering(api: string, over: AbortSignal): Promise<boolean> {
  while (!over.aborted) {
    const answer = await fetch(`http://${api}/health`, { signal: over }).catch(() => undefined)
    if (answer?.ok) return true
    await pause(100, over)
  }
  return false
}

function introduce(compiled: CompiledResources, logsDir: string): void {
  for (const pipeline of compiled.pipelines) {
    const spec = pipeline.content['spec'] as Record<string, { name: string }[] | undefined>
    const names = (list: string) => (spec[list] ?? []).map((entry) => entry.name).join(', ')
    const steps = [names('sources'), ...(spec['transforms'] ?? []).map((entry) => entry.name), names('sinks')]
    const id = pipeline.namespace === '' ? pipeline.name : `${pipeline.namespace}/${pipeline.name}`
    console.error(`${pipeline.kind} ${id}: ${steps.join(' -> ')}`)
  }
  console.error(`Sample pods write their logs below ${logsDir}. Ctrl-C ends.\n`)
}

/** What to look at and to do next. */
export function next(api: string, paths: readonly string[]): string {
  const files = paths.map((path) => `-f ${path}`).join(' ')
  return [
    'While it runs, in another terminal:',
    `  npx penstock-agent top --url http://${api}             events and bytes of each component`,
    `  npx penstock-agent tap --url http://${api} '*'         events at every step`,
    `  curl http://${api}/metrics                            the same figures for Prometheus`,
    `Then change ${paths.join(', ')} and start again; \`npx penstock lint --own-machine ${files}\` checks it.`,
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
