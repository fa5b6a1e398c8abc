// Runs commands, and waits for their effects. Nothing outlives the caller: a command ends with its signal or timeout, and a wait gives up
// with the last error.

import { spawn } from 'node:child_process'
import { basename, resolve } from 'node:path'

/** The repository's root. */
export const root = resolve(import.meta.dirname, '..')
/** The Node version that the repository pins, which may differ from that of the machine. */
export const node = resolve(root, 'node_modules/node/bin/node')

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string | Uint8Array
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Forwards standard output and error to those of this process. */
  readonly show?: boolean
  readonly cwd?: string
}

export interface CommandResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end, with any exit code. */
export function execute(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const { promise, resolve: done, reject } = Promise.withResolvers<CommandResult>()
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 600_000)
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout.on('data', (part: Buffer) => {
    stdout.push(part)
    if (options.show) process.stdout.write(part)
  })
  child.stderr.on('data', (part: Buffer) => {
    stderr.push(part)
    if (options.show) process.stderr.write(part)
  })
  child.on('error', (error) => {
    clearTimeout(timer)
    reject(error)
  })
  // `close` comes after the last output. A background process of the command may keep the output open forever, so the wait for it is
  // short.
  child.on('exit', (code, signal) => {
    clearTimeout(timer)
    const end = () => {
      clearTimeout(patience)
      child.stdout.destroy()
      child.stderr.destroy()
      done({ code, signal, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() })
    }
    const patience = setTimeout(end, 2_000)
    child.once('close', end)
  })
  child.stdin.on('error', () => {}) // it ended before it read everything; its exit code matters
  child.stdin.end(options.input)
  return promise
}

/** Runs a command that must succeed, and returns its output. */
export async function command(name: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const result = await execute(name, args, options)
  if (result.code !== 0) {
    const ending = result.code === null ? `was ended by ${result.signal}` : `ended with ${result.code}`
    // The summary of a test run shows only the first line.
    const last = `${result.stdout}\n${result.stderr}`.trimEnd().split('\n').at(-1) ?? ''
    throw new Error(
      `${basename(name)} ${ending}: ${last}\n${[name, ...args].join(' ')}\n${result.stdout.slice(-2000)}${result.stderr.slice(-4000)}`,
    )
  }
  return result.stdout
}

/** Checks take at most half of the time, because the awaited work runs on the same machine. */
export const restAfter = (startedAt: number) =>
  new Promise((tick) => setTimeout(tick, Math.max(200, performance.now() - startedAt)))

/** Time limits are for an idle machine; a busy machine gets this multiple. It does not delay successful waits. */
export const patience = 3

/** The flag of kubectl and helm that limits a wait. */
export const within = (seconds: number) => ['--timeout', `${patience * seconds}s`] as const

/** Repeats a check until it returns neither false nor undefined. Gives up with the last error after the timeout. */
export async function until<T>(
  what: string,
  timeoutMs: number,
  attempt: () => Promise<T | false | undefined>,
): Promise<T> {
  const end = Date.now() + patience * timeoutMs
  for (;;) {
    const startedAt = performance.now()
    let problem: unknown
    try {
      const value = await attempt()
      if (value !== false && value !== undefined) return value
    } catch (error) {
      problem = error
    }
    if (Date.now() > end) throw new Error(`Gave up waiting for ${what}.`, { cause: problem })
    await restAfter(startedAt)
  }
}

/** Applies a function to all items, at most this many at a time. */
export async function inGroups<T>(
  items: readonly T[],
  size: number,
  act: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(act))
}
