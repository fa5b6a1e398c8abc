// Runs the agent alone, with a configuration file and standard input.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandResult } from './command.ts'
import { execute, patience } from './command.ts'
import { programOf } from './program.ts'

export type AgentConfig = Record<string, unknown>

/** Writes a configuration and its data folder to a temporary folder, which is removed when the returned object is disposed. */
async function agentFolder(
  config: AgentConfig,
): Promise<AsyncDisposable & { readonly folder: string; readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-agent-'))
  await mkdir(join(folder, 'data'))
  const file = join(folder, 'agent.json')
  await writeConfig({ folder, file }, config)
  return { folder, file, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

async function writeConfig(to: { readonly folder: string; readonly file: string }, config: AgentConfig): Promise<void> {
  await writeFile(to.file, JSON.stringify({ data_dir: join(to.folder, 'data'), ...config }, undefined, 2))
}

/** Runs the agent until its sources end, which happens at the end of standard input. */
export async function runAgent(
  config: AgentConfig,
  input: string | Uint8Array = '',
  options: { readonly args?: readonly string[]; readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number } = {},
): Promise<CommandResult> {
  await using files = await agentFolder(config)
  const { command, args, env } = programOf('agent')
  return await execute(command, [...args, '--config', files.file, ...(options.args ?? [])], {
    input,
    env: { ...env, ...options.env },
    timeoutMs: patience * (options.timeoutMs ?? 60_000),
  })
}

export interface RunningAgent extends AsyncDisposable {
  readonly folder: string
  /** Its standard output and error so far. */
  output(): string
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Replaces the configuration: writes it and sends SIGHUP. */
  reload(config: AgentConfig): Promise<void>
}

/** Starts the agent and leaves it running. */
export async function startAgent(config: AgentConfig, env: NodeJS.ProcessEnv = {}): Promise<RunningAgent> {
  const files = await agentFolder(config)
  const agent = programOf('agent')
  const child = spawn(agent.command, [...agent.args, '--config', files.file], {
    env: { ...process.env, ...agent.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const keep = (part: Buffer) => {
    output += part.toString()
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const exit = once(child, 'exit')
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal)
      await exit
    }
    return child.exitCode
  }
  return {
    folder: files.folder,
    output: () => output,
    stop,
    async reload(next) {
      await writeConfig(files, next)
      child.kill('SIGHUP')
    },
    async [Symbol.asyncDispose]() {
      await stop('SIGKILL')
      await files[Symbol.asyncDispose]()
    },
  }
}

/** A counter or gauge in the format of the codec `json`. */
export interface ShownMetric {
  readonly name: string
  readonly namespace: string | undefined
  readonly kind: string
  readonly type: 'counter' | 'gauge'
  readonly value: number
  readonly tags: Readonly<Record<string, string>>
  readonly timestamp: string | undefined
}

/** The metrics that a `console` sink with codec `json` has printed so far. */
export function shownMetrics(agent: RunningAgent): ShownMetric[] {
  const lines = agent.output().split('\n').slice(0, -1)
  return lines
    .filter((line) => line.startsWith('{"name"'))
    .map((line) => {
      const { counter, gauge, ...parts } = JSON.parse(line)
      return { tags: {}, ...parts, type: counter === undefined ? 'gauge' : 'counter', value: (counter ?? gauge)?.value }
    })
}
