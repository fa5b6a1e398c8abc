// The agent under test in the fault tests: one data folder for many runs, numbered lines through a file and standard input, and metrics from
// its observation server.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '@penstock/agent/testing/free-port'
import { programOf } from '../program.ts'

export class Victim implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'penstock-fault-'))
  readonly dataDir: string
  readonly #config = join(this.folder, 'agent.json')
  #child: ChildProcess | undefined
  #exited: Promise<number | null> = Promise.resolve(null)
  #port = 0
  /** The log of the current or the last run. */
  log = ''
  /** Environment of later runs. */
  env: NodeJS.ProcessEnv = {}

  constructor(dataDir?: string) {
    this.dataDir = dataDir ?? this.folder
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** The folder of a sink's disk buffer. */
  buffer(sink: string): string {
    return join(this.dataDir, 'buffer/v2', sink)
  }

  /** Starts a run, and waits until the agent has started. */
  async start(config: Record<string, unknown>): Promise<void> {
    this.#port ||= await freePort()
    this.#write(config)
    const started = Promise.withResolvers<void>()
    const { command, args, env } = programOf('agent')
    const child = spawn(command, [...args, '--config', this.#config, '--log-format', 'json', '-i', '0'], {
      env: { ...process.env, ...env, ...this.env },
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    this.#child = child
    this.log = ''
    child.stdin?.on('error', () => {}) // it was killed during a write
    child.stderr?.on('data', (part: Buffer) => {
      if (this.log.length < 4_000_000) this.log += part.toString()
      if (this.log.includes('Penstock has started.')) started.resolve()
    })
    this.#exited = new Promise((done) =>
      child.on('exit', (code) => {
        started.reject(new Error(`The agent ended with ${code} before it had started.\n${this.log}`))
        done(code)
      }),
    )
    await started.promise
  }

  #write(config: Record<string, unknown>): void {
    const api = { enabled: true, address: `127.0.0.1:${this.#port}` }
    writeFileSync(this.#config, JSON.stringify({ data_dir: this.dataDir, api, ...config }))
  }

  /** Replaces the configuration, and waits until it is active. */
  async reload(config: Record<string, unknown>): Promise<void> {
    const reloads = () => this.log.split('The new configuration is active.').length
    const before = reloads()
    this.#write(config)
    this.#child?.kill('SIGHUP')
    await eventually('the new configuration is in force', 60_000, () => reloads() > before).catch((error: unknown) => {
      throw new Error(this.log, { cause: error })
    })
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Writes to standard input. Returns false while it is full. */
  write(text: string): boolean {
    return this.#child?.stdin?.write(text) ?? false
  }

  endInput(): void {
    this.#child?.stdin?.end()
  }

  async signal(signal: NodeJS.Signals): Promise<number | null> {
    this.#child?.kill(signal)
    return await this.#exited
  }

  get exited(): Promise<number | null> {
    return this.#exited
  }

  /** The sum of a metric over all series with these labels. */
  async metric(name: string, ...labels: string[]): Promise<number> {
    const page = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text()
    let sum = 0
    for (const line of page.split('\n')) {
      if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue
      if (labels.every((label) => line.includes(label))) sum += Number(line.slice(line.lastIndexOf(' ') + 1))
    }
    return sum
  }

  async health(): Promise<number> {
    return (await fetch(`http://127.0.0.1:${this.#port}/health`)).status
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child?.exitCode === null && this.#child.signalCode === null) await this.signal('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** An `http` sink with short retry delays. */
export function impatientSink(input: string, uri: string, buffer: object): Record<string, unknown> {
  return {
    type: 'http',
    inputs: [input],
    uri,
    encoding: { codec: 'text' },
    framing: { method: 'newline_delimited' },
    batch: { timeout_secs: 0.1, max_bytes: 200_000 },
    request: { timeout_secs: 1, retry_initial_backoff_secs: 1, retry_max_duration_secs: 1, concurrency: 4 },
    healthcheck: false,
    acknowledgements: { enabled: true },
    buffer,
  }
}

export const onDisk = (more: object = {}) => ({ type: 'disk', max_size: 268_435_488, ...more })

/** Waits until a condition is true. The error contains the last value. */
export async function eventually(
  what: string,
  timeoutMs: number,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Gave up waiting until ${what}.`)
    await wait(20)
  }
}
