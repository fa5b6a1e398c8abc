// Runs the binary of an old agent on recorded lines, for `penstock convert --prove SAMPLE --binary PATH`. It prints the events, and is
// stopped when it prints no more, because agents keep waiting for lines. It never outlives the command.

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorText, PenstockError } from '@penstock/agent/errors'
import type { Trial } from '../migrate/trial.ts'

/** If no further events come for this long, the agent has printed all. */
const quietMs = 5000
/** Wait for the first event. Large binaries need some seconds to start. */
const firstMs = 30_000
/** For the end after SIGTERM. */
const graceMs = 10_000
const maxOutputBytes = 256 << 20

/** Returns the output of the binary. @param stdin a file @param limitMs maximum run time */
export async function runOldAgent(
  binary: string,
  { files, words }: Trial,
  folder: string,
  stdin: string,
  limitMs: number,
): Promise<string> {
  for (const { file, text } of files) writeFileSync(join(folder, file), text)
  const running = new Running(binary, words, stdin, limitMs)
  const interrupt = () => running.end('interrupt')
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  let code: number | null
  try {
    code = await running.ended
  } catch (error) {
    throw new PenstockError('PEN_USAGE', `\`--binary ${binary}\` does not start: ${errorText(error)}.`, {
      cause: error,
    })
  } finally {
    running.close()
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
  const refuse = (message: string) => new PenstockError('PEN_USAGE', `${binary} ${message}`)
  switch (running.reason) {
    case 'interrupt':
      throw refuse('was interrupted before it printed all events.')
    case 'size':
      throw refuse(`prints more than ${maxOutputBytes >> 20} MiB of events; use a smaller sample.`)
    case 'limit':
      throw refuse(
        `still printed events after ${limitMs / 1000} s. Use a smaller sample, or allow more time with \`--for\`.`,
      )
    case 'quiet':
      break
    default:
      if (code === 0) break
      throw refuse(`${words.join(' ')} exited with code ${code}.${running.messages}`)
  }
  return eventLines(running.text)
}

type Reason = 'quiet' | 'limit' | 'size' | 'interrupt'

class Running {
  /** Why it was stopped; undefined if it ended by itself. */
  reason: Reason | undefined
  readonly ended: Promise<number | null>
  readonly #agent: ChildProcess
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #printed: Buffer[] = []
  #bytes = 0
  #messages = ''
  #untilQuiet: NodeJS.Timeout

  constructor(binary: string, words: readonly string[], stdin: string, limitMs: number) {
    const input = openSync(stdin, 'r')
    // A separate process group, so that a script and the agent that it starts end together.
    this.#agent = spawn(binary, words, { stdio: [input, 'pipe', 'pipe'], detached: true })
    closeSync(input)
    this.#untilQuiet = this.#after(firstMs, () => this.end('quiet'))
    this.#after(limitMs, () => this.end('limit'))
    this.#agent.stdout?.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#agent.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#messages = (this.#messages + text).slice(-4096)
    })
    this.ended = new Promise<number | null>((resolve, reject) => {
      this.#agent.on('error', reject)
      this.#agent.on('close', resolve)
    })
  }

  get text(): string {
    return Buffer.concat(this.#printed).toString('utf8')
  }

  get messages(): string {
    return this.#messages.trim() === '' ? '' : `\nIt printed:\n${this.#messages.trimEnd()}`
  }

  end(reason: Reason): void {
    if (this.reason !== undefined) return
    this.reason = reason
    signalGroup(this.#agent.pid, 'SIGTERM')
    this.#after(graceMs, () => signalGroup(this.#agent.pid, 'SIGKILL'))
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #take(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > maxOutputBytes) {
      this.end('size')
      return
    }
    this.#printed.push(chunk)
    clearTimeout(this.#untilQuiet)
    this.#timers.delete(this.#untilQuiet)
    this.#untilQuiet = this.#after(quietMs, () => this.end('quiet'))
  }

  #after(ms: number, act: () => void): NodeJS.Timeout {
    const timer = setTimeout(act, ms)
    this.#timers.add(timer)
    return timer
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch (error) {
    // All of them have ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Only lines with objects, because agents also print banners. */
function eventLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .join('\n')
}
