// Runs commands, and waits for what they bring about. Nothing here outlives its caller: a command ends with its signal or
// its time, and a wait gives up with the reason it was last given.

import { spawn } from 'node:child_process'
import { resolve } from 'node:path'

/** The repository's root. */
export const root = resolve(import.meta.dirname, '..')
/** The Node that the repository pins; what the machine has may be another. */
export const node = resolve(root, 'node_modules/node/bin/node')

export interface CommandOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string | Uint8Array
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Hand standard output and error on to this process's own as they come. */
  readonly show?: boolean
  readonly cwd?: string
}

export interface CommandResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end, whatever its exit code. */
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
  // Its last output is read until the end (`close`). A process that it leaves running may hold its output open forever, so the wait for
  // that is short.
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
  child.stdin.on('error', () => {}) // it ended before it had read everything: its exit code matters
  child.stdin.end(options.input)
  return promise
}

/** Runs a command that must succeed, and returns what it printed. */
export async function command(name: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const result = await execute(name, args, options)
  if (result.code !== 0) {
    const ending = result.code === null ? `was ended by ${result.signal}` : `ended with ${result.code}`
    throw new Error(
      `${[name, ...args].join(' ')} ${ending}\n${result.stdout.slice(-2000)}${result.stderr.slice(-4000)}`,
    )
  }
  return result.stdout
}

/** A look after another takes at most half of the time: what is waited for is to be done meanwhile, on the same machine. */
export const restAfter = (startedAt: number) =>
  new Promise((tick) => setTimeout(tick, Math.max(200, performance.now() - startedAt)))

/** Limits are given for a quiet machine; a busy one gets this multiple of them. A result in time is not delayed. */
export const patience = 3

/** Tries until what is returned is neither false nor undefined, and gives up with the last error after the time. */
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
